package facility

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// send brings a message to another conversation's agent.
func (f *Facilities) send(ctx context.Context, call turn.FacilityCall, in *agentv1.SendToConversation) (*agentv1.SendToConversation_Result, error) {
	if past, ok, err := f.past(ctx, call); ok || err != nil { // whatever has become of its receiver since
		return f.sent(past), err
	}
	const nothing = "nothing was delivered"
	if model.Blank(in.GetMessage()) {
		return nil, invalid("the message is blank: %s. Say what the other agent should know or do", nothing)
	}
	target, err := f.target(ctx, call, in.GetConversationId(), nothing)
	if err != nil {
		return nil, err
	}
	if target.ID == call.Conversation {
		return nil, invalid("%s is this very conversation, and an agent does not write to itself: %s", target.Handle, nothing)
	}
	done, err := f.config.Conversations.Deliver(ctx, conversation.Delivery{
		Workspace: call.Workspace, To: target.ID, Text: in.GetMessage(), Mode: agentv1.SendMode_SEND_MODE_QUEUE,
		MessageID: conversation.KeyID(call.Key), From: call.Conversation, Turn: call.TurnID,
	})
	if err != nil {
		return nil, f.explain(ctx, call, err, "the message could not be delivered; read the conversation before you send it again")
	}
	return f.sent(done), nil
}

// past is what a call did before the server was started again, if it sent or started something then. That has happened,
// whatever it would meet now. Where it cannot be read nothing else is done: nobody could say any more what happened.
func (f *Facilities) past(ctx context.Context, call turn.FacilityCall) (conversation.Delivered, bool, error) {
	if !call.Again {
		return conversation.Delivered{}, false, nil
	}
	done, err := f.config.Conversations.Deliver(ctx, conversation.Delivery{
		Workspace: call.Workspace, MessageID: conversation.KeyID(call.Key), From: call.Conversation, Turn: call.TurnID, Again: true,
	})
	var known *conversation.Error
	switch {
	case err == nil:
		return done, true, nil
	case errors.As(err, &known) && known.Code == conversation.NotFound:
		return conversation.Delivered{}, false, nil
	default:
		return conversation.Delivered{}, false, f.explain(ctx, call, err,
			"the server was started again, and what this call did before that cannot be read: it may have been done, look before you try again")
	}
}

// sent says what became of a message.
func (f *Facilities) sent(done conversation.Delivered) *agentv1.SendToConversation_Result {
	read := f.name(&agentv1.ReadConversation{})
	note := "It has begun to work on this. Nobody waits for its answer: go on, and read it later with " + read + " and this handle, if you have that tool."
	switch done.Delivery {
	case agentv1.Delivery_DELIVERY_QUEUED, agentv1.Delivery_DELIVERY_STEERED:
		note = "It works on something else. The message is in its queue and is not lost: it is read when that ends or, if agents have woken " +
			"each other as often as they may by then, when a person goes on there. Do not send it again: read the answer later with " +
			read + " and this handle, if you have that tool."
	case agentv1.Delivery_DELIVERY_SUPPRESSED:
		note = "Held, and it was not woken: agents have woken each other as often as they may until a person writes there, or that work was stopped. The message is in " +
			"its queue and is not lost; it is read when a person goes on with that conversation. Do not send it again; tell the user that it waits."
	default:
	}
	return &agentv1.SendToConversation_Result{Handle: done.Handle, Title: done.Conversation.Title, Delivery: done.Delivery, Note: note}
}

// read says what another conversation's agent last answered. It never waits: two that wait for each other would wait for
// ever.
func (f *Facilities) read(ctx context.Context, call turn.FacilityCall, in *agentv1.ReadConversation) (*agentv1.ReadConversation_Result, error) {
	target, err := f.target(ctx, call, in.GetConversationId(), "")
	if err != nil {
		return nil, err
	}
	now, err := f.config.Conversations.Snapshot(ctx, call.Workspace, target.ID)
	if err != nil {
		return nil, f.explain(ctx, call, err, "the conversation could not be read")
	}
	return &agentv1.ReadConversation_Result{
		Handle: now.Handle, Title: now.Conversation.Title, Status: now.Status, Answer: now.Answer, Note: readNote(now),
	}, nil
}

