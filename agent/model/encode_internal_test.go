package model

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

// slow is the plain way to write a request down: maps, and the standard library.
func (c *Client) slow(request Request) ([]byte, error) {
	rest, messages := wireRequest{Stream: true, Temperature: request.Temperature}, []map[string]any{}
	if c.switches.StreamOptions != Off {
		rest.StreamOptions = &wireStream{IncludeUsage: true}
	}
	if rest.MaxTokens = request.MaxTokens; c.switches.MaxTokensField == "max_completion_tokens" {
		rest.MaxTokens, rest.MaxCompletionTokens = 0, request.MaxTokens
	}
	ids := c.ids(request.Messages)
	for _, m := range request.Messages {
		encoded, err := c.slowMessage(m, ids)
		if err != nil {
			return nil, err
		}
		messages = append(messages, encoded)
	}
	c.toolOptions(&rest, request)
	var tools []wireTool
	for _, t := range request.Tools {
		tools = append(tools, wireTool{Type: "function", Function: wireFunction{t.Name, clean(t.Description), t.Parameters, t.Strict}})
	}
	body, err := marshal(struct {
		Model    string           `json:"model"`
		Messages []map[string]any `json:"messages"`
		Tools    []wireTool       `json:"tools,omitempty"`
		wireRequest
	}{cmp.Or(request.Model, c.model), messages, tools, rest})
	if err != nil {
		return nil, err
	}
	return c.withEffort(body, request.Effort)
}

func (c *Client) slowMessage(m Message, ids map[string]string) (map[string]any, error) {
	out := map[string]any{"role": string(m.Role), "content": c.content(&m)}
	switch m.Role {
	case RoleSystem:
		if c.switches.DeveloperRole {
			out["role"] = "developer"
		}
	case RoleTool:
		out["tool_call_id"] = cmp.Or(ids[m.CallID], m.CallID)
	case RoleAssistant:
		if c.echoes(&m) {
			out[c.reasoningField()] = m.Reasoning
		}
		var calls []fields
		for _, call := range m.Calls {
			call.ID = cmp.Or(ids[call.ID], call.ID)
			encoded, err := c.wireCall(call)
			if err != nil {
				return nil, err
			}
			calls = append(calls, encoded)
		}
		if len(calls) > 0 {
			out["tool_calls"] = calls
			if m.Text == "" {
				out["content"] = nil
			}
		}
	}
	return out, nil
}

// randomText has some of everything that a JSON string treats in its own way.
func randomText(r *rand.Rand) string {
	var out strings.Builder
	for range r.IntN(12) {
		switch r.IntN(4) {
		case 0:
			out.WriteByte(byte(r.IntN(256)))
		case 1:
			out.WriteRune([]rune{'\u2027', '\u2028', '\u2029', '\u202a', utf8.RuneError, 0x7f, '<', '&', '"', '\\', 0x1f600}[r.IntN(11)])
		case 2:
			out.WriteByte(byte(r.IntN(0x20)))
		default:
			out.WriteString("word ")
		}
	}
	return out.String()
}

func randomMessage(r *rand.Rand) Message {
	m := Message{Role: []Role{RoleSystem, RoleUser, RoleAssistant, RoleTool}[r.IntN(4)], Text: randomText(r)}
	switch m.Role {
	case RoleUser:
		for range r.IntN(3) {
			m.Images = append(m.Images, "data:image/png;base64,"+randomText(r))
		}
	case RoleTool:
		m.CallID = randomText(r)
	case RoleAssistant:
		if r.IntN(2) == 0 {
			m.Reasoning = randomText(r)
		}
		for range r.IntN(3) {
			call := Call{ID: randomText(r), Name: randomText(r), Arguments: randomText(r)}
			call.Extra = []json.RawMessage{
				nil, nil, json.RawMessage(`{}`), json.RawMessage(`{ "id": "x", "z":[1, 2], "a":"<\u2028>", "function": {"name":1,"y":{"b": 2}}}`),
				json.RawMessage(`{"throwbar_from":"http://h/v1","k":"v"}`), json.RawMessage(`{"throwbar_from":"http://other/v1","k":"v"}`),
			}[r.IntN(6)]
			m.Calls = append(m.Calls, call)
		}
	default:
	}
	return m
}

// TestARequestIsWhatMapsWrite holds a request against what maps make of it, byte for
// byte, over random requests and all switches, whatever their texts.
func TestARequestIsWhatMapsWrite(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		c, err := New(Config{BaseURL: "http://h/v1", Model: "m", HTTPClient: http.DefaultClient, Switches: Switches{
			StreamOptions: Toggle(r.IntN(3)), DeveloperRole: r.IntN(2) == 0, NoImages: r.IntN(2) == 0, ReasoningEcho: Echo(r.IntN(3)),
			ReasoningField: []string{"", "a", "member", "sin", "to", "zoo", "tool_call", "<é>"}[r.IntN(8)],
		}})
		if err != nil {
			t.Fatal(err)
		}
		request := Request{MaxTokens: r.IntN(2) * 100, Effort: []string{"", "low"}[r.IntN(2)], Model: []string{"", "a/<b>"}[r.IntN(2)]}
		for range r.IntN(6) {
			request.Messages = append(request.Messages, randomMessage(r))
		}
		request.Messages = append(request.Messages, Message{Role: RoleUser, Text: randomText(r)})
		if r.IntN(2) == 0 {
			request.Tools = []Tool{{Name: "closeTabs", Description: randomText(r), Parameters: json.RawMessage(`{ "type": "object" }`)}}
		}
		want, err := c.slow(request)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.encode(request)
		if err != nil || string(got) != string(want) {
			t.Fatalf("%v\n%s\nwant\n%s", err, got, want)
		}
	}
}
