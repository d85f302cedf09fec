package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"

	"throwbar.dev/throwbar/store/storetest"
)

// TestSameSchema: the migrations of both engines have the same numbers and make the same tables, columns and keys.
func TestSameSchema(t *testing.T) {
	t.Parallel()
	numbers := func(folder string) (all []string) {
		files, err := fs.Glob(migrations, "migrations/"+folder+"/*.sql")
		check(t, err)
		for _, file := range files {
			all = append(all, filepath.Base(file))
		}
		return all
	}
	if a, b := numbers("sqlite"), numbers("postgres"); !slices.Equal(a, b) {
		t.Errorf("migrations of SQLite are %v, of PostgreSQL %v: add what is missing, with the same name", a, b)
	}
	var schemas [2][]string
	for n, engine := range postgres.Engines() {
		s := opened(t, engine, Config{})
		tables, err := s.engine.tables(t.Context(), s.reader)
		check(t, err)
		if len(tables) < 9 {
			t.Errorf("%s: only %d tables", engine.Name, len(tables))
		}
		for _, table := range tables {
			for _, c := range table.columns {
				schemas[n] = append(schemas[n], fmt.Sprintf("%s.%s %s nullable=%v", table.name, c.Name, c.Kind, c.nullable))
			}
			schemas[n] = append(schemas[n], fmt.Sprintf("%s key %v", table.name, table.key))
			if len(table.key) == 0 {
				t.Errorf("%s: %s has no primary key", engine.Name, table.name)
			}
		}
		indexes := "select count(*) from sqlite_master where type = 'index' and name not like 'sqlite_autoindex%'"
		if !engine.SQLite() {
			indexes = `select count(*) from pg_indexes i where i.schemaname = 'public' and not exists (
				select 1 from pg_constraint c where c.conname = i.indexname)`
		}
		var count int
		check(t, s.reader.QueryRowContext(t.Context(), indexes).Scan(&count))
		schemas[n] = append(schemas[n], fmt.Sprint("indexes ", count))
	}
	if !slices.Equal(schemas[0], schemas[1]) {
		t.Errorf("SQLite has\n%s\nPostgreSQL has\n%s", strings.Join(schemas[0], "\n"), strings.Join(schemas[1], "\n"))
	}
}

// TestTextIsComparedByBytes: every column of text in PostgreSQL is, so that pages have one order on both engines.
func TestTextIsComparedByBytes(t *testing.T) {
	t.Parallel()
	s := opened(t, onSQLite(), Config{URL: postgres.URL(t)})
	rows, err := s.reader.QueryContext(t.Context(), `select table_name || '.' || column_name from information_schema.columns
		where table_schema = 'public' and data_type = 'text' and collation_name is distinct from 'C'`)
	check(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		check(t, rows.Scan(&name))
		t.Errorf(`%s: write text collate "C"`, name)
	}
	check(t, rows.Err())
}

// TestKinds has what neither engine can be brought to in a test, and what both call differently.
func TestKinds(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]error{
		"23505": ErrConflict, "23514": ErrRefused, "23502": ErrRefused, "23503": ErrRefused, "22021": ErrRefused, "22003": ErrRefused,
		"53100": ErrDiskFull, "25006": ErrReadOnly, "42501": ErrReadOnly, "58030": ErrDamaged, "XX001": ErrDamaged, "XX002": ErrDamaged,
		"42P01": nil, "40001": nil, "57014": nil,
	} {
		err := fmt.Errorf("insert: %w", &pgconn.PgError{Code: state, Message: "as it is"})
		if got := typed(err); want != nil && (!errors.Is(got, want) || !errors.Is(got, err)) || want == nil && got != err { //nolint:errorlint // it has to be the very value
			t.Errorf("%s became %v, want %v", state, got, want)
		}
	}
	full := fmt.Errorf("commit: %w", typed(sqlite3.Error{Code: sqlite3.ErrFull}))
	if again := typed(full); again != full { //nolint:errorlint // it has to be the very value
		t.Errorf("typed twice: %v", again)
	}
}

// TestNoPasswordIsShown in names or errors, whatever is wrong with the URL.
func TestNoPasswordIsShown(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"postgres://u:s3cret@127.0.0.1:1/name",
		"postgres://u:s3cret@[::1/name",
		"postgres://u:s3cret/x@host/name",
		"postgres://u:s3cret%zz@host/name",
		"postgres://u:s3cret@host:port/name",
		"postgres://u@127.0.0.1:1/name?password=s3cret",
		"postgres://u:s3cret@host/name?sslmode=s3cret",
		"postgres://u:s3cret@127.0.0.1:1/name?connect_timeout=s3cret",
		"host=127.0.0.1 password=s3cret",
		"mysql://u:s3cret@host/name",
	} {
		_, err := Open(t.Context(), Config{URL: text})
		if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v", text, err)
		}
	}
}

// TestPasswordFile: what the URL leaves out comes from PostgreSQL's own file.
func TestPasswordFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pgpass")
	check(t, os.WriteFile(path, []byte("db.example:5433:name:u:s3cret\n"), 0o600))
	t.Setenv("PGPASSFILE", path)
	config, err := parseURL("postgres://u@db.example:5433/name")
	check(t, err)
	if config.Password != "s3cret" {
		t.Errorf("password is %q", config.Password)
	}
	if name := Redacted("postgres://u:s3cret@db.example:5433/name?sslmode=require"); name != "postgres://u@db.example:5433/name" {
		t.Errorf("name is %s", name)
	}
}

// TestWhatPostgresMayNotBe is told in one line.
func TestWhatPostgresMayNotBe(t *testing.T) {
	t.Parallel()
	direct := postgres.URL(t)
	if _, err := Open(t.Context(), Config{URL: strings.Replace(direct, "/test", "/none", 1)}); err == nil ||
		!strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a database that is not there: %v", err)
	}
	storetest.Exec(t, direct, "create database "+nameIn(direct)+"_ascii encoding 'SQL_ASCII' locale_provider 'libc' locale 'C' template template0")
	t.Cleanup(func() { storetest.Exec(t, direct, "drop database "+nameIn(direct)+"_ascii with (force)") })
	ascii := strings.Replace(direct, nameIn(direct), nameIn(direct)+"_ascii", 1)
	if _, err := Open(t.Context(), Config{URL: ascii}); err == nil || !strings.Contains(err.Error(), "SQL_ASCII") {
		t.Errorf("a database of another encoding: %v", err)
	}
	if err := opened(t, onSQLite(), Config{URL: direct}).Backup(t.Context(), filepath.Join(t.TempDir(), "b")); !errors.Is(err, errors.ErrUnsupported) ||
		!strings.Contains(err.Error(), "pg_dump") {
		t.Errorf("backup: %v", err)
	}
}

func nameIn(url string) string {
	_, rest, _ := strings.Cut(url, "@/")
	name, _, _ := strings.Cut(rest, "?")
	return name
}
