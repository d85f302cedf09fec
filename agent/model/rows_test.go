package model

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// row is one thing that providers do, or that went wrong with other programs, and the tests that hold us to it.
type row struct {
	what     string
	fixtures []string // of this package
	tests    []string // of this package, or of a folder from the root with a colon
}

// wireRows are what the wire brings, in the order of the facts that were measured.
func wireRows() []row {
	return []row{
		{"deltas without index", []string{"no index", "no index, interleaved by id", "no ids, no index", "report: index-less parallel calls, pieces without an id"}, nil},
		{"all calls at index 0 with ids of their own", []string{"all at index 0", "all at index 0, no arguments", "all at index 0, same tool"}, nil},
		{"empty ids on continuation, id only first, id changes", []string{"empty ids on continuation", "library loses: id only on the first", "id changes", "id changes with the name repeated"}, nil},
		{"no id, or one id twice", []string{"no ids", "one id for two calls", "one id for two calls, no index", "id of an earlier turn"}, []string{"TestCallIDsAreFresh"}},
		{"name repeated with every chunk", []string{"id and name on every chunk, summary at the end", "the same without index", "name grows", "name in pieces"}, nil},
		{"arguments repeated whole, or as snapshots", []string{"arguments repeated whole", "arguments repeated in pieces", "arguments in snapshots", "arguments in two snapshots", "arguments that look like snapshots"}, []string{"TestSnapshotsCostNoMemory"}},
		{"two calls interleaved", []string{"two calls interleaved"}, []string{"TestAnswerReset"}},
		{"a call that seems finished before the end", []string{"two calls in one chunk", "reason in the chunk of the call", "whole call cut off"}, []string{"TestLibraryReadsNothing"}},
		{"index starts at 1", []string{"index starts at 1", "placeholder at index 0", "report: index starts at 1"}, nil},
		{"index -1 or two billion", []string{"index -1", "index of two billion", "index in quotes"}, []string{"TestAnswerBounds"}},
		{"type missing", []string{"library loses: type missing"}, []string{"TestToolRound"}},
		{"arguments as an object, null or empty", []string{"arguments as object", "arguments null", "arguments null as text", "arguments empty", "arguments absent"}, nil},
		{"chunk ids differ", []string{"chunk ids differ"}, nil},
		{"choice index 197", []string{"choice index 197"}, nil},
		{"finish stop with calls, or on every chunk", []string{"reason stop with call", "reason on every chunk", "reason on every chunk of a call"}, nil},
		{"later chunk without a finish", []string{"later reason is null", "later reason says more"}, nil},
		{"usage with every chunk", []string{"usage on every chunk", "usage that shrinks", "usage at the end", "usage in the last chunk with a choice"}, nil},
		{"error null in chunks", []string{"error null", "empty error object"}, nil},
		{"error in the middle", []string{"error midway", "error text midway", "error object of vllm", "error as reason", "call cut by error"}, nil},
		{"error event without an error", []string{"library loses: error event without an error", "error event of plain text", "error event of nothing"}, nil},
		{"end without done and without finish", []string{"end without reason", "end within a line", "call cut off", "whole call cut off"}, nil},
		{"last event without an empty line", []string{"library loses: last event without an empty line", "tail without line end"}, nil},
		{"200 with JSON, an error or a page", []string{"whole completion", "whole completion as stream", "json error", "json error as array", "json of something else", "html", "html as stream", "plain text", "empty"}, nil},
		{"comments, CR LF, no space, several data lines", []string{"comments and other fields", "crlf", "no space after data", "document over several data lines"}, nil},
		{"byte order mark and lone CR", []string{"byte order mark", "lone cr"}, []string{"TestAnswerAnySplit"}},
		{"lines of 30 and 40 MB", nil, []string{"TestAnswerBounds", "TestAnswerEnds"}},
		{"halves of a surrogate pair in two deltas", []string{"surrogate pair in two deltas", "lone surrogates", "arguments with a split surrogate pair"}, nil},
		{"bytes FF FE", []string{"invalid utf-8 and nul"}, []string{"FuzzStream"}},
		{"content as parts", []string{"content parts"}, nil},
		{"malformed chunk", []string{"broken chunk", "broken json"}, nil},
		{"reset of the connection", nil, []string{"TestAnswerReset", "TestAnswerResetIsVisible", "TestBrokenConnection", "TestReset"}},
	}
}

