package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// last is the text of the message with which a turn began.
func last(task turn.Task) string { return task.History[len(task.History)-1].Text }

// ring plays agents that each pass every message on: the conversation i to the ones that next names.
type ring struct {
	ids   []string
	next  func(i int) []int
	turns atomic.Int64
	after func(turn int64) // nil if nothing
}

func newRing(t *testing.T, s *shelf, n int, next func(int) []int) *ring {
	t.Helper()
	r := &ring{next: next}
	for i := range n {
		row, err := s.Create(t.Context(), "w", fmt.Sprint("agent ", i), nil, "")
		s.check(err)
		r.ids = append(r.ids, row.ID)
	}
	return r
}

func (r *ring) act(ctx context.Context, b *conversation.Book, task turn.Task) error {
	for _, to := range r.next(slices.Index(r.ids, task.Conversation)) {
		if _, err := agentSays(ctx, b, task, r.ids[to], "your turn", fmt.Sprint(task.TurnID, to)); err != nil {
			return err
		}
	}
	err := answers(ctx, task, "passed on")
	if n := r.turns.Add(1); r.after != nil {
		r.after(n)
	}
	return err
}

// quiet waits until nothing runs anywhere: each was seen at rest, and nothing has happened anywhere in between. A turn that
// another one begins has begun before that one ends.
func (r *ring) quiet(s *shelf) {
	s.t.Helper()
	happened := func() (n uint64) {
		for _, id := range r.ids {
			n += s.get(id).Sequence
		}
		return n
	}
	for before, after := uint64(0), happened(); before != after; {
		before = after
		for _, id := range r.ids {
			s.events(id)
		}
		after = happened()
	}
}

func (r *ring) count(s *shelf) (turns []int, waiting int) {
	for _, id := range r.ids {
		turns = append(turns, len(started(s.events(id))))
		waiting += s.get(id).Queued
	}
	return turns, waiting
}

// R177, R179–R181: six wakes of agents, whoever sends; the seventh message waits, with one notice; a person refills.
func TestAgentsWakeAConversationSixTimes(t *testing.T) {
	t.Parallel()
	s := newShelf(t, echo)
	s.limits.ChainWakes = 100
	s.check(s.stop())
	s.start()
	b, err := s.Create(t.Context(), "w", "b", nil, "")
	s.check(err)
	sends := func(want ...agentv1.Delivery) {
		t.Helper()
		for _, w := range want {
			s.act = func(ctx context.Context, book *conversation.Book, task turn.Task) error {
				if last(task) == "go" {
					told, err := agentSays(ctx, book, task, b.ID, "news", id())
					if err != nil || told.Delivery != w {
						t.Errorf("%+v, %v, want %v", told, err, w)
					}
				}
				return answers(ctx, task, "done")
			}
			s.events(s.say("", "go").Conversation.ID) // a person's message, in another conversation each time
			s.events(b.ID)
		}
	}
	sends(hasStarted, hasStarted, hasStarted, hasStarted, hasStarted, hasStarted, isHeld, isHeld)
	check := func(turns, queued, wakes int, codes ...string) {
		t.Helper()
		events, row := s.events(b.ID), s.get(b.ID)
		if len(started(events)) != turns || row.Queued != queued || row.Wakes != wakes || !slices.Equal(notices(events), codes) {
			t.Errorf("%d turns, %d wait, %d wakes, notices %q", len(started(events)), row.Queued, row.Wakes, notices(events))
		}
	}
	check(6, 2, 0, "wakes_exhausted")
	s.restart()
	sends(isHeld)
	check(6, 3, 0, "wakes_exhausted")
	s.say(b.ID, "go on")
	events := s.events(b.ID)
	if got := started(events); len(got[6]) != 4 || got[6][3] != "go on" {
		t.Errorf("the person's turn read %q", got[6])
	}
	check(7, 0, 6, "wakes_exhausted")
	sends(hasStarted, hasStarted, hasStarted, hasStarted, hasStarted, hasStarted, isHeld)
	check(13, 1, 0, "wakes_exhausted", "wakes_exhausted")
	// R180: people are never throttled.
	for range 10 {
		if told := s.say(b.ID, "hello"); told.Delivery != hasStarted {
			t.Errorf("%+v", told)
		}
		s.events(b.ID)
	}
}

// R178, R186: a message to a busy conversation costs nothing; the turn that it begins at the end costs a wake.
func TestAMessageThatWaitsCostsAWakeWhenItIsRead(t *testing.T) {
	t.Parallel()
	s := newShelf(t, nil)
	b, err := s.Create(t.Context(), "w", "b", nil, "")
	s.check(err)
	works, enough := make(chan struct{}), make(chan struct{})
	s.act = func(ctx context.Context, book *conversation.Book, task turn.Task) error {
		switch {
		case last(task) == "work":
			close(works)
			<-enough
		case task.Conversation != b.ID:
			for range 3 {
				told, err := agentSays(ctx, book, task, b.ID, "news", id())
				if err != nil || told.Delivery != hasQueued {
					t.Errorf("%+v, %v", told, err)
				}
			}
		}
		return answers(ctx, task, "yes")
	}
	s.say(b.ID, "work")
	<-works
	s.events(s.say("", "send").Conversation.ID)
	if got := s.get(b.ID); got.Wakes != conversation.DefaultWakes || got.Queued != 3 {
		t.Errorf("%+v", got)
	}
	close(enough)
	events := s.events(b.ID)
	if got := s.get(b.ID); fmt.Sprint(started(events)) != "[[work] [news news news]]" || got.Wakes != conversation.DefaultWakes-1 {
		t.Errorf("turns %q, %d wakes", started(events), got.Wakes)
	}
}

