package apptest

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Way is a direction through a Proxy.
type Way int

// The ways.
const (
	ToServer Way = iota
	ToClient
)

// Fault is what a Proxy does to the bytes of one way. The zero Fault passes them on.
type Fault struct {
	After int64         // bytes that still pass before the rest of the fault begins
	Hold  bool          // bytes are neither read nor passed on until the fault is lifted: a frozen network
	Drop  bool          // bytes are read and thrown away: the sender notices nothing
	Data  bool          // only DATA frames of HTTP/2 are thrown away: pings are answered, streams are dead
	Delay time.Duration // before each piece
	Piece int           // most bytes that are passed on in one piece
}

// Proxy is a TCP proxy whose network breaks when it is told to. Faults hold for the connections that are open and for
// those that come.
type Proxy struct {
	Address string
	HTTP2   bool // what passes is HTTP/2, so that Fault.Data works; set before the first connection

	target   string
	listener net.Listener
	all      sync.WaitGroup
	accepted atomic.Int64
	passed   [2]atomic.Int64
	lost     [2]atomic.Int64

	mu      sync.Mutex
	faults  [2]Fault              // guarded by mu
	changed chan struct{}         // guarded by mu; closed and replaced with every change
	open    map[net.Conn]struct{} // guarded by mu; both ends of every connection
	refuse  bool                  // guarded by mu
	closed  bool                  // guarded by mu
}

// NewProxy listens on loopback and passes on to a target until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		Address: listener.Addr().String(), target: target, listener: listener,
		changed: make(chan struct{}), open: map[net.Conn]struct{}{},
	}
	p.all.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Set breaks one way, or mends it with the zero Fault.
func (p *Proxy) Set(way Way, f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults[way] = f
	p.changeLocked()
}

// Freeze holds both ways; Mend lets both pass.
func (p *Proxy) Freeze() {
	p.Set(ToServer, Fault{Hold: true})
	p.Set(ToClient, Fault{Hold: true})
}

// Mend lets everything pass.
func (p *Proxy) Mend() {
	p.Set(ToServer, Fault{})
	p.Set(ToClient, Fault{})
}

// Refuse makes the proxy reset each new connection at once, or not.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// Retarget passes new connections on to another address.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Reset resets every open connection.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resetLocked()
}

// Renew resets every open connection and mends both ways in one: no connection that comes next loses anything to the fault.
func (p *Proxy) Renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = [2]Fault{}
	p.resetLocked()
}

func (p *Proxy) resetLocked() {
	for conn := range p.open { // all before the first is closed: its carrier then closes the other end at once, which would end it in order
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	for conn := range p.open {
		_ = conn.Close()
		delete(p.open, conn)
	}
	p.changeLocked()
}

// Accepted is how many connections have come so far.
func (p *Proxy) Accepted() int { return int(p.accepted.Load()) }

// Passed is how many bytes went one way so far.
func (p *Proxy) Passed(way Way) int64 { return p.passed[way].Load() }

// Lost is how many bytes of one way were thrown away so far by Fault.Drop.
func (p *Proxy) Lost(way Way) int64 { return p.lost[way].Load() }

func (p *Proxy) changeLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Renew()
	p.all.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.accepted.Add(1)
		p.all.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	target, refuse := p.target, p.refuse || p.closed
	p.mu.Unlock()
	if refuse {
		_ = client.(*net.TCPConn).SetLinger(0)
		_ = client.Close()
		return
	}
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", target)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.open[client], p.open[server] = struct{}{}, struct{}{}
	late := p.closed
	p.mu.Unlock()
	if late {
		p.Reset()
	}
	var both sync.WaitGroup
	both.Go(func() { p.carry(ToServer, server, client) })
	both.Go(func() { p.carry(ToClient, client, server) })
	both.Wait()
	p.mu.Lock()
	delete(p.open, client)
	delete(p.open, server)
	p.mu.Unlock()
}

// carry passes bytes on from one end to the other. The end of one way ends the whole connection.
func (p *Proxy) carry(way Way, to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	scan := &frames{preface: way == ToServer}
	buf := make([]byte, 32<<10)
	for p.ready(way, from) {
		n, err := from.Read(buf)
		if n > 0 && !p.pass(way, to, from, scan, buf[:n]) {
			return
		}
		if err != nil {
			return
		}
	}
}

// ready waits while a way is held. It says false if the connection was reset meanwhile.
func (p *Proxy) ready(way Way, from net.Conn) bool {
	for {
		p.mu.Lock()
		f, changed := p.faults[way], p.changed
		_, open := p.open[from]
		p.mu.Unlock()
		if !open || !f.Hold || f.After > 0 {
			return open
		}
		<-changed // Reset changes it too
	}
}

// pass applies the fault to what was read.
func (p *Proxy) pass(way Way, to, from net.Conn, scan *frames, piece []byte) bool {
	for len(piece) > 0 {
		if !p.ready(way, from) {
			return false
		}
		p.mu.Lock()
		n, f := len(piece), p.faults[way]
		switch {
		case f.After > 0:
			n = int(min(int64(n), f.After))
			p.faults[way].After -= int64(n)
			f = Fault{}
		case f.Piece > 0:
			n = min(n, f.Piece)
		}
		p.mu.Unlock()
		if f.Delay > 0 {
			timer := time.NewTimer(f.Delay)
			<-timer.C
		}
		part := piece[:n]
		piece = piece[n:]
		if p.HTTP2 {
			part = scan.without(part, f.Data)
		}
		if f.Drop {
			p.lost[way].Add(int64(len(part)))
			continue
		}
		p.passed[way].Add(int64(len(part)))
		if _, err := to.Write(part); err != nil {
			return false
		}
	}
	return true
}

// frames knows where in the frames of HTTP/2 a flow of bytes is.
type frames struct {
	preface bool // the client's preface is still to come
	header  []byte
	left    int
	data    bool
}

const (
	prefaceBytes = 24
	headerBytes  = 9
)

// without takes bytes in, and returns them without those of DATA frames if so asked. A frame that has begun to pass
// goes on to pass.
func (s *frames) without(piece []byte, drop bool) []byte {
	var out []byte
	if s.preface {
		s.preface, s.left = false, prefaceBytes
	}
	for len(piece) > 0 {
		if s.left == 0 {
			n := min(headerBytes-len(s.header), len(piece))
			s.header = append(s.header, piece[:n]...)
			piece = piece[n:]
			if len(s.header) < headerBytes {
				break // kept back until it is whole
			}
			s.left = int(binary.BigEndian.Uint32(append([]byte{0}, s.header[:3]...)))
			s.data = s.header[3] == 0 && drop
			if !s.data {
				out = append(out, s.header...)
			}
			s.header = s.header[:0]
			continue
		}
		n := min(s.left, len(piece))
		if !s.data {
			out = append(out, piece[:n]...)
		}
		s.left -= n
		piece = piece[n:]
	}
	return out
}
