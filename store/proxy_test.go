package store

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// cut says what becomes of a connection at a commit, or at the claim of a new session.
type cut int

const (
	pass         cut = iota
	cutBefore        // it never reaches the server
	cutAfter         // the server has done it, the answer is lost
	cutMeanwhile     // it is sent, and the connection goes at that moment: nobody knows whether the server does it, no answer comes
	cutHalf          // it never reaches the server, which does not notice that the connection is gone
)

// proxy is a network between the store and PostgreSQL that can be cut.
type proxy struct {
	listener net.Listener
	server   string
	refuse   atomic.Bool // new connections are closed at once
	group    sync.WaitGroup

	mu    sync.Mutex
	cuts  []cut // for the next commits and claims; pass if there are none
	conns []net.Conn
}

// between starts a proxy for a database and gives the URL through it.
func between(tb testing.TB, databaseURL string) (*proxy, string) {
	tb.Helper()
	u, err := url.Parse(databaseURL)
	check(tb, err)
	dir, err := os.MkdirTemp("", "cut") //nolint:usetesting // the path of a socket must be short
	check(tb, err)
	const socket = ".s.PGSQL.5432"
	p := &proxy{server: filepath.Join(u.Query().Get("host"), socket)}
	p.listener, err = net.Listen("unix", filepath.Join(dir, socket))
	check(tb, err)
	p.group.Go(p.accept)
	tb.Cleanup(func() {
		check(tb, p.listener.Close())
		p.cutAll()
		p.group.Wait()
		check(tb, os.RemoveAll(dir))
	})
	u.RawQuery = url.Values{"host": {dir}}.Encode()
	return p, u.String()
}

func (p *proxy) next(cuts ...cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts = append(p.cuts, cuts...)
}

// only replaces what is to come.
func (p *proxy) only(cuts ...cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts = cuts
}

func (p *proxy) take() cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.cuts) == 0 {
		return pass
	}
	first := p.cuts[0]
	p.cuts = p.cuts[1:]
	return first
}

// cutAll cuts every connection there is.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.server)
		if err != nil || p.refuse.Load() {
			_ = client.Close()
			if err == nil {
				_ = server.Close()
			}
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		var answersLost atomic.Bool
		p.group.Go(func() {
			if p.forward(client, server, &answersLost) != cutHalf {
				_ = server.Close()
			}
			_ = client.Close()
		})
		p.group.Go(func() {
			buffer := make([]byte, 1<<16)
			for {
				n, err := server.Read(buffer)
				if err != nil || answersLost.Load() {
					break
				}
				if _, err := client.Write(buffer[:n]); err != nil {
					break
				}
			}
			_ = client.Close()
			_ = server.Close()
		})
	}
}

// forward sends message by message to the server, until the connection is to be cut, and says how.
func (p *proxy) forward(client io.Reader, server io.Writer, answersLost *atomic.Bool) cut {
	for header := 4; ; header = 5 { // the first message has no type
		message := make([]byte, header)
		if _, err := io.ReadFull(client, message); err != nil {
			return pass
		}
		body := make([]byte, binary.BigEndian.Uint32(message[header-4:])-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return pass
		}
		what := pass
		text := string(body)
		if header == 5 && message[0] == 'Q' && (text == "commit\x00" || strings.HasPrefix(text, "update store_writer set epoch")) {
			what = p.take()
		}
		if what == cutBefore || what == cutHalf {
			return what
		}
		answersLost.Store(what == cutAfter || what == cutMeanwhile)
		if _, err := server.Write(append(message, body...)); err != nil || what == cutMeanwhile {
			return what
		}
	}
}
