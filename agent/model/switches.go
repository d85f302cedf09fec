package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

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
	// ParallelToolCalls allows or forbids several calls in one turn. By default the provider decides, but where a tool is
	// strict they are forbidden: the provider cannot enforce schemas in several calls at once.
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
	// EffortField is the name of the field for Request.Effort: reasoning_effort unless set, not sent if it is "-". A dot
	// stands for an object in an object, as in reasoning.effort.
	EffortField string
}

const defaultEffortField = "reasoning_effort"

// check returns what is wrong with the switches.
func (s Switches) check() error {
	for name, field := range map[string]string{"reasoning": s.ReasoningField, "effort": s.EffortField} {
		top, _, _ := strings.Cut(field, ".")
		if slices.Contains(ownFields(), top) {
			return fmt.Errorf("the field for %s cannot be %s, which has a meaning of its own", name, field)
		}
	}
	if strings.Contains(s.ReasoningField, ".") || strings.HasPrefix(s.EffortField, ".") ||
		strings.HasSuffix(s.EffortField, ".") || strings.Contains(s.EffortField, "..") {
		return errors.New("the name of a field has a dot in the wrong place")
	}
	return nil
}

// ownFields are the members of requests and messages that have a meaning of their own.
func ownFields() []string {
	return []string{
		"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "max_tokens",
		"max_completion_tokens", "temperature", "role", "content", "tool_calls", "tool_call_id",
	}
}

// effort returns the word for an effort at the provider, empty if none is sent. Of the words that people choose, all but
// max are understood wherever there is such a field. What goes beyond high has other names with every provider, and one
// that does not know a word refuses the whole request: it is sent where it is known, and high elsewhere.
func (c *Client) effort(word string) string {
	if c.switches.EffortField == "-" {
		return ""
	}
	switch word {
	case "none", "minimal", "low", "medium", "high":
		return word
	case "xhigh", "max":
		if c.baseURL == DefaultBaseURL || strings.Contains(c.switches.EffortField, ".") {
			return "xhigh"
		}
		return "high"
	}
	return ""
}

// withEffort adds the effort to the members of a request, under the name that the provider has for it.
func (c *Client) withEffort(body []byte, word string) ([]byte, error) {
	word = c.effort(word)
	if word == "" {
		return body, nil
	}
	field := c.switches.EffortField
	if field == "" {
		field = defaultEffortField
	}
	var value any = word
	path := strings.Split(field, ".")
	for _, name := range slices.Backward(path[1:]) {
		value = map[string]any{name: value}
	}
	member, err := marshal(map[string]any{path[0]: value})
	if err != nil {
		return nil, err
	}
	// Both are objects with members: the second goes on where the first ends.
	return append(append(body[:len(body)-1], ','), member[1:]...), nil
}
