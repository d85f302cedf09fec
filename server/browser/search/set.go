package search

import (
	"math/bits"
	"slices"
)

const (
	shardBits = 16
	shardSize = 1 << shardBits
	// dense is the number of slots from which a set is a bitmap; a list of 4,096 is as large as one.
	dense = 4096
	// sparse is where a bitmap becomes a list again; below dense, so that a set on the border does not swing.
	sparse = 3072
)

// bitmap has a bit for each slot of a shard.
type bitmap [shardSize / 64]uint64

func (b *bitmap) has(n uint16) bool { return b[n>>6]&(1<<(n&63)) != 0 }

func (b *bitmap) and(o *bitmap) (some bool) {
	var all uint64
	for i := range b {
		b[i] &= o[i]
		all |= b[i]
	}
	return all != 0
}

func (b *bitmap) count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// only leaves the slots that keep says to, and says whether there are any.
func (b *bitmap) only(keep func(slot uint16) bool) (some bool) {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			if bit := bits.TrailingZeros64(w); keep(uint16(i<<6 | bit)) {
				some = true
			} else {
				b[i] &^= 1 << bit
			}
		}
	}
	return some
}

func (b *bitmap) or(o *bitmap) {
	for i := range b {
		b[i] |= o[i]
	}
}

// each calls visit with every slot.
func (b *bitmap) each(visit func(n uint16)) {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			visit(uint16(i<<6 | bits.TrailingZeros64(w)))
		}
	}
}

// set is a set of slots of one shard: a sorted list, or a bitmap.
type set struct {
	list []uint16
	bits *bitmap
	n    int // in bits
}

func (s *set) len() int {
	if s.bits != nil {
		return s.n
	}
	return len(s.list)
}

func (s *set) add(slot uint16) {
	if s.bits != nil {
		if !s.bits.has(slot) {
			s.bits[slot>>6] |= 1 << (slot & 63)
			s.n++
		}
		return
	}
	at, found := slices.BinarySearch(s.list, slot)
	if found {
		return
	}
	if len(s.list) < dense {
		s.list = slices.Insert(s.list, at, slot)
		return
	}
	s.bits, s.n = &bitmap{}, len(s.list)+1
	s.into(s.bits)
	s.bits[slot>>6] |= 1 << (slot & 63)
	s.list = nil
}

func (s *set) remove(slot uint16) {
	if s.bits == nil {
		if at, found := slices.BinarySearch(s.list, slot); found {
			s.list = slices.Delete(s.list, at, at+1)
		}
		return
	}
	if !s.bits.has(slot) {
		return
	}
	s.bits[slot>>6] &^= 1 << (slot & 63)
	s.n--
	if s.n < sparse {
		list := make([]uint16, 0, s.n)
		s.bits.each(func(n uint16) { list = append(list, n) })
		s.list, s.bits, s.n = list, nil, 0
	}
}

// into adds the slots to a bitmap.
func (s *set) into(b *bitmap) {
	for _, slot := range s.list {
		b[slot>>6] |= 1 << (slot & 63)
	}
	if s.bits != nil && s.bits != b {
		b.or(s.bits)
	}
}

// sets are the sets of a shard. They are referred to by number: most sets have one slot, and the number is the slot.
type sets struct {
	all  []set
	free []uint32
}

// A ref is 0 for the empty set, single and the slot, or the index of a set plus one.
type ref = uint32

const single ref = 1 << 31

func (s *sets) add(r ref, slot uint16) ref {
	switch {
	case r == 0:
		return single | ref(slot)
	case r&single == 0:
		s.all[r-1].add(slot)
		return r
	case uint16(r) == slot:
		return r
	}
	pair := []uint16{min(uint16(r), slot), max(uint16(r), slot)}
	if n := len(s.free); n > 0 {
		at := s.free[n-1]
		s.free = s.free[:n-1]
		s.all[at-1].list = pair
		return at
	}
	s.all = append(s.all, set{list: pair})
	return ref(len(s.all))
}

func (s *sets) remove(r ref, slot uint16) ref {
	switch {
	case r == 0 || r == single|ref(slot):
		return 0
	case r&single != 0:
		return r
	}
	own := &s.all[r-1]
	own.remove(slot)
	if own.len() > 1 {
		return r
	}
	last := own.list[0] // a set that had two
	*own = set{}
	s.free = append(s.free, r)
	return single | ref(last)
}

func (s *sets) into(r ref, b *bitmap) {
	switch {
	case r == 0:
	case r&single != 0:
		b[uint16(r)>>6] |= 1 << (r & 63)
	default:
		s.all[r-1].into(b)
	}
}
