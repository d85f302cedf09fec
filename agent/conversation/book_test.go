package conversation_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// memory is a store of one conversation.
type memory struct {
	conversation.Store
	c    conversation.Conversation
	last *agentv1.Event
}

func (m *memory) Conversation(context.Context, string, string) (conversation.Conversation, *agentv1.Event, error) {
	return m.c, m.last, nil
}

func (m *memory) Find(context.Context, string, string) ([]conversation.Conversation, error) {
	return []conversation.Conversation{m.c}, nil
}

func (m *memory) Messages(context.Context, string) ([]model.Message, error) { return nil, nil }

func (m *memory) Append(_ context.Context, change conversation.Change) error {
	m.c = change.Conversation
	m.last = change.Events[len(change.Events)-1]
	return nil
}

// lingerer ends its turns and then takes its time.
type lingerer struct{ release chan struct{} }

func (l lingerer) Run(ctx context.Context, task turn.Task) error {
	err := task.Journal.Record(ctx, turn.Entry{Events: []*agentv1.Event{{Kind: &agentv1.Event_TurnEnded{TurnEnded: &agentv1.TurnEnded{
		Reason: agentv1.TurnEnd_TURN_END_ANSWERED,
	}}}}})
	<-l.release
	return err
}

func (lingerer) Wait() {}

// Who hears that a turn has ended may begin the next one at once.
func TestTheNextTurnMayBeginWhenTheEndIsTold(t *testing.T) {
	t.Parallel()
	l := lingerer{make(chan struct{})}
	b := conversation.New(conversation.Config{
		Store: &memory{}, Turner: l, Models: []turn.Choice{{Name: "test"}}, Random: rand.Reader, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	id := ""
	for range 3 {
		feed, err := b.Chat(t.Context(), conversation.Request{Workspace: "w", Conversation: id, Message: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		for {
			event, err := feed.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if id = event.GetConversationId(); event.GetTurnEnded() != nil {
				break
			}
		}
	}
	close(l.release)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTheLastFeedEndsWithTheTurn(t *testing.T) {
	t.Parallel()
	l := lingerer{make(chan struct{})}
	close(l.release)
	b := conversation.New(conversation.Config{
		Store: &memory{}, Turner: l, Models: []turn.Choice{{Name: "test"}}, Random: rand.Reader, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	feed, err := b.Chat(t.Context(), conversation.Request{Workspace: "w", Message: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		_, err := feed.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d events", n)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
