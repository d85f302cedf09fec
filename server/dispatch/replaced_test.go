package dispatch_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/dispatch"
)

// TestATabIsFoundByAnIdThatItHad: it counts once by whichever ids it is named, is kept under the one that the caller gave,
// and comes back.
func TestATabIsFoundByAnIdThatItHad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.browsers()
		w.renamed.Store(&[2]string{"lap_tb1-1", "lap_tb1-9"})
		req := request(closing("lap_tb1-1", "lap_tb1-9", "lap_tb1-2"))
		req.DryRun = true
		res, err := w.Dispatch(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		plan := res.GetOutcomes()[0].GetPlan()
		if ts := plan.GetTargets(); len(ts) != 2 || ts[0].GetId() != "lap_tb1-1" || !ts[0].GetUndoable() || ts[1].GetId() != "lap_tb1-2" {
			t.Errorf("plan: %v", plan)
		}
		c := w.closeSome(t, "lap_tb1-1", "lap_tb1-9", "lap_tb1-2")
		kept, err := w.book.Kept(t.Context(), dispatch.KeptFilter{Workspace: "w", Command: c.GetCommandId(), Limit: 10})
		if err != nil || len(kept) != 2 {
			t.Fatalf("kept %v, %v", kept, err)
		}
		var ids []string
		for _, k := range kept {
			ids = append(ids, k.Tab.GetTabId())
		}
		if slices.Sort(ids); strings.Join(ids, " ") != "lap_tb1-1 lap_tb1-2" {
			t.Errorf("kept as %v", ids)
		}
		back, err := w.Undo(t.Context(), undo(c.GetCommandId()))
		if err != nil || back.GetOutcomes()[0].GetResult().GetRestoreTabs().GetRestoredCount() != 2 {
			t.Errorf("undo: %v, %v", back, err)
		}
	})
}

// TestATabThatGotAnotherIdIsNoFurtherTab: what was shown and approved is run although a tab of it has another id meanwhile.
func TestATabThatGotAnotherIdIsNoFurtherTab(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome { return nil })
		res, err := w.Submit(t.Context(), detached(request(byPattern(), "lap")))
		if err != nil {
			t.Fatal(err)
		}
		a, err := w.book.GetApproval(t.Context(), "w", res.GetOutcomes()[0].GetApprovalId())
		if err != nil || len(a.Calls[0].Targets) != 2 {
			t.Fatalf("shown: %+v, %v", a, err)
		}
		w.renamed.Store(&[2]string{"lap_tb1-1", "lap_tb1-9"}) // it was put to sleep
		decide(t, desk, owner(), yes(a))
		if n := len(w.wire.commands("lap")); n != 1 {
			t.Errorf("%d were sent", n)
		}
	})
}
