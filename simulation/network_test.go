package simulation

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// network is what the server, its devices and its callers talk over: connections in memory whose bytes arrive late, in
// part, or never. Writing never blocks, as if the kernel's buffers had room for everything: a writer that blocked with
// a mutex held would stop virtual time.
type network struct {
	mu       sync.Mutex
	listener *listener // of the server that runs; nil while none does
	hosts    map[string]*host
}

func newNetwork() *network { return &network{hosts: map[string]*host{}} }

// host is a machine that dials the server, and the road between the two.
type host struct {
	net  *network
	name string

	// guarded by net.mu
	latency  time.Duration
	frozen   [2]time.Time // by direction: nothing arrives before
	refused  time.Time    // nobody answers dials before
	flaky    time.Time    // every second new connection is slow to deliver before
	dialled  int
	conns    []*pair
	arrivals []arrival // the last delays on the way down
}

// arrival is a delivery to a host, and how long it took.
type arrival struct{ at, sent time.Time }

type direction int

const (
	up   direction = iota // to the server
	down                  // to the host
)

func (n *network) host(name string) *host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[name]
	if h == nil {
		h = &host{net: n, name: name}
		n.hosts[name] = h
	}
	return h
}

// transit is how long the slowest of the bytes took that have arrived at the host in this moment.
func (h *host) transit() time.Duration {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	now := time.Now()
	var longest time.Duration
	for _, a := range h.arrivals {
		if now.Sub(a.at) <= time.Millisecond {
			longest = max(longest, a.at.Sub(a.sent))
		}
	}
	return longest
}

func (h *host) arrived(sent time.Time) {
	now := time.Now()
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.arrivals = append(h.arrivals, arrival{now, sent})
	if len(h.arrivals) > 64 {
		h.arrivals = append(h.arrivals[:0], h.arrivals[32:]...)
	}
}

// pair is one connection: two flows of bytes.
type pair struct {
	flows  [2]*flow // by direction
	server *end
	client *end
}

// flow is one direction of a connection.
type flow struct {
	host *host
	dir  direction
	wake chan struct{} // receives when something has changed for the reader

	mu       sync.Mutex
	segments []segment // guarded by mu
	last     time.Time // guarded by mu; when the newest segment arrives, so that bytes keep their order
	stalled  time.Time // guarded by mu; nothing arrives before
	deadline time.Time // guarded by mu; of reads
	late     time.Time // guarded by mu; of writes
	end      error     // guarded by mu; what the reader gets when all is read
	broken   error     // guarded by mu; what reader and writer get at once
	left     bool      // guarded by mu; the reader is gone
	written  bool      // guarded by mu; the writer is gone
	lost     bool      // guarded by mu; what is written is lost
	room     int       // guarded by mu; how many bytes go through before the cut; negative: all
	cut      func()    // guarded by mu; called without it
}

type segment struct {
	data []byte
	sent time.Time
	due  time.Time
}

func newPair(h *host) *pair {
	p := &pair{}
	for d := range p.flows {
		p.flows[d] = &flow{host: h, dir: direction(d), wake: make(chan struct{}, 1), room: -1}
	}
	p.server = &end{host: h, pair: p, in: p.flows[up], out: p.flows[down], name: "server"}
	p.client = &end{host: h, pair: p, in: p.flows[down], out: p.flows[up], name: h.name}
	return p
}

// reset ends the connection for both sides at once.
func (p *pair) reset() {
	for _, f := range p.flows {
		f.breakOff(syscall.ECONNRESET)
	}
}

// resetOne ends the connection for the one side that reads a direction; the other is told nothing.
func (p *pair) resetOne(d direction) {
	p.flows[d].lose()
	p.flows[d].finishNow(syscall.ECONNRESET)
	p.flows[1-d].lose()
}

// goDark loses all that is written from now on, and tells nobody.
func (p *pair) goDark() {
	for _, f := range p.flows {
		f.lose()
	}
}

// stall keeps back for a while what goes in a direction.
func (p *pair) stall(d direction, long time.Duration) {
	f := p.flows[d]
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stalled = later(f.stalled, time.Now().Add(long))
}

