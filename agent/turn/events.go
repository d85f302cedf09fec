package turn

import (
	"strings"
	"unicode"
	"unicode/utf8"

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

// limit is a notice of something that ended the turn, and from which it can go on.
func limit(code, text string) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_Notice{Notice: &agentv1.Notice{
		Code: code, Text: text + ` Say "go on" to continue.`, CanContinue: true,
	}}}
}

func turnError(message string) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_Error{Error: &agentv1.TurnError{Message: sentence(message)}}}
}

func turnEnded(reason agentv1.TurnEnd) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_TurnEnded{TurnEnded: &agentv1.TurnEnded{Reason: reason}}}
}

func modelChanged(from, to, reason string) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_ModelChanged{ModelChanged: &agentv1.ModelChanged{From: from, To: to, Reason: sentence(reason)}}}
}

func toolCall(c *call) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_ToolCall{ToolCall: &agentv1.ToolCall{
		CallId: c.id, Name: c.name, Arguments: c.shown, Repairs: c.decoded.Repairs,
	}}}
}

// said is what the model of a choice said in one answer, and what it counted.
func said(answer model.Turn, choice string) []*agentv1.Event {
	var events []*agentv1.Event
	if !model.Blank(answer.Text) {
		events = append(events, &agentv1.Event{Kind: &agentv1.Event_Message{Message: &agentv1.Message{
			Role: agentv1.Role_ROLE_ASSISTANT, Text: answer.Text,
		}}})
	}
	return append(events, usage(answer.Usage, choice)...)
}

// usage is what the model of a choice counted for one request, if it did.
func usage(u model.Usage, choice string) []*agentv1.Event {
	if u.Prompt <= 0 && u.Completion <= 0 {
		return nil
	}
	return []*agentv1.Event{{Kind: &agentv1.Event_Usage{Usage: &agentv1.Usage{
		InputTokens: positive(u.Prompt), OutputTokens: positive(u.Completion), CachedTokens: positive(u.Cached),
		ReasoningTokens: positive(u.Reasoning), Model: choice,
	}}}}
}

func compacted(before, after int) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_Compacted{Compacted: &agentv1.Compacted{
		BeforeTokens: uint64(max(before, 0)), AfterTokens: uint64(max(after, 0)),
	}}}
}

func positive(n int64) uint64 { return uint64(max(n, 0)) }

// sentence begins with a capital and ends with a full stop. It may be made of what others said, and an event that is not
// valid UTF-8 cannot be kept: the turn would break on it.
func sentence(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}
