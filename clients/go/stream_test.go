package throwbar

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

func TestManyCallersShareOneStream(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{1, 64, 1500} {
		e := newExchange(t)
		c := e.client(DispatchStreamed)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for j := range 3 {
					url := fmt.Sprintf("https://%d.%d/", i, j)
					res, err := c.Dispatch(t.Context(), request(url))
					if err != nil || res.GetOutcomes()[0].GetResult().GetOpenTab().GetUrl() != url {
						t.Errorf("%s: %v, %v", url, res, err)
					}
				}
			})
		}
		wg.Wait()
		if e.streams.Load() != 1 || e.unary.Load() != 0 || e.seen.Load() != int32(3*callers) {
			t.Errorf("%d streams, %d calls, %d commands", e.streams.Load(), e.unary.Load(), e.seen.Load())
		}
		if callers > 100 && e.messages.Load() >= e.seen.Load() {
			t.Errorf("%d messages for %d commands", e.messages.Load(), e.seen.Load())
		}
	}
}

// TestTheRoadOfACall has the rule of DispatchAuto: alone by itself, with others over the stream.
func TestTheRoadOfACall(t *testing.T) {
	t.Parallel()
	e := newExchange(t)
	hold := make(chan struct{})
	e.act = func(_ context.Context, url string) *controlv1.DispatchStreamAnswer {
		if url == "slow" {
			<-hold
		}
		return echo(url)
	}
	c := e.client(DispatchAuto)
	for range 3 {
		if _, err := Call(t.Context(), c, "d", &commandv1.OpenTab{Url: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if e.unary.Load() != 3 || e.streams.Load() != 0 {
		t.Errorf("one after the other: %d calls, %d streams", e.unary.Load(), e.streams.Load())
	}
	first := make(chan error, 1)
	go func() {
		_, err := Call(t.Context(), c, "d", &commandv1.OpenTab{Url: "slow"})
		first <- err
	}()
	eventually(t, "the slow one is under way", func() bool { return e.unary.Load() == 4 })
	for range 3 {
		if _, err := Call(t.Context(), c, "d", &commandv1.OpenTab{Url: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if e.unary.Load() != 4 || e.streams.Load() != 1 || e.seen.Load() != 3 {
		t.Errorf("beside another: %d calls, %d streams, %d commands on it", e.unary.Load(), e.streams.Load(), e.seen.Load())
	}
	close(hold)
	if err := <-first; err != nil {
		t.Error(err)
	}
	c = e.client(DispatchUnary)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := c.Dispatch(t.Context(), request("a")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if e.streams.Load() != 1 || e.unary.Load() != 12 {
		t.Errorf("unary: %d calls, %d streams", e.unary.Load(), e.streams.Load())
	}
}

func TestWhereThereIsNoStream(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*exchange, *Config){
		"older server": func(e *exchange, _ *Config) {
			e.refuse = func(int32) error { return connect.NewError(connect.CodeUnimplemented, "no such method") }
		},
		"no HTTP/2": func(e *exchange, c *Config) { c.HTTPClient = e.server.Client() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newExchange(t)
			cfg := Config{Server: e.server.URL, Token: "secret"}
			prepare(e, &cfg)
			c, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for range 3 {
				var wg sync.WaitGroup
				for range 20 {
					wg.Go(func() {
						if _, err := c.Dispatch(t.Context(), request("a")); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
			}
			if e.streams.Load() > 1 || e.unary.Load() != 60 {
				t.Errorf("%d streams, %d calls", e.streams.Load(), e.unary.Load())
			}
			cfg.Dispatch = DispatchStreamed
			if c, err = New(cfg); err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var own *Error
			if _, err := c.Dispatch(t.Context(), request("a")); !errors.As(err, &own) || own.Code != CodeUnsupported {
				t.Errorf("streamed: %v", err)
			}
		})
	}
}

func TestServerThatCannotBeReached(t *testing.T) {
	t.Parallel()
	for _, mode := range []DispatchMode{DispatchAuto, DispatchStreamed} {
		c, err := New(Config{Server: "http://127.0.0.1:1", Token: "secret", Dispatch: mode}) // as a closed one's may be given away
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := c.Dispatch(t.Context(), request("a")); CodeOf(err) != CodeUnavailable || errors.Is(err, ErrOutcomeUnknown) {
					t.Errorf("mode %d: %v", mode, err)
				}
			})
		}
		wg.Wait()
	}
}

// TestStreamThatDoesNotOpen has a way on which a stream hangs: nothing is lost on it.
func TestStreamThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	e := newExchange(t)
	e.mute = true
	for _, mode := range []DispatchMode{DispatchAuto, DispatchStreamed} {
		c := e.client(mode)
		c.stream.openWithin = 20 * time.Millisecond
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				_, err := c.Dispatch(t.Context(), request("a"))
				if mode == DispatchAuto && err != nil || mode == DispatchStreamed && CodeOf(err) != CodeUnavailable {
					t.Errorf("mode %d: %v", mode, err)
				}
			})
		}
		wg.Wait()
	}
	if e.unary.Load() != 20 || e.seen.Load() != 0 {
		t.Errorf("%d calls, %d commands on streams", e.unary.Load(), e.seen.Load())
	}
}

func TestRefusedStream(t *testing.T) {
	t.Parallel()
	e := newExchange(t)
	c, err := New(Config{Server: e.server.URL, Token: "wrong", Dispatch: DispatchStreamed})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Dispatch(t.Context(), request("a")); CodeOf(err) != CodeUnauthenticated {
		t.Error(err)
	}
}

// TestCallerGoesAway has a caller whose context ends: the server is told, and the caller does not wait for it.
func TestCallerGoesAway(t *testing.T) {
	t.Parallel()
	e := newExchange(t)
	e.act = func(_ context.Context, url string) *controlv1.DispatchStreamAnswer {
		if url == "hangs" {
			return nil
		}
		return echo(url)
	}
	c := e.client(DispatchStreamed)
	because := errors.New("because")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.Dispatch(ctx, request("hangs"))
		ended <- err
	}()
	eventually(t, "it is under way", func() bool { return e.seen.Load() == 1 })
	cancel(because)
	err := <-ended
	if CodeOf(err) != CodeCancelled || !errors.Is(err, because) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancel: %v", err)
	}
	eventually(t, "the server is told", func() bool { return e.cancelled.Load() == 1 })
	eventually(t, "its place is free again", func() bool { return len(c.stream.slots) == 0 })
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := c.Dispatch(short, request("hangs")); CodeOf(err) != CodeExpired || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
	if _, err := c.Dispatch(t.Context(), request("a")); err != nil || e.streams.Load() != 1 {
		t.Errorf("afterwards: %v, %d streams", err, e.streams.Load())
	}
}

