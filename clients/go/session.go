package throwbar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

const (
	// welcomeWithin is how long a new link may take until the server's first frame.
	welcomeWithin = 10 * time.Second
	// defaultHeartbeat and defaultLease hold where the Welcome does not say.
	defaultHeartbeat = 15 * time.Second
	defaultLease     = 45 * time.Second
	// stopWithin is how long commands may take to stop when the device stops, before the server is told.
	stopWithin = 2 * time.Second
	// byeWithin is how long the server may take to end a link after the device's goodbye, and to say why it ended one.
	byeWithin = time.Second
	// gather is how long a change of the browser's state waits for others that belong to it.
	gather = 50 * time.Millisecond
)

// session is one link from its welcome to its end.
type session struct {
	*Device

	exec    *executor
	push    *pusher // belongs to the writer
	conn    link
	out     *outbox
	cancel  context.CancelCauseFunc // ends the link
	welcome *devicev1.Welcome
	lease   time.Duration
	seen    atomic.Uint64 // number of the server's last heartbeat
	resync  chan struct{} // receives when the server asks for a snapshot
	renew   chan struct{} // receives when the server asks the device to take another token
}

// link lives one link: dials it, and holds it until it ends. The link's own context goes on for a moment when ctx
// ends, so that the device can say goodbye.
func (d *Device) link(ctx context.Context, e *executor, push *pusher) linkEnd {
	linkCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(errStopped)
	stopped := context.AfterFunc(ctx, func() { cancel(errStopped) })
	late := time.AfterFunc(welcomeWithin, func() { cancel(errNoWelcome) })
	defer late.Stop()

	number, err := d.cfg.Journal.Dial()
	if err != nil {
		return linkEnd{err: fmt.Errorf("number the dial: %w", err)}
	}
	hello, said := e.hello(d.hello())
	hello.Dial = number
	conn, err := d.dialer.dial(linkCtx, hello)
	if err != nil {
		return linkEnd{err: because(linkCtx, fmt.Errorf("connect: %w", err))}
	}
	defer conn.close()
	defer cancel(errStopped) // before close
	welcome, more, end := d.awaitWelcome(linkCtx, conn)
	if welcome == nil {
		return end
	}
	if !late.Stop() {
		return linkEnd{err: errNoWelcome}
	}
	if !stopped() {
		return linkEnd{err: errStopped}
	}
	s := &session{
		Device: d, exec: e, push: push, conn: conn, out: newOutbox(cancel), cancel: cancel, welcome: welcome,
		lease: orDefault(welcome.GetLease().AsDuration(), defaultLease), resync: make(chan struct{}, 1),
		renew: make(chan struct{}, 1),
	}
	return s.hold(ctx, linkCtx, said, more)
}

// awaitWelcome reads the server's first frame, and those that came with it. Without a welcome it says how the link ended.
func (d *Device) awaitWelcome(ctx context.Context, conn link) (*devicev1.Welcome, []*devicev1.ServerFrame, linkEnd) {
	frames, err := conn.receive()
	if err != nil {
		return nil, nil, linkEnd{err: because(ctx, fmt.Errorf("connect: %w", reason(err)))}
	}
	if end := frames[0].GetEnd(); end != nil {
		return nil, nil, ended(end)
	}
	if frames[0].GetWelcome() == nil {
		return nil, nil, linkEnd{err: errNotWelcome}
	}
	return frames[0].GetWelcome(), frames[1:], linkEnd{}
}

// hold runs a link that stands: this goroutine reads, beginning with the frames that came with the welcome, another
// one writes.
func (s *session) hold(ctx, linkCtx context.Context, said said, frames []*devicev1.ServerFrame) linkEnd {
	start := time.Now()
	s.exec.attach(s.out, said, s.welcome.GetKeepCommandIds())
	s.pause.attach(s.out, said.paused)
	s.cfg.OnStatus(Status{Connected: true, Name: s.welcome.GetName(), LinkID: s.welcome.GetLinkId()})
	s.cfg.Log.InfoContext(ctx, "link stands", slog.String("device_id", s.cfg.Identity.DeviceID),
		slog.String("link_id", s.welcome.GetLinkId()), slog.Uint64("epoch", s.welcome.GetEpoch()))

	if err := s.keeper.proven(); err != nil { // the next link does it again
		s.cfg.Log.WarnContext(ctx, "the old token is kept on", slog.Any("error", err))
	}
	if s.welcome.GetRotateToken() {
		signal(s.renew)
	}
	var writer sync.WaitGroup
	writer.Go(func() { s.write(ctx, linkCtx) })
	writer.Go(func() {
		select {
		case <-linkCtx.Done():
		case <-s.renew:
			s.rotate(linkCtx)
		}
	})
	end := s.read(ctx, linkCtx, frames)
	s.exec.detach(s.out)
	s.pause.detach(s.out)
	s.cancel(end.err)
	s.conn.close()
	writer.Wait()
	end.lasted = time.Since(start)
	return end
}

// read takes in frames until the link ends. It never waits for anything else.
func (s *session) read(ctx, linkCtx context.Context, frames []*devicev1.ServerFrame) linkEnd {
	watchdog := time.AfterFunc(s.lease, func() { s.cancel(errSilent) })
	defer watchdog.Stop()
	last := time.Now().Round(0)
	for {
		at := time.Now()
		// The monotonic clock stands still while a computer sleeps, and what comes after it woke up is old.
		if at.Round(0).Sub(last) > s.lease {
			return linkEnd{err: errAsleep}
		}
		last = at.Round(0)
		for _, frame := range frames {
			if end := s.take(ctx, frame, at); end != nil {
				return ended(end)
			}
		}
		var err error
		if frames, err = s.conn.receive(); err != nil {
			return linkEnd{err: because(linkCtx, reason(err))}
		}
		watchdog.Reset(s.lease)
	}
}