// readNote says what a snapshot means, where that is not plain.
func readNote(now conversation.Snapshot) string {
	switch now.Status {
	case agentv1.ConversationStatus_CONVERSATION_STATUS_RUNNING:
		if !now.Answered {
			return "It is still on its first turn and has answered nothing yet: read it again later."
		}
		return "It works just now: this is what it answered in the turn before. Read it again later for the new answer."
	case agentv1.ConversationStatus_CONVERSATION_STATUS_WAITING:
		if !now.Answered {
			return "It is still on its first turn, which waits for a person's decision: read it again later."
		}
		return "Its turn waits for a person's decision: this is what it answered in the turn before. Read it again later."
	case agentv1.ConversationStatus_CONVERSATION_STATUS_FAILED:
		if !now.Answered {
			return "It has no responses yet: its last turn failed."
		}
		return "Its last turn failed: this is what it answered before that."
	default:
		switch {
		case !now.Answered:
			return "It has no responses yet."
		case cutShort(now):
			return "Its last turn was stopped, or reached a limit: this is what it answered before that."
		default:
			return ""
		}
	}
}

// target is the one open conversation that a reference means. Where it means none or several the error says which there
// are, and after the colon what was not done.
func (f *Facilities) target(ctx context.Context, call turn.FacilityCall, ref, undone string) (conversation.Row, error) {
	const failed = "the open conversations could not be listed"
	open, err := f.config.Conversations.Open(ctx, call.Workspace)
	if err != nil {
		return conversation.Row{}, f.explain(ctx, call, err, failed)
	}
	if undone != "" {
		undone = ", and " + undone
	}
	if strings.TrimSpace(ref) == "" {
		return conversation.Row{}, invalid("no conversation was named%s. %s", undone, others(open, call.Conversation))
	}
	found, err := f.config.Conversations.Resolve(ctx, call.Workspace, ref)
	switch {
	case err != nil:
		return conversation.Row{}, f.explain(ctx, call, err, failed)
	case found.One != nil:
		at := slices.IndexFunc(open, func(r conversation.Row) bool { return r.ID == found.One.ID })
		if at < 0 { // begun in this very moment
			return conversation.Row{Conversation: *found.One, Handle: found.One.ID}, nil
		}
		return open[at], nil
	case len(found.Several) == 0:
		return conversation.Row{}, refuse(commandv1.ErrorCode_ERROR_CODE_NOT_FOUND,
			"there is no open conversation %q%s. %s", cut(ref, maxRef), undone, others(open, call.Conversation))
	default:
		var rows []conversation.Row
		for _, c := range found.Several {
			for _, r := range open {
				if r.ID == c.ID {
					rows = append(rows, r)
				}
			}
		}
		return conversation.Row{}, invalid("%q fits %d open conversations%s. Give at least one more character: %s",
			cut(ref, maxRef), len(found.Several), undone, listed(rows))
	}
}

// How much an error lists: it is cut at a thousand bytes on its way to the model.
const (
	maxRef    = 64
	maxListed = 10
	maxTitle  = 40
)

// others lists the open conversations except the caller's own.
func others(open []conversation.Row, own string) string {
	rows := slices.DeleteFunc(slices.Clone(open), func(r conversation.Row) bool { return r.ID == own })
	if len(rows) == 0 {
		return "No other conversation is open"
	}
	return "Open are " + listed(rows)
}

// listed is a handle and a title for each row.
func listed(rows []conversation.Row) string {
	var names []string
	for i, r := range rows {
		if i == maxListed {
			names = append(names, fmt.Sprintf("and %d more", len(rows)-i))
			break
		}
		names = append(names, fmt.Sprintf("%s: %s", r.Handle, cut(r.Title, maxTitle)))
	}
	return strings.Join(names, "; ")
}

// cut is the beginning of a text on one line.
func cut(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
