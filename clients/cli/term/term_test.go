package term_test

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"throwbar.dev/throwbar/clients/cli/term"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":                   "plain",
		"naïve 漢字 👩\u200d💻":       "naïve 漢字 👩\u200d💻",
		"\x1b[31mred\x07":         `\x1b[31mred\x07`,
		"gpj.\u202egood":          `gpj.\u202egood`,
		"a\u2066b\u2069":          `a\u2066b\u2069`,
		"a\u200bb\ufeffc":         `a\u200bb\ufeffc`,
		"a\nb\tc\rd":              `a\nb\tc\rd`,
		"\x9b31m":                 `\x9b31m`,
		"c1 \u009b31m":            `c1 \u009b31m`,
		"tag\U000e0041":           `tag\U000e0041`,
		"line\u2028end":           `line\u2028end`,
		"del\x7f":                 `del\x7f`,
		"cut \xe2\x82":            `cut \xe2\x82`,
		"the replacement \ufffd.": "the replacement \ufffd.",
	} {
		if got := term.Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
	if got := term.VisibleText("a\n\tb\x1b"); got != "a\n\tb\\x1b" {
		t.Errorf("VisibleText = %q", got)
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("title \u202e\x1b]0;x\x07")
	f.Add("\xff\xfe")
	f.Fuzz(func(t *testing.T, in string) {
		out := term.Visible(in)
		if !utf8.ValidString(out) {
			t.Fatalf("%q: not UTF-8", out)
		}
		for _, r := range out {
			if r != '\u200c' && r != '\u200d' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				t.Fatalf("%q: %U is left", out, r)
			}
		}
		if term.Visible(out) != out {
			t.Fatalf("%q changes when made visible again", out)
		}
	})
}

func TestFitAndWidth(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		in    string
		width int
		want  string
	}{
		{"short", 5, "short"},
		{"longer text", 6, "longe…"},
		{"漢字漢字", 5, "漢字…"},
		{"e\u0301te\u0301s", 3, "e\u0301t…"},
	} {
		got := term.Fit(row.in, row.width)
		if got != row.want || term.Width(got) > row.width {
			t.Errorf("Fit(%q, %d) = %q", row.in, row.width, got)
		}
	}
}

func TestTableFitsATerminalAndIsWholeElsewhere(t *testing.T) {
	t.Parallel()
	table := term.Table{
		Header: []string{"id", "title", "note"},
		Rows: [][]term.Cell{
			{term.Text("k3v9_t1-1"), term.Text(strings.Repeat("word ", 30)), term.Text("")},
			{term.Text("k3v9_t1-22"), term.Text("evil \x1b[2J\u202e"), term.Text("")},
		},
		Shrink: []int{1}, DropEmpty: true,
	}
	var narrow, whole bytes.Buffer
	(&term.Screen{W: &narrow, Terminal: true, Width: 40}).Table(table)
	(&term.Screen{W: &whole, Width: 40}).Table(table)
	for line := range strings.Lines(narrow.String()) {
		if term.Width(strings.TrimSuffix(line, "\n")) > 40 {
			t.Errorf("too wide: %q", line)
		}
	}
	if !strings.Contains(whole.String(), strings.Repeat("word ", 29)+"word") {
		t.Errorf("cut although no terminal:\n%s", whole.String())
	}
	for _, out := range []string{narrow.String(), whole.String()} {
		if !strings.Contains(out, "k3v9_t1-22") || strings.ContainsAny(out, "\x1b\u202e") || strings.Contains(out, "NOTE") {
			t.Errorf("table:\n%q", out)
		}
	}
}

func TestColoursOnlyWhereTheyShow(t *testing.T) {
	t.Parallel()
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	yes := func(any) bool { return true }
	no := func(any) bool { return false }
	for _, row := range []struct {
		env      func(string) string
		terminal func(any) bool
		want     bool
	}{
		{env(), yes, true},
		{env(), no, false},
		{env("NO_COLOR", "1"), yes, false},
		{env("TERM", "dumb"), yes, false},
	} {
		var out bytes.Buffer
		s := term.Detect(&out, row.env, row.terminal)
		s.Line(term.Red, "x")
		if got := strings.Contains(out.String(), "\x1b["); got != row.want {
			t.Errorf("coloured = %v, want %v", got, row.want)
		}
	}
	if s := term.Detect(&bytes.Buffer{}, env("COLUMNS", "77"), yes); s.Width != 77 {
		t.Errorf("width = %d", s.Width)
	}
	if term.IsTerminal(&bytes.Buffer{}) {
		t.Error("a buffer is no terminal")
	}
}

func TestWhen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0:                        "just now",
		12 * time.Second:         "12 s ago",
		59900 * time.Millisecond: "1 min ago",
		3 * time.Minute:          "3 min ago",
		5 * time.Hour:            "5 h ago",
		72 * time.Hour:           "3 d ago",
		-4*time.Minute - 1:       "in 4 min",
		20 * 24 * time.Hour:      "2026-11-08",
		-2500 * 24 * 3600e09:     "in 2500 d",
	} {
		if got := term.When(now.Add(-d), now); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	if got := term.When(time.Time{}, now); got != "never" {
		t.Errorf("zero: %q", got)
	}
}
