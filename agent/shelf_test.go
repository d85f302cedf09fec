package agent_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"throwbar.dev/throwbar/agent"
	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/storage"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/storetest"
)

// actor plays the part of the model and its tools in one turn, by rules of a test. It keeps to what a turn has to do: what
// it says and does is in the journal, and it ends with an event.
type actor func(ctx context.Context, b *conversation.Book, task turn.Task) error

// shelf is a book over a real store, whose turns are played by an actor.
type shelf struct {
	*conversation.Book
	t      testing.TB
	dir    string
	url    string // of the database; empty for one in dir
	limits conversation.Limits
	models []turn.Choice
	act    actor
	wrap   func(agent.Store) agent.Store
	tick   chan time.Time
	kept   agent.Store
	random io.Reader
	stop   func() error
}

// postgres is the server of this test binary, where a test asks for one.
var postgres storetest.Cluster

func TestMain(m *testing.M) {
	defer postgres.Stop()
	m.Run()
}

func newShelf(t testing.TB, act actor) *shelf {
	t.Helper()
	return newShelfAt(t, "", act)
}

// newShelfAt is a shelf whose database is that of a URL.
func newShelfAt(t testing.TB, url string, act actor) *shelf {
	t.Helper()
	s := &shelf{random: rand.Reader, t: t, dir: t.TempDir(), url: url, act: act, models: []turn.Choice{{Name: "first"}, {Name: "second"}}, tick: make(chan time.Time), wrap: func(s agent.Store) agent.Store { return s }}
	s.start()
	t.Cleanup(func() { s.check(s.stop()) })
	return s
}

func (s *shelf) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

type turner struct {
	*shelf
	turns sync.WaitGroup
}

func (p *turner) Run(ctx context.Context, task turn.Task) error { return p.act(ctx, p.Book, task) }
func (p *turner) Wait()                                         { p.turns.Wait() }

func (s *shelf) start() {
	s.t.Helper()
	opened, err := store.Open(s.t.Context(), store.Config{Dir: s.dir, URL: s.url})
	s.check(err)
	kept := s.wrap(storage.New(opened))
	s.kept = kept
	s.Book = conversation.New(conversation.Config{
		Store: kept, Lists: kept, Outputs: kept, Turner: &turner{shelf: s}, Models: s.models,
		Limits: s.limits, Random: s.random, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Tick: func() (<-chan time.Time, func()) { return s.tick, func() {} },
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	storeCtx, stopStore := context.WithCancel(context.WithoutCancel(s.t.Context()))
	var books, stores sync.WaitGroup
	var bookErr, storeErr error
	stores.Go(func() { storeErr = opened.Run(storeCtx) })
	books.Go(func() { bookErr = s.Run(ctx) })
	var once sync.Once
	s.stop = func() error {
		var err error
		once.Do(func() {
			cancel()
			books.Wait()
			stopStore()
			stores.Wait()
			err = errors.Join(bookErr, storeErr, opened.Close())
		})
		return err
	}
}

// restart ends the book and makes another one over the same folder.
func (s *shelf) restart() {
	s.t.Helper()
	s.check(s.stop())
	s.start()
}

// say delivers a message of a person.
func (s *shelf) say(to, text string) conversation.Delivered {
	s.t.Helper()
	told, err := s.Deliver(s.t.Context(), conversation.Delivery{Workspace: "w", To: to, Text: text})
	s.check(err)
	return told
}

// events are all stored events once no turn runs.
func (s *shelf) events(id string) []*agentv1.Event {
	s.t.Helper()
	w, err := s.Watch(s.t.Context(), "w", id, 0, true)
	s.check(err)
	defer w.Close()
	var events []*agentv1.Event
	for {
		res, err := w.Next(s.t.Context())
		if errors.Is(err, io.EOF) {
			return events
		}
		s.check(err)
		if res.GetEvent().GetSequence() > 0 {
			events = append(events, res.GetEvent())
		}
	}
}

func (s *shelf) get(id string) conversation.Row {
	s.t.Helper()
	row, err := s.Get(s.t.Context(), "w", id)
	s.check(err)
	return row
}

// started are the turns that began, each with the texts that it read, its own first message first.
func started(events []*agentv1.Event) [][]string {
	var turns [][]string
	at := map[string]int{}
	for _, e := range events {
		switch {
		case e.GetTurnStarted() != nil:
			at[e.GetTurnId()] = len(turns)
			turns = append(turns, nil)
		case e.GetMessage().GetRole() == agentv1.Role_ROLE_USER:
			turns[at[e.GetTurnId()]] = append(turns[at[e.GetTurnId()]], e.GetMessage().GetText())
		}
	}
	return turns
}

func notices(events []*agentv1.Event) []string {
	var codes []string
	for _, e := range events {
		if n := e.GetNotice(); n != nil {
			codes = append(codes, n.GetCode())
		}
	}
	return codes
}

// answers ends a turn with an answer.
func answers(ctx context.Context, task turn.Task, text string) error {
	return task.Journal.Record(ctx, turn.Entry{Messages: []model.Message{{Role: model.RoleAssistant, Text: text}}, Events: []*agentv1.Event{
		{Kind: &agentv1.Event_Message{Message: &agentv1.Message{Role: agentv1.Role_ROLE_ASSISTANT, Text: text}}},
		{Kind: &agentv1.Event_TurnEnded{TurnEnded: &agentv1.TurnEnded{Reason: agentv1.TurnEnd_TURN_END_ANSWERED}}},
	}})
}

// ended ends a turn without an answer.
func ended(ctx context.Context, task turn.Task, reason agentv1.TurnEnd) error {
	return task.Journal.Record(ctx, turn.Entry{Events: []*agentv1.Event{
		{Kind: &agentv1.Event_TurnEnded{TurnEnded: &agentv1.TurnEnded{Reason: reason}}},
	}})
}

// echo answers at once.
func echo(ctx context.Context, _ *conversation.Book, task turn.Task) error {
	if _, err := task.Journal.Next(ctx); err != nil {
		return err
	}
	return answers(ctx, task, "yes")
}

// gated turns stand still until they are let go, one by one, and can be stopped.
type gated struct {
	begun   chan turn.Task
	release chan func(context.Context, turn.Task) error
}

func newGated() gated {
	return gated{begun: make(chan turn.Task, 64), release: make(chan func(context.Context, turn.Task) error)}
}

func (g gated) act(ctx context.Context, _ *conversation.Book, task turn.Task) error {
	g.begun <- task
	select {
	case do := <-g.release:
		return do(ctx, task)
	case <-ctx.Done():
		return ended(ctx, task, agentv1.TurnEnd_TURN_END_STOPPED)
	}
}

func yes(ctx context.Context, task turn.Task) error { return answers(ctx, task, "yes") }

// agentSays sends a message from a turn.
func agentSays(ctx context.Context, b *conversation.Book, task turn.Task, to, text, id string) (conversation.Delivered, error) {
	return b.Deliver(ctx, conversation.Delivery{
		Workspace: task.Workspace, To: to, Text: text, MessageID: id, From: task.Conversation, Turn: task.TurnID,
	})
}

var nextID atomic.Int64

func id() string { return fmt.Sprintf("message-%d", nextID.Add(1)) }

func expectError(t testing.TB, err error, code conversation.Code) {
	t.Helper()
	var known *conversation.Error
	if !errors.As(err, &known) || known.Code != code {
		t.Errorf("error: %v, want code %d", err, code)
	}
}
