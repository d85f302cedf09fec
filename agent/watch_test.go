package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

func textDelta(piece string) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_TextDelta{TextDelta: &agentv1.TextDelta{Text: piece}}}
}

// follower is one who follows a conversation, and comes back after each loss of the connection.
type follower struct {
	shelf  *shelf
	id     string
	stored []*agentv1.Event
	text   string // of the answer that is being told, in pieces
	wrong  []string
}

func (f *follower) last() uint64 { return uint64(len(f.stored)) }

// follow follows until the connection is lost after a number of things, or until a message was read.
func (f *follower) follow(ctx context.Context, most int, until string) bool {
	w, err := f.shelf.Watch(ctx, "w", f.id, f.last(), false)
	if err != nil {
		return false
	}
	defer w.Close()
	f.text = "" // what comes is all that there is of it
	for range most {
		res, err := w.Next(ctx)
		if err != nil {
			return false
		}
		event := res.GetEvent()
		switch {
		case event == nil:
		case event.GetSequence() == 0:
			f.text += event.GetTextDelta().GetText()
		default:
			f.take(event)
			if m := event.GetMessage(); m.GetText() == until {
				return true
			}
		}
	}
	return false
}

func (f *follower) take(event *agentv1.Event) {
	if event.GetSequence() != f.last()+1 {
		f.wrong = append(f.wrong, fmt.Sprintf("event %d after %d", event.GetSequence(), f.last()))
	}
	f.stored = append(f.stored, event)
	m := event.GetMessage()
	if m.GetRole() != agentv1.Role_ROLE_ASSISTANT {
		return
	}
	if f.text != "" && f.text != m.GetText() {
		f.wrong = append(f.wrong, fmt.Sprintf("pieces %q of the answer %q", f.text, m.GetText()))
	}
	f.text = ""
}

// Whoever follows by cursor gets every event once and in order, and of an answer that is being written all that there is,
// however often the connection is lost and the server is started again.
func TestFollowersMissNothingAndGetNothingTwice(t *testing.T) {
	t.Parallel()
	s := newShelf(t, func(ctx context.Context, _ *conversation.Book, task turn.Task) error {
		if _, err := task.Journal.Next(ctx); err != nil {
			return err
		}
		text := "answer of " + task.TurnID
		for _, word := range strings.SplitAfter(text, " ") {
			task.Journal.Delta(textDelta(word))
		}
		return answers(ctx, task, text)
	})
	to := s.say("", "begin").Conversation.ID
	s.events(to)
	const rounds, followers = 6, 5
	all := make([]*follower, followers)
	for i := range all {
		all[i] = &follower{shelf: s, id: to}
	}
	for round := range rounds {
		var following sync.WaitGroup
		until := fmt.Sprint("last of round ", round)
		for i, f := range all {
			random := rand.New(rand.NewPCG(uint64(i), uint64(round)))
			following.Go(func() {
				for !f.follow(t.Context(), 1+random.IntN(20), until) {
				}
			})
		}
		for i := range 10 {
			s.say(to, fmt.Sprint("message ", round, " ", i))
		}
		s.say(to, until)
		following.Wait()
		s.events(to)
		s.restart()
	}
	want := s.events(to)
	for i, f := range all {
		for range want {
			if f.last() == uint64(len(want)) {
				break
			}
			f.follow(t.Context(), 1, "")
		}
		if len(f.wrong) > 0 || f.last() != uint64(len(want)) {
			t.Fatalf("follower %d: %d of %d events, %q", i, f.last(), len(want), f.wrong)
		}
		for n := range want {
			if !proto.Equal(want[n], f.stored[n]) {
				t.Fatalf("follower %d: event %d: %v, want %v", i, n+1, f.stored[n], want[n])
			}
		}
	}
}

// Who comes in the middle of an answer gets what there is of it as one piece, after all that is stored.
func TestAFollowerComesInTheMiddle(t *testing.T) {
	t.Parallel()
	told, more := make(chan struct{}), make(chan struct{})
	s := newShelf(t, func(ctx context.Context, _ *conversation.Book, task turn.Task) error {
		task.Journal.Delta(textDelta("one "))
		task.Journal.Delta(textDelta("two "))
		close(told)
		<-more
		task.Journal.Delta(textDelta("three"))
		return answers(ctx, task, "one two three")
	})
	to := s.say("", "begin").Conversation.ID
	<-told
	w, err := s.Watch(t.Context(), "w", to, 0, false)
	s.check(err)
	defer w.Close()
	var got []string
	for {
		res, err := w.Next(t.Context())
		s.check(err)
		switch k := res.GetKind().(type) {
		case *agentv1.WatchConversationResponse_CaughtUp:
			got = append(got, fmt.Sprint("caught up at ", k.CaughtUp.GetSequence(), " ", k.CaughtUp.GetStatus()))
			close(more)
		case *agentv1.WatchConversationResponse_Event:
			if text := k.Event.GetTextDelta().GetText(); text != "" {
				got = append(got, text)
			} else {
				got = append(got, fmt.Sprint(k.Event.GetSequence()))
			}
			if k.Event.GetTurnEnded() != nil {
				if want := "[1 2 one two  caught up at 2 CONVERSATION_STATUS_RUNNING three 3 4]"; fmt.Sprint(got) != want {
					t.Errorf("%v, want %s", got, want)
				}
				return
			}
		}
	}
}

