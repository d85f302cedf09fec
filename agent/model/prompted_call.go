package model

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// opens is what may begin a call in a text.
type opens int

const (
	opensNothing opens = iota
	opensFence         // ``` or ~~~ at the beginning of a line
	opensTag           // <tool_call> and its kin
	opensValue         // a JSON value as the whole answer
	opensThought       // <think> at the beginning
)

// maxIndent is how many spaces may stand before a fence.
const maxIndent = 3

const thoughtBegin, thoughtEnd = "<think>", "</think>"

// callTags are the marks that models put around calls because they were made to, each with its end.
func callTags() map[string]string {
	return map[string]string{
		"<tool_call>": "</tool_call>", "<function_call>": "</function_call>", "[TOOL_CALLS]": "",
	}
}

// opening returns how much of the rest is certainly text, and what begins after that.
func (r *callReader) opening(final bool) (int, opens) {
	if !r.begun {
		start := len(r.rest) - len(strings.TrimLeft(r.rest, jsonSpace))
		head := r.rest[start:]
		switch {
		case head == "":
			return start, opensNothing
		case strings.HasPrefix(head, thoughtBegin):
			return start, opensThought
		case strings.HasPrefix(thoughtBegin, head) && !final:
			return start, opensNothing
		case head[0] == '{' || head[0] == '[' && !strings.HasPrefix(head, "[T"):
			return start, opensValue
		}
	}
	for at := range len(r.rest) {
		tail := r.rest[at:]
		switch {
		case (tail[0] == '`' || tail[0] == '~') && r.lineBegins(at):
			if fenceOf(tail) != "" {
				return at, opensFence
			}
			if !final && len(tail) < 3 && strings.Trim(tail, tail[:1]) == "" {
				return at, opensNothing
			}
		case tail[0] == '<' || tail[0] == '[':
			for tag := range callTags() {
				if strings.HasPrefix(tail, tag) {
					return at, opensTag
				}
				if !final && strings.HasPrefix(tag, tail) {
					return at, opensNothing
				}
			}
		}
	}
	return len(r.rest), opensNothing
}

// lineBegins reports whether there is only a little space between the beginning of the line and a place in the rest.
func (r *callReader) lineBegins(at int) bool {
	start := at
	for start > 0 && at-start <= maxIndent && r.rest[start-1] == ' ' { // no further: a line may be very long
		start--
	}
	indent := at - start
	switch {
	case start > 0:
		return r.rest[start-1] == '\n' && indent <= maxIndent
	case r.indent < 0:
		return false
	}
	return r.indent+indent <= maxIndent
}

// fenceOf returns the fence with which text begins, if it does.
func fenceOf(text string) string {
	n := 0
	for n < len(text) && text[n] == text[0] {
		n++
	}
	if n < 3 {
		return ""
	}
	return text[:n]
}

// fenceEnd returns where the content of a block ends and where what follows begins; -1 if it does not end.
func fenceEnd(text, fence string, final bool) (int, int) {
	for at := 0; at < len(text); {
		line, _, whole := strings.Cut(text[at:], "\n")
		trimmed := strings.Trim(line, " \t\r")
		if len(trimmed) >= len(fence) && strings.Trim(trimmed, fence[:1]) == "" && (whole || final) {
			after := at + len(line)
			if whole {
				after++
			}
			return at, after
		}
		at += len(line) + 1
	}
	return -1, -1
}

// mayBeValue reports whether text may be the beginning of an object, or of a list of objects.
func mayBeValue(text string) bool {
	text = strings.TrimLeft(text, jsonSpace)
	if text == "" {
		return true
	}
	inner := strings.TrimLeft(text[1:], jsonSpace)
	switch text[0] {
	case '{':
		return inner == "" || inner[0] == '"' || inner[0] == '}'
	case '[':
		return inner == "" || inner[0] == '{'
	}
	return false
}

// callsOf returns the calls that a JSON text stands for, none if it stands for something else. Where the text is not
// marked as a call, it has to be one beyond doubt: people ask for JSON too.
func (r *callReader) callsOf(text string, marked bool) []Call {
	raw := json.RawMessage(strings.Trim(text, jsonSpace))
	if !json.Valid(raw) {
		return nil
	}
	if wrapped := asObject(raw).list("tool_calls"); len(wrapped) > 0 {
		raw, _ = marshal(wrapped) // decoded before
	}
	var calls []Call
	for _, element := range asList(raw) {
		call, ok := r.callOf(element, marked)
		if !ok || len(r.calls)+len(calls) == maxCalls {
			return nil
		}
		calls = append(calls, call)
	}
	return calls
}

// callOf reads one object as a call. Where it has a member twice, which one is meant is not ours to choose: all of it stands
// for the arguments, which no tool takes.
func (r *callReader) callOf(raw json.RawMessage, marked bool) (Call, bool) {
	doc := asObject(raw)
	inner := doc["function"]
	call, ok := r.read(doc, marked)
	if ok && (twice(raw) || twice(inner)) {
		call.Arguments = clean(string(raw))
	}
	return call, ok
}

// twice reports whether an object has a member twice.
func twice(raw json.RawMessage) bool {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return false
	}
	seen := make(map[string]bool)
	for dec.More() {
		token, err := dec.Token()
		name, _ := token.(string)
		if err != nil || seen[name] {
			return err == nil
		}
		seen[name] = true
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return false // not reachable: it was valid before
		}
	}
	return false
}

// read reads the members of an object as a call.
func (r *callReader) read(doc fields, marked bool) (Call, bool) {
	if inner := doc.object("function"); inner != nil {
		doc = inner
	}
	name := ""
	for _, key := range []string{"tool", "name", "tool_name", "function"} {
		if kind(doc[key]) == '"' && name == "" {
			name = doc.text(key)
			marked = marked || key == "tool" && doc.has("arguments")
			delete(doc, key)
		}
	}
	if name == "" || !marked && !r.known[name] {
		return Call{}, false
	}
	others := len(doc.without("id", "type"))
	for _, key := range []string{"arguments", "args", "parameters", "input"} {
		if raw, found := doc[key]; found && (others <= 1 || key == "arguments") {
			return Call{Name: name, Arguments: plainArguments(raw)}, true
		}
	}
	if len(doc) > 0 && !marked {
		return Call{}, false
	}
	rest, _ := marshal(doc) // decoded before; the arguments stand beside the name
	return Call{Name: name, Arguments: string(rest)}, true
}

// plainArguments returns arguments as every other provider sends them: an object, or whatever the model wrote instead.
func plainArguments(raw json.RawMessage) string {
	if kind(raw) == '"' {
		inner := asText(raw)
		if strings.Trim(inner, jsonSpace) == "" {
			return "{}"
		}
		if isObject(inner) {
			return inner
		}
	}
	if isNull(raw) {
		return "{}"
	}
	return clean(string(raw))
}

// begunName finds the name in a call that did not come to its end.
func begunName() *regexp.Regexp {
	return regexp.MustCompile(`"(?:tool|name|tool_name)"\s*:\s*"([^"\\]+)`)
}

// begunCall matches what hardly is anything else than a call.
func begunCall() *regexp.Regexp { return regexp.MustCompile(`^\s*\[?\s*\{\s*"tool`) }

// begins takes what is left of a call when an answer was cut off, and says whether it was one.
func (r *callReader) begins(body string, marked bool) bool {
	name := ""
	if found := begunName().FindStringSubmatch(body); found != nil {
		name = found[1]
	}
	if !marked && !r.known[name] && !begunCall().MatchString(body) {
		return false
	}
	r.open = append(r.open, Call{Name: name, Arguments: clean(body)})
	return true
}