// take acts on one frame. It returns the server's last one.
func (s *session) take(ctx context.Context, frame *devicev1.ServerFrame, at time.Time) *devicev1.LinkEnd {
	switch kind := frame.GetKind().(type) {
	case *devicev1.ServerFrame_Heartbeat:
		s.seen.Store(kind.Heartbeat.GetNumber())
	case *devicev1.ServerFrame_Command:
		s.exec.handle(ctx, kind.Command, at)
	case *devicev1.ServerFrame_Cancel:
		s.exec.cancel(kind.Cancel.GetCommandId())
	case *devicev1.ServerFrame_Receipt:
		s.exec.receipt(ctx, kind.Receipt.GetCommandIds())
	case *devicev1.ServerFrame_Resync:
		signal(s.resync)
	case *devicev1.ServerFrame_Rotate:
		signal(s.renew)
	case *devicev1.ServerFrame_End:
		return kind.End
	default: // a frame of a newer server, or a second welcome
		s.cfg.Log.DebugContext(ctx, "frame ignored")
	}
	return nil
}

// write sends what waits, the browser's state, and heartbeats, until the link ends or the device stops.
func (s *session) write(ctx, linkCtx context.Context) {
	beat := time.NewTicker(orDefault(s.welcome.GetHeartbeat().AsDuration(), defaultHeartbeat))
	defer beat.Stop()
	var gathered <-chan time.Time
	signal(s.resync) // whether the last link's deltas arrived is not known
	for {
		var frames []*devicev1.DeviceFrame
		select {
		case <-linkCtx.Done():
			return
		case <-ctx.Done():
			s.leave(linkCtx)
			return
		case <-s.out.wake:
			frames = s.waiting()
		case <-beat.C:
			frames = []*devicev1.DeviceFrame{{Kind: &devicev1.DeviceFrame_Heartbeat{
				Heartbeat: &devicev1.DeviceHeartbeat{Seen: s.seen.Load()},
			}}}
		case <-s.resync:
			frames = s.push.snapshot()
		case <-s.push.changed():
			if gathered == nil {
				gathered = time.After(gather)
			}
		case <-gathered:
			gathered = nil
			frames = s.push.delta()
		}
		if !s.send(linkCtx, frames) {
			return
		}
	}
}

// waiting is what the outbox holds. What a command did to the browser's state goes before its outcome, so that
// whoever reads the state after the outcome sees it.
func (s *session) waiting() []*devicev1.DeviceFrame {
	frames := s.out.take()
	for i, f := range frames {
		if f.GetOutcome() != nil {
			return slices.Insert(frames, i, s.push.delta()...)
		}
	}
	return frames
}

// send hands frames over and says whether the link goes on. A server that takes nothing in for a lease is gone.
func (s *session) send(linkCtx context.Context, frames []*devicev1.DeviceFrame) bool {
	for len(frames) > 0 {
		n := min(len(frames), messageFrames)
		guard := time.AfterFunc(s.lease, func() { s.cancel(errStuck) })
		err := s.conn.send(linkCtx, frames[:n])
		guard.Stop()
		if err != nil { // receive says why the server ended the link, if it is given the time
			if sleep(linkCtx, byeWithin) {
				s.cancel(fmt.Errorf("send: %w", reason(err)))
			}
			return false
		}
		frames = frames[n:]
	}
	return true
}

// leave stops the commands, sends what they still have to say, and says goodbye.
func (s *session) leave(linkCtx context.Context) {
	stopping := s.exec.stop()
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-stopping:
	case <-timer.C:
	case <-linkCtx.Done():
		return
	}
	frames := append(s.waiting(), &devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Goodbye{
		Goodbye: &devicev1.Goodbye{Reason: "the program stops"},
	}})
	if !s.send(linkCtx, frames) {
		return
	}
	if err := s.conn.finish(); err != nil {
		s.cancel(fmt.Errorf("finish: %w", err))
		return
	}
	if sleep(linkCtx, byeWithin) { // the server ends the link when it has read the goodbye
		s.cancel(errStopped)
	}
}

// ended is the end that the server announced.
func ended(e *devicev1.LinkEnd) linkEnd {
	end := linkEnd{retryAfter: e.GetRetryAfter().AsDuration()}
	switch e.GetReason() {
	case devicev1.EndReason_END_REASON_REPLACED:
		end.err = ErrReplaced
	case devicev1.EndReason_END_REASON_REVOKED:
		end.err = ErrRevoked
	case devicev1.EndReason_END_REASON_GOING_AWAY:
		end.err = errors.New("the server stops or starts anew")
	case devicev1.EndReason_END_REASON_VIOLATION:
		end.err = errors.New("the server says that this device broke the protocol or did not keep up")
	case devicev1.EndReason_END_REASON_BUSY:
		end.err = errors.New("too many devices connect at once")
	default:
		end.err = errServerEnd
	}
	return end
}

// reason is why receive ended. The code for a conflict is what is left of REPLACED when its frame was lost.
func reason(err error) error {
	var own *Error
	switch {
	case errors.Is(err, io.EOF):
		return errServerEnd
	case errors.As(err, &own) && own.remote && own.Code == CodeConflict:
		return fmt.Errorf("%w: %w", ErrReplaced, err)
	default:
		return err
	}
}

// because prefers the reason for which this side ended the link.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}
