package throwbar

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
)

// Why a stream ended.
var (
	errStreamIdle  = errors.New("the stream had nothing to do")
	errStreamEnded = errors.New("the server ended the stream")
	errNotOpen     = errors.New("the server did not answer in time, or something on the way lets no stream through")
)

// run looks after the stream as long as there is something to do.
func (s *stream) run() {
	wait := redialFirst
	for {
		end := s.link()
		if !s.settle(end) {
			return
		}
		if end.heard {
			wait = redialFirst
		}
		if !errors.Is(end.err, errStreamIdle) { // then calls came while it was being closed
			s.pause(time.Duration(s.jitter() * float64(wait)))
			wait = min(2*wait, redialMost)
		}
	}
}

// pause waits, until the client is closed at the longest: the next link ends at once then.
func (s *stream) pause(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-s.closing:
	case <-timer.C:
	}
}

type dispatchStream = controlv1connect.CommandServiceDispatchStreamClientStream

// streamEnd is how a stream ended.
type streamEnd struct {
	err    error
	heard  bool // the server has sent something
	unsent bool // nothing was sent
}

// settle ends the calls that cannot go on after the end of a stream, and says whether there are others.
func (s *stream) settle(end streamEnd) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	under := make([]*streamCall, 0, len(s.under))
	for _, call := range s.under {
		under = append(under, call)
	}
	clear(s.under)
	s.cancels = nil
	err := end.verdict()
	switch {
	case s.closed && end.unsent:
		s.failLocked(under, errClosed())
	case err != nil && !s.closed:
		var unsent *notSentError
		if errors.As(err, &unsent) {
			s.absent = s.absent || CodeOf(err) == CodeUnsupported
			s.avoid = time.Now().Add(avoidFor)
		}
		s.failLocked(append(under, s.waiting...), err)
		s.waiting = nil
	case len(under) > 0:
		s.failLocked(under, unknownEnd(end.err))
	}
	if s.closed {
		s.failLocked(s.waiting, errClosed())
		s.waiting = nil
	}
	s.running = len(s.waiting) > 0
	return s.running
}

// verdict is what the end of a stream says about every call, sent or not; nil if it says nothing. A status of HTTP says
// the same as the server's own code.
func (e streamEnd) verdict() error {
	own := &Error{}
	known := errors.As(e.err, &own)
	switch {
	case e.heard:
		return nil
	case strings.Contains(own.Message, "HTTP status 505"): // the way there has no HTTP/2
		return &notSentError{Errorf(CodeUnsupported, "a stream needs HTTP/2, which the server or a proxy does not speak")}
	case own.Code == CodeUnsupported:
		return &notSentError{e.err}
	case e.unsent && !known: // ended from this side
		return &notSentError{Errorf(CodeUnavailable, "open the stream: %w", e.err).Retry()}
	case e.unsent:
		return &notSentError{e.err}
	case own.Code == CodeUnauthenticated || own.Code == CodeDenied:
		return e.err
	default:
		return nil
	}
}

func unknownEnd(cause error) *Error {
	err := Errorf(CodeInterrupted, "%w (%w)", ErrOutcomeUnknown, cause)
	err.cause = errors.Join(ErrOutcomeUnknown, cause)
	return err
}

