package model

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// fields is a JSON object whose members are looked at one by one, so that one odd member does not spoil the rest.
type fields map[string]json.RawMessage

// object returns a member that is an object, or nil.
func (f fields) object(name string) fields { return asObject(f[name]) }

// text returns a member that is a string, or a number in its own spelling.
func (f fields) text(name string) string { return asText(f[name]) }

// list returns the elements of a member that is an array; an object counts as an array of one.
func (f fields) list(name string) []json.RawMessage { return asList(f[name]) }

// has reports whether a member is there and not null.
func (f fields) has(name string) bool { return !isNull(f[name]) }

// integer returns a member that is a whole number, also one in quotes or with a fraction of zero.
func (f fields) integer(name string) (int64, bool) {
	text := f.text(name)
	if text == "" {
		return 0, false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > 1<<53 {
		return 0, false
	}
	return int64(n), true
}

// without returns the members that have another name and a value.
func (f fields) without(names ...string) fields {
	out := make(fields)
	for name, value := range f {
		if !slices.Contains(names, name) && !isNull(value) {
			out[name] = value
		}
	}
	return out
}

// only returns the members that have one of the names.
func (f fields) only(names ...string) fields {
	out := make(fields)
	for _, name := range names {
		if value, found := f[name]; found {
			out[name] = value
		}
	}
	return out
}

func asObject(raw json.RawMessage) fields {
	if kind(raw) != '{' {
		return nil
	}
	var out fields
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

func asList(raw json.RawMessage) []json.RawMessage {
	switch kind(raw) {
	case '{':
		return []json.RawMessage{raw}
	case '[':
		var out []json.RawMessage
		if json.Unmarshal(raw, &out) != nil {
			return nil
		}
		return out
	}
	return nil
}

func asText(raw json.RawMessage) string {
	switch k := kind(raw); {
	case k == '"':
		var out string
		if json.Unmarshal(raw, &out) != nil {
			return ""
		}
		return clean(out)
	case k == '-', k >= '0' && k <= '9':
		return string(raw)
	}
	return ""
}

// kind returns the first character of a JSON value, or zero if there is none.
func kind(raw json.RawMessage) byte {
	trimmed := bytes.TrimLeft(raw, jsonSpace)
	if len(trimmed) == 0 {
		return 0
	}
	return trimmed[0]
}

func isNull(raw json.RawMessage) bool { return kind(raw) == 0 || kind(raw) == 'n' }

// isNothing reports whether a value says nothing: null, "", {}, [], 0 or false.
func isNothing(raw json.RawMessage) bool {
	switch strings.Join(strings.Fields(string(raw)), "") {
	case "", "null", `""`, "{}", "[]", "0", "false":
		return true
	}
	return false
}

// marshal is json.Marshal without escaping <, > and &, which would cost the model tokens and change nothing.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
