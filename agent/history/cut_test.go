package history_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"throwbar.dev/throwbar/agent/history"
)

func TestCutSaysHowMuchIsLeftOut(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a", 3000) + strings.Repeat("z", 3000)
	got := history.Cut(text, 1000)
	head, rest, _ := strings.Cut(got, "\n[… ")
	remark, tail, found := strings.Cut(rest, " …]\n")
	var left, of int
	if n, err := fmt.Sscanf(remark, "%d of %d bytes left out here", &left, &of); n != 2 || err != nil || !found {
		t.Fatalf("no remark in %q", got)
	}
	if left+len(head)+len(tail) != of || of != len(text) || len(got) > 1000 || len(got) < 900 {
		t.Errorf("%d + %d + %d of %d, %d bytes", len(head), left, len(tail), of, len(got))
	}
	if strings.Trim(head, "a") != "" || strings.Trim(tail, "z") != "" || len(head) < len(tail) {
		t.Errorf("head %q tail %q", head, tail)
	}
	if history.Cut("short", 100) != "short" || history.Cut("short", 3) != "sho" || history.Cut("éé", 1) != "" || history.Cut("x", -1) != "" {
		t.Error("short texts")
	}
	if got := history.Cut("a\xffb", 100); got != "a\uFFFDb" {
		t.Errorf("%q", got)
	}
}

// TestCutKeepsCharactersWhole cuts texts of characters that are made of several at every length, and looks for halves.
func TestCutKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	for _, whole := range []string{"é", "😀", "e\u0301", "👩‍👩‍👧", "👍🏽", "🇨🇭", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", `\u00e9`, `\ud83d\ude00`, `\n`, `\\`, "\r\n", "❤️"} {
		text := strings.Repeat(whole, 400/len(whole))
		for most := range len(text) {
			got := history.Cut(text, most)
			if len(got) > most {
				t.Fatalf("%q cut to %d has %d bytes", whole, most, len(got))
			}
			head, rest, _ := strings.Cut(got, "\n[… ")
			_, tail, _ := strings.Cut(rest, " …]\n")
			if strings.ReplaceAll(head, whole, "") != "" || strings.ReplaceAll(tail, whole, "") != "" {
				t.Fatalf("%q cut to %d: %q … %q", whole, most, head, tail)
			}
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("abc", 2)
	f.Add(strings.Repeat("👩‍👩‍👧", 40), 90)
	f.Add(strings.Repeat("\u0301", 300), 100)
	f.Add(strings.Repeat("\xff\xed\xa0\xbd", 60), 100)
	f.Add(strings.Repeat(`\`, 300), 120)
	f.Fuzz(func(t *testing.T, text string, most int) {
		got := history.Cut(text, most)
		valid := strings.ToValidUTF8(text, "\uFFFD")
		switch {
		case !utf8.ValidString(got):
			t.Errorf("not valid: %q", got)
		case len(got) > max(most, 0):
			t.Errorf("%d bytes, not %d", len(got), most)
		case len(valid) <= most && got != valid:
			t.Errorf("%q became %q", text, got)
		}
		if head, rest, cut := strings.Cut(got, "\n[… "); cut && len(valid) > most {
			if _, tail, ok := strings.Cut(rest, " …]\n"); ok && !strings.Contains(valid, "[…") &&
				(!strings.HasPrefix(valid, head) || !strings.HasSuffix(valid, tail)) {
				t.Errorf("%q is not the ends of %q", got, valid)
			}
		}
	})
}
