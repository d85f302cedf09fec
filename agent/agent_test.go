package agent_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent"
	"throwbar.dev/throwbar/agent/agenttest"
	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/agent/storage"
	"throwbar.dev/throwbar/agent/turn"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	"throwbar.dev/throwbar/store"
)

// bench is a whole agent over a real store, with a scripted model and a world to act on.
type bench struct {
	agentv1connect.AgentServiceClient
	t         *testing.T
	dir       string
	model     *modeltest.Server
	world     *agenttest.World
	workspace string
	dead      atomic.Bool  // nothing is stored any more, as if the process had been killed
	sick      atomic.Int32 // how many of the next changes are not stored
	ended     chan agentv1.TurnEnd
	stop      func() error
}

func newBench(t *testing.T, script ...modeltest.Step) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), model: modeltest.NewServer(t, script...), world: agenttest.New(), workspace: "w"}
	b.ended = make(chan agentv1.TurnEnd, 64)
	b.start(func() turn.Model {
		client, err := model.New(model.Config{BaseURL: b.model.URL, Key: modeltest.Key, Model: "test"})
		if err != nil {
			t.Fatal(err)
		}
		return client
	}())
	return b
}

// mortal is a store that can die, and that tells of the ends of turns.
type mortal struct {
	agent.Store
	dead  *atomic.Bool
	sick  *atomic.Int32
	ended chan<- agentv1.TurnEnd
}

func (m mortal) Append(ctx context.Context, change conversation.Change) error {
	if m.dead.Load() || m.sick.Add(-1) >= 0 {
		return errors.New("the process is gone")
	}
	err := m.Store.Append(ctx, change)
	for _, event := range change.Events {
		if end := event.GetTurnEnded().GetReason(); err == nil && end != 0 {
			m.ended <- end
		}
	}
	return err
}

