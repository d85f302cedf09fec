package throwbar_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxFileLines     = 500
	maxFunctionLines = 60
	maxMethods       = 6
)

var (
	// longFiles are files over the limit, longFunctions "file.go: Name", wideInterfaces "file.go: Name".
	longFiles      = exceptions{}
	longFunctions  = exceptions{}
	wideInterfaces = exceptions{}
)

func TestLawPackageComments(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if !generated(p.short()) && p.Doc == "" {
			t.Errorf("package %s has no comment that says what it is for", p.short())
		}
	}
}

// A folder that says what kind of thing it holds, instead of what about, soon holds everything.
func TestLawFolderNames(t *testing.T) {
	t.Parallel()
	banned := []string{"util", "utils", "common", "helper", "helpers", "shared", "lib", "libs", "misc", "models", "types", "internal", "pkg"}
	seen := map[string]bool{}
	for _, p := range tracked(t) {
		for dir := path.Dir(p); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			if slices.Contains(banned, path.Base(dir)) && !generated(dir) {
				t.Errorf("%s: name the folder after what it is about", dir)
			}
		}
	}
}

func TestLawFileLength(t *testing.T) {
	t.Parallel()
	breaches := map[string]string{}
	for _, p := range tracked(t) {
		if generated(p) || isTest(p) || !slices.Contains([]string{".go", ".ts", ".tsx", ".svelte", ".py", ".sh", ".proto", ".sql", ".css"}, path.Ext(p)) {
			continue
		}
		if n := bytes.Count(read(t, p), []byte("\n")); n > maxFileLines {
			breaches[p] = fmt.Sprintf("%d lines, the limit is %d", n, maxFileLines)
		}
	}
	longFiles.check(t, breaches)
}

func TestLawFunctionLength(t *testing.T) {
	t.Parallel()
	breaches := map[string]string{}
	for _, s := range sources(t) {
		if isTest(s.path) {
			continue
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			if n := s.line(f.End()) - s.line(f.Pos()) + 1; n > maxFunctionLines {
				breaches[s.path+": "+f.Name.Name] = fmt.Sprintf("%d lines, the limit is %d", n, maxFunctionLines)
			}
		}
	}
	longFunctions.check(t, breaches)
}

func TestLawNoInit(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s:%d: no init: app wires things where they can be read", s.path, s.line(f.Pos()))
			}
		}
	}
}

func TestLawSmallInterfaces(t *testing.T) {
	t.Parallel()
	sets := map[string]map[string]*ast.InterfaceType{} // folder, name
	for _, s := range sources(t) {
		dir := path.Dir(s.path)
		if sets[dir] == nil {
			sets[dir] = map[string]*ast.InterfaceType{}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if i, ok := spec.Type.(*ast.InterfaceType); ok {
					sets[dir][spec.Name.Name] = i
				}
			}
			return true
		})
	}
	breaches := map[string]string{}
	for dir, set := range sets {
		for name, i := range set {
			if n := methods(i, set); n > maxMethods {
				breaches[dir+": "+name] = fmt.Sprintf("%d methods, the limit is %d", n, maxMethods)
			}
		}
	}
	wideInterfaces.check(t, breaches)
}

// methods counts what an implementer has to write; an interface of another package counts as one.
func methods(i *ast.InterfaceType, set map[string]*ast.InterfaceType) int {
	n := 0
	for _, field := range i.Methods.List {
		embedded, isName := field.Type.(*ast.Ident)
		switch {
		case len(field.Names) > 0:
			n += len(field.Names)
		case isName && set[embedded.Name] != nil:
			n += methods(set[embedded.Name], set)
		default:
			n++
		}
	}
	return n
}

// Real time makes a test slow or flaky. In a synctest bubble time is virtual: a call outside the literal given to
// synctest.Test says so on its line.
func TestLawNoSleepInTests(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if !isTest(s.path) {
			continue
		}
		lines := strings.Split(string(read(t, s.path)), "\n")
		var bubbles []ast.Node
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch selector(call.Fun) {
			case "synctest.Test":
				bubbles = append(bubbles, call)
			case "time.Sleep":
				inside := slices.ContainsFunc(bubbles, func(b ast.Node) bool { return b.Pos() <= call.Pos() && call.End() <= b.End() })
				if !inside && !strings.Contains(lines[s.line(call.Pos())-1], "// synctest") {
					t.Errorf("%s:%d: time.Sleep in a test: wait for an event, or use synctest", s.path, s.line(call.Pos()))
				}
			}
			return true
		})
	}
}

func TestLawSkipsSayWhy(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isTest(s.path) {
				_, method, _ := strings.Cut(selector(call.Fun), ".")
				if method == "SkipNow" || (method == "Skip" || method == "Skipf") && len(call.Args) == 0 {
					t.Errorf("%s:%d: a skipped test says why", s.path, s.line(call.Pos()))
				}
			}
			return true
		})
	}
}

// selector returns "x.Name" for such an expression.
func selector(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}

// What is left to do has an issue; what must not be there at all is written in pieces, so that this file passes.
func TestLawMarks(t *testing.T) {
	t.Parallel()
	todo := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b(\(#\d+\))?`)
	machine := regexp.MustCompile(`(^|[\s"'` + "`" + `=(:,])/(?:work|root)/`)
	hosts := regexp.MustCompile(`\b(` + strings.Join([]string{
		`proxy\.gol` + `ang\.org`, `sum\.gol` + `ang\.org`, `registry\.npm` + `js\.org`, `npm` + `js\.com`, `deb\.deb` + `ian\.org`,
		`security\.deb` + `ian\.org`, `py` + `pi\.org`, `crates\.` + `io`,
	}, "|") + `)\b`)
	for _, p := range tracked(t) {
		if slices.Contains([]string{".binpb", ".png"}, path.Ext(p)) || under(p, "third_party") {
			continue
		}
		for i, line := range bytes.Split(read(t, p), []byte("\n")) {
			if m := todo.FindSubmatch(line); m != nil && (string(m[1]) != "TO"+"DO" || m[2] == nil) && path.Ext(p) != ".md" {
				t.Errorf("%s:%d: %s has no issue; write TO"+"DO(#n)", p, i+1, m[1])
			}
			if machine.Match(line) {
				t.Errorf("%s:%d: a path of one machine: %s", p, i+1, line)
			}
			if m := hosts.Find(line); m != nil {
				t.Errorf("%s:%d: the host of a registry: %s", p, i+1, m)
			}
		}
	}
}

// os.Exit skips what was deferred: only a program's main may call it.
func TestLawOnlyMainExits(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.file.Name.Name == "main" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok && selector(e) == "os.Exit" && !isTest(s.path) {
				t.Errorf("%s:%d: os.Exit outside main", s.path, s.line(n.Pos()))
			}
			return true
		})
	}
}