// TestBrokenStream has a stream that breaks with commands under way: they are not sent again, others go on the next.
func TestBrokenStream(t *testing.T) {
	t.Parallel()
	e := newExchange(t)
	release := make(chan struct{})
	e.act = func(ctx context.Context, url string) *controlv1.DispatchStreamAnswer {
		if strings.HasPrefix(url, "slow") {
			select {
			case <-ctx.Done():
				return nil
			case <-release:
			}
		}
		return echo(url)
	}
	c := e.client(DispatchStreamed)
	ended := make(chan error, 10)
	for i := range 10 {
		go func() {
			_, err := c.Dispatch(t.Context(), request(fmt.Sprintf("slow %d", i)))
			ended <- err
		}()
	}
	eventually(t, "all are under way", func() bool { return e.seen.Load() == 10 })
	e.breaks <- connect.NewError(connect.CodeUnavailable, "draining")
	for range 10 {
		err := <-ended
		var own *Error
		if !errors.Is(err, ErrOutcomeUnknown) || !errors.As(err, &own) || own.Code != CodeInterrupted || own.Retryable ||
			!strings.Contains(err.Error(), "draining") {
			t.Errorf("broken: %v", err)
		}
	}
	if _, err := c.Dispatch(t.Context(), request("a")); err != nil || e.streams.Load() != 2 {
		t.Errorf("afterwards: %v, %d streams", err, e.streams.Load())
	}
	go func() {
		_, err := c.Dispatch(t.Context(), request("slow"))
		ended <- err
	}()
	eventually(t, "it is under way", func() bool { return e.seen.Load() == 12 })
	e.server.CloseClientConnections()
	if err := <-ended; !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("the connection is gone: %v", err)
	}
	if e.seen.Load() != 12 {
		t.Errorf("%d commands reached the server", e.seen.Load())
	}
}

