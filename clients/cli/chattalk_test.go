package cli_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect/v2"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// gate lets a turn end when the test says so. It answers with what it was asked.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // guarded by mu
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) let() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
	g.open = make(chan struct{})
}

// turn says that it works on a message, and answers it when it is let.
func (g *gate) turn(ctx context.Context, req *agentv1.SendRequest, send sendChat) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if err := send(delta("Working on " + req.GetMessage())); err != nil {
		return err
	}
	select {
	case <-open:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := send(said(agentv1.Role_ROLE_ASSISTANT, "Working on "+req.GetMessage()+", done.")); err != nil {
		return err
	}
	return send(over(agentv1.TurnEnd_TURN_END_ANSWERED))
}

func talking(f *fake, words ...string) run {
	return run{server: f.url, terminal: true, args: append([]string{"chat"}, words...)}
}

// What is typed while a turn runs waits for its end, can be changed and taken back, or enters the turn; when the turn ends
// the rest begins the next one.
func TestWhatIsTypedWhileATurnRuns(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := newFake(t, func(f *fake) { f.onChat = g.turn })
	s := begin(t, talking(f)).sees("A new conversation with small-model.", 1)
	s.types("one").sees("Working on one", 1)
	s.types("two").sees("It waits for the end of the turn.", 1)
	s.types("three").sees("It waits for the end of the turn.", 2)
	s.types("/queue").sees("2  a person  three", 1)
	s.types("/queue edit 1 two, but better").sees("Changed: two, but better", 1)
	s.types("/queue rm 2").sees("Taken back.", 1)
	s.types("/queue rm 2").sees(`"2" is none of the 1 message that wait`, 1)
	s.types("/steer now").sees("It enters the turn at its next step.", 1)
	g.let()
	s.sees("Read now: two, but better\n", 1).sees("Working on two, but better", 1)
	s.types("four").sees("It waits for the end of the turn.", 3)
	// What waits when somebody stops the turn is kept, and there is a prompt for what to say.
	s.types("/stop").sees("Stopped.\n3f2a> ", 1).types("/queue").sees("1  a person  four", 1).types("/quit")
	e := s.ends(false)
	e.check(t, 0, "To go on: throwbar chat --conversation 3f2a")
	if strings.Contains(e.err, "A message that wait") || strings.Count(e.err, "Read now") != 1 {
		t.Errorf("what was done here is told again:\n%s", e.err)
	}
	var modes []string
	for _, m := range f.sent() {
		modes = append(modes, fmt.Sprint(m.GetMessage(), " ", m.GetMode()))
	}
	if want := []string{"one SEND_MODE_QUEUE", "two SEND_MODE_QUEUE", "three SEND_MODE_QUEUE", "now SEND_MODE_STEER", "four SEND_MODE_QUEUE"}; !slices.Equal(modes, want) {
		t.Errorf("sent %v", modes)
	}
	if text := s.out.String(); text != "Working on one\n, done.\nWorking on two, but better\n" || strings.Contains(text, "three") {
		t.Errorf("shown: %q", text)
	}
}

// A connection that breaks is opened again from the last event on: nothing is missed, nothing comes twice, also of a
// message that is under way; a message whose answer is lost is said once.
func TestALostConnectionMissesNothing(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := newFake(t, func(f *fake) {
		f.onChat = g.turn
		f.cut = func(n, sent int) bool { return n < 4 && sent > 1+n }
		lost := 0
		f.down = func(string) error {
			if lost++; lost < 3 { // as a connection that is reset
				return connect.NewError([]connect.Code{connect.CodeUnavailable, connect.CodeCanceled}[lost-1], "the connection broke")
			}
			return nil
		}
	})
	s := begin(t, talking(f)).types("one").sees("Working on one", 1)
	g.let()
	s.sees(", done.", 1).types("/quit")
	e := s.ends(false)
	e.check(t, 0)
	if e.out != "Working on one, done.\n" {
		t.Errorf("stdout %q\nstderr %q", e.out, e.err)
	}
	if len(f.sent()) != 1 || len(f.all) != 1 {
		t.Errorf("sent %v in %d conversations", f.sent(), len(f.all))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.watches) < 2 || !slices.IsSorted(f.watches) {
		t.Errorf("followed from %v", f.watches)
	}
}

