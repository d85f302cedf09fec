package dispatch_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
)

const (
	allow = controlv1.Verdict_VERDICT_ALLOW
	ask   = controlv1.Verdict_VERDICT_ASK
	deny  = controlv1.Verdict_VERDICT_DENY

	timedOut  = commandv1.ErrorCode_ERROR_CODE_APPROVAL_TIMED_OUT
	refused   = commandv1.ErrorCode_ERROR_CODE_REFUSED
	invalid   = commandv1.ErrorCode_ERROR_CODE_INVALID
	cancelled = commandv1.ErrorCode_ERROR_CODE_CANCELLED
)

// asking is a world whose policy asks about every command, with a desk and a device that closes what it is told to.
func asking(t *testing.T) (*world, *approval.Desk) {
	t.Helper()
	w := newWorld(t)
	w.rule.say(ask, 1)
	w.reach.Store(true)
	w.answer(func(c *devicev1.CommandRequest) *devicev1.Outcome {
		return closed(c.GetAction().GetCloseTabs().GetTabIds()...)
	})
	return w, w.desk()
}

func (w *world) desk() *approval.Desk {
	return approval.New(approval.Config{
		Catalogue: w.Catalogue, Store: w.book, Gate: w.Dispatcher, Now: w.Now, Device: func(_, id string) string { return "my " + id },
	})
}

// running runs the dispatcher until the test ends.
func (w *world) running(t *testing.T) {
	t.Helper()
	ended, d := make(chan error, 1), w.Dispatcher // another takes its place at a restart
	go func() { ended <- d.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// submit submits a command that asks and gives its outcome and the approval that it waits for.
func (w *world) submit(t *testing.T, action *commandv1.Action) (*controlv1.DeviceOutcome, approval.Approval) {
	t.Helper()
	req := request(action)
	req.RequestID, req.Conversation = "mine", "talk"
	res, err := w.Submit(t.Context(), detached(req))
	if err != nil || res.GetOutcomes()[0].GetApprovalId() == "" {
		t.Fatalf("submit: %v, %v", res, err)
	}
	synctest.Wait()
	a, err := w.book.GetApproval(t.Context(), "w", res.GetOutcomes()[0].GetApprovalId())
	if err != nil {
		t.Fatal(err)
	}
	return res.GetOutcomes()[0], a
}

func owner() approval.Decider {
	return approval.Decider{Workspace: "w", Token: "o", Scope: optionv1.Scope_SCOPE_OWNER}
}

func yes(a approval.Approval, edits ...*controlv1.Edit) *controlv1.Decision {
	return &controlv1.Decision{ApprovalId: a.ID, Verdict: &controlv1.Decision_Approve{Approve: &controlv1.Approve{Hash: a.Hash, Edits: edits}}}
}

func no(a approval.Approval, why string) *controlv1.Decision {
	return &controlv1.Decision{ApprovalId: a.ID, Verdict: &controlv1.Decision_Deny{Deny: &controlv1.Deny{Reason: why}}}
}

// decide decides one approval and waits for what comes of it.
func decide(t *testing.T, desk *approval.Desk, who approval.Decider, d *controlv1.Decision) *controlv1.DecisionOutcome {
	t.Helper()
	out, err := desk.Decide(t.Context(), who, []*controlv1.Decision{d})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return out[0]
}

// ended is the row and the error code of a command.
func (w *world) ended(t *testing.T, id string) (dispatch.Record, commandv1.ErrorCode) {
	t.Helper()
	c, err := w.Get(t.Context(), "w", id)
	if err != nil {
		t.Fatal(err)
	}
	return w.book.all()[id], c.GetError().GetCode()
}

func TestACommandThatAsksRunsOnceWhenApproved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		out, a := w.submit(t, closing("lap_tb1-1"))
		row := w.book.row(t)
		if row.State != dispatch.AwaitingApproval || row.Attached || row.Approval != a.ID || len(w.book.saved) != 0 || len(w.wire.commands("lap")) != 0 {
			t.Fatalf("while it waits: %+v, %d saved, sent %v", row, len(w.book.saved), w.wire.commands("lap"))
		}
		c := a.Calls[0]
		if a.Request != "mine" || a.Conversation != "talk" || a.Origin != controlv1.Origin_ORIGIN_BACKGROUND || c.Command != out.GetCommandId() || !c.Covers("lap_tb1-1") {
			t.Errorf("approval: %+v", a)
		}
		time.Sleep(70 * time.Hour) // far longer than its time to live of 30 s
		synctest.Wait()
		if got := decide(t, desk, owner(), yes(a)); got.GetError() != nil || got.GetApproval().GetState() != controlv1.ApprovalState_APPROVAL_STATE_APPROVED {
			t.Fatalf("decision: %v", got)
		}
		sent := w.wire.commands("lap")
		if len(sent) != 1 || sent[0].GetTimeLeft().AsDuration() != 30*time.Second {
			t.Errorf("sent %v: the time to live begins with the approval", sent)
		}
		if row = w.book.row(t); row.State != dispatch.Succeeded || len(w.book.saved) != 1 {
			t.Errorf("row %+v, %d saved", row, len(w.book.saved))
		}
		decide(t, desk, owner(), yes(a))
		w.Decided(a.ID)
		synctest.Wait()
		if n := len(w.wire.commands("lap")); n != 1 {
			t.Errorf("sent %d times after a second yes", n)
		}
	})
}