func TestWhatAFollowerIsTold(t *testing.T) {
	t.Parallel()
	s := newShelf(t, echo)
	to := s.say("", "begin").Conversation.ID
	n := uint64(len(s.events(to)))
	next := func(w *conversation.Watch) *agentv1.WatchConversationResponse {
		t.Helper()
		res, err := w.Next(t.Context())
		s.check(err)
		return res
	}
	// A place beyond the end.
	w, err := s.Watch(t.Context(), "w", to, n+1, false)
	s.check(err)
	if res := next(w); res.GetUnknownPlace().GetSequence() != n {
		t.Errorf("%v", res)
	}
	if _, err := w.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("after that: %v", err)
	}
	w.Close()
	// Nothing new, then a sign of life, then the end of the server.
	w, err = s.Watch(t.Context(), "w", to, n, false)
	s.check(err)
	if res := next(w); res.GetCaughtUp().GetSequence() != n || res.GetCaughtUp().GetStatus() != agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE {
		t.Errorf("%v", res)
	}
	go func() { s.tick <- time.Now() }()
	if res := next(w); res.GetAlive().GetStatus() != agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE {
		t.Errorf("%v", res)
	}
	s.check(s.stop())
	_, err = w.Next(t.Context())
	expectError(t, err, conversation.Unavailable)
	w.Close()
	s.start()
	_, err = s.Watch(t.Context(), "other", to, 0, false)
	expectError(t, err, conversation.NotFound)
}

// A turn waits for nobody who follows it: one who does not read is cut off, and can come back.
func TestASlowFollowerIsCutOff(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	s := newShelf(t, func(ctx context.Context, _ *conversation.Book, task turn.Task) error {
		defer close(over)
		var events []*agentv1.Event
		for range 5000 {
			events = append(events, &agentv1.Event{Kind: &agentv1.Event_Usage{Usage: &agentv1.Usage{}}})
		}
		if err := task.Journal.Record(ctx, turn.Entry{Events: events}); err != nil {
			return err
		}
		return answers(ctx, task, "yes")
	})
	row, err := s.Create(t.Context(), "w", "x", nil, "")
	s.check(err)
	w, err := s.Watch(t.Context(), "w", row.ID, 0, false)
	s.check(err)
	defer w.Close()
	s.say(row.ID, "much")
	<-over
	events := s.events(row.ID)
	for err == nil {
		_, err = w.Next(t.Context())
	}
	expectError(t, err, conversation.Slow)
	f := &follower{shelf: s, id: row.ID}
	f.follow(t.Context(), len(events), "")
	if f.last() != uint64(len(events)) || len(f.wrong) > 0 {
		t.Errorf("%d events, %v", f.last(), f.wrong)
	}
}

// A chat that waits in the queue is followed until the turn ends that took it, or it is taken back.
func TestAChatThatWaitsIsFollowed(t *testing.T) {
	t.Parallel()
	g := newGated()
	s := newShelf(t, g.act)
	to := s.say("", "first").Conversation.ID
	<-g.begun
	chat := func(text string) *conversation.Talk {
		talk, err := s.Chat(t.Context(), conversation.Delivery{Workspace: "w", To: to, Text: text, Attached: true})
		if err != nil || talk.Delivery != hasQueued {
			t.Fatalf("%+v, %v", talk, err)
		}
		return talk
	}
	rest := func(talk *conversation.Talk) []*agentv1.Event {
		var all []*agentv1.Event
		for {
			event, err := talk.Next(t.Context())
			if errors.Is(err, io.EOF) {
				return all
			}
			s.check(err)
			all = append(all, event)
		}
	}
	taken, back := chat("second"), chat("third")
	defer taken.Close()
	defer back.Close()
	s.check(s.Remove(t.Context(), "w", to, back.MessageID))
	if got := rest(back); got[len(got)-1].GetQueueRemoved().GetMessageId() != back.MessageID {
		t.Errorf("%v", got)
	}
	g.release <- yes
	if task := <-g.begun; task.Durable {
		t.Error("a turn whose only callers wait for it goes on without them")
	}
	g.release <- yes
	got := rest(taken)
	if n := len(got); got[n-1].GetTurnEnded() == nil || fmt.Sprint(started(got)) != "[[second]]" {
		t.Errorf("%v", got)
	}
	// Nobody waits any more: the turn stops.
	talk, err := s.Chat(t.Context(), conversation.Delivery{Workspace: "w", To: to, Text: "fourth", Attached: true})
	s.check(err)
	<-g.begun
	talk.Close()
	all := ends(s.events(to))
	if all[len(all)-1] != agentv1.TurnEnd_TURN_END_STOPPED {
		t.Errorf("%v", all)
	}
}