func TestALostConnectionIsTold(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) {
		f.onChat = newGate().turn
		f.cut = func(n, sent int) bool { return n == 1 && sent == 3 || n == 2 }
	})
	s := begin(t, talking(f)).types("one")
	s.sees("The connection is lost: trying again. Nothing will be missed.", 1).sees("Connected again: nothing was missed.", 1)
	s.types("/quit")
	s.ends(false).check(t, 0, "The turn goes on without you.")
}

// Who speaks is said by the server: another agent's text is marked, escaped, and cannot pass for anything else.
func TestMessagesOfOtherAgentsAreMarked(t *testing.T) {
	t.Parallel()
	f := newFake(t, withConversations)
	s := begin(t, talking(f, "--conversation", "3f2b")).sees("3f2b  Trip", 1).sees("3f2b> ", 1)
	f.happens("3f2b", &agentv1.Event{TurnId: "t", Kind: &agentv1.Event_Message{Message: &agentv1.Message{
		Role: agentv1.Role_ROLE_USER, MessageId: "m1", Text: "A person:\n  say yes \x1b[2J\u202e",
		Sender: &agentv1.Sender{Speaker: agentv1.Speaker_SPEAKER_AGENT, Handle: "9ab1", Title: "Read\u202e the news"},
	}}})
	s.sees(`The agent of 9ab1 “Read\u202e the news”:`+"\n  | A person:\n  |   say yes \\x1b[2J\\u202e\n", 1)
	for _, e := range []*agentv1.Event{
		{Kind: &agentv1.Event_Notice{Notice: &agentv1.Notice{Code: "wakes_exhausted", Text: "Agents have woken it 6 times.", CanContinue: true}}},
		{Kind: &agentv1.Event_ModelChanged{ModelChanged: &agentv1.ModelChanged{From: "small", To: "big", Reason: "429"}}},
		{Kind: &agentv1.Event_Compacted{Compacted: &agentv1.Compacted{BeforeTokens: 45123, AfterTokens: 9000}}},
		{Kind: &agentv1.Event_TurnResumed{TurnResumed: &agentv1.TurnResumed{}}},
	} {
		f.happens("3f2b", e)
	}
	s.sees("! Agents have woken it 6 times.\n  Say \"go on\" to go on from here.\n", 1)
	s.sees("! small did not answer (429): big is asked", 1).sees("45,123 tokens became 9,000", 1)
	s.sees("The server was started again, and the turn goes on.", 1)
	s.types("/quit")
	if e := s.ends(false); strings.ContainsAny(e.out+e.err, "\x1b\u202e") {
		t.Errorf("escapes got through: %q", e.err)
	}
}

// What an agent asks that the conversation has started is decided where the conversation is.
func TestApprovalsOfChildrenAreAnsweredAtTheRoot(t *testing.T) {
	t.Parallel()
	f := newFake(t, withConversations)
	s := begin(t, talking(f, "--conversation", "3f2a")).sees("a turn runs", 1)
	a := closing(bigID, laptop, 3)
	a.ConversationId, a.Principal = conversationIDs()[0], conversationIDs()[1]
	f.desk.put(a, false)
	f.happens("3f2a", &agentv1.Event{Kind: &agentv1.Event_ChildChanged{ChildChanged: &agentv1.ChildChanged{
		ConversationId: conversationIDs()[1], Handle: "9ab1", Agent: "reader", ApprovalId: bigID,
		Status: agentv1.ConversationStatus_CONVERSATION_STATUS_WAITING,
	}}})
	s.sees("Approve 3f2a9c1d?", 1).sees("asked by  reader (9ab1), at work for this conversation\n", 1)
	s.types("y").sees("3f2a9c1d  approved", 1)
	f.happens("3f2a", &agentv1.Event{Kind: &agentv1.Event_ChildChanged{ChildChanged: &agentv1.ChildChanged{
		ConversationId: conversationIDs()[1], Handle: "9ab1", Agent: "reader", Status: agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE,
	}}})
	s.sees("> reader (9ab1) has ended", 1).types("/quit")
	e := s.ends(false)
	e.check(t, 0)
	for _, noise := range []string{"background", "Waits for", "decide with", "waits for approval"} {
		if strings.Contains(e.err, noise) {
			t.Errorf("%q is no news for who is asked:\n%s", noise, e.err)
		}
	}
	if n := len(f.desk.decisions()); n != 1 {
		t.Errorf("%d decisions", n)
	}
}

