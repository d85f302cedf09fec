package soak_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/soak/soaktest"
)

const (
	ttl   = 3 * time.Second
	grace = 5 * time.Second // after the deadline, for what a device had started by then
	pace  = 4 * time.Millisecond
)

// word is what callers were told of one command.
type word struct {
	submitted bool // it was written down
	success   bool
	err       commandv1.ErrorCode
}

// told is what callers were told.
type told struct {
	successes atomic.Int64

	mu    sync.Mutex
	words map[string]word // by command id
}

func (w *told) hear(o *controlv1.DeviceOutcome) {
	if o.GetCommandId() == "" {
		return // nothing was written down, and that is all that was said
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.words == nil {
		w.words = map[string]word{}
	}
	heard := w.words[o.GetCommandId()]
	switch {
	case o.GetResult() != nil:
		heard.success = true
		w.successes.Add(1)
	case o.GetError() != nil:
		heard.err = o.GetError().GetCode()
	default:
		heard.submitted = true
	}
	w.words[o.GetCommandId()] = heard
}

// caller sends one command after the other to a device.
type caller struct {
	client *throwbar.Client
	told   *told
	device string
	stop   <-chan struct{}
}

func (c *caller) run(ctx context.Context, attached bool) {
	for {
		select {
		case <-c.stop:
			return
		default:
		}
		outcomes, err := c.send(ctx, attached)
		for _, o := range outcomes {
			c.told.hear(o)
		}
		pause := rand.N(pace)
		if err != nil || !attached {
			pause = rand.N(10 * pace) // there may be no server; and who does not wait would soon have a thousand under way
		}
		timer := time.NewTimer(pause)
		select {
		case <-c.stop:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (c *caller) send(ctx context.Context, attached bool) ([]*controlv1.DeviceOutcome, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*ttl+grace)
	defer cancel()
	if attached {
		res, err := c.client.Commands.Dispatch(ctx, &controlv1.DispatchRequest{
			DeviceIds: []string{c.device}, Action: soaktest.Action(), Ttl: durationpb.New(ttl),
		})
		return res.GetOutcomes(), err
	}
	res, err := c.client.Commands.Submit(ctx, &controlv1.SubmitRequest{
		DeviceIds: []string{c.device}, Action: soaktest.Action(), Ttl: durationpb.New(ttl),
	})
	return res.GetOutcomes(), err
}

// pending is how many commands have not ended; one more than that if nobody can tell.
func pending(ctx context.Context, c *throwbar.Client) int {
	only := true
	res, err := c.Commands.ListCommands(ctx, &controlv1.ListCommandsRequest{PendingOnly: &only})
	if err != nil {
		return 1
	}
	return len(res.GetCommands())
}

// lastWords sends one command to every device and returns the last one's id: all that happened before is before its
// end in the log.
func lastWords(t *testing.T, c *throwbar.Client, devices []string) (id string) {
	t.Helper()
	for _, d := range devices {
		until(t, soaktest.Patience, "a device answers in the end", func() bool {
			res, err := c.Commands.Dispatch(t.Context(), &controlv1.DispatchRequest{DeviceIds: []string{d}, Action: soaktest.Action()})
			if err != nil || res.GetOutcomes()[0].GetResult() == nil {
				return false
			}
			id = res.GetOutcomes()[0].GetCommandId()
			return true
		})
	}
	return id
}

// watcher follows the log over as many streams as it takes.
type watcher struct {
	client *throwbar.Client
	cursor uint64
	wake   chan struct{} // receives when something was read

	mu     sync.Mutex
	events []*controlv1.Event // guarded by mu
	ended  bool               // guarded by mu; what comes now does not count
	wrong  error              // guarded by mu
}

func newWatcher(c *throwbar.Client, cursor uint64) *watcher {
	return &watcher{client: c, cursor: cursor, wake: make(chan struct{}, 1)}
}

// run reads until the context ends. A stream that ends is taken up again after the last event.
func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		cursor := w.cursor
		if stream, err := w.client.Commands.WatchEvents(ctx, &controlv1.WatchEventsRequest{Cursor: &cursor}); err == nil {
			for {
				msg, err := stream.Receive()
				if err != nil {
					break
				}
				w.take(msg)
			}
			_ = stream.Close()
		}
		timer := time.NewTimer(rand.N(10 * pace))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (w *watcher) take(msg *controlv1.WatchEventsResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if msg.GetReset_() {
		w.wrong = errors.New("a watcher was told that events after its cursor are gone")
	}
	e := msg.GetEvent()
	if e == nil || w.ended {
		return
	}
	if e.GetCursor() <= w.cursor {
		w.wrong = fmt.Errorf("a watcher at %d was sent event %d", w.cursor, e.GetCursor())
	}
	w.cursor = e.GetCursor()
	w.events = append(w.events, e)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// readTo waits until the watcher has seen the end of a command, and leaves it at that.
func (w *watcher) readTo(ctx context.Context, id string) error {
	patience := time.NewTimer(soaktest.Patience)
	defer patience.Stop()
	for {
		w.mu.Lock()
		for i, e := range w.events {
			if e.GetCommand().GetCommandId() == id && final(e) {
				w.events, w.ended = w.events[:i+1], true
				w.mu.Unlock()
				return nil
			}
		}
		wrong := w.wrong
		w.mu.Unlock()
		if wrong != nil {
			return wrong
		}
		select {
		case <-w.wake:
		case <-patience.C:
			return errors.New("a watcher does not get to the end of the log")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// final says whether an event is the end of a command.
func final(e *controlv1.Event) bool {
	c := e.GetCommand()
	return c.GetState() >= controlv1.State_STATE_SUCCEEDED && !c.GetLate()
}
