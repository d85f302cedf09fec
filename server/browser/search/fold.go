// Package search is an index in memory that finds texts by the words in them, where a word may be any part of a text:
// one letter, the middle of a name, a piece of an address.
//
// Texts live in numbered slots. The index keeps, for every 65,536 slots (a shard), which slots have each letter, each
// pair of letters, and each atom: a stretch of text between two marks of punctuation. A word of three letters and more
// is looked up among the atoms, of which there are far fewer than texts, and what is found there is an exact answer: no
// text is read. Only a word that spans several atoms, such as go.dev/doc, has candidates to be compared with it.
package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold writes texts alike that a person takes for the same: upper and lower case of any script, composed and decomposed
// accents, full and half width, the sigma at the end of a word, sharp s and ss, and the four letters i of Turkish.
// Marks that nobody sees (soft hyphens, joiners, directions) go.
func Fold(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	s = norm.NFKC.String(strings.ToValidUTF8(s, string(utf8.RuneError)))
	s = cases.Fold().String(s)
	const dotAbove = '\u0307' // what folding the capital dotted i leaves behind
	var b strings.Builder
	b.Grow(len(s))
	last := rune(0)
	for _, r := range s {
		switch {
		case r == dotAbove && last == 'i', unicode.Is(unicode.Cf, r):
			continue
		case r == 'ı':
			r = 'i'
		}
		b.WriteRune(r)
		last = r
	}
	return norm.NFKC.String(b.String())
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Words are the words of a query, folded, each once, the longest first: it has the fewest texts.
func Words(query string) []string {
	words := strings.Fields(Fold(query))
	slices.SortFunc(words, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(words)
}

// Match says whether every word is in one of the texts. It is what the index answers without reading the texts.
func Match(texts, words []string) bool {
	for _, w := range words {
		if !slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, w) }) {
			return false
		}
	}
	return true
}