func TestWordsOfAPerson(t *testing.T) {
	t.Parallel()
	f := newFake(t, withConversations, func(f *fake) {
		f.onChat = plays(turn)
		f.whole = map[string]string{"c9": `{"mark":"m","data":{"all":"of it"},"end":"m"}`}
	})
	s := begin(t, talking(f, "--conversation", "3f2b", "--usage"))
	s.types("close them").sees("small-model, 1 request", 0).sees("Two tabs stay open.", 1).sees("1 request, 10 tokens read, 0 written", 1)
	s.types("/show 2").sees("[2] closeTabs\n    {\n      \"tabIds\"", 1).sees("a person said no", 2)
	f.happens("3f2b", &agentv1.Event{Kind: &agentv1.Event_ToolCall{ToolCall: &agentv1.ToolCall{CallId: "c9", Name: "readAll", Arguments: "{}"}}})
	f.happens("3f2b", &agentv1.Event{Kind: &agentv1.Event_ToolResult{ToolResult: &agentv1.ToolResult{CallId: "c9", Content: "{}", WholeBytes: 40_000}}})
	s.sees("the model was told a part of 39 KiB: /show 3 has all", 1)
	s.types("/show 3").sees(`"all": "of it"`, 1)
	s.types("/show 7").sees("/show needs the number of a call", 1)
	s.types("/history 3").sees("A person:\n  | close them\n", 1)
	s.types("/model big high").sees("big (effort high) answers in this conversation from the next step on.", 1)
	s.types("/model").sees("models.example.com", 1).types("/model big much").sees("is none of none, low", 1)
	s.types("/tools").sees("closeTabs", 3).types("/agents").sees(`reads \x1b[2Jpages`, 1)
	s.types("/rename Another trip").sees("3f2b  Another trip", 1)
	s.types("/helo").sees("did you mean /help?", 1).types("/help").sees("/steer TEXT", 1)
	s.types("/open 3f2").sees("there is no open conversation", 1).types("/open 9ab1").sees("agent reader", 1)
	s.types("/archive").sees("Archived: `throwbar conversations reopen 9ab1c2d3", 1)
	s.types("/queue").sees("/queue needs a conversation: say something first", 1)
	s.types("/new").sees("The next message begins a new conversation.", 1)
	e := s.types("/quit").ends(false)
	e.check(t, 0)
	if strings.Contains(e.err, "> \n3f2b> ") {
		t.Errorf("an empty prompt was left:\n%s", e.err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := f.updates[0].GetModel(); !slices.Equal(got.GetModels(), []string{"big"}) || got.GetEffort() != "high" {
		t.Errorf("model: %v", f.updates)
	}
}

// Another model keeps the effort that was chosen, and - goes back to what the server has for a default.
func TestAnotherModelKeepsTheEffort(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) { f.onChat = plays(turn) })
	s := begin(t, talking(f, "--effort", "low")).sees("> ", 1)
	s.types("/model").sees("Chosen here: the default model (effort low)\n", 1)
	s.types("/model small").sees("small (effort low) answers what is said now.", 1)
	s.types("one").sees("Two tabs stay open.", 1).sees("3f2a> ", 1)
	s.types("/model big").sees("big (effort low) answers in this conversation from the next step on.", 1)
	s.types("/model").sees("Of this conversation: big (effort low)\n", 1)
	s.types("/model small,big max").sees("small, big (effort max) answers in this conversation", 1)
	s.types("/model big").sees("big (effort max) answers in this conversation", 1)
	s.types("/model big -").sees("big answers in this conversation", 1)
	s.types("/model - low").sees("/model takes NAME and EFFORT, or - alone", 1)
	s.types("/model -").sees("The default model answers in this conversation from the next step on.", 1)
	s.types("two").sees("Two tabs stay open.", 2).types("/new").types("/model big").sees("big answers what is said now.", 1)
	s.types("/model -").sees("The default model answers what is said now.", 1).types("/quit")
	s.ends(false).check(t, 0)
	var choices []string
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range f.updates {
		choices = append(choices, fmt.Sprint(u.GetModel().GetModels(), u.GetModel().GetEffort()))
	}
	if want := []string{"[big]low", "[small big]max", "[big]max", "[big]", "[]"}; !slices.Equal(choices, want) {
		t.Errorf("chosen %v", choices)
	}
	if m := f.sends[0].GetModel(); !slices.Equal(m.GetModels(), []string{"small"}) || m.GetEffort() != "low" || f.sends[1].GetModel() != nil {
		t.Errorf("sent %v", f.sends)
	}
}

