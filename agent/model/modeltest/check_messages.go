package modeltest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// maxCallID is the longest id of a call that all providers take.
const maxCallID = 40

// checkMessages fills in the messages and refuses a history that some provider refuses.
func (h *Handler) checkMessages(received *Received) *refused {
	var raw []map[string]json.RawMessage
	if json.Unmarshal(received.Fields["messages"], &raw) != nil {
		return badRequest("messages", "Invalid type for 'messages': expected an array of objects")
	}
	if len(raw) == 0 {
		return badRequest("messages", "Invalid 'messages': empty array. Expected an array with minimum length 1")
	}
	order := turns{waiting: make(map[string]bool), ids: make(map[string]bool)}
	for i, fields := range raw {
		message, refusal := h.message(fmt.Sprintf("messages[%d]", i), fields)
		if refusal == nil {
			received.Messages = append(received.Messages, message)
			refusal = order.next(fmt.Sprintf("messages[%d]", i), message)
		}
		if refusal != nil {
			return refusal
		}
	}
	if refusal := order.closed("messages"); refusal != nil {
		return refusal
	}
	if last := received.Messages[len(raw)-1].Role; last != "user" && last != "tool" {
		return badRequest("messages", "Expected last role User or Tool but got %s", last)
	}
	return nil
}

// message reads one message and checks it by itself.
func (h *Handler) message(at string, fields map[string]json.RawMessage) (Message, *refused) {
	m := Message{Fields: fields}
	if json.Unmarshal(fields["role"], &m.Role) != nil {
		return m, badRequest(at+".role", "Missing required parameter: '%s.role'.", at)
	}
	allowed := []string{"role", "content"}
	switch m.Role {
	case "system", "developer", "user":
	case "assistant":
		allowed = append(allowed, "tool_calls")
		if h.config.Reasoning || h.config.NeedsReasoning {
			allowed = append(allowed, "reasoning_content", "reasoning")
		}
	case "tool":
		allowed = append(allowed, "tool_call_id")
	default:
		return m, badRequest(at+".role",
			"Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'.", m.Role)
	}
	if h.config.NoTools && (m.Role == "tool" || fields["tool_calls"] != nil) {
		return m, badRequest(at, "this model does not support tools")
	}
	for name := range fields {
		if !slices.Contains(allowed, name) {
			return m, badRequest(at, "Additional properties are not allowed ('%s' was unexpected) - '%s'", name, at)
		}
	}
	if refusal := m.content(at, fields["content"]); refusal != nil {
		return m, refusal
	}
	if m.Role == "tool" && (json.Unmarshal(fields["tool_call_id"], &m.CallID) != nil || m.CallID == "") {
		return m, badRequest(at,
			"Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.")
	}
	if raw, found := fields["tool_calls"]; found {
		if h.config.NeedsReasoning && fields["reasoning_content"] == nil && fields["reasoning"] == nil {
			return m, badRequest(at, "Missing `reasoning_content` field in the assistant message at message index %s.", at)
		}
		return m, h.calls(at, raw, &m)
	}
	if m.Role == "assistant" && m.Text == "" {
		return m, badRequest(at, "Invalid value for 'content': expected a string, got null.")
	}
	return m, nil
}

// content reads the content, a string or parts.
func (m *Message) content(at string, raw json.RawMessage) *refused {
	at += ".content"
	if m.Role == "assistant" && (string(raw) == "null" || len(raw) == 0) {
		return nil
	}
	if json.Unmarshal(raw, &m.Text) == nil && string(raw) != "null" {
		if strings.TrimSpace(m.Text) == "" {
			return badRequest(at, "text content blocks must contain non-whitespace text")
		}
		return nil
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if json.Unmarshal(raw, &parts) != nil || len(parts) == 0 {
		return badRequest(at, "Invalid type for '%s': expected one of a string or array of objects.", at)
	}
	for _, part := range parts {
		switch {
		case part.Type == "text" && strings.TrimSpace(part.Text) != "":
			m.Text += part.Text
		case part.Type == "image_url" && m.Role != "user":
			return badRequest(at,
				"Image URLs are only allowed for messages with role 'user', but this message with role '%s' contains an image URL.", m.Role)
		case part.Type == "image_url" && isImageURL(part.ImageURL.URL):
			m.Images = append(m.Images, part.ImageURL.URL)
		default:
			return badRequest(at, "Invalid part of type '%s'", part.Type)
		}
	}
	return nil
}

func isImageURL(url string) bool {
	return strings.HasPrefix(url, "data:image/") || strings.HasPrefix(url, "https://")
}

// shortID is what the pickiest provider takes as the id of a call.
func shortID() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9]{9}$`) }

// legalName is what the strictest provider takes as the name of a tool.
func legalName() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`) }

