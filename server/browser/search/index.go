package search

import (
	"hash/maphash"
	"slices"
	"unicode/utf8"
)

// PageSize is the number of slots in a page: a page is one word of an answer.
const PageSize = 64

// Index finds slots by words. Its methods that change it must not run beside any other; the rest may run side by side.
type Index struct {
	seed   maphash.Seed
	shards []*shard
	free   []uint32 // pages
	pages  uint32   // ever given out
	limits limits
}

// limits say which way to an answer is the shorter one. Tests change them so that every way is gone.
type limits struct {
	costly int // work, in a shard, after which a word is remembered
	few    int // texts of a shard that are rather read than looked up
}

// shard is the index of 65,536 slots.
type shard struct {
	sets   sets
	ones   [128]ref
	twos   [asciiPairs]ref
	runes  map[rune]ref   // ones beyond ASCII
	pairs  map[uint64]ref // twos beyond ASCII
	atoms  *lexicon
	spans  *lexicon
	memory memory
	limits limits
}

// New makes an empty index.
func New() *Index { return &Index{seed: maphash.MakeSeed(), limits: limits{costly: costly, few: few}} }

// Page gives out 64 slots: page*64 and the ones that follow.
func (x *Index) Page() uint32 {
	if n := len(x.free); n > 0 {
		page := x.free[n-1]
		x.free = x.free[:n-1]
		return page
	}
	if x.pages%(shardSize/PageSize) == 0 {
		s := &shard{runes: map[rune]ref{}, pairs: map[uint64]ref{}, limits: x.limits}
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
	s.memory.put(n, t.texts)
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
	s.memory.take(n)
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
	if known := s.memory.recall(word); known != nil {
		return out.and(known)
	}
	if out.count() <= s.limits.few {
		return out.only(has)
	}
	var own bitmap
	parts := pieces(word)
	if len(parts) == 1 && parts[0] == word || utf8.RuneCountInString(word) < minAtom {
		if s.into(word, &own) > s.limits.costly {
			s.memory.remember(word, &own)
		}
		return out.and(&own)
	}
	if s.across(word, parts, &own, has) > s.limits.costly {
		s.memory.remember(word, &own)
	}
	return out.and(&own)
}

// across adds the slots that have a word over several atoms, and says how much work it was. Where a host or a scheme
// has the word there is nothing more to ask; elsewhere its parts and pairs have to be there before the text is read.
func (s *shard) across(word string, parts []string, out *bitmap, has func(slot uint16) bool) int {
	work := s.spans.into([]byte(word), out)
	var may bitmap
	for i := range may {
		may[i] = ^out[i]
	}
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) })
	for _, part := range append(parts, pairs(word)...) {
		if may.count() <= s.limits.few {
			break
		}
		if known := s.memory.recall(part); known != nil {
			may.and(known)
			continue
		}
		var own bitmap
		work += s.into(part, &own)
		may.and(&own)
	}
	work += may.count()
	may.only(has)
	out.or(&may)
	return work
}

// pairs are the pairs of letters of a word.
func pairs(word string) []string {
	var out []string
	for from := 0; ; {
		_, first := utf8.DecodeRuneInString(word[from:])
		_, second := utf8.DecodeRuneInString(word[from+first:])
		if second == 0 {
			return out
		}
		out = append(out, word[from:from+first+second])
		from += first
	}
}

func (s *shard) two(p uint64) ref {
	if p < asciiPairs {
		return s.twos[p]
	}
	return s.pairs[p]
}

// into adds the slots that have a part of a text within one atom, or any part of one or two letters. It says how much
// work it was.
func (s *shard) into(part string, out *bitmap) int {
	first, size := utf8.DecodeRuneInString(part)
	second, more := utf8.DecodeRuneInString(part[size:])
	switch {
	case size+more < len(part):
		return s.atoms.into([]byte(part), out)
	case more > 0:
		s.sets.into(s.two(pair(first, second)), out)
	case first < int32(len(s.ones)):
		s.sets.into(s.ones[first], out)
	default:
		s.sets.into(s.runes[first], out)
	}
	return 1
}