// TestApprovalCase12 tells the three ways apart in which a command does not run: denied, expired, and too late.
func TestApprovalCase12(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		w.running(t)
		out, a := w.submit(t, closing("lap_tb1-1"))
		if got := decide(t, desk, owner(), no(a, "not now")); got.GetError() != nil {
			t.Fatal(got)
		}
		if row, code := w.ended(t, out.GetCommandId()); row.State != dispatch.Failed || code != denied || !strings.Contains(string(row.Error), "not now") {
			t.Errorf("denied: %+v, %v", row, code)
		}
		out, a = w.submit(t, closing("lap_tb1-1"))
		time.Sleep(72*time.Hour + 2*dispatch.LookEvery)
		synctest.Wait()
		row, code := w.ended(t, out.GetCommandId())
		late, err := w.book.GetApproval(t.Context(), "w", a.ID)
		if row.State != dispatch.Expired || code != timedOut || late.State != approval.Expired || late.DecidedBy != "" || err != nil {
			t.Errorf("expired: %+v, %v, %+v, %v", row, code, late, err)
		}
		if got := decide(t, desk, owner(), yes(a)); got.GetError().GetCode() != refused || !strings.Contains(got.GetError().GetMessage(), "expired") {
			t.Errorf("late yes: %v", got)
		}
		if got := decide(t, desk, owner(), no(a, "hm")); got.GetError().GetCode() != refused || !strings.Contains(got.GetApproval().GetDecisionReason(), "hm") ||
			got.GetApproval().GetDecidedBy() != "" || got.GetApproval().GetState() != controlv1.ApprovalState_APPROVAL_STATE_EXPIRED {
			t.Errorf("late no: %v", got)
		}
		if n := len(w.wire.commands("lap")); n != 0 {
			t.Errorf("%d commands were sent", n)
		}
	})
}

// TestApprovalCase11: from Friday to Monday is in time, the warning comes at four fifths, and a server that was down when it
// expired says so when it starts.
func TestApprovalCase11(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		w.running(t)
		_, a := w.submit(t, closing("lap_tb1-1"))
		time.Sleep(57*time.Hour + 35*time.Minute)
		synctest.Wait()
		if slices.Contains(w.book.happened(), a.ID+" warning") {
			t.Error("warned too early")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if !slices.Contains(w.book.happened(), a.ID+" warning") {
			t.Error("no warning after four fifths")
		}
		time.Sleep(12 * time.Hour)
		if got := decide(t, desk, owner(), yes(a)); got.GetError() != nil {
			t.Errorf("in time: %v", got)
		}
		out, _ := w.submit(t, closing("lap_tb1-2"))
		w.skew.Add(int64(100 * time.Hour)) // as if the server had been down
		w.restart(w.Catalogue)
		if err := w.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.running(t)
		time.Sleep(2 * dispatch.LookEvery)
		synctest.Wait()
		if _, code := w.ended(t, out.GetCommandId()); code != timedOut {
			t.Errorf("expired while the server was down: %v", code)
		}
	})
}

