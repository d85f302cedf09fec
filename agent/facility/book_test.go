package facility_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/facility"
	"throwbar.dev/throwbar/agent/storage"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/store"
)

var _ facility.Conversations = (*conversation.Book)(nil)

// turner answers what it is asked, unless that begins with "hold": then it waits until it is let go.
type turner struct {
	mu   sync.Mutex
	held map[string]chan struct{} // by conversation; guarded by mu
}

func (r *turner) Run(ctx context.Context, task turn.Task) error {
	said := task.History[len(task.History)-1].Text
	reason := agentv1.TurnEnd_TURN_END_ANSWERED
	if strings.Contains(said, "hold") {
		r.mu.Lock()
		let := make(chan struct{})
		r.held[task.Conversation] = let
		r.mu.Unlock()
		select {
		case <-let:
		case <-ctx.Done():
			reason = agentv1.TurnEnd_TURN_END_STOPPED
		}
	}
	return task.Journal.Record(ctx, turn.Entry{Events: []*agentv1.Event{
		{Kind: &agentv1.Event_Message{Message: &agentv1.Message{Role: agentv1.Role_ROLE_ASSISTANT, Text: "answer"}}},
		{Kind: &agentv1.Event_TurnEnded{TurnEnded: &agentv1.TurnEnded{Reason: reason}}},
	}})
}

func (*turner) Wait() {}

func (r *turner) let(t *testing.T, id string) {
	t.Helper()
	eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if let := r.held[id]; let != nil {
			close(let)
			delete(r.held, id)
			return true
		}
		return false
	})
}

func eventually(t *testing.T, check func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(2 * time.Minute); !check(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("it never happened")
		}
	}
}

// counter gives ids that begin alike: the first ones share their first seven digits.
type counter struct {
	mu sync.Mutex
	n  uint32
}

func (c *counter) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range p {
		p[i] = 0xab
	}
	c.n++
	binary.BigEndian.PutUint32(p, 0xabcdef00+c.n)
	return len(p), nil
}

// real is a bench over the conversations themselves, on a store.
type realBench struct {
	*bench
	book   *conversation.Book
	turner *turner
	from   string // the conversation whose agent calls
	turn   string // its turn, which runs
	calls  int
}

