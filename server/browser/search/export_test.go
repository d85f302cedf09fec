package search

// Blocks is how many blocks the atoms take.
func (x *Index) Blocks() int {
	n := 0
	for _, s := range x.shards {
		n += len(s.atoms.blocks) + len(s.spans.blocks)
	}
	return n
}
