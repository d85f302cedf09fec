package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"throwbar.dev/throwbar/store/db"
)

// TestWritersReadersBackups has four writers, four readers and backups work at once. Nobody
// may be told that the database is busy, and no reader may see half an op.
func TestWritersReadersBackups(t *testing.T) {
	t.Parallel()
	const writers, readers, ops, backups = 4, 4, 100, 3
	s := running(t, onSQLite(), Config{})
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for n := range ops {
				if err := s.Write(t.Context(), Level(n%2), both(fmt.Sprintf("%d-%d", w, n))); err != nil {
					t.Errorf("write: %v", err)
				}
				s.WriteLater(func(ctx context.Context, q *db.Queries) error {
					_, err := q.TouchDevice(ctx, db.TouchDeviceParams{LastSeen: at, ID: "k3v9x2mqta"})
					return err
				}, func(err error) {
					if err != nil {
						t.Errorf("write later: %v", err)
					}
				})
			}
		})
	}
	for range readers {
		group.Go(func() {
			for range ops {
				compareCounts(t, s)
			}
		})
	}
	dir := t.TempDir()
	for n := range backups {
		check(t, os.Mkdir(filepath.Join(dir, fmt.Sprint(n)), 0o700))
	}
	group.Go(func() {
		for n := range backups {
			if err := s.Backup(t.Context(), filepath.Join(dir, fmt.Sprint(n), databaseName)); err != nil {
				t.Errorf("backup: %v", err)
			}
		}
	})
	group.Wait()
	assertSound(t, s)
	for n := range backups {
		assertSound(t, opened(t, onSQLite(), Config{Dir: filepath.Join(dir, fmt.Sprint(n))}))
	}
}

func compareCounts(t *testing.T, s *Store) {
	t.Helper()
	var commands, events int
	row := s.reader.QueryRowContext(t.Context(), "select (select count(*) from srv_command), (select count(*) from srv_event)")
	if err := row.Scan(&commands, &events); err != nil {
		t.Errorf("read: %v", err)
	}
	if commands != events {
		t.Errorf("a reader saw %d commands and %d events", commands, events)
	}
}

// TestNobodyIsToldBusy has four writers and backups one after the other, from a connection of their own, for a while: 5 s,
// or 30 s if THROWBAR_SOAK is set, and at least until there were two backups. A second connection that wrote would be told "database is locked" some 100,000 times.
func TestNobodyIsToldBusy(t *testing.T) {
	t.Parallel()
	duration := 5 * time.Second
	if os.Getenv("THROWBAR_SOAK") != "" {
		duration = 30 * time.Second
	}
	s := running(t, onSQLite(), Config{})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var group sync.WaitGroup
	var writes, backups atomic.Int64
	var worst [4]time.Duration
	for w := range worst {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				start := time.Now()
				if err := s.Write(t.Context(), Level(n%2), both(fmt.Sprintf("%d-%d", w, n))); err != nil {
					t.Errorf("write: %v", err)
					return
				}
				worst[w] = max(worst[w], time.Since(start))
				writes.Add(1)
			}
		})
	}
	dir := t.TempDir()
	group.Go(func() {
		defer stop()
		for began := time.Now(); time.Since(began) < duration || writes.Load() == 0 || backups.Load() < 2; {
			path := filepath.Join(dir, "copy")
			if err := s.Backup(t.Context(), path); err != nil {
				t.Errorf("backup: %v", err)
				return
			}
			check(t, os.Remove(path))
			backups.Add(1)
		}
	})
	group.Wait()
	t.Logf("%d writes, %d backups, worst wait %v", writes.Load(), backups.Load(), slices.Max(worst[:]))
	assertSound(t, s)
}
