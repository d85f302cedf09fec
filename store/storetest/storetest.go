// Package storetest gives tests the two engines of the store. PostgreSQL is a throwaway server that the test binary
// starts when a test first asks for it: on a socket in its own folder, as an unprivileged user if the tests run as root,
// ended and removed when the binary ends, however that ends. It does not import the store, so that the store's own tests
// can use it.
package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/jackc/pgx/v5"
)

// Cluster is the PostgreSQL of a test binary. A package's tests have one, in a variable, and stop it in TestMain:
//
//	var postgres storetest.Cluster
//
//	func TestMain(m *testing.M) {
//		defer postgres.Stop()
//		m.Run()
//	}
type Cluster struct {
	once   sync.Once
	server *Server
	err    error
	number atomic.Int64
}

// Engine is one of the two.
type Engine struct {
	// Name is sqlite or postgres.
	Name    string
	cluster *Cluster
}

// Engines are the two engines; a suite runs on each.
func (c *Cluster) Engines() []Engine {
	return []Engine{{Name: "sqlite"}, {Name: "postgres", cluster: c}}
}

// URL is that of a new, empty database of the test's own; empty for SQLite, which has a folder instead.
func (e Engine) URL(t testing.TB) string {
	t.Helper()
	if e.cluster == nil {
		return ""
	}
	return e.cluster.URL(t)
}

// SQLite says whether it is that.
func (e Engine) SQLite() bool { return e.cluster == nil }

// URL is that of a new, empty database, which is dropped at the end of the test.
func (c *Cluster) URL(t testing.TB) string {
	t.Helper()
	c.once.Do(func() { c.server, c.err = start(Options{}) })
	if c.err != nil {
		t.Fatal(c.err)
	}
	name := fmt.Sprintf("test%d", c.number.Add(1))
	if err := c.server.exec(context.Background(), "create database "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.server.exec(context.Background(), "drop database "+name+" with (force)"); err != nil {
			t.Errorf("drop database: %v", err)
		}
	})
	return c.server.URL(name)
}

// Stop ends the server if there is one.
func (c *Cluster) Stop() {
	if c.server != nil {
		c.server.stop()
	}
}

// Exec runs a statement in the database of a URL, as somebody else than the store.
func Exec(t testing.TB, databaseURL, statement string, args ...any) {
	t.Helper()
	pool := Open(t, databaseURL)
	if _, err := pool.ExecContext(context.WithoutCancel(t.Context()), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// Open opens the database of a URL beside the store.
func Open(t testing.TB, databaseURL string) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	pool := stdlib.OpenDB(*config)
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	return pool
}

// URL is that of a database of the server.
func (s *Server) URL(database string) string { return socketURL(s.dir, database) }

func socketURL(dir, database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + database, RawQuery: url.Values{"host": {dir}}.Encode()}
	return u.String()
}
