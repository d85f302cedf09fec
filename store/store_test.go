package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"throwbar.dev/throwbar/store/db"
	"throwbar.dev/throwbar/store/storetest"
)

func TestOpenMakesPrivateFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a folder? with #odd% characters", "deeper")
	s := running(t, onSQLite(), Config{Dir: dir})
	do(t, s, func(ctx context.Context, q *db.Queries) error { return q.InsertCommand(ctx, command("a", 1)) })
	info, err := os.Stat(dir)
	check(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("folder has mode %v", info.Mode())
	}
	entries, err := os.ReadDir(dir)
	check(t, err)
	var names []string
	for _, entry := range entries {
		info, err := entry.Info()
		check(t, err)
		names = append(names, entry.Name())
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", entry.Name(), info.Mode())
		}
	}
	if want := []string{"throwbar.db", "throwbar.db-shm", "throwbar.db-wal", "throwbar.lock"}; !slices.Equal(names, want) {
		t.Errorf("files are %q, want %q", names, want)
	}
}

func TestOpenAgain(t *testing.T) {
	t.Parallel()
	onEach(t, testOpenAgain)
}

func testOpenAgain(t *testing.T, engine storetest.Engine) {
	config := place(t, engine, Config{})
	var schema string
	for round := range 3 {
		s, err := Open(t.Context(), config)
		check(t, err)
		stop := run(t, s)
		id := fmt.Sprint("c", round)
		do(t, s, func(ctx context.Context, q *db.Queries) error { return q.InsertCommand(ctx, command(id, 1)) })
		stop()
		rows, err := s.Read().ListCommands(t.Context(), listCommands("default"))
		check(t, err)
		if len(rows) != round+1 {
			t.Errorf("round %d: %d rows", round, len(rows))
		}
		if now := schemaOf(t, s); round > 0 && now != schema {
			t.Errorf("round %d: schema changed:\n%s\nwas:\n%s", round, now, schema)
		} else {
			schema = now
		}
		check(t, s.Close())
	}
}

func TestOpenRefusesNewerDatabase(t *testing.T) {
	t.Parallel()
	onEach(t, testOpenRefusesNewerDatabase)
}

func testOpenRefusesNewerDatabase(t *testing.T, engine storetest.Engine) {
	config := place(t, engine, Config{})
	s, err := Open(t.Context(), config)
	check(t, err)
	check(t, s.Close())
	const newer = "insert into goose_db_version (version_id, is_applied) values (9999, true)"
	if engine.SQLite() {
		pool := openWriter(filepath.Join(config.Dir, databaseName))
		_, err = pool.ExecContext(t.Context(), newer)
		check(t, errors.Join(err, pool.Close()))
	} else {
		storetest.Exec(t, config.URL, newer)
	}
	for range 2 { // the second time because the first has freed the lock
		if _, err := Open(t.Context(), config); !errors.Is(err, ErrNewer) {
			t.Errorf("error is %v, want ErrNewer", err)
		}
	}
}

func TestOpenRefusesNoDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := []byte(strings.Repeat("this is a letter to a friend, not a database. ", 200))
	check(t, os.WriteFile(filepath.Join(dir, databaseName), text, 0o600))
	if _, err := Open(t.Context(), Config{Dir: dir}); !errors.Is(err, ErrDamaged) {
		t.Errorf("error is %v, want ErrDamaged", err)
	}
	lock, err := lockDir(dir)
	check(t, err)
	check(t, unlockDir(lock))
	if _, err := Open(t.Context(), Config{}); err == nil {
		t.Error("a store without folder was opened")
	}
}

func TestReadPoolCannotWrite(t *testing.T) {
	t.Parallel()
	onEach(t, testReadPoolCannotWrite)
}

func testReadPoolCannotWrite(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	do(t, s, func(ctx context.Context, q *db.Queries) error { return q.InsertCommand(ctx, command("a", 1)) })
	err := s.Read().InsertCommand(t.Context(), command("b", 1))
	if !errors.Is(typed(err), ErrReadOnly) {
		t.Errorf("Read: error is %v, want ErrReadOnly", err)
	}
	err = s.ReadTx(t.Context(), func(q *db.Queries) error {
		_, err := q.FinishCommand(t.Context(), finish("a", 1))
		return err
	})
	if !errors.Is(typed(err), ErrReadOnly) {
		t.Errorf("ReadTx: error is %v, want ErrReadOnly", err)
	}
	if !engine.SQLite() {
		return
	}
	if _, err := s.reader.ExecContext(t.Context(), "pragma query_only = 0; delete from srv_command"); err == nil {
		t.Error("a reader that lifted query_only could write")
	}
}

func TestReadTxSeesOneState(t *testing.T) {
	t.Parallel()
	onEach(t, testReadTxSeesOneState)
}

func testReadTxSeesOneState(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	check(t, s.ReadTx(t.Context(), func(q *db.Queries) error {
		for n := range 3 {
			rows, err := q.ListCommands(t.Context(), listCommands("default"))
			if err != nil {
				return err
			}
			if len(rows) != 0 {
				t.Errorf("read %d saw %d rows", n, len(rows))
			}
			id := fmt.Sprint("c", n)
			do(t, s, func(ctx context.Context, q *db.Queries) error { return q.InsertCommand(ctx, command(id, 1)) })
		}
		return nil
	}))
	rows, err := s.Read().ListCommands(t.Context(), listCommands("default"))
	check(t, err)
	if len(rows) != 3 {
		t.Errorf("%d rows after it", len(rows))
	}
	wanted := errors.New("mine")
	if err := s.ReadTx(t.Context(), func(*db.Queries) error { return wanted }); !errors.Is(err, wanted) {
		t.Errorf("error is %v, want the caller's", err)
	}
}

func TestBackup(t *testing.T) {
	t.Parallel()
	s := running(t, onSQLite(), Config{})
	do(t, s, func(ctx context.Context, q *db.Queries) error { return q.InsertCommand(ctx, command("a", 1)) })
	dir := filepath.Join(t.TempDir(), "restored")
	check(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, databaseName)
	check(t, s.Backup(t.Context(), path))
	info, err := os.Stat(path)
	check(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("backup has mode %v", info.Mode())
	}
	restored := opened(t, onSQLite(), Config{Dir: dir})
	rows, err := restored.Read().ListCommands(t.Context(), listCommands("default"))
	check(t, err)
	if len(rows) != 1 || rows[0].ID != "a" {
		t.Errorf("backup has %v", rows)
	}
	if err := s.Backup(t.Context(), path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("backup over a file: error is %v, want ErrExist", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	empty := t.TempDir()
	if err := s.Backup(cancelled, filepath.Join(empty, "b.db")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled backup: error is %v", err)
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("cancelled backup left %v, %v", left, err)
	}
}

func TestOneSQLite(t *testing.T) {
	t.Parallel()
	for _, name := range sql.Drivers() {
		if name != "sqlite3" && strings.Contains(name, "sqlite") {
			t.Errorf("driver %q is linked too; two of them on one file destroy it", name)
		}
	}
}

// schemaOf is the whole schema as SQLite stores it.
func schemaOf(tb testing.TB, s *Store) string {
	tb.Helper()
	query := "select coalesce(sql, name) from sqlite_master order by name"
	if _, ok := s.engine.(*postgresEngine); ok {
		query = "select indexdef from pg_indexes where schemaname = 'public' order by indexname"
	}
	rows, err := s.reader.QueryContext(tb.Context(), query)
	check(tb, err)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var text string
		check(tb, rows.Scan(&text))
		all = append(all, text)
	}
	check(tb, rows.Err())
	return strings.Join(all, "\n")
}
