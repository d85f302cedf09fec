package cli_test

import (
	"context"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// asks makes every dispatch wait for an approval, as the server does, and answers it by how that ends.
func asks(f *fake) {
	f.onWait = func(ctx context.Context, req *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
		a := closing(bigID, laptop, 3)
		a.RequestId = req.GetRequestId()
		a.Calls[0].Proposed = req.GetAction()
		f.desk.put(a, false)
		f.desk.put(opening(smallID), false) // somebody else's
		for {
			f.desk.mu.Lock()
			now, changed := f.desk.now[bigID], f.desk.changed
			f.desk.mu.Unlock()
			out := &controlv1.DeviceOutcome{DeviceId: laptop, DeviceName: "laptop", CommandId: "cmd-3", ApprovalId: bigID}
			fail := func(code commandv1.ErrorCode, text string) (*controlv1.DispatchResponse, error) {
				out.Outcome = &controlv1.DeviceOutcome_Error{Error: &commandv1.CommandError{Code: code, Message: text}}
				return &controlv1.DispatchResponse{Outcomes: []*controlv1.DeviceOutcome{out}}, nil
			}
			switch now.GetState() {
			case approved:
				return closed(okStatus)(req)
			case denied:
				return fail(commandv1.ErrorCode_ERROR_CODE_DENIED, "a person denied it: "+now.GetDecisionReason())
			case expired:
				return fail(commandv1.ErrorCode_ERROR_CODE_APPROVAL_TIMED_OUT, "nobody decided in time")
			}
			select {
			case <-changed:
			case <-ctx.Done():
				f.desk.mu.Lock()
				now = f.desk.now[bigID]
				f.desk.mu.Unlock()
				if pendingNow(now) {
					f.desk.end(bigID, controlv1.ApprovalState_APPROVAL_STATE_WITHDRAWN, "", "")
				}
				return nil, connect.NewError(connect.CodeCanceled, "the caller went away")
			}
		}
	}
}

func calling(f *fake, terminal bool) run {
	return run{server: f.url, terminal: terminal, args: []string{"call", "closeTabs", "--tab-ids", laptop + "_tb1aa-1"}}
}

// A call that waits says at once for what, goes on when somebody else decides, and ends with the code of how that went.
func TestACallThatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		state controlv1.ApprovalState
		says  []string
		code  int
	}{
		"approved": {approved, []string{"laptop (k3v9x2mqta)  ok"}, 0},
		"denied":   {denied, []string{"denied: a person denied it: because"}, 5},
		"expired":  {expired, []string{"approval timed out: nobody decided in time"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, asks)
			s := begin(t, calling(f, false)).sees("it expires in 3 d", 1)
			f.desk.mu.Lock()
			a := f.desk.now[bigID]
			f.desk.mu.Unlock()
			if a.GetRequestId() == "" {
				t.Error("the request has no id")
			}
			f.desk.end(bigID, row.state, "tok-9", "because")
			e := s.ends(false)
			e.check(t, row.code, append(row.says,
				"Waits for approval 3f2a9c1d: closeTabs on laptop: 3 targets\n",
				"  why: closeTabs acts on 3 targets, and asks a person for more than 2 at once\n",
				"  decide with: throwbar approvals approve 3f2a9c1d   or: throwbar approvals deny 3f2a9c1d --reason TEXT\n",
			)...)
			if strings.Contains(e.out+e.err, "3f7b") {
				t.Errorf("shows somebody else's approval:\n%s", e.err)
			}
			if strings.Contains(e.out, "approval 3f2a") {
				t.Errorf("the standard output is for the outcome: %s", e.out)
			}
		})
	}
}