func newReal(t *testing.T) *realBench {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	r := &realBench{bench: newBench(t), turner: &turner{held: map[string]chan struct{}{}}}
	tools, err := tool.NewSet(r.catalogue)
	if err != nil {
		t.Fatal(err)
	}
	kept := storage.New(s)
	r.book = conversation.New(conversation.Config{
		Store: kept, Lists: kept, Outputs: kept, Turner: r.turner, Models: []turn.Choice{{Name: "test"}}, Definitions: definitions(),
		Within: tools.Within, Random: &counter{}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	r.Facilities = facility.New(facility.Config{
		Catalogue: r.catalogue, Tools: tools, Conversations: r.book, Definitions: definitions(), Log: slog.New(slog.DiscardHandler),
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.book.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	storeCtx, stopStore := context.WithCancel(context.WithoutCancel(t.Context()))
	var writing sync.WaitGroup
	writing.Go(func() {
		if err := s.Run(storeCtx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
		stopStore()
		writing.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	r.from = r.create(t, "mine")
	told, err := r.book.Deliver(t.Context(), conversation.Delivery{Workspace: "w", To: r.from, Text: "hold this turn"})
	if err != nil {
		t.Fatal(err)
	}
	r.turn = told.TurnID
	return r
}

func (r *realBench) create(t *testing.T, title string) string {
	t.Helper()
	row, err := r.book.Create(t.Context(), "w", title, &agentv1.ConversationSettings{}, "")
	if err != nil {
		t.Fatal(err)
	}
	return row.ID
}

// asks calls a facility in the turn that runs, each time as another call.
func (r *realBench) asks(t *testing.T, in proto.Message) (proto.Message, error) {
	t.Helper()
	r.calls++
	return r.callIn(t, turn.FacilityCall{
		Workspace: "w", Conversation: r.from, Root: r.from, TurnID: r.turn, Key: fmt.Sprint("key ", r.calls),
	}, in)
}

func (r *realBench) told(t *testing.T, in proto.Message) proto.Message {
	t.Helper()
	out, err := r.asks(t, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (r *realBench) wrong(t *testing.T, in proto.Message) string {
	t.Helper()
	out, err := r.asks(t, in)
	if err == nil {
		t.Errorf("%v was done: %v", in, out)
		return ""
	}
	return err.Error()
}

// The scripted conversations of the other tests behave like the real ones: here those are asked the same.
func TestOverTheConversationsThemselves(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	one, other := r.create(t, "Budget"), r.create(t, "Trip")
	send := func(ref string) proto.Message {
		return &agentv1.SendToConversation{ConversationId: ref, Message: "hold on"}
	}

	has(t, r.wrong(t, send("abcd")), "fits 3 open conversations", "one more character", one[:8]+": Budget", other[:8]+": Trip")
	has(t, r.wrong(t, send("ffff")), "no open conversation", one[:8]+": Budget", other[:8]+": Trip")
	has(t, r.wrong(t, send(r.from)), "this very conversation")
	has(t, r.wrong(t, send("ab%d")), "no open conversation") // two characters are left of it, and the shortest handle has four
	has(t, r.wrong(t, &agentv1.ReadConversation{ConversationId: "abcd"}), "fits 3")

	// At rest, then busy; a message is delivered once for a call, however often that is made.
	out, ok := r.told(t, send(strings.ToUpper(one[:8]))).(*agentv1.SendToConversation_Result)
	if !ok || out.GetDelivery() != agentv1.Delivery_DELIVERY_STARTED || out.GetHandle() != one[:8] || out.GetTitle() != "Budget" {
		t.Errorf("at rest: %v", out)
	}
	for range 2 {
		r.calls = 99
		out, ok = r.told(t, send(one)).(*agentv1.SendToConversation_Result)
		if !ok || out.GetDelivery() != agentv1.Delivery_DELIVERY_QUEUED {
			t.Errorf("busy: %v", out)
		}
	}
	if rows, err := r.book.Open(t.Context(), "w"); err != nil || rows[slices.IndexFunc(rows, func(c conversation.Row) bool { return c.ID == one })].Queued != 1 {
		t.Errorf("open: %v, %v", rows, err)
	}
	now, ok := r.told(t, &agentv1.ReadConversation{ConversationId: one}).(*agentv1.ReadConversation_Result)
	if !ok || now.GetStatus() != agentv1.ConversationStatus_CONVERSATION_STATUS_RUNNING || now.GetAnswer() != "" {
		t.Errorf("reading: %v", now)
	}
	has(t, now.GetNote(), "still on its first turn")
	r.turner.let(t, one)
	eventually(t, func() bool {
		now, ok = r.told(t, &agentv1.ReadConversation{ConversationId: one}).(*agentv1.ReadConversation_Result)
		return ok && now.GetAnswer() == "answer"
	})
	has(t, now.GetNote(), "in the turn before")
	r.turner.let(t, one)

	// A handle is as long as it has to be among those that are open, and shrinks with them.
	for _, id := range []string{one, r.from} {
		if id == r.from {
			continue
		}
		if _, err := r.book.Archive(t.Context(), "w", id); err != nil {
			t.Fatal(err)
		}
	}
	has(t, r.wrong(t, send(one)), "no open conversation", ": Trip")
}

// Made again, a call that started an agent waits for that one.
func TestAnAgentIsStartedOnceForACall(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	call := turn.FacilityCall{Workspace: "w", Conversation: r.from, Root: r.from, TurnID: r.turn, Key: "key"}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := r.callWith(ctx, t, call, &agentv1.SummonAgent{Agent: "scout", Task: "hold on"})
		gone <- err
	}()
	child := conversation.KeyID("key")
	eventually(t, func() bool {
		s, err := r.book.Snapshot(t.Context(), "w", r.childOf(t))
		return err == nil && s.Status == agentv1.ConversationStatus_CONVERSATION_STATUS_RUNNING
	})
	cancel() // as if the process had ended
	if err := <-gone; err == nil {
		t.Error("it did not wait")
	}
	rested, resumed := 0, 0
	call.Again = true
	call.Rest = func() func() {
		rested++
		return func() { resumed++ }
	}
	r.turner.let(t, r.childOf(t))
	out, err := r.callIn(t, call, &agentv1.SummonAgent{Agent: "scout", Task: "hold on"})
	if s, ok := out.(*agentv1.SummonAgent_Result); err != nil || !ok || s.GetAnswer() != "answer" || rested != 1 || resumed != 1 {
		t.Errorf("again: %v, %v; the time stood still %d times and went on %d times", out, err, rested, resumed)
	}
	if rows, err := r.book.Open(t.Context(), "w"); err != nil || len(rows) != 2 {
		t.Errorf("%d conversations (%s), %v", len(rows), child, err)
	}
}

// childOf is the one conversation that the caller's agent started; empty while there is none.
func (r *realBench) childOf(t *testing.T) string {
	t.Helper()
	rows, err := r.book.Open(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.Parent == r.from {
			return row.ID
		}
	}
	return ""
}

// Eight work at a time below one conversation; one more is refused until one has ended.
func TestSoManyAgentsWorkAtOnce(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	in := &agentv1.SummonAgent{Agent: "scout", Task: "hold on", Background: true}
	for range conversation.DefaultChildren {
		r.told(t, in)
	}
	has(t, r.wrong(t, in), "no agent was started", "8 of them work")
	r.turner.let(t, r.childOf(t))
	eventually(t, func() bool {
		_, err := r.asks(t, in)
		return err == nil
	})
}
