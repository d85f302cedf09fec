package search

import (
	"hash/maphash"
	"math/bits"
)

// PageSize is the number of slots in a page: a page is one word of an answer.
const PageSize = 64

// Index finds slots by words. Its methods that change it must not run beside any other; the rest may run side by side.
type Index struct {
	seed   maphash.Seed
	shards []*shard
	free   []uint32 // pages
	pages  uint32   // ever given out
}

// shard is the index of 65,536 slots.
type shard struct {
	sets  sets
	ones  [128]ref
	twos  [asciiPairs]ref
	runes map[rune]ref   // ones beyond ASCII
	pairs map[uint64]ref // twos beyond ASCII
	atoms *lexicon
	spans *lexicon
}

// New makes an empty index.
func New() *Index { return &Index{seed: maphash.MakeSeed()} }

// Page gives out 64 slots: page*64 and the ones that follow.
func (x *Index) Page() uint32 {
	if n := len(x.free); n > 0 {
		page := x.free[n-1]
		x.free = x.free[:n-1]
		return page
	}
	if x.pages%(shardSize/PageSize) == 0 {
		s := &shard{runes: map[rune]ref{}, pairs: map[uint64]ref{}}
		s.atoms, s.spans = newLexicon(&s.sets, x.seed), newLexicon(&s.sets, x.seed)
		x.shards = append(x.shards, s)
	}
	x.pages++
	return x.pages - 1
}

// Pages is one more than the highest page that was ever given out.
func (x *Index) Pages() int { return int(x.pages) }

// Release takes a page back, whose slots are empty.
func (x *Index) Release(page uint32) { x.free = append(x.free, page) }

// Put makes a slot found by terms.
func (x *Index) Put(slot uint32, t Terms) {
	s, n := x.shards[slot>>shardBits], uint16(slot)
	for _, r := range t.ones {
		if r < int32(len(s.ones)) {
			s.ones[r] = s.sets.add(s.ones[r], n)
		} else {
			s.runes[r] = s.sets.add(s.runes[r], n)
		}
	}
	for _, p := range t.twos {
		if p < asciiPairs {
			s.twos[p] = s.sets.add(s.twos[p], n)
		} else {
			s.pairs[p] = s.sets.add(s.pairs[p], n)
		}
	}
	for _, a := range t.atoms {
		s.atoms.add(a, n)
	}
	for _, a := range t.spans {
		s.spans.add(a, n)
	}
}

// Take undoes a Put with the same terms.
func (x *Index) Take(slot uint32, t Terms) {
	s, n := x.shards[slot>>shardBits], uint16(slot)
	for _, r := range t.ones {
		if r < int32(len(s.ones)) {
			s.ones[r] = s.sets.remove(s.ones[r], n)
		} else if left := s.sets.remove(s.runes[r], n); left != 0 {
			s.runes[r] = left
		} else {
			delete(s.runes, r)
		}
	}
	for _, p := range t.twos {
		if p < asciiPairs {
			s.twos[p] = s.sets.remove(s.twos[p], n)
		} else if left := s.sets.remove(s.pairs[p], n); left != 0 {
			s.pairs[p] = left
		} else {
			delete(s.pairs, p)
		}
	}
	for _, a := range t.atoms {
		s.atoms.remove(a, n)
	}
	for _, a := range t.spans {
		s.spans.remove(a, n)
	}
}

// Answer is what a query finds. It is worked out shard by shard as pages are asked for, and holds only while the index
// does not change. It is for one goroutine.
type Answer struct {
	index *Index
	words []string
	has   func(slot uint32, word string) bool
	found []*bitmap
}

// Find begins a query: the words are folded, and has says whether a text of a slot has a word.
func (x *Index) Find(words []string, has func(slot uint32, word string) bool) *Answer {
	return &Answer{index: x, words: words, has: has, found: make([]*bitmap, len(x.shards))}
}

// Page has a bit for each slot of a page whose texts have all words. With no words it has all of them.
func (a *Answer) Page(page uint32) uint64 {
	const pages = shardSize / PageSize
	n := page / pages
	if a.found[n] == nil {
		a.found[n] = a.shard(n)
	}
	return a.found[n][page%pages]
}

func (a *Answer) shard(n uint32) *bitmap {
	out := &bitmap{}
	for i := range out {
		out[i] = ^uint64(0)
	}
	s := a.index.shards[n]
	for _, word := range a.words {
		if !s.narrow(word, out, func(slot uint16) bool { return a.has(n<<shardBits|uint32(slot), word) }) {
			return &bitmap{}
		}
	}
	return out
}

// narrow leaves the slots that have a word, and says whether there are any.
func (s *shard) narrow(word string, out *bitmap, has func(slot uint16) bool) bool {
	parts := pieces(word)
	if len(parts) == 1 && parts[0] == word || len([]rune(word)) < minAtom {
		var own bitmap
		s.into(word, &own)
		return out.and(&own)
	}
	// A word over several atoms: where a host or scheme has it there is nothing to ask, elsewhere all its parts and pairs
	// have to be there before the text is read.
	var sure bitmap
	s.spans.into([]byte(word), &sure)
	sure.and(out)
	if !s.allPairs(word, out) {
		return false
	}
	for _, part := range parts {
		var own bitmap
		s.into(part, &own)
		if !out.and(&own) {
			return false
		}
	}
	out.andNot(&sure)
	for i, w := range out {
		for ; w != 0; w &= w - 1 {
			bit := bits.TrailingZeros64(w)
			if has(uint16(i<<6 | bit)) {
				sure[i] |= 1 << bit
			}
		}
	}
	*out = sure
	return out.and(out)
}

func (s *shard) allPairs(word string, out *bitmap) bool {
	last := rune(-1)
	for _, r := range word {
		if last >= 0 {
			var own bitmap
			s.sets.into(s.two(pair(last, r)), &own)
			if !out.and(&own) {
				return false
			}
		}
		last = r
	}
	return true
}

func (s *shard) two(p uint64) ref {
	if p < asciiPairs {
		return s.twos[p]
	}
	return s.pairs[p]
}

// into adds the slots that have a part of a text within one atom, or any part of one or two letters.
func (s *shard) into(part string, out *bitmap) {
	letters := []rune(part)
	switch {
	case len(letters) >= minAtom:
		s.atoms.into([]byte(part), out)
	case len(letters) == 2:
		s.sets.into(s.two(pair(letters[0], letters[1])), out)
	case letters[0] < int32(len(s.ones)):
		s.sets.into(s.ones[letters[0]], out)
	default:
		s.sets.into(s.runes[letters[0]], out)
	}
}
