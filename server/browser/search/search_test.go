package search_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"throwbar.dev/throwbar/server/browser/search"
)

func TestFoldWritesAlike(t *testing.T) {
	t.Parallel()
	for _, row := range [][]string{
		{"YouTube", "youtube", "YOUTUBE", "ＹｏｕＴｕｂｅ", "you\u00adtube", "\u202ayoutube\u202c"},
		{"Straße", "STRASSE", "strasse", "STRAẞE"},
		{"ΟΔΥΣΣΕΥΣ", "οδυσσευς", "οδυσσευσ"},
		{"İstanbul", "istanbul", "ISTANBUL", "ıstanbul", "I\u0307stanbul"},
		{"Café", "CAFE\u0301", "cafe\u0301"},
		{"ПРИВЕТ", "привет"},
		{"ﬁle", "FILE"},
		{"한글", "\u1112\u1161\u11ab\u1100\u1173\u11af"},
		{"ԲԱՐԵՎ", "բարեվ"},
		{"ⴀ", "Ⴀ"},
	} {
		for _, s := range row[1:] {
			if search.Fold(s) != search.Fold(row[0]) {
				t.Errorf("Fold(%q) = %q, Fold(%q) = %q", s, search.Fold(s), row[0], search.Fold(row[0]))
			}
		}
	}
	if a, b := search.Fold("cafe"), search.Fold("café"); a == b {
		t.Error("an accent makes no difference")
	}
}

// scripts are stretches that texts and queries are made of, chosen to meet at the borders of atoms.
var scripts = strings.Split("a|b|com|.com|https://|http://|www.|youtube|.|/|//|?|&|=|#|-|_|+|%|%20|é|e\u0301|ß|SS|σ|ς|Σ|İ|i|I|ı|東|京|東京タワー|"+
	"привет|Мир|한|글|नमस्ते|👍🏽|ﬁ| |\t|\u00a0|\u3000|0|1|123|xn--|\u200d|\n|go|dev|doc|watch?v=|://|שלום|مرحبا|\xff|\x00", "|")

func text(r *rand.Rand, most int) string {
	var b strings.Builder
	for range r.IntN(most + 1) {
		b.WriteString(scripts[r.IntN(len(scripts))])
	}
	return b.String()
}

func query(r *rand.Rand, texts [][]string) string {
	if r.IntN(2) == 0 {
		return text(r, 4)
	}
	own := texts[r.IntN(len(texts))]
	letters := []rune(own[r.IntN(len(own))])
	if len(letters) == 0 {
		return "x"
	}
	from := r.IntN(len(letters))
	return string(letters[from:min(len(letters), from+1+r.IntN(8))])
}

// TestIndexAnswersAsAReaderWould puts, takes and replaces texts at random and compares every answer with reading all.
func TestIndexAnswersAsAReaderWould(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		for _, x := range []*search.Index{search.New(), search.NewWith(0, 0), search.NewWith(0, 64), search.NewWith(1<<30, 0)} {
			differential(t, x, rand.New(rand.NewPCG(seed, 7)), 1500)
		}
	}
}

func folded(texts ...string) []string {
	for i := range texts {
		texts[i] = search.Fold(texts[i])
	}
	return texts
}

func differential(t *testing.T, x *search.Index, r *rand.Rand, steps int) {
	t.Helper()
	const pages = 3
	for range pages {
		x.Page()
	}
	var an search.Analyzer
	texts := make([][]string, pages*search.PageSize)
	for step := range steps {
		slot := uint32(r.IntN(len(texts)))
		if texts[slot] != nil {
			x.Take(slot, an.Terms(texts[slot]))
			texts[slot] = nil
		}
		if r.IntN(4) > 0 {
			texts[slot] = folded(text(r, 10), text(r, 14))
			x.Put(slot, an.Terms(texts[slot]))
		}
		if step%7 != 0 || texts[slot] == nil {
			continue
		}
		compare(t, x, texts, query(r, texts[slot:slot+1]))
	}
	for slot, own := range texts {
		if own != nil {
			x.Take(uint32(slot), an.Terms(own))
			texts[slot] = nil
		}
	}
	for _, word := range scripts {
		compare(t, x, texts, word)
	}
}

func compare(t *testing.T, x *search.Index, texts [][]string, query string) {
	t.Helper()
	words := search.Words(query)
	answer := x.Find(words, func(slot uint32, word string) bool { return search.Match(texts[slot], []string{word}) })
	for slot, own := range texts {
		if own == nil && len(words) == 0 {
			continue
		}
		got := answer.Page(uint32(slot/search.PageSize))&(1<<(slot%search.PageSize)) != 0
		if want := own != nil && search.Match(own, words); got != want {
			t.Fatalf("query %q (%q), texts %q: found %v, want %v", query, words, own, got, want)
		}
	}
}

// TestChurnDoesNotGrow replaces unique texts for a long time: what is gone gives its room back.
func TestChurnDoesNotGrow(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	x := search.New()
	x.Page()
	var an search.Analyzer
	texts := make([][]string, search.PageSize)
	for step := range 20_000 {
		slot := uint32(r.IntN(len(texts)))
		if texts[slot] != nil {
			x.Take(slot, an.Terms(texts[slot]))
		}
		var b strings.Builder
		b.WriteString("https://www.host.example/")
		for range 12 {
			b.WriteByte(byte('a' + r.IntN(26)))
		}
		texts[slot] = folded(b.String())
		x.Put(slot, an.Terms(texts[slot]))
		if step%997 == 0 {
			compare(t, x, texts, texts[slot][0][25:31])
		}
	}
	if n := x.Blocks(); n > 8 {
		t.Errorf("64 texts take %d blocks", n)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add("YouTube – cats", "https://www.youtube.com/watch?v=1", "youtube.com cat")
	f.Add("İstanbul\u0307", "http://xn--e1afmkfd.example/%D0%BC?x=\xff", "\u0307 i")
	f.Add("", "://", "//")
	f.Fuzz(func(t *testing.T, title, url, query string) {
		if len(title)+len(url) > 1<<12 {
			t.Skip("longer texts are cut before they come here")
		}
		x := search.NewWith(0, len(query)%3)
		x.Page()
		var an search.Analyzer
		texts := make([][]string, search.PageSize)
		compare(t, x, texts, query) // remembers the words before there are texts
		for slot, own := range [][]string{{title, url}, {url, title + url}, {title}, {query}} {
			texts[slot] = folded(own...)
			x.Put(uint32(slot), an.Terms(texts[slot]))
		}
		compare(t, x, texts, query)
		for slot, own := range texts {
			if own != nil {
				x.Take(uint32(slot), an.Terms(own))
				texts[slot] = nil
			}
		}
		compare(t, x, texts, query)
	})
}
