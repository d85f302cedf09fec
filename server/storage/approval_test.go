package storage_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/storage"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// asked writes an approval of two calls and the commands that wait for it.
func asked(t *testing.T, s *storage.Storage, id string) approval.Approval {
	t.Helper()
	who := approval.Caller{
		Workspace: auth.DefaultWorkspace, Principal: "t", Conversation: "talk", Group: "g" + id, Request: "mine",
		Origin: controlv1.Origin_ORIGIN_BACKGROUND,
	}
	a := approval.Approval{
		Caller: who, ID: id, State: approval.Pending, Reason: "it asks", Rule: "r", Version: 3, CreatedAt: at(1), ExpiresAt: at(60_000),
	}
	var recs []dispatch.Record
	for n := range 2 {
		rec := dispatch.Record{
			ID: fmt.Sprint(id, "-", n), Group: who.Group, Workspace: who.Workspace, Device: "k3v9x2mqta", Name: "closeTabs",
			Principal: who.Principal, Action: []byte{10, 0}, State: dispatch.AwaitingApproval, CreatedAt: at(1), Deadline: at(60_000),
			Conversation: who.Conversation, Request: who.Request, Origin: who.Origin, Approval: id, TTL: 30 * time.Second,
		}
		recs = append(recs, rec)
		a.Calls = append(a.Calls, approval.Call{
			Caller: who, Command: rec.ID, Device: rec.Device, Name: rec.Name, TTL: rec.TTL, Proposed: rec.Action,
			Targets: []*controlv1.PlannedTarget{{Id: "k3v9x2mqta_t1-1", Title: "a title"}},
		})
	}
	a.Hash = a.Sum()
	if err := s.Ask(t.Context(), &a, recs); err != nil {
		t.Fatal(err)
	}
	return a
}

// change is a decision on an approval as it was asked.
func change(a approval.Approval, state approval.State, by string) *approval.Change {
	a.State, a.DecidedBy, a.DecidedAt = state, by, at(10)
	a.Calls = slices.Clone(a.Calls)
	for n := range a.Calls {
		a.Calls[n].Effective = a.Calls[n].Proposed
	}
	if state == approval.Approved {
		a.Bound = a.Sum()
	}
	return &approval.Change{Approval: a}
}

func stored(t *testing.T, s *storage.Storage, id string) approval.Approval {
	t.Helper()
	a, err := s.GetApproval(t.Context(), auth.DefaultWorkspace, id)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// starting are the commands of an approval as they start.
func starting(t *testing.T, s *storage.Storage, a approval.Approval) []dispatch.Acceptance {
	t.Helper()
	var out []dispatch.Acceptance
	for _, c := range a.Calls {
		rec, err := s.Get(t.Context(), auth.DefaultWorkspace, c.Command)
		if err != nil {
			t.Fatal(err)
		}
		rec.State, rec.Deadline = dispatch.Accepted, at(90_000)
		out = append(out, dispatch.Acceptance{Record: rec})
	}
	return out
}

// TestAnApprovalsRows goes the way of an approval: what comes back is what was bound, each call starts once, and nothing
// decides it twice.
func TestAnApprovalsRows(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		ctx := t.Context()
		a := asked(t, s, "a1")
		if got := stored(t, s, "a1"); got.Sum() != a.Hash || got.State != approval.Pending || len(got.Calls) != 2 || got.Calls[0].Targets[0].GetTitle() != "a title" {
			t.Fatalf("as asked: %+v", got)
		}
		if _, err := s.GetApproval(ctx, "other", "a1"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("from another workspace: %v", err)
		}
		rows := starting(t, s, a)
		if err := s.BeginApproved(ctx, "a1", at(20), rows); err != nil || !rows[0].Stale {
			t.Errorf("a start before the decision: %v, %+v", err, rows[0])
		}
		yes, no := change(a, approval.Approved, "o"), change(a, approval.Denied, "p")
		if err := s.DecideApprovals(ctx, []*approval.Change{yes, no}); err != nil || !yes.Won || no.Won {
			t.Fatalf("decided: %v, %v, %v", err, yes.Won, no.Won)
		}
		if got := stored(t, s, "a1"); got.Sum() != got.Bound || got.Bound != yes.Approval.Bound || got.DecidedBy != "o" {
			t.Errorf("as decided: %+v", got)
		}
		for turn := range 2 {
			rows := starting(t, s, a)
			if err := s.BeginApproved(ctx, "a1", at(20), rows); err != nil || rows[0].Stale != (turn == 1) || rows[1].Stale != (turn == 1) {
				t.Errorf("start %d: %v, %v, %v", turn, err, rows[0].Stale, rows[1].Stale)
			}
		}
		rec, err := s.Get(ctx, auth.DefaultWorkspace, "a1-0")
		if err != nil || rec.State != dispatch.Accepted || !rec.Deadline.Equal(at(90_000)) || stored(t, s, "a1").Calls[0].UsedAt.IsZero() {
			t.Errorf("started: %+v, %v", rec, err)
		}
	})
}

