package cli

import (
	"context"
	"fmt"
	"slices"

	"throwbar.dev/throwbar/clients/cli/talk"
	"throwbar.dev/throwbar/clients/cli/term"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// hear takes what the follower tells. It says whether there is nothing more to wait for.
func (c *chat) hear(ctx context.Context, n news) (over bool, err error) {
	if n.gap {
		c.page.Joined()
	}
	switch {
	case n.end != nil:
		c.aside()
		if !c.person || c.locked(n.end) {
			return true, n.end
		}
		c.report(n.end)
		c.leave()
		c.leave, c.turn = nil, ""
		return false, nil
	case n.event != nil:
		return c.event(ctx, n.event)
	case n.caught != nil:
		c.caughtUp(ctx, n.caught)
	case c.program.flags.json():
	case n.reset:
		c.tell(term.Yellow, "The server's conversation ends before what was shown here, as after a restored backup. It goes on from its end.")
	case n.lost != nil:
		c.tell(term.Yellow, "The connection is lost: trying again. Nothing will be missed.")
	case n.back:
		c.tell(term.Dim, "Connected again: nothing was missed.")
	case n.gap:
		c.tell(term.Dim, "The connection broke off and is there again: nothing was missed.")
	}
	return false, nil
}

// tell writes a line between others.
func (c *chat) tell(style term.Style, text string) {
	c.aside()
	c.page.Line()
	c.program.err.Line(style, "%s", text)
}

// caughtUp learns what the conversation does now.
func (c *chat) caughtUp(ctx context.Context, caught *agentv1.CaughtUp) {
	if caught.GetStatus() == agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE ||
		caught.GetStatus() == agentv1.ConversationStatus_CONVERSATION_STATUS_FAILED {
		c.turn = ""
	}
	for _, a := range c.pending {
		c.ofOthers(ctx, a, false)
	}
}

// event shows an event, and takes what it says of turns and approvals.
func (c *chat) event(ctx context.Context, e *agentv1.Event) (over bool, err error) {
	c.lineUp(e)
	c.follow(e)
	c.learn(e)
	if c.program.flags.json() {
		if err := c.program.printJSON(e, false); err != nil {
			return true, err
		}
		return c.turnOver(e)
	}
	if c.quiet(e) {
		return c.turnOver(e)
	}
	c.aside()
	if id := approvalOf(e); id != "" && c.shown(ctx, id) {
		return false, nil
	}
	if c.desk.shown != nil {
		c.desk.breakLine()
		defer c.desk.prompt()
	}
	c.page.Show(e)
	if end := e.GetTurnEnded(); end.GetReason() == agentv1.TurnEnd_TURN_END_STOPPED {
		c.program.err.Line(term.Yellow, "Stopped.")
	}
	return c.turnOver(e)
}

// quiet says whether an event shows nothing, so that the line of a prompt stays.
func (c *chat) quiet(e *agentv1.Event) bool {
	switch kind := e.GetKind().(type) {
	case *agentv1.Event_TurnStarted, *agentv1.Event_Usage, *agentv1.Event_Queued:
		c.page.Show(e)
		return true
	case *agentv1.Event_QueueEdited:
		return c.ownChange(kind.QueueEdited.GetMessageId())
	case *agentv1.Event_QueueRemoved:
		return c.ownChange(kind.QueueRemoved.GetMessageId())
	case *agentv1.Event_ConversationChanged:
		c.at.Title, c.at.Settings = kind.ConversationChanged.GetTitle(), kind.ConversationChanged.GetSettings()
		if handle := kind.ConversationChanged.GetHandle(); handle != "" {
			c.at.Handle = handle
		}
		if !c.page.News(kind.ConversationChanged) {
			c.page.Show(e)
			return true
		}
	}
	return false
}

// ownChange says whether a change of a message that waits was made here, where it has been shown.
func (c *chat) ownChange(message string) bool {
	if c.own[message] == 0 {
		return false
	}
	c.own[message]--
	return true
}

// learn keeps what later events are about.
func (c *chat) learn(e *agentv1.Event) {
	switch {
	case e.GetTurnStarted() != nil:
		c.offered = false
	case e.GetNotice().GetCanContinue():
		c.offered = true
	case e.GetChildChanged() != nil:
		child := e.GetChildChanged()
		c.children[child.GetConversationId()] = talk.Named(child.GetAgent(), child.GetHandle())
	}
}

func approvalOf(e *agentv1.Event) string {
	return e.GetApprovalRequested().GetApprovalId() + e.GetApprovalResolved().GetApprovalId() + e.GetChildChanged().GetApprovalId()
}

// follow learns which turn runs and which one answers the message that is waited for.
func (c *chat) follow(e *agentv1.Event) {
	if e.GetTurnStarted() != nil {
		c.behind, c.held = false, false
		c.twice.Store(false) // an interrupt is for this turn
	}
	if e.GetTurnStarted() != nil || e.GetTurnResumed() != nil || c.turn != "" && e.GetTurnId() != "" && e.GetTurnEnded() == nil {
		c.turn = e.GetTurnId()
	}
	if m := e.GetMessage(); m.GetMessageId() != "" && m.GetMessageId() == c.waits {
		c.of = e.GetTurnId()
	}
}

// lineUp keeps the line of messages that wait.
func (c *chat) lineUp(e *agentv1.Event) {
	is := func(id string) func(*agentv1.QueuedMessage) bool {
		return func(q *agentv1.QueuedMessage) bool { return q.GetMessageId() == id }
	}
	switch kind := e.GetKind().(type) {
	case *agentv1.Event_Queued:
		c.line = append(slices.DeleteFunc(c.line, is(kind.Queued.GetMessageId())), kind.Queued)
	case *agentv1.Event_QueueEdited:
		if at := slices.IndexFunc(c.line, is(kind.QueueEdited.GetMessageId())); at >= 0 {
			c.line[at] = kind.QueueEdited
		}
	case *agentv1.Event_QueueRemoved:
		c.line = slices.DeleteFunc(c.line, is(kind.QueueRemoved.GetMessageId()))
	case *agentv1.Event_Message:
		c.line = slices.DeleteFunc(c.line, is(kind.Message.GetMessageId()))
	}
}

// turnOver says whether an event is the end of what is waited for, and with what error.
func (c *chat) turnOver(e *agentv1.Event) (bool, error) {
	if removed := e.GetQueueRemoved().GetMessageId(); removed != "" && removed == c.waits {
		c.waits = ""
		return c.answered(Errorf(Cancelled, "somebody took the message back before it was read"))
	}
	end := e.GetTurnEnded()
	if end == nil {
		return false, nil
	}
	mine := c.waits != "" && c.of != "" && c.of == e.GetTurnId()
	c.turn, c.held = "", end.GetReason() == agentv1.TurnEnd_TURN_END_STOPPED
	err := c.ended(end)
	switch {
	case mine:
		c.waits, c.of = "", ""
		return c.answered(err)
	case c.person && !c.offered && end.GetReason() == agentv1.TurnEnd_TURN_END_LIMIT:
		c.program.err.Line(term.Yellow, "A limit was hit: say \"go on\" to go on from here.")
	}
	return false, nil
}

// answered is what follows when the message that was waited for is answered.
func (c *chat) answered(err error) (bool, error) {
	if c.once {
		return true, err
	}
	if err != nil {
		c.last = err
	}
	return false, nil
}

// shown shows an approval as it is now, and offers to decide it. It says false if it cannot.
func (c *chat) shown(ctx context.Context, id string) bool {
	if _, err := c.program.catalogue(ctx); err != nil {
		return false
	}
	answer, err := c.server.Approvals.GetApproval(ctx, &controlv1.GetApprovalRequest{ApprovalId: id})
	if err != nil {
		return false
	}
	c.take(ctx, answer.GetApproval(), false)
	return true
}

// take puts an approval on the desk, unless it is there just so.
func (c *chat) take(ctx context.Context, a *controlv1.Approval, warning bool) {
	now := fmt.Sprint(a.GetState(), a.GetHash(), warning)
	if c.known[a.GetApprovalId()] == now {
		return
	}
	c.known[a.GetApprovalId()] = now
	c.aside()
	c.page.Line()
	c.desk.take(ctx, a, warning)
}

// asker says who asks, to a person who is in the conversation.
func (c *chat) asker(ctx context.Context, a *controlv1.Approval) string {
	by := a.GetPrincipal()
	if by == c.at.GetConversationId() {
		return "the agent of this conversation"
	}
	who := c.children[by]
	if who == "" {
		answer, err := c.server.Agent.GetConversation(ctx, &agentv1.GetConversationRequest{ConversationId: by})
		if err != nil {
			return c.program.askedBy(ctx, a)
		}
		who = talk.Named(answer.GetConversation().GetAgent(), answer.GetConversation().GetHandle())
	}
	if c.root == c.at.GetConversationId() {
		who += ", at work for this conversation"
	}
	return who
}

// frame takes what the feed of approvals tells.
func (c *chat) frame(ctx context.Context, frame *controlv1.WatchApprovalsResponse) {
	a := frame.GetApproval()
	if a == nil || c.program.flags.json() {
		return
	}
	if pending(a) {
		c.pending[a.GetApprovalId()] = a
	} else {
		delete(c.pending, a.GetApprovalId())
	}
	c.ofOthers(ctx, a, frame.GetWarning())
}

// ofOthers takes an approval that no event of the conversation tells: one of an agent that it has started, one from
// before this program came, or a change of one that is on the desk.
func (c *chat) ofOthers(ctx context.Context, a *controlv1.Approval, warning bool) {
	_, known := c.known[a.GetApprovalId()]
	ours := c.root != "" && a.GetConversationId() == c.root
	child := a.GetPrincipal() != c.at.GetConversationId()
	if !known && (!ours || !pending(a) || !child && !c.behind) {
		return
	}
	if _, err := c.program.catalogue(ctx); err == nil {
		c.take(ctx, a, warning)
	}
}
