package throwbar_test

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// direction says what packages may not reach, directly or through others. Patterns are folders of this module, where
// "..." stands for any text as in the go command, or import paths of the standard library and other modules.
type direction struct {
	from   []string
	except []string // of mayNot
	mayNot []string
	why    string
}

// cores are the parts of the server that decide; they are tested without a network or a database.
var cores = []string{
	"server/policy/...", "server/approval/...", "server/dispatch/...", "server/link/...",
	"server/device/...", "server/browser/...", "server/event/...",
}

var directions = []direction{
	{
		from: []string{"gen/..."}, mayNot: []string{"..."}, except: []string{"gen/..."},
		why: "generated code is the bottom: it knows nothing of ours",
	},
	{
		from: []string{"catalog/...", "ident/..."}, except: []string{"gen/...", "catalog/...", "ident/..."},
		mayNot: []string{"...", "net/http", "database/sql", "connectrpc.com/...", "gen/go/...connect"},
		why:    "both sides of the wire read the catalogue and the ids; they bring nothing with them",
	},
	{
		from: []string{"auditlog/..."}, except: []string{"gen/...", "auditlog/..."},
		mayNot: []string{"...", "net/http", "database/sql", "connectrpc.com/...", "gen/go/...connect"},
		why:    "a record is checked without the server that wrote it, by whoever has a copy",
	},
	{
		from:   cores,
		mayNot: []string{"server/rpc/...", "store/...", "database/sql", "net/http", "connectrpc.com/...", "gen/go/...connect"},
		why:    "a core is pure: transport and storage reach it through its own small interfaces",
	},
	{
		from: []string{"server/..."}, mayNot: []string{"agent/...", "clients/...", "app/...", "cmd/..."},
		why: "the server is whole without the agent and the clients",
	},
	{
		from: []string{"agent/..."}, mayNot: []string{"server/...", "clients/...", "app/...", "cmd/..."},
		why: "the agent declares what it needs and app wires it",
	},
	{
		from:   []string{"agent/turn/...", "agent/tool/...", "agent/model/...", "agent/history/...", "agent/conversation/...", "agent/task/..."},
		mayNot: []string{"agent/rpc/...", "store/...", "database/sql", "gen/go/...connect"},
		why:    "the loop is tested without a database or a transport",
	},
	{
		from: []string{"clients/..."}, mayNot: []string{"server/...", "agent/...", "store/...", "app/...", "cmd/..."},
		why: "clients speak only the API, so that a client in another language can do all they do",
	},
	{
		from: []string{"store/..."}, mayNot: []string{"server/...", "agent/...", "clients/...", "app/...", "cmd/..."},
		why: "the store serves both owners and belongs to neither",
	},
	{
		from: []string{"app/..."}, mayNot: []string{"cmd/..."},
		why: "programs are thin: nothing imports them",
	},
}

// sealed are packages of others whose own imports do not count, with the reason.
var sealed = map[string]string{
	"golang.org/x/net/publicsuffix": "a table of domains; it reaches net/http only to implement an interface of its cookie jar",
}

// later are folders that the design names and a later change adds. One that exists must leave this list.
var later = []string{
	"agent/task",
}

func TestLawImportDirections(t *testing.T) {
	t.Parallel()
	all := packages(t)
	var rows []string
	for _, d := range directions {
		rows = slices.Concat(rows, d.from, d.mayNot)
	}
	checkFolders(t, all, rows)
	for _, d := range directions {
		from, mayNot, except := patterns(d.from), patterns(d.mayNot), patterns(d.except)
		for _, p := range all {
			if !from(p.ImportPath) || p.forTests() {
				continue
			}
			for dep, road := range reach(t, p.ImportPath) {
				if mayNot(dep) && !except(dep) {
					t.Errorf("%s: %s", strings.ReplaceAll(road, module+"/", ""), d.why)
				}
			}
		}
	}
}

// reach returns every package that one reaches, with the shortest road to it.
func reach(t *testing.T, from string) map[string]string {
	t.Helper()
	graph := imports(t)
	roads := map[string]string{}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if sealed[at] != "" {
			continue
		}
		for _, dep := range graph[at] {
			if _, seen := roads[dep]; !seen && dep != from {
				roads[dep] = cmp.Or(roads[at], from) + " → " + dep
				queue = append(queue, dep)
			}
		}
	}
	return roads
}

