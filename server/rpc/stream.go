package rpc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
)

const (
	// streamItems is how many items a message of a stream may have.
	streamItems = 256
	// streamUnderWay is how many commands of a stream are under way at a time; further ones are answered BUSY.
	streamUnderWay = 1024
	// streamUnread and streamUnreadBytes are how many answers wait for a caller that does not read. One that has more
	// loses its stream.
	streamUnread      = 8192
	streamUnreadBytes = 64 << 20
	// streamMessage is the size from which no further answer is added to a message.
	streamMessage = 256 << 10
	streamBeat    = 15 * time.Second
	// streamLeave is how long a stream that has ended waits for what it cancels. Only a store that does not write takes
	// so long.
	streamLeave = 10 * time.Second
)

// DispatchStream sends many commands. A reader takes the caller's items in and never waits for a command; one goroutine
// has them accepted, all that wait together; this one writes answers, all that are there in one message.
func (h *commandHandler) DispatchStream(ctx context.Context, stream controlv1connect.CommandServiceDispatchStreamServerStream) error {
	token, err := auth.From(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &orders{
		token: token, tokens: h.cfg.Tokens, dispatcher: h.cfg.Dispatcher, log: h.cfg.Log,
		broken: cancel, unblock: func() { endWrite(ctx) }, byNumber: map[uint64]*order{},
		queued: make(chan struct{}, 1), answered: make(chan struct{}, 1),
	}
	var parts sync.WaitGroup
	accepted := make(chan struct{})
	parts.Go(func() {
		defer s.guard(ctx)
		s.read(stream)
	})
	parts.Go(func() {
		defer close(accepted)
		defer s.guard(ctx)
		s.accept(ctx)
	})
	err = s.write(ctx, stream)
	cancel(err)
	if readBy(ctx, time.Now()) { // wakes the reader; without a network the end of the call does
		parts.Wait()
	}
	<-accepted
	s.leave(ctx)
	return err
}

// write sends answers until the caller sends no more and all is answered, or the stream is broken.
func (s *orders) write(ctx context.Context, stream controlv1connect.CommandServiceDispatchStreamServerStream) error {
	if err := stream.SendHeaders(); err != nil {
		return err
	}
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	for {
		answers, over := s.next()
		for len(answers) > 0 {
			msg, n := message(answers)
			answers = answers[n:]
			if err := send(ctx, stream, msg); err != nil {
				return err
			}
		}
		if over {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.answered:
		case <-beat.C:
			if err := send(ctx, stream, &controlv1.DispatchStreamResponse{}); err != nil {
				return err
			}
		}
	}
}

func send(
	ctx context.Context, stream controlv1connect.CommandServiceDispatchStreamServerStream, msg *controlv1.DispatchStreamResponse,
) error {
	if err := extendWrite(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil { // looked at after the deadline was moved: what ends this stream takes it away after the context
		return context.Cause(ctx)
	}
	if err := stream.Send(msg); err != nil {
		if ctx.Err() != nil { // it was ended from here: that says why
			return context.Cause(ctx)
		}
		return err
	}
	return nil
}

// message is one message with the first of the answers, and how many they are.
func message(answers []answer) (*controlv1.DispatchStreamResponse, int) {
	msg := &controlv1.DispatchStreamResponse{Answers: make([]*controlv1.DispatchStreamAnswer, 0, len(answers))}
	size := 0
	for i, a := range answers {
		if i > 0 && size+a.size > streamMessage {
			break
		}
		size += a.size
		msg.Answers = append(msg.Answers, a.DispatchStreamAnswer)
	}
	return msg, len(msg.GetAnswers())
}

// next takes the answers that wait. It says whether there will be no more.
func (s *orders) next() ([]answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answers := s.answers
	s.answers, s.unread = nil, 0
	return answers, s.closed && len(s.byNumber) == 0
}

// leave ends what is under way when nobody reads answers any more, and waits until that is written down. What is
// detached goes on, also what was still to be accepted.
func (s *orders) leave(ctx context.Context) {
	s.mu.Lock()
	s.gone = true
	var start, left []*dispatch.Order
	for _, o := range s.waiting {
		if o.Request.Detached && !o.cancelled {
			start = append(start, &o.Order)
		}
		delete(s.byNumber, o.number)
	}
	for number, o := range s.byNumber {
		if o.Request.Detached {
			delete(s.byNumber, number)
			continue
		}
		left = append(left, &o.Order)
	}
	var idle chan struct{}
	if len(s.byNumber) > 0 {
		idle = make(chan struct{})
		s.idle = idle
	}
	s.mu.Unlock()
	if len(start) > 0 {
		s.dispatcher.Start(context.WithoutCancel(ctx), start)
	}
	s.dispatcher.Abandon(left)
	if idle != nil {
		patience := time.NewTimer(streamLeave)
		defer patience.Stop()
		select {
		case <-idle:
		case <-patience.C:
		}
	}
}

// order is one command of a stream.
type order struct {
	dispatch.Order

	number    uint64
	begun     bool // the dispatcher has it
	cancelled bool // nobody waits for it any more
}

// answer is what waits to be written.
type answer struct {
	*controlv1.DispatchStreamAnswer

	size int
}

// orders are the commands of one stream.
type orders struct {
	token      auth.Token
	tokens     *auth.Tokens
	dispatcher *dispatch.Dispatcher
	log        *slog.Logger
	broken     context.CancelCauseFunc
	unblock    func()        // ends the write that waits for the caller to read
	queued     chan struct{} // has room for one signal
	answered   chan struct{} // has room for one signal

	mu       sync.Mutex
	byNumber map[uint64]*order // guarded by mu; under way
	waiting  []*order          // guarded by mu; to be accepted
	answers  []answer          // guarded by mu; to be written
	unread   int               // guarded by mu; bytes of answers
	closed   bool              // guarded by mu; the caller sends no more
	gone     bool              // guarded by mu; nobody reads answers any more
	idle     chan struct{}     // guarded by mu; closed when nothing is under way once gone
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// guard keeps a fault of one stream's goroutine from ending the server.
func (s *orders) guard(ctx context.Context) {
	if r := recover(); r != nil {
		s.log.ErrorContext(ctx, "a stream of commands panicked", slog.Any("panic", r))
		s.broken(fault.New(fault.Internal, "the server failed: its log says why"))
	}
}

// read takes the caller's items in until it sends no more.
func (s *orders) read(stream controlv1connect.CommandServiceDispatchStreamServerStream) {
	for {
		msg, err := stream.Receive()
		switch {
		case errors.Is(err, io.EOF):
			s.mu.Lock()
			s.closed = true
			s.mu.Unlock()
			signal(s.answered)
			return
		case err != nil:
			s.broken(err)
			return
		case len(msg.GetItems()) == 0 || len(msg.GetItems()) > streamItems:
			s.broken(fault.New(fault.Invalid, "a message of a stream has 1 to %d items", streamItems))
			return
		}
		if err := s.tokens.Check(s.token); err != nil {
			s.broken(err)
			return
		}
		for _, item := range msg.GetItems() {
			s.take(item)
		}
		signal(s.queued)
	}
}

// take takes one item in. A bad one is answered and disturbs no other.
func (s *orders) take(item *controlv1.DispatchStreamItem) {
	if err := protovalidate.Validate(item); err != nil {
		s.refuse(item.GetNumber(), invalid(err))
		return
	}
	number := item.GetNumber()
	if item.GetCancel() != nil {
		s.cancel(number)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.byNumber[number] != nil:
		s.add(refusal(number, fault.New(fault.Invalid, "a command with the number %d is under way on this stream", number)))
		return
	case len(s.byNumber) >= streamUnderWay:
		s.add(refusal(number, fault.New(fault.Busy, "%d commands are under way on this stream", streamUnderWay).Retry()))
		return
	}
	o := &order{number: number}
	o.Request = dispatchRequest(s.token, item.GetDispatch())
	o.Answer = func(res *controlv1.DispatchResponse, err error) { s.end(o, res, err) }
	s.byNumber[number] = o
	s.waiting = append(s.waiting, o)
}

// cancel treats a command as one whose caller went away. It is answered all the same. One that has ended has been
// answered.
func (s *orders) cancel(number uint64) {
	s.mu.Lock()
	o := s.byNumber[number]
	if o == nil || o.cancelled {
		s.mu.Unlock()
		return
	}
	o.cancelled = true
	begun := o.begun
	s.mu.Unlock()
	if begun { // of one that is not, the accepter does it
		s.dispatcher.Abandon([]*dispatch.Order{&o.Order})
	}
}

// accept has the dispatcher accept what waits, all of it together, until the stream ends.
func (s *orders) accept(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.queued:
		}
		s.mu.Lock()
		batch := s.waiting
		s.waiting = nil
		s.mu.Unlock()
		for len(batch) > 0 {
			n := min(len(batch), streamItems)
			s.start(ctx, batch[:n])
			batch = batch[n:]
		}
	}
}

func (s *orders) start(ctx context.Context, batch []*order) {
	begin := make([]*dispatch.Order, 0, len(batch))
	for _, o := range batch {
		if s.isCancelled(o) {
			o.Answer(nil, fault.New(fault.Cancelled, "cancelled before it was sent"))
			continue
		}
		begin = append(begin, &o.Order)
	}
	s.dispatcher.Start(context.WithoutCancel(ctx), begin) // what is written down half is worse than what is cancelled
	var left []*dispatch.Order
	s.mu.Lock()
	for _, o := range batch {
		o.begun = true
		if o.cancelled || s.gone {
			left = append(left, &o.Order)
		}
	}
	s.mu.Unlock()
	s.dispatcher.Abandon(left)
}

func (s *orders) isCancelled(o *order) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return o.cancelled
}

