package apptest_test

import (
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"throwbar.dev/throwbar/app/apptest"
)

// echo answers every byte with itself, and reports what it got.
func echo(t *testing.T) (string, <-chan []byte) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	got := make(chan []byte, 1000)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf := make([]byte, 4096)
				for {
					n, err := conn.Read(buf)
					if err != nil {
						return
					}
					got <- slices.Clone(buf[:n])
					if _, err := conn.Write(buf[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String(), got
}

func dialProxy(t *testing.T, p *apptest.Proxy) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func say(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	buf := make([]byte, len(want))
	if _, err := io.ReadFull(conn, buf); err != nil || string(buf) != want {
		t.Fatalf("heard %q, %v; want %q", buf, err, want)
	}
}

// deaf says that nothing comes for a moment.
func deaf(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	n, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	if n != 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("something came: %d, %v", n, err)
	}
	_ = conn.SetReadDeadline(time.Time{})
}

func TestAProxyPassesHoldsAndMends(t *testing.T) {
	t.Parallel()
	target, got := echo(t)
	p := apptest.NewProxy(t, target)
	conn := dialProxy(t, p)
	say(t, conn, "one")
	hear(t, conn, "one")
	p.Freeze()
	say(t, conn, "two")
	deaf(t, conn)
	p.Mend()
	hear(t, conn, "two")
	// One way only: what is said arrives, the answer does not, and is not lost.
	p.Set(apptest.ToClient, apptest.Fault{Hold: true})
	for len(got) > 0 {
		<-got
	}
	say(t, conn, "three")
	if b := <-got; string(b) != "three" {
		t.Errorf("the server got %q", b)
	}
	deaf(t, conn)
	p.Mend()
	hear(t, conn, "three")
	if p.Accepted() != 1 || p.Passed(apptest.ToServer) != int64(len("onetwothree")) {
		t.Errorf("%d connections, %d bytes", p.Accepted(), p.Passed(apptest.ToServer))
	}
}

func TestAProxySwallowsAfterBytes(t *testing.T) {
	t.Parallel()
	target, got := echo(t)
	p := apptest.NewProxy(t, target)
	p.Set(apptest.ToServer, apptest.Fault{After: 4, Drop: true})
	conn := dialProxy(t, p)
	say(t, conn, "abcdefgh")
	hear(t, conn, "abcd")
	apptest.Eventually(t, "the rest is swallowed", func() bool { return p.Lost(apptest.ToServer) == 4 })
	deaf(t, conn)
	p.Mend()
	say(t, conn, "ij")
	hear(t, conn, "ij") // what was swallowed is gone
	var all []byte
	for len(got) > 0 {
		all = append(all, <-got...)
	}
	if string(all) != "abcdij" {
		t.Errorf("the server got %q", all)
	}
}

func TestAProxyTrickles(t *testing.T) {
	t.Parallel()
	target, _ := echo(t)
	p := apptest.NewProxy(t, target)
	p.Set(apptest.ToServer, apptest.Fault{Piece: 1, Delay: time.Millisecond})
	conn := dialProxy(t, p)
	begun := time.Now()
	say(t, conn, "slowly")
	hear(t, conn, "slowly")
	// How many pieces arrive at once depends on how busy whoever reads them is; how long they take does not.
	if took := time.Since(begun); took < time.Duration(len("slowly"))*time.Millisecond {
		t.Errorf("six pieces took %v", took)
	}
}

func TestAProxyResetsAndRefuses(t *testing.T) {
	t.Parallel()
	target, _ := echo(t)
	p := apptest.NewProxy(t, target)
	conn := dialProxy(t, p)
	say(t, conn, "x")
	hear(t, conn, "x")
	p.Freeze()
	p.Reset() // a connection that is held is reset too
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the reset: %v", err)
	}
	p.Mend()
	conn = dialProxy(t, p)
	say(t, conn, "z")
	hear(t, conn, "z")
	p.Freeze()
	p.Renew()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the renewal: %v", err)
	}
	p.Refuse(true)
	refused, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Address)
	if err == nil {
		_, err = refused.Read(make([]byte, 1))
		_ = refused.Close()
	}
	if err == nil {
		t.Error("a refused connection works")
	}
	p.Refuse(false)
	again := dialProxy(t, p)
	say(t, again, "y")
	hear(t, again, "y")
}

// frame is a frame of HTTP/2.
func frame(kind byte, body string) string {
	return string([]byte{0, 0, byte(len(body)), kind, 0, 0, 0, 0, 1}) + body
}

func TestAProxyTakesDataFramesOut(t *testing.T) {
	t.Parallel()
	target, _ := echo(t)
	p := apptest.NewProxy(t, target)
	p.HTTP2 = true
	conn := dialProxy(t, p)
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	ping, data := frame(6, "12345678"), frame(0, "payload")
	p.Set(apptest.ToServer, apptest.Fault{Piece: 5}) // frames that come in pieces
	say(t, conn, preface+ping+data)
	hear(t, conn, preface+ping+data)
	p.Set(apptest.ToServer, apptest.Fault{Data: true, Piece: 5})
	say(t, conn, data+ping+data+ping)
	hear(t, conn, ping+ping)
	deaf(t, conn)
}
