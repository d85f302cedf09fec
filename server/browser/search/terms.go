package search

import (
	"strings"
	"unicode/utf8"
)

// minAtom is the length in letters of the shortest atom that is kept: shorter words are found by letters and pairs.
const minAtom = 3

// maxScheme is how far into a stretch of text the :// of an address is looked for.
const maxScheme = 32

// Terms are what a slot is found by.
type Terms struct {
	texts []string
	atoms []string // between marks of punctuation
	spans []string // whole schemes and hosts of addresses, which words with punctuation are looked up in first
	ones  []rune
	twos  []uint64
}

// Analyzer makes Terms. It has memory to use again, so that it is for one goroutine.
type Analyzer struct {
	seenOnes [2]uint64
	seenTwos [asciiPairs / 64]uint64
}

// asciiPairs is the number of pairs of ASCII letters.
const asciiPairs = 1 << 14

// pair is a pair of letters as one number; below asciiPairs if both are ASCII.
func pair(a, b rune) uint64 {
	if a < utf8.RuneSelf && b < utf8.RuneSelf {
		return uint64(a)<<7 | uint64(b)
	}
	return 1<<63 | uint64(a)<<32 | uint64(b)
}

// Terms takes folded texts apart. The terms refer to the texts.
func (a *Analyzer) Terms(texts []string) Terms {
	t := Terms{texts: texts}
	a.seenOnes, a.seenTwos = [2]uint64{}, [asciiPairs / 64]uint64{}
	for _, text := range texts {
		for chunk := range strings.FieldsSeq(text) {
			a.letters(&t, chunk)
			t.atoms = appendAtoms(t.atoms, chunk)
			t.spans = appendSpans(t.spans, chunk)
		}
	}
	return t
}

func (a *Analyzer) letters(t *Terms, chunk string) {
	last := rune(-1)
	for _, r := range chunk {
		if r >= utf8.RuneSelf || a.seenOnes[r>>6]&(1<<(r&63)) == 0 {
			if r < utf8.RuneSelf {
				a.seenOnes[r>>6] |= 1 << (r & 63)
			}
			t.ones = append(t.ones, r)
		}
		if last >= 0 {
			p := pair(last, r)
			if p >= asciiPairs || a.seenTwos[p>>6]&(1<<(p&63)) == 0 {
				if p < asciiPairs {
					a.seenTwos[p>>6] |= 1 << (p & 63)
				}
				t.twos = append(t.twos, p)
			}
		}
		last = r
	}
}

// border says what a byte does to the text around it: a leading mark begins an atom and belongs to it, a plain one is
// in none. The class of a byte never depends on its neighbours: so every stretch of a word between two marks lies
// within one atom of any text that has the word.
func border(c byte) (leads, plain bool) {
	switch {
	case c >= utf8.RuneSelf, '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		return false, false
	case strings.IndexByte("./?&=#", c) >= 0:
		return true, false
	default:
		return false, true
	}
}

// appendAtoms adds the atoms of a stretch of text without spaces.
func appendAtoms(atoms []string, chunk string) []string {
	for from, i := 0, 0; i <= len(chunk); i++ {
		leads, plain := true, true // the end
		if i < len(chunk) {
			leads, plain = border(chunk[i])
		}
		if !leads && !plain {
			continue
		}
		if atom := chunk[from:i]; longEnough(atom) {
			atoms = append(atoms, atom)
		}
		from = i
		if plain {
			from++
		}
	}
	return atoms
}

func longEnough(s string) bool { return len(s) >= minAtom && utf8.RuneCountInString(s) >= minAtom }

// appendSpans adds the scheme and the host of an address, with the mark after each.
func appendSpans(spans []string, chunk string) []string {
	i := strings.Index(chunk[:min(len(chunk), maxScheme)], "://")
	if i < 0 {
		return spans
	}
	host := chunk[i+len("://"):]
	if end := strings.IndexAny(host, "/?#"); end >= 0 {
		host = host[:end+1]
	}
	return append(spans, chunk[:i+len("://")], host)
}

// pieces are the parts of a word that lie within one atom of every text that has the word.
func pieces(word string) []string {
	var out []string
	for from, i := 0, 0; i <= len(word); i++ {
		leads, plain := true, true
		if i < len(word) {
			leads, plain = border(word[i])
		}
		if !leads && !plain {
			continue
		}
		if i > from {
			out = append(out, word[from:i])
		}
		from = i
		if plain {
			from++
		}
	}
	return out
}
