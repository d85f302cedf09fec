package rpc

import (
	"errors"
	"io"
	"net/http"
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
	control *http.ResponseController // HTTP/1.1 only: the connection's deadline
	began   time.Time
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

// Read reads, and takes the deadline away when there is nothing more to read: what is written to the connection, and
// the wait for the caller's going away, have none.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil {
		return n, nil
	}
	if b.late.Load() || errors.Is(err, os.ErrDeadlineExceeded) {
		return n, fault.New(fault.Expired, "the body of this call did not arrive within %s", b.within)
	}
	if b.control != nil {
		_ = b.control.SetReadDeadline(time.Time{}) // the connection is gone, or has none any more
		b.control = nil
	}
	return n, err
}
