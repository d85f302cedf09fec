package store

import (
	"context"
	"database/sql"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pressly/goose/v3"

	"throwbar.dev/throwbar/store/db"
)

// BenchmarkAcceptFinish is a command's two writes, each answered before the next, by one caller and by 64. Floor is the
// same two statements by database/sql, prepared, on one connection, in transactions of their own.
func BenchmarkAcceptFinish(b *testing.B) {
	for _, callers := range []int{1, 64} {
		for _, level := range []Level{Fast, Synced} {
			name := "callers=" + strconv.Itoa(callers) + "/" + map[Level]string{Fast: "fast", Synced: "synced"}[level]
			b.Run(name+"/store", func(b *testing.B) { benchmarkStore(b, callers, level) })
			b.Run(name+"/floor", func(b *testing.B) { benchmarkFloor(b, callers, level) })
		}
	}
}

func benchmarkStore(b *testing.B, callers int, level Level) {
	s := running(b, onSQLite(), Config{})
	spread(b, callers, func(ctx context.Context, n int64) error {
		id := "00000000-0000-4000-8000-" + strconv.FormatInt(n, 10)
		err := s.Write(ctx, level, func(ctx context.Context, q *db.Queries) error {
			return q.InsertCommand(ctx, command(id, n))
		})
		if err != nil {
			return err
		}
		return s.Write(ctx, level, func(ctx context.Context, q *db.Queries) error {
			_, err := q.FinishCommand(ctx, finish(id, n))
			return err
		})
	})
}

func benchmarkFloor(b *testing.B, callers int, level Level) {
	ctx := context.Background()
	path := filepath.Join(b.TempDir(), "floor.db")
	pool := openWriter(path)
	b.Cleanup(func() { _ = pool.Close() })
	check(b, migrate(ctx, goose.DialectSQLite3, pool))
	_, err := pool.ExecContext(ctx, "pragma synchronous = "+map[Level]string{Fast: "normal", Synced: "full"}[level])
	check(b, err)
	insert := prepare(b, pool, `insert into srv_command (id, group_id, workspace, device_id, name, principal, action, state,
		created_at, deadline, ended_at, result, error, summary)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, null, null, '')`)
	update := prepare(b, pool, `update srv_command set state = $1, ended_at = $2, result = $3, error = $4, summary = $5
		where id = $6 and ended_at = 0`)
	spread(b, callers, func(ctx context.Context, n int64) error {
		id := "00000000-0000-4000-8000-" + strconv.FormatInt(n, 10)
		c, f := command(id, n), finish(id, n)
		if _, err := insert.ExecContext(ctx, c.ID, c.GroupID, c.Workspace, c.DeviceID, c.Name, c.Principal, c.Action, c.State,
			c.CreatedAt, c.Deadline); err != nil {
			return err
		}
		_, err := update.ExecContext(ctx, f.State, f.EndedAt, f.Result, f.Error, f.Summary, f.ID)
		return err
	})
}

func prepare(b *testing.B, pool *sql.DB, query string) *sql.Stmt {
	b.Helper()
	statement, err := pool.PrepareContext(context.Background(), query)
	check(b, err)
	b.Cleanup(func() { _ = statement.Close() })
	return statement
}

// spread shares b.N calls between callers.
func spread(b *testing.B, callers int, call func(context.Context, int64) error) {
	b.Helper()
	b.ReportAllocs()
	var next atomic.Int64
	var group sync.WaitGroup
	b.ResetTimer()
	for range callers {
		group.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := call(context.Background(), n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
}
