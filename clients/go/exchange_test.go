package throwbar

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
)

// exchange is a strict server of commands: it ends a stream that breaks the contract, and fails the test.
type exchange struct {
	controlv1connect.UnimplementedCommandServiceHandler

	t      *testing.T
	server *httptest.Server

	// act answers a command; nil leaves it under way until it is cancelled.
	act func(ctx context.Context, url string) *controlv1.DispatchStreamAnswer
	// refuse ends streams before they begin.
	refuse func(n int32) error
	// mute has streams that are not opened, as behind a proxy that wants to see all of a request first.
	mute bool

	unary, streams, messages, seen, cancelled, ended atomic.Int32
	most                                             atomic.Int32 // commands under way at a time
	breaks                                           chan error   // ends the stream
}

func newExchange(t *testing.T) *exchange {
	t.Helper()
	e := &exchange{t: t, breaks: make(chan error)}
	e.act = func(_ context.Context, url string) *controlv1.DispatchStreamAnswer { return echo(url) }
	server := connect.NewServer(authenticate)
	controlv1connect.RegisterCommandServiceHandler(server, e)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, server, connecthttp.WithCompressMinBytes(1024))
	e.server = httptest.NewUnstartedServer(mux)
	e.server.Config.Protocols = &http.Protocols{}
	e.server.Config.Protocols.SetHTTP1(true)
	e.server.Config.Protocols.SetUnencryptedHTTP2(true)
	e.server.Start()
	t.Cleanup(e.server.Close)
	return e
}

// echo is an answer whose result shows what it answers.
func echo(url string) *controlv1.DispatchStreamAnswer {
	return &controlv1.DispatchStreamAnswer{Kind: &controlv1.DispatchStreamAnswer_Response{
		Response: outcomes(&controlv1.DeviceOutcome{Outcome: &controlv1.DeviceOutcome_Result{Result: opened(url)}}),
	}}
}

func (e *exchange) client(mode DispatchMode) *Client {
	e.t.Helper()
	c, err := New(Config{Server: e.server.URL, Token: "secret", Dispatch: mode})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (e *exchange) Dispatch(ctx context.Context, req *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
	e.unary.Add(1)
	return e.act(ctx, req.GetAction().GetOpenTab().GetUrl()).GetResponse(), nil
}

// held is one stream of the server.
type held struct {
	*exchange

	send sync.Mutex
	over bool // guarded by send; nothing may be sent any more
	mu   sync.Mutex
	open map[uint64]context.CancelFunc // guarded by mu
}

func (e *exchange) DispatchStream(ctx context.Context, stream controlv1connect.CommandServiceDispatchStreamServerStream) error {
	n := e.streams.Add(1)
	defer e.ended.Add(1)
	if e.refuse != nil {
		if err := e.refuse(n); err != nil {
			return err
		}
	}
	if e.mute {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := stream.SendHeaders(); err != nil {
		return err
	}
	h := &held{exchange: e, open: map[uint64]context.CancelFunc{}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() {
		h.send.Lock()
		defer h.send.Unlock()
		h.over = true
	}()
	end := make(chan error, 1)
	var tasks sync.WaitGroup
	go func() {
		for {
			req, err := stream.Receive()
			if errors.Is(err, io.EOF) {
				tasks.Wait()
				end <- nil
				return
			}
			if err == nil {
				err = h.message(ctx, req, stream, &tasks)
			}
			if err != nil {
				end <- err
				return
			}
		}
	}()
	select {
	case err := <-end:
		return err
	case err := <-e.breaks:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *held) message(
	ctx context.Context, req *controlv1.DispatchStreamRequest,
	stream controlv1connect.CommandServiceDispatchStreamServerStream, tasks *sync.WaitGroup,
) error {
	h.messages.Add(1)
	if n := len(req.GetItems()); n == 0 || n > streamItems || proto.Size(req) > requestBytes+1024 {
		h.t.Errorf("a message of %d items and %d bytes", n, proto.Size(req))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, item := range req.GetItems() {
		number := item.GetNumber()
		if item.GetCancel() != nil {
			h.cancelled.Add(1)
			if stop := h.open[number]; stop != nil {
				stop()
			}
			continue
		}
		if h.open[number] != nil {
			h.t.Errorf("number %d is under way already", number)
		}
		one, stop := context.WithCancel(ctx)
		h.open[number] = stop
		h.seen.Add(1)
		if n := int32(len(h.open)); n > h.most.Load() {
			h.most.Store(n)
		}
		if len(h.open) > streamUnderWay {
			h.t.Errorf("%d commands are under way", len(h.open))
		}
		act := h.act
		if err := protovalidate.Validate(item); err != nil { // one that is bad disturbs no other
			act = func(context.Context, string) *controlv1.DispatchStreamAnswer {
				return &controlv1.DispatchStreamAnswer{Kind: &controlv1.DispatchStreamAnswer_Error{
					Error: &commandv1.CommandError{Code: commandv1.ErrorCode_ERROR_CODE_INVALID, Message: err.Error()},
				}}
			}
		}
		url := item.GetDispatch().GetAction().GetOpenTab().GetUrl()
		tasks.Go(func() {
			a := act(one, url)
			if a == nil {
				<-one.Done()
				a = &controlv1.DispatchStreamAnswer{Kind: &controlv1.DispatchStreamAnswer_Error{
					Error: &commandv1.CommandError{Code: commandv1.ErrorCode_ERROR_CODE_CANCELLED, Message: "cancelled"},
				}}
			}
			h.mu.Lock()
			delete(h.open, number)
			h.mu.Unlock()
			stop()
			a.Number = number
			h.send.Lock()
			defer h.send.Unlock()
			if h.over {
				return
			}
			_ = stream.Send(&controlv1.DispatchStreamResponse{}) // alive
			_ = stream.Send(&controlv1.DispatchStreamResponse{Answers: []*controlv1.DispatchStreamAnswer{a}})
		})
	}
	return nil
}

func request(url string) *controlv1.DispatchRequest {
	return &controlv1.DispatchRequest{DeviceIds: []string{"d"}, Action: openTab(url)}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