// cutAfter does something when that many bytes have gone in a direction; the others are lost.
func (p *pair) cutAfter(d direction, n int, cut func()) {
	f := p.flows[d]
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room, f.cut = n, cut
}

func (f *flow) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *flow) write(b []byte) (int, error) {
	f.host.net.mu.Lock()
	latency := f.host.latency
	f.host.net.mu.Unlock()
	cut := func() {}
	n, err := func() (int, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		now := time.Now()
		switch {
		case f.written:
			return 0, net.ErrClosed
		case f.broken != nil:
			return 0, f.broken
		case !f.late.IsZero() && !now.Before(f.late):
			return 0, os.ErrDeadlineExceeded
		case f.lost || f.left:
			return len(b), nil
		}
		part := b
		if f.room >= 0 && len(b) > f.room {
			part, cut = b[:f.room], f.cut
			f.lost = true
		}
		if f.room > 0 {
			f.room -= len(part)
		}
		f.last = later(f.last, now.Add(latency))
		if len(part) > 0 {
			f.segments = append(f.segments, segment{data: append([]byte(nil), part...), sent: now, due: f.last})
		}
		return len(b), nil
	}()
	f.signal()
	cut()
	return n, err
}

// finish lets the reader read what is on its way, and then end. The writer is gone.
func (f *flow) finish(end error) {
	f.mu.Lock()
	if f.end == nil && !f.lost {
		f.end = end
	}
	f.written = true
	f.mu.Unlock()
	f.signal()
}

// heal calls a cut off that has not come yet, and lets through what was held back.
func (f *flow) heal() {
	f.mu.Lock()
	f.room, f.stalled = -1, time.Time{}
	f.mu.Unlock()
	f.signal()
}

func (f *flow) finishWriter() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written = true
}

// finishNow ends the reader after what it has been sent.
func (f *flow) finishNow(end error) {
	f.mu.Lock()
	f.end = end
	f.mu.Unlock()
	f.signal()
}

// leave says that nobody reads any more.
func (f *flow) leave() {
	f.mu.Lock()
	f.left, f.segments = true, nil
	f.mu.Unlock()
	f.signal()
}

// lose throws away what is written from now on.
func (f *flow) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = true
}

// breakOff ends both sides at once.
func (f *flow) breakOff(err error) {
	f.mu.Lock()
	f.broken, f.segments = err, nil
	f.mu.Unlock()
	f.signal()
}