func TestACallThatWaitsIsDecidedOnTheSpot(t *testing.T) {
	t.Parallel()
	f := newFake(t, asks)
	s := begin(t, calling(f, true)).sees("Approve 3f2a9c1d?", 1).sees("https://example.com/3", 1)
	s.types("y").ends(false).check(t, 0, "3f2a9c1d  approved", "laptop (k3v9x2mqta)  ok")
	if got := f.desk.decisions(); len(got) != 1 || got[0].GetDecisions()[0].GetApprove().GetHash() != "hash-of-3f2a" {
		t.Errorf("decisions: %v", got)
	}
	f = newFake(t, asks)
	s = begin(t, calling(f, true)).sees("Approve 3f2a9c1d?", 1).types("n").sees("Why not?", 1)
	s.types("the game is on").ends(false).check(t, 5, "a person denied it: the game is on")
}

func TestAnInterruptWithdraws(t *testing.T) {
	t.Parallel()
	f := newFake(t, asks)
	e := begin(t, calling(f, false)).sees("it expires", 1).ends(true)
	e.check(t, 130, "Withdrawn: approval 3f2a9c1d is not needed any more, and nothing of it has run.")
	f = newFake(t, asks)
	s := begin(t, calling(f, false)).sees("it expires", 1)
	f.lateYes(bigID) // the server has it, and the program does not know yet
	s.ends(true).check(t, 130, "Approval 3f2a9c1d was given. `throwbar history` shows whether anything has run.")
}

// An undo cannot be named: it shows the approval that came up with it, not those that were there before.
func TestAnUndoThatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	f := newFake(t, asks, func(f *fake) {
		other := closing("77000000-0000-4000-8000-000000000006", work, 3)
		other.RequestId = ""
		f.desk.put(other, false)
	})
	f.undoing = func(ctx context.Context) (*controlv1.UndoResponse, error) {
		answer, err := f.onWait(ctx, &controlv1.DispatchRequest{Action: closing(bigID, laptop, 3).GetCalls()[0].GetProposed()})
		return &controlv1.UndoResponse{Outcomes: answer.GetOutcomes()}, err
	}
	s := begin(t, run{server: f.url, args: []string{"undo"}}).sees("Waits for approval 3f2a9c1d", 1)
	f.desk.end(bigID, denied, "tok-9", "no")
	e := s.ends(false)
	e.check(t, 5, "denied: a person denied it: no")
	if strings.Contains(e.err, "7700") {
		t.Errorf("shows another's:\n%s", e.err)
	}
}

// A server without approvals, or one that does not let this token follow them, is no reason to end a call.
func TestACallGoesOnWithoutAFeed(t *testing.T) {
	t.Parallel()
	f := newFake(t, asks, func(f *fake) {
		f.desk.cut = func(int, int) bool { return true }
		f.desk.onOpen = func(int) {
			f.desk.waits(t.Context(), bigID) // the feed is opened a while after the call was sent
			f.desk.end(bigID, approved, "tok-9", "")
		}
	})
	e := do(t, calling(f, false))
	e.check(t, 0, "laptop (k3v9x2mqta)  ok")
}

func TestASubmittedCallSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) { f.approval = bigID })
	e := f.run(t, "call", "openTab", "--device", "laptop", "--url", "https://go.dev", "--detach")
	e.check(t, 0, "laptop (k3v9x2mqta)  waits for approval 3f2a9c1d: `throwbar approvals show 3f2a9c1d` shows it\n")
	if f.submitted[0].GetRequestId() == "" {
		t.Error("the request has no id")
	}
}

