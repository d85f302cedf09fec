package historytest

import (
	"io"
	"net/http"
	"sync"
)

// direct serves requests in this process, without a network, piece by piece.
type direct struct{ handler http.Handler }

// RoundTrip serves a request. A handler that breaks off breaks the body off.
func (d direct) RoundTrip(request *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	w := &pieces{header: http.Header{}, body: writer, begun: make(chan struct{})}
	go func() {
		defer func() {
			w.WriteHeader(http.StatusOK)
			if cause := recover(); cause != nil {
				_ = writer.CloseWithError(io.ErrUnexpectedEOF)
				return
			}
			_ = writer.Close()
		}()
		d.handler.ServeHTTP(w, request)
	}()
	select {
	case <-w.begun:
	case <-request.Context().Done():
		_ = reader.Close()
		return nil, request.Context().Err()
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Header: w.sent, Body: reader, Request: request,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
	}, nil
}

// pieces is the answer as its handler writes it.
type pieces struct {
	header http.Header
	body   *io.PipeWriter
	begun  chan struct{} // closed when status and sent are there
	once   sync.Once
	status int
	sent   http.Header
}

// Header is what is sent with the first piece.
func (p *pieces) Header() http.Header { return p.header }

// WriteHeader sends the header, once.
func (p *pieces) WriteHeader(status int) {
	p.once.Do(func() {
		p.status, p.sent = status, p.header.Clone()
		close(p.begun)
	})
}

// Write sends a piece and waits until it is read.
func (p *pieces) Write(piece []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.body.Write(piece)
}

// Flush has nothing to do: nothing is held back.
func (p *pieces) Flush() {}
