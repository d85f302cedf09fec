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
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/policy"
)

// byPattern closes the tabs of an address.
func byPattern() *commandv1.Action {
	return &commandv1.Action{Kind: &commandv1.Action_CloseTabsByUrl{CloseTabsByUrl: &commandv1.CloseTabsByUrl{Url: "https://a.example/*"}}}
}

// TestMoreThanWasShownAsksAgain: a pattern that matches more tabs than whoever decided has seen is asked about anew.
func TestMoreThanWasShownAsksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		req := request(byPattern(), "lap")
		res, err := w.Submit(t.Context(), detached(req))
		if err != nil || res.GetOutcomes()[0].GetApprovalId() == "" {
			t.Fatalf("submit: %v, %v", res, err)
		}
		a, err := w.book.GetApproval(t.Context(), "w", res.GetOutcomes()[0].GetApprovalId())
		if err != nil || len(a.Calls[0].Targets) != 2 {
			t.Fatalf("shown: %+v, %v", a, err)
		}
		w.grown.Store(true)
		decide(t, desk, owner(), yes(a))
		row := w.book.row(t)
		next, err := w.book.GetApproval(t.Context(), "w", row.Approval)
		if row.Approval == a.ID || next.State != approval.Pending || err != nil || len(next.Calls[0].Targets) != 3 || !strings.Contains(next.Reason, "more than was shown") {
			t.Fatalf("with one more tab: %+v, %v", next, err)
		}
		if n := len(w.wire.commands("lap")); n != 0 {
			t.Errorf("%d were sent", n)
		}
		decide(t, desk, owner(), yes(next))
		if n := len(w.wire.commands("lap")); n != 1 {
			t.Errorf("%d were sent after the second yes", n)
		}
	})
}

// TestOneDecisionForAPlan: the calls of one dispatch are one approval, and start together.
func TestOneDecisionForAPlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		w.wire.set("desk", 1)
		res, err := w.Submit(t.Context(), detached(request(closing("lap_tb1-1", "desk_tb1-1"))))
		if err != nil || len(res.GetOutcomes()) != 2 || res.GetOutcomes()[0].GetApprovalId() != res.GetOutcomes()[1].GetApprovalId() {
			t.Fatalf("submit: %v, %v", res, err)
		}
		a := w.book.only()
		if len(a.Calls) != 2 {
			t.Fatalf("approval: %+v", a)
		}
		if _, err := w.Cancel(t.Context(), "w", a.Calls[1].Command); err != nil {
			t.Fatal(err)
		}
		if got := w.book.only(); got.State != approval.Pending {
			t.Errorf("after one of two was cancelled it is %s", got.State)
		}
		decide(t, desk, owner(), yes(a))
		if lap, desk := len(w.wire.commands("lap")), len(w.wire.commands("desk")); lap != 1 || desk != 0 {
			t.Errorf("sent %d and %d, want the one that was not cancelled", lap, desk)
		}
	})
}

// TestADeviceCannotAssertAnApproval: what a device says of a command that waits is not taken.
func TestADeviceCannotAssertAnApproval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		out, a := w.submit(t, closing("lap_tb1-1"))
		o := closed("lap_tb1-1")
		o.CommandId = out.GetCommandId()
		w.Acknowledged("lap", out.GetCommandId())
		w.Outcome("lap", o)
		if keep := w.Reconnected("lap", []string{out.GetCommandId()}, []*devicev1.Outcome{o}); len(keep) != 0 {
			t.Errorf("the device goes on with %v", keep)
		}
		w.Attached("lap", 2, []string{out.GetCommandId()})
		synctest.Wait()
		if row := w.book.row(t); row.State != dispatch.AwaitingApproval || w.book.only().State != approval.Pending {
			t.Errorf("after the device spoke: %s, %s", row.State, w.book.only().State)
		}
		decide(t, desk, owner(), no(a, ""))
		if row := w.book.row(t); row.State != dispatch.Failed {
			t.Errorf("after a no: %s", row.State)
		}
	})
}

func TestARevokedDeviceWithdraws(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := asking(t)
		w.running(t)
		w.submit(t, closing("lap_tb1-1"))
		w.lost.Store(true)
		time.Sleep(2 * dispatch.LookEvery)
		synctest.Wait()
		if row := w.book.row(t); row.State != dispatch.Cancelled || w.book.only().State != approval.Withdrawn {
			t.Errorf("after its device was revoked: %s, %s", row.State, w.book.only().State)
		}
	})
}

// TestADryRunDoesNotAsk: it says what would be done, and whoever runs the plan is asked about it.
func TestADryRunDoesNotAsk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		req := request(closing("lap_tb1-1"))
		req.DryRun = true
		plan, err := w.Dispatch(t.Context(), req)
		if err != nil || plan.GetOutcomes()[0].GetPlan() == nil || len(w.book.rows) != 0 {
			t.Fatalf("dry run: %v, %v", plan, err)
		}
		if p := plan.GetOutcomes()[0].GetPlan(); !p.GetAsks() || p.GetAskReason() != "the test says so" {
			t.Errorf("it does not say that a person would be asked: %v", p)
		}
		req.DryRun, req.PlanHash = false, plan.GetPlanHash()
		res, err := w.Submit(t.Context(), detached(req))
		if err != nil || res.GetOutcomes()[0].GetApprovalId() == "" {
			t.Fatalf("run of the plan: %v, %v", res, err)
		}
		decide(t, desk, owner(), yes(w.book.only()))
		if n := len(w.wire.commands("lap")); n != 1 {
			t.Errorf("%d were sent", n)
		}
	})
}

