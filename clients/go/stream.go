package throwbar

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
)

const (
	// streamUnderWay is the number of commands that may be under way on a stream, by the contract. Others wait.
	streamUnderWay = 1024
	// streamItems and streamBytes bound one message; a single larger item goes alone.
	streamItems = 256
	streamBytes = 1 << 20
	// requestBytes is the largest request that a stream takes: the server ends one that sends more than 4 MiB at once,
	// and with it the commands of everybody else.
	requestBytes = 3 << 20
	// streamIdle is how long a stream without commands is kept.
	streamIdle = 30 * time.Second
	// redialFirst and redialMost bound the time before a stream that broke is dialled again; a random part of it passes.
	redialFirst = 100 * time.Millisecond
	redialMost  = 5 * time.Second
	// openWithin is how long the server may take to open a stream; longer than it takes to dial.
	openWithin = 12 * time.Second
	// avoidFor is how long calls go by themselves after a stream could not be opened.
	avoidFor = 30 * time.Second
)

// stream shares one DispatchStream between all callers of a client. It dials when there is something to send. Its
// goroutines end when it has been idle for a while, and when it is closed.
type stream struct {
	commands controlv1connect.CommandServiceClient
	traced   bool // whether the answer to a call shows in its trace
	jitter   func() float64

	openWithin time.Duration // how long the server may take to open the stream

	slots   chan struct{} // one token for each call, until the server has answered it
	wake    chan struct{} // receives when there is something to write
	rest    chan struct{} // receives when the stream is to end, unless it has something to do
	closing chan struct{} // closed with the client
	tasks   sync.WaitGroup

	mu      sync.Mutex
	closed  bool                   // guarded by mu; as closing
	cancel  context.CancelFunc     // guarded by mu; ends the link
	running bool                   // guarded by mu; whether a goroutine looks after waiting
	absent  bool                   // guarded by mu; the server has no stream
	avoid   time.Time              // guarded by mu; until when the stream is not worth a try
	waiting []*streamCall          // guarded by mu; not written yet, in order
	cancels []uint64               // guarded by mu; numbers whose callers went away
	under   map[uint64]*streamCall // guarded by mu; on the link, by number
	number  uint64                 // guarded by mu; the last one given
}

// streamCall is one command on its way.
type streamCall struct {
	raw  []byte             // the request as it travels; its caller may change the message once it has returned
	done chan streamOutcome // receives once

	number uint64 // guarded by the stream's mu; zero while it has not been written
}

type streamOutcome struct {
	res *controlv1.DispatchResponse
	err error
}

// notSentError says that nothing of a request has left this process, or that there was nobody to look at it.
type notSentError struct{ error }

func (e *notSentError) Unwrap() error { return e.error }

func newStream(commands controlv1connect.CommandServiceClient, traced bool) *stream {
	return &stream{
		commands: commands, traced: traced, openWithin: openWithin, jitter: rand.Float64, slots: make(chan struct{}, streamUnderWay),
		wake: make(chan struct{}, 1), rest: make(chan struct{}, 1), closing: make(chan struct{}),
		cancel: func() {}, under: map[uint64]*streamCall{},
	}
}

// usable says whether a stream is worth a try.
func (s *stream) usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.absent && (s.avoid.IsZero() || time.Now().After(s.avoid))
}

// dispatch sends a request over the stream and waits for its answer.
func (s *stream) dispatch(ctx context.Context, req *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
	raw, err := streamable(req)
	if err != nil {
		return nil, err
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, wentAway(ctx)
	case <-s.closing:
		return nil, errClosed()
	}
	call := &streamCall{raw: raw, done: make(chan streamOutcome, 1)}
	if !s.enqueue(call) {
		<-s.slots
		return nil, errClosed()
	}
	select {
	case out := <-call.done:
		return out.res, out.err
	case <-ctx.Done():
	}
	s.abandon(call)
	select {
	case out := <-call.done: // it had come before
		return out.res, out.err
	default:
		return nil, wentAway(ctx)
	}
}

// streamable encodes a request. What would end the stream for everybody is refused here; what breaks a rule the server
// answers by itself.
func streamable(req *controlv1.DispatchRequest) ([]byte, error) {
	raw, err := proto.Marshal(req)
	if err != nil {
		return nil, Errorf(CodeInvalid, "the request cannot be encoded: %w", err)
	}
	if len(raw) > requestBytes {
		return nil, Errorf(CodeInvalid, "the request of %d bytes is larger than %d", len(raw), requestBytes)
	}
	return raw, nil
}

// wentAway is the error of a caller whose context has ended.
func wentAway(ctx context.Context) *Error {
	err := translate(ctx.Err())
	var own *Error
	if cause := context.Cause(ctx); errors.As(err, &own) && !errors.Is(cause, ctx.Err()) {
		own.cause = fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return own
}

func errClosed() *Error { return Errorf(CodeCancelled, "%w", ErrClosed) }

// enqueue hands a call to the goroutine that writes; it starts one if none runs. It says false if the stream is closed.
func (s *stream) enqueue(call *streamCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.waiting = append(s.waiting, call)
	if !s.running {
		s.running = true
		s.tasks.Go(s.run)
	}
	signal(s.wake)
	return true
}

// abandon takes a call out that nobody waits for. One that was written keeps its place until the server answers it.
func (s *stream) abandon(call *streamCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call.number != 0 {
		if s.under[call.number] == call {
			s.cancels = append(s.cancels, call.number)
			signal(s.wake)
		}
		return
	}
	for i, other := range s.waiting {
		if other == call {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			<-s.slots
			return
		}
	}
}

// take is what goes into the next message: words about calls that were given up, then calls that wait.
func (s *stream) take() []*controlv1.DispatchStreamItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	var items []*controlv1.DispatchStreamItem
	for len(s.cancels) > 0 && len(items) < streamItems {
		if s.under[s.cancels[0]] != nil { // not answered meanwhile
			items = append(items, cancelItem(s.cancels[0]))
		}
		s.cancels = s.cancels[1:]
	}
	size := 0
	for len(s.waiting) > 0 && len(items) < streamItems {
		call := s.waiting[0]
		if size += len(call.raw); size > streamBytes && len(items) > 0 {
			break
		}
		s.waiting[0] = nil
		s.waiting = s.waiting[1:]
		s.number++
		call.number = s.number
		s.under[call.number] = call
		items = append(items, dispatchItem(call.number, call.raw))
	}
	return items
}

// answer hands an answer to its caller, who may have gone away.
func (s *stream) answer(a *controlv1.DispatchStreamAnswer) {
	s.mu.Lock()
	call := s.under[a.GetNumber()]
	delete(s.under, a.GetNumber())
	if len(s.under) == 0 {
		signal(s.wake) // the stream may be idle now
	}
	s.mu.Unlock()
	if call == nil {
		return
	}
	<-s.slots
	switch {
	case a.GetError() != nil:
		call.done <- streamOutcome{err: fromCommand(a.GetError())}
	case a.GetResponse() != nil:
		call.done <- streamOutcome{res: a.GetResponse()}
	default:
		call.done <- streamOutcome{err: Errorf(CodeInternal, "the server's answer has no outcome")}
	}
}

// failLocked ends calls without an answer. The caller holds mu.
func (s *stream) failLocked(calls []*streamCall, err error) {
	for _, call := range calls {
		<-s.slots
		call.done <- streamOutcome{err: err}
	}
}

// busy says whether anything waits or is under way.
func (s *stream) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)+len(s.under) > 0
}

// close ends everything and waits for it.
func (s *stream) close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.cancel()
	s.mu.Unlock()
	s.tasks.Wait()
}
