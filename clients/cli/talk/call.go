package talk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"throwbar.dev/throwbar/clients/cli/term"
	"throwbar.dev/throwbar/clients/cli/view"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

const (
	foldLeast   = 40
	slowEnough  = 100 // milliseconds from which on the time of a call is said
	indentWidth = 2
)

// call shows a call on one line.
func (g *Page) call(e *agentv1.Event, call *agentv1.ToolCall) {
	g.Line()
	c := &Call{Number: len(g.calls) + 1, Call: call, Conversation: e.GetConversationId(), at: e.GetTime().AsTime()}
	g.calls = append(g.calls, c)
	if g.Verbose {
		g.Err.Line(term.Dim, "· [%d] %s", c.Number, call.GetName())
		g.Err.Print(c.asked())
		return
	}
	g.folded(term.Dim, fmt.Sprintf("· [%d] %s ", c.Number, call.GetName()), call.GetArguments(), "")
}

// result shows how a call ended on one line.
func (g *Page) result(e *agentv1.Event, r *agentv1.ToolResult) {
	g.Line()
	at := slices.IndexFunc(g.calls, func(c *Call) bool { return c.Call.GetCallId() == r.GetCallId() && c.Result == nil })
	head, tail := "  ", ""
	if at >= 0 {
		c := g.calls[at]
		c.Result = r
		head = fmt.Sprintf("  [%d] ", c.Number)
		if took := e.GetTime().AsTime().Sub(c.at); e.GetTime() != nil && took.Milliseconds() >= slowEnough {
			tail = "  " + term.Span(took)
		}
		if whole := r.GetWholeBytes(); whole > 0 {
			tail = fmt.Sprintf("  the model was told a part of %s: /show %d has all", Size(whole), c.Number) + tail
		}
	}
	style, mark := term.Dim, "= "
	switch r.GetOutcome() {
	case agentv1.Outcome_OUTCOME_FAILED:
		style, mark = term.Red, "failed: "
	case agentv1.Outcome_OUTCOME_DENIED:
		style, mark = term.Yellow, "denied: "
	default:
	}
	content := Unfenced(r.GetContent())
	if len(r.GetImages()) > 0 {
		tail = fmt.Sprintf("  with %d images", len(r.GetImages())) + tail
	}
	if g.Verbose {
		g.Err.Line(style, "%s%s%s", head, strings.TrimRight(mark, " "), tail)
		g.Err.Print(Block(content))
		return
	}
	g.folded(style, head+mark, content, tail)
}

// folded makes one line of JSON that fits between a head and a tail.
func (g *Page) folded(style term.Style, head, text, tail string) {
	head, tail = term.Visible(head), term.Visible(tail)
	room := max(g.Err.Width-term.Width(head)-term.Width(tail), foldLeast)
	text = view.Fold(text)
	if text == "" && strings.HasSuffix(head, "= ") {
		text = "nothing"
	}
	line := head + term.Fit(term.Visible(text), room)
	g.Err.Print(g.Err.Paint(style, strings.TrimRight(line, " ")+tail) + "\n")
}

// asked is what a call was asked for, in full.
func (c *Call) asked() string {
	text := Block(c.Call.GetArguments())
	for _, repair := range c.Call.GetRepairs() {
		text += Block("mended: " + repair)
	}
	return text
}

// Print shows a call in full. whole takes the place of what the model was told, where that was only a part.
func (c *Call) Print(to *term.Screen, whole string) {
	to.Line(term.Bold, "[%d] %s", c.Number, c.Call.GetName())
	to.Print(c.asked())
	switch {
	case c.Result == nil:
		to.Line(term.Dim, "  it has not ended")
	case whole != "":
		to.Print(Block(Unfenced(whole)))
	default:
		to.Print(Block(Unfenced(c.Result.GetContent())))
	}
}

// Block is text of several lines, indented; JSON is laid out.
func Block(text string) string {
	var laid bytes.Buffer
	if json.Indent(&laid, []byte(text), "", "  ") == nil {
		text = laid.String()
	}
	text = strings.TrimRight(term.VisibleText(text), "\n")
	pad := strings.Repeat(" ", indentWidth*2)
	return pad + strings.ReplaceAll(text, "\n", "\n"+pad) + "\n"
}

// Unfenced takes the marks away that fence data for the model. What has none comes back as it is.
func Unfenced(content string) string {
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

// Size is a number of bytes in its largest unit.
func Size(n uint64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", (n+1<<9)>>10)
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
}
