package model

import "cmp"

// The members of a message and of a call stand in the order of their names, as those of a map: a request begins with the
// same bytes as the one before, also as earlier versions of this program sent it, which providers remember.
type (
	wireMessage struct {
		Content any     `json:"content"` // a text, parts, or null
		Role    string  `json:"role"`
		CallID  *string `json:"tool_call_id,omitempty"`
		Calls   []any   `json:"tool_calls,omitempty"`
	}
	wirePlainCall struct {
		Function wireArguments `json:"function"`
		ID       string        `json:"id"`
		Type     string        `json:"type"`
	}
	wireArguments struct {
		Arguments string `json:"arguments"`
		Name      string `json:"name"`
	}
)

// message returns the wire form of a message, with some ids of calls replaced.
func (c *Client) message(m *Message, ids map[string]string) (any, error) {
	out := wireMessage{Content: c.content(m), Role: string(m.Role)}
	switch m.Role {
	case RoleSystem:
		if c.switches.DeveloperRole {
			out.Role = "developer"
		}
	case RoleTool:
		id := cmp.Or(ids[m.CallID], m.CallID)
		out.CallID = &id
	case RoleAssistant:
		for i := range m.Calls {
			call, err := c.call(m.Calls[i], ids)
			if err != nil {
				return nil, err
			}
			out.Calls = append(out.Calls, call)
		}
		if len(m.Calls) > 0 && m.Text == "" {
			out.Content = nil
		}
		if c.echoes(m) {
			return c.echoed(&out, m.Reasoning), nil
		}
	}
	return &out, nil
}

// echoed is a message with what the model thought, in a field whose name the provider chose.
func (c *Client) echoed(m *wireMessage, reasoning string) map[string]any {
	out := map[string]any{"role": m.Role, "content": m.Content, c.reasoningField(): reasoning}
	if len(m.Calls) > 0 {
		out["tool_calls"] = m.Calls
	}
	return out
}

// call returns the wire form of a call.
func (c *Client) call(call Call, ids map[string]string) (any, error) {
	call.ID = cmp.Or(ids[call.ID], call.ID)
	if len(call.Extra) > 0 {
		return c.wireCall(call)
	}
	return &wirePlainCall{Function: wireArguments{Arguments: call.Arguments, Name: call.Name}, ID: call.ID, Type: "function"}, nil
}

// sizeOf is about how many bytes messages take in a request.
func sizeOf(messages []Message) int {
	size := 0
	for i := range messages {
		m := &messages[i]
		size += 64 + len(m.Text) + len(m.Text)/8 + len(m.Reasoning) // an eighth for what is escaped
		for _, image := range m.Images {
			size += 64 + len(image)
		}
		for _, call := range m.Calls {
			size += 128 + len(call.Arguments) + len(call.Arguments)/4 + len(call.Extra)
		}
	}
	return size
}

// messages returns the messages of a request as they are written down, without the brackets. Those that the same client has
// written down for the request before are not written down again. Nobody changes what is returned, then or later.
func (c *Client) messages(request Request) ([]byte, error) {
	known := request.Known
	if !known.returned(request.Messages) {
		known = &Repairer{}
	}
	if known.by != c {
		known.by, known.wire, known.ends = c, nil, nil
	}
	var ids map[string]string
	if c.anyForeign(request.Messages[known.wired():]) { // what is written down has none
		ids, known = c.ids(request.Messages), &Repairer{} // what stands for an id rests on all others
	}
	if known.wire == nil {
		known.wire, known.ends = make([]byte, 0, sizeOf(request.Messages)), make([]int, 0, len(request.Messages))
	}
	for i := known.wired(); i < len(request.Messages); i++ {
		message, err := c.message(&request.Messages[i], ids)
		if err != nil {
			return nil, err
		}
		raw, err := marshal(message)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			known.wire = append(known.wire, ',')
		}
		known.wire = append(known.wire, raw...)
		known.ends = append(known.ends, len(known.wire))
	}
	return known.wire, nil
}
