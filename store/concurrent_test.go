package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

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