func (b *bench) start(m turn.Model) {
	b.t.Helper()
	s, err := store.Open(b.t.Context(), store.Config{Dir: b.dir})
	if err != nil {
		b.t.Fatal(err)
	}
	c, err := catalog.New(gen.Descriptors)
	if err != nil {
		b.t.Fatal(err)
	}
	var models []turn.Choice
	if m != nil {
		models = []turn.Choice{{Name: "test", Model: m}}
	}
	a, err := agent.New(agent.Config{
		Catalogue: c, Models: models, Hint: "set THROWBAR_MODEL", Commander: b.world, Querier: b.world,
		Store:     mortal{storage.New(s), &b.dead, &b.sick, b.ended},
		Workspace: func(context.Context) (string, error) { return b.workspace, nil },
		Random:    rand.Reader, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	server := connect.NewServer()
	a.Register(server)
	b.AgentServiceClient = agentv1connect.NewAgentServiceClient(connect.NewClient(connectinprocess.New(server)))
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	storeCtx, stopStore := context.WithCancel(context.WithoutCancel(b.t.Context()))
	var agents, stores sync.WaitGroup
	var agentErr, storeErr error
	agents.Go(func() { agentErr = a.Run(ctx) })
	stores.Go(func() { storeErr = s.Run(storeCtx) })
	stopped := false
	b.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		agents.Wait()
		stopStore()
		stores.Wait()
		return errors.Join(agentErr, storeErr, s.Close())
	}
	b.t.Cleanup(func() {
		if err := b.stop(); err != nil {
			b.t.Error(err)
		}
	})
}

// restart stops the agent and starts another one on the same folder.
func (b *bench) restart() {
	b.t.Helper()
	if err := b.stop(); err != nil {
		b.t.Fatal(err)
	}
	b.dead.Store(false)
	client, err := model.New(model.Config{BaseURL: b.model.URL, Key: modeltest.Key, Model: "test"})
	if err != nil {
		b.t.Fatal(err)
	}
	b.start(client)
}

// chat says something and reads the events to the end.
func (b *bench) chat(conversationID, text string) ([]*agentv1.Event, error) {
	b.t.Helper()
	req := &agentv1.ChatRequest{Message: text}
	if conversationID != "" {
		req.ConversationId = proto.String(conversationID)
	}
	stream, err := b.Chat(b.t.Context(), req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	return drain(stream)
}

func drain(stream agentv1connect.AgentServiceChatClientStream) ([]*agentv1.Event, error) {
	var events []*agentv1.Event
	for {
		res, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		if res.GetEvent() != nil {
			events = append(events, res.GetEvent())
		}
	}
}

func (b *bench) must(events []*agentv1.Event, err error) []*agentv1.Event {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	return events
}

func (b *bench) stored(id string) []*agentv1.Event {
	b.t.Helper()
	res, err := b.ListEvents(b.t.Context(), &agentv1.ListEventsRequest{ConversationId: id})
	if err != nil {
		b.t.Fatal(err)
	}
	return res.GetEvents()
}

func (b *bench) conversations() []*agentv1.Conversation {
	b.t.Helper()
	res, err := b.ListConversations(b.t.Context(), &agentv1.ListConversationsRequest{})
	if err != nil {
		b.t.Fatal(err)
	}
	return res.GetConversations()
}

func end(events []*agentv1.Event) agentv1.TurnEnd {
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].GetTurnEnded().GetReason()
}

func expectCode(t *testing.T, err error, code connect.Code, text string) {
	t.Helper()
	if connect.CodeOf(err) != code || !strings.Contains(err.Error(), text) {
		t.Errorf("error: %v (%v), want %v with %q", err, connect.CodeOf(err), code, text)
	}
}

func TestChatTellsWhatIsStored(t *testing.T) {
	t.Parallel()
	b := newBench(t, modeltest.Use("listDevices", map[string]any{}), modeltest.Text("You have two devices."), modeltest.Text("As I said."))
	told := b.must(b.chat("", "  which devices\nare there? "))
	id := told[0].GetConversationId()
	var numbered []*agentv1.Event
	deltas := ""
	for _, e := range told {
		if e.GetConversationId() != id || e.GetTurnId() != told[0].GetTurnId() || e.GetTime() == nil {
			t.Errorf("event: %v", e)
		}
		if e.GetSequence() == 0 {
			deltas += e.GetTextDelta().GetText()
			continue
		}
		numbered = append(numbered, e)
		if e.GetSequence() != uint64(len(numbered)) {
			t.Errorf("number %d at place %d", e.GetSequence(), len(numbered))
		}
	}
	if deltas != "You have two devices." || end(told) != agentv1.TurnEnd_TURN_END_ANSWERED {
		t.Errorf("deltas %q, end %v", deltas, end(told))
	}
	same := func(a, b *agentv1.Event) bool { return proto.Equal(a, b) }
	if stored := b.stored(id); !slices.EqualFunc(stored, numbered, same) {
		t.Errorf("stored %v\ntold   %v", stored, numbered)
	}
	list := b.conversations()
	if len(list) != 1 || list[0].GetTitle() != "which devices" || list[0].GetHandle() != id[:4] || list[0].GetRunning() {
		t.Errorf("conversations: %v", list)
	}
	more := b.must(b.chat(strings.ToUpper(list[0].GetHandle()), "and?"))
	if more[0].GetSequence() != uint64(len(numbered))+1 || more[0].GetConversationId() != id || more[0].GetTurnId() == told[0].GetTurnId() {
		t.Errorf("second turn: %v", more[0])
	}
	if last := b.model.Last(); len(last.Messages) < 6 || last.LastUser() != "and?" {
		t.Errorf("the model did not see what was said before: %v", last.Messages)
	}
}

func TestWithoutAModelChatSaysWhatToSet(t *testing.T) {
	t.Parallel()
	b := &bench{t: t, dir: t.TempDir(), world: agenttest.New(), workspace: "w"}
	b.start(nil)
	_, err := b.chat("", "hello")
	expectCode(t, err, connect.CodeFailedPrecondition, "set THROWBAR_MODEL")
	res, err := b.GetModel(t.Context(), &agentv1.GetModelRequest{})
	if err != nil || res.GetModel() != "" || res.GetHint() != "set THROWBAR_MODEL" {
		t.Errorf("%v, %v", res, err)
	}
}

// stuck makes commands wait until the test lets them go, whatever their context says.
func (b *bench) stuck() (begun <-chan struct{}, release chan struct{}) {
	begins, release := make(chan struct{}, 8), make(chan struct{})
	b.world.BeforeCommand = func(context.Context, turn.Call) error {
		begins <- struct{}{}
		<-release
		return nil
	}
	return begins, release
}

func openTab(url string) modeltest.Reply {
	return modeltest.Use("openTab", map[string]any{"deviceId": "lap", "url": url})
}

func TestACallerThatGoesAwayStopsItsTurn(t *testing.T) {
	t.Parallel()
	b := newBench(t, openTab("https://a.example"), modeltest.Text("fine"), modeltest.Text("gone on"))
	begun, release := b.stuck()
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := b.Chat(ctx, &agentv1.ChatRequest{Message: "open"})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Receive()
	if err != nil || first.GetAccepted().GetDelivery() != agentv1.Delivery_DELIVERY_STARTED {
		t.Fatalf("%v, %v", first, err)
	}
	id := first.GetAccepted().GetConversationId()
	<-begun
	if list := b.conversations(); !list[0].GetRunning() {
		t.Error("no turn runs")
	}
	// What another caller says meanwhile waits, and is read when the turn ends, though that is stopped.
	sent, err := b.Send(t.Context(), &agentv1.SendRequest{ConversationId: &id, Message: "and another"})
	if err != nil || sent.GetDelivery() != agentv1.Delivery_DELIVERY_QUEUED {
		t.Fatalf("%v, %v", sent, err)
	}
	cancel()
	_ = stream.Close()
	events := b.untilIdle(id)
	if got := ends(events); !slices.Equal(got, []agentv1.TurnEnd{agentv1.TurnEnd_TURN_END_STOPPED, agentv1.TurnEnd_TURN_END_ANSWERED}) {
		t.Errorf("events: %v", events)
	}
	close(release)
	if got := b.must(b.chat(id, "go on")); end(got) != agentv1.TurnEnd_TURN_END_ANSWERED {
		t.Errorf("after it: %v", got)
	}
}

// untilIdle follows a conversation from the beginning until no turn runs in it, and gives its stored events.
func (b *bench) untilIdle(id string) []*agentv1.Event {
	b.t.Helper()
	stream, err := b.WatchConversation(b.t.Context(), &agentv1.WatchConversationRequest{ConversationId: id, UntilIdle: true})
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	var events []*agentv1.Event
	for {
		res, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			b.t.Fatal(err)
		}
		if res.GetEvent().GetSequence() > 0 {
			events = append(events, res.GetEvent())
		}
	}
}

