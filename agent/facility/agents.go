package facility

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
)

// summon starts another agent and waits for its answer, unless it works in the background or on its own.
func (f *Facilities) summon(ctx context.Context, call turn.FacilityCall, in *agentv1.SummonAgent) (*agentv1.SummonAgent_Result, error) {
	child, without, err := f.start(ctx, call, in)
	if err != nil {
		return nil, err
	}
	out := &agentv1.SummonAgent_Result{Handle: child.Handle, Status: child.Status}
	switch {
	case in.GetTopLevel():
		out.Note = "It works in a conversation of its own, answers to the user there, and cannot be waited for: go on without its answer."
	case in.GetBackground():
		out.Note = "It works in the background: go on, and collect its answer with " + f.name(&agentv1.RetrieveAgent{}) + " and this handle."
	default:
		ended, err := f.await(ctx, call, child.Conversation.ID)
		if err != nil {
			return nil, f.explain(ctx, call, err, "the agent was started as "+child.Handle+", and its answer could not be awaited")
		}
		out.Handle, out.Status, out.Answer, out.Note = ended.Handle, ended.Status, ended.Answer, endNote(ended)
	}
	if len(without) > 0 {
		out.Note = strings.TrimSpace(fmt.Sprintf("%s It has to do without %s, which you do not have either.",
			out.Note, cut(strings.Join(without, ", "), maxWithout)))
	}
	return out, nil
}

// start starts an agent, once for a call, and says what of its definition's tools it has to do without. One that the call
// has started before the server was started again is that one, whatever is defined now.
func (f *Facilities) start(ctx context.Context, call turn.FacilityCall, in *agentv1.SummonAgent) (conversation.Snapshot, []string, error) {
	const failed = "the agent could not be started"
	switch past, ok, err := f.past(ctx, call); {
	case err != nil:
		return conversation.Snapshot{}, nil, err
	case ok:
		child, err := f.config.Conversations.Snapshot(ctx, call.Workspace, past.Conversation.ID)
		if err != nil {
			err = f.explain(ctx, call, err, "the agent was started, and could not be read")
		}
		return child, nil, err
	}
	definition, err := f.definition(in.GetAgent())
	if err != nil {
		return conversation.Snapshot{}, nil, err
	}
	if model.Blank(in.GetTask()) {
		return conversation.Snapshot{}, nil, invalid("the task is blank, and the agent knows nothing of this conversation: nothing was started")
	}
	parent, err := f.config.Conversations.Snapshot(ctx, call.Workspace, call.Conversation)
	if err != nil {
		return conversation.Snapshot{}, nil, f.explain(ctx, call, err, failed)
	}
	bounded := bound(f.config.Tools, parent.Access, definition)
	child, err := f.config.Conversations.Summon(ctx, conversation.Summons{
		Workspace: call.Workspace, From: call.Conversation, Turn: call.TurnID, Key: call.Key,
		Agent: definition.GetName(), Task: in.GetTask(), TopLevel: in.GetTopLevel(), Settings: bounded.settings,
	})
	if err != nil {
		return conversation.Snapshot{}, nil, f.explain(ctx, call, err, failed)
	}
	return child, bounded.without, nil
}

const maxWithout = 300

// definition finds an agent by its name. The error says which there are.
func (f *Facilities) definition(name string) (*configv1.AgentDefinition, error) {
	all := f.config.Definitions
	at := slices.IndexFunc(all, func(d *configv1.AgentDefinition) bool { return d.GetName() == strings.TrimSpace(name) })
	if at >= 0 {
		return all[at], nil
	}
	if len(all) == 0 {
		return nil, refuse(commandv1.ErrorCode_ERROR_CODE_NOT_FOUND, "no agent is defined here, and none was started: the user defines them in the server's configuration file")
	}
	return nil, refuse(commandv1.ErrorCode_ERROR_CODE_NOT_FOUND, "there is no agent %q, and none was started. There are %s",
		cut(name, maxRef), defined(all))
}

// Remarks are what a model has to know of the facilities of this server beside their declarations: which agents it can
// start.
func Remarks(definitions []*configv1.AgentDefinition) []tool.Remark {
	text := "No agent is defined now."
	if len(definitions) > 0 {
		text = "Agents: " + defined(definitions) + "."
	}
	return []tool.Remark{{Facility: (&agentv1.SummonAgent{}).ProtoReflect().Descriptor().FullName(), Text: text}}
}

// defined lists agents in little room: the first with what they are for, others by name, the rest by number.
func defined(definitions []*configv1.AgentDefinition) string {
	const (
		most  = 80  // characters of what one is for
		names = 50  // agents that are named
		room  = 700 // bytes of the whole list, about
	)
	var list []string
	used := 0
	for i, d := range definitions {
		one := d.GetName()
		if i < maxListed {
			one += ": " + strings.TrimSuffix(cut(d.GetDescription(), most), ".")
		}
		if used += len(one); i == names || used > room {
			list = append(list, fmt.Sprintf("and %d more", len(definitions)-i))
			break
		}
		list = append(list, one)
	}
	return strings.Join(list, "; ")
}

// retrieve collects the answer of an agent that this one has started, and waits for it while it works.
func (f *Facilities) retrieve(ctx context.Context, call turn.FacilityCall, in *agentv1.RetrieveAgent) (*agentv1.RetrieveAgent_Result, error) {
	target, err := f.target(ctx, call, in.GetConversationId(), "")
	if err != nil {
		return nil, err
	}
	if target.ID == call.Conversation {
		return nil, invalid("%s is this very conversation: only an agent that you have started can be collected", target.Handle)
	}
	ended, err := f.await(ctx, call, target.ID)
	if err != nil {
		return nil, f.explain(ctx, call, err, "the agent's answer could not be collected; it goes on")
	}
	return &agentv1.RetrieveAgent_Result{Handle: ended.Handle, Status: ended.Status, Answer: ended.Answer, Note: endNote(ended)}, nil
}

// await waits for an agent, while the time of the turn that waits stands still.
func (f *Facilities) await(ctx context.Context, call turn.FacilityCall, id string) (conversation.Snapshot, error) {
	if call.Rest != nil {
		defer call.Rest()()
	}
	return f.config.Conversations.Await(ctx, call.Workspace, call.Conversation, id)
}

// cutShort says whether the last turn of an agent that has answered came to no answer.
func cutShort(s conversation.Snapshot) bool {
	end := s.Conversation.LastEnd
	return s.Status == agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE &&
		(end == agentv1.TurnEnd_TURN_END_STOPPED || end == agentv1.TurnEnd_TURN_END_LIMIT)
}

// endNote says how an agent ended, where its answer does not.
func endNote(ended conversation.Snapshot) string {
	switch {
	case ended.Status == agentv1.ConversationStatus_CONVERSATION_STATUS_FAILED && ended.Answered:
		return "It failed: this is what it had answered before that. Its conversation says why."
	case ended.Status == agentv1.ConversationStatus_CONVERSATION_STATUS_FAILED:
		return "It failed and has answered nothing. Its conversation says why."
	case !ended.Answered:
		return "It ended without an answer: it was stopped, or a limit was reached. Its conversation says which."
	case cutShort(ended):
		return "It was stopped, or a limit was reached, before it answered this time: this is what it had answered before that. Its conversation says which."
	default:
		return ""
	}
}
