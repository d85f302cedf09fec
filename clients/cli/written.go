package cli

import (
	"fmt"
	"io"
	"sync/atomic"
)

// written is the standard output, and remembers that it did not take everything: a program that reads a file must not be
// told that all went well when the disk was full.
type written struct {
	to    io.Writer
	first atomic.Pointer[error]
}

// Write writes, and remembers the first failure.
func (w *written) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	if err != nil {
		w.first.CompareAndSwap(nil, &err)
	}
	return n, err
}

// lost is why some of the output is missing, nil if none is.
func (w *written) lost() error {
	if err := w.first.Load(); err != nil {
		return fmt.Errorf("some of the output is lost: %w", *err)
	}
	return nil
}
