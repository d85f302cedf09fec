package facility_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/facility"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// threads are conversations that a test scripts.
type threads struct {
	rows      []conversation.Row
	snapshots map[string]conversation.Snapshot
	delivery  agentv1.Delivery
	err       error // of everything that acts
	sent      []conversation.Delivery
	summoned  []conversation.Summons
	awaited   []string
}

func (f *threads) Resolve(_ context.Context, _, ref string) (conversation.Resolution, error) {
	var found []conversation.Conversation
	for _, r := range f.rows {
		if ref != "" && strings.HasPrefix(r.ID, ref) {
			found = append(found, r.Conversation)
		}
	}
	if len(found) == 1 {
		return conversation.Resolution{One: &found[0]}, nil
	}
	return conversation.Resolution{Several: found}, nil
}

func (f *threads) Open(context.Context, string) ([]conversation.Row, error) { return f.rows, nil }

func (f *threads) Deliver(_ context.Context, d conversation.Delivery) (conversation.Delivered, error) {
	if d.Again {
		return conversation.Delivered{}, &conversation.Error{Code: conversation.NotFound}
	}
	f.sent = append(f.sent, d)
	at := slices.IndexFunc(f.rows, func(r conversation.Row) bool { return r.ID == d.To })
	if f.err != nil || at < 0 {
		return conversation.Delivered{}, f.err
	}
	return conversation.Delivered{Delivery: f.delivery, Conversation: f.rows[at].Conversation, Handle: f.rows[at].Handle, MessageID: d.MessageID}, nil
}

func (f *threads) Snapshot(_ context.Context, _, id string) (conversation.Snapshot, error) {
	return f.snapshots[id], nil
}

func (f *threads) Summon(_ context.Context, s conversation.Summons) (conversation.Snapshot, error) {
	f.summoned = append(f.summoned, s)
	return f.snapshots["child"], f.err
}

func (f *threads) Await(_ context.Context, _, starter, id string) (conversation.Snapshot, error) {
	f.awaited = append(f.awaited, starter+" "+id)
	return f.snapshots[id], f.err
}

func row(id, handle, title string) conversation.Row {
	return conversation.Row{Conversation: conversation.Conversation{ID: id, Title: title, Open: true}, Handle: handle}
}

// undoer is what undoes.
type undoer struct {
	asked []facility.Undo
	res   *controlv1.UndoResponse
	err   error
}

func (u *undoer) Undo(_ context.Context, undo facility.Undo) (*controlv1.UndoResponse, error) {
	u.asked = append(u.asked, undo)
	return u.res, u.err
}

type bench struct {
	*facility.Facilities
	catalogue *catalog.Catalogue
	threads   *threads
	undoer    *undoer
	again     bool
}

func definitions() []*configv1.AgentDefinition {
	return []*configv1.AgentDefinition{
		{Name: "scout", Description: "Looks around.", Prompt: "You look.", Models: []string{"small"}, Effort: "low", Tools: []string{"listTabs", "closeTabs"}},
		{Name: "writer", Description: "Writes a text.", Tools: []string{"sendToConversation"}},
	}
}

func newBench(t *testing.T, rows ...conversation.Row) *bench {
	t.Helper()
	c, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := tool.NewSet(c)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{catalogue: c, threads: &threads{rows: rows, snapshots: map[string]conversation.Snapshot{}}, undoer: &undoer{}}
	b.Facilities = facility.New(facility.Config{
		Catalogue: c, Tools: tools, Conversations: b.threads, Undoer: b.undoer, Log: slog.New(slog.DiscardHandler),
		Definitions: definitions(),
	})
	return b
}

// call calls a facility as a turn does.
func (b *bench) call(t *testing.T, in proto.Message) (proto.Message, error) {
	t.Helper()
	return b.callIn(t, turn.FacilityCall{
		Workspace: "w", Conversation: "own0", Root: "root", TurnID: "turn", CallID: "call", Key: "key", Again: b.again,
	}, in)
}

func (b *bench) callIn(t *testing.T, call turn.FacilityCall, in proto.Message) (proto.Message, error) {
	t.Helper()
	return b.callWith(t.Context(), t, call, in)
}

