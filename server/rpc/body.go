package rpc

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"throwbar.dev/throwbar/server/fault"
)

// maxFraming is what a body may be larger than its message, for envelopes.
const maxFraming = 1024

// timedBody is a body that has to arrive in time.
type timedBody struct {
	io.ReadCloser
	within  time.Duration
	late    atomic.Bool // HTTP/2 only
	closing sync.Mutex  // a body may not be closed twice at a time
}

// expire ends a read that waits. It is for HTTP/2, where a body can be closed while it is read.
func (b *timedBody) expire() {
	b.late.Store(true)
	_ = b.Close()
}

// Close closes the body.
func (b *timedBody) Close() error {
	b.closing.Lock()
	defer b.closing.Unlock()
	return b.ReadCloser.Close()
}

// Read reads. Once all is read, net/http itself takes the deadline away: the wait for the caller's going away has none.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && (b.late.Load() || errors.Is(err, os.ErrDeadlineExceeded)) {
		return n, fault.New(fault.Expired, "the body of this call did not arrive within %s", b.within)
	}
	return n, err
}
