package soak_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "github.com/mattn/go-sqlite3" // the driver that the store uses

	"throwbar.dev/throwbar/soak/soaktest"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/storetest"
)

// engine is a database that the server keeps its state in.
type engine interface {
	// flags are what serve is told of it, beside the server's own folder.
	flags() []string
	// config opens the same store in this process, while no server runs.
	config() store.Config
	// open gives the database for reading, with nothing of ours between.
	open(t *testing.T) *sql.DB
	// sound checks what the engine itself can check.
	sound(t *testing.T, db *sql.DB)
	// crash stops the engine's own process at once and starts it again.
	crash(t *testing.T)
}

// kind is one kind of engine.
type kind struct {
	name    string
	process bool                                      // it has a process of its own, which can die alone
	make    func(t *testing.T, dataDir string) engine // for a server with this folder
}

// engines are those that every loop runs on.
func engines() []kind {
	return []kind{
		{name: "sqlite", make: func(_ *testing.T, dir string) engine { return sqlite{dir} }},
		{name: "postgres", process: true, make: startPostgres},
	}
}

// sqlite is the database in the server's own folder.
type sqlite struct{ dir string }

func (s sqlite) flags() []string      { return nil }
func (s sqlite) config() store.Config { return store.Config{Dir: s.dir} }
func (s sqlite) crash(t *testing.T)   { t.Fatal("SQLite has no process of its own") }

func (s sqlite) open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.dir, "throwbar.db")+"?mode=ro")
	check(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (s sqlite) sound(t *testing.T, db *sql.DB) {
	t.Helper()
	var verdict string
	check(t, db.QueryRowContext(t.Context(), "pragma integrity_check").Scan(&verdict))
	if verdict != "ok" {
		t.Errorf("integrity_check says %q", verdict)
	}
}

// postgres is a server of the test's own.
type postgres struct {
	process *storetest.Server
	url     string
}

func startPostgres(t *testing.T, _ string) engine {
	t.Helper()
	// What dies here are processes, never the machine: nothing has to reach the disk.
	p := postgres{process: storetest.Start(t, storetest.Options{})}
	storetest.Exec(t, p.process.URL("postgres"), "create database soak")
	p.url = p.process.URL("soak")
	return p
}

func (p postgres) flags() []string      { return []string{soaktest.DatabaseFlag, p.url} }
func (p postgres) config() store.Config { return store.Config{URL: p.url} }

func (p postgres) open(t *testing.T) *sql.DB {
	t.Helper()
	return storetest.Open(t, p.url)
}

// sound reads every index against its table, where the extension for that is installed.
func (p postgres) sound(t *testing.T, db *sql.DB) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), "create extension if not exists amcheck"); err != nil {
		t.Logf("indexes are not checked: %v", err)
		return
	}
	_, err := db.ExecContext(t.Context(), `select bt_index_check(c.oid, true) from pg_class c
		join pg_namespace n on n.oid = c.relnamespace join pg_am a on a.oid = c.relam
		where c.relkind = 'i' and a.amname = 'btree' and n.nspname = 'public'`)
	if err != nil {
		t.Errorf("an index is broken: %v", err)
	}
}

func (p postgres) crash(t *testing.T) {
	t.Helper()
	p.process.Kill(t)
	p.process.Up(t)
}
