package storage_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/device"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/storage"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/storetest"
)

var postgres storetest.Cluster

func TestMain(m *testing.M) {
	defer postgres.Stop()
	m.Run()
}

// onEach runs a test on both engines.
func onEach(t *testing.T, test func(*testing.T, *storage.Storage)) {
	t.Helper()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			test(t, running(t, store.Config{Dir: t.TempDir(), URL: engine.URL(t)}))
		})
	}
}

func running(t *testing.T, config store.Config) *storage.Storage {
	t.Helper()
	_, s := opened(t, config)
	return s
}

// opened is a store that runs until the test ends, and what is kept in it.
func opened(t *testing.T, config store.Config) (*store.Store, *storage.Storage) {
	t.Helper()
	s, err := store.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, storage.New(s, slog.New(slog.DiscardHandler))
}

func at(n int64) time.Time { return time.UnixMilli(1_700_000_000_000 + n).UTC() }

func accepted(id string) dispatch.Acceptance {
	return dispatch.Acceptance{
		Record: dispatch.Record{
			ID: id, Group: "g", Workspace: auth.DefaultWorkspace, Device: "k3v9x2mqta", Name: "closeTabs", Principal: "t",
			Action: []byte("action"), State: dispatch.Accepted, CreatedAt: at(1), Deadline: at(30_000),
		},
		Saved: []*commandv1.SavedTab{{SavedId: "s-" + id, TabId: "k3v9x2mqta_t1-" + id}},
	}
}

// TestACommandsRows goes the way of a command: accepted with a saved tab, advanced, ended once, with an event for each.
func TestACommandsRows(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		ctx := t.Context()
		a := accepted("c1")
		a.Saved[0].SavedAt = timestamppb.New(at(1))
		if err := s.Accept(ctx, []dispatch.Acceptance{a}); err != nil {
			t.Fatal(err)
		}
		if err := s.Accept(ctx, []dispatch.Acceptance{a}); !errors.Is(err, store.ErrConflict) {
			t.Errorf("the same command again: %v", err)
		}
		pending, err := s.Pending(ctx)
		if err != nil || len(pending) != 1 || pending[0].Record.ID != "c1" || len(pending[0].Saved) != 1 {
			t.Errorf("pending: %+v, %v", pending, err)
		}
		end := a.Record
		end.State, end.EndedAt, end.Result, end.Summary = dispatch.Succeeded, at(5), []byte("result"), "closed\x00Count=1"
		for range 2 { // the second changes nothing
			if err := s.Finish(ctx, []dispatch.End{{Record: end, Kept: []string{"s-c1"}}}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Get(ctx, auth.DefaultWorkspace, "c1")
		if err != nil || got.State != dispatch.Succeeded || string(got.Result) != "result" || got.Summary != "closed\ufffdCount=1" {
			t.Errorf("got %+v, %v", got, err)
		}
		if tabs, err := s.Saved(ctx, auth.DefaultWorkspace, []string{"s-c1", "none", "a\x00b"}); err != nil || len(tabs) != 1 {
			t.Errorf("saved: %v, %v", tabs, err)
		}
		events, err := s.After(ctx, auth.DefaultWorkspace, "", 0, 10)
		first, last, err2 := s.Bounds(ctx)
		if err != nil || err2 != nil || len(events) != 2 || events[0].GetCursor() != first || events[1].GetCursor() != last || last != first+1 {
			t.Errorf("%d events from %d to %d, %v, %v", len(events), first, last, err, err2)
		}
		if err := s.Sweep(ctx, at(1000), at(1000)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(ctx, auth.DefaultWorkspace, "c1"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("swept: %v", err)
		}
	})
}

// TestTextThatNoRowCanHave is not found where it is asked for, and mended where it is written.
func TestTextThatNoRowCanHave(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		ctx := t.Context()
		if _, err := s.Get(ctx, auth.DefaultWorkspace, "a\x00b"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("get: %v", err)
		}
		for _, f := range []dispatch.Filter{{Device: "a\x00b"}, {PendingOnly: true, Device: "a\x00b"}, {BeforeID: "\xff"}} {
			f.Workspace, f.Limit = auth.DefaultWorkspace, 10
			if rows, err := s.List(ctx, f); err != nil || len(rows) != 0 {
				t.Errorf("list: %v, %v", rows, err)
			}
		}
		if events, err := s.After(ctx, auth.DefaultWorkspace, "a\x00b", 0, 10); err != nil || len(events) != 0 {
			t.Errorf("events: %v, %v", events, err)
		}
		d := device.Device{ID: "k3v9x2mqta", Workspace: auth.DefaultWorkspace, Name: "lap\x00top", Kind: 1, PairedAt: at(1), Agent: "\xff"}
		token := auth.Token{
			ID: "t", Workspace: auth.DefaultWorkspace, Name: "\x00", Scope: optionv1.Scope_SCOPE_DEVICE, Device: d.ID, CreatedAt: at(1),
		}
		if err := s.Pair(ctx, d, token, ""); err != nil {
			t.Fatal(err)
		}
		devices, err := s.Devices(ctx)
		if err != nil || len(devices) != 1 || devices[0].Name != "lap\ufffdtop" || devices[0].Agent != "\ufffd" {
			t.Errorf("devices: %+v, %v", devices, err)
		}
	})
}

// TestALostDatabaseIsToldAsWhatItIs: nothing done is one thing, not known is another.
func TestALostDatabaseIsToldAsWhatItIs(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]fault.Code{
		store.ErrUnavailable: fault.Unavailable, store.ErrUnknown: fault.Interrupted, store.ErrDiskFull: fault.Internal,
	} {
		s := running(t, store.Config{Dir: t.TempDir(), Fault: func(string) error { return cause }})
		a := accepted("c")
		a.Saved = nil
		if err := s.Accept(t.Context(), []dispatch.Acceptance{a}); fault.CodeOf(err) != want || !errors.Is(err, cause) {
			t.Errorf("%v became %v", cause, err)
		}
	}
}
