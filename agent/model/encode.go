package model

import (
	"slices"
	"unicode/utf8"
)

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

// appendMessages appends the messages of a request, with room for some bytes more. Those that the same client has written down
// for the request before are not written down again.
func (c *Client) appendMessages(dst []byte, request Request, more int) ([]byte, error) {
	known := request.Known
	if !known.returned(request.Messages) {
		known = &Repairer{}
	}
	if known.by != c {
		known.by, known.wire, known.wired = c, make([]byte, 0, sizeOf(request.Messages)), 0
	}
	for ; known.wired < len(request.Messages); known.wired++ {
		wire := known.wire
		if known.wired > 0 {
			wire = append(wire, ',')
		}
		wire, err := c.appendMessage(wire, &request.Messages[known.wired])
		if err != nil {
			return nil, err
		}
		known.wire = wire
	}
	dst = append(slices.Grow(dst, len(known.wire)+more), `,"messages":[`...)
	return append(dst, known.wire...), nil
}

// appendMessage appends the wire form of a message, its members in the order of their names, as those of a map: a request
// begins with the same bytes as the one before, also as versions of this program before have sent it, which providers remember.
func (c *Client) appendMessage(dst []byte, m *Message) ([]byte, error) {
	dst = append(dst, '{')
	echo := ""
	if m.Role == RoleAssistant && c.echoes(m) {
		echo = c.reasoningField()
	}
	dst = c.appendEcho(dst, echo != "" && echo < "content", echo, m)
	dst = c.appendContent(append(dst, `"content":`...), m)
	dst = append(dst, ',')
	dst = c.appendEcho(dst, echo > "content" && echo < "role", echo, m)
	role := string(m.Role)
	if m.Role == RoleSystem && c.switches.DeveloperRole {
		role = "developer"
	}
	dst = append(appendString(append(dst, `"role":`...), role), ',')
	dst = c.appendEcho(dst, echo > "role" && echo < "tool_calls", echo, m)
	switch {
	case m.Role == RoleTool:
		dst = append(appendString(append(dst, `"tool_call_id":`...), m.CallID), ',')
	case m.Role == RoleAssistant && len(m.Calls) > 0:
		dst = append(dst, `"tool_calls":[`...)
		for i := range m.Calls {
			var err error
			if dst, err = c.appendCall(dst, &m.Calls[i]); err != nil {
				return nil, err
			}
			dst = append(dst, ',')
		}
		dst = append(dst[:len(dst)-1], `],`...)
	}
	dst = c.appendEcho(dst, echo > "tool_calls", echo, m)
	dst[len(dst)-1] = '}'
	return dst, nil
}

// appendEcho appends, if it is its turn, what the model thought.
func (c *Client) appendEcho(dst []byte, now bool, name string, m *Message) []byte {
	if !now {
		return dst
	}
	return append(appendString(append(appendString(dst, name), ':'), m.Reasoning), ',')
}

// appendContent appends the text of a message, or its parts if it has images.
func (c *Client) appendContent(dst []byte, m *Message) []byte {
	switch {
	case m.Role == RoleAssistant && m.Text == "" && len(m.Calls) > 0:
		return append(dst, `null`...)
	case len(m.Images) == 0:
		return appendString(dst, m.Text)
	case c.switches.NoImages && m.Text == "":
		return appendString(dst, imageRemark)
	case c.switches.NoImages:
		return appendString(dst, m.Text+"\n"+imageRemark)
	}
	dst = append(dst, '[')
	if m.Text != "" {
		dst = append(appendString(append(dst, `{"text":`...), m.Text), `,"type":"text"},`...)
	}
	for _, image := range m.Images {
		dst = append(appendString(append(dst, `{"image_url":{"url":`...), image), `},"type":"image_url"},`...)
	}
	dst[len(dst)-1] = ']'
	return dst
}

// appendCall appends the wire form of a call.
func (c *Client) appendCall(dst []byte, call *Call) ([]byte, error) {
	if len(call.Extra) > 0 {
		out, err := c.wireCall(*call)
		if err != nil {
			return nil, err
		}
		raw, err := marshal(out)
		return append(dst, raw...), err
	}
	dst = appendString(append(dst, `{"function":{"arguments":`...), call.Arguments)
	dst = appendString(append(dst, `,"name":`...), call.Name)
	dst = appendString(append(dst, `},"id":`...), call.ID)
	return append(dst, `,"type":"function"}`...), nil
}

// appendString appends a text as JSON, with the bytes that marshal writes.
func appendString(dst []byte, text string) []byte {
	const digits = "0123456789abcdef"
	dst = append(slices.Grow(dst, len(text)+2), '"')
	from := 0
	for i := 0; i < len(text); {
		b := text[i]
		if b >= ' ' && b != '"' && b != '\\' && b < utf8.RuneSelf {
			i++
			continue
		}
		if b >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				dst = append(append(dst, text[from:i]...), `\ufffd`...)
				from = i + size
			case r == '\u2028', r == '\u2029':
				dst = append(append(dst, text[from:i]...), `\u202`...)
				dst = append(dst, digits[r&0xf])
				from = i + size
			}
			i += size
			continue
		}
		dst = append(append(dst, text[from:i]...), '\\')
		switch b {
		case '"', '\\':
			dst = append(dst, b)
		case '\b':
			dst = append(dst, 'b')
		case '\f':
			dst = append(dst, 'f')
		case '\n':
			dst = append(dst, 'n')
		case '\r':
			dst = append(dst, 'r')
		case '\t':
			dst = append(dst, 't')
		default:
			dst = append(dst, 'u', '0', '0', digits[b>>4], digits[b&0xf])
		}
		i++
		from = i
	}
	return append(append(dst, text[from:]...), '"')
}