// waits is a turn that asks for an approval and goes on when somebody has decided.
func waits(f *fake) {
	f.onChat = func(ctx context.Context, _ *agentv1.SendRequest, send sendChat) error {
		f.desk.put(closing(bigID, laptop, 3), false)
		if err := send(&agentv1.Event{Kind: &agentv1.Event_ApprovalRequested{ApprovalRequested: &agentv1.ApprovalRequested{
			CallId: "c1", ApprovalId: bigID, Name: "closeTabs", Reason: "it is much",
		}}}); err != nil {
			return err
		}
		for {
			f.desk.mu.Lock()
			now, changed := f.desk.now[bigID], f.desk.changed
			f.desk.mu.Unlock()
			if !pendingNow(now) {
				if err := send(&agentv1.Event{Kind: &agentv1.Event_ApprovalResolved{ApprovalResolved: &agentv1.ApprovalResolved{
					CallId: "c1", ApprovalId: bigID, State: "approved", Reason: now.GetDecisionReason(),
				}}}); err != nil {
					return err
				}
				return plays(func() []*agentv1.Event {
					return []*agentv1.Event{said(agentv1.Role_ROLE_ASSISTANT, "Done."), over(agentv1.TurnEnd_TURN_END_ANSWERED)}
				})(ctx, nil, send)
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

func pendingNow(a *controlv1.Approval) bool {
	return a.GetState() == controlv1.ApprovalState_APPROVAL_STATE_PENDING
}

func TestAChatThatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	talk := func(f *fake, terminal bool, words ...string) run {
		return run{server: f.url, terminal: terminal, args: append([]string{"chat"}, words...)}
	}
	f := newFake(t, waits)
	s := begin(t, talk(f, true, "close all")).sees("Approve 3f2a9c1d?", 1)
	e := s.types("y").ends(false)
	e.check(t, 0, "3f2a9c1d  approved", "Done.")
	if strings.Contains(e.err, "Waits for") || strings.Contains(e.err, "decide with") || strings.Count(e.err, "closeTabs acts on 3 targets") != 1 {
		t.Errorf("what is asked on the spot is told twice:\n%s", e.err)
	}

	// Who puts it off, or goes, is told where it is decided.
	const elsewhere = "  decide with: throwbar approvals approve 3f2a9c1d   or: throwbar approvals deny 3f2a9c1d --reason TEXT\n"
	f = newFake(t, waits)
	s = begin(t, talk(f, true, "close all")).sees("Approve 3f2a9c1d?", 1).types("s").sees(elsewhere, 1)
	f.desk.end(bigID, approved, "tok-9", "")
	s.ends(false).check(t, 0, "Done.")
	f = newFake(t, waits)
	s = begin(t, talk(f, true, "close all")).sees("Approve 3f2a9c1d?", 1)
	_ = s.typing.Close()
	s.sees(elsewhere, 1)
	f.desk.end(bigID, approved, "tok-9", "")
	s.ends(false).check(t, 0, "Approval 3f2a9c1d was given", "Done.")

	f = newFake(t, waits)
	s = begin(t, talk(f, false, "close all")).sees("decide with: throwbar approvals approve 3f2a9c1d", 1)
	f.desk.end(bigID, denied, "tok-9", "no \x1b[2J")
	s.ends(false).check(t, 0, `Approval 3f2a9c1d was denied by laptop (tok-9): no \x1b[2J`, "Done.")

	f = newFake(t, waits)
	s = begin(t, talk(f, false, "-o", "json", "close all")).sees("approvalRequested", 1)
	f.desk.end(bigID, denied, "tok-9", "")
	s.ends(false).check(t, 0, "approvalResolved")

	f = newFake(t, waits) // what is typed after a decision elsewhere is the next message
	s = begin(t, talk(f, true)).types("close all").sees("Approve 3f2a9c1d?", 1)
	f.desk.end(bigID, approved, "tok-9", "")
	s.sees("Done.", 1)
	_ = s.typing.Close()
	s.ends(false).check(t, 0, "Approval 3f2a9c1d was given by laptop (tok-9)")
	if n := len(f.desk.decisions()); n != 0 {
		t.Errorf("decisions: %v", f.desk.decisions())
	}
}

// lateYes approves without telling anybody.
func (f *fake) lateYes(id string) {
	f.desk.mu.Lock()
	defer f.desk.mu.Unlock()
	a := proto.CloneOf(f.desk.now[id])
	a.State = approved
	f.desk.now[id] = a
}
