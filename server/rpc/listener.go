package rpc

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
	"throwbar.dev/throwbar/server/fault"
)

// Listener has the rules of the address that the server listens on.
type Listener struct {
	// Hosts are the values of the Host header that are let through. A page that has its own name point at this
	// machine brings that name along.
	Hosts []string
	// Origins are the origins of pages that are let through, besides the server's own and those of paired extensions.
	Origins []string
}

// LoopbackHosts are the names that a local client may call a listener by.
func LoopbackHosts(address string) []string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return []string{address}
	}
	hosts := []string{address}
	if ip := net.ParseIP(host); host == "localhost" || (ip != nil && ip.IsLoopback()) {
		for _, name := range []string{"127.0.0.1", "localhost", "::1"} {
			hosts = append(hosts, net.JoinHostPort(name, port))
		}
	}
	return hosts
}

// guard refuses requests for a foreign host and from a foreign origin before any handler sees them.
func (l Listener) guard(paired func() []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(l.Hosts, strings.ToLower(r.Host)) {
			http.Error(w, "this host name is not one of the server's", http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !l.allows(origin, r, paired) {
			http.Error(w, "pages of this origin may not call the server", http.StatusForbidden)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func (l Listener) allows(origin string, r *http.Request, paired func() []string) bool {
	if slices.Contains(l.Origins, origin) || slices.Contains(paired(), origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	if (u.Scheme == "http" || u.Scheme == "https") && slices.Contains(l.Hosts, strings.ToLower(u.Host)) {
		return true
	}
	// An extension that is not paired yet may do that, and nothing else. Pairing pins its origin.
	return r.URL.Path == devicev1connect.DeviceServicePairProcedure && isExtension(origin)
}

// isExtension says whether an origin is that of a browser extension.
func isExtension(origin string) bool {
	return strings.HasPrefix(origin, "chrome-extension://") || strings.HasPrefix(origin, "moz-extension://")
}

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