func TestPerItemErrors(t *testing.T) {
	t.Parallel()
	e := newExchange(t)
	e.act = func(_ context.Context, url string) *controlv1.DispatchStreamAnswer {
		if url == "empty" {
			return &controlv1.DispatchStreamAnswer{}
		}
		return &controlv1.DispatchStreamAnswer{Kind: &controlv1.DispatchStreamAnswer_Error{
			Error: &commandv1.CommandError{Code: commandv1.ErrorCode_ERROR_CODE_BUSY, Message: "full", Retryable: true},
		}}
	}
	c := e.client(DispatchStreamed)
	var own *Error
	if _, err := c.Dispatch(t.Context(), request("a")); !errors.As(err, &own) || own.Code != CodeBusy || !own.Retryable {
		t.Errorf("busy: %v", err)
	}
	if _, err := c.Dispatch(t.Context(), request("empty")); CodeOf(err) != CodeInternal {
		t.Errorf("empty: %v", err)
	}
	for name, req := range map[string]*controlv1.DispatchRequest{
		"no action": {},
		"no UTF-8":  {Action: openTab("\xff")},
		"too large": {Action: closeTabs(strings.Repeat("x", requestBytes))},
	} {
		if _, err := c.Dispatch(t.Context(), req); CodeOf(err) != CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if e.seen.Load() != 3 || e.streams.Load() != 1 {
		t.Errorf("%d commands, %d streams", e.seen.Load(), e.streams.Load())
	}
}

// TestStreamIsBounded has more callers than may be under way: the others wait, and may go away while they do.
func TestStreamIsBounded(t *testing.T) {
	t.Parallel()
	e := newExchange(t)
	release := make(chan struct{})
	e.act = func(_ context.Context, url string) *controlv1.DispatchStreamAnswer {
		<-release
		return echo(url)
	}
	c := e.client(DispatchStreamed)
	var wg sync.WaitGroup
	for range streamUnderWay + 200 {
		wg.Go(func() {
			if _, err := c.Dispatch(t.Context(), request("a")); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "it is full", func() bool { return e.seen.Load() == streamUnderWay })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Dispatch(ctx, request("a")); CodeOf(err) != CodeCancelled {
		t.Errorf("while it is full: %v", err)
	}
	close(release)
	wg.Wait()
	if e.seen.Load() != streamUnderWay+200 || e.most.Load() != streamUnderWay {
		t.Errorf("%d commands, %d at a time", e.seen.Load(), e.most.Load())
	}
}

// TestNothingIsLeft has streams that end in each way, and counts goroutines.
func TestNothingIsLeft(t *testing.T) { //nolint:paralleltest // it counts goroutines
	before := runtime.NumGoroutine()
	e := newExchange(t)
	e.act = func(_ context.Context, url string) *controlv1.DispatchStreamAnswer {
		if url == "hangs" {
			return nil
		}
		return echo(url)
	}
	c := e.client(DispatchStreamed)
	for range 5 {
		if _, err := c.Dispatch(t.Context(), request("a")); err != nil {
			t.Fatal(err)
		}
		streams := e.ended.Load()
		c.CloseIdle() // ends the stream: the next call has another one
		eventually(t, "the stream has ended", func() bool { return e.ended.Load() == streams+1 })
	}
	if e.streams.Load() != 5 {
		t.Errorf("%d streams", e.streams.Load())
	}
	if _, err := c.Dispatch(t.Context(), request("a")); err != nil {
		t.Fatal(err)
	}
	seen := e.seen.Load()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Dispatch(t.Context(), request("hangs"))
		ended <- err
	}()
	eventually(t, "it is under way", func() bool { return e.seen.Load() == seen+1 })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, ErrClosed) {
		t.Errorf("under way when it was closed: %v", err)
	}
	if _, err := c.Dispatch(t.Context(), request("a")); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	e.server.Close()
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}
