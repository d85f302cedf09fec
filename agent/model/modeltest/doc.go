// Package modeltest is a scripted OpenAI-compatible server for tests: it says what the script tells it to, in the
// form in which providers say it, and refuses every request that the strictest of them would refuse.
//
// [NewServer] is the form for Go tests: a violation fails the test, and so does a script that was not used up. [Handler]
// is the same without a test, for processes of their own (end-to-end tests in a browser); [Handler.Control] scripts it
// over HTTP.
//
// # What it says
//
// A script is a list of steps, one per request: a [Reply], or a [Func] that looks at the request, for example to close
// the tabs whose ids the last result has ([Received.Result], [Collect]). [Rules] choose by what the person wrote, by the
// system prompt, by the last result or by the model that is asked, and are good for any number of conversations in any
// order: agents that write to each other run in a closed loop with them. [Policy] acts by chance, the same for the same
// seed.
//
//	server := modeltest.NewServer(t, modeltest.Use("searchTabs", `{"query":"news"}`), modeltest.Text("There is one."))
//
//	server.SetRule(modeltest.MustRules(
//		modeltest.Rule{System: "You are A", Match: `ask (\w+)`, Steps: []modeltest.Step{
//			modeltest.Use("sendToConversation", `{"to":"{{user.1}}","message":"ping"}`), modeltest.Text("Sent."),
//		}},
//		modeltest.Rule{Last: "ping", Steps: []modeltest.Step{modeltest.Text("pong")}},
//	))
//
// # Several models
//
// One server answers for any number of models. [Handler.AddFor] and [Handler.SetRuleFor] script one of them, and are asked
// before the script for all; that is how a fallback is tested:
//
//	server.AddFor("first", modeltest.Fail(http.StatusUnauthorized, "no such key"))
//	server.AddFor("second", modeltest.Text("Here I am."))
//
// # How it says it
//
// A [Reply] may be held ([Reply.Hold] with HoldAfter or HoldAtByte), broken off (CutAfter, CutAtByte, Reset), cut into
// pieces of any size (Split, Seed) or slowed down (PaceMillis). [Replay] sends the bytes of a fixture, with all of these.
//
// # What it refuses
//
// Everything that some provider refuses, whoever it is: calls without a result and results without a call, ids that occur
// twice, names that are none, arguments that are no object, half surrogate pairs, NUL, images outside of user messages,
// assistant messages at the end, more than 128 tools, tools that share a name, schemas without properties or items, strict
// schemas that are not, members that nobody knows, a key that is not its own. [Config] makes it stricter: as a model that
// cannot call tools (NoTools), as Gemini (Gemini), as a provider that wants reasoning back (NeedsReasoning), does not know
// a field (RefuseField) or takes only short ids (ShortIDs), as one whose context is small (ContextBytes).
//
// The package shares no code with the client it tests, so that an error cannot hide on both sides. No product code may
// import it. What it exports only ever grows: tests all over the repository use it.
package modeltest
