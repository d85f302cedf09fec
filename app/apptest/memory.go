package apptest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// Memory is a network of its own in memory: an HTTP client whose requests a handler in this process answers, streams in
// both directions included. In a bubble of testing/synctest a whole server and thousands of devices run in virtual
// time on it.
type Memory struct {
	mu      sync.Mutex
	handler http.Handler           // guarded by mu; nil while there is no server
	open    map[*exchange]struct{} // guarded by mu
}

// Up puts a server on the network.
func (m *Memory) Up(handler http.Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handler = handler
}

// Down takes the server away as a kill does: open streams break, new ones are refused.
func (m *Memory) Down() {
	m.mu.Lock()
	m.handler = nil
	var open []*exchange
	for e := range m.open {
		open = append(open, e)
	}
	m.mu.Unlock()
	for _, e := range open {
		e.cut(errBroken)
	}
}

var (
	errRefused = errors.New("connection refused")
	errBroken  = errors.New("connection reset")
)

// Do answers a request. It implements the client's HTTPClient.
func (m *Memory) Do(req *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancelCause(context.Background())
	e := &exchange{
		header: http.Header{}, out: writer, cancel: cancel, answered: make(chan struct{}), body: req.Body,
	}
	e.res = &http.Response{
		Proto: "HTTP/2.0", ProtoMajor: 2, Request: req, Body: reader, Trailer: http.Header{}, ContentLength: -1,
	}
	m.mu.Lock()
	handler := m.handler
	if handler != nil {
		if m.open == nil {
			m.open = map[*exchange]struct{}{}
		}
		m.open[e] = struct{}{}
	}
	m.mu.Unlock()
	if handler == nil {
		return nil, errRefused
	}
	stop := context.AfterFunc(req.Context(), func() { e.cut(context.Cause(req.Context())) })
	server := req.Clone(ctx)
	server.Proto, server.ProtoMajor, server.ProtoMinor = "HTTP/2.0", 2, 0
	server.Host, server.RequestURI = req.URL.Host, req.URL.RequestURI()
	server.URL = &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: req.URL.RawQuery} // as a server reads it
	server.Body = e
	if server.Body == nil || req.Body == nil {
		server.Body, e.body = http.NoBody, http.NoBody
	}
	go func() {
		defer stop()
		handler.ServeHTTP(e, server)
		e.finish()
		m.mu.Lock()
		delete(m.open, e)
		m.mu.Unlock()
	}()
	select {
	case <-e.answered:
		return e.res, nil
	case <-ctx.Done():
	}
	select {
	case <-e.answered: // and the exchange was over as soon
		return e.res, nil
	default:
		return nil, context.Cause(ctx)
	}
}

// exchange is one request and its response, as the server sees them.
type exchange struct {
	header   http.Header
	res      *http.Response
	out      *io.PipeWriter
	body     io.ReadCloser
	cancel   context.CancelCauseFunc
	answered chan struct{}

	mu          sync.Mutex
	sent        bool        // guarded by mu
	broken      bool        // guarded by mu; the client has been told an error and may look at the trailers
	read, write *time.Timer // guarded by mu
}

func (e *exchange) cut(err error) {
	e.mu.Lock()
	e.broken = true
	e.mu.Unlock()
	e.cancel(err)
	_ = e.out.CloseWithError(err)
	_ = e.body.Close()
}

// Read reads the request.
func (e *exchange) Read(b []byte) (int, error) { return e.body.Read(b) }

// Close closes the request's body.
func (e *exchange) Close() error { return e.body.Close() }

// Header is the response's.
func (e *exchange) Header() http.Header { return e.header }

// WriteHeader sends the header.
func (e *exchange) WriteHeader(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sent {
		return
	}
	e.sent = true
	e.res.StatusCode, e.res.Header = status, http.Header{}
	for name, values := range e.header {
		if !strings.HasPrefix(name, http.TrailerPrefix) {
			e.res.Header[name] = values
		}
	}
	close(e.answered)
}

// Write sends a part of the body and waits until it is read.
func (e *exchange) Write(b []byte) (int, error) {
	e.WriteHeader(http.StatusOK)
	return e.out.Write(b)
}

// Flush sends the header.
func (e *exchange) Flush() { e.WriteHeader(http.StatusOK) }

func (e *exchange) finish() {
	e.WriteHeader(http.StatusOK)
	e.mu.Lock()
	for name, values := range e.header {
		if trailer, ok := strings.CutPrefix(name, http.TrailerPrefix); ok && !e.broken {
			e.res.Trailer[trailer] = values
		}
	}
	e.mu.Unlock()
	_ = e.SetReadDeadline(time.Time{})
	_ = e.SetWriteDeadline(time.Time{})
	_ = e.out.Close()
	_ = e.body.Close()
	e.cancel(nil)
}

// SetReadDeadline is for http.ResponseController.
func (e *exchange) SetReadDeadline(t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.read = deadline(e.read, t, func() { _ = e.body.Close() })
	return nil
}

// SetWriteDeadline is for http.ResponseController.
func (e *exchange) SetWriteDeadline(t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.write = deadline(e.write, t, func() { e.cut(os.ErrDeadlineExceeded) })
	return nil
}

func deadline(timer *time.Timer, t time.Time, end func()) *time.Timer {
	if timer != nil {
		timer.Stop()
	}
	if t.IsZero() {
		return nil
	}
	return time.AfterFunc(time.Until(t), end)
}
