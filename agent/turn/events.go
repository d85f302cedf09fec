package turn

import (
	"strings"

	"throwbar.dev/throwbar/agent/model"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

func textDelta(piece string) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_TextDelta{TextDelta: &agentv1.TextDelta{Text: piece}}}
}

func reasoningDelta(piece string) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_ReasoningDelta{ReasoningDelta: &agentv1.ReasoningDelta{Text: piece}}}
}

func notice(code, text string) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_Notice{Notice: &agentv1.Notice{Code: code, Text: text}}}
}

func turnError(message string) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_Error{Error: &agentv1.TurnError{Message: sentence(message)}}}
}

func turnEnded(reason agentv1.TurnEnd) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_TurnEnded{TurnEnded: &agentv1.TurnEnded{Reason: reason}}}
}

func toolCall(c *call) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_ToolCall{ToolCall: &agentv1.ToolCall{
		CallId: c.id, Name: c.name, Arguments: c.shown, Repairs: c.decoded.Repairs,
	}}}
}

func toolResult(c *call, outcome agentv1.Outcome, content string) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_ToolResult{ToolResult: &agentv1.ToolResult{
		CallId: c.id, Name: c.name, Outcome: outcome, Content: content,
	}}}
}

// said is what the model said in one answer, and what it counted.
func said(answer model.Turn) []*agentv1.Event {
	var events []*agentv1.Event
	if strings.TrimSpace(answer.Text) != "" {
		events = append(events, &agentv1.Event{Kind: &agentv1.Event_Message{Message: &agentv1.Message{
			Role: agentv1.Role_ROLE_ASSISTANT, Text: answer.Text,
		}}})
	}
	if u := answer.Usage; u.Prompt > 0 || u.Completion > 0 {
		events = append(events, &agentv1.Event{Kind: &agentv1.Event_Usage{Usage: &agentv1.Usage{
			InputTokens: uint64(max(u.Prompt, 0)), OutputTokens: uint64(max(u.Completion, 0)),
		}}})
	}
	return events
}
