package throwbar

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

func (l *memLink) wantCondition(t *testing.T, paused bool) {
	t.Helper()
	if f := l.next(); f.GetCondition() == nil || f.GetCondition().GetPaused() != paused {
		t.Fatalf("frame %v, want that paused is %v", f, paused)
	}
}

// TestAPausedDeviceRefuses: nothing new starts, what has started ends, and what has ended is answered as it ended.
func TestAPausedDeviceRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := start(t, func(c *DeviceConfig) { c.Concurrent = 1 })
		r.handler.close = func(context.Context, *commandv1.CloseTabs) (*commandv1.CloseTabs_Result, error) {
			<-release
			return &commandv1.CloseTabs_Result{ClosedCount: 1}, nil
		}
		l := r.welcomed()
		l.command("before", openTab("https://a.example/"), time.Minute)
		l.wantAck(t, "before")
		before := l.wantOutcome(t, "before")
		l.command("started", closeTabs("d_t-1"), time.Minute)
		l.wantAck(t, "started")
		l.command("queued", openTab("https://b.example/"), time.Minute) // waits for its turn
		l.wantNothing(t)

		r.device.SetPaused(true)
		r.device.SetPaused(true) // is told once
		l.wantCondition(t, true)
		l.command("new", openTab("https://c.example/"), time.Minute)
		l.command("before", openTab("https://a.example/"), time.Minute)
		if again := l.wantOutcome(t, "before"); !proto.Equal(before, again) {
			t.Errorf("answered %v, then %v", before, again)
		}
		close(release)
		if o := l.wantOutcome(t, "started"); o.GetResult().GetCloseTabs().GetClosedCount() != 1 {
			t.Errorf("what had started: %v", o)
		}
		refused := map[string]bool{}
		for range 2 {
			o := l.next().GetOutcome()
			refused[o.GetCommandId()] = o.GetError().GetCode() == commandv1.ErrorCode_ERROR_CODE_REFUSED && !o.GetError().GetRetryable() &&
				strings.Contains(o.GetError().GetMessage(), "a person has paused this device: nothing was done")
		}
		if !refused["queued"] || !refused["new"] {
			t.Errorf("refused: %v", refused)
		}
		l.wantNothing(t)

		r.device.SetPaused(false)
		l.wantCondition(t, false)
		l.command("new", openTab("https://c.example/"), time.Minute) // was answered: it never runs
		l.wantError(t, "new", commandv1.ErrorCode_ERROR_CODE_REFUSED)
		l.command("after", openTab("https://d.example/"), time.Minute)
		l.wantAck(t, "after")
		l.wantOutcome(t, "after")
		if r.handler.ran("new")+r.handler.ran("queued") != 0 || r.handler.ran("after") != 1 || r.handler.ran("before") != 1 {
			t.Errorf("runs: %v", r.handler.runs)
		}
		r.end()
	})
}

// TestAPauseIsSaidOnEachLink: in the Hello, or right after it if the person acted while it was on its way.
func TestAPauseIsSaidOnEachLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		l := r.welcomed()
		if l.hello.GetPaused() {
			t.Errorf("hello: %v", l.hello)
		}
		close(l.down)
		synctest.Wait()
		r.device.SetPaused(true) // there is no link
		l = r.link()
		if !l.hello.GetPaused() || !r.device.Paused() {
			t.Errorf("hello: %v", l.hello)
		}
		r.device.SetPaused(false) // said paused, and not welcomed yet
		l.welcome()
		l.wantCondition(t, false)
		r.device.SetPaused(true)
		l.wantCondition(t, true)
		close(l.down)
		l = r.welcomed()
		l.wantNothing(t)
		l.command("c", openTab("https://a.example/"), time.Minute)
		l.wantError(t, "c", commandv1.ErrorCode_ERROR_CODE_REFUSED)
		r.end()
	})
}

// TestAPausedDeviceRunsNothingAgain: what an earlier process was at when it ended would run again; not while it is paused,
// and nobody says that nothing was done.
func TestAPausedDeviceRunsNothingAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		journal := NewMemoryJournal()
		for id, action := range map[string]*commandv1.Action{"again": activateTab("d_t-1"), "once": closeTabs("d_t-1")} {
			if err := journal.Start(id, action); err != nil {
				t.Fatal(err)
			}
		}
		r := start(t, func(c *DeviceConfig) { c.Journal, c.Spread = journal, time.Second })
		r.device.SetPaused(true)
		l := r.welcomed("again", "once")
		l.command("again", activateTab("d_t-1"), time.Minute)
		e := l.wantError(t, "again", commandv1.ErrorCode_ERROR_CODE_INTERRUPTED)
		if !strings.Contains(e.GetMessage(), "a person has paused it since") || r.handler.ran("again") != 0 {
			t.Errorf("%v, ran %d times", e, r.handler.ran("again"))
		}
		r.end()
	})
}

// stoppedJournal stands still while it writes a start down.
type stoppedJournal struct {
	Journal

	entered, release chan struct{}
}

func (j stoppedJournal) Start(id string, action *commandv1.Action) error {
	close(j.entered)
	<-j.release
	return errors.Join(j.Journal.Start(id, action))
}

// TestWhenItIsPausedNothingIsAboutToStart: a command that is just starting has started when SetPaused returns. It is without
// virtual time, which does not go on while something waits for a lock.
func TestWhenItIsPausedNothingIsAboutToStart(t *testing.T) {
	t.Parallel()
	journal := stoppedJournal{NewMemoryJournal(), make(chan struct{}), make(chan struct{})}
	r := start(t, func(c *DeviceConfig) { c.Journal = journal })
	l := r.link()
	l.welcome()
	l.command("c", openTab("https://a.example/"), time.Minute)
	<-journal.entered
	time.AfterFunc(20*time.Millisecond, func() { close(journal.release) })
	r.device.SetPaused(true)
	if _, known := journal.Lookup("c"); !known {
		t.Error("it is paused, and what starts is not in the journal")
	}
	for f := range l.up {
		if o := f.GetOutcome(); o != nil {
			if o.GetResult() == nil || r.handler.ran("c") != 1 {
				t.Errorf("ran %d times: %v", r.handler.ran("c"), o)
			}
			break
		}
	}
	r.end()
}