func TestChatDetached(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) { f.onChat = plays(turn) })
	e := f.run(t, "chat", "--detach", "--model", "small,big", "--effort", "low", "sort them")
	e.check(t, 0, "3f2a  a turn has begun: `throwbar chat --conversation 3f2a` follows it\n")
	f.run(t, "chat", "--detach", "--agent", "reader", "read", "-o", "json").check(t, 0, `"handle": "9ab1"`)
	sent := f.sent()
	if m := sent[0].GetModel(); len(m.GetModels()) != 2 || m.GetEffort() != "low" || f.created[0].GetAgent() != "reader" {
		t.Errorf("sent %v, created %v", sent, f.created)
	}
	again := f.run(t, "chat", "--detach", "--conversation", "9ab1", "more")
	again.check(t, 0, "it waits for the end of the turn that runs: `throwbar conversations queue 9ab1` shows it")
}

// How a turn goes on that a limit has ended is said once.
func TestALimitIsToldOnce(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) {
		f.onChat = func(ctx context.Context, req *agentv1.SendRequest, send sendChat) error {
			said := map[string]*agentv1.Notice{
				"one": {Text: `Stopped after 3 rounds of tools. Say "go on" to continue.`, CanContinue: true},
				"two": {Text: "Agents have woken it 6 times.", CanContinue: true},
			}[req.GetMessage()]
			events := []*agentv1.Event{{Kind: &agentv1.Event_Notice{Notice: said}}, over(agentv1.TurnEnd_TURN_END_LIMIT)}
			if said == nil {
				events = events[1:]
			}
			return plays(func() []*agentv1.Event { return events })(ctx, req, send)
		}
	})
	s := begin(t, talking(f)).sees("> ", 1).types("one").sees("go on", 1).sees("3f2a> ", 1)
	s.types("two").sees("  Say \"go on\" to go on from here.\n", 1).sees("3f2a> ", 2)
	s.types("three").sees("A limit was hit: say \"go on\" to go on from here.\n", 1).sees("3f2a> ", 3).types("/quit")
	e := s.ends(false)
	e.check(t, 0)
	if n := strings.Count(e.err, "go on"); n != 6 { // two lines say it twice over, and the last one is the farewell
		t.Errorf("said %d times:\n%s", n, e.err)
	}
}

// What cannot be said is refused before anything is sent, and the line after it from a pipe is said.
func TestWhatCannotBeSaid(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) { f.onChat = plays(turn) })
	for _, words := range [][]string{{""}, {" ", "\t"}, {"--detach", ""}} {
		f.run(t, append([]string{"chat"}, words...)...).check(t, 2, "throwbar: the message is empty")
	}
	f.run(t, "chat", "bad \xff").check(t, 2, "throwbar: the message is not UTF-8\n")
	f.run(t, "chat", "--detach", "bad \xff").check(t, 2, "the message is not UTF-8")
	if e := f.run(t, "chat"); e.code != 0 || e.out+e.err != "" {
		t.Errorf("nothing to say: %+v", e)
	}
	e := do(t, run{server: f.url, args: []string{"chat"}, stdin: strings.NewReader("bad \xff\ngood\n")})
	e.check(t, 2, "throwbar: the message is not UTF-8\n", "Two tabs stay open.")
	s := begin(t, talking(f, "--conversation", "3f2a"))
	s.types("bad \xff").sees("the message is not UTF-8", 1).types("/rename bad \xff").sees("the message is not UTF-8", 2).types("/quit")
	s.ends(false).check(t, 0)
	if sent := f.sent(); len(sent) != 1 || len(f.updates) != 0 {
		t.Errorf("sent %v", sent)
	}
}

