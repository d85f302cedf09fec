package search

// Blocks is how many blocks the atoms take.
func (x *Index) Blocks() int {
	n := 0
	for _, s := range x.shards {
		n += len(s.atoms.blocks) + len(s.spans.blocks)
	}
	return n
}

// NewWith makes an index that remembers words that took so much work, and reads so few texts rather than look them up.
func NewWith(costly, few int) *Index {
	x := New()
	x.limits = limits{costly: costly, few: few}
	return x
}
