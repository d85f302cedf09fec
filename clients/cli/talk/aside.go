package talk

import (
	"fmt"
	"slices"
	"strings"

	"throwbar.dev/throwbar/clients/cli/term"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

const shortLength = 8

// aside shows what is neither the answer nor a tool's.
func (g *Page) aside(e *agentv1.Event) {
	line := func(style term.Style, format string, args ...any) {
		g.Line()
		g.Err.Line(style, format, args...)
	}
	switch kind := e.GetKind().(type) {
	case *agentv1.Event_ApprovalRequested:
		a := kind.ApprovalRequested
		line(term.Yellow, "? %s waits for approval %s: %s", a.GetName(), ShortID(a.GetApprovalId()), a.GetReason())
		line(term.Plain, "  decide with: throwbar approvals approve %s", a.GetApprovalId())
	case *agentv1.Event_ApprovalResolved:
		a := kind.ApprovalResolved
		line(term.Yellow, "  approval %s: %s", ShortID(a.GetApprovalId()), strings.Join(Spoken(a.GetState(), a.GetReason()), ": "))
	case *agentv1.Event_Notice:
		line(term.Yellow, "! %s", kind.Notice.GetText())
		if kind.Notice.GetCanContinue() && !strings.Contains(kind.Notice.GetText(), "go on") {
			line(term.Plain, "  Say \"go on\" to go on from here.")
		}
	case *agentv1.Event_Error:
		line(term.Red, "! %s", kind.Error.GetMessage())
	case *agentv1.Event_Queued:
		q := kind.Queued
		if g.waited == nil {
			g.waited = map[string]bool{}
		}
		g.waited[q.GetMessageId()] = true
		if !g.mine[q.GetMessageId()] {
			line(term.Dim, "%s says, and it waits: %s", Who(q.GetSender()), OneLine(q.GetText()))
		}
	case *agentv1.Event_QueueEdited:
		line(term.Dim, "A message that waits says now: %s", OneLine(kind.QueueEdited.GetText()))
	case *agentv1.Event_QueueRemoved:
		line(term.Dim, "A message that waited was taken back.")
	case *agentv1.Event_ConversationChanged:
		g.changed(kind.ConversationChanged, line)
	case *agentv1.Event_TurnResumed:
		g.anew() // what was being written is written anew
		line(term.Yellow, "! The server was started again, and the turn goes on.")
	case *agentv1.Event_ChildChanged:
		line(term.Dim, "%s", Child(kind.ChildChanged))
	case *agentv1.Event_ModelChanged:
		m := kind.ModelChanged
		line(term.Yellow, "! %s did not answer (%s): %s is asked", m.GetFrom(), strings.TrimSuffix(m.GetReason(), "."), m.GetTo())
	case *agentv1.Event_Compacted:
		line(term.Dim, "! What was said long ago was made shorter for the model: %s", Shortened(kind.Compacted))
	}
}

// News says whether a change of a conversation is anything that a person has not seen.
func (g *Page) News(c *agentv1.Conversation) bool {
	return c.GetArchived() || c.GetTitle() != "" && c.GetTitle() != g.lastTitle && g.lastTitle != ""
}

func (g *Page) changed(c *agentv1.Conversation, line func(term.Style, string, ...any)) {
	switch {
	case c.GetArchived():
		line(term.Yellow, "! The conversation was archived: `throwbar conversations reopen %s` opens it again", c.GetConversationId())
	case c.GetTitle() != "" && c.GetTitle() != g.lastTitle:
		if g.lastTitle != "" { // the first one is made from the first message
			line(term.Dim, "The conversation is called “%s” now.", term.Fit(term.Visible(c.GetTitle()), titleColumns))
		}
		g.lastTitle = c.GetTitle()
	}
}

// Child says what an agent does that the conversation started.
func Child(c *agentv1.ChildChanged) string {
	does := StatusText(c.GetStatus())
	switch {
	case c.GetApprovalId() != "":
		does = "waits for approval " + ShortID(c.GetApprovalId())
	case c.GetStatus() == agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE:
		does = "has ended"
	}
	return fmt.Sprintf("> %s %s", Named(c.GetAgent(), c.GetHandle()), does)
}

// Named is an agent in words, by the name of its definition and the handle of its conversation.
func Named(agent, handle string) string {
	if agent == "" {
		agent = "an agent"
	}
	if handle == "" {
		return agent
	}
	return fmt.Sprintf("%s (%s)", agent, handle)
}

// StatusText says what a conversation does.
func StatusText(s agentv1.ConversationStatus) string {
	switch s {
	case agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE:
		return "idle"
	case agentv1.ConversationStatus_CONVERSATION_STATUS_RUNNING:
		return "works"
	case agentv1.ConversationStatus_CONVERSATION_STATUS_WAITING:
		return "waits for a person"
	case agentv1.ConversationStatus_CONVERSATION_STATUS_FAILED:
		return "has failed"
	default:
		return ""
	}
}

// Shortened says by how much the model's history was made shorter.
func Shortened(c *agentv1.Compacted) string {
	return fmt.Sprintf("%s tokens became %s", Count(c.GetBeforeTokens()), Count(c.GetAfterTokens()))
}

// Spoken are the words that say something.
func Spoken(words ...string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return word == "" })
}

// ShortID is the beginning of a long id.
func ShortID(id string) string { return id[:min(len(id), shortLength)] }

const lineColumns = 100

// OneLine is a text as one line of what can be seen.
func OneLine(text string) string {
	return term.Fit(term.Visible(strings.Join(strings.Fields(text), " ")), lineColumns)
}

// Count is a number with its thousands apart.
func Count(n uint64) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// counts is what the model counted in a turn.
type counts struct {
	requests                         int
	input, cached, output, reasoning uint64
	model                            string
}

func (c *counts) add(u *agentv1.Usage) {
	c.requests++
	c.input += u.GetInputTokens()
	c.cached += u.GetCachedTokens()
	c.output += u.GetOutputTokens()
	c.reasoning += u.GetReasoningTokens()
	if u.GetModel() != "" {
		c.model = u.GetModel()
	}
}

// String says it in words.
func (c counts) String() string {
	requests := "1 request"
	if c.requests != 1 {
		requests = fmt.Sprintf("%d requests", c.requests)
	}
	read := Count(c.input) + " tokens read"
	if c.cached > 0 {
		read += " (" + Count(c.cached) + " from the cache)"
	}
	written := Count(c.output) + " written"
	if c.reasoning > 0 {
		written += " (" + Count(c.reasoning) + " of them reasoning)"
	}
	return strings.Join(Spoken(c.model, requests, read, written), ", ")
}
