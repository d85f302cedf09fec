package throwbar_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// nameless are the trees that must work for a command they have never heard of.
var nameless = []string{"server", "agent", "clients/cli", "clients/console"}

// namesAllowed are the rich views and the few places that must know one command: "file: name".
var namesAllowed = exceptions{}

// generic are members whose name is no command's: the member custom carries any method of a device's own service.
var generic = []string{"custom"}

// TestLawNoCommandByName holds the one-place rule: a command is declared in proto/throwbar/command and implemented on
// devices; everything between reads the catalogue.
func TestLawNoCommandByName(t *testing.T) {
	t.Parallel()
	names := commandNames(t)
	breaches := map[string]string{}
	note := func(p string, line int, name string) {
		if command, ok := names[name]; ok {
			breaches[p+": "+command] = fmt.Sprintf("line %d knows a command by name (%s); read the catalogue", line, name)
		}
	}
	for _, s := range sources(t) {
		if under(s.path, nameless...) && !isTest(s.path) {
			goNames(s, note)
		}
	}
	word := regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	comment := regexp.MustCompile(`^\s*(//|\*|/\*|--)`)
	for _, p := range tracked(t) {
		if !under(p, nameless...) || isTest(p) || !slices.Contains([]string{".ts", ".tsx", ".js", ".svelte", ".html", ".sql"}, path.Ext(p)) {
			continue
		}
		for i, line := range strings.Split(string(read(t, p)), "\n") {
			if comment.MatchString(line) {
				continue
			}
			for _, w := range word.FindAllString(line, -1) {
				note(p, i+1, w)
			}
		}
	}
	namesAllowed.check(t, breaches)
}

// commandNames maps every spelling under which code could know a command to the command.
func commandNames(t *testing.T) map[string]string {
	t.Helper()
	names := map[string]string{}
	for _, m := range members(t) {
		name := string(m.action.Name())
		if slices.Contains(generic, name) {
			continue
		}
		camel := string(m.action.Message().Name())
		for _, spelling := range []string{
			name, m.action.JSONName(), camel, strings.ReplaceAll(name, "_", "-"),
			"Get" + camel, "Action_" + camel, "Result_" + camel, camel + "_Result", camel + "Schema", camel + "_ResultSchema",
		} {
			names[spelling] = m.action.JSONName()
		}
	}
	return names
}

// goNames reports the identifiers and the words in string literals of a file. A name that another package gives, such
// as os.ReadFile, is not meant, unless that package is the contract.
func goNames(s source, note func(p string, line int, name string)) {
	foreign := map[string]bool{}
	for _, spec := range s.file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil || strings.HasPrefix(p, module+"/gen/go") {
			continue
		}
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		foreign[name] = true
	}
	word := regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_-]*`)
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && foreign[x.Name] {
				return false
			}
		case *ast.Ident:
			note(s.path, s.line(n.Pos()), n.Name)
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				for _, w := range word.FindAllString(n.Value, -1) {
					note(s.path, s.line(n.Pos()), w)
				}
			}
		}
		return true
	})
}