// shapeRows are further forms of answers, from servers, gateways and those who use them.
func shapeRows() []row {
	return []row{
		{"the name of the field twice", []string{"field name twice", "field name twice in every event"}, nil},
		{"chunks that only report a filter", []string{"first event without a choice"}, nil},
		{"a stream that is called a page", []string{"stream that is called a page", "text that is called a page"}, nil},
		{"null as the id", []string{"ids of nothing"}, nil},
		{"several choices", []string{"text in one choice, call in the next", "whole text in one choice, call in the next", "the same answer in two choices", "choices that are null"}, nil},
		{"parts that are no text", []string{"reasoning as a part"}, nil},
		{"calls that are not wrapped, arguments under another name", []string{"call that is not wrapped", "call that is not wrapped, in pieces", "arguments called parameters"}, nil},
		{"two objects for one call, and what follows the end of one", []string{"two objects in one piece", "two objects in two pieces", "two objects in many pieces", "three objects, two of them the same", "two objects with a comma", "two objects, the second is cut", "a repeat that is cut", "further members after the end", "further members after the end, in one piece", "one id, index and name for two calls", "arguments repeated in one piece", "arguments repeated in another order", "a placeholder in pieces, arguments, a placeholder", "noise in several pieces", "arguments with noise after"}, nil},
		{"an empty object after the arguments", []string{"empty object after the arguments", "empty object with the id and name at the end"}, nil},
		{"a signature in the function", []string{"signature in the function of a later delta"}, nil},
		{"the end announced for a call that has not ended", []string{"done while a call is open", "done before the arguments of a call", "done after a whole call"}, nil},
		{"an error in a choice", []string{"error in a choice"}, nil},
		{"reasons that give up", []string{"reason abort", "reason of a server that is out of resources", "reason of a broken network", "whole call, then a reason that gives up"}, nil},
		{"reasons in other words", []string{"reason with a word behind it", "reason sensitive", "reason of a full context", "reason of great length", "empty reason"}, nil},
		{"errors that say nothing", []string{"error with empty members"}, nil},
		{"errors in forms of their own", []string{"error in a form of its own, then the end", "error in a form of its own, then done", "error in a form of its own and words, then done", "report of the state, then an answer", "sign of life, then cut off"}, nil},
		{"another interface", []string{"stream of another interface", "stream of another interface, then done"}, nil},
		{"usage in odd places", []string{"usage in the choice", "usage in the words of another interface", "usage beyond reason"}, nil},
		{"compressed answers", nil, []string{"TestCompressedAnswers"}},
		{"ids that another provider refuses", nil, []string{"TestForeignIDs"}},
		{"a key cut in the middle, or in an error of the transport", nil, []string{"TestKeyIsNotTold", "TestKeyInErrorsOfTheTransport"}},
		{"the many words for a request that is too long", nil, []string{"TestAPIErrorKinds"}},
		{"400 for a bad key, an unknown model, an empty account", nil, []string{"TestAnother"}},
		{"a redirect that loses the request, or never ends", nil, []string{"TestRedirects"}},
		{"stopped in the pause before the next try", nil, []string{"TestStopInThePause"}},
		{"events that take the time of their square", nil, []string{"TestAnswerIsFast", "TestPromptedIsFast"}},
	}
}

// requestRows are what was measured about requests, retries and errors.
func requestRows() []row {
	return []row{
		{"retries before the stream only", nil, []string{"TestRetries", "TestBrokenConnection", "TestReset"}},
		{"Retry-After", nil, []string{"TestRetries"}},
		{"idle time instead of a total timeout", nil, []string{"TestIdle", "TestSlowSinkIsNotSilence", "TestDeadline"}},
		{"stopped in the middle", nil, []string{"TestStop"}},
		{"redirect to another origin", nil, []string{"TestRedirects"}},
		{"error bodies of every form", nil, []string{"TestAPIErrorTexts", "TestErrorBodies", "TestRefusalIsReadInBounds", "TestAPIErrorIsShort"}},
		{"base URL with and without slash", nil, []string{"TestComplete", "TestNewRefuses"}},
		{"keys of the environment", nil, []string{"TestEnvironmentIsNotRead", "TestKeyIsNotTold", "TestNoProxyFromEnvironment"}},
		{"extra fields out", nil, []string{"TestToolRound", "TestExtrasGoHome"}},
		{"switches of providers", nil, []string{"TestRequestFields", "TestEffort", "TestStrictTools", "TestReasoningIsWanted", "app:TestConfigModels"}},
		{"which failures another model may not have", nil, []string{"TestAnother", "TestAnotherAfterRealFailures", "TestAnotherAfterSilence"}},
	}
}

