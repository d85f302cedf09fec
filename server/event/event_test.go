package event_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/event"
	"throwbar.dev/throwbar/server/fault"
)

// roll is a log in memory. Every event belongs to the workspace named in its device id.
type roll struct {
	mu     sync.Mutex
	first  uint64
	events []string // workspaces
	reads  int
}

func (r *roll) add(workspace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, workspace)
}

func (r *roll) After(_ context.Context, workspace, _ string, cursor uint64, limit int) ([]*controlv1.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	var out []*controlv1.Event
	for i, w := range r.events {
		if n := uint64(i) + 1; n > cursor && n >= r.first && w == workspace && len(out) < limit {
			out = append(out, &controlv1.Event{Cursor: n})
		}
	}
	return out, nil
}

func (r *roll) Bounds(context.Context) (uint64, uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.first, 1), uint64(len(r.events)), nil
}

var errEnough = errors.New("enough")

// watch follows until n events were seen, and returns their numbers and whether a reset was said.
func watch(t *testing.T, f *event.Feed, cursor *uint64, n int) ([]uint64, bool) {
	t.Helper()
	var got []uint64
	reset := false
	err := f.Watch(t.Context(), event.Watcher{Workspace: "w", Cursor: cursor}, func(e *controlv1.Event, r bool) error {
		reset = reset || r
		if e != nil {
			if got = append(got, e.GetCursor()); len(got) == n {
				return errEnough
			}
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		t.Errorf("watch: %v", err)
	}
	return got, reset
}

func TestAWatcherMissesNothingAndSeesNothingTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &roll{}
		f := event.New(log)
		for range 700 { // more than a page
			log.add("w")
		}
		go func() {
			for range 300 {
				<-time.After(time.Millisecond)
				log.add("other")
				log.add("w")
				f.Hint()
			}
		}()
		zero := uint64(0)
		got, reset := watch(t, f, &zero, 1000)
		if !slices.IsSorted(got) || len(slices.Compact(got)) != 1000 || reset {
			t.Errorf("%d events, reset %v", len(slices.Compact(got)), reset)
		}
	})
}

func TestWithoutACursorOnlyWhatIsNewIsSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &roll{}
		log.add("w")
		f := event.New(log)
		go func() {
			<-time.After(time.Second)
			log.add("w")
			f.Hint()
		}()
		if got, _ := watch(t, f, nil, 1); !slices.Equal(got, []uint64{2}) {
			t.Errorf("saw %v", got)
		}
	})
}

func TestACursorThatIsTooOldIsTold(t *testing.T) {
	t.Parallel()
	log := &roll{first: 3}
	for range 4 {
		log.add("w")
	}
	one := uint64(1)
	if got, reset := watch(t, event.New(log), &one, 2); !reset || !slices.Equal(got, []uint64{3, 4}) {
		t.Errorf("saw %v, reset %v", got, reset)
	}
	two := uint64(2)
	if _, reset := watch(t, event.New(log), &two, 2); reset {
		t.Error("a cursor that misses nothing is told of a reset")
	}
}

func TestAQuietWatcherHearsAHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := event.New(&roll{})
		start := time.Now()
		beats := 0
		_ = f.Watch(t.Context(), event.Watcher{Workspace: "w"}, func(e *controlv1.Event, _ bool) error {
			if beats++; beats == 3 { // the first one at once
				return errEnough
			}
			return nil
		})
		if time.Since(start) != 2*event.Beat {
			t.Errorf("the third frame came after %v", time.Since(start))
		}
	})
}

func TestOtherWorkspacesDoNotMakeAWatcherReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &roll{}
		f := event.New(log)
		ctx, cancel := context.WithCancel(t.Context())
		var seen []uint64
		done := make(chan error)
		go func() {
			done <- f.Watch(ctx, event.Watcher{Workspace: "w"}, func(e *controlv1.Event, _ bool) error {
				if e != nil {
					seen = append(seen, e.GetCursor())
				}
				return nil
			})
		}()
		for range 10 {
			log.add("other")
			f.Hint()
			<-time.After(event.Pause)
			synctest.Wait()
		}
		log.add("w")
		f.Hint()
		<-time.After(event.Pause)
		synctest.Wait()
		cancel()
		<-done
		if !slices.Equal(seen, []uint64{11}) {
			t.Errorf("saw %v", seen)
		}
	})
}

// R6, the reading side: however many watchers there are and however fast the log grows, it is read once for all.
func TestWatchersShareOneReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &roll{}
		f := event.New(log)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		const watchers, events = 200, 1000
		var all sync.WaitGroup
		for range watchers {
			all.Go(func() {
				if got, _ := watch(t, f, nil, events); !slices.IsSorted(got) || len(slices.Compact(got)) != events {
					t.Errorf("%d events, sorted %v", len(got), slices.IsSorted(got))
				}
			})
		}
		// One that never takes what it is given holds up nobody.
		stuck := make(chan error)
		go func() {
			stuck <- f.Watch(ctx, event.Watcher{Workspace: "w"}, func(e *controlv1.Event, _ bool) error {
				if e != nil {
					<-ctx.Done()
				}
				return ctx.Err()
			})
		}()
		synctest.Wait()
		began := time.Now()
		for range events { // ten in the time between two readings
			log.add("w")
			f.Hint()
			<-time.After(event.Pause / 10)
		}
		all.Wait()
		log.mu.Lock()
		reads := log.reads
		log.mu.Unlock()
		if most := int(time.Since(began)/event.Pause) + watchers + 2; reads > most || reads > 2*events {
			t.Errorf("the log was read %d times for %d watchers and %d events", reads, watchers, events)
		}
		cancel()
		<-stuck
	})
}

func TestWatchersAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := event.New(&roll{})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		follow := func(who string) error {
			return f.Watch(ctx, event.Watcher{Workspace: "w", Principal: who}, func(*controlv1.Event, bool) error { return nil })
		}
		for range event.MaxPerPrincipal {
			all.Go(func() { _ = follow("a") })
		}
		synctest.Wait()
		if err := follow("a"); fault.CodeOf(err) != fault.Busy {
			t.Errorf("one too many: %v", err)
		}
		for n := range event.MaxPerWorkspace - event.MaxPerPrincipal {
			all.Go(func() { _ = follow(strconv.Itoa(n)) })
		}
		synctest.Wait()
		if err := follow("b"); fault.CodeOf(err) != fault.Busy {
			t.Errorf("one too many in the workspace: %v", err)
		}
		cancel()
		all.Wait()
		ctx, cancel = context.WithCancel(t.Context())
		all.Go(func() { _ = follow("a") })
		synctest.Wait()
		cancel()
		all.Wait()
	})
}
