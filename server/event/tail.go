package event

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"time"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// kept is how many events a tail keeps in memory.
const kept = 1024

// tail is the end of one workspace's log, read once for all its watchers.
type tail struct {
	feed      *Feed
	workspace string
	watchers  int           // guarded by the feed's mu
	turn      chan struct{} // held by the watcher that reads for all
	read      time.Time     // when the log was last read; belongs to the turn
	hints     uint64        // of the feed when the log was last read; belongs to the turn
	known     bool          // the log was read at all; belongs to the turn

	mu         sync.Mutex
	events     []*controlv1.Event // guarded by mu; those with numbers after from and up to last
	from, last uint64             // guarded by mu
}

// drain yields what was added after last, and returns the number up to which the log was read. That is the newest one
// of all workspaces: a quiet workspace's watcher does not read the same tail again at every hint.
func (t *tail) drain(
	ctx context.Context, device string, last uint64, yield func(*controlv1.Event, bool) error,
) (uint64, error) {
	for {
		if err := t.refresh(ctx); err != nil {
			return last, err
		}
		events, upTo, ok := t.after(last)
		if ok {
			for _, e := range events {
				if device != "" && e.GetDeviceId() != device {
					continue
				}
				if err := yield(e, false); err != nil {
					return last, err
				}
			}
			return max(last, upTo), nil
		}
		// Behind what is in memory: a page of its own, then it looks again.
		events, err := t.feed.journal.After(ctx, t.workspace, device, last, page)
		if err != nil {
			return last, fmt.Errorf("read the event log: %w", err)
		}
		for _, e := range events {
			if err := yield(e, false); err != nil {
				return last, err
			}
			last = e.GetCursor()
		}
		if len(events) < page { // there is no further one up to what was read before
			last = max(last, upTo)
		}
	}
}

// after are the events in memory after a number, and up to which number they reach. It says false if some may be
// missing.
func (t *tail) after(last uint64) ([]*controlv1.Event, uint64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last < t.from {
		return nil, t.last, false
	}
	i := sort.Search(len(t.events), func(i int) bool { return t.events[i].GetCursor() > last })
	return t.events[i:len(t.events):len(t.events)], t.last, true
}

// refresh reads what was added since the last reading, unless nothing was. One watcher reads; the others wait for it
// and then find that there is nothing to read.
func (t *tail) refresh(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if t.known && t.feed.hinted() == t.hints {
		return nil
	}
	if wait := Pause - time.Since(t.read); t.known && wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	hints := t.feed.hinted()                     // before reading: a later hint is for the next reading
	_, newest, err := t.feed.journal.Bounds(ctx) // before reading: what is added meanwhile has a higher number
	if err != nil {
		return fmt.Errorf("read bounds of the event log: %w", err)
	}
	for {
		_, last, _ := t.after(0)
		events, err := t.feed.journal.After(ctx, t.workspace, "", last, page)
		if err != nil {
			return fmt.Errorf("read the event log: %w", err)
		}
		t.add(events)
		if len(events) < page {
			break
		}
	}
	t.mu.Lock()
	t.last = max(t.last, newest)
	t.mu.Unlock()
	t.known, t.hints, t.read = true, hints, time.Now()
	return nil
}

// add appends events, and drops the oldest ones where there are too many.
func (t *tail) add(events []*controlv1.Event) {
	if len(events) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, events...)
	t.last = events[len(events)-1].GetCursor()
	if over := len(t.events) - kept; over > 0 {
		t.from = t.events[over-1].GetCursor()
		t.events = append(make([]*controlv1.Event, 0, kept+page), t.events[over:]...)
	}
}