// ends are how the turns ended, in order.
func ends(events []*agentv1.Event) []agentv1.TurnEnd {
	var all []agentv1.TurnEnd
	for _, e := range events {
		if ended := e.GetTurnEnded(); ended != nil {
			all = append(all, ended.GetReason())
		}
	}
	return all
}

func TestADetachedTurnGoesOnUntilItIsStopped(t *testing.T) {
	t.Parallel()
	b := newBench(t, openTab("https://a.example"), modeltest.Text("fine"), openTab("https://b.example"))
	begun, release := b.stuck()
	talk := func(id string) string {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req := &agentv1.ChatRequest{Message: "open", Detached: true}
		if id != "" {
			req.ConversationId = proto.String(id)
		}
		stream, err := b.Chat(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = stream.Close() }()
		res, err := stream.Receive()
		if err != nil {
			t.Fatal(err)
		}
		<-begun
		return res.GetAccepted().GetConversationId()
	}
	id := talk("")
	release <- struct{}{} // the caller is gone, the command comes back
	<-b.ended
	if got := b.stored(id); end(got) != agentv1.TurnEnd_TURN_END_ANSWERED {
		t.Fatalf("first turn: %v", got)
	}
	talk(id)
	res, err := b.StopTurn(t.Context(), &agentv1.StopTurnRequest{ConversationId: id})
	if err != nil || !res.GetStopped() {
		t.Fatalf("stop: %v, %v", res, err)
	}
	if got := b.stored(id); end(got) != agentv1.TurnEnd_TURN_END_STOPPED {
		t.Errorf("second turn: %v", got)
	}
	if res, err := b.StopTurn(t.Context(), &agentv1.StopTurnRequest{ConversationId: id}); err != nil || res.GetStopped() {
		t.Errorf("stop again: %v, %v", res, err)
	}
	close(release)
}

