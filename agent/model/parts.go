package model

import (
	"bytes"
	"io"
)

// parts are the body of a request in pieces of other memory, which nobody changes any more: what a transport reads of them after
// the request has ended is still what it was.
type parts [][]byte

// size is how many bytes they are together.
func (p parts) size() int64 {
	size := int64(0)
	for _, part := range p {
		size += int64(len(part))
	}
	return size
}

// open reads them from the beginning.
func (p parts) open() io.ReadCloser {
	readers := make([]io.Reader, len(p))
	for i, part := range p {
		readers[i] = bytes.NewReader(part)
	}
	return io.NopCloser(io.MultiReader(readers...))
}