// link lives one stream: this goroutine writes, another one reads.
func (s *stream) link() streamEnd {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	if !s.begin(func() { cancel(ErrClosed) }) {
		return streamEnd{err: ErrClosed, unsent: true}
	}
	answered, onAnswer := make(chan struct{}), sync.Once{}
	link, err := s.commands.DispatchStream(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotFirstResponseByte: func() { onAnswer.Do(func() { close(answered) }) },
	}))
	if err != nil {
		return streamEnd{err: err, unsent: true}
	}
	if err := link.SendHeaders(); err != nil {
		_ = link.Close() // the error of sending says more
		return streamEnd{err: err, unsent: true}
	}
	// The end of a context does not end a stream that waits in Receive; closing it does.
	defer context.AfterFunc(ctx, func() { _ = link.Close() })()
	var end streamEnd
	read := make(chan struct{})
	s.tasks.Go(func() {
		defer close(read)
		end = s.read(ctx, link, cancel)
		cancel(end.err)
	})
	open := s.awaitOpen(ctx, cancel, answered)
	idle := open && s.write(ctx, link)
	// Reading says how the stream ended; the server is given the time to say it.
	timer := time.AfterFunc(byeWithin, func() { cancel(errStuck) })
	defer timer.Stop()
	<-read
	_ = link.Close() // what it would say, reading has said
	end.unsent = !open || !end.heard && isDial(end.err)
	switch {
	case errors.Is(context.Cause(ctx), ErrClosed):
		end.err = ErrClosed
	case idle:
		end.err = errStreamIdle
	}
	return end
}

// awaitOpen waits until the server has answered the call with its headers, which it does before anything else: until
// then nothing is sent, so that a way which lets no stream through swallows no command. Where that does not show, it
// says that the stream is open.
func (s *stream) awaitOpen(ctx context.Context, cancel context.CancelCauseFunc, answered <-chan struct{}) bool {
	if !s.traced {
		return true
	}
	timer := time.NewTimer(s.openWithin)
	defer timer.Stop()
	select {
	case <-answered:
		return true
	case <-ctx.Done():
		return false
	case <-timer.C:
		cancel(errNotOpen)
		return false
	}
}

// begin says how the link can be ended from elsewhere; it says false if the client is closed already.
func (s *stream) begin(cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = cancel
	return !s.closed
}

// read hands out answers until the stream ends.
func (s *stream) read(ctx context.Context, link dispatchStream, cancel context.CancelCauseFunc) streamEnd {
	watchdog := time.AfterFunc(defaultLease, func() { cancel(errSilent) })
	defer watchdog.Stop()
	heard := false
	for {
		res, err := link.Receive()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return streamEnd{err: context.Cause(ctx), heard: heard}
		case errors.Is(err, io.EOF):
			return streamEnd{err: errStreamEnded, heard: heard}
		default:
			return streamEnd{err: err, heard: heard}
		}
		heard = true
		watchdog.Reset(defaultLease)
		for _, a := range res.GetAnswers() {
			s.answer(a)
		}
	}
}

// write sends what waits until the stream ends. It says whether it has ended it because there was nothing to do.
func (s *stream) write(ctx context.Context, link dispatchStream) (idle bool) {
	timer := time.NewTimer(streamIdle)
	defer timer.Stop()
	select {
	case <-s.rest: // it was said to an earlier stream
	default:
	}
	for {
		for items := s.take(); len(items) > 0; items = s.take() {
			if link.Send(&controlv1.DispatchStreamRequest{Items: items}) != nil {
				return false // reading says why
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-s.wake:
			timer.Reset(streamIdle)
			continue
		case <-s.rest:
		case <-timer.C:
		}
		if !s.busy() {
			_ = link.CloseSend() // if that does not end it, closing does
			return true
		}
		timer.Reset(streamIdle)
	}
}

// isDial says whether an error means that no connection was made.
func isDial(err error) bool {
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &cert)
}

// dispatchItem carries a request that is encoded already: as an unknown field it goes out as it is.
func dispatchItem(number uint64, raw []byte) *controlv1.DispatchStreamItem {
	item := &controlv1.DispatchStreamItem{Number: number}
	field := item.ProtoReflect().Descriptor().Fields().ByName("dispatch")
	wire := protowire.AppendTag(make([]byte, 0, len(raw)+2*fieldBytes), field.Number(), protowire.BytesType)
	item.ProtoReflect().SetUnknown(protowire.AppendBytes(wire, raw))
	return item
}

func cancelItem(number uint64) *controlv1.DispatchStreamItem {
	return &controlv1.DispatchStreamItem{
		Number: number, Kind: &controlv1.DispatchStreamItem_Cancel{Cancel: &controlv1.DispatchCancel{}},
	}
}