// end takes in the answer to a command.
func (s *orders) end(o *order, res *controlv1.DispatchResponse, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byNumber, o.number)
	if err != nil {
		if fault.CodeOf(err) == fault.Internal {
			s.log.ErrorContext(context.Background(), "a command of a stream failed", slog.Any("error", err))
		}
		s.add(refusal(o.number, err))
	} else {
		s.add(&controlv1.DispatchStreamAnswer{
			Number: o.number, Kind: &controlv1.DispatchStreamAnswer_Response{Response: res},
		})
	}
	if s.idle != nil && len(s.byNumber) == 0 {
		close(s.idle)
		s.idle = nil
	}
}

func refusal(number uint64, err error) *controlv1.DispatchStreamAnswer {
	return &controlv1.DispatchStreamAnswer{
		Number: number, Kind: &controlv1.DispatchStreamAnswer_Error{Error: fault.Command(err)},
	}
}

func (s *orders) refuse(number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(refusal(number, err))
}

// add queues an answer. A caller that does not read loses its stream: what it does not take would fill the memory. The
// orders' mu is held.
func (s *orders) add(a *controlv1.DispatchStreamAnswer) {
	if s.gone {
		return
	}
	size := proto.Size(a)
	s.answers = append(s.answers, answer{a, size})
	s.unread += size
	if len(s.answers) > streamUnread || s.unread > streamUnreadBytes {
		s.gone = true
		s.answers = nil
		s.broken(fault.New(fault.Busy, "this caller does not read the answers to its commands"))
		s.unblock()
		return
	}
	signal(s.answered)
}
