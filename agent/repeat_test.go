package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// A caller that repeats its request, because it takes the first one for lost, waits for the turn like the first: the turn
// ends with the last of both, whether the message was being read or waited when the repeat came.
func TestARepeatedChatIsOneMoreCaller(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{false, true} {
		g := newGated()
		s := newShelf(t, g.act)
		row, err := s.Create(t.Context(), "w", "x", nil, "")
		s.check(err)
		if waits {
			s.say(row.ID, "before")
			<-g.begun
		}
		d := conversation.Delivery{Workspace: "w", To: row.ID, Text: "hello", MessageID: id(), Attached: true}
		chat := func() *conversation.Talk {
			talk, err := s.Chat(t.Context(), d)
			s.check(err)
			return talk
		}
		first, again := chat(), chat()
		if waits {
			first.Close() // the message still waits, and somebody waits for it
			first = chat()
			g.release <- yes
		}
		if task := <-g.begun; task.Durable {
			t.Errorf("waits %v: the turn goes on without its callers", waits)
		}
		first.Close()
		if got := s.get(row.ID).Status; got != agentv1.ConversationStatus_CONVERSATION_STATUS_RUNNING {
			t.Errorf("waits %v: %v, though a caller waits", waits, got)
		}
		late := chat()
		again.Close()
		g.release <- yes // only a turn that was not stopped takes it
		for {
			event, err := late.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			s.check(err)
			if end := event.GetTurnEnded(); end != nil && end.GetReason() != agentv1.TurnEnd_TURN_END_ANSWERED {
				t.Errorf("waits %v: ended as %v", waits, end)
			}
		}
		late.Close()
	}
}

// The last one to go stops the turn, whichever of them it is.
func TestTheLastOfTwoCallersStopsTheTurn(t *testing.T) {
	t.Parallel()
	g := newGated()
	s := newShelf(t, g.act)
	d := conversation.Delivery{Workspace: "w", Text: "hello", MessageID: id(), Attached: true}
	first, err := s.Chat(t.Context(), d)
	s.check(err)
	again, err := s.Chat(t.Context(), d)
	s.check(err)
	<-g.begun
	first.Close()
	again.Close()
	if got := ends(s.events(first.Conversation.ID)); fmt.Sprint(got) != "[TURN_END_STOPPED]" {
		t.Errorf("%v", got)
	}
}

// What asks only what became of a message delivers nothing.
func TestAskingForAMessageDeliversNothing(t *testing.T) {
	t.Parallel()
	s := newShelf(t, echo)
	d := conversation.Delivery{Workspace: "w", Text: "hello", MessageID: id()}
	ask := d
	ask.Text, ask.Again = "", true
	_, err := s.Deliver(t.Context(), ask)
	expectError(t, err, conversation.NotFound)
	told, err := s.Deliver(t.Context(), d)
	s.check(err)
	if got, err := s.Deliver(t.Context(), ask); err != nil || got.Conversation.ID != told.Conversation.ID || got.Delivery != hasStarted {
		t.Errorf("%+v, %v", got, err)
	}
	if got := fmt.Sprint(started(s.events(told.Conversation.ID))); got != "[[hello]]" {
		t.Errorf("turns %s", got)
	}
}

// A title that was left out is made from the first message, whenever that comes.
func TestATitleComesFromTheFirstMessage(t *testing.T) {
	t.Parallel()
	s := newShelf(t, echo)
	row, err := s.Create(t.Context(), "w", "", nil, "")
	s.check(err)
	for _, text := range []string{"  close the\ttabs\nof yesterday", "and now?"} {
		s.say(row.ID, text)
		s.events(row.ID)
		if got := s.get(row.ID).Title; got != "close the tabs" {
			t.Errorf("%q", got)
		}
	}
}