// TestApprovalCase10: what waits has no lease and is not swept.
func TestApprovalCase10(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		w.rule.mu.Lock()
		w.rule.settings.ApprovalWithin = days(30)
		w.rule.mu.Unlock()
		w.running(t)
		_, a := w.submit(t, closing("lap_tb1-1"))
		time.Sleep(3 * 24 * time.Hour)
		w.wire.set("lap", 2)
		w.Attached("lap", 2, w.Reconnected("lap", []string{a.Calls[0].Command}, nil))
		synctest.Wait()
		if n := len(w.wire.commands("lap")); n != 0 {
			t.Errorf("%d sent on a new link without an approval", n)
		}
		if got := decide(t, desk, owner(), yes(a)); got.GetError() != nil || len(w.wire.commands("lap")) != 1 {
			t.Errorf("after three days: %v", got)
		}
	})
}

// TestApprovalCase06: a policy that changed asks anew, and one that denies now denies.
func TestApprovalCase06(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		w.running(t)
		out, a := w.submit(t, closing("lap_tb1-1"))
		w.book.before = func() { w.rule.say(ask, 2) } // between the decision and the start
		decide(t, desk, owner(), yes(a))
		w.book.before = nil
		row := w.book.row(t)
		if row.State != dispatch.AwaitingApproval || row.Approval == a.ID || len(w.wire.commands("lap")) != 0 {
			t.Fatalf("after the policy changed: %+v", row)
		}
		old, _ := w.book.GetApproval(t.Context(), "w", a.ID)
		next, err := w.book.GetApproval(t.Context(), "w", row.Approval)
		if old.State != approval.Void || next.State != approval.Pending || err != nil || next.Calls[0].Command != out.GetCommandId() {
			t.Fatalf("old %s, new %s, %v", old.State, next.State, err)
		}
		if got := decide(t, desk, owner(), yes(a)); got.GetError().GetCode() != refused {
			t.Errorf("yes to the old one: %v", got)
		}
		decide(t, desk, owner(), yes(next))
		if n := len(w.wire.commands("lap")); n != 1 {
			t.Errorf("%d sent after the second yes", n)
		}
		out, a = w.submit(t, closing("lap_tb1-2"))
		w.rule.say(deny, 3)
		got := decide(t, desk, owner(), yes(a))
		if row, code := w.ended(t, out.GetCommandId()); code != denied || got.GetError().GetCode() != denied || row.State != dispatch.Failed {
			t.Errorf("denied by policy at the decision: %v, %v", got, code)
		}
		w.rule.say(ask, 3)
		out, a = w.submit(t, closing("lap_tb1-3"))
		w.book.before = func() { w.rule.say(deny, 4) }
		decide(t, desk, owner(), yes(a))
		w.book.before = nil
		if _, code := w.ended(t, out.GetCommandId()); code != denied || len(w.wire.commands("lap")) != 1 {
			t.Errorf("denied by policy at the start: %v", code)
		}
	})
}

// TestApprovalCase07: a decision names what it was shown.
func TestApprovalCase07(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		_, a := w.submit(t, closing("lap_tb1-1"))
		_, other := w.submit(t, closing("lap_tb1-2"))
		wrong := yes(a)
		wrong.GetApprove().Hash = other.Hash
		if got := decide(t, desk, owner(), wrong); got.GetError().GetCode() != invalid || got.GetApproval().GetState() != controlv1.ApprovalState_APPROVAL_STATE_PENDING {
			t.Errorf("with another hash: %v", got)
		}
		foreign := owner()
		foreign.Workspace = "other"
		if got := decide(t, desk, foreign, yes(a)); got.GetError().GetCode() != notFound || got.GetApproval() != nil {
			t.Errorf("from another workspace: %v", got)
		}
		if n := len(w.wire.commands("lap")); n != 0 {
			t.Errorf("%d were sent", n)
		}
	})
}

