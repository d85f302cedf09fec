package search

import (
	"bytes"
	"hash/maphash"
	"math/bits"
)

const (
	blockBytes  = 2048
	stripBlocks = 64
	// filterRows is how many classes triples of bytes fall into. At 2 KiB to a block, about one block in nine has a
	// class, so that a word of three letters reads a ninth of the lexicon and a longer one next to nothing.
	filterRows = 1 << 14
	// maxGrams is how many triples of a word are asked for: more exclude nothing more.
	maxGrams = 12
)

// lexicon has the atoms of a shard with their sets. It finds atoms by any part of them: their texts stand in blocks, a
// filter says which blocks may have a triple of bytes, and those are searched.
type lexicon struct {
	sets   *sets
	seed   maphash.Seed
	blocks []block
	strips []*strip
	open   int   // block that is written to
	empty  []int // blocks to be used again

	table []uint32 // open addressing: ids of atoms plus one
	count int      // atoms
}

// block is a stretch of text: atoms, each with a line feed behind it.
type block struct {
	text   []byte
	starts []uint16
	refs   []ref // of the atom at starts; 0 if it is gone
	gone   int
}

// strip filters 64 blocks.
type strip [filterRows]uint64

// An id says where an atom is: its block, and its number there.
const numberBits = 10

func newLexicon(s *sets, seed maphash.Seed) *lexicon {
	return &lexicon{sets: s, seed: seed, open: -1}
}

func row(a, b, c byte) uint32 {
	return (uint32(a)<<16 | uint32(b)<<8 | uint32(c)) * 0x9E3779B1 >> (32 - 14)
}

func (b *block) atom(n int) []byte {
	end := len(b.text)
	if n+1 < len(b.starts) {
		end = int(b.starts[n+1])
	}
	return b.text[b.starts[n] : end-1]
}

func (l *lexicon) atom(id uint32) []byte {
	return l.blocks[id>>numberBits].atom(int(id & (1<<numberBits - 1)))
}

func (l *lexicon) ref(id uint32) *ref { return &l.blocks[id>>numberBits].refs[id&(1<<numberBits-1)] }

// find returns the place of an atom in the table, or the one where it belongs.
func (l *lexicon) find(hash uint64, same func(id uint32) bool) (at int, found bool) {
	mask := len(l.table) - 1
	for at = int(hash) & mask; l.table[at] != 0; at = (at + 1) & mask {
		if same(l.table[at] - 1) {
			return at, true
		}
	}
	return at, false
}

func (l *lexicon) add(atom string, slot uint16) {
	if 4*(l.count+1) > 3*len(l.table) {
		l.rehash(max(1024, 2*len(l.table)))
	}
	at, found := l.find(maphash.String(l.seed, atom), func(id uint32) bool { return string(l.atom(id)) == atom })
	if !found {
		l.table[at] = l.write([]byte(atom), 0) + 1
		l.count++
	}
	r := l.ref(l.table[at] - 1)
	*r = l.sets.add(*r, slot)
}

func (l *lexicon) remove(atom string, slot uint16) {
	if len(l.table) == 0 {
		return
	}
	at, found := l.find(maphash.String(l.seed, atom), func(id uint32) bool { return string(l.atom(id)) == atom })
	if !found {
		return
	}
	id := l.table[at] - 1
	r := l.ref(id)
	if *r = l.sets.remove(*r, slot); *r != 0 {
		return
	}
	l.vacate(at)
	l.count--
	n := int(id >> numberBits)
	b := &l.blocks[n]
	b.gone++
	if n != l.open && 2*b.gone > len(b.refs) {
		l.evacuate(n)
	}
}

// vacate empties a place of the table and closes the gap, so that no search stops too early.
func (l *lexicon) vacate(at int) {
	mask := len(l.table) - 1
	l.table[at] = 0
	for next := (at + 1) & mask; l.table[next] != 0; next = (next + 1) & mask {
		home := int(maphash.Bytes(l.seed, l.atom(l.table[next]-1))) & mask
		if (next-home)&mask >= (next-at)&mask {
			l.table[at], l.table[next] = l.table[next], 0
			at = next
		}
	}
}

