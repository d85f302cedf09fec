package rpc

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"throwbar.dev/throwbar/server/fault"
)

type deadlineKey struct{}

// deadlines bound the reads and writes of one request.
type deadlines struct {
	control *http.ResponseController
	within  time.Duration // how long a peer may go without reading

	mu       sync.Mutex
	extended time.Time // guarded by mu; when the write deadline was last moved
	hurried  bool      // guarded by mu; it is moved no more
}

// withDeadlines gives handlers of streams a way to bound each read and write: a peer that does not read would block a
// writer for ever. A connection that is used again starts without a deadline.
func withDeadlines(within time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := &deadlines{control: http.NewResponseController(w), within: within}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), deadlineKey{}, d)))
		d.mu.Lock()
		defer d.mu.Unlock()
		d.hurried = true
		if !d.extended.IsZero() {
			_ = d.control.SetWriteDeadline(time.Time{}) // the response is written, or its connection is gone
		}
	})
}

// extendWrite moves the deadline of writes. HTTP/2 ends a stream whose deadline passes even if nothing is written, so
// that it lies several heartbeats ahead; it is moved now and then only, for each move costs a turn of the connection's
// loop. In tests without a network there is nothing to move.
func extendWrite(ctx context.Context) error {
	d, ok := ctx.Value(deadlineKey{}).(*deadlines)
	if !ok {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.hurried || now.Sub(d.extended) < d.within/4 {
		return nil
	}
	d.extended = now
	if err := d.control.SetWriteDeadline(now.Add(d.within)); err != nil {
		return fmt.Errorf("set write deadline: %w", err)
	}
	return nil
}

// endWrite ends a write that is blocked, and all that follow.
func endWrite(ctx context.Context) {
	if d, ok := ctx.Value(deadlineKey{}).(*deadlines); ok {
		_ = d.control.SetWriteDeadline(time.Now()) // without a network there is nothing to end
	}
}

// hurryWrite gives what is being written a short time more. The stream ends after that.
func hurryWrite(ctx context.Context) {
	d, ok := ctx.Value(deadlineKey{}).(*deadlines)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hurried {
		return
	}
	d.hurried = true
	d.extended = time.Now()
	_ = d.control.SetWriteDeadline(d.extended.Add(min(farewellWithin, d.within))) // a connection that is gone needs none
}

// readBy sets the deadline of reads; the zero time takes it away. It says false where there is nothing to set.
func readBy(ctx context.Context, t time.Time) bool {
	d, ok := ctx.Value(deadlineKey{}).(*deadlines)
	return ok && d.control.SetReadDeadline(t) == nil
}

// sendWatched sends to a caller that follows something. One that does not read loses its stream, and comes back with
// its cursor: it holds up nobody, but it must not be held for ever either.
func sendWatched(ctx context.Context, send func() error) error {
	if err := extendWrite(ctx); err != nil {
		return err
	}
	began := time.Now()
	err := send()
	d, ok := ctx.Value(deadlineKey{}).(*deadlines)
	if !ok || time.Since(began) < d.within/2 {
		return err
	}
	return fault.Wrap(fault.Busy, err, "this watcher does not read what it is sent: follow again from the last cursor").Retry()
}
