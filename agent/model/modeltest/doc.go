// Package modeltest is a scripted OpenAI-compatible server for tests: it says what the script tells it to, in the
// form in which providers say it, and refuses every request that the strictest of them would refuse.
//
// [NewServer] is the form for Go tests: a violation fails the test, and so does a script that was not used up. [Handler]
// is the same without a test, for processes of their own (end-to-end tests in a browser); [Handler.Control] scripts it
// over HTTP.
//
// A script is a list of steps, one per request: a [Reply], or a [Func] that looks at the request, for example to close
// the tabs whose ids the last result has ([Received.Result], [Collect]). [Rules] choose by what the person wrote and
// are good for any number of conversations in any order.
//
// The package shares no code with the client it tests, so that an error cannot hide on both sides. No product code may
// import it.
package modeltest
