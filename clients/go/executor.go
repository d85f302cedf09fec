package throwbar

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

const (
	// inFlightMost is the number of commands that may be under way; more are answered BUSY.
	inFlightMost = 1024
	// helloOutcomes and helloBytes bound what a Hello carries; the rest follows the Welcome.
	helloOutcomes = 1000
	helloBytes    = 1 << 20
)

// Why a command's context ends.
var (
	errCancelled = errors.New("the command was cancelled")
	errExpired   = errors.New("the command's time to live ran out")
	errNotKept   = errors.New("the server does not go on with the command")
)

// executor runs the commands of a device. It outlives links: a command goes on while there is none.
type executor struct {
	cfg     DeviceConfig
	journal Journal
	pause   *pause
	slots   chan struct{} // one token for each command that runs
	tasks   sync.WaitGroup
	idle    chan struct{}    // closed when the executor has stopped and no command runs
	wall    func() time.Time // the wall clock

	mu       sync.Mutex
	stopping bool                // guarded by mu; nothing new is taken on
	out      *outbox             // guarded by mu; the current link's, nil while there is none
	inFlight map[string]*command // guarded by mu; by id, from receipt to outcome
	unacked  []*devicev1.Outcome // guarded by mu; outcomes without a receipt, oldest first
}

// command is one command from its receipt to its outcome.
type command struct {
	id       string
	received time.Time // by the wall clock
	deadline time.Time // by the monotonic clock
	timeLeft time.Duration
	stop     context.CancelCauseFunc
	acked    bool // guarded by the executor's mu; it is in the journal and will run
}

// expired says whether the time is up. It counts on the monotonic clock; how far the wall clock has gone on is asked
// too, since the other one stands still while the computer sleeps. What the wall clock shows is no matter.
func (c *command) expired(wall time.Time) bool {
	return !time.Now().Before(c.deadline) || wall.Sub(c.received) >= c.timeLeft
}

// said is what a Hello has told the server.
type said struct {
	running  map[string]bool
	outcomes map[string]bool
	paused   bool
}

func newExecutor(cfg DeviceConfig, paused *pause) *executor {
	return &executor{
		cfg: cfg, journal: cfg.Journal, pause: paused, slots: make(chan struct{}, cfg.Concurrent), idle: make(chan struct{}),
		inFlight: map[string]*command{}, wall: func() time.Time { return time.Now().Round(0) },
	}
}

// hello completes a Hello with the commands in the journal and the outcomes without a receipt.
func (e *executor) hello(h *devicev1.Hello) (*devicev1.Hello, said) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := said{running: map[string]bool{}, outcomes: map[string]bool{}, paused: h.GetPaused()}
	for id, c := range e.inFlight {
		if c.acked {
			h.RunningCommandIds = append(h.RunningCommandIds, id)
			s.running[id] = true
		}
	}
	size := 0
	for _, o := range e.unacked {
		size += proto.Size(o)
		if len(h.Outcomes) == helloOutcomes || (size > helloBytes && len(h.Outcomes) > 0) {
			break
		}
		h.Outcomes = append(h.Outcomes, o)
		s.outcomes[o.GetCommandId()] = true
	}
	return h, s
}

// attach makes a link the current one: commands that the server does not keep are stopped, and what happened since
// the Hello is said.
func (e *executor) attach(out *outbox, s said, keep []string) {
	kept := make(map[string]bool, len(keep))
	for _, id := range keep {
		kept[id] = true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out = out
	for id, c := range e.inFlight {
		switch {
		case s.running[id] && !kept[id]:
			c.stop(errNotKept)
		case c.acked && !s.running[id]:
			out.offer(acknowledgement(id))
		}
	}
	for _, o := range e.unacked {
		if !s.outcomes[o.GetCommandId()] {
			out.offer(outcomeFrame(o))
		}
	}
}

// detach takes the current link away.
func (e *executor) detach(out *outbox) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.out == out {
		e.out = nil
	}
}

// handle takes on a command that was received at the given time. It never waits.
func (e *executor) handle(ctx context.Context, req *devicev1.CommandRequest, at time.Time) {
	id := req.GetCommandId()
	e.mu.Lock()
	defer e.mu.Unlock()
	if c, ok := e.inFlight[id]; ok { // sent again: it runs once
		if c.acked && e.out != nil {
			e.out.offer(acknowledgement(id))
		}
		return
	}
	if e.stopping {
		return
	}
	if len(e.inFlight) >= inFlightMost {
		busy := Errorf(CodeBusy, "%d commands are under way on this device", inFlightMost).Retry()
		e.keepLocked(failure(id, busy))
		return
	}
	left := req.GetTimeLeft().AsDuration()
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, expire := context.WithDeadlineCause(ctx, at.Add(left), errExpired)
	received := e.wall().Add(-time.Since(at))
	c := &command{id: id, received: received, deadline: at.Add(left), timeLeft: left, stop: cancel}
	e.inFlight[id] = c
	e.tasks.Go(func() {
		defer cancel(nil)
		defer expire()
		e.life(ctx, c, req)
	})
}

// cancel asks a command to stop. One that has ended, or never came, is answered by its outcome or not at all.
func (e *executor) cancel(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c, ok := e.inFlight[id]; ok {
		c.stop(errCancelled)
	}
}

// receipt forgets outcomes that the server has written down.
func (e *executor) receipt(ctx context.Context, ids []string) {
	gone := make(map[string]bool, len(ids))
	for _, id := range ids {
		gone[id] = true
	}
	e.mu.Lock()
	left := e.unacked[:0:0]
	for _, o := range e.unacked {
		if !gone[o.GetCommandId()] {
			left = append(left, o)
		}
	}
	e.unacked = left
	e.mu.Unlock()
	if err := e.journal.Receipt(ids); err != nil {
		e.cfg.Log.ErrorContext(ctx, "writing a receipt to the journal failed", slog.Any("error", err))
	}
}

// acknowledge says that a command is in the journal.
func (e *executor) acknowledge(c *command) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c.acked = true
	if e.out != nil {
		e.out.offer(acknowledgement(c.id))
	}
}

// keepLocked keeps an outcome until its receipt and sends it, if there is a link. The caller holds mu.
func (e *executor) keepLocked(o *devicev1.Outcome) {
	known := false
	for i, other := range e.unacked {
		if other.GetCommandId() == o.GetCommandId() {
			e.unacked[i], known = o, true
		}
	}
	if !known {
		e.unacked = append(e.unacked, o)
	}
	if e.out != nil {
		e.out.offer(outcomeFrame(o))
	}
}

// stop takes on nothing more and returns a channel that closes when no command runs any more.
func (e *executor) stop() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.stopping {
		e.stopping = true
		go func() { // wait waits for it
			e.tasks.Wait()
			close(e.idle)
		}()
	}
	return e.idle
}

// wait stops, and waits for the commands, whose context has to have ended.
func (e *executor) wait() { <-e.stop() }

// idempotent says whether running an action twice is the same as running it once.
func (e *executor) idempotent(action *commandv1.Action) bool {
	entry, err := e.cfg.Catalogue.ByAction(action)
	return err == nil && entry.Command.GetIdempotent()
}
