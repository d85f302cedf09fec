// Package event lets callers follow what happens: a watcher reads the stored log after its cursor and is woken when
// something was added, so that it misses nothing, sees nothing twice, and never holds up anybody else.
package event

import (
	"context"
	"fmt"
	"sync"
	"time"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const (
	page = 256
	// Beat is how often a silent watcher is told that the stream is alive. HTTP/1.1 streams have no pings.
	Beat = 15 * time.Second
)

// Journal is the stored log, oldest event first.
type Journal interface {
	// After lists events of a workspace with a higher number than cursor, of one device if it is not empty.
	After(ctx context.Context, workspace, device string, cursor uint64, limit int) ([]*controlv1.Event, error)
	// Bounds are the numbers of the oldest and the newest stored event; zero if there is none.
	Bounds(ctx context.Context) (oldest, newest uint64, err error)
}

// Feed wakes watchers.
type Feed struct {
	journal Journal

	mu   sync.Mutex
	wake chan struct{} // guarded by mu; closed and replaced when something was added
}

// New makes a feed over a stored log.
func New(journal Journal) *Feed {
	return &Feed{journal: journal, wake: make(chan struct{})}
}

// Hint says that the log has grown.
func (f *Feed) Hint() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.wake)
	f.wake = make(chan struct{})
}

func (f *Feed) waiting() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wake
}

// Watch calls yield for each event after cursor (from now on, if it is nil) until the context ends or yield fails.
// A nil event only shows that the stream is alive; reset says that events before the next one are gone.
func (f *Feed) Watch(
	ctx context.Context, workspace, device string, cursor *uint64, yield func(e *controlv1.Event, reset bool) error,
) error {
	oldest, newest, err := f.journal.Bounds(ctx)
	if err != nil {
		return fmt.Errorf("read bounds of the event log: %w", err)
	}
	last := newest
	if cursor != nil {
		last = min(*cursor, newest)
	}
	// The first frame goes out at once: it tells the watcher that it is in.
	if err := yield(nil, last+1 < oldest); err != nil {
		return err
	}
	beat := time.NewTicker(Beat)
	defer beat.Stop()
	for {
		wake := f.waiting() // before reading, so that no addition falls between
		if last, err = f.drain(ctx, workspace, device, last, yield); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-wake:
		case <-beat.C:
			if err := yield(nil, false); err != nil {
				return err
			}
		}
	}
}

// drain yields what was added, and returns the number up to which the log was read. That is the newest one of all
// workspaces: a quiet workspace's watcher does not read the same tail again at every hint.
func (f *Feed) drain(
	ctx context.Context, workspace, device string, last uint64, yield func(*controlv1.Event, bool) error,
) (uint64, error) {
	for {
		_, newest, err := f.journal.Bounds(ctx) // before reading: what is added meanwhile has a higher number
		if err != nil {
			return last, fmt.Errorf("read bounds of the event log: %w", err)
		}
		events, err := f.journal.After(ctx, workspace, device, last, page)
		if err != nil {
			return last, fmt.Errorf("read the event log: %w", err)
		}
		for _, e := range events {
			if err := yield(e, false); err != nil {
				return last, err
			}
			last = e.GetCursor()
		}
		if len(events) < page {
			return max(last, newest), nil
		}
	}
}