// callWith calls a facility with a message that the catalogue's descriptors made, as turns do.
func (b *bench) callWith(ctx context.Context, t *testing.T, call turn.FacilityCall, in proto.Message) (proto.Message, error) {
	t.Helper()
	all := b.catalogue.Facilities()
	at := slices.IndexFunc(all, func(e *catalog.Entry) bool { return e.In.FullName() == in.ProtoReflect().Descriptor().FullName() })
	raw, err := proto.Marshal(in)
	if err != nil || at < 0 {
		t.Errorf("%T is no facility, or cannot be written: %v", in, err)
		return nil, err
	}
	call.Entry = all[at]
	request := call.Entry.New()
	if err := proto.Unmarshal(raw, request); err != nil {
		t.Error(err)
	}
	call.Request = request
	return b.Call(ctx, call)
}

// refused calls a facility that has to be refused, and gives the text for the model.
func (b *bench) refused(t *testing.T, code commandv1.ErrorCode, in proto.Message) string {
	t.Helper()
	out, err := b.call(t, in)
	var refusal *turn.Refusal
	if !errors.As(err, &refusal) || refusal.Code != code {
		t.Errorf("%v: %v, %v; want %v", in, out, err, code)
		return ""
	}
	return refusal.Message
}

func (b *bench) done(t *testing.T, in proto.Message) proto.Message {
	t.Helper()
	out, err := b.call(t, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func has(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

const (
	notFound = commandv1.ErrorCode_ERROR_CODE_NOT_FOUND
	badCall  = commandv1.ErrorCode_ERROR_CODE_INVALID
	failed   = commandv1.ErrorCode_ERROR_CODE_FAILED
	denied   = commandv1.ErrorCode_ERROR_CODE_DENIED
)

// Every declared facility is run here, except the one that changes what the turn itself offers.
func TestEveryFacilityIsImplemented(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	byTheTurn := (&agentv1.FindTools{}).ProtoReflect().Descriptor().FullName()
	for _, e := range b.catalogue.Facilities() {
		if has := b.Has(e); has == (e.In.FullName() == byTheTurn) {
			t.Errorf("%s: implemented here: %v", e.Name, has)
		}
	}
}

func TestWhoIsMeant(t *testing.T) {
	t.Parallel()
	b := newBench(t, row("own0", "own0", "mine"), row("abcd1", "abcd1", "Budget\n of 2026"), row("abcd2", "abcd2", "Trip"))
	for _, in := range []func(ref string) proto.Message{
		func(ref string) proto.Message { return &agentv1.SendToConversation{ConversationId: ref, Message: "hi"} },
		func(ref string) proto.Message { return &agentv1.ReadConversation{ConversationId: ref} },
		func(ref string) proto.Message { return &agentv1.RetrieveAgent{ConversationId: ref} },
	} {
		blank, none := b.refused(t, badCall, in("  ")), b.refused(t, notFound, in("ffff"))
		has(t, blank, "no conversation was named", "abcd1: Budget of 2026; abcd2: Trip")
		has(t, none, `no open conversation "ffff"`, "abcd1: Budget of 2026; abcd2: Trip")
		if strings.Contains(blank+none, "own0") {
			t.Errorf("the caller's own conversation is listed: %s %s", blank, none)
		}
		has(t, b.refused(t, badCall, in("abcd")), "fits 2 open conversations", "one more character", "abcd1: ", "abcd2: ")
	}
	for _, message := range []string{" \n", "\x00\n\x00"} {
		has(t, b.refused(t, badCall, &agentv1.SendToConversation{ConversationId: "abcd1", Message: message}), "blank", "nothing was delivered")
	}
	has(t, b.refused(t, badCall, &agentv1.SendToConversation{ConversationId: "own0", Message: "hi"}), "own0", "to itself", "nothing was delivered")
	b.threads.rows = b.threads.rows[:1]
	has(t, b.refused(t, notFound, &agentv1.SendToConversation{ConversationId: "abcd1", Message: "hi"}), "No other conversation is open", "nothing was delivered")
	if len(b.threads.sent) > 0 || len(b.threads.awaited) > 0 {
		t.Errorf("delivered %v, awaited %v", b.threads.sent, b.threads.awaited)
	}
	var many []conversation.Row
	for i := range 300 {
		many = append(many, row(string(rune('a'+i%6))+strings.Repeat("b", i), "hand", strings.Repeat("long ", 30)))
	}
	b.threads.rows = many
	if text := b.refused(t, badCall, &agentv1.ReadConversation{}); len(text) > 1000 || !strings.Contains(text, "and 290 more") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

func TestAMessageIsDeliveredOnceAndReported(t *testing.T) {
	t.Parallel()
	b := newBench(t, row("own0", "own0", "mine"), row("abcd1", "abcd", "Trip"))
	in := &agentv1.SendToConversation{ConversationId: "abcd1", Message: "please book"}
	for delivery, words := range map[agentv1.Delivery][]string{
		agentv1.Delivery_DELIVERY_STARTED:    {"begun", "readConversation"},
		agentv1.Delivery_DELIVERY_QUEUED:     {"works on something else", "not lost", "when a person goes on", "readConversation", "Do not send it again"},
		agentv1.Delivery_DELIVERY_SUPPRESSED: {"Held", "not woken", "not lost", "until a person", "Do not send it again"},
	} {
		b.threads.delivery = delivery
		out, ok := b.done(t, in).(*agentv1.SendToConversation_Result)
		if !ok || out.GetHandle() != "abcd" || out.GetTitle() != "Trip" || out.GetDelivery() != delivery {
			t.Errorf("%v", out)
		}
		has(t, out.GetNote(), words...)
	}
	first := b.threads.sent[0]
	if len(first.MessageID) != 36 || first.MessageID != b.threads.sent[2].MessageID {
		t.Errorf("the ids of a call that is made again: %q, %q", first.MessageID, b.threads.sent[2].MessageID)
	}
	want := conversation.Delivery{
		Workspace: "w", To: "abcd1", Text: "please book", Mode: agentv1.SendMode_SEND_MODE_QUEUE, MessageID: first.MessageID, From: "own0", Turn: "turn",
	}
	if first != want {
		t.Errorf("delivered %+v", first)
	}
	b.threads.err = &conversation.Error{Code: conversation.NotFound, Message: "it was archived just now"}
	has(t, b.refused(t, notFound, in), "archived just now")
	b.threads.err = errors.New("disk 7 is on fire")
	if text := b.refused(t, failed, in); strings.Contains(text, "fire") || !strings.Contains(text, "could not be delivered") {
		t.Errorf("a fault: %q", text)
	}
}

func TestReadingSaysWhatItIs(t *testing.T) {
	t.Parallel()
	b := newBench(t, row("abcd1", "abcd", "Trip"))
	const (
		idle    = agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE
		running = agentv1.ConversationStatus_CONVERSATION_STATUS_RUNNING
		waiting = agentv1.ConversationStatus_CONVERSATION_STATUS_WAITING
		broken  = agentv1.ConversationStatus_CONVERSATION_STATUS_FAILED
	)
	for _, c := range []struct {
		status agentv1.ConversationStatus
		answer string
		note   string
	}{
		{idle, "42", ""}, {idle, "", "no responses yet"}, {running, "", "still on its first turn"}, {running, "42", "in the turn before"},
		{waiting, "", "waits for a person"}, {waiting, "42", "waits for a person"}, {broken, "", "no responses yet"}, {broken, "42", "failed"},
	} {
		b.threads.snapshots["abcd1"] = conversation.Snapshot{
			Conversation: b.threads.rows[0].Conversation, Handle: "abcd", Status: c.status, Answer: c.answer, Answered: c.answer != "",
		}
		out, ok := b.done(t, &agentv1.ReadConversation{ConversationId: "abcd1"}).(*agentv1.ReadConversation_Result)
		if !ok || out.GetHandle() != "abcd" || out.GetTitle() != "Trip" || out.GetStatus() != c.status || out.GetAnswer() != c.answer {
			t.Errorf("%v", out)
		}
		if has(t, out.GetNote(), c.note); c.note == "" && out.GetNote() != "" {
			t.Errorf("needless note %q", out.GetNote())
		}
	}
}

func TestStartingAgents(t *testing.T) {
	t.Parallel()
	b := newBench(t, row("child", "chil", "task"))
	b.threads.snapshots["child"] = conversation.Snapshot{
		Conversation: b.threads.rows[0].Conversation, Handle: "chil", Status: agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE, Answer: "done", Answered: true,
	}
	has(t, b.refused(t, notFound, &agentv1.SummonAgent{Agent: "spy", Task: "look"}), `no agent "spy"`, "scout: Looks around", "writer: Writes a text")
	for _, task := range []string{"", " ", " \x00"} {
		has(t, b.refused(t, badCall, &agentv1.SummonAgent{Agent: "scout", Task: task}), "blank", "nothing was started")
	}
	if len(b.threads.summoned) > 0 {
		t.Errorf("started %v", b.threads.summoned)
	}
	for _, c := range []struct {
		in     *agentv1.SummonAgent
		answer string
		note   string
		waited int
	}{
		{&agentv1.SummonAgent{Agent: "scout", Task: "look"}, "done", "", 1},
		{&agentv1.SummonAgent{Agent: "scout", Task: "look", Background: true}, "", "retrieveAgent", 1},
		{&agentv1.SummonAgent{Agent: "scout", Task: "look", TopLevel: true}, "", "cannot be waited for", 1},
	} {
		out, ok := b.done(t, c.in).(*agentv1.SummonAgent_Result)
		if !ok || out.GetHandle() != "chil" || out.GetAnswer() != c.answer || len(b.threads.awaited) != c.waited {
			t.Errorf("%v, awaited %q", out, b.threads.awaited)
		}
		has(t, out.GetNote(), c.note)
	}
	s := b.threads.summoned[2]
	if s.Workspace != "w" || s.From != "own0" || s.Turn != "turn" || s.Key != "key" || s.Agent != "scout" || s.Task != "look" || !s.TopLevel ||
		s.Settings.GetPrompt() != "You look." || !slices.Equal(s.Settings.GetModel().GetModels(), []string{"small"}) || s.Settings.GetModel().GetEffort() != "low" {
		t.Errorf("summons %+v", s)
	}
	out, ok := b.done(t, &agentv1.RetrieveAgent{ConversationId: "child"}).(*agentv1.RetrieveAgent_Result)
	if !ok || out.GetAnswer() != "done" || b.threads.awaited[1] != "own0 child" {
		t.Errorf("%v, awaited %q", out, b.threads.awaited)
	}
	b.threads.err = &conversation.Error{Code: conversation.Invalid, Message: "it outlives you"}
	has(t, b.refused(t, badCall, &agentv1.RetrieveAgent{ConversationId: "child"}), "outlives you")
	has(t, b.refused(t, badCall, &agentv1.SummonAgent{Agent: "scout", Task: "look"}), "outlives you")
}

// An agent that is started has what both its definition and its parent have. The report names what it lacks.
func TestRightsAreThoseOfBoth(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]struct {
		parent    *agentv1.Grants
		agent     string
		only      []string
		extra     []string
		mentioned string
	}{
		"all of it":       {nil, "scout", []string{"listTabs", "closeTabs"}, nil, ""},
		"less than named": {&agentv1.Grants{Only: []string{"listTabs", "openTab"}}, "scout", []string{"listTabs"}, nil, "do without closeTabs"},
		"denied":          {&agentv1.Grants{Denied: []string{"closeTabs"}}, "scout", []string{"listTabs", "closeTabs"}, nil, "do without closeTabs"},
		"nothing of it":   {&agentv1.Grants{Only: []string{"openTab"}}, "scout", []string{"none"}, nil, "closeTabs"},
		"not granted":     {nil, "writer", []string{"none"}, nil, "do without sendToConversation"},
		"granted":         {&agentv1.Grants{Extra: []string{"sendToConversation"}}, "writer", []string{"none"}, []string{"sendToConversation"}, ""},
	} {
		b.threads.snapshots["own0"] = conversation.Snapshot{
			Conversation: conversation.Conversation{ID: "own0"},
			Access:       tool.Access{Only: c.parent.GetOnly(), Extra: c.parent.GetExtra(), Denied: c.parent.GetDenied()},
		}
		out, ok := b.done(t, &agentv1.SummonAgent{Agent: c.agent, Task: "look", TopLevel: true}).(*agentv1.SummonAgent_Result)
		got := b.threads.summoned[len(b.threads.summoned)-1].Settings.GetGrants()
		if !ok || !slices.Equal(got.GetOnly(), c.only) || !slices.Equal(got.GetExtra(), c.extra) || !slices.Equal(got.GetDenied(), c.parent.GetDenied()) {
			t.Errorf("%s: %v", name, got)
		}
		if has(t, out.GetNote(), c.mentioned); c.mentioned == "" && strings.Contains(out.GetNote(), "do without") {
			t.Errorf("%s: %s", name, out.GetNote())
		}
	}
}

func TestUndoing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ok, gone := commandv1.ItemStatus_ITEM_STATUS_OK, commandv1.ItemStatus_ITEM_STATUS_BUSY
	items := []*commandv1.ItemOutcome{{Id: "1", Status: ok}, {Id: "2", Status: gone, Detail: "the tab is asked"}, {Id: "3", Status: ok}}
	b.undoer.res = &controlv1.UndoResponse{UndoneCommandIds: []string{"c1"}, Outcomes: []*controlv1.DeviceOutcome{
		{DeviceId: "lap", DeviceName: "Laptop", Outcome: &controlv1.DeviceOutcome_Result{Result: &commandv1.Result{
			Kind: &commandv1.Result_RestoreTabs{RestoreTabs: &commandv1.RestoreTabs_Result{RestoredCount: 2, Items: items}},
		}}},
		{DeviceId: "pc", Outcome: &controlv1.DeviceOutcome_Error{Error: &commandv1.CommandError{Message: "it is offline"}}},
	}}
	out, is := b.done(t, &agentv1.Undo{DeviceId: proto.String("lap")}).(*agentv1.Undo_Result)
	want := &agentv1.Undo_Result{UndoneCommandIds: []string{"c1"}, Devices: []*agentv1.UndoneOn{
		{DeviceId: "lap", DeviceName: "Laptop", Restored: 2, Error: "the tab is asked"}, {DeviceId: "pc", Error: "it is offline"},
	}}
	if !is || !proto.Equal(out, want) {
		t.Errorf("%v", out)
	}
	if u := b.undoer.asked[0]; u.Workspace != "w" || u.Principal != "own0" || u.Conversation != "root" || u.Device != "lap" || u.Command != "" {
		t.Errorf("asked %+v", u)
	}
	if u := b.undoer.asked[0]; u.Key != "key" || u.Again {
		t.Errorf("asked %+v", u)
	}
	b.again = true
	b.done(t, &agentv1.Undo{CommandId: proto.String("c1")})
	if u := b.undoer.asked[1]; u.Key != "key" || !u.Again || u.Command != "c1" {
		t.Errorf("asked again %+v", u)
	}
	b.undoer.res = &controlv1.UndoResponse{Outcomes: []*controlv1.DeviceOutcome{
		{DeviceName: "Laptop", Outcome: &controlv1.DeviceOutcome_Error{Error: &commandv1.CommandError{Code: denied, Message: "a person said no"}}},
		{DeviceId: "pc", Outcome: &controlv1.DeviceOutcome_Error{Error: &commandv1.CommandError{Message: "it is offline"}}},
	}}
	has(t, b.refused(t, denied, &agentv1.Undo{}), "Laptop: a person said no; pc: it is offline") // well on no device: it is no success
	b.undoer.err = &turn.Refusal{Code: notFound, Message: "nothing to bring back"}
	has(t, b.refused(t, notFound, &agentv1.Undo{CommandId: proto.String("c1")}), "nothing to bring back")
}
