package storage_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/storage"
	"throwbar.dev/throwbar/store"
)

// command is a close of one tab in a workspace, and what is kept for it.
func command(workspace, id string, at time.Time, closed bool) dispatch.Acceptance {
	return dispatch.Acceptance{
		Record: dispatch.Record{
			ID: id, Group: "g-" + id, Workspace: workspace, Device: "lap", Name: "closeTabs", Principal: "p",
			Action: []byte("action"), State: dispatch.Accepted, CreatedAt: at, Deadline: at.Add(time.Minute),
		},
		Saved: []*commandv1.SavedTab{{
			SavedId: "s-" + id, DeviceId: "lap", TabId: "lap_tb1-1", Closed: closed, SavedAt: timestamppb.New(at),
		}},
	}
}

// close writes a command and its end.
func closing(t *testing.T, s *storage.Storage, c dispatch.Acceptance, steps ...dispatch.Step) {
	t.Helper()
	if err := s.Accept(t.Context(), []dispatch.Acceptance{c}); err != nil {
		t.Fatal(err)
	}
	rec := c.Record
	rec.State, rec.EndedAt = dispatch.Succeeded, rec.CreatedAt.Add(time.Second)
	end := dispatch.End{Record: rec, Steps: steps, Kept: []string{c.Saved[0].GetSavedId()}}
	for range 2 { // the second changes nothing
		if err := s.Finish(t.Context(), []dispatch.End{end}); err != nil {
			t.Fatal(err)
		}
	}
}

