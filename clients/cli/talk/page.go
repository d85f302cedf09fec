// Package talk shows what happens in a conversation with the agent.
//
// A Page takes the events of a conversation one after the other and writes them for a person: the answer as it comes,
// each tool call and its outcome on one line, and whatever else a person should see. It asks nobody anything.
package talk

import (
	"strings"
	"time"

	"throwbar.dev/throwbar/clients/cli/term"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// Page shows events. The answer's text goes to Out and all else to Err, so that a pipe gets the answer only.
type Page struct {
	Out, Err  *term.Screen
	Reasoning bool // show the model's reasoning
	Verbose   bool // show arguments and answers of tools in full
	Usage     bool // show at the end of a turn what the model counted
	Typed     bool // a person types meanwhile: what was typed and waited is shown when it is read

	answer    pieces // of the message that is under way
	thinking  pieces // of the reasoning before it
	midLine   bool   // of Out
	midAside  bool   // of Err, in reasoning
	calls     []*Call
	usage     counts
	mine      map[string]bool
	waited    map[string]bool
	lastTitle string
}

// pieces are what came of a text that is under way.
type pieces struct {
	shown  string
	joined bool // the next piece is all that there is by now
}

// rest is what is new in a piece. It says false if what is on the screen is another text, whose end was missed.
func (p *pieces) rest(piece string) (rest string, known bool) {
	if !p.joined {
		p.shown += piece
		return piece, true
	}
	rest, known = strings.CutPrefix(piece, p.shown)
	if !known {
		rest = piece
	}
	p.shown, p.joined = piece, false
	return rest, known
}

// Mine says that a message was typed here: it is not shown again.
func (g *Page) Mine(messageID string) {
	if g.mine == nil {
		g.mine = map[string]bool{}
	}
	g.mine[messageID] = true
}

// Titled says which title a person has seen, so that only another one is news.
func (g *Page) Titled(title string) { g.lastTitle = title }

// Joined says that the conversation is followed anew. Of a message that is under way the next piece is all that there is
// by now, also what was shown before; so it is with the reasoning.
func (g *Page) Joined() { g.answer.joined, g.thinking.joined = true, true }

// anew begins another message.
func (g *Page) anew() { g.answer, g.thinking = pieces{}, pieces{} }

// Line begins a new line if the cursor is in one.
func (g *Page) Line() {
	if g.midLine {
		g.Out.Print("\n")
	}
	if g.midAside {
		g.Err.Print("\n")
	}
	g.midLine, g.midAside = false, false
}

// Show shows one event.
func (g *Page) Show(e *agentv1.Event) {
	switch kind := e.GetKind().(type) {
	case *agentv1.Event_TextDelta:
		g.piece(kind.TextDelta.GetText())
		return
	case *agentv1.Event_ReasoningDelta:
		g.thought(kind.ReasoningDelta.GetText())
		return
	case *agentv1.Event_Message:
		g.message(kind.Message)
		return
	case *agentv1.Event_TurnStarted:
		g.anew()
		g.usage = counts{}
	case *agentv1.Event_ToolCall:
		g.anew()
		g.call(e, kind.ToolCall)
	case *agentv1.Event_ToolResult:
		g.result(e, kind.ToolResult)
	case *agentv1.Event_Usage:
		g.usage.add(kind.Usage)
	case *agentv1.Event_TurnEnded:
		g.Line()
		g.anew()
		if g.Usage && g.usage.requests > 0 {
			g.Err.Line(term.Dim, "%s", g.usage)
		}
	default:
		g.aside(e)
	}
}

// piece shows a piece of the answer.
func (g *Page) piece(text string) {
	if text == "" {
		return
	}
	if g.midAside {
		g.Line()
	}
	rest, known := g.answer.rest(text)
	if !known {
		g.Line()
	}
	g.text(rest)
}

func (g *Page) text(text string) {
	if text == "" {
		return
	}
	g.Out.Print(term.VisibleText(strings.ReplaceAll(text, "\r\n", "\n")))
	g.midLine = !strings.HasSuffix(text, "\n")
}

func (g *Page) thought(text string) {
	if !g.Reasoning || text == "" {
		return
	}
	text, known := g.thinking.rest(text)
	if g.midLine || !known {
		g.Line()
	}
	if text == "" {
		return
	}
	g.Err.Print(g.Err.Paint(term.Dim, term.VisibleText(text)))
	g.midAside = !strings.HasSuffix(text, "\n")
}

// message shows a whole message: of the agent what was not shown in pieces yet, of others who says it.
func (g *Page) message(m *agentv1.Message) {
	if m.GetRole() == agentv1.Role_ROLE_USER {
		g.said(m)
		return
	}
	rest, known := strings.CutPrefix(m.GetText(), g.answer.shown)
	if !known { // what is on the screen is not its beginning
		g.Line()
		rest = m.GetText()
	}
	if g.midAside {
		g.Line()
	}
	g.text(rest)
	g.anew()
	g.Line()
}

// said shows a message that was said to the agent, unless it was typed here.
func (g *Page) said(m *agentv1.Message) {
	switch waited := g.waited[m.GetMessageId()]; {
	case m.GetMessageId() == "" && m.GetSender() == nil:
		return
	case g.mine[m.GetMessageId()] && waited && g.Typed:
		g.Line()
		g.Err.Line(term.Dim, "Read now: %s", OneLine(m.GetText()))
		return
	case g.mine[m.GetMessageId()]:
		return
	}
	g.Line()
	g.anew()
	style := term.Bold
	if m.GetSender().GetSpeaker() == agentv1.Speaker_SPEAKER_AGENT {
		style = term.Yellow
	}
	g.Err.Line(style, "%s:", Who(m.GetSender()))
	g.Err.Print(Quoted(m.GetText()))
}

// Who says who a sender is. Only the server can set it; nothing in a text looks like it, because a text is indented.
func Who(s *agentv1.Sender) string {
	if s.GetSpeaker() != agentv1.Speaker_SPEAKER_AGENT {
		return "A person"
	}
	name := "The agent of " + s.GetHandle()
	if s.GetTitle() != "" {
		name += " “" + term.Fit(term.Visible(s.GetTitle()), titleColumns) + "”"
	}
	return name
}

// Quoted is somebody's text with each line marked, so that none of them can pass for a line of the program.
func Quoted(text string) string {
	text = strings.TrimRight(term.VisibleText(strings.ReplaceAll(text, "\r\n", "\n")), "\n")
	return "  | " + strings.ReplaceAll(text, "\n", "\n  | ") + "\n"
}

const titleColumns = 60

// Call is one call of a tool that the page has shown.
type Call struct {
	Number int // from one, in the order in which they were shown
	Call   *agentv1.ToolCall
	Result *agentv1.ToolResult // nil while there is none
	// Conversation is where it was called.
	Conversation string

	at time.Time
}

// Find is the call of a number; nil if there is none.
func (g *Page) Find(number int) *Call {
	if number < 1 || number > len(g.calls) {
		return nil
	}
	return g.calls[number-1]
}

// Forget begins anew, as for another conversation: the numbers of calls, and what has come of a message.
func (g *Page) Forget() {
	g.Line()
	g.anew()
	g.calls, g.lastTitle, g.usage = nil, "", counts{}
}
