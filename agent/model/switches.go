package model

// Toggle is a switch that may be left alone.
type Toggle int

// The positions of a Toggle.
const (
	Default Toggle = iota
	On
	Off
)

// Echo says when the reasoning of earlier turns is sent back to the provider.
type Echo int

// Providers differ: some refuse a request without the reasoning of the turn that called tools, some refuse one with
// any reasoning.
const (
	EchoNone Echo = iota
	EchoToolTurns
	EchoAlways
)

// Switches are the differences between providers that no single request form covers. The zero value suits most.
type Switches struct {
	// StreamOptions asks for token usage at the end of the stream; on by default, to be switched off for servers that
	// refuse the field.
	StreamOptions Toggle
	// ParallelToolCalls allows or forbids several calls in one turn; by default the provider decides.
	ParallelToolCalls Toggle
	// MaxTokensField is the name under which Request.MaxTokens is sent: max_completion_tokens at the default base
	// URL, max_tokens elsewhere, unless set.
	MaxTokensField string
	// DeveloperRole sends system messages with the role developer.
	DeveloperRole bool
	// ReasoningEcho says when earlier reasoning is sent back, and ReasoningField under which name (reasoning_content
	// unless set).
	ReasoningEcho  Echo
	ReasoningField string
	// NoImages replaces images by a remark, for models that cannot see.
	NoImages bool
}
