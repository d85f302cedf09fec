// Package model speaks with language models over the OpenAI-compatible Chat Completions wire: any base URL, one
// answer at a time, streamed.
//
// A [Client] sends a [Request] and returns the [Turn] the model made of it. The request side (retries, Retry-After,
// refusing to follow a redirect to another origin) is openai-go's; the answer is read by a reader of our own, because
// what providers really put on that wire differs in dozens of small ways and a library that loses one of them loses
// text, merges two calls into one, or reports a broken answer as a finished one. What the reader promises:
//
//   - A turn is returned whole or with an error: [Turn.CutOff] is set exactly when the error says that the answer did
//     not end. A cut-off turn keeps its text for the person, and its calls only in [Turn.Open], never to be run.
//   - Calls have a name or arguments, ids that are unique in the turn and in the history it answers, and arguments as
//     the model wrote them: {} for none, else text that the caller must still check.
//   - Every string is valid UTF-8 without NUL.
//   - Nothing is interpreted before the answer ended, and no input makes the reader allocate without bound.
//
// Before a request is sent its history is repaired ([Repair]), so that whatever an abort, a crash or a badly behaved
// model left behind, the next request is one that the strictest provider accepts ([Lint] is the rule it meets).
//
// The package reads no environment, keeps no history, logs nothing, and imports nothing of ours.
package model
