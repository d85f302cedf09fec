package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// defence is one case: what to take out, and which test has to notice.
type defence struct {
	Row     string `json:"row"`     // of the facts, for example "security 2"
	Defence string `json:"defence"` // what is taken out, in words
	File    string `json:"file"`    // from the root
	Old     string `json:"old"`     // occurs once
	New     string `json:"new"`
	Package string `json:"package"`           // for example ./server/rpc
	Run     string `json:"run"`               // the test
	Command string `json:"command,omitempty"` // instead of package and run: what to run by hand, for tests that are not Go's
}

// load reads all cases, in the order of their rows.
func load(folder string) ([]defence, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []defence
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		var cases []defence
		if err := d.Decode(&cases); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		all = append(all, cases...)
	}
	if len(all) == 0 {
		return nil, errors.New("there are no cases")
	}
	slices.SortStableFunc(all, func(a, b defence) int { return cmp.Compare(order(a.Row), order(b.Row)) })
	return all, nil
}

// order makes "security 9" come before "security 10".
func order(row string) string {
	name, number, ok := strings.Cut(row, " ")
	if !ok {
		return row
	}
	return fmt.Sprintf("%s %6s", name, number)
}

// mutated is the source without the defence.
func (d defence) mutated(root string) ([]byte, error) {
	switch {
	case d.Row == "" || d.Defence == "" || d.File == "" || d.Old == "":
		return nil, errors.New("row, defence, file and old have to be set")
	case d.Command == "" && (d.Package == "" || d.Run == ""):
		return nil, errors.New("package and run have to be set, or command")
	}
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(d.File)))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(raw), d.Old); n != 1 {
		return nil, fmt.Errorf("the text to take out of %s occurs %d times", d.File, n)
	}
	return []byte(strings.Replace(string(raw), d.Old, d.New, 1)), nil
}

// verdict is what became of a test without its defence.
type verdict struct {
	noticed bool
	why     string
}

func (v verdict) word() string {
	if v.noticed {
		return "fails"
	}
	return "MISSED"
}

// try runs the test on a source, in an overlay.
func (d defence) try(ctx context.Context, root, tags string, source []byte) (verdict, error) {
	dir, err := os.MkdirTemp("", "defence")
	if err != nil {
		return verdict{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // of no use any more
	changed, overlay := filepath.Join(dir, filepath.Base(d.File)), filepath.Join(dir, "overlay.json")
	places, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(root, filepath.FromSlash(d.File)): changed},
	})
	if err != nil {
		return verdict{}, err
	}
	if err := errors.Join(os.WriteFile(changed, source, 0o600), os.WriteFile(overlay, places, 0o600)); err != nil {
		return verdict{}, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-tags", tags, "-count=1", "-timeout=5m", "-overlay", overlay, "-run", d.Run, d.Package)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return verdict{}, context.Cause(ctx)
	}
	return judge(string(out), err), nil
}

// judge reads the output of a test without its defence. A source that does not build shows nothing.
func judge(out string, err error) verdict {
	switch {
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return verdict{why: "(does not build: " + first(out) + ")"}
	case strings.Contains(out, "no tests to run"):
		return verdict{why: "(there is no such test)"}
	case err == nil:
		return verdict{why: "(passes without it)"}
	case !strings.Contains(out, "--- FAIL") && !strings.Contains(out, "panic:") && !strings.Contains(out, "DATA RACE"):
		return verdict{why: "(ended otherwise: " + first(out) + ")"}
	default:
		return verdict{noticed: true}
	}
}

// first is the first line that says something.
func first(out string) string {
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}
