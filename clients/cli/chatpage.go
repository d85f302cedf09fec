package cli

import (
	"encoding/json"
	"slices"
	"strings"

	"throwbar.dev/throwbar/clients/cli/term"
	"throwbar.dev/throwbar/clients/cli/view"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

const foldLeast = 60

// page shows the events of turns. The answer's text goes to the standard output and all else to the standard error, so
// that a pipe gets the answer only.
type page struct {
	program   *program
	reasoning bool
	streamed  bool // pieces of the message that is under way are shown already
	midLine   bool
}

// line begins a new line if the cursor is in one.
func (g *page) line() {
	if g.midLine && !g.program.flags.json() {
		g.program.out.Print("\n")
	}
	g.midLine = false
}

func (g *page) text(text string) {
	if text == "" {
		return
	}
	g.program.out.Print(term.VisibleText(strings.ReplaceAll(text, "\r\n", "\n")))
	g.midLine = !strings.HasSuffix(text, "\n")
}

// show shows one event. It says whether the turn is over, and returns the error that it ended with.
func (g *page) show(e *agentv1.Event) (over bool, err error) {
	if g.program.flags.json() {
		if err := g.program.printJSON(e, false); err != nil {
			return true, err
		}
		return g.ended(e)
	}
	err2 := g.program.err
	switch kind := e.GetKind().(type) {
	case *agentv1.Event_TextDelta:
		g.text(kind.TextDelta.GetText())
		g.streamed = true
	case *agentv1.Event_ReasoningDelta:
		if g.reasoning {
			err2.Print(err2.Paint(term.Dim, term.VisibleText(kind.ReasoningDelta.GetText())))
		}
	case *agentv1.Event_Message:
		g.message(kind.Message)
	case *agentv1.Event_ToolCall:
		g.line()
		err2.Print(err2.Paint(term.Dim, g.fold("· "+kind.ToolCall.GetName()+" ", kind.ToolCall.GetArguments())) + "\n")
	case *agentv1.Event_ToolResult:
		g.line()
		g.result(kind.ToolResult)
	case *agentv1.Event_ApprovalRequested:
		g.line()
		a := kind.ApprovalRequested
		err2.Line(term.Yellow, "? %s waits for approval %s: %s", a.GetName(), shortID(a.GetApprovalId()), a.GetReason())
		err2.Line(term.Plain, "  decide with: throwbar approvals approve %s", a.GetApprovalId())
	case *agentv1.Event_ApprovalResolved:
		g.line()
		a := kind.ApprovalResolved
		err2.Line(term.Yellow, "  approval %s: %s", shortID(a.GetApprovalId()), strings.Join(spoken(a.GetState(), a.GetReason()), ": "))
	case *agentv1.Event_Notice:
		g.line()
		err2.Line(term.Yellow, "! %s", kind.Notice.GetText())
	case *agentv1.Event_Error:
		g.line()
		err2.Line(term.Red, "! %s", kind.Error.GetMessage())
	case *agentv1.Event_TurnEnded:
		g.line()
	}
	return g.ended(e)
}

// message shows a whole message of the agent, unless its pieces are shown already.
func (g *page) message(m *agentv1.Message) {
	if m.GetRole() != agentv1.Role_ROLE_ASSISTANT {
		return
	}
	if !g.streamed {
		g.text(m.GetText())
	}
	g.streamed = false
	g.line()
}

func (g *page) result(r *agentv1.ToolResult) {
	style, mark := term.Dim, "  = "
	switch r.GetOutcome() {
	case agentv1.Outcome_OUTCOME_FAILED:
		style, mark = term.Red, "  failed: "
	case agentv1.Outcome_OUTCOME_DENIED:
		style, mark = term.Yellow, "  denied: "
	default:
	}
	g.program.err.Print(g.program.err.Paint(style, g.fold(mark, unfenced(r.GetContent()))) + "\n")
}

// spoken are the words that say something.
func spoken(words ...string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return word == "" })
}

// unfenced takes the marks away that fence data for the model. What has none comes back as it is.
func unfenced(content string) string {
	var fence struct {
		Mark  string          `json:"mark"`
		Data  json.RawMessage `json:"data"`
		Error json.RawMessage `json:"error"`
		End   string          `json:"end"`
	}
	if err := json.Unmarshal([]byte(content), &fence); err != nil || fence.Mark == "" || fence.Mark != fence.End {
		return content
	}
	if len(fence.Error) > 0 {
		return string(fence.Error)
	}
	return string(fence.Data)
}

// fold makes one line of JSON.
func (g *page) fold(head, text string) string {
	head = term.Visible(head)
	room := max(g.program.err.Width-term.Width(head), foldLeast)
	return head + term.Fit(term.Visible(view.Fold(text)), room)
}

// ended says whether an event is the end of its turn, and with what error.
func (g *page) ended(e *agentv1.Event) (bool, error) {
	end := e.GetTurnEnded()
	if end == nil {
		return false, nil
	}
	switch end.GetReason() {
	case agentv1.TurnEnd_TURN_END_ANSWERED:
		return true, nil
	case agentv1.TurnEnd_TURN_END_STOPPED:
		return true, &Exit{Code: Cancelled}
	case agentv1.TurnEnd_TURN_END_LIMIT:
		return true, Errorf(Failed, "a limit was hit: say \"go on\" in the same conversation")
	default: // the error event before it said why
		return true, &Exit{Code: Failed}
	}
}