// TestApprovalCase08: an edit runs as edited and never as proposed; a bad one changes nothing.
func TestApprovalCase08(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		w.wire.set("desk", 1)
		out, a := w.submit(t, closing("lap_tb1-1", "lap_tb1-2"))
		open := &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://a.example"}}}
		for name, bad := range map[string]*commandv1.Action{
			"no ids": closing(), "another device": closing("desk_tb1-1"), "another command": open, "no id": closing("seven"),
			"an earlier start": closing("lap_told-1"),
		} {
			got := decide(t, desk, owner(), yes(a, &controlv1.Edit{CommandId: out.GetCommandId(), Action: bad}))
			if got.GetError() == nil || got.GetApproval().GetState() != controlv1.ApprovalState_APPROVAL_STATE_PENDING {
				t.Errorf("%s: %v", name, got)
			}
		}
		got := decide(t, desk, owner(), yes(a, &controlv1.Edit{CommandId: "else", Action: closing("lap_tb1-1")}))
		if got.GetError().GetCode() != invalid {
			t.Errorf("an edit of another command: %v", got)
		}
		got = decide(t, desk, owner(), yes(a, &controlv1.Edit{CommandId: out.GetCommandId(), Action: closing("lap_tb1-2")}))
		call := got.GetApproval().GetCalls()[0]
		if got.GetError() != nil || len(call.GetProposed().GetCloseTabs().GetTabIds()) != 2 || len(call.GetEdited().GetCloseTabs().GetTabIds()) != 1 ||
			len(call.GetEffective().GetCloseTabs().GetTabIds()) != 1 {
			t.Errorf("edited: %v", got)
		}
		sent := w.wire.commands("lap")
		if len(sent) != 1 || !slices.Equal(sent[0].GetAction().GetCloseTabs().GetTabIds(), []string{"lap_tb1-2"}) {
			t.Errorf("sent %v", sent)
		}
	})
}

// TestApprovalCase16: a late yes is for its own call, never for the next one.
func TestApprovalCase16(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		w.running(t)
		_, old := w.submit(t, closing("lap_tb1-1"))
		time.Sleep(73 * time.Hour)
		synctest.Wait()
		_, next := w.submit(t, closing("lap_tb1-1"))
		if got := decide(t, desk, owner(), yes(old)); got.GetError().GetCode() != refused {
			t.Errorf("yes to the one that expired: %v", got)
		}
		if a, err := w.book.GetApproval(t.Context(), "w", next.ID); a.State != approval.Pending || err != nil || len(w.wire.commands("lap")) != 0 {
			t.Errorf("the next one is %s, %v", a.State, err)
		}
	})
}

// TestApprovalCase13 decides in the moment of the ask, a thousand times: no decision is lost.
func TestApprovalCase13(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		w.book.asked = func(a approval.Approval) { // before the dispatcher knows that it is written
			if out, err := desk.Decide(t.Context(), owner(), []*controlv1.Decision{yes(a)}); err != nil || out[0].GetError() != nil {
				t.Errorf("decide: %v, %v", out, err)
			}
		}
		for n := range 1000 {
			res, err := w.Dispatch(t.Context(), request(closing("lap_tb1-1")))
			if err != nil || res.GetOutcomes()[0].GetResult() == nil {
				t.Fatalf("%d: %v, %v", n, res, err)
			}
		}
		if n := len(w.wire.commands("lap")); n != 1000 {
			t.Errorf("%d executions of 1000", n)
		}
	})
}

// TestTwoDecidersRace has two people decide at once, a thousand times: one wins, and a yes that won runs once.
func TestTwoDecidersRace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		want := 0
		for n := range 1000 {
			_, a := w.submit(t, closing("lap_tb1-1"))
			second := yes(a)
			if n%2 == 0 {
				second = no(a, "")
			}
			results := make(chan controlv1.ApprovalState, 2) // what each one won
			for _, d := range []*controlv1.Decision{yes(a), second} {
				go func() {
					out, err := desk.Decide(t.Context(), owner(), []*controlv1.Decision{d})
					switch {
					case err != nil:
						t.Error(err)
						results <- controlv1.ApprovalState_APPROVAL_STATE_VOID
					case out[0].GetError() != nil:
						results <- controlv1.ApprovalState_APPROVAL_STATE_UNSPECIFIED
					default:
						results <- out[0].GetApproval().GetState()
					}
				}()
			}
			first, other := <-results, <-results
			if (first == 0) == (other == 0) {
				t.Fatalf("%d: %v and %v won", n, first, other)
			}
			if first+other == controlv1.ApprovalState_APPROVAL_STATE_APPROVED {
				want++
			}
			synctest.Wait()
		}
		if n := len(w.wire.commands("lap")); n != want || want == 0 {
			t.Errorf("%d executions for %d that were approved", n, want)
		}
	})
}