// checkFolders fails for a pattern that names a folder of ours which is not there: a stale row guards nothing.
func checkFolders(t *testing.T, all []goPackage, rows []string) {
	t.Helper()
	slices.Sort(rows)
	for _, row := range slices.Compact(rows) {
		folder, isTree := strings.CutSuffix(row, "/...")
		if !isTree || strings.Contains(folder, ".") {
			continue
		}
		exists := slices.ContainsFunc(all, func(p goPackage) bool { return under(p.short(), folder) })
		switch planned := slices.Contains(later, folder); {
		case exists && planned:
			t.Errorf("%s exists: take it off the list of later folders", folder)
		case !exists && !planned:
			t.Errorf("the table names %s, which has no package", folder)
		}
	}
}

// patterns compiles the rows: "a/..." is a and all below, "..." elsewhere is any text.
func patterns(rows []string) func(string) bool {
	var parts []string
	for _, row := range rows {
		if first, _, _ := strings.Cut(row, "/"); row != "net/http" && row != "database/sql" && !strings.Contains(first, ".com") {
			row = module + "/" + row
		}
		p := regexp.QuoteMeta(row)
		if tree, ok := strings.CutSuffix(p, regexp.QuoteMeta("/...")); ok {
			p = tree + "(/.*)?"
		}
		parts = append(parts, strings.ReplaceAll(p, regexp.QuoteMeta("..."), ".*"))
	}
	return regexp.MustCompile("^(" + strings.Join(parts, "|") + ")$").MatchString
}

func TestLawOneCompositionRoot(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if under(p.short(), "app", "cmd") || p.forTests() {
			continue
		}
		var trees []string
		for _, tree := range []string{"server", "agent", "clients"} {
			if slices.ContainsFunc(append(p.Deps, p.ImportPath), patterns([]string{tree + "/..."})) {
				trees = append(trees, tree)
			}
		}
		if len(trees) > 1 {
			t.Errorf("%s reaches %s: only app puts them together", p.short(), strings.Join(trees, " and "))
		}
	}
}

func TestLawThinPrograms(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if p.Name != "main" || !under(p.short(), "cmd") {
			continue
		}
		for _, dep := range p.Imports {
			if strings.Contains(dep, ".") && dep != module+"/app" {
				t.Errorf("%s imports %s: a program calls app and nothing else", p.short(), dep)
			}
		}
	}
}

func TestLawTestPackagesStayInTests(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if p.forTests() {
			continue
		}
		for _, dep := range p.Deps {
			if own, ok := strings.CutPrefix(dep, module+"/"); dep == "testing" || ok && testFolder.MatchString(own) {
				t.Errorf("%s reaches %s, which is for tests", p.short(), dep)
			}
		}
	}
}

// Two SQLite libraries in one process break each other's file locks: two of them on one file destroyed it within 10 s.
func TestLawOneSQLiteDriver(t *testing.T) {
	t.Parallel()
	for dep, want := range map[string]bool{
		"modernc.org/sqlite": true, "modernc.org/sqlite/lib": true, "github.com/ncruces/go-sqlite3/driver": true,
		"github.com/glebarez/go-sqlite": true, "zombiezen.com/go/sqlite": true, "github.com/tursodatabase/go-libsql": true,
		"github.com/mattn/go-sqlite3": false, module + "/store": false,
		"github.com/pressly/goose/v3/internal/dialects": false,
	} {
		if secondSQLite(dep) != want {
			t.Fatalf("the law itself is wrong about %s", dep)
		}
	}
	out := run(t, "go", "list", "-tags", buildTag, "-deps", "-test", "./...")
	if !strings.Contains(string(out), "github.com/mattn/go-sqlite3\n") {
		t.Fatal("the first driver is not linked: is this list the right one?")
	}
	for dep := range strings.Lines(string(out)) {
		if dep = strings.TrimSpace(dep); secondSQLite(dep) {
			t.Errorf("%s is linked beside mattn/go-sqlite3", dep)
		}
	}
}

func secondSQLite(dep string) bool {
	if under(dep, module, "github.com/mattn/go-sqlite3", "github.com/pressly/goose/v3") || strings.HasPrefix(dep, module) {
		return false
	}
	lower := strings.ToLower(dep)
	return strings.Contains(lower, "sqlite") || strings.Contains(lower, "libsql")
}