func (f *flow) read(b []byte) (int, error) {
	for {
		n, wait, err := f.next(b)
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
		if wait == 0 {
			<-f.wake
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-f.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// next gives what has arrived, or says how long to wait for it; zero: until there is a signal.
func (f *flow) next(b []byte) (int, time.Duration, error) {
	f.host.net.mu.Lock()
	frozen := f.host.frozen[f.dir]
	f.host.net.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	switch {
	case f.left:
		return 0, 0, net.ErrClosed
	case f.broken != nil:
		return 0, 0, f.broken
	case !f.deadline.IsZero() && !now.Before(f.deadline):
		return 0, 0, os.ErrDeadlineExceeded
	}
	frozen = later(frozen, f.stalled)
	until := f.deadline
	if len(f.segments) > 0 {
		s := &f.segments[0]
		due := later(s.due, frozen)
		if !now.Before(due) {
			n, sent := copy(b, s.data), s.sent
			if s.data = s.data[n:]; len(s.data) == 0 {
				f.segments = f.segments[1:]
			}
			if f.dir == down {
				f.host.arrived(sent)
			}
			return n, 0, nil
		}
		until = earlier(until, due)
	} else if f.end != nil {
		due := later(f.last, frozen)
		if !now.Before(due) {
			return 0, 0, f.end
		}
		until = earlier(until, due)
	}
	if until.IsZero() {
		return 0, 0, nil
	}
	return 0, max(until.Sub(now), 1), nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earlier is the earlier of two times, where zero stands for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// end is one end of a connection.
type end struct {
	host *host
	pair *pair
	in   *flow
	out  *flow
	name string
	once sync.Once
}

var _ net.Conn = (*end)(nil)

// Read reads what has arrived.
func (e *end) Read(b []byte) (int, error) { return e.in.read(b) }

// Write hands bytes to the network, which takes them all.
func (e *end) Write(b []byte) (int, error) { return e.out.write(b) }

// Close ends the connection: the other side reads what is on its way and then its end.
func (e *end) Close() error {
	e.once.Do(func() {
		e.out.finish(io.EOF)
		e.in.leave()
		e.host.forget(e.pair)
	})
	return nil
}

// vanish is what the loss of a machine does: its own side is over, and the other side is told nothing.
func (e *end) vanish() {
	e.once.Do(func() {
		e.out.lose()
		e.out.finishWriter()
		e.in.leave()
		e.host.forget(e.pair)
	})
}

// LocalAddr names this end.
func (e *end) LocalAddr() net.Addr { return address(e.name) }

// RemoteAddr names the host.
func (e *end) RemoteAddr() net.Addr { return address(e.host.name) }

// SetDeadline sets both deadlines.
func (e *end) SetDeadline(t time.Time) error {
	return errors.Join(e.SetReadDeadline(t), e.SetWriteDeadline(t))
}

// SetReadDeadline bounds reads, also one that waits.
func (e *end) SetReadDeadline(t time.Time) error {
	e.in.mu.Lock()
	e.in.deadline = t
	e.in.mu.Unlock()
	e.in.signal()
	return nil
}

// SetWriteDeadline bounds writes, which never wait.
func (e *end) SetWriteDeadline(t time.Time) error {
	e.out.mu.Lock()
	defer e.out.mu.Unlock()
	e.out.late = t
	return nil
}

type address string

// Network is none that there is.
func (a address) Network() string { return "simulated" }

// String is the name.
func (a address) String() string { return string(a) + ":1" }

// forget drops a connection one end of which is closed from those that faults can hit.
func (h *host) forget(p *pair) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	for i, other := range h.conns {
		if other == p {
			h.conns = append(h.conns[:i], h.conns[i+1:]...)
			return
		}
	}
}

// all are the host's open connections.
func (h *host) all() []*pair {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	return append([]*pair(nil), h.conns...)
}

// dial connects the host with the server that runs. Alive says whether the dialling process still is.
func (h *host) dial(ctx context.Context, alive func() bool) (net.Conn, error) {
	h.net.mu.Lock()
	wait := 2 * h.latency
	wait = max(wait, time.Until(h.frozen[up])+h.latency, time.Until(h.frozen[down])+h.latency)
	refused := time.Now().Before(h.refused)
	h.net.mu.Unlock()
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C:
		}
	}
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	l := h.net.listener
	if l == nil || refused || !alive() {
		return nil, &net.OpError{Op: "dial", Net: "simulated", Err: syscall.ECONNREFUSED}
	}
	p := newPair(h)
	h.dialled++
	if now := time.Now(); now.Before(h.flaky) && h.dialled%2 == 0 {
		p.flows[up].stalled = now.Add(time.Duration(8+7*h.dialled%13) * time.Second)
	}
	select {
	case l.accepted <- p.server:
	default:
		return nil, &net.OpError{Op: "dial", Net: "simulated", Err: syscall.ECONNREFUSED}
	}
	h.conns = append(h.conns, p)
	return p.client, nil
}

// listener is where a server takes its connections from.
type listener struct {
	net      *network
	accepted chan net.Conn
	done     chan struct{}
	once     sync.Once
}

var _ net.Listener = (*listener)(nil)

// listen makes a server's listener; there is one server at a time.
func (n *network) listen() *listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listener = &listener{net: n, accepted: make(chan net.Conn, 256), done: make(chan struct{})}
	return n.listener
}

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close takes no further connections.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.net.mu.Lock()
		defer l.net.mu.Unlock()
		close(l.done)
		if l.net.listener == l {
			l.net.listener = nil
		}
	})
	return nil
}

// Addr names the server.
func (l *listener) Addr() net.Addr { return address("server") }