// TestApprovalDecisionsRace has two people decide at once, a thousand times: one wins, and the row says which.
func TestApprovalDecisionsRace(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		var all []approval.Approval
		var mu sync.Mutex
		var group sync.WaitGroup
		for n := range 1000 {
			group.Go(func() {
				a := asked(t, s, fmt.Sprint("a", n))
				mu.Lock()
				defer mu.Unlock()
				all = append(all, a)
			})
		}
		group.Wait()
		for _, a := range all {
			group.Go(func() {
				changes := []*approval.Change{change(a, approval.Approved, "o"), change(a, approval.Denied, "p")}
				var both sync.WaitGroup
				for _, c := range changes {
					both.Go(func() {
						if err := s.DecideApprovals(t.Context(), []*approval.Change{c}); err != nil {
							t.Error(err)
						}
					})
				}
				both.Wait()
				got := stored(t, s, a.ID)
				if changes[0].Won == changes[1].Won || (got.State == approval.Approved) != changes[0].Won {
					t.Errorf("%s: %v and %v won, it is %s", a.ID, changes[0].Won, changes[1].Won, got.State)
				}
			})
		}
		group.Wait()
	})
}

// TestApprovalCase12OnRows: expired has nobody who decided, and takes no decision any more.
func TestApprovalCase12OnRows(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		ctx := t.Context()
		a := asked(t, s, "a1")
		late := change(a, approval.Approved, "o")
		late.Approval.DecidedAt = a.ExpiresAt
		if err := s.DecideApprovals(ctx, []*approval.Change{late}); err != nil || late.Won {
			t.Errorf("a yes at the deadline: %v, %v", err, late.Won)
		}
		if err := s.Warn(ctx, &approval.Approval{ID: "a1", WarnedAt: at(50)}); err != nil || stored(t, s, "a1").WarnedAt.IsZero() {
			t.Errorf("warn: %v", err)
		}
		gone := a
		gone.State, gone.DecidedAt = approval.Expired, at(60_000)
		for turn := range 2 {
			if won, err := s.Resolve(ctx, &gone, approval.Pending); err != nil || won != (turn == 0) {
				t.Errorf("expire %d: %v, %v", turn, won, err)
			}
		}
		if yes := change(a, approval.Approved, "o"); s.DecideApprovals(ctx, []*approval.Change{yes}) != nil || yes.Won {
			t.Error("a yes after the deadline won")
		}
		note := change(a, approval.Expired, "o")
		note.Note, note.Approval.DecisionReason = true, "too late: no"
		if err := s.DecideApprovals(ctx, []*approval.Change{note}); err != nil || !note.Won {
			t.Errorf("late no: %v", err)
		}
		if got := stored(t, s, "a1"); got.State != approval.Expired || got.DecidedBy != "" || got.DecisionReason != "too late: no" {
			t.Errorf("expired: %+v", got)
		}
	})
}