// TestApprovalCase14 has a decision race a cancel, a thousand times: one end, and at most one execution.
func TestApprovalCase14(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		ran := 0
		for n := range 1000 {
			out, a := w.submit(t, closing("lap_tb1-1"))
			done := make(chan error, 2)
			go func() {
				_, err := desk.Decide(t.Context(), owner(), []*controlv1.Decision{yes(a)})
				done <- err
			}()
			go func() {
				_, err := w.Cancel(t.Context(), "w", out.GetCommandId())
				done <- err
			}()
			for range 2 {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			row, _ := w.ended(t, out.GetCommandId())
			if !row.State.Ended() || w.book.ends[row.ID] != 1 {
				t.Fatalf("%d: %s after %d ends", n, row.State, w.book.ends[row.ID])
			}
			if row.State == dispatch.Succeeded {
				ran++
			}
		}
		if sent := len(w.wire.commands("lap")); sent < ran || sent > 1000 {
			t.Errorf("%d sent, %d succeeded", sent, ran)
		}
	})
}

func TestNobodyWhoCanBeAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		w.reach.Store(false)
		res, err := w.Submit(t.Context(), detached(request(closing("lap_tb1-1"))))
		if e := res.GetOutcomes()[0].GetError(); err != nil || e.GetCode() != denied || !strings.Contains(e.GetMessage(), "nobody can be asked") {
			t.Errorf("background: %v, %v", res, err)
		}
		if len(w.book.rows) != 0 || len(w.book.shelf.denials) != 1 {
			t.Errorf("%d rows, %d denials", len(w.book.rows), len(w.book.shelf.denials))
		}
		answers := make(chan *controlv1.DispatchResponse, 1)
		go func() {
			res, _ := w.Dispatch(t.Context(), request(closing("lap_tb1-1")))
			answers <- res
		}()
		synctest.Wait()
		decide(t, desk, owner(), yes(w.book.only()))
		if res := <-answers; res.GetOutcomes()[0].GetResult() == nil || res.GetOutcomes()[0].GetApprovalId() == "" {
			t.Errorf("interactive: %v", res)
		}
	})
}

func TestPresenceIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		out, a := w.submit(t, closing("lap_tb1-1"))
		w.wire.set("lap", 0)
		if got := decide(t, desk, owner(), yes(a)); got.GetError() != nil {
			t.Fatal(got)
		}
		if _, code := w.ended(t, out.GetCommandId()); code != offline {
			t.Errorf("approved while the device is offline: %v", code)
		}
		if a, _ := w.book.GetApproval(t.Context(), "w", a.ID); a.State != approval.Void {
			t.Errorf("the approval is %s", a.State)
		}
	})
}

func TestWhoeverWaitedIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		gone := make(chan error, 1)
		ctx, leave := withCancel(t)
		go func() {
			_, err := w.Dispatch(ctx, request(closing("lap_tb1-1")))
			gone <- err
		}()
		synctest.Wait()
		a := w.book.only()
		leave()
		codeOf(t, <-gone, fault.Cancelled)
		synctest.Wait()
		got := decide(t, desk, owner(), yes(a))
		if got.GetApproval().GetState() != controlv1.ApprovalState_APPROVAL_STATE_WITHDRAWN || got.GetError().GetCode() != refused {
			t.Errorf("yes after the caller went: %v", got)
		}
	})
}

// TestARestart: what somebody waited for is withdrawn, what nobody waited for can still be decided.
func TestARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := asking(t)
		kept, a := w.submit(t, closing("lap_tb1-1"))
		ctx, leave := withCancel(t)
		defer leave()
		go func() { _, _ = w.Dispatch(ctx, request(closing("lap_tb1-2"))) }() // nobody reads the answer: the server is killed
		synctest.Wait()
		w.restart(w.Catalogue)
		if err := w.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for id, row := range w.book.all() {
			got, _ := w.book.GetApproval(t.Context(), "w", row.Approval)
			if id == kept.GetCommandId() && (row.State != dispatch.AwaitingApproval || got.State != approval.Pending) {
				t.Errorf("submitted: %s, %s", row.State, got.State)
			}
			if id != kept.GetCommandId() && (row.State != dispatch.Cancelled || got.State != approval.Withdrawn) {
				t.Errorf("attached: %s, %s", row.State, got.State)
			}
		}
		desk := w.desk()
		desk.Gate = deaf{desk.Gate}
		decide(t, desk, owner(), yes(a))
		if n := len(w.wire.commands("lap")); n != 0 {
			t.Errorf("%d sent before the dispatcher looked", n)
		}
		w.running(t) // finds what was decided meanwhile
		synctest.Wait()
		if n := len(w.wire.commands("lap")); n != 1 {
			t.Errorf("sent %d times after the restart", n)
		}
	})
}

