package throwbar

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
)

// lived is a server whose streams live in a bubble, for virtual time.
type lived struct {
	controlv1connect.UnimplementedCommandServiceHandler

	streams, ended atomic.Int32
	deaf           bool          // the first stream takes nothing in, and breaks after a second
	beats          time.Duration // between two signs of life; none if zero
	answers        bool
}

func (l *lived) DispatchStream(ctx context.Context, stream controlv1connect.CommandServiceDispatchStreamServerStream) error {
	n := l.streams.Add(1)
	defer l.ended.Add(1)
	if l.deaf && n == 1 {
		<-time.After(time.Second)
		return connect.NewError(connect.CodeUnavailable, "draining")
	}
	requests := make(chan *controlv1.DispatchStreamRequest)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(requests)
		for {
			req, err := stream.Receive()
			if err != nil {
				return
			}
			select {
			case requests <- req:
			case <-ctx.Done():
				return
			}
		}
	}()
	var beat <-chan time.Time
	if l.beats > 0 {
		ticker := time.NewTicker(l.beats)
		defer ticker.Stop()
		beat = ticker.C
	}
	for {
		res := &controlv1.DispatchStreamResponse{}
		select {
		case req, ok := <-requests:
			if !ok {
				return nil
			}
			if !l.answers {
				continue
			}
			for _, item := range req.GetItems() {
				a := echo("a")
				a.Number = item.GetNumber()
				res.Answers = append(res.Answers, a)
			}
		case <-beat:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := stream.Send(res); err != nil {
			return err
		}
	}
}

// bubble is a stream to a server in the same bubble.
func (l *lived) bubble() *stream {
	server := connect.NewServer()
	controlv1connect.RegisterCommandServiceHandler(server, l)
	client := connect.NewClient(connectinprocess.New(server), plain(func() string { return "" }))
	return newStream(controlv1connect.NewCommandServiceClient(client), false)
}

func TestIdleStreamIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lived{beats: 15 * time.Second, answers: true}
		s := l.bubble()
		for range 3 { // the pauses are shorter than what is idle
			if _, err := s.dispatch(t.Context(), request("a")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(streamIdle - time.Second)
		}
		synctest.Wait()
		if l.streams.Load() != 1 || l.ended.Load() != 0 {
			t.Errorf("%d streams, %d ended", l.streams.Load(), l.ended.Load())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		s.mu.Lock()
		running := s.running
		s.mu.Unlock()
		if l.ended.Load() != 1 || running {
			t.Errorf("%d ended, running %v", l.ended.Load(), running)
		}
		if _, err := s.dispatch(t.Context(), request("a")); err != nil || l.streams.Load() != 2 {
			t.Errorf("afterwards: %v, %d streams", err, l.streams.Load())
		}
		s.close()
	})
}

func TestSlowCommandKeepsItsStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lived{beats: 15 * time.Second}
		s := l.bubble()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		began := time.Now()
		if _, err := s.dispatch(ctx, request("a")); CodeOf(err) != CodeExpired || time.Since(began) != 10*time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if l.streams.Load() != 1 || l.ended.Load() != 0 {
			t.Errorf("%d streams, %d ended", l.streams.Load(), l.ended.Load())
		}
		s.close()
	})
}

func TestSilentStreamIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lived{}
		s := l.bubble()
		began := time.Now()
		_, err := s.dispatch(t.Context(), request("a"))
		if !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, errSilent) || time.Since(began) != defaultLease {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		s.close()
	})
}

// TestWhatWasNotWrittenGoesOn has a stream that breaks while it takes nothing in: what it may have been given ends, and
// what still waited goes over the next one.
func TestWhatWasNotWrittenGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lived{answers: true, deaf: true}
		s := l.bubble()
		ends := make(chan error, 2)
		send := func() {
			_, err := s.dispatch(t.Context(), request("a"))
			ends <- err
		}
		go send()
		synctest.Wait() // it is being written
		go send()
		synctest.Wait()
		s.mu.Lock()
		under, waiting := len(s.under), len(s.waiting)
		s.mu.Unlock()
		if under != 1 || waiting != 1 {
			t.Fatalf("%d under way, %d wait", under, waiting)
		}
		if err := <-ends; !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("the first one: %v", err)
		}
		if err := <-ends; err != nil || l.streams.Load() != 2 {
			t.Errorf("the second one: %v, %d streams", err, l.streams.Load())
		}
		s.close()
	})
}