// What a person wrote and a stop has left is read with the next message, also one of an agent: for nothing then, and on
// behalf of who wrote it.
func TestAPersonsMessageThatWaitsIsReadForNothing(t *testing.T) {
	t.Parallel()
	g := newGated()
	s := newShelf(t, g.act)
	b := s.say("", "begin").Conversation.ID
	<-g.begun
	s.say(b, "waits")
	_, err := s.Stop(t.Context(), "w", b)
	s.check(err)
	s.say("", "send")
	sender := <-g.begun
	g.release <- func(ctx context.Context, task turn.Task) error {
		told, err := agentSays(ctx, s.Book, task, b, "news", id())
		if err != nil || told.Delivery != hasStarted {
			t.Errorf("%+v, %v", told, err)
		}
		return yes(ctx, task)
	}
	reader := <-g.begun
	g.release <- yes
	if got := fmt.Sprint(started(s.events(b))); got != "[[begin] [waits news]]" {
		t.Errorf("turns %s", got)
	}
	paid, err := s.kept.Chain(t.Context(), "w", sender.TurnID)
	s.check(err)
	of, err := s.kept.Chain(t.Context(), "w", reader.TurnID)
	s.check(err)
	if paid.Left != conversation.DefaultChainWakes || of.ID == paid.ID || of.Root != b || s.get(b).Wakes != conversation.DefaultWakes {
		t.Errorf("the sender's %+v, the reader's %+v, %d wakes", paid, of, s.get(b).Wakes)
	}
}

// A turn that is stopped takes nothing in any more: it would be read by nobody.
func TestATurnThatIsStoppedTakesNothingIn(t *testing.T) {
	t.Parallel()
	stepped := make(chan turn.Step, 1)
	begun := make(chan struct{}, 2)
	s := newShelf(t, func(ctx context.Context, _ *conversation.Book, task turn.Task) error {
		begun <- struct{}{}
		if len(task.History) > 1 {
			return yes(ctx, task)
		}
		<-ctx.Done()
		step, err := task.Journal.Next(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		stepped <- step
		return ended(ctx, task, agentv1.TurnEnd_TURN_END_STOPPED)
	})
	to := s.say("", "one").Conversation.ID
	<-begun
	_, err := s.Deliver(t.Context(), conversation.Delivery{Workspace: "w", To: to, Text: "left", Mode: agentv1.SendMode_SEND_MODE_STEER})
	s.check(err)
	_, err = s.Stop(t.Context(), "w", to)
	s.check(err)
	if step := <-stepped; len(step.Messages) != 0 || s.get(to).Queued != 1 {
		t.Errorf("it took %+v, %d wait", step.Messages, s.get(to).Queued)
	}
	s.say(to, "right")
	if got := fmt.Sprint(started(s.events(to))); got != "[[one] [left right]]" {
		t.Errorf("turns %s", got)
	}
}

// Who follows until nothing runs is not told that a turn has ended which goes on when the server runs again.
func TestATurnThatGoesOnLaterIsNotIdle(t *testing.T) {
	t.Parallel()
	g := newGated()
	s := newShelf(t, g.act)
	to := s.say("", "one").Conversation.ID
	<-g.begun
	w, err := s.Watch(t.Context(), "w", to, 0, true)
	s.check(err)
	defer w.Close()
	for {
		res, err := w.Next(t.Context())
		s.check(err)
		if res.GetCaughtUp() != nil {
			break
		}
	}
	s.check(s.stop())
	_, err = w.Next(t.Context())
	expectError(t, err, conversation.Unavailable)
	s.start()
	<-g.begun
	g.release <- yes
	if got := ends(s.events(to)); fmt.Sprint(got) != "[TURN_END_ANSWERED]" {
		t.Errorf("%v", got)
	}
}

// A snapshot is of one moment: an answer that came after the status was read is not in it.
func TestASnapshotIsOfOneMoment(t *testing.T) {
	t.Parallel()
	g := newGated()
	s := newShelf(t, g.act)
	h := s.hook()
	to := s.say("", "one").Conversation.ID
	<-g.begun
	g.release <- func(ctx context.Context, task turn.Task) error { return answers(ctx, task, "first answer") }
	s.events(to)
	s.say(to, "two")
	<-g.begun
	h.mu.Lock()
	h.reads = func() {
		g.release <- func(ctx context.Context, task turn.Task) error { return answers(ctx, task, "second answer") }
		s.events(to)
	}
	h.mu.Unlock()
	for _, want := range []string{"CONVERSATION_STATUS_RUNNING first answer", "CONVERSATION_STATUS_IDLE second answer"} {
		got, err := s.Snapshot(t.Context(), "w", to)
		s.check(err)
		if got := fmt.Sprint(got.Status, " ", got.Answer); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
