package modeltest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Policy is a step that acts by chance: it calls offered tools with arguments that their schemas allow, uses ids that
// results brought, and answers when it has had enough. It keeps no state and looks at no ids: the same seed does the same
// with the same conversation, whatever runs beside it.
type Policy struct {
	Seed uint64
	// Rounds is how often it calls tools at most before it answers; 3 unless set.
	Rounds int
	// Calls is how many calls one answer has at most; 2 unless set.
	Calls int
	// Tools are the only ones that it calls; all that are offered if empty.
	Tools []string
	// Wild makes calls that no schema allows as well: unknown tools, arguments that are no JSON.
	Wild bool
}

func (p Policy) reply(r *Received) Reply {
	if p.Rounds == 0 {
		p.Rounds = 3
	}
	if p.Calls == 0 {
		p.Calls = 2
	}
	sum := fnv.New64a()
	_, _ = fmt.Fprint(sum, p.Seed, r.Round(), len(r.Messages), r.LastUser()) // a hash takes everything
	chance := rand.New(rand.NewPCG(p.Seed, sum.Sum64()))
	tools := p.tools(r)
	if r.Round() >= p.Rounds || len(tools) == 0 || chance.IntN(4) == 0 {
		return Text(fmt.Sprintf("Done after %d rounds (%d).", r.Round(), chance.IntN(1000)))
	}
	reply := Reply{Unchecked: p.Wild, Piece: 1 + chance.IntN(20), Seed: chance.Uint64()}
	if chance.IntN(2) == 0 {
		reply.Text = "Let me see."
	}
	for range 1 + chance.IntN(p.Calls) {
		tool := tools[chance.IntN(len(tools))]
		switch wild := chance.IntN(6); {
		case p.Wild && wild == 0:
			reply.Calls = append(reply.Calls, NewCall("no_such_tool", "{}"))
		case p.Wild && wild == 1:
			reply.Calls = append(reply.Calls, NewCall(tool.Name, `{"x":`))
		default:
			reply.Calls = append(reply.Calls, NewCall(tool.Name, arguments(tool, r, chance)))
		}
	}
	return reply
}

// tools are those that it may call, by name, so that their order in the request does not matter.
func (p Policy) tools(r *Received) []Tool {
	var out []Tool
	for _, tool := range r.Tools {
		if len(p.Tools) == 0 || slices.Contains(p.Tools, tool.Name) {
			out = append(out, tool)
		}
	}
	slices.SortFunc(out, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// arguments makes up arguments for a tool.
func arguments(tool Tool, r *Received, chance *rand.Rand) map[string]any {
	var schema map[string]any
	if json.Unmarshal(tool.Parameters, &schema) != nil {
		return map[string]any{}
	}
	f := filler{chance: chance, received: r, root: schema}
	out, _ := f.value("", schema, 0).(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	return out
}

// filler makes up values that a schema allows.
type filler struct {
	chance   *rand.Rand
	received *Received
	root     map[string]any
}

const maxFill = 6 // levels of objects and lists

func (f filler) value(name string, schema map[string]any, depth int) any {
	if ref, ok := schema["$ref"].(string); ok {
		return f.value(name, f.resolve(ref), depth)
	}
	if values, ok := schema["enum"].([]any); ok && len(values) > 0 {
		return values[f.chance.IntN(len(values))]
	}
	if value, ok := schema["const"]; ok {
		return value
	}
	if parts, ok := schema["anyOf"].([]any); ok && len(parts) > 0 {
		part, _ := parts[f.chance.IntN(len(parts))].(map[string]any)
		return f.value(name, part, depth)
	}
	switch {
	case isType(schema, "object"):
		return f.object(schema, depth)
	case isType(schema, "array"):
		return f.list(name, schema, depth)
	case isType(schema, "boolean"):
		return f.chance.IntN(2) == 0
	case isType(schema, "integer"), isType(schema, "number"):
		return f.number(schema)
	case isType(schema, "null"):
		return nil
	}
	return f.text(name, schema)
}

func (f filler) resolve(ref string) map[string]any {
	at := f.root
	for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at, _ = at[step].(map[string]any)
	}
	return at
}

func (f filler) object(schema map[string]any, depth int) map[string]any {
	out := make(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		part, _ := properties[name].(map[string]any)
		if slices.Contains(required, any(name)) || depth < maxFill && f.chance.IntN(3) == 0 {
			out[name] = f.value(name, part, depth+1)
		}
	}
	return out
}

func (f filler) list(name string, schema map[string]any, depth int) []any {
	least, most := bound(schema, "minItems", 0), bound(schema, "maxItems", 3)
	items, _ := schema["items"].(map[string]any)
	out := []any{}
	for range least + f.chance.IntN(max(min(most, least+3)-least, 0)+1) {
		value := f.value(name, items, depth+1)
		same := func(other any) bool { return fmt.Sprint(other) == fmt.Sprint(value) }
		if !slices.ContainsFunc(out, same) || len(out) < least && schema["uniqueItems"] != true {
			out = append(out, value)
		}
	}
	return out
}

func (f filler) number(schema map[string]any) int {
	least, most := bound(schema, "minimum", 0), bound(schema, "maximum", 1000)
	if _, found := schema["exclusiveMinimum"]; found {
		least = bound(schema, "exclusiveMinimum", 0) + 1
	}
	return least + f.chance.IntN(max(min(most, least+100)-least, 0)+1)
}

// text is an id that a result brought where one is asked for, or some words.
func (f filler) text(name string, schema map[string]any) string {
	if known := f.known(name); len(known) > 0 {
		return known[f.chance.IntN(len(known))]
	}
	words := []string{"news", "mail", "work", "https://example.com/"}
	text := words[f.chance.IntN(len(words))]
	if strings.Contains(strings.ToLower(name), "url") || schema["format"] == "uri" {
		text = words[3]
	}
	for least := bound(schema, "minLength", 0); len(text) < least; {
		text += "x"
	}
	if most := bound(schema, "maxLength", len(text)); len(text) > most {
		text = text[:most]
	}
	return text
}

// known are the values that results have under the name of an argument: tabId and id for tabIds.
func (f filler) known(name string) []string {
	one := strings.TrimSuffix(name, "s")
	if !strings.HasSuffix(strings.ToLower(one), "id") {
		return nil
	}
	var out []string
	for _, m := range f.received.Messages {
		if m.Role == "tool" {
			out = append(out, Collect(m.Text, one)...)
		}
	}
	for _, m := range f.received.Messages {
		if m.Role == "tool" && len(out) == 0 {
			out = append(out, Collect(m.Text, "id")...)
		}
	}
	return out
}

func bound(schema map[string]any, keyword string, otherwise int) int {
	if n, ok := schema[keyword].(float64); ok {
		return int(n)
	}
	return otherwise
}