// A cycle of any length ends: after six wakes of one conversation, and after twelve of one message of a person.
func TestCyclesOfAgentsEnd(t *testing.T) {
	t.Parallel()
	circle := func(n int) func(int) []int { return func(i int) []int { return []int{(i + 1) % n} } }
	for _, c := range []struct {
		name  string
		n     int
		next  func(int) []int
		turns string
	}{
		{"two", 2, circle(2), "[7 6]"},        // A is woken six times besides the person
		{"three", 3, circle(3), "[5 4 4]"},    // twelve wakes
		{"five", 5, circle(5), "[3 3 3 2 2]"}, // twelve wakes
		{"fan", 9, func(i int) []int { // one wakes eight, which wake nobody
			if i > 0 {
				return nil
			}
			return []int{1, 2, 3, 4, 5, 6, 7, 8}
		}, "[1 1 1 1 1 1 1 1 1]"},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, restarts), func(t *testing.T) {
				t.Parallel()
				s := newShelf(t, nil)
				r := newRing(t, s, c.n, c.next)
				s.act = r.act
				stop := make(chan struct{})
				if restarts {
					r.after = func(n int64) {
						if n == 4 {
							close(stop)
						}
					}
				}
				s.say(r.ids[0], "begin")
				if restarts {
					<-stop
					s.restart()
				}
				r.quiet(s)
				turns, waiting := r.count(s)
				if got := fmt.Sprint(turns); got != c.turns {
					t.Errorf("turns %s, want %s", got, c.turns)
				}
				held := 1
				if c.name == "fan" {
					held = 0
				}
				if waiting != held {
					t.Errorf("%d messages wait", waiting)
				}
			})
		}
	}
}

// A message of a person refills its own conversation and has a chain of its own; the one that is used up stays so.
func TestAPersonRefillsOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	s := newShelf(t, nil)
	r := newRing(t, s, 3, func(i int) []int { return []int{(i + 1) % 3} })
	s.act = r.act
	s.say(r.ids[0], "begin")
	r.quiet(s)
	if turns, waiting := r.count(s); fmt.Sprint(turns) != "[5 4 4]" || waiting != 1 {
		t.Fatalf("%v, %d", turns, waiting)
	}
	var codes []string
	for _, id := range r.ids {
		codes = append(codes, notices(s.events(id))...)
	}
	if !slices.Equal(codes, []string{"chain_exhausted"}) {
		t.Errorf("notices %q", codes)
	}
	s.say(r.ids[1], "and you?")
	r.quiet(s)
	// The second message wakes until a receiver has none left: the third and the first had two each, the second six.
	if turns, _ := r.count(s); fmt.Sprint(turns) != "[7 7 6]" {
		t.Errorf("turns %v", turns)
	}
}

// Stop ends the chain of the turn: what that turn, or one that it woke, sends afterwards wakes nobody.
func TestStopEndsTheChain(t *testing.T) {
	t.Parallel()
	g := newGated()
	s := newShelf(t, g.act)
	row := func(name string) string {
		row, err := s.Create(t.Context(), "w", name, nil, "")
		s.check(err)
		return row.ID
	}
	b, c := row("b"), row("c")
	a := s.say("", "begin").Conversation.ID
	<-g.begun
	sent := make(chan struct{})
	g.release <- func(ctx context.Context, task turn.Task) error {
		_, err := agentSays(ctx, s.Book, task, b, "go", id())
		s.check(err)
		close(sent)
		<-ctx.Done()
		return ended(ctx, task, agentv1.TurnEnd_TURN_END_STOPPED)
	}
	<-sent
	<-g.begun // b
	_, err := s.Stop(t.Context(), "w", a)
	s.check(err)
	// b is not stopped, but wakes nobody any more.
	g.release <- func(ctx context.Context, task turn.Task) error {
		told, err := agentSays(ctx, s.Book, task, c, "go", id())
		if err != nil || told.Delivery != isHeld {
			t.Errorf("%+v, %v", told, err)
		}
		return yes(ctx, task)
	}
	if got := s.events(b); !strings.Contains(fmt.Sprint(ends(got)), "ANSWERED") {
		t.Errorf("b: %v", got)
	}
	if got := s.events(c); len(started(got)) != 0 || s.get(c).Queued != 1 {
		t.Errorf("c: %v", got)
	}
}
