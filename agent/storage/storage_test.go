package storage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/storage"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/storetest"
)

var postgres storetest.Cluster

func TestMain(m *testing.M) {
	defer postgres.Stop()
	m.Run()
}

// onEach runs a test on both engines.
func onEach(t *testing.T, test func(*testing.T, *storage.Storage)) {
	t.Helper()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, engine))
		})
	}
}

func open(t *testing.T, engine storetest.Engine) *storage.Storage {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Dir: t.TempDir(), URL: engine.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return storage.New(s)
}

func at(n int64) time.Time { return time.UnixMilli(n).UTC() }

func TestWhatIsAppendedIsReadBack(t *testing.T) {
	t.Parallel()
	onEach(t, testWhatIsAppendedIsReadBack)
}

func testWhatIsAppendedIsReadBack(t *testing.T, s *storage.Storage) {
	c := conversation.Conversation{ID: "abcd-1", Workspace: "w", Title: "x", Open: true, CreatedAt: at(1), UpdatedAt: at(1),
		Settings: &agentv1.ConversationSettings{Prompt: "p\x00"}, Parent: "p", Root: "r", Agent: "a", Wakes: 6, Holds: conversation.HeldByStop,
		LastEnd: agentv1.TurnEnd_TURN_END_FAILED, Sequence: 3,
	}
	messages := []model.Message{
		{Role: model.RoleUser, Text: "a\x00\u202e", Images: []string{"data:x"}},
		{Role: model.RoleAssistant, Reasoning: "r", Profile: "openai-strict", Calls: []model.Call{{ID: "1", Name: "n", Arguments: `{"a`, Extra: json.RawMessage(`{"s":1}`)}}},
		{Role: model.RoleTool, CallID: "1", Text: "{}"},
	}
	event := func(n uint64) *agentv1.Event {
		return &agentv1.Event{Sequence: n, Time: timestamppb.New(at(5)), TurnId: "t", ConversationId: c.ID,
			Kind: &agentv1.Event_Notice{Notice: &agentv1.Notice{Code: fmt.Sprint(n)}}}
	}
	append1 := conversation.Change{Conversation: c, New: true, Durable: true, Messages: messages[:1], Events: []*agentv1.Event{event(1)}}
	if err := s.Append(t.Context(), append1); err != nil {
		t.Fatal(err)
	}
	if state, err := s.State(t.Context(), "w", c.ID); err != nil || state.Last.GetSequence() != 1 {
		t.Errorf("last: %v, %v", state.Last, err)
	}
	c.UpdatedAt = at(9)
	append2 := conversation.Change{Conversation: c, Messages: messages[1:], Events: []*agentv1.Event{event(2), event(3)}}
	if err := s.Append(t.Context(), append2); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), append2); err == nil {
		t.Error("the same numbers went in twice")
	}
	state, err := s.State(t.Context(), "w", c.ID)
	if err != nil || !state.Conversation.Equal(c) || !proto.Equal(state.Last, event(3)) || state.Running != nil || state.Turns {
		t.Errorf("%+v, %v", state, err)
	}
	history, err := s.Messages(t.Context(), c.ID)
	if err != nil || !reflect.DeepEqual(history, messages) {
		t.Errorf("history: %+v, %v", history, err)
	}
	events, err := s.Events(t.Context(), c.ID, 1, 1)
	if err != nil || len(events) != 1 || !proto.Equal(events[0], event(2)) {
		t.Errorf("events: %v, %v", events, err)
	}
	if _, err := s.State(t.Context(), "other", c.ID); !errors.Is(err, conversation.ErrNoRow) {
		t.Errorf("another workspace: %v", err)
	}
	if _, err := s.State(t.Context(), "w", "a\x00b"); !errors.Is(err, conversation.ErrNoRow) {
		t.Errorf("an id that no row can have: %v", err)
	}
	if err := s.Append(t.Context(), conversation.Change{Conversation: conversation.Conversation{ID: "no", Workspace: "w", UpdatedAt: at(1)}}); !errors.Is(err, conversation.ErrNoRow) {
		t.Errorf("no conversation: %v", err)
	}
}

func TestConversationsAreListedAndFound(t *testing.T) {
	t.Parallel()
	onEach(t, testConversationsAreListedAndFound)
}

func testConversationsAreListedAndFound(t *testing.T, s *storage.Storage) {
	for i := range 1005 {
		c := conversation.Conversation{
			ID: fmt.Sprintf("%08x-0", i*7919), Workspace: "w", Open: i != 3, CreatedAt: at(1), UpdatedAt: at(int64(1 + i/2)),
		}
		if err := s.Append(t.Context(), conversation.Change{Conversation: c, New: true}); err != nil {
			t.Fatal(err)
		}
	}
	var all []conversation.Conversation
	var place *conversation.Place
	for {
		page, err := s.Conversations(t.Context(), "w", 0, place, 100)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page...)
		if len(page) < 100 {
			break
		}
		last := page[len(page)-1]
		place = &conversation.Place{UpdatedAt: last.UpdatedAt, ID: last.ID}
	}
	if len(all) != 1005 || !slices.IsSortedFunc(all, func(a, b conversation.Conversation) int { return b.UpdatedAt.Compare(a.UpdatedAt) }) {
		t.Errorf("%d conversations, or out of order", len(all))
	}
	open, err := s.Find(t.Context(), "w", "")
	if err != nil || len(open) != 1004 || !slices.IsSortedFunc(open, func(a, b conversation.Conversation) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	}) {
		t.Errorf("%d open, %v", len(open), err)
	}
	found, err := s.Find(t.Context(), "w", fmt.Sprintf("%08x", 7919*5))
	if err != nil || len(found) != 1 {
		t.Errorf("found: %v, %v", found, err)
	}
}
