package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/storage"
	"throwbar.dev/throwbar/store"
)

// counting is a command that counts for an act.
func counting(id, workspace, act string, targets int) dispatch.Acceptance {
	a := accepted(id)
	a.Saved = nil
	a.Record.Workspace, a.Record.Act, a.Record.ActTargets = workspace, act, targets
	return a
}

func wantActed(t *testing.T, s *storage.Storage, workspace, act string, want int) {
	t.Helper()
	if n, err := s.Acted(t.Context(), workspace, act); err != nil || n != want {
		t.Errorf("%s in %s: %d, %v; want %d", act, workspace, n, err, want)
	}
}

// What an act did is what was accepted for it, by whole transactions, in its workspace, however it ended, for as long as the
// commands are in the history.
func TestWhatAnActDidIsSummed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		ctx := t.Context()
		for _, none := range []string{"turn", "", "a\x00b", "\xff"} {
			wantActed(t, s, "w", none, 0)
		}
		rows := []dispatch.Acceptance{
			counting("c1", "w", "turn", 7), counting("c2", "w", "turn", 1), counting("c3", "w", "other", 10_000),
			counting("c4", "x", "turn", 3), counting("c5", "w", "", 0),
		}
		if err := s.Accept(ctx, rows); err != nil {
			t.Fatal(err)
		}
		asks := counting("c6", "w", "", 0)
		asks.Record.State, asks.Record.Approval = dispatch.AwaitingApproval, "a"
		// None of these is written: one is there already, or has nothing left to bring back.
		if err := s.Accept(ctx, []dispatch.Acceptance{counting("c7", "w", "turn", 5), counting("c1", "w", "turn", 5)}); !errors.Is(err, store.ErrConflict) {
			t.Fatalf("one of two is there already: %v", err)
		}
		void := counting("c8", "w", "turn", 5)
		void.Claims = []string{"gone"}
		if err := s.Accept(ctx, []dispatch.Acceptance{asks, void}); err != nil {
			t.Fatal(err)
		}
		end := rows[0].Record
		end.State, end.EndedAt = dispatch.Expired, at(5)
		if err := s.Finish(ctx, []dispatch.End{{Record: end}}); err != nil {
			t.Fatal(err)
		}
		wantActed(t, s, "w", "turn", 8)
		wantActed(t, s, "w", "other", 10_000)
		wantActed(t, s, "x", "turn", 3)
		wantActed(t, s, "w", "", 0)
		if got, err := s.Get(ctx, "w", "c1"); err != nil || got.Act != "turn" || got.ActTargets != 7 {
			t.Errorf("read back: %+v, %v", got, err)
		}
		if err := s.Sweep(ctx, at(1000), at(1000)); err != nil { // what has not ended stays
			t.Fatal(err)
		}
		wantActed(t, s, "w", "turn", 1)
	})
}

// A command of an undo keeps what it is about and what came back, when its result is gone too.
func TestWhatAnUndoIsAboutIsKept(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		a := counting("c1", "w", "", 0)
		a.Record.Undoes, a.Record.UndoTargets = "c0", 3
		if err := s.Accept(t.Context(), []dispatch.Acceptance{a}); err != nil {
			t.Fatal(err)
		}
		end := a.Record
		end.State, end.EndedAt, end.Result, end.Undone = dispatch.Succeeded, at(5), []byte("result"), 2
		if err := s.Finish(t.Context(), []dispatch.End{{Record: end}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Sweep(t.Context(), at(1000), at(1)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(t.Context(), "w", "c1"); err != nil || len(got.Result) != 0 || got.Undoes != "c0" || got.UndoTargets != 3 || got.Undone != 2 {
			t.Errorf("read back: %+v, %v", got, err)
		}
	})
}

// What an act did, and what an undo is about, moves with a database to the other engine.
func TestWhatAnActDidIsExported(t *testing.T) {
	t.Parallel()
	engines := postgres.Engines()
	for i, engine := range engines {
		other := engines[(i+1)%len(engines)]
		t.Run(fmt.Sprintf("from %s to %s", engine.Name, other.Name), func(t *testing.T) {
			t.Parallel()
			var moved bytes.Buffer
			from, write := opened(t, store.Config{Dir: t.TempDir(), URL: engine.URL(t)})
			undo := counting("c2", "w", "turn", 5)
			undo.Record.Undoes, undo.Record.UndoTargets = "c0", 3
			if err := write.Accept(t.Context(), []dispatch.Acceptance{counting("c1", "w", "turn", 7), undo}); err != nil {
				t.Fatal(err)
			}
			if _, err := from.Export(t.Context(), &moved); err != nil {
				t.Fatal(err)
			}
			to, err := store.Open(t.Context(), store.Config{Dir: t.TempDir(), URL: other.URL(t)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := to.Import(t.Context(), &moved); err != nil {
				t.Fatal(err)
			}
			read := storage.New(to, slog.New(slog.DiscardHandler))
			wantActed(t, read, "w", "turn", 12)
			if got, err := read.Get(t.Context(), "w", "c2"); err != nil || got.Undoes != "c0" || got.UndoTargets != 3 {
				t.Errorf("read back: %+v, %v", got, err)
			}
			if err := to.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