// Advice names what the person has to change.
func TestAConversationOfTheEnvironment(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	in := func(conversation string, words ...string) ended {
		return do(t, run{server: f.url, args: append([]string{"chat"}, words...), env: map[string]string{"THROWBAR_CONVERSATION": conversation}})
	}
	in("3f2b", "--agent", "reader", "read").check(t, 2, "THROWBAR_CONVERSATION names one: add --new\n")
	in("3f2", "read").check(t, 2, `THROWBAR_CONVERSATION "3f2" is too short`)
	f.run(t, "chat", "--agent", "reader", "--conversation", "3f2b", "read").check(t, 2, "leave out --conversation")
	in("3f2b", "--agent", "reader", "--new", "--detach", "read").check(t, 0)
	if f.created[0].GetAgent() != "reader" {
		t.Errorf("created %v", f.created)
	}
}

// A token that is taken back ends the chat, on a line of its own, whether something is written just then or not.
func TestARevokedTokenEndsTheChat(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ once, found bool }{
		"in an answer": {}, "of one message": {once: true}, "found by a message": {found: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, func(f *fake) { f.onChat = newGate().turn })
			var s *session
			switch {
			case row.found:
				s = begin(t, talking(f)).sees("> ", 1)
				f.revoke()
				s.types("one")
			case row.once:
				s = begin(t, talking(f, "one")).sees("Working on one", 1)
				f.revoke()
			default:
				s = begin(t, talking(f)).types("one").sees("Working on one", 1)
				f.revoke()
			}
			e := s.ends(false)
			e.check(t, 6, "does not accept the token")
			if !row.found && e.out != "Working on one\n" || strings.Count(e.err, "does not accept") != 1 {
				t.Errorf("stdout %q, stderr %q", e.out, e.err)
			}
		})
	}
}

// A message that waits behind somebody else's turn is answered by the next one.
func TestOneMessageWaitsItsTurn(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := newFake(t, func(f *fake) { f.onChat = g.turn })
	f.run(t, "chat", "--detach", "one").check(t, 0)
	s := begin(t, run{server: f.url, args: []string{"chat", "--conversation", "3f2a", "two"}}).sees("Working on one", 1)
	g.let()
	s.sees("Working on two", 1)
	g.let()
	if e := s.ends(false); e.code != 0 || !strings.HasSuffix(e.out, "Working on two, done.\n") {
		t.Errorf("%+v", e)
	}
}

// A word that fails leaves the person in the conversation: what is said next goes there, and begins no other one.
func TestAWordThatFailsLeavesThePersonThere(t *testing.T) {
	t.Parallel()
	f := newFake(t, withConversations, func(f *fake) {
		f.onChat = plays(turn)
		parent := conversationIDs()[0]
		f.fails = func(call, conversation string) error {
			if call == "ArchiveConversation" || conversation == parent {
				return connect.NewError(connect.CodeInternal, "the store is away")
			}
			return nil
		}
	})
	s := begin(t, talking(f, "--conversation", "3f2b")).sees("3f2b> ", 1)
	s.types("/archive").sees("archive: ", 1).sees("3f2b> ", 2)
	s.types("/open 9ab1").sees("get conversation 3f2a9c1d", 1).sees("3f2b> ", 3)
	s.types("hello").sees("Two tabs stay open.", 1).types("/quit")
	s.ends(false).check(t, 0)
	if sent := f.sent(); len(sent) != 1 || sent[0].GetConversationId() != conversationIDs()[2] {
		t.Errorf("sent %v", sent)
	}
}
