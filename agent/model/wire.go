package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
)

// The request as it goes over the wire. It is written by hand because the library's types would send calls without a
// type as empty objects, and nothing of fields they do not know.
type (
	// wireHead begins a request. Then come the messages, the tools, if there are any, and what is in wireRequest.
	wireHead struct {
		Model string `json:"model"`
	}
	wireRequest struct {
		ToolChoice          any         `json:"tool_choice,omitempty"`
		ParallelToolCalls   *bool       `json:"parallel_tool_calls,omitempty"`
		Stream              bool        `json:"stream"`
		StreamOptions       *wireStream `json:"stream_options,omitempty"`
		MaxTokens           int         `json:"max_tokens,omitempty"`
		MaxCompletionTokens int         `json:"max_completion_tokens,omitempty"`
		Temperature         *float64    `json:"temperature,omitempty"`
	}
	wireStream struct {
		IncludeUsage bool `json:"include_usage"`
	}
	wireTool struct {
		Type     string       `json:"type"`
		Function wireFunction `json:"function"`
	}
	wireFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict,omitempty"`
	}
)

// body returns the body of a request whose history is repaired.
func (c *Client) body(request Request) (parts, error) {
	head, out := wireHead{Model: cmp.Or(request.Model, c.model)}, wireRequest{Stream: true, Temperature: request.Temperature}
	if head.Model == "" {
		return nil, errors.New("no model is named")
	}
	if len(request.Messages) == 0 || !asks(request.Messages[len(request.Messages)-1]) {
		return nil, ErrNothingToAnswer
	}
	if c.switches.StreamOptions != Off {
		out.StreamOptions = &wireStream{IncludeUsage: true}
	}
	if c.switches.MaxTokensField == "max_completion_tokens" {
		out.MaxCompletionTokens = max(request.MaxTokens, 0)
	} else {
		out.MaxTokens = max(request.MaxTokens, 0)
	}
	c.toolOptions(&out, request)
	tools, err := request.Known.writtenTools(request.Tools)
	if err != nil {
		return nil, err
	}
	messages, err := c.messages(request)
	if err != nil {
		return nil, err
	}
	first, err := marshal(head)
	if err != nil {
		return nil, err
	}
	rest, err := marshal(out)
	if err != nil {
		return nil, err
	}
	if rest, err = c.withEffort(rest, request.Effort); err != nil {
		return nil, err
	}
	// The messages are most of a request, and are not read and copied once more to be a part of it. Head and rest have a
	// member at least.
	return parts{first[:len(first)-1], []byte(`,"messages":[`), messages, []byte(`],`), tools, rest[1:]}, nil
}

// asks reports whether a model can answer to the message.
func asks(last Message) bool { return last.Role == RoleUser || last.Role == RoleTool }

// toolOptions adds what may only be sent with tools.
func (c *Client) toolOptions(out *wireRequest, request Request) {
	if len(request.Tools) == 0 {
		return
	}
	switch request.ToolChoice {
	case "":
	case "auto", "none", "required":
		out.ToolChoice = request.ToolChoice
	default:
		out.ToolChoice = map[string]any{"type": "function", "function": map[string]string{"name": request.ToolChoice}}
	}
	strict := slices.ContainsFunc(request.Tools, func(t Tool) bool { return t.Strict })
	if c.switches.ParallelToolCalls != Default || strict {
		allowed := c.switches.ParallelToolCalls == On
		out.ParallelToolCalls = &allowed
	}
}

func (c *Client) echoes(m *Message) bool {
	if m.Reasoning == "" {
		return false
	}
	return c.switches.ReasoningEcho == EchoAlways || c.switches.ReasoningEcho == EchoToolTurns && len(m.Calls) > 0
}

func (c *Client) reasoningField() string {
	if c.switches.ReasoningField == "" {
		return "reasoning_content"
	}
	return c.switches.ReasoningField
}

// content returns the text of a message, or its parts if it has images.
func (c *Client) content(m *Message) any {
	switch {
	case len(m.Images) == 0:
		return m.Text
	case c.switches.NoImages && m.Text == "":
		return imageRemark
	case c.switches.NoImages:
		return m.Text + "\n" + imageRemark
	}
	var parts []map[string]any
	if m.Text != "" {
		parts = append(parts, map[string]any{"type": "text", "text": m.Text})
	}
	for _, image := range m.Images {
		parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]string{"url": image}})
	}
	return parts
}

// imageRemark stands for images that the model cannot see.
const imageRemark = "(an image was here, which this model cannot see)"
