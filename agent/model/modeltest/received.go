package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// Received is a request as it came in.
type Received struct {
	// Number counts requests from 1.
	Number int
	Header http.Header
	Body   []byte

	Model    string
	Stream   bool
	Messages []Message
	Tools    []Tool
	// Fields are the top-level members of the body.
	Fields map[string]json.RawMessage
	// Refused is why the server refused the request, empty if it did not.
	Refused string
}

// Message is one entry of the history in a request.
type Message struct {
	Role   string
	Text   string
	Images []string
	Calls  []Call
	CallID string
	// Fields are all members of the message.
	Fields map[string]json.RawMessage
}

// Tool is an offered tool.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage
	Strict      bool
}

// System returns the system messages.
func (r *Received) System() string {
	var texts []string
	for _, m := range r.Messages {
		if m.Role == "system" || m.Role == "developer" {
			texts = append(texts, m.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// LastUser returns the last thing the person wrote.
func (r *Received) LastUser() string {
	if at := r.lastUser(); at >= 0 {
		return r.Messages[at].Text
	}
	return ""
}

// lastUser returns the position of the last user message that is not there to carry the images of tool results.
func (r *Received) lastUser() int {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		carrier := len(r.Messages[i].Images) > 0 && i > 0 && r.Messages[i-1].Role == "tool"
		if r.Messages[i].Role == "user" && !carrier {
			return i
		}
	}
	return -1
}

// Round returns how often the model has answered since the person wrote last.
func (r *Received) Round() int {
	rounds := 0
	for _, m := range r.Messages[r.lastUser()+1:] {
		if m.Role == "assistant" {
			rounds++
		}
	}
	return rounds
}

// LastResult returns the last tool result.
func (r *Received) LastResult() string { return r.Result("") }

// Result returns the last result of a tool, of any tool if the name is empty.
func (r *Received) Result(tool string) string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		m := r.Messages[i]
		if m.Role == "tool" && (tool == "" || r.toolOf(m.CallID) == tool) {
			return m.Text
		}
	}
	return ""
}

// toolOf returns the name of the tool that a call used.
func (r *Received) toolOf(id string) string {
	for _, m := range r.Messages {
		for _, call := range m.Calls {
			if call.ID == id {
				return call.Name
			}
		}
	}
	return ""
}

// Tool returns an offered tool.
func (r *Received) Tool(name string) (Tool, bool) {
	for _, tool := range r.Tools {
		if tool.Name == name {
			return tool, true
		}
	}
	return Tool{}, false
}

// Collect returns the values of key, wherever they are in the JSON documents that text has, in order. Text around the
// documents does no harm, so fenced results work.
func Collect(text, key string) []string {
	var out []string
	for at := 0; at < len(text); {
		if text[at] != '{' && text[at] != '[' {
			at++
			continue
		}
		dec := json.NewDecoder(strings.NewReader(text[at:]))
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			at++
			continue
		}
		out = collect(out, raw, key)
		at += int(dec.InputOffset())
	}
	return out
}

// collect walks over tokens, because a map would lose the order.
func collect(out []string, raw json.RawMessage, key string) []string {
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	type level struct {
		object, value bool
		wanted        bool
	}
	var stack []level
	for {
		token, err := dec.Token()
		if err != nil {
			return out
		}
		top := &level{}
		if len(stack) > 0 {
			top = &stack[len(stack)-1]
		}
		if text, ok := token.(string); ok && top.object && !top.value {
			top.value, top.wanted = true, text == key
			continue
		}
		wanted := top.wanted
		top.value = false
		switch token := token.(type) {
		case json.Delim:
			if token == '{' || token == '[' {
				stack = append(stack, level{object: token == '{', wanted: token == '[' && wanted})
			} else {
				stack = stack[:len(stack)-1]
			}
		case string, json.Number, bool:
			if wanted {
				out = append(out, fmt.Sprint(token))
			}
		}
	}
}

// placeholder is "{{tool.key}}" or "{{tool.key[0]}}" in the arguments of a call.
func placeholder() *regexp.Regexp {
	return regexp.MustCompile(`"\{\{([A-Za-z0-9_-]*)\.([A-Za-z0-9_-]+)(\[(\d+)\])?\}\}"`)
}

// expand replaces the placeholders in arguments.
func expand(arguments string, to *Received) (string, error) {
	if !strings.Contains(arguments, "{{") {
		return arguments, nil
	}
	var missing error
	out := placeholder().ReplaceAllStringFunc(arguments, func(match string) string {
		parts := placeholder().FindStringSubmatch(match)
		values := Collect(to.Result(parts[1]), parts[2])
		var value any = values
		if parts[3] != "" {
			n, err := strconv.Atoi(parts[4])
			if err != nil || n >= len(values) {
				missing = fmt.Errorf("no value for %s in %q", match, to.Result(parts[1]))
				return `""`
			}
			value = values[n]
		}
		text, _ := json.Marshal(value) // strings
		return string(text)
	})
	return out, missing
}
