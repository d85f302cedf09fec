package throwbar

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// testState is a source whose state the test sets.
type testState struct {
	mu      sync.Mutex
	state   State   // guarded by mu
	pending Changes // guarded by mu
	wake    chan struct{}
}

func newTestState(tabs int) *testState {
	s := &testState{wake: make(chan struct{}, 1)}
	s.state.Windows = []*commandv1.Window{{WindowId: "d_w-1", Kind: "normal"}}
	for i := range tabs {
		s.state.Tabs = append(s.state.Tabs, testTab(i, "https://example.com/"))
	}
	return s
}

func testTab(i int, url string) *commandv1.Tab {
	return &commandv1.Tab{TabId: fmt.Sprintf("d_t-%d", i), WindowId: "d_w-1", Index: uint32(i), Url: url}
}

func (s *testState) Snapshot() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = Changes{}
	return s.state
}

func (s *testState) Take() Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.pending
	s.pending = Changes{}
	return c
}

func (s *testState) Changed() <-chan struct{} { return s.wake }

func (s *testState) change(tabs ...*commandv1.Tab) {
	s.mu.Lock()
	s.pending.Tabs = append(s.pending.Tabs, tabs...)
	s.mu.Unlock()
	signal(s.wake)
}

func TestStateIsPushed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		state := newTestState(3)
		r := start(t, func(c *DeviceConfig) { c.State = state })
		l := r.welcomed()
		first := l.next().GetSnapshot()
		if len(first.GetTabs()) != 3 || len(first.GetWindows()) != 1 || !first.GetLast() || first.GetSequence() == 0 {
			t.Fatalf("snapshot %v", first)
		}
		state.change(testTab(7, "a"))
		state.change(testTab(8, "b")) // changes that come together go together
		l.wantNothing(t)
		time.Sleep(gather)
		delta := l.next().GetDelta()
		if len(delta.GetTabs()) != 2 || delta.GetSequence() != first.GetSequence()+1 {
			t.Errorf("delta %v", delta)
		}
		time.Sleep(time.Second)
		l.wantNothing(t)
		l.resync()
		again := l.next().GetSnapshot()
		if again.GetSequence() <= delta.GetSequence() || len(again.GetTabs()) != 3 {
			t.Errorf("snapshot %v", again)
		}
		state.change(testTab(9, "c"))
		close(l.down)
		l = r.welcomed() // a new link begins with a snapshot, which holds what was not sent
		if f := l.next(); f.GetSnapshot().GetSequence() <= again.GetSequence() {
			t.Errorf("frame %v", f)
		}
		time.Sleep(time.Second)
		l.wantNothing(t)
		r.end()
	})
}

func TestWhatACommandDidGoesBeforeItsOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		state := newTestState(1)
		r := start(t, func(c *DeviceConfig) { c.State = state })
		r.handler.open = func(_ context.Context, a *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
			state.change(testTab(5, a.GetUrl()))
			return &commandv1.OpenTab_Result{}, nil
		}
		l := r.welcomed()
		l.next()
		l.command("c", openTab("https://new/"), time.Minute)
		l.wantAck(t, "c")
		if f := l.next(); f.GetDelta().GetTabs()[0].GetUrl() != "https://new/" {
			t.Errorf("frame %v", f)
		}
		l.wantOutcome(t, "c")
		r.end()
	})
}

func TestSnapshotIsCutIntoChunks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		state := newTestState(0)
		for i := range 3000 {
			state.state.Tabs = append(state.state.Tabs, testTab(i, strings.Repeat("u", 1000)))
		}
		r := start(t, func(c *DeviceConfig) { c.State = state })
		l := r.welcomed()
		tabs, chunks := 0, uint32(0)
		for {
			f := l.next()
			s := f.GetSnapshot()
			if s.GetChunk() != chunks || s.GetSequence() != 1 || proto.Size(f) > 1<<20 {
				t.Fatalf("chunk %d: number %d, sequence %d, %d bytes", chunks, s.GetChunk(), s.GetSequence(), proto.Size(f))
			}
			tabs += len(s.GetTabs())
			chunks++
			if s.GetLast() {
				break
			}
		}
		if tabs != 3000 || chunks < 5 {
			t.Errorf("%d tabs in %d chunks", tabs, chunks)
		}
		var many []*commandv1.Tab
		for i := range 1000 {
			many = append(many, testTab(i, strings.Repeat("u", 1000)))
		}
		state.change(many...)
		time.Sleep(gather)
		if f := l.next(); f.GetSnapshot() == nil { // too much for a delta
			t.Errorf("frame %v", f)
		}
		r.end()
	})
}

func TestTextsOfPagesAreMadeFitToTravel(t *testing.T) {
	t.Parallel()
	tab := &commandv1.Tab{Url: "data:" + strings.Repeat("é", 1<<20), Title: "caf\xe9" + strings.Repeat("x", 1<<20)}
	got := chunk(State{
		Tabs: []*commandv1.Tab{tab}, Windows: []*commandv1.Window{{Kind: "\xff"}}, Groups: []*commandv1.TabGroup{{Title: "\xff"}},
	})
	if len(got) != 1 {
		t.Fatalf("%d chunks", len(got))
	}
	for _, text := range []string{
		got[0].Tabs[0].GetUrl(), got[0].Tabs[0].GetTitle(), got[0].Windows[0].GetKind(), got[0].Groups[0].GetTitle(),
	} {
		if !utf8.ValidString(text) || len(text) > maxURL {
			t.Errorf("%d bytes, valid: %v", len(text), utf8.ValidString(text))
		}
	}
	if len(tab.GetTitle()) < 1<<20 {
		t.Error("the source's own tab was changed")
	}
}
