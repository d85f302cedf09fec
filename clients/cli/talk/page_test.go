package talk_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/clients/cli/talk"
	"throwbar.dev/throwbar/clients/cli/term"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

func page() (g *talk.Page, out, aside *bytes.Buffer) {
	out, aside = &bytes.Buffer{}, &bytes.Buffer{}
	return &talk.Page{Out: &term.Screen{W: out, Width: 80}, Err: &term.Screen{W: aside, Width: 80}}, out, aside
}

func piece(text string) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_TextDelta{TextDelta: &agentv1.TextDelta{Text: text}}}
}

func answer(text string) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_Message{Message: &agentv1.Message{Role: agentv1.Role_ROLE_ASSISTANT, Text: text}}}
}

// Whatever pieces come before and after a connection breaks, the answer is on the screen once.
func TestAnAnswerIsShownOnce(t *testing.T) {
	t.Parallel()
	const whole = "one two three"
	for cut := 0; cut <= len(whole); cut++ {
		for again := cut; again <= len(whole); again++ {
			g, out, _ := page()
			if cut > 0 {
				g.Show(piece(whole[:cut]))
			}
			g.Joined()
			if again > 0 {
				g.Show(piece(whole[:again])) // all that there is by then
			}
			if again < len(whole)-1 {
				g.Show(piece(whole[again : again+1]))
			}
			g.Show(answer(whole))
			if out.String() != whole+"\n" {
				t.Errorf("cut at %d, joined at %d: %q", cut, again, out)
			}
		}
	}
}

// Reasoning that was shown before a connection broke is not shown again, and what had come of it meanwhile is.
func TestReasoningIsShownOnce(t *testing.T) {
	t.Parallel()
	const whole = "one two three"
	thought := func(text string) *agentv1.Event {
		return &agentv1.Event{Kind: &agentv1.Event_ReasoningDelta{ReasoningDelta: &agentv1.ReasoningDelta{Text: text}}}
	}
	for cut := 0; cut <= len(whole); cut++ {
		for again := cut; again <= len(whole); again++ {
			g, out, aside := page()
			g.Reasoning = true
			g.Show(thought(whole[:cut]))
			g.Joined()
			g.Show(thought(whole[:again])) // all that there is by then
			g.Show(thought(whole[again:]))
			g.Show(piece("So"))
			g.Show(answer("So be it."))
			g.Show(thought("another"))
			if aside.String() != whole+"\nanother" || out.String() != "So be it.\n" {
				t.Errorf("cut at %d, joined at %d: %q, %q", cut, again, aside, out)
			}
		}
	}
}

// An answer whose end was missed is whole before the next one begins.
func TestAMissedEndIsShown(t *testing.T) {
	t.Parallel()
	g, out, _ := page()
	g.Show(piece("one"))
	g.Joined()
	g.Show(answer("one two"))
	g.Show(piece("next"))
	g.Show(answer("next one"))
	if want := "one two\nnext one\n"; out.String() != want {
		t.Errorf("%q", out)
	}
}

// An answer that a restarted server writes anew is shown anew, and whole.
func TestAnAnswerThatIsWrittenAnew(t *testing.T) {
	t.Parallel()
	g, out, _ := page()
	g.Show(piece("one tw"))
	g.Show(&agentv1.Event{Kind: &agentv1.Event_TurnResumed{TurnResumed: &agentv1.TurnResumed{}}})
	g.Show(piece("one other"))
	g.Show(answer("one other thing"))
	if want := "one tw\none other thing\n"; out.String() != want {
		t.Errorf("%q", out)
	}
}

// An answer that was under way in another conversation is no beginning of this one's.
func TestAnotherConversationBeginsAnew(t *testing.T) {
	t.Parallel()
	g, out, _ := page()
	g.Show(piece("half of it"))
	g.Forget()
	g.Show(piece("one"))
	g.Show(answer("one two"))
	if want := "half of it\none two\n"; out.String() != want {
		t.Errorf("%q", out)
	}
}

func TestCallsAreOneLineEach(t *testing.T) {
	t.Parallel()
	g, _, aside := page()
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	call := func(id, name, args string) {
		g.Show(&agentv1.Event{Time: timestamppb.New(at), Kind: &agentv1.Event_ToolCall{
			ToolCall: &agentv1.ToolCall{CallId: id, Name: name, Arguments: args, Repairs: []string{"a list \x1b[2J"}},
		}})
	}
	result := func(id, content string, whole uint64) {
		g.Show(&agentv1.Event{Time: timestamppb.New(at.Add(1500 * time.Millisecond)), Kind: &agentv1.Event_ToolResult{
			ToolResult: &agentv1.ToolResult{CallId: id, Content: content, WholeBytes: whole},
		}})
	}
	call("a", "first", `{"x":1}`)
	call("b", "second", `{"text":"`+strings.Repeat("long ", 40)+`"}`)
	result("b", `{"mark":"m","data":{"total":2},"end":"m"}`, 70_000)
	result("a", `{}`, 0)
	lines := strings.Split(strings.TrimRight(aside.String(), "\n"), "\n")
	if len(lines) != 4 || lines[0] != "· [1] first x=1" || !strings.HasSuffix(lines[1], "…") || term.Width(lines[1]) > 80 {
		t.Errorf("%q", lines)
	}
	if lines[2] != "  [2] = total=2  the model was told a part of 68 KiB: /show 2 has all  2 s" || lines[3] != "  [1] = nothing  2 s" {
		t.Errorf("%q", lines[2:])
	}
	aside.Reset()
	g.Find(1).Print(g.Err, "")
	if got := aside.String(); got != "[1] first\n    {\n      \"x\": 1\n    }\n    mended: a list \\x1b[2J\n    {}\n" {
		t.Errorf("%q", got)
	}
	if g.Find(0) != nil || g.Find(3) != nil {
		t.Error("there are calls of other numbers")
	}
}

func TestWhatTheModelCounted(t *testing.T) {
	t.Parallel()
	g, _, aside := page()
	g.Usage = true
	for range 2 {
		g.Show(&agentv1.Event{Kind: &agentv1.Event_Usage{Usage: &agentv1.Usage{
			InputTokens: 1200, CachedTokens: 1000, OutputTokens: 30, ReasoningTokens: 12, Model: "small",
		}}})
	}
	g.Show(&agentv1.Event{Kind: &agentv1.Event_TurnEnded{TurnEnded: &agentv1.TurnEnded{}}})
	want := "small, 2 requests, 2,400 tokens read (2,000 from the cache), 60 written (24 of them reasoning)\n"
	if aside.String() != want {
		t.Errorf("%q", aside)
	}
}
