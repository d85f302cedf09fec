package storage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"throwbar.dev/throwbar/auditlog"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/storage"
	"throwbar.dev/throwbar/store"
)

// TestWhereARecordEndsIsOnlyAGuess: two adapters write to one database by turns and at once, so that what each remembers
// is wrong all the time, while commits fail. Nothing is left out or forked.
func TestWhereARecordEndsIsOnlyAGuess(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			var turn atomic.Int64
			var mended atomic.Bool
			db, err := store.Open(t.Context(), store.Config{Dir: t.TempDir(), URL: engine.URL(t), Fault: func(stage string) error {
				if stage == "commit" && turn.Add(1)%4 == 0 && !mended.Load() {
					return store.ErrDiskFull
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
			ended := make(chan error, 1)
			go func() { ended <- db.Run(ctx) }()
			t.Cleanup(func() {
				cancel()
				if err := errors.Join(<-ended, db.Close()); err != nil {
					t.Error(err)
				}
			})
			both := []*storage.Storage{storage.New(db, slog.New(slog.DiscardHandler)), storage.New(db, slog.New(slog.DiscardHandler))}
			var written atomic.Int64
			var callers sync.WaitGroup
			for n := range 8 {
				callers.Go(func() {
					for m := range 25 {
						for _, workspace := range []string{auth.DefaultWorkspace, "other"} {
							id := fmt.Sprintf("%s-%d-%d", workspace, n, m)
							if both[(n+m)%2].AddToken(context.WithoutCancel(t.Context()), token(workspace, id)) == nil {
								written.Add(1)
							}
						}
					}
				})
			}
			callers.Wait()
			mended.Store(true)
			got := len(read(t, both[0], auth.DefaultWorkspace)) + len(read(t, both[1], "other"))
			if int64(got) != written.Load() || got < 100 {
				t.Errorf("%d entries for %d tokens", got, written.Load())
			}
		})
	}
}

// TestVerifyFindsWhatReplaceDid: SQLite's "insert or replace" goes past triggers that refuse to change or remove a row, which
// stay in their place here. The chain finds it, in the midst of the record and at its end, and an end that was put back.
func TestVerifyFindsWhatReplaceDid(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		if !engine.SQLite() {
			continue
		}
		s, config := written(t, engine)
		a := attacker{t: t, pool: besides(t, config)}
		rows := a.rows()
		put := func(r row) {
			a.exec("insert or replace into srv_audit (workspace, sequence, time, record, previous, hash) values ('default', $1, $2, $3, $4, $5)",
				r.sequence, r.time, r.record, r.previous, r.hash)
		}
		end := func(r row) {
			a.exec("insert or replace into srv_audit_head (workspace, sequence, hash) values ('default', $1, $2)", r.sequence, r.hash)
		}
		if _, err := a.pool.ExecContext(t.Context(), "update srv_audit set time = time + 1"); err == nil {
			t.Fatal("the triggers are not there")
		}
		for _, n := range []int{1, 4, entries} {
			put(reseal(t, rows[n-1], forge))
			if got := a.rows(); slices.Equal(got[n-1].record, rows[n-1].record) {
				t.Fatal("nothing was replaced")
			}
			if _, problem, err := s.VerifyAudit(t.Context(), auth.DefaultWorkspace, nil); err != nil || problem == nil || problem.Sequence != uint64(n) {
				t.Errorf("entry %d was replaced: verify says %v, %v", n, problem, err)
			}
			put(rows[n-1])
		}
		end(rows[2])
		if _, problem, err := s.VerifyAudit(t.Context(), auth.DefaultWorkspace, nil); err != nil || problem == nil || problem.Kind != auditlog.Head || problem.Sequence != 4 {
			t.Errorf("the end was put back: verify says %v, %v", problem, err)
		}
		end(rows[entries-1])
		if _, problem, err := s.VerifyAudit(t.Context(), auth.DefaultWorkspace, nil); err != nil || problem != nil {
			t.Errorf("all was put back: verify says %v, %v", problem, err)
		}
	}
}
