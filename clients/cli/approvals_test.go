package cli_test

import (
	"strings"
	"testing"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// withDesk is a fake with a large close and an opened page that wait, and one that was decided.
func withDesk(t *testing.T, change ...func(*fake)) *fake {
	t.Helper()
	gone := closing(goneID, laptop, 1)
	gone.State, gone.DecidedBy, gone.DecisionReason = controlv1.ApprovalState_APPROVAL_STATE_DENIED, "tok-9", "not now"
	gone.DecidedAt = ago(0)
	return newFake(t, append([]func(*fake){func(f *fake) {
		f.desk = newLog(gone, opening(smallID), closing(bigID, laptop, 3))
	}}, change...)...)
}

func TestApprovalsAreListed(t *testing.T) {
	t.Parallel()
	f := withDesk(t)
	e := f.run(t, "approvals", "list")
	e.check(t, 0)
	golden(t, "approvals_list", e.out, f.url)
	e = f.run(t, "approvals", "list", "--all")
	e.check(t, 0, "denied")
	golden(t, "approvals_list_all", e.out, f.url)
	e = f.run(t, "approvals", "list", "-o", "json")
	e.check(t, 0)
	golden(t, "approvals_list_json", e.out, f.url)
	f.run(t, "approvals", "list", "--limit", "1").check(t, 0, "There are older ones")
	newFake(t).run(t, "approvals", "list").check(t, 0, "Nothing waits for a person.\n")
}

func TestAnApprovalIsShown(t *testing.T) {
	t.Parallel()
	f := withDesk(t)
	e := f.run(t, "approvals", "show", "3f2a")
	e.check(t, 0)
	golden(t, "approvals_show", e.out, f.url)
	e = f.run(t, "approvals", "show", "3f7")
	e.check(t, 0)
	golden(t, "approvals_show_page", e.out, f.url)
	e = f.run(t, "approvals", "show", bigID, "-o", "json")
	e.check(t, 0)
	golden(t, "approvals_show_json", e.out, f.url)
	f.run(t, "approvals", "show", "9e11").check(t, 0, "denied", "by laptop (tok-9)", "not now") // among all, where none is pending
}

// What a person has to agree to on its own is said before everything else, as what runs has it.
func TestAnArgumentThatNeedsConsentIsPointedOut(t *testing.T) {
	t.Parallel()
	forced, edited := closing(bigID, laptop, 2), closing(smallID, laptop, 2)
	forced.Calls[0].Proposed.GetCloseTabs().Force = proto.Bool(true)
	edited.Calls[0].Proposed.GetCloseTabs().Force = proto.Bool(true)
	edited.Calls[0].Effective = proto.CloneOf(closing(bigID, laptop, 2).GetCalls()[0].GetProposed())
	f := newFake(t, func(f *fake) { f.desk = newLog(forced, edited) })
	const line = "  force is set: Close even where the page asks first; typed text is lost.\n"
	e := f.run(t, "approvals", "show", bigID)
	e.check(t, 0, line)
	if strings.Index(e.out, line) > strings.Index(e.out, "asked for") {
		t.Error("it comes after the arguments")
	}
	if e := f.run(t, "approvals", "show", smallID); strings.Contains(e.out, line) {
		t.Errorf("an edit has taken it out:\n%s", e.out)
	}
}

func TestIdsOfApprovalsMayBeShort(t *testing.T) {
	t.Parallel()
	f := withDesk(t)
	f.run(t, "approvals", "show", "3f").check(t, 2, `"3f" is the beginning of 2 ids: `+bigID+", "+smallID)
	f.run(t, "approvals", "show", "77").check(t, 1, `there is no approval "77"`)
	f.run(t, "approvals", "show", "").check(t, 2, "an id is empty")
	f.run(t, "approvals", "show", strings.Repeat("0", 36)).check(t, 1, "there is no such approval")
	f.run(t, "approvals", "show").check(t, 2, "needs the id of an approval")
	f.run(t, "approvals", "approve").check(t, 2, "needs the id of an approval")
	f.run(t, "approvals", "deny", "3f2a", bigID).check(t, 2, "is named twice")
	if n := len(f.desk.decisions()); n != 0 {
		t.Errorf("%d decisions", n)
	}
}

// What is approved is what was shown: the decision carries the hash of it.
func TestApprove(t *testing.T) {
	t.Parallel()
	f := withDesk(t)
	f.run(t, "approvals", "approve", "3f2a").check(t, 2, "nobody can confirm it here", "--yes")
	if n := len(f.desk.decisions()); n != 0 {
		t.Fatalf("%d decisions", n)
	}
	e := f.run(t, "approvals", "approve", "3f2a", "--yes", "--reason", "spring cleaning")
	e.check(t, 0)
	golden(t, "approve", e.out+e.err, f.url)
	yes := f.desk.decisions()[0].GetDecisions()[0]
	if yes.GetApprovalId() != bigID || yes.GetApprove().GetHash() != "hash-of-3f2a" || yes.GetApprove().GetReason() != "spring cleaning" ||
		yes.GetApprove().GetEdits() != nil || yes.GetApprove().GetRemember() != nil {
		t.Errorf("decision: %v", yes)
	}
	f.run(t, "approvals", "approve", bigID, "--yes").check(t, 5, "not decided: somebody has decided already (it is approved: by owner (tok-0), just now)")
}

func TestAPersonIsAskedBefore(t *testing.T) {
	t.Parallel()
	f := withDesk(t)
	ask := func(answer string) ended {
		return do(t, run{server: f.url, args: []string{"approvals", "approve", "3f2a"}, terminal: true, stdin: strings.NewReader(answer)})
	}
	for _, answer := range []string{"\n", "n\n", "", "what?\n"} {
		ask(answer).check(t, map[bool]int{true: 130, false: 130}[answer == ""], "Approve this? [y/N]")
	}
	if n := len(f.desk.decisions()); n != 0 {
		t.Fatalf("%d decisions", n)
	}
	ask("y\n").check(t, 0, "Page 3", "approved")
	if n := len(f.desk.decisions()); n != 1 {
		t.Errorf("%d decisions", n)
	}
}

func TestWhatChangedIsNotApproved(t *testing.T) {
	t.Parallel()
	f := withDesk(t)
	f.run(t, "approvals", "approve", "3f2a", "--yes", "--hash", "hash-of-old").check(t, 5, "has changed since its hash was taken")
	if n := len(f.desk.decisions()); n != 0 {
		t.Fatalf("%d decisions", n)
	}
	f.run(t, "approvals", "approve", "3f2a", "--yes", "--hash", "hash-of-3f2a").check(t, 0)
	f.desk.fault = func(*controlv1.Decision) *commandv1.CommandError {
		return &commandv1.CommandError{Code: commandv1.ErrorCode_ERROR_CODE_REFUSED, Message: "it is another one than was shown"}
	}
	f.run(t, "approvals", "approve", "3f7b", "--yes").check(t, 5, "another one than was shown")
}

func TestDeny(t *testing.T) {
	t.Parallel()
	f := withDesk(t)
	e := f.run(t, "approvals", "deny", "3f2a", "3f7b", "--reason", "not \x1b[31mnow")
	e.check(t, 0)
	golden(t, "deny", e.out+e.err, f.url)
	asked := f.desk.decisions()
	if len(asked) != 1 || len(asked[0].GetDecisions()) != 2 || asked[0].GetDecisions()[1].GetDeny().GetReason() != "not \x1b[31mnow" {
		t.Errorf("decisions: %v", asked)
	}
}

// Several ids are one call with an outcome for each; the exit code says whether all went well.
func TestManyAreDecidedTogether(t *testing.T) {
	t.Parallel()
	f := withDesk(t)
	e := f.run(t, "approvals", "approve", "3f2a", "9e11", "--yes")
	e.check(t, 7, "3f2a9c1d  approved", "9e110000  not decided")
	f.run(t, "approvals", "approve", "3f2a", "9e11", "--yes", "-o", "json").check(t, 5, `"outcomes"`)
	f.run(t, "approvals", "deny", "3f7b", "-o", "json").check(t, 0, `"APPROVAL_STATE_DENIED"`)
	if got := f.desk.decisions(); len(got) != 3 || len(got[0].GetDecisions()) != 2 {
		t.Errorf("decisions: %v", got)
	}
}

func TestEditThenApprove(t *testing.T) {
	t.Parallel()
	f := withDesk(t)
	e := f.run(t, "approvals", "approve", "3f2a", "--yes", "--edit", "tabIds="+laptop+"_tb1aa-1", "--edit", "tab-ids="+laptop+"_tb1aa-3")
	e.check(t, 0, "Edited: closeTabs on laptop", "will run as")
	edits := f.desk.decisions()[0].GetDecisions()[0].GetApprove().GetEdits()
	if len(edits) != 1 || edits[0].GetCommandId() != "cmd-"+laptop ||
		strings.Join(edits[0].GetAction().GetCloseTabs().GetTabIds(), ",") != laptop+"_tb1aa-1,"+laptop+"_tb1aa-3" {
		t.Errorf("edits: %v", edits)
	}
	golden(t, "approve_edit", e.out+e.err, f.url)

	file := do(t, run{
		server: f.url, args: []string{"approvals", "approve", "3f7b", "--yes", "--edit-json", "-"},
		stdin: strings.NewReader(`{"url": "https://docs.example.com/", "active": true}`),
	})
	file.check(t, 0)
	got := f.desk.decisions()[1].GetDecisions()[0].GetApprove().GetEdits()[0].GetAction().GetOpenTab()
	if got.GetUrl() != "https://docs.example.com/" || !got.GetActive() {
		t.Errorf("edit: %v", got)
	}
	f.run(t, "approvals", "show", "3f2a").check(t, 0, "asked for", "edited to")
}

func TestWrongEditsDecideNothing(t *testing.T) {
	t.Parallel()
	two := closing("ab000000-0000-4000-8000-000000000004", laptop, 1)
	two.Calls = append(two.Calls, closing(smallID, work, 1).GetCalls()...)
	f := withDesk(t, func(f *fake) { f.desk.put(two, false) })
	for text, words := range map[string]string{
		"did you mean tab-ids?":                   "approve 3f2a --yes --edit tab-idz=x",
		"is no name=value":                        "approve 3f2a --yes --edit tab-ids",
		"the edit of closeTabs changes nothing":   "approve 3f2a --yes --edit tab-ids=" + laptop + "_tb1aa-1," + laptop + "_tb1aa-2," + laptop + "_tb1aa-3",
		"--url":                                   "approve 3f7b --yes --edit url=",
		"only one of --edit and --edit-json":      "approve 3f2a --yes --edit a=b --edit-json x",
		"are for one approval":                    "approve 3f2a 3f7b --yes --edit a=b",
		"no such file":                            "approve 3f2a --yes --edit-json /nowhere/at/all",
		"--call says what an edit is for":         "approve 3f2a --yes --call x",
		"say with --call which one":               "approve ab00 --yes --edit tab-ids=x",
		"is neither the id of a command":          "approve ab00 --yes --call desk --edit tab-ids=x",
		"the file is empty":                       "approve 3f2a --yes --edit-json -",
		"need --remember":                         "approve 3f2a --yes --expires 3d",
		"no conversation asks":                    "approve 3f2a --yes --remember conversation",
		`--expires "soon" is no time`:             "approve 3f2a --yes --remember always --expires soon",
		`--remember-arg "url" is no path=pattern`: "approve 3f2a --yes --remember always --remember-arg url",
		`"never" is none of conversation, always`: "approve 3f2a --yes --remember never",
	} {
		f.run(t, append([]string{"approvals"}, strings.Fields(words)...)...).check(t, 2, text)
	}
	if n := len(f.desk.decisions()); n != 0 {
		t.Fatalf("%d decisions", n)
	}
	f.run(t, "approvals", "approve", "ab00", "--yes", "--call", "work", "--edit", "tab-ids="+work+"_tb1aa-9").check(t, 0)
	if got := f.desk.decisions()[0].GetDecisions()[0].GetApprove().GetEdits(); len(got) != 1 || got[0].GetCommandId() != "cmd-"+work {
		t.Errorf("edits: %v", got)
	}
}

func TestAnApprovalIsRemembered(t *testing.T) {
	t.Parallel()
	f := withDesk(t)
	f.run(t, "approvals", "approve", "3f7b", "--yes", "--remember", "conversation", "--expires", "30d", "--any-device",
		"--remember-arg", "url=https://docs.example.com/*", "--remember-arg", "active=").check(t, 0, "remembered as rule rule-9")
	got := f.desk.decisions()[0].GetDecisions()[0].GetApprove().GetRemember()
	if !got.GetConversationOnly() || !got.GetAnyDevice() || got.GetExpiresAt().AsTime().Sub(now()).Hours() != 720 ||
		len(got.GetArguments()) != 2 || got.GetArguments()[0].GetPath() != "url" || got.GetArguments()[0].GetPattern() != "https://docs.example.com/*" ||
		got.GetArguments()[1].GetPattern() != "" {
		t.Errorf("remember: %v", got)
	}
	f.run(t, "approvals", "approve", "3f2a", "--yes", "--remember", "always").check(t, 0)
	if got := f.desk.decisions()[1].GetDecisions()[0].GetApprove().GetRemember(); got.GetConversationOnly() || got.GetExpiresAt() != nil {
		t.Errorf("remember: %v", got)
	}
}

// A call that this program cannot read is not approved unseen.
func TestWhatCannotBeShownIsNotApproved(t *testing.T) {
	t.Parallel()
	f := withDesk(t, func(f *fake) {
		odd := closing("cd000000-0000-4000-8000-000000000005", laptop, 1)
		odd.Calls[0].Proposed = &commandv1.Action{}
		odd.Calls[0].Proposed.ProtoReflect().SetUnknown([]byte("\xfa\x3f\x00")) // member 1023
		f.desk.put(odd, false)
	})
	f.run(t, "approvals", "approve", "cd00", "--yes").check(t, 1, "cannot show")
	if n := len(f.desk.decisions()); n != 0 {
		t.Fatalf("%d decisions", n)
	}
	f.run(t, "approvals", "deny", "cd00").check(t, 0, "denied")
}

func TestDecisionsThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	f := withDesk(t, func(f *fake) {
		f.desk.refuse = connect.NewError(connect.CodePermissionDenied, "the token may only read")
	})
	f.run(t, "approvals", "approve", "3f2a", "--yes").check(t, 5, "throwbar: decide: the token may only read")
	f.run(t, "approvals", "deny", "3f2a").check(t, 5, "throwbar: decide: the token may only read")
}

func TestApprovalsAreExplained(t *testing.T) {
	t.Parallel()
	f := withDesk(t)
	file := tokenFile(t)
	for name, words := range map[string]string{
		"help_approvals": "approvals --help", "help_approve": "approvals approve --help", "help_approvals_watch": "approvals watch --help",
	} {
		e := do(t, run{server: f.url, args: strings.Fields(words), env: map[string]string{"THROWBAR_TOKEN_FILE": file}})
		e.check(t, 0)
		golden(t, name, hideFile(e.out), f.url)
	}
	e := f.run(t, "__complete", "approvals", "approve", "")
	e.check(t, 0, bigID+"\tcloseTabs on laptop: 3 targets", smallID+"\topenTab on work")
	if strings.Contains(e.out, goneID) {
		t.Errorf("offers what was decided: %s", e.out)
	}
	f.run(t, "__complete", "approvals", "show", bigID, "").check(t, 0, goneID) // the first is named already
}
