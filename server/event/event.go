// Package event lets callers follow what happens: a watcher reads the stored log after its cursor and is woken when
// something was added, so that it misses nothing, sees nothing twice, and never holds up anybody else.
//
// Watchers of one workspace share one reading of the log's end. However many there are and however often the log
// grows, the store is read at most once in a Pause for each workspace; a watcher that is behind reads on its own.
package event

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/fault"
)

const (
	page = 256
	// Beat is how often a silent watcher is told that the stream is alive. HTTP/1.1 streams have no pings.
	Beat = 15 * time.Second
	// Pause is the shortest time between two readings of the log's end.
	Pause = 10 * time.Millisecond
	// MaxPerPrincipal and MaxPerWorkspace are how many watchers there may be at a time.
	MaxPerPrincipal = 500
	MaxPerWorkspace = 2000
)

// Journal is the stored log, oldest event first.
type Journal interface {
	// After lists events of a workspace with a higher number than cursor, of one device if it is not empty.
	After(ctx context.Context, workspace, device string, cursor uint64, limit int) ([]*controlv1.Event, error)
	// Bounds are the numbers of the oldest and the newest stored event; zero if there is none.
	Bounds(ctx context.Context) (oldest, newest uint64, err error)
}

// Meter counts watchers. Its methods must not wait.
type Meter interface {
	WatchBegan()
	// WatchEnded is told one of a few reasons.
	WatchEnded(reason string)
}

// Watcher is who follows, and what.
type Watcher struct {
	Workspace, Principal string

	Device string  // all devices if it is empty
	Cursor *uint64 // from now on if it is nil
}

// Feed wakes watchers.
type Feed struct {
	journal Journal
	meter   Meter // may be nil

	mu         sync.Mutex
	wake       chan struct{}    // guarded by mu; closed and replaced when something was added
	waited     bool             // guarded by mu; somebody may wait for wake
	hints      uint64           // guarded by mu
	tails      map[string]*tail // guarded by mu; by workspace, of those that are watched
	principals map[string]int   // guarded by mu; watchers
}

// New makes a feed over a stored log.
func New(journal Journal) *Feed {
	return &Feed{journal: journal, wake: make(chan struct{}), tails: map[string]*tail{}, principals: map[string]int{}}
}

// Measure says who counts. It has to be called before the first watcher.
func (f *Feed) Measure(meter Meter) { f.meter = meter }

// Hint says that the log has grown.
func (f *Feed) Hint() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hints++
	if f.waited {
		close(f.wake)
		f.wake, f.waited = make(chan struct{}), false
	}
}

func (f *Feed) hinted() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hints
}

func (f *Feed) waiting() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waited = true
	return f.wake
}

// join counts a watcher in and gives it its workspace's tail, which begins at its cursor if it is the first.
func (f *Feed) join(w Watcher, last uint64) (*tail, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tails[w.Workspace]
	if f.principals[w.Principal] >= MaxPerPrincipal || (t != nil && t.watchers >= MaxPerWorkspace) {
		return nil, fault.New(fault.Busy, "too many watchers follow the events: end some first").Retry()
	}
	if t == nil {
		t = &tail{feed: f, workspace: w.Workspace, turn: make(chan struct{}, 1), from: last, last: last}
		f.tails[w.Workspace] = t
	}
	t.watchers++
	f.principals[w.Principal]++
	if f.meter != nil {
		f.meter.WatchBegan()
	}
	return t, nil
}

func (f *Feed) leave(w Watcher, t *tail, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.watchers--; t.watchers == 0 {
		delete(f.tails, w.Workspace)
	}
	if f.principals[w.Principal]--; f.principals[w.Principal] == 0 {
		delete(f.principals, w.Principal)
	}
	if f.meter != nil {
		f.meter.WatchEnded(reason(err))
	}
}

func reason(err error) string {
	switch {
	case fault.CodeOf(err) == fault.Busy:
		return "slow"
	case errors.Is(err, context.Canceled):
		return "left"
	default:
		return "failed"
	}
}

// Watch calls yield for each event after the cursor until the context ends or yield fails. A nil event only shows that
// the stream is alive; reset says that events before the next one are gone.
func (f *Feed) Watch(ctx context.Context, w Watcher, yield func(e *controlv1.Event, reset bool) error) (err error) {
	oldest, newest, err := f.journal.Bounds(ctx)
	if err != nil {
		return fmt.Errorf("read bounds of the event log: %w", err)
	}
	last := newest
	if w.Cursor != nil {
		last = min(*w.Cursor, newest)
	}
	t, err := f.join(w, last)
	if err != nil {
		return err
	}
	defer func() { f.leave(w, t, err) }()
	// The first frame goes out at once: it tells the watcher that it is in.
	if err := yield(nil, last+1 < oldest); err != nil {
		return err
	}
	beat := time.NewTicker(Beat)
	defer beat.Stop()
	for {
		wake := f.waiting() // before reading, so that no addition falls between
		if last, err = t.drain(ctx, w.Device, last, yield); err != nil {
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
