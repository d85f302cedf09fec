package policy

import (
	"strings"
	"testing"
	"time"
)

// slowMatch is what a pattern means, word for word, in exponential time.
func slowMatch(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return slowMatch(pattern[1:], text) || text != "" && slowMatch(pattern, text[1:])
	case pattern[0] == '\\':
		pattern = pattern[1:]
	}
	return text != "" && text[0] == pattern[0] && slowMatch(pattern[1:], text[1:])
}

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "a\nb", true},
		{"a", "a", true},
		{"a", "A", false},
		{"a*", "a", true},
		{"a*a", "a", false},
		{"*a*a*", "ba", false},
		{"*ab", "abab", true},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{`a\\*`, `a\b`, true},
		{"https://a.example/*", "https://a.example.evil/", false},
		{"a**b", "ab", true},
		{"?", "a", false},
		{"[a]", "a", false},
		{"nginx", "nginx2", false},
	} {
		g, err := parseGlob(row.pattern)
		if err != nil || g.match(row.text) != row.want {
			t.Errorf("%q on %q is not %v (%v)", row.pattern, row.text, row.want, err)
		}
	}
	for _, bad := range []string{`\`, `a\b`, `\n`, `**\`} {
		if _, err := parseGlob(bad); err == nil {
			t.Errorf("%q is a pattern", bad)
		}
	}
}

// TestGlobTakesTimeInProportion: a matcher that tries again from each place would need longer than the test may take.
func TestGlobTakesTimeInProportion(t *testing.T) {
	t.Parallel()
	g, err := parseGlob(strings.Repeat("*a", 4000) + "*b")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if g.match(strings.Repeat("a", 1<<20)) {
		t.Error("it matches")
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("a*b", "aab", "x")
	f.Add(`\**\\`, `*a\`, `*\`)
	f.Fuzz(func(t *testing.T, pattern, text, literal string) {
		if g, err := parseGlob(escaped(literal)); err != nil || !g.match(literal) || g.match(text) != (text == literal) {
			t.Errorf("escaped %q: %v", literal, err)
		}
		g, err := parseGlob(pattern)
		if err != nil || strings.Count(pattern, "*") > 6 || len(pattern) > 24 || len(text) > 24 {
			return
		}
		if g.match(text) != slowMatch(pattern, text) {
			t.Errorf("%q on %q is %v", pattern, text, g.match(text))
		}
	})
}