// calls reads the calls of an assistant message.
func (h *Handler) calls(at string, raw json.RawMessage, m *Message) *refused {
	at += ".tool_calls"
	var list []map[string]json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return badRequest(at, "Invalid type for '%s': expected an array of objects.", at)
	}
	if len(list) == 0 {
		return badRequest(at, "Invalid '%s': empty array. Expected an array with minimum length 1.", at)
	}
	for i, fields := range list {
		at := fmt.Sprintf("%s[%d]", at, i)
		var call Call
		var kind string
		var function map[string]json.RawMessage
		if json.Unmarshal(fields["id"], &call.ID) != nil || call.ID == "" || len(call.ID) > maxCallID {
			return badRequest(at+".id", "Missing or invalid '%s.id'", at)
		}
		if h.config.ShortIDs && !shortID().MatchString(call.ID) {
			return badRequest(at+".id", "The id %s has to be nine letters and digits.", call.ID)
		}
		if json.Unmarshal(fields["type"], &kind) != nil || kind != "function" {
			return badRequest(at+".type", "Missing required parameter: '%s.type'.", at)
		}
		if json.Unmarshal(fields["function"], &function) != nil ||
			json.Unmarshal(function["name"], &call.Name) != nil || !legalName().MatchString(call.Name) {
			return badRequest(at+".function.name", "Invalid '%s.function.name': string does not match pattern.", at)
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(function["arguments"], &call.Arguments) != nil ||
			json.Unmarshal([]byte(call.Arguments), &object) != nil || object == nil || halfPair(call.Arguments) {
			return badRequest(at+".function.arguments", "Invalid '%s.function.arguments': not a JSON object", at)
		}
		call.Extra = extraOf(fields, function)
		if refusal := h.checkExtra(at, call); refusal != nil {
			return refusal
		}
		m.Calls = append(m.Calls, call)
	}
	return nil
}

// extraOf returns the further members of a call, nil if there are none.
func extraOf(fields, function map[string]json.RawMessage) json.RawMessage {
	extra := make(map[string]any)
	for name, value := range fields {
		if name != "id" && name != "type" && name != "function" {
			extra[name] = value
		}
	}
	inner := make(map[string]any)
	for name, value := range function {
		if name != "name" && name != "arguments" {
			inner[name] = value
		}
	}
	if len(inner) > 0 {
		extra["function"] = inner
	}
	if len(extra) == 0 {
		return nil
	}
	out, _ := json.Marshal(extra) // decoded before
	return out
}

// checkExtra demands the further members that were sent with the call, and no others.
func (h *Handler) checkExtra(at string, call Call) *refused {
	h.mu.Lock()
	want := h.extras[call.ID]
	h.mu.Unlock()
	if sameJSON(want, call.Extra) {
		return nil
	}
	if len(want) == 0 {
		return badRequest(at, "Additional properties are not allowed - '%s'", at)
	}
	return badRequest(at,
		"Function call `%s` is missing what came with it: want %s, got %s", call.Name, want, call.Extra)
}

func sameJSON(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// turns checks the order of messages.
type turns struct {
	begun   bool
	waiting map[string]bool // calls without a result yet
	ids     map[string]bool // all calls
}

func (t *turns) next(at string, m Message) *refused {
	if m.Role == "tool" {
		if !t.waiting[m.CallID] {
			if t.ids[m.CallID] {
				return badRequest(at,
					"Duplicate value for 'tool_call_id' of '%s' in message with role 'tool', or a result that does not follow its call.", m.CallID)
			}
			return badRequest(at,
				"Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
		}
		delete(t.waiting, m.CallID)
		return nil
	}
	if refusal := t.closed(at); refusal != nil {
		return refusal
	}
	switch {
	case m.Role == "system" || m.Role == "developer":
		if t.begun {
			return badRequest(at, "Unexpected role '%s': system messages must come first.", m.Role)
		}
		return nil
	case m.Role == "assistant" && !t.begun:
		return badRequest(at, "Conversation roles must begin with user, not assistant.")
	}
	t.begun = true
	for _, call := range m.Calls {
		if t.ids[call.ID] {
			return badRequest(at, "Duplicate tool call id '%s'.", call.ID)
		}
		t.ids[call.ID], t.waiting[call.ID] = true, true
	}
	return nil
}

// closed demands that every call has its result.
func (t *turns) closed(at string) *refused {
	if len(t.waiting) == 0 {
		return nil
	}
	var open []string
	for id := range t.waiting {
		open = append(open, id)
	}
	sort.Strings(open)
	return badRequest(at, "An assistant message with 'tool_calls' must be followed by tool messages responding to "+
		"each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
}