// reportRows are what users of other programs reported.
func reportRows() []row {
	return []row{
		{"calls without index", []string{"report: index-less parallel calls, pieces without an id"}, nil},
		{"parallel calls all at index 0", []string{"report: gateway puts parallel calls at index 0, each whole"}, nil},
		{"one call per chunk with extras", []string{"report: one call per chunk with extras"}, nil},
		{"id and name on every chunk, then a summary", []string{"report: id and name on every chunk, full summary"}, nil},
		{"empty id on continuation", []string{"report: empty id on continuation"}, nil},
		{"no id at all", []string{"report: no id at all"}, nil},
		{"id changes", []string{"report: id changes after the first chunk"}, nil},
		{"index starts at 1", []string{"report: index starts at 1"}, nil},
		{"chunk id differs, error null, choice index 197", []string{"report: chunk id differs, error null, choice index 197"}, nil},
		{"finish stop or end_turn, or in the call's chunk", []string{"report: finish end_turn in the chunk of the call"}, nil},
		{"finish on every chunk", []string{"report: finish on every chunk of a call"}, nil},
		{"content null between fragments", []string{"report: content null between fragments"}, nil},
		{"text and calls in one chunk", []string{"report: text and calls in one chunk"}, nil},
		{"finish tool_calls without a call", []string{"report: finish tool_calls without a call"}, nil},
		{"end without a finish frame", []string{"report: end without a finish frame, in a call"}, []string{"TestIdle"}},
		{"line too long is an error", nil, []string{"TestAnswerBounds", "TestAnswerEnds"}},
		{"invalid arguments in the history", []string{"report: truncated arguments"}, []string{"TestAnyHistoryIsAccepted", "TestRepair"}},
		{"thought signatures", []string{"report: signature on a trailing delta without an index"}, []string{"TestToolRound", "TestExtrasGoHome"}},
		{"reasoning that has to come back, or must not", []string{"report: reasoning is no text"}, []string{"TestReasoningIsWanted", "TestRequestFields"}},
		{"calls without a result after an abort", nil, []string{"TestAnyHistoryIsAccepted", "TestRepairAnything", "TestStop"}},
		{"results without a call", nil, []string{"TestAnyHistoryIsAccepted", "TestRepair", "TestLint"}},
		{"400 is never repeated", nil, []string{"TestRetries", "TestAnother"}},
		{"half a surrogate pair in the history", nil, []string{"TestAnyHistoryIsAccepted", "TestRepair"}},
		{"images in results", nil, []string{"TestAnyHistoryIsAccepted", "TestRepair"}},
	}
}

// TestRows has a test for every row, under the name that the row gives.
func TestRows(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	for _, f := range fixtures() {
		if known[f.name] {
			t.Errorf("two fixtures with the name %s", f.name)
		}
		known[f.name] = true
	}
	tests := make(map[string][]string)
	for _, r := range slices.Concat(wireRows(), shapeRows(), requestRows(), reportRows()) {
		if len(r.fixtures)+len(r.tests) == 0 {
			t.Errorf("%s: no test", r.what)
		}
		for _, name := range r.fixtures {
			if !known[name] {
				t.Errorf("%s: no fixture %q", r.what, name)
			}
		}
		for _, name := range r.tests {
			folder, test, elsewhere := strings.Cut(name, ":")
			if !elsewhere {
				folder, test = "agent/model", name
			}
			if tests[folder] == nil {
				tests[folder] = testsIn(t, folder)
			}
			if !slices.Contains(tests[folder], test) {
				t.Errorf("%s: no test %s in %s", r.what, test, folder)
			}
		}
		t.Logf("%s: %s", r.what, strings.Join(append(slices.Clone(r.fixtures), r.tests...), ", "))
	}
}

// testsIn returns the names of the tests in a folder from the root.
func testsIn(t *testing.T, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no tests in %s: %v", folder, err)
	}
	var out []string
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				out = append(out, f.Name.Name)
			}
		}
	}
	return out
}

// TestLibraryReadsNothing keeps the library away from answers, whose reader loses a fifth of what providers send.
func TestLibraryReadsNothing(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"NewStreaming", "Accumulator", "AddChunk", "JustFinished", "ssestream", "openai.NewClient("} {
			if strings.Contains(string(text), name) {
				t.Errorf("%s uses %s", path, name)
			}
		}
	}
}
