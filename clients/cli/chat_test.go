package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

func delta(text string) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_TextDelta{TextDelta: &agentv1.TextDelta{Text: text}}}
}

func said(role agentv1.Role, text string) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_Message{Message: &agentv1.Message{Role: role, Text: text}}}
}

func over(reason agentv1.TurnEnd) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_TurnEnded{TurnEnded: &agentv1.TurnEnded{Reason: reason}}}
}

// turn is what the agent does when it is asked to close tabs.
func turn() []*agentv1.Event {
	return []*agentv1.Event{
		{Kind: &agentv1.Event_TurnStarted{TurnStarted: &agentv1.TurnStarted{Model: "small-model"}}},
		said(agentv1.Role_ROLE_USER, "close my YouTube tabs"),
		{Kind: &agentv1.Event_ReasoningDelta{ReasoningDelta: &agentv1.ReasoningDelta{Text: "They want \u202eorder.\n"}}},
		delta("Let me "), delta("look.\x1b[2J"),
		said(agentv1.Role_ROLE_ASSISTANT, "Let me look.\x1b[2J"),
		{Kind: &agentv1.Event_ToolCall{ToolCall: &agentv1.ToolCall{CallId: "c1", Name: "searchTabs", Arguments: `{"query":"youtube"}`}}},
		{Kind: &agentv1.Event_ToolResult{ToolResult: &agentv1.ToolResult{
			CallId: "c1", Name: "searchTabs", Outcome: agentv1.Outcome_OUTCOME_SUCCEEDED,
			Content: `{"tabs":[{"tabId":"a"},{"tabId":"b"}],"total":2}`,
		}}},
		{Kind: &agentv1.Event_ToolCall{ToolCall: &agentv1.ToolCall{CallId: "c2", Name: "closeTabs", Arguments: `{"tabIds":["a","b"]}`}}},
		{Kind: &agentv1.Event_ToolResult{ToolResult: &agentv1.ToolResult{
			CallId: "c2", Name: "closeTabs", Outcome: agentv1.Outcome_OUTCOME_DENIED, Content: `{"error":"a person said no"}`,
		}}},
		{Kind: &agentv1.Event_ToolResult{ToolResult: &agentv1.ToolResult{
			CallId: "c3", Name: "openTab", Outcome: agentv1.Outcome_OUTCOME_FAILED, Content: "boom\nbang",
		}}},
		{Kind: &agentv1.Event_Notice{Notice: &agentv1.Notice{Code: "x", Text: "History was shortened."}}},
		{Kind: &agentv1.Event_Usage{Usage: &agentv1.Usage{InputTokens: 10}}},
		delta("Two tabs "), delta("stay open."),
		said(agentv1.Role_ROLE_ASSISTANT, "Two tabs stay open."),
		over(agentv1.TurnEnd_TURN_END_ANSWERED),
	}
}

type sendChat = func(*agentv1.Event) error

// plays answers every message with the same events.
func plays(events func() []*agentv1.Event) func(context.Context, *agentv1.SendRequest, sendChat) error {
	return func(_ context.Context, _ *agentv1.SendRequest, send sendChat) error {
		for _, e := range events() {
			if err := send(e); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestChatOnce(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) { f.onChat = plays(turn) })
	e := f.run(t, "chat", "close", "my YouTube tabs")
	e.check(t, 0)
	golden(t, "chat", e.out+"---\n"+e.err, f.url)
	f.left(t)
	f.run(t, "chat", "--reasoning", "--conversation", "3f2a", "again").check(t, 0, `They want \u202eorder.`)
	sent := f.sent()
	if sent[0].GetMessage() != "close my YouTube tabs" || sent[1].GetConversationId() != conversationIDs()[0] || len(f.all) != 1 {
		t.Errorf("asked: %v", sent)
	}
}

func TestChatAsJSON(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) { f.onChat = plays(turn) })
	e := f.run(t, "chat", "-o", "json", "hello")
	e.check(t, 0)
	lines := strings.Split(strings.TrimSpace(e.out), "\n")
	if len(lines) != len(turn()) || e.err != "" || !strings.Contains(lines[0], "turnStarted") {
		t.Errorf("%d lines\n%s%s", len(lines), e.out, e.err)
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) || strings.ContainsAny(line, "\x1b\u202e") {
			t.Errorf("line: %q", line)
		}
	}
}