func TestAStopOfTheServerSuspendsTurns(t *testing.T) {
	t.Parallel()
	b := newBench(t, openTab("https://a.example"), modeltest.Text("fine"))
	begun := make(chan struct{})
	b.world.BeforeCommand = func(ctx context.Context, _ turn.Call) error {
		close(begun)
		<-ctx.Done()
		return nil
	}
	stream, err := b.Chat(t.Context(), &agentv1.ChatRequest{Message: "open", Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Receive()
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	_, err = drain(stream)
	expectCode(t, err, connect.CodeUnavailable, "the server stops")
	_, err = b.chat("", "hello")
	expectCode(t, err, connect.CodeUnavailable, "the server stops")
	b.world.BeforeCommand = nil
	b.restart()
	// A turn that nobody has to wait for goes on when the server runs again.
	id := first.GetAccepted().GetConversationId()
	if got := b.untilIdle(id); end(got) != agentv1.TurnEnd_TURN_END_ANSWERED ||
		!slices.ContainsFunc(got, func(e *agentv1.Event) bool { return e.GetTurnResumed() != nil }) {
		t.Errorf("after it: %v", got)
	}
}

// A process that dies in the middle of two calls, one of which is done, leaves a conversation that goes on.
func TestAKilledProcessLeavesASoundConversation(t *testing.T) {
	t.Parallel()
	two := modeltest.Reply{Calls: []modeltest.Call{
		modeltest.NewCall("listDevices", map[string]any{}), modeltest.NewCall("openTab", map[string]any{"deviceId": "lap", "url": "https://a.example"}),
	}}
	b := newBench(t, two, modeltest.Text("fine"))
	b.world.BeforeCommand = func(context.Context, turn.Call) error {
		b.dead.Store(true)
		return nil
	}
	told, err := b.chat("", "go")
	expectCode(t, err, connect.CodeUnavailable, "cannot keep")
	if len(told) == 0 {
		t.Fatal("nothing was told")
	}
	b.world.BeforeCommand = nil
	b.restart()
	id := told[0].GetConversationId()
	events := b.stored(id)
	n := len(events)
	if end(events) != agentv1.TurnEnd_TURN_END_FAILED || events[n-1].GetTurnId() != told[0].GetTurnId() {
		t.Fatalf("events: %v", events)
	}
	if got := events[n-3].GetToolResult(); got.GetName() != "openTab" || got.GetOutcome() != agentv1.Outcome_OUTCOME_FAILED ||
		!strings.Contains(got.GetContent(), "interrupted") {
		t.Errorf("synthetic result: %v", got)
	}
	if got := events[n-2].GetError().GetMessage(); !strings.HasPrefix(got, "The server stopped while this turn ran.") {
		t.Errorf("error: %q", got)
	}
	if again := b.stored(id); len(again) != n {
		t.Errorf("mended twice: %v", again)
	}
	if got := b.must(b.chat(id, "go on")); end(got) != agentv1.TurnEnd_TURN_END_ANSWERED || got[0].GetSequence() != uint64(n)+1 {
		t.Errorf("after it: %v", got)
	}
	if got := b.model.Last().LastResult(); !strings.Contains(got, "may have taken effect") {
		t.Errorf("the model was not told: %s", got)
	}
}

// A store that fails once in the middle of a turn ends the turn, and leaves nothing open.
func TestAStoreThatFailsOnceEndsTheTurnSoundly(t *testing.T) {
	t.Parallel()
	b := newBench(t, openTab("https://a.example"), modeltest.Text("fine"))
	b.world.BeforeCommand = func(context.Context, turn.Call) error {
		b.sick.Store(1)
		return nil
	}
	told := b.must(b.chat("", "go"))
	id := told[0].GetConversationId()
	events := b.stored(id)
	n := len(events)
	if end(told) != agentv1.TurnEnd_TURN_END_FAILED || end(events) != agentv1.TurnEnd_TURN_END_FAILED || told[len(told)-1].GetSequence() != uint64(n) {
		t.Fatalf("told %v\nstored %v", told, events)
	}
	if got := events[n-3].GetToolResult(); got.GetName() != "openTab" || !strings.Contains(got.GetContent(), "interrupted") {
		t.Errorf("result: %v", got)
	}
	b.world.BeforeCommand = nil
	if got := b.must(b.chat(id, "go on")); end(got) != agentv1.TurnEnd_TURN_END_ANSWERED {
		t.Errorf("after it: %v", got)
	}
}

// panicky is a model that is broken inside.
type panicky struct{}

func (panicky) Complete(context.Context, model.Request, model.Sink) (model.Turn, error) {
	panic("boom")
}

func TestAFaultInATurnEndsTheTurnOnly(t *testing.T) {
	t.Parallel()
	b := &bench{t: t, dir: t.TempDir(), world: agenttest.New(), workspace: "w", ended: make(chan agentv1.TurnEnd, 64)}
	b.start(panicky{})
	for range 2 {
		if got := b.must(b.chat("", "hello")); end(got) != agentv1.TurnEnd_TURN_END_FAILED {
			t.Errorf("events: %v", got)
		}
	}
}

func TestAForeignConversationIsNotFound(t *testing.T) {
	t.Parallel()
	b := newBench(t, modeltest.Text("hi"))
	id := b.must(b.chat("", "hello"))[0].GetConversationId()
	b.workspace = "other"
	_, err := b.chat(id, "mine now")
	expectCode(t, err, connect.CodeNotFound, "there is no open conversation")
	_, err = b.ListEvents(t.Context(), &agentv1.ListEventsRequest{ConversationId: id})
	expectCode(t, err, connect.CodeNotFound, "there is no open conversation")
	_, err = b.StopTurn(t.Context(), &agentv1.StopTurnRequest{ConversationId: id})
	expectCode(t, err, connect.CodeNotFound, "there is no open conversation")
	if list := b.conversations(); len(list) != 0 {
		t.Errorf("conversations: %v", list)
	}
}

func TestListsHavePages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.model.SetRule(modeltest.Text("hi"))
	var ids []string
	for range 5 {
		ids = append(ids, b.must(b.chat("", "hello"))[0].GetConversationId())
	}
	var listed []string
	var token *string
	for {
		res, err := b.ListConversations(t.Context(), &agentv1.ListConversationsRequest{PageSize: proto.Uint32(2), PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range res.GetConversations() {
			listed = append(listed, c.GetConversationId())
		}
		if res.GetNextPageToken() == "" {
			break
		}
		token = proto.String(res.GetNextPageToken())
	}
	slices.Sort(ids)
	slices.Sort(listed)
	if !slices.Equal(ids, listed) {
		t.Errorf("listed %q, want %q", listed, ids)
	}
	var numbers []uint64
	token = nil
	for {
		res, err := b.ListEvents(t.Context(), &agentv1.ListEventsRequest{ConversationId: ids[0], PageSize: proto.Uint32(2), PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range res.GetEvents() {
			numbers = append(numbers, e.GetSequence())
		}
		if res.GetNextPageToken() == "" {
			break
		}
		token = proto.String(res.GetNextPageToken())
	}
	if !slices.Equal(numbers, []uint64{1, 2, 3, 4, 5}) {
		t.Errorf("numbers: %v", numbers)
	}
	_, err := b.ListEvents(t.Context(), &agentv1.ListEventsRequest{ConversationId: ids[0], PageToken: proto.String("x")})
	expectCode(t, err, connect.CodeInvalidArgument, "page token")
	_, err = b.ListConversations(t.Context(), &agentv1.ListConversationsRequest{PageToken: proto.String("12")})
	expectCode(t, err, connect.CodeInvalidArgument, "page token")
}

func TestConversationsSideBySide(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.model.SetRule(modeltest.MustRules(modeltest.Rule{Steps: []modeltest.Step{
		modeltest.Use("listDevices", map[string]any{}), openTab("https://a.example"), modeltest.Text("done"),
	}}))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			events, err := b.chat("", "hello")
			if err != nil || end(events) != agentv1.TurnEnd_TURN_END_ANSWERED {
				t.Errorf("%v, %v", events, err)
			}
		})
	}
	all.Wait()
	if got := len(b.world.Tabs()); got != 8 {
		t.Errorf("%d tabs", got)
	}
}
