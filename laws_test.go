// Package throwbar_test holds the laws of this repository: what the design says about imports, names, sizes and the
// contract, checked against every file that git knows or would take. A law that has exceptions lists them with a
// reason, and an exception that is no longer needed fails too, so the lists can only shrink.
//
//	laws_test.go           what the laws share
//	laws_import_test.go    which package may reach which, drivers, packages for tests
//	laws_source_test.go    package comments, folder names, sizes, init, interfaces, tests, marks
//	laws_name_test.go      the one-place rule: no command is known by name
//	laws_contract_test.go  descriptors, options, buf breaking
//	laws_sql_test.go       what the SQL must be so that two engines read it alike
package throwbar_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	module   = "throwbar.dev/throwbar"
	buildTag = "sqlite_fts5"
)

// run executes a program at the root and returns what it printed.
func run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return out.Bytes()
}

var trackedOnce struct {
	sync.Once
	paths []string
}

// tracked returns the path of every file that is committed or would be: what .gitignore names is left out.
func tracked(t *testing.T) []string {
	t.Helper()
	trackedOnce.Do(func() {
		out := run(t, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
		for p := range strings.SplitSeq(string(out), "\x00") {
			if _, err := os.Lstat(p); p != "" && err == nil {
				trackedOnce.paths = append(trackedOnce.paths, p)
			}
		}
	})
	if len(trackedOnce.paths) == 0 {
		t.Fatal("git names no file")
	}
	return trackedOnce.paths
}

// under says whether a path is one of the folders or inside one.
func under(p string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return p == f || strings.HasPrefix(p, f+"/") })
}

// generated says whether a machine wrote the file.
func generated(p string) bool {
	return under(p, "gen", "store/db", "third_party") || strings.HasPrefix(path.Base(p), "package-lock")
}

// testFolder matches a folder of test code: one called something-test, as the standard library's httptest, or e2e.
var testFolder = regexp.MustCompile(`(^|/)(\w*test|e2e|testdata)(/|$)`)

// isTest says whether a file is test code.
func isTest(p string) bool {
	return strings.HasSuffix(p, "_test.go") || strings.HasSuffix(p, ".test.ts") || testFolder.MatchString(path.Dir(p))
}

func read(t *testing.T, p string) []byte {
	t.Helper()
	data, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// source is one parsed Go file.
type source struct {
	path string
	file *ast.File
	set  *token.FileSet
}

func (s source) line(p token.Pos) int { return s.set.Position(p).Line }

var sourcesOnce struct {
	sync.Once
	all []source
}

// sources returns every hand-written Go file of all modules.
func sources(t *testing.T) []source {
	t.Helper()
	sourcesOnce.Do(func() {
		set := token.NewFileSet()
		for _, p := range tracked(t) {
			if path.Ext(p) != ".go" || generated(p) || under(p, "tools/cmd/protoc-gen-throwbar-go/testdata") {
				continue
			}
			file, err := parser.ParseFile(set, p, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			sourcesOnce.all = append(sourcesOnce.all, source{p, file, set})
		}
	})
	return sourcesOnce.all
}

// goPackage is what go list tells about one package of the main module; test files are not in it.
type goPackage struct {
	ImportPath, Name, Doc  string
	GoFiles, Imports, Deps []string
}

// forTests says whether the package exists for tests only.
func (p goPackage) forTests() bool { return testFolder.MatchString(p.short()) }

// short is the path inside the module.
func (p goPackage) short() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

var packagesOnce struct {
	sync.Once
	own   []goPackage
	graph map[string][]string
}

func loadPackages(t *testing.T) {
	t.Helper()
	packagesOnce.Do(func() {
		packagesOnce.graph = map[string][]string{}
		out := run(t, "go", "list", "-tags", buildTag, "-deps", "-json=ImportPath,Name,Doc,GoFiles,Imports,Deps", "./...")
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var p goPackage
			err := dec.Decode(&p)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			packagesOnce.graph[p.ImportPath] = p.Imports
			if len(p.GoFiles) > 0 && under(p.ImportPath, module) {
				packagesOnce.own = append(packagesOnce.own, p)
			}
		}
	})
	if len(packagesOnce.own) == 0 {
		t.Fatal("go list names no package")
	}
}

// packages returns every package of this module that has more than tests.
func packages(t *testing.T) []goPackage {
	t.Helper()
	loadPackages(t)
	return packagesOnce.own
}

// imports returns what each package imports, ours and others'.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	loadPackages(t)
	return packagesOnce.graph
}

// exceptions maps what may break a law to the reason.
type exceptions map[string]string

// check reports breaches that are not excepted, and exceptions that excuse nothing.
func (e exceptions) check(t *testing.T, breaches map[string]string) {
	t.Helper()
	for name, what := range breaches {
		if e[name] == "" {
			t.Errorf("%s: %s", name, what)
		}
	}
	for name, why := range e {
		if _, ok := breaches[name]; !ok {
			t.Errorf("the exception for %s (%s) is no longer needed: remove it", name, why)
		}
	}
}