// TestTheLastCommandTakesItsApprovalAlong: an approval is withdrawn with the last command that could have started, and a new
// approval takes the place of one that is void.
func TestTheLastCommandTakesItsApprovalAlong(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		ctx := t.Context()
		a := asked(t, s, "a1")
		for n, want := range []approval.State{approval.Pending, approval.Withdrawn} {
			rec, err := s.Get(ctx, auth.DefaultWorkspace, a.Calls[n].Command)
			if err != nil {
				t.Fatal(err)
			}
			rec.State, rec.EndedAt = dispatch.Cancelled, at(5)
			if err := s.Finish(ctx, []dispatch.End{{Record: rec}}); err != nil {
				t.Fatal(err)
			}
			if got := stored(t, s, "a1"); got.State != want {
				t.Errorf("after %d cancels it is %s", n+1, got.State)
			}
		}
		old := asked(t, s, "a2")
		yes := change(old, approval.Approved, "o")
		if err := s.DecideApprovals(ctx, []*approval.Change{yes}); err != nil {
			t.Fatal(err)
		}
		next := old
		next.ID, next.CreatedAt = "a3", at(30)
		next.Hash = next.Sum()
		gone := yes.Approval
		gone.State, gone.DecidedAt, gone.DecisionReason = approval.Void, at(30), "the policy has changed"
		for turn := range 2 {
			if won, err := s.Replace(ctx, &gone, approval.Approved, &next); err != nil || won != (turn == 0) {
				t.Errorf("replace %d: %v, %v", turn, won, err)
			}
		}
		rec, err := s.Get(ctx, auth.DefaultWorkspace, "a2-0")
		if got := stored(t, s, "a3"); err != nil || rec.Approval != "a3" || got.State != approval.Pending || got.Sum() != got.Hash || stored(t, s, "a2").State != approval.Void {
			t.Errorf("replaced: %+v, %+v, %v", rec, got, err)
		}
		rows := starting(t, s, next)
		if err := s.BeginApproved(ctx, "a2", at(40), rows); err != nil || !rows[0].Stale {
			t.Errorf("start under the void one: %v", err)
		}
		page, err := s.ListApprovals(ctx, approval.Filter{Workspace: auth.DefaultWorkspace, PendingOnly: true, Limit: 10})
		if err != nil || len(page) != 1 || page[0].ID != "a3" {
			t.Errorf("pending: %v, %v", page, err)
		}
	})
}

// TestTheSweepClearsTheArgumentsOfApprovals: when no command of an approval has its arguments any more, neither has the
// approval. While one of them can still start, all stay: they are what was decided.
func TestTheSweepClearsTheArgumentsOfApprovals(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		ctx := t.Context()
		end := func(command string) {
			rec, err := s.Get(ctx, auth.DefaultWorkspace, command)
			if err != nil {
				t.Fatal(err)
			}
			rec.State, rec.EndedAt = dispatch.Cancelled, at(50)
			if err := s.Finish(ctx, []dispatch.End{{Record: rec}}); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{"a1", "a2"} {
			yes := change(asked(t, s, id), approval.Approved, "o")
			for n := range yes.Approval.Calls {
				yes.Approval.Calls[n].Edited = []byte{10, 0}
			}
			yes.Approval.Bound = yes.Approval.Sum()
			if err := s.DecideApprovals(ctx, []*approval.Change{yes}); err != nil || !yes.Won {
				t.Fatalf("decide: %v", err)
			}
		}
		end("a1-0")
		end("a2-0")
		end("a2-1")
		if err := s.Sweep(ctx, at(50), at(0)); err != nil { // nothing is old enough
			t.Fatal(err)
		}
		if got := stored(t, s, "a2"); len(got.Calls[0].Proposed) == 0 {
			t.Error("cleared before its time")
		}
		for range 2 {
			if err := s.Sweep(ctx, at(51), at(0)); err != nil {
				t.Fatal(err)
			}
		}
		if got := stored(t, s, "a1"); got.Sum() != got.Bound || len(got.Calls[0].Proposed) == 0 {
			t.Errorf("one of its commands can still start: %+v", got)
		}
		got := stored(t, s, "a2")
		if len(got.Calls) != 2 || got.Calls[1].Name != "closeTabs" || got.Calls[1].Targets[0].GetTitle() != "a title" || got.DecidedBy == "" && got.State == approval.Approved {
			t.Fatalf("what is shown of it is gone: %+v", got)
		}
		for _, c := range got.Calls {
			if len(c.Proposed)+len(c.Edited)+len(c.Effective) > 0 {
				t.Errorf("arguments are kept: %+v", c)
			}
		}
		if view := got.View(catalogue(t), func(string, string) string { return "" }); len(view.GetCalls()) != 2 {
			t.Errorf("it is shown as %v", view)
		}
	})
}
