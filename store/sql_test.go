package store

import (
	"database/sql"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"throwbar.dev/throwbar/store/storetest"
)

// TestParametersInOrder guards against a trap: mattn/go-sqlite3 numbers $N by first appearance, whatever N says, so
// that "select $2, $1" swaps its arguments without a word.
func TestParametersInOrder(t *testing.T) {
	t.Parallel()
	if inOrder("select $2, $1") || inOrder("select $1, $3, $2") || !inOrder("select $1, $2, $1, $3") {
		t.Fatal("the check itself is wrong")
	}
	for name, text := range written(t) {
		if strings.Contains(text, "$") {
			t.Errorf("%s: write @name, not $N: sqlc numbers by appearance", name)
		}
	}
	made := generated(t)
	for name, text := range made {
		if !inOrder(text) {
			t.Errorf("%s: a parameter comes before a lower one:\n%s", name, text)
		}
	}
	if len(made) != len(written(t)) {
		t.Errorf("%d statements are written, %d generated: run make gen", len(written(t)), len(made))
	}
}

// TestTheDriverSwaps shows the trap itself: two engines, one statement, two answers. If this test fails the driver has
// been mended, and the checks of the order can go.
func TestTheDriverSwaps(t *testing.T) {
	t.Parallel()
	want := map[string]string{"sqlite": "two one", "postgres": "one two"}
	onEach(t, func(t *testing.T, engine storetest.Engine) {
		s := opened(t, engine, Config{})
		var a, b string
		check(t, s.reader.QueryRowContext(t.Context(), "select cast($2 as text), cast($1 as text)", "one", "two").Scan(&b, &a))
		if got := a + " " + b; got != want[engine.Name] {
			t.Errorf("$1 and $2 are %q, want %q", got, want[engine.Name])
		}
	})
}

// TestStatementsInGoAreInOrder looks at the statements that are written in Go, in this package and wherever else the
// database is reached by hand.
func TestStatementsInGoAreInOrder(t *testing.T) {
	t.Parallel()
	found := 0
	parameter, statement := regexp.MustCompile(`\$\d`), regexp.MustCompile(`(?i)\b(select|insert|update|delete|values)\b`)
	check(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // what builds and other tests make is removed at any time
			return nil
		}
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (slices.Contains([]string{"node_modules", "db", "gen", "third_party"}, name) || strings.HasPrefix(name, ".") && name != "..") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" || path == filepath.Join("..", "store", "sql_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !parameter.Match(text) {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING || !statement.MatchString(literal.Value) {
				return true
			}
			if parameter.MatchString(literal.Value) {
				found++
			}
			if !inOrder(literal.Value) {
				t.Errorf("%s: a parameter comes before a lower one: %s", path, literal.Value)
			}
			return true
		})
		return nil
	}))
	if found < 3 {
		t.Errorf("only %d statements with parameters were found", found)
	}
}

// TestPortable refuses what one of the engines reads otherwise than the other.
func TestPortable(t *testing.T) {
	t.Parallel()
	for name, text := range written(t) {
		for _, word := range []string{"::", "cast(", "now()", "current_", "sqlc.", "ilike", "json", "rowid", "for update", "?"} {
			if strings.Contains(strings.ToLower(text), word) {
				t.Errorf("%s: %q is not in the portable subset", name, word)
			}
		}
	}
	for name, text := range generated(t) {
		if strings.Contains(text, "interface{}") {
			t.Errorf("%s: sqlc found no type for a parameter", name)
		}
	}
}

// TestPlans looks how SQLite answers each statement: by an index, and without sorting.
func TestPlans(t *testing.T) {
	t.Parallel()
	pool := migrated(t, onSQLite())
	parameter := regexp.MustCompile(`@\w+`)
	step := regexp.MustCompile(`^(SCAN|USE TEMP B-TREE)`)
	// The log is read from one of its ends, row by row up to a limit.
	byRow := []string{"GetEventRange", "DeleteEvents", "InsertEvent", "AppendEvent"}
	byRow = append(byRow, "BeginDevices") // raises all of them, once at each start
	for name, text := range written(t) {
		names := parameter.FindAllString(text, -1)
		slices.Sort(names)
		for _, detail := range plan(t, pool, text, len(slices.Compact(names))) {
			if step.MatchString(detail) && !strings.HasPrefix(detail, "SCAN CONSTANT ROW") && !slices.Contains(byRow, name) {
				t.Errorf("%s: %s", name, detail)
			}
		}
	}
}

func plan(tb testing.TB, pool *sql.DB, statement string, parameters int) []string {
	tb.Helper()
	rows, err := pool.QueryContext(tb.Context(), "explain query plan "+statement, make([]any, parameters)...)
	if err != nil {
		tb.Fatalf("%v:\n%s", err, statement)
	}
	defer rows.Close()
	var details []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		check(tb, rows.Scan(&id, &parent, &unused, &detail))
		details = append(details, detail)
	}
	check(tb, rows.Err())
	return details
}

// written gives the statements of queries/ by name, without comments.
func written(tb testing.TB) map[string]string {
	tb.Helper()
	paths, err := filepath.Glob("queries/*.sql")
	check(tb, err)
	statements := make(map[string]string)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		check(tb, err)
		for _, part := range strings.Split(string(text), "-- name: ")[1:] {
			name, body, _ := strings.Cut(part, " ")
			_, body, _ = strings.Cut(body, "\n")
			body, _, _ = strings.Cut(body, "\n--")
			if statements[name] != "" {
				tb.Errorf("%s is there twice", name)
			}
			statements[name] = body
		}
	}
	return statements
}

// generated gives the constants and what follows them, up to the method, of db/ by name.
func generated(tb testing.TB) map[string]string {
	tb.Helper()
	paths, err := filepath.Glob("db/*.sql.go")
	check(tb, err)
	statements := make(map[string]string)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		check(tb, err)
		for _, part := range strings.Split(string(text), "`-- name: ")[1:] {
			name, body, _ := strings.Cut(part, " ")
			body, _, _ = strings.Cut(body, "\nfunc ")
			statements[name] = body
		}
	}
	return statements
}

// inOrder says whether each $N appears first after all lower ones.
func inOrder(text string) bool {
	highest := 0
	for _, match := range regexp.MustCompile(`\$(\d+)`).FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(match[1])
		if err != nil || n > highest+1 {
			return false
		}
		highest = max(highest, n)
	}
	return true
}
