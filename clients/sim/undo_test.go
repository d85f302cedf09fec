//go:build sqlite_fts5

package sim_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/app/apptest"
	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// approve waits until somebody is asked, and says yes.
func (r *rig) approve(t *testing.T) (reason string) {
	t.Helper()
	desk := r.client.Approvals
	apptest.Eventually(t, "somebody is asked, and says yes", func() bool {
		list, err := desk.ListApprovals(t.Context(), &controlv1.ListApprovalsRequest{PendingOnly: proto.Bool(true)})
		if err != nil || len(list.GetApprovals()) == 0 {
			return false
		}
		a := list.GetApprovals()[0]
		out, err := desk.Decide(t.Context(), &controlv1.DecideRequest{Decisions: []*controlv1.Decision{{
			ApprovalId: a.GetApprovalId(), Verdict: &controlv1.Decision_Approve{Approve: &controlv1.Approve{Hash: a.GetHash()}},
		}}})
		reason = a.GetReason()
		return err == nil && out.GetOutcomes()[0].GetError() == nil
	})
	return reason
}

// TestAMassCloseIsUndoneAfterTheBrowserWasStartedAgain: more tabs than one command names come back in another start of the
// browser, all of them and each once.
func TestAMassCloseIsUndoneAfterTheBrowserWasStartedAgain(t *testing.T) {
	t.Parallel()
	const many = 730
	r := start(t, throwbar.Bidi)
	for n := range many {
		if _, err := throwbar.Call(t.Context(), r.client, r.identity.DeviceID, &commandv1.OpenTab{Url: fmt.Sprintf("mass.example/%d", n), Active: proto.Bool(false)}); err != nil {
			t.Fatal(err)
		}
	}
	closing, err := throwbar.Wrap(&commandv1.CloseTabsByUrl{Url: "https://mass.example/*"})
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan *controlv1.DispatchResponse, 1)
	go func() {
		res, err := r.client.Commands.Dispatch(t.Context(), &controlv1.DispatchRequest{DeviceIds: []string{r.identity.DeviceID}, Action: closing})
		if err != nil {
			t.Error(err)
		}
		closed <- res
	}()
	r.approve(t)
	out := (<-closed).GetOutcomes()[0]
	if out.GetResult().GetCloseTabsByUrl().GetClosedCount() != many || len(out.GetSavedIds()) != many {
		t.Fatalf("closed: %v", out)
	}
	r.stop()
	before := len(r.sim.Browser().Look().Tabs)
	r.sim, _ = r.run(t, throwbar.Bidi) // with other ids
	undone := make(chan *controlv1.UndoResponse, 1)
	go func() {
		res, err := r.client.Commands.Undo(t.Context(), &controlv1.UndoRequest{})
		if err != nil {
			t.Error(err)
		}
		undone <- res
	}()
	r.approve(t)
	res := <-undone
	back := 0
	for _, o := range res.GetOutcomes() {
		back += int(o.GetResult().GetRestoreTabs().GetRestoredCount())
	}
	if back != many || len(res.GetOutcomes()) != 2 || len(res.GetUndoneCommandIds()) != 1 {
		t.Fatalf("%d came back by %d commands, %v", back, len(res.GetOutcomes()), res.GetUndoneCommandIds())
	}
	urls := map[string]int{}
	for _, tab := range r.sim.Browser().Look().Tabs {
		urls[tab.GetUrl()]++
	}
	for n := range many {
		if got := urls[fmt.Sprintf("https://mass.example/%d", n)]; got != 1 {
			t.Errorf("tab %d is there %d times", n, got)
		}
	}
	if len(urls) < before {
		t.Errorf("%d addresses", len(urls))
	}
	saved, err := r.client.Browser.ListSavedTabs(t.Context(), &controlv1.ListSavedTabsRequest{Closed: proto.Bool(true)})
	if err != nil || len(saved.GetSavedTabs()) != 0 {
		t.Errorf("still kept: %v, %v", saved, err)
	}
}

// TestForceIsAskedAbout: whoever sends it, whatever is allowed in general, and it closes what asks.
func TestForceIsAskedAbout(t *testing.T) {
	t.Parallel()
	r := start(t, throwbar.Bidi)
	if _, err := r.client.Policy.AddRule(t.Context(), &controlv1.AddRuleRequest{Rule: &controlv1.PolicyRule{
		Verdict: controlv1.Verdict_VERDICT_ALLOW, Tool: "closeTabs", MaxTargets: 500,
	}}); err != nil {
		t.Fatal(err)
	}
	open, err := throwbar.Call(t.Context(), r.client, r.identity.DeviceID, &commandv1.OpenTab{Url: "unsaved.example/form"})
	if err != nil {
		t.Fatal(err)
	}
	run := func(force bool) *commandv1.CloseTabs_Result {
		res, err := throwbar.Call(t.Context(), r.client, "", &commandv1.CloseTabs{TabIds: []string{open.GetTabId()}, Force: proto.Bool(force)})
		if err != nil {
			t.Error(err)
		}
		return res
	}
	if res := run(false); res.GetItems()[0].GetStatus() != commandv1.ItemStatus_ITEM_STATUS_BLOCKED_BY_PAGE {
		t.Fatalf("without force: %v", res)
	}
	done := make(chan *commandv1.CloseTabs_Result, 1)
	go func() { done <- run(true) }()
	if why := r.approve(t); why != "closeTabs asks a person whenever force is set" {
		t.Errorf("asked because %q", why)
	}
	if res := <-done; res.GetClosedCount() != 1 {
		t.Errorf("with force: %v", res)
	}
}
