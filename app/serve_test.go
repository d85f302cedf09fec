package app

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Trap G7: a stream's window is as large as its connection's by default, so that streams which nobody reads stall every
// other call on that connection.
func TestTrapStreamsThatAreNotReadDoNotStallTheirConnection(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/stuck", func(http.ResponseWriter, *http.Request) { <-release })
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := httpServer(mux, context.WithoutCancel(t.Context()), slog.New(slog.DiscardHandler))
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	dials := 0
	transport := &http.Transport{Protocols: &protocols, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials++
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}}
	client := &http.Client{Transport: transport}
	post := func(ctx context.Context, path string, body []byte) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+listener.Addr().String()+path, bytes.NewReader(body))
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := post(ctx, "/ok", []byte("warm")); err != nil { // the connection that all will share
		t.Fatal(err)
	}
	var stuck sync.WaitGroup
	for range 8 {
		stuck.Go(func() { _ = post(context.WithoutCancel(t.Context()), "/stuck", make([]byte, 2<<20)) })
	}
	for range 20 {
		if err := post(ctx, "/ok", make([]byte, 64<<10)); err != nil {
			t.Errorf("a call beside streams that are not read: %v", err)
			break
		}
	}
	if dials != 1 {
		t.Errorf("%d connections", dials)
	}
	close(release)
	stuck.Wait()
	transport.CloseIdleConnections()
	_ = web.Close()
	<-served
}