func kept(t *testing.T, s *storage.Storage, f dispatch.KeptFilter) []string {
	t.Helper()
	f.Limit = 100
	rows, err := s.Kept(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, k := range rows {
		ids = append(ids, k.Tab.GetSavedId())
	}
	return ids
}

func TestTheSweepIsForEveryWorkspaceAndLeavesWhatWasSaved(t *testing.T) {
	t.Parallel()
	onEach(t, testTheSweepIsForEveryWorkspaceAndLeavesWhatWasSaved)
}

func testTheSweepIsForEveryWorkspaceAndLeavesWhatWasSaved(t *testing.T, s *storage.Storage) {
	now := time.Now()
	day := 24 * time.Hour
	for _, workspace := range []string{"a", "b", "default"} {
		closing(t, s, command(workspace, workspace+"-old", now.Add(-91*day), true))
		closing(t, s, command(workspace, workspace+"-saved", now.Add(-91*day), false))
		closing(t, s, command(workspace, workspace+"-month", now.Add(-30*day), true))
	}
	if err := s.Sweep(t.Context(), now.Add(-dispatch.Readable), now.Add(-dispatch.History)); err != nil {
		t.Fatal(err)
	}
	for _, workspace := range []string{"a", "b", "default"} {
		if list, err := s.List(t.Context(), dispatch.Filter{Workspace: workspace, Limit: 10}); err != nil || len(list) != 1 ||
			list[0].ID != workspace+"-month" || len(list[0].Action) != 0 {
			t.Errorf("%s: %v, %v", workspace, list, err)
		}
		if ids := kept(t, s, dispatch.KeptFilter{Workspace: workspace}); !slices.Equal(ids, []string{"s-" + workspace + "-month"}) {
			t.Errorf("%s can undo %v", workspace, ids)
		}
		rows, err := s.Saved(t.Context(), workspace, []string{"s-" + workspace + "-saved", "s-" + workspace + "-old"})
		if err != nil || len(rows) != 1 {
			t.Errorf("%s can restore %v, %v", workspace, rows, err)
		}
	}
}

func TestKeptIsFoundByCommandDispatchAndDevice(t *testing.T) {
	t.Parallel()
	onEach(t, testKeptIsFoundByCommandDispatchAndDevice)
}

func testKeptIsFoundByCommandDispatchAndDevice(t *testing.T, s *storage.Storage) {
	now := time.Now()
	for n := range 3 {
		closing(t, s, command("w", fmt.Sprintf("c%d", n), now.Add(time.Duration(n)*time.Second), true))
	}
	for name, row := range map[string]struct {
		filter dispatch.KeptFilter
		want   []string
	}{
		"all":            {dispatch.KeptFilter{Workspace: "w"}, []string{"s-c2", "s-c1", "s-c0"}},
		"command":        {dispatch.KeptFilter{Workspace: "w", Command: "c1"}, []string{"s-c1"}},
		"group":          {dispatch.KeptFilter{Workspace: "w", Group: "g-c1"}, []string{"s-c1"}},
		"another device": {dispatch.KeptFilter{Workspace: "w", Command: "c1", Device: "desk"}, nil},
		"a further page": {dispatch.KeptFilter{Workspace: "w", BeforeTime: now.Add(time.Second), BeforeID: "s-c1"}, []string{"s-c0"}},
		"others'":        {dispatch.KeptFilter{Workspace: "x"}, nil},
	} {
		if got := kept(t, s, row.filter); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
	if rec, err := s.OfGroup(t.Context(), "w", "g-c1"); err != nil || rec.ID != "c1" {
		t.Errorf("of group: %v, %v", rec, err)
	}
	if _, err := s.OfGroup(t.Context(), "x", "g-c1"); err == nil {
		t.Error("another workspace's dispatch is found")
	}
}

func TestASavedTabIsClaimedOnce(t *testing.T) {
	t.Parallel()
	onEach(t, testASavedTabIsClaimedOnce)
}

func testASavedTabIsClaimedOnce(t *testing.T, s *storage.Storage) {
	now := time.Now()
	closing(t, s, command("w", "c0", now, true))
	closing(t, s, command("w", "c1", now, true))
	restore := func(id string, claims ...string) dispatch.Acceptance {
		c := command("w", id, now, true)
		c.Saved, c.Claims = nil, claims
		c.Narrow = func(claimed []string) ([]byte, error) { return []byte(fmt.Sprint(claimed)), nil }
		return c
	}
	rows := []dispatch.Acceptance{restore("r0", "s-c0"), restore("r1", "s-c0", "s-c1"), restore("r2", "s-c1")}
	if err := s.Accept(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	if rows[0].Void() || rows[1].Void() || !rows[2].Void() || !slices.Equal(rows[1].Lost, []string{"s-c0"}) {
		t.Errorf("lost: %v, %v, %v", rows[0].Lost, rows[1].Lost, rows[2].Lost)
	}
	if rec, err := s.Get(t.Context(), "w", "r1"); err != nil || string(rec.Action) != "[s-c1]" {
		t.Errorf("what has lost a part is written as %q, %v", rec.Action, err)
	}
	if _, err := s.Get(t.Context(), "w", "r2"); err == nil {
		t.Error("what has lost all is written down")
	}
	// One comes back, the other does not.
	for id, end := range map[string]dispatch.End{"r0": {Dropped: []string{"s-c0"}}, "r1": {Released: []string{"s-c1"}}} {
		rec, err := s.Get(t.Context(), "w", id)
		if err != nil {
			t.Fatal(err)
		}
		end.Record = rec
		end.Record.State, end.Record.EndedAt = dispatch.Cancelled, now
		if err := s.Finish(t.Context(), []dispatch.End{end}); err != nil {
			t.Fatal(err)
		}
	}
	if got := kept(t, s, dispatch.KeptFilter{Workspace: "w"}); !slices.Equal(got, []string{"s-c1"}) {
		t.Errorf("kept: %v", got)
	}
}

func TestEventsAreWholeInOrderAndOfOneWorkspace(t *testing.T) {
	t.Parallel()
	onEach(t, testEventsAreWholeInOrderAndOfOneWorkspace)
}

func testEventsAreWholeInOrderAndOfOneWorkspace(t *testing.T, s *storage.Storage) {
	now := time.Now()
	c := command("w", "c0", now, true)
	sent := c.Record
	sent.State = dispatch.Sent
	closing(t, s, command("x", "other", now, true))
	closing(t, s, c,
		dispatch.Step{Record: c.Record, To: dispatch.Sent, At: now}, dispatch.Step{Record: sent, To: dispatch.Acknowledged, At: now})
	rec, err := s.Get(t.Context(), "w", "c0")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // a late result that the device says again and again
		if err := s.Late(t.Context(), rec, "result", []string{"s-c0"}); err != nil {
			t.Fatal(err)
		}
	}
	events, err := s.After(t.Context(), "w", "", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []controlv1.State
	for _, e := range events {
		got = append(got, e.GetCommand().GetState())
	}
	want := []controlv1.State{
		controlv1.State_STATE_ACCEPTED, controlv1.State_STATE_SENT, controlv1.State_STATE_ACKNOWLEDGED,
		controlv1.State_STATE_SUCCEEDED, controlv1.State_STATE_SUCCEEDED,
	}
	if !slices.Equal(got, want) || !events[4].GetCommand().GetLate() || events[3].GetCommand().GetLate() {
		t.Errorf("events: %v", events)
	}
	if left := kept(t, s, dispatch.KeptFilter{Workspace: "w"}); len(left) != 0 {
		t.Errorf("kept after a late result: %v", left)
	}
}

// Found by the simulator: the event that a command was acknowledged followed the one that it was accepted, since the
// step between them was lost on a full disk and the end brought the later one along.
func TestEventsFollowTheTableThoughAStepIsLost(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	s := running(t, store.Config{Dir: t.TempDir(), Fault: func(string) error {
		if full.Load() {
			return errors.New("disk full")
		}
		return nil
	}})
	at := time.Now()
	c := command("w", "c1", at, true)
	if err := s.Accept(t.Context(), []dispatch.Acceptance{c}); err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	s.Advance(func() []dispatch.Step { return []dispatch.Step{{Record: c.Record, To: dispatch.Sent, At: at}} })
	if err := s.Accept(t.Context(), []dispatch.Acceptance{command("w", "c2", at, true)}); err == nil { // behind it
		t.Fatal("a full disk takes a command")
	}
	full.Store(false)
	rec := c.Record
	rec.State = dispatch.Sent
	ended := rec
	ended.State, ended.EndedAt = dispatch.Succeeded, at
	end := dispatch.End{Record: ended, Steps: []dispatch.Step{{Record: rec, To: dispatch.Acknowledged, At: at}}}
	if err := s.Finish(t.Context(), []dispatch.End{end}); err != nil {
		t.Fatal(err)
	}
	events, err := s.After(t.Context(), "w", "", 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []controlv1.State
	for _, e := range events {
		got = append(got, e.GetCommand().GetState())
	}
	if want := []controlv1.State{controlv1.State_STATE_ACCEPTED, controlv1.State_STATE_SUCCEEDED}; !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}
