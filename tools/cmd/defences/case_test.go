package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestACaseHasToFitTheSources(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("if !ok {\n\treturn\n}\nif !ok {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := defence{Row: "security 1", Defence: "a check", File: "a.go", Old: "if !ok {\n", New: "if false {\n", Package: ".", Run: "T"}
	got, err := whole.mutated(root)
	if err != nil || string(got) != "if false {\n\treturn\n}\nif !ok {}\n" {
		t.Errorf("got %q, %v", got, err)
	}
	for what, change := range map[string]func(*defence){
		"a text that occurs twice": func(d *defence) { d.Old = "if !ok" },
		"a text that is not there": func(d *defence) { d.Old = "if ok" },
		"no text":                  func(d *defence) { d.Old = "" },
		"no test":                  func(d *defence) { d.Run = "" },
		"a file that is not there": func(d *defence) { d.File = "b.go" },
	} {
		d := whole
		change(&d)
		if _, err := d.mutated(root); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

func TestOnlyAFailureOfTheTestCounts(t *testing.T) {
	t.Parallel()
	failed := errors.New("exit status 1")
	for _, c := range []struct {
		out     string
		err     error
		noticed bool
		why     string
	}{
		{"--- FAIL: TestX (0.00s)\nFAIL\n", failed, true, ""},
		{"panic: test timed out", failed, true, ""},
		{"ok  \tx\t0.1s\n", nil, false, "passes"},
		{"ok  \tx\t0.1s [no tests to run]\n", nil, false, "no such test"},
		{"# x\na.go:1: undefined: y\nFAIL\tx [build failed]\n", failed, false, "undefined: y"},
		{"cannot find package\n", failed, false, "cannot find"},
	} {
		if got := judge(c.out, c.err); got.noticed != c.noticed || !strings.Contains(got.why, c.why) {
			t.Errorf("%q: %+v", c.out, got)
		}
	}
}

func TestCasesAreInOrderOfTheirRows(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if _, err := load(folder); err == nil {
		t.Error("no cases are enough")
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.json", `[{"row": "security 10"}, {"row": "security 9"}]`)
	write("b.json", `[{"row": "approval 2"}]`)
	all, err := load(folder)
	if err != nil || len(all) != 3 || all[0].Row != "approval 2" || all[1].Row != "security 9" {
		t.Errorf("got %+v, %v", all, err)
	}
	write("c.json", `[{"rwo": "security 10"}]`)
	if _, err := load(folder); err == nil {
		t.Error("a misspelt field is taken")
	}
}