func (l *lexicon) rehash(size int) {
	old := l.table
	l.table = make([]uint32, size)
	for _, entry := range old {
		if entry != 0 {
			at, _ := l.find(maphash.Bytes(l.seed, l.atom(entry-1)), func(uint32) bool { return false })
			l.table[at] = entry
		}
	}
}

// write puts an atom into the open block and returns its id.
func (l *lexicon) write(atom []byte, r ref) uint32 {
	need := len(atom) + 1
	if l.open < 0 || len(l.blocks[l.open].text)+need > blockBytes && len(l.blocks[l.open].text) > 0 {
		l.openBlock()
	}
	b := &l.blocks[l.open]
	if cap(b.text) == 0 {
		b.text = make([]byte, 0, max(blockBytes, need))
	}
	b.starts = append(b.starts, uint16(len(b.text)))
	b.refs = append(b.refs, r)
	b.text = append(append(b.text, atom...), '\n')
	filter, bit := l.strips[l.open/stripBlocks], uint64(1)<<(l.open%stripBlocks)
	for i := 2; i < len(atom); i++ {
		filter[row(atom[i-2], atom[i-1], atom[i])] |= bit
	}
	return uint32(l.open)<<numberBits | uint32(len(b.refs)-1)
}

func (l *lexicon) openBlock() {
	full := l.open
	if n := len(l.empty); n > 0 {
		l.open, l.empty = l.empty[n-1], l.empty[:n-1]
	} else {
		l.open = len(l.blocks)
		l.blocks = append(l.blocks, block{})
		if l.open%stripBlocks == 0 {
			l.strips = append(l.strips, new(strip))
		}
	}
	if full >= 0 && 2*l.blocks[full].gone > len(l.blocks[full].refs) {
		l.evacuate(full) // it could not be while it was open
	}
}

// evacuate moves the atoms of a block that are still there to the open one, and makes it empty.
func (l *lexicon) evacuate(n int) {
	old := l.blocks[n]
	for i, r := range old.refs {
		if r == 0 {
			continue
		}
		atom := old.atom(i)
		id := uint32(n)<<numberBits | uint32(i)
		at, _ := l.find(maphash.Bytes(l.seed, atom), func(other uint32) bool { return other == id })
		l.table[at] = l.write(atom, r) + 1
	}
	b := &l.blocks[n]
	*b = block{text: old.text[:0], starts: old.starts[:0], refs: old.refs[:0]}
	if cap(b.text) > blockBytes {
		b.text = nil
	}
	filter, bit := l.strips[n/stripBlocks], uint64(1)<<(n%stripBlocks)
	for i := range filter {
		filter[i] &^= bit
	}
	l.empty = append(l.empty, n)
}

// into adds the slots of all atoms that have a word of three letters or more, and says how much work it was.
func (l *lexicon) into(word []byte, out *bitmap) int {
	work := 0
	var rows [maxGrams]uint32
	n := 0
	for i := 2; i < len(word) && n < maxGrams; i++ {
		rows[n] = row(word[i-2], word[i-1], word[i])
		n++
	}
	for s, filter := range l.strips {
		may := ^uint64(0)
		for _, r := range rows[:n] {
			may &= filter[r]
		}
		for ; may != 0; may &= may - 1 {
			if at := s*stripBlocks + bits.TrailingZeros64(may); at < len(l.blocks) {
				work += blockWork + l.scan(&l.blocks[at], word, out)
			}
		}
	}
	return work
}

// scan adds the slots of a block's atoms that have a word, and says how many atoms there are.
func (l *lexicon) scan(b *block, word []byte, out *bitmap) (hits int) {
	n, last := 0, len(b.starts)-1
	for from := 0; ; from = int(b.starts[n]) {
		i := bytes.Index(b.text[from:], word)
		if i < 0 {
			return hits
		}
		for hit := from + i; n < last && int(b.starts[n+1]) <= hit; n++ {
		}
		l.sets.into(b.refs[n], out)
		hits++
		if n == last {
			return hits
		}
		n++
	}
}