// A dry run says what the run would come to: at once, asked about and why, over an act too, or denied because nobody can be
// asked; and it changes nothing about what an act did.
func TestADryRunSaysWhetherItWouldAsk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := acting(t)
		if w.does(t, act("turn", "1", closing(tabs("lap", 15)...))) {
			t.Fatal("15 ask")
		}
		for name, row := range map[string]struct {
			req    dispatch.Request
			nobody bool
			says   []string // of why; it runs at once if empty
		}{
			"few":                {req: request(closing("lap_tb1-1"))},
			"many":               {req: request(closing(tabs("lap", 21)...)), says: []string{"acts on 21 targets"}},
			"the rest of an act": {req: act("turn", "2", closing(tabs("lap", 5)...))},
			"more of an act":     {req: act("turn", "2", closing(tabs("lap", 6)...)), says: []string{"together with 15"}},
			"nobody is there": {
				req: detached(request(closing(tabs("lap", 21)...))), nobody: true, says: []string{"acts on 21 targets", "it would be denied", "nobody can be asked"},
			},
		} {
			w.reach.Store(!row.nobody)
			row.req.DryRun = true
			res, err := w.Dispatch(t.Context(), row.req)
			plan := res.GetOutcomes()[0].GetPlan()
			if err != nil || plan == nil || plan.GetAsks() != (len(row.says) > 0) || (plan.GetAskReason() == "") == plan.GetAsks() {
				t.Errorf("%s: %v, %v", name, res, err)
			}
			for _, word := range row.says {
				if !strings.Contains(plan.GetAskReason(), word) {
					t.Errorf("%s: %q does not say %q", name, plan.GetAskReason(), word)
				}
			}
		}
		if n := w.acted(t, "turn"); n != 15 {
			t.Errorf("%d count", n)
		}
	})
}

// TestAnApprovalThatCannotBeWritten: nothing waits, nothing is sent; a start that cannot be written is tried again.
func TestAnApprovalThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		w.running(t)
		full := fault.New(fault.Unavailable, "the disk is full").Retry()
		w.book.refuseApprovals(full)
		res, err := w.Submit(t.Context(), detached(request(closing("lap_tb1-1"))))
		if err != nil || res.GetOutcomes()[0].GetError() == nil || len(w.book.all()) != 0 {
			t.Errorf("with a full disk: %v, %v", res, err)
		}
		w.book.refuseApprovals(nil)
		_, a := w.submit(t, closing("lap_tb1-1"))
		w.book.refuseApprovals(full)
		decide(t, desk, owner(), yes(a))
		if n := len(w.wire.commands("lap")); n != 0 {
			t.Errorf("%d were sent before the start was written", n)
		}
		w.book.refuseApprovals(nil)
		time.Sleep(2 * dispatch.LookEvery)
		synctest.Wait()
		if row := w.book.row(t); row.State != dispatch.Succeeded || len(w.wire.commands("lap")) != 1 {
			t.Errorf("when the disk has room again: %s", row.State)
		}
		if !slices.Contains(w.book.happened(), a.ID+" approved") {
			t.Errorf("events: %v", w.book.happened())
		}
	})
}

// TestACancelWhileTheStartIsWritten: it is taken when the start is written, and leaves nothing behind.
func TestACancelWhileTheStartIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		out, a := w.submit(t, closing("lap_tb1-1"))
		done := make(chan error, 1)
		w.book.begun = func() {
			go func() {
				_, err := w.Cancel(t.Context(), "w", out.GetCommandId())
				done <- err
			}()
			time.Sleep(time.Millisecond)
		}
		decide(t, desk, owner(), yes(a))
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if row := w.book.row(t); row.State != dispatch.Cancelled || len(w.wire.commands("lap")) != 0 || len(w.book.saved) != 0 {
			t.Errorf("row %s, %d sent, %d saved tabs left", row.State, len(w.wire.commands("lap")), len(w.book.saved))
		}
	})
}

// TestWhatIsLargeAsksHoweverItIsSpread: policy is told how much the whole dispatch acts on, over all its devices.
func TestWhatIsLargeAsksHoweverItIsSpread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.wire.set("desk", 1)
		var asked []policy.Call
		w.rule.decide = func(c policy.Call) policy.Decision {
			asked = append(asked, c)
			return policy.Decision{Verdict: controlv1.Verdict_VERDICT_DENY}
		}
		if _, err := w.Dispatch(t.Context(), request(closing("lap_tb1-1", "desk_tb1-1", "lap_tb1-2"))); err != nil {
			t.Fatal(err)
		}
		if len(asked) != 2 || asked[0].Targets != 2 || asked[1].Targets != 1 || asked[0].Together != 3 || asked[1].Together != 3 {
			t.Errorf("policy was asked about %+v", asked)
		}
		spread := asked[1]
		spread.Together = 21
		if d := policy.Option(spread); d.Verdict != controlv1.Verdict_VERDICT_ASK || !strings.Contains(d.Reason, "21 targets") {
			t.Errorf("one of 21 targets: %+v", d)
		}
	})
}