func TestChatEnds(t *testing.T) {
	t.Parallel()
	failed := &agentv1.Event{Kind: &agentv1.Event_Error{Error: &agentv1.TurnError{Message: "the model is away"}}}
	for name, row := range map[string]struct {
		events []*agentv1.Event
		code   int
		says   string
	}{
		"whole message only": {[]*agentv1.Event{said(agentv1.Role_ROLE_ASSISTANT, "Hi."), over(agentv1.TurnEnd_TURN_END_ANSWERED)}, 0, "Hi.\n"},
		"failed":             {[]*agentv1.Event{failed, over(agentv1.TurnEnd_TURN_END_FAILED)}, 1, "! the model is away\n"},
		"limit":              {[]*agentv1.Event{delta("half"), over(agentv1.TurnEnd_TURN_END_LIMIT)}, 1, "a limit was hit: `throwbar chat --conversation 3f2a \"go on\"` goes on from there\n"},
		"stopped elsewhere":  {[]*agentv1.Event{delta("half"), over(agentv1.TurnEnd_TURN_END_STOPPED)}, 130, "half\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, func(f *fake) { f.onChat = plays(func() []*agentv1.Event { return row.events }) })
			e := f.run(t, "chat", "hello")
			e.out += e.err
			e.check(t, row.code, row.says)
		})
	}
	none := newFake(t, func(f *fake) { f.model = &agentv1.GetModelResponse{Hint: "no model is set: set THROWBAR_MODEL"} })
	if e := none.run(t, "chat", "hello"); e.code != 1 || e.err != "throwbar: no model is set: set THROWBAR_MODEL\n" {
		t.Errorf("%+v", e)
	}
}

// TestChatReadsLines has messages in a pipe: all go to one conversation, and nothing prompts.
func TestChatReadsLines(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) {
		f.onChat = func(_ context.Context, req *agentv1.SendRequest, send sendChat) error {
			if err := send(said(agentv1.Role_ROLE_ASSISTANT, "You said "+req.GetMessage())); err != nil {
				return err
			}
			if req.GetMessage() == "two" {
				return send(over(agentv1.TurnEnd_TURN_END_FAILED))
			}
			return send(over(agentv1.TurnEnd_TURN_END_ANSWERED))
		}
	})
	e := do(t, run{server: f.url, args: []string{"chat"}, stdin: strings.NewReader("one\n\n  \ntwo\nthree")})
	e.check(t, 1)
	if want := "You said one\nYou said two\nYou said three\n"; e.out != want || e.err != "" {
		t.Errorf("stdout %q, stderr %q", e.out, e.err)
	}
	if len(f.all) != 1 || len(f.sent()) != 3 {
		t.Errorf("conversations: %v", f.sent())
	}
}

// TestInterruptStopsTheTurn goes through a conversation on a terminal: an interrupt stops the turn and leaves the
// conversation open, one at the prompt warns, and the next one leaves.
func TestInterruptStopsTheTurn(t *testing.T) {
	t.Parallel()
	stopped := make(chan struct{})
	f := newFake(t, func(f *fake) {
		f.onChat = func(ctx context.Context, req *agentv1.SendRequest, send sendChat) error {
			if req.GetMessage() == "short" {
				return plays(turn)(ctx, req, send)
			}
			if err := send(delta("A long story")); err != nil {
				return err
			}
			<-ctx.Done() // the server sees that the caller went away
			close(stopped)
			return nil
		}
	})
	in, typed := io.Pipe()
	signals := make(chan os.Signal, 1)
	out, errOut := &buffer{}, &buffer{}
	go func() {
		for _, step := range []struct {
			after <-chan struct{}
			typed string // an interrupt if empty
		}{
			{errOut.holds("> ", 1), "tell me\n"},
			{out.holds("A long story", 1), ""},
			{errOut.holds("3f2a> ", 1), "short\n"},
			{errOut.holds("3f2a> ", 2), ""},
			{errOut.holds("Press Ctrl-C again to leave.", 1), ""},
		} {
			<-step.after
			if step.typed == "" {
				signals <- os.Interrupt
			} else if _, err := io.WriteString(typed, step.typed); err != nil {
				t.Error(err)
			}
		}
	}()
	code := start(t, run{
		server: f.url, args: []string{"chat"}, stdin: in, signals: signals, terminal: true, env: map[string]string{"NO_COLOR": "1"},
	}, out, errOut)
	<-stopped
	e := ended{code: code, out: out.String(), err: errOut.String()}
	e.check(t, 130, "A new conversation with small-model.", "3f2a> ", "Stopped.", "Press Ctrl-C again to leave.",
		"To go on: throwbar chat --conversation 3f2a\n")
	if err := in.Close(); err != nil { // lets the reader of the input go
		t.Fatal(err)
	}
}

func TestInterruptOfOneMessage(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) {
		f.onChat = func(ctx context.Context, _ *agentv1.SendRequest, send sendChat) error {
			if err := send(delta("A long story")); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		}
	})
	e := until(t, run{server: f.url, args: []string{"chat", "tell me"}}, "A long story")
	e.check(t, 130)
	if e.out != "A long story\n" || e.err != "Stopped.\n" {
		t.Errorf("stdout %q, stderr %q", e.out, e.err)
	}
}
