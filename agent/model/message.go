package model

import "encoding/json"

// Role says who speaks in a message.
type Role string

// The roles of the canonical history. A provider may want another word on the wire (see [Switches]).
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of a conversation's history in canonical form.
type Message struct {
	Role Role
	Text string
	// Images are data: or https: URLs. A user message may carry them; on a tool result they are allowed too, and
	// [Repair] moves them into a user message after the results, since providers refuse images in tool results.
	Images []string
	// Reasoning is what the model thought, on assistant messages. It is sent back only if the switches say so.
	Reasoning string
	// Calls are what an assistant message asked for.
	Calls []Call
	// Profile is the form in which the model of an assistant message was told of the tools that it calls, a schema.Profile:
	// its arguments are read by the rules of that form. It is never sent. Empty means that it is not known.
	Profile string
	// CallID names the call that a tool message answers.
	CallID string
}

// Call is one tool call of the model.
type Call struct {
	// ID is unique within the turn and against the history that the turn answered.
	ID   string
	Name string
	// Arguments is what the model wrote: {} if it wrote nothing, otherwise text that may not even be JSON.
	Arguments string
	// Extra is a JSON object with the fields of the call that the wire format does not know, or empty. Some
	// providers refuse the next request unless these come back verbatim, others refuse what they do not know: it says
	// itself which provider it came from, and goes back to no other.
	Extra json.RawMessage
}

// Tool is a function the model may call.
type Tool struct {
	Name        string
	Description string
	// Parameters is a JSON Schema of an object; empty means no parameters.
	Parameters json.RawMessage
	// Strict asks the provider to enforce the schema.
	Strict bool
}

// Request is one question to a model.
type Request struct {
	// Model overrides the model of the client's configuration.
	Model    string
	Messages []Message
	// Known is what requests of before have found out about the messages of this conversation: it saves to look at all of them
	// again, and changes nothing. It may be nil, and belongs to this request until that is answered.
	Known *Repairer
	Tools []Tool
	// ToolChoice is auto, none, required, or the name of a tool; empty leaves it to the provider. Ignored without tools.
	ToolChoice string
	// MaxTokens bounds the answer; zero leaves it to the provider.
	MaxTokens int
	// Temperature is left to the provider when nil.
	Temperature *float64
	// Effort is the reasoning effort: none, minimal, low, medium, high, xhigh or max. Any other text is not sent, and a
	// word that the provider may not know becomes the next lower one that all know (see [Switches.EffortField]).
	Effort string
}

// Reasons for which a model stops, in the words of the wire. Other words of a provider are kept as they came.
const (
	FinishStop          = "stop"
	FinishLength        = "length"
	FinishToolCalls     = "tool_calls"
	FinishContentFilter = "content_filter"
)

// Turn is the answer of a model.
type Turn struct {
	Text      string
	Reasoning string
	// Calls are the calls to run, in the order in which the model made them. Their presence, not Finish, says that
	// the model wants tools.
	Calls []Call
	// Open are calls that were begun and must not be run: the answer ended before they did.
	Open []Call
	// Finish is why the model stopped, or empty if it did not say.
	Finish string
	// Refused is set if the provider marked text as a refusal; that text is part of Text.
	Refused bool
	Usage   Usage
	// CutOff is set if the answer ended before the model did. It always comes with an error.
	CutOff bool
}

// Message returns the turn as a history entry.
func (t Turn) Message() Message {
	return Message{Role: RoleAssistant, Text: t.Text, Reasoning: t.Reasoning, Calls: t.Calls}
}

// Usage counts tokens as the provider reports them; all zero means that it did not.
type Usage struct {
	Prompt     int64
	Completion int64
	// Cached is the part of Prompt read from the provider's cache.
	Cached int64
	// Reasoning is the part of Completion that was thinking.
	Reasoning int64
}

// Sink receives pieces of an answer while it arrives. Either function may be nil. They are called one at a time from
// the goroutine that called Complete, and the pieces joined are the turn's Text and Reasoning.
type Sink struct {
	OnText      func(string)
	OnReasoning func(string)
}

func (s Sink) text(piece string) {
	if s.OnText != nil && piece != "" {
		s.OnText(piece)
	}
}

func (s Sink) reasoning(piece string) {
	if s.OnReasoning != nil && piece != "" {
		s.OnReasoning(piece)
	}
}