// deaf is a gate that nobody tells of decisions, as if the server had been killed in between.
type deaf struct{ approval.Gate }

func (deaf) Decided(string) {}

func TestOperatorsDoNotApproveTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		_, a := w.submit(t, closing("lap_tb1-1"))
		self := approval.Decider{Workspace: "w", Token: "p", Scope: optionv1.Scope_SCOPE_OPERATOR}
		if got := decide(t, desk, self, yes(a)); got.GetError().GetCode() != denied || len(w.wire.commands("lap")) != 0 {
			t.Errorf("their own: %v", got)
		}
		other := self
		other.Token = "q"
		if got := decide(t, desk, other, yes(a)); got.GetError() != nil || len(w.wire.commands("lap")) != 1 {
			t.Errorf("another operator: %v", got)
		}
	})
}

// TestBoundFields changes each field that a decision binds after the approval, and before the start: nothing is sent.
func TestBoundFields(t *testing.T) {
	t.Parallel()
	const other = "other"
	for name, mutate := range map[string]func(a *approval.Approval, rec *dispatch.Record){
		"principal":    func(a *approval.Approval, _ *dispatch.Record) { a.Principal = other },
		"conversation": func(a *approval.Approval, _ *dispatch.Record) { a.Conversation = other },
		"request":      func(a *approval.Approval, _ *dispatch.Record) { a.Request = other },
		"group":        func(a *approval.Approval, _ *dispatch.Record) { a.Group = other },
		"origin":       func(a *approval.Approval, _ *dispatch.Record) { a.Origin = controlv1.Origin_ORIGIN_INTERACTIVE },
		"version":      func(a *approval.Approval, _ *dispatch.Record) { a.Version++ },
		"expiry":       func(a *approval.Approval, _ *dispatch.Record) { a.ExpiresAt = a.ExpiresAt.Add(time.Hour) },
		"hash":         func(a *approval.Approval, _ *dispatch.Record) { a.Bound = other },
		"no hash":      func(a *approval.Approval, _ *dispatch.Record) { a.Bound = "" },
		"command":      func(a *approval.Approval, _ *dispatch.Record) { a.Calls[0].Command = other },
		"proposed":     func(a *approval.Approval, _ *dispatch.Record) { a.Calls[0].Proposed = bytesOf(closing("lap_tb1-2")) },
		"edited":       func(a *approval.Approval, _ *dispatch.Record) { a.Calls[0].Edited = bytesOf(closing("lap_tb1-2")) },
		"effective":    func(a *approval.Approval, _ *dispatch.Record) { a.Calls[0].Effective = bytesOf(closing("lap_tb1-2")) },
		"targets":      func(a *approval.Approval, _ *dispatch.Record) { a.Calls[0].Targets[0].Id = "lap_tb1-2" },
		"device":       func(_ *approval.Approval, rec *dispatch.Record) { rec.Device = "desk" },
		"name":         func(_ *approval.Approval, rec *dispatch.Record) { rec.Name = "openTab" },
		"ttl":          func(_ *approval.Approval, rec *dispatch.Record) { rec.TTL += time.Minute },
		"caller":       func(_ *approval.Approval, rec *dispatch.Record) { rec.Principal = other },
		"talk":         func(_ *approval.Approval, rec *dispatch.Record) { rec.Conversation = other },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, desk := asking(t)
				w.wire.set("desk", 1)
				out, a := w.submit(t, closing("lap_tb1-1"))
				w.book.before = func() { w.book.change(a.ID, mutate) }
				decide(t, desk, owner(), yes(a))
				row, code := w.ended(t, out.GetCommandId())
				if n := len(w.wire.commands("lap")) + len(w.wire.commands("desk")); n != 0 || !row.State.Ended() || code == 0 {
					t.Errorf("%d sent, row %s, %v", n, row.State, code)
				}
			})
		})
	}
}
