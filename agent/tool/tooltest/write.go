package tooltest

import (
	"bytes"
	"encoding/json"
	"strings"

	"throwbar.dev/throwbar/agent/tool/schema"
)

// Write turns arguments in the form of the message into what a model of a profile writes: maps as lists of pairs, and null
// for what is left out where everything has to be there. Arguments of a tool that strict mode cannot say have the form of
// ProfilePortable.
func Write(profile schema.Profile, o *schema.Object, arguments string) string {
	w := writer{schema.LimitsOf(profile)}
	return w.object(o, read(arguments))
}

type writer struct{ limits schema.Limits }

// member is one member of an object, in order.
type member struct {
	name  string
	value json.RawMessage
}

// read reads the members of an object, numbers as they are spelled.
func read(raw string) []member {
	d := json.NewDecoder(strings.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil
	}
	var out []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil
		}
		out = append(out, member{name.(string), value})
	}
	return out
}

func (w writer) object(o *schema.Object, members []member) string {
	var parts []string
	set := map[string]bool{}
	add := func(name, value string) {
		key, _ := json.Marshal(name)
		parts, set[name] = append(parts, string(key)+":"+value), true
	}
	for _, m := range members {
		value := string(m.value)
		for _, p := range o.Properties {
			if p.Name == m.name {
				value = w.value(p.Node, m.value)
			}
		}
		add(m.name, value)
	}
	for _, p := range o.Properties {
		if w.limits.Required && !set[p.Name] {
			add(p.Name, "null")
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (w writer) value(n *schema.Node, raw json.RawMessage) string {
	switch n.Kind {
	case schema.KindObject:
		return w.object(n.Object, read(string(raw)))
	case schema.KindList:
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return string(raw)
		}
		parts := make([]string, len(items))
		for i, item := range items {
			parts[i] = w.value(n.Item, item)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case schema.KindMap:
		var parts []string
		for _, m := range read(string(raw)) {
			key, _ := json.Marshal(m.name)
			value := w.value(n.Item, m.value)
			if w.limits.Pairs {
				parts = append(parts, `{"key":`+string(key)+`,"value":`+value+"}")
			} else {
				parts = append(parts, string(key)+":"+value)
			}
		}
		if w.limits.Pairs {
			return "[" + strings.Join(parts, ",") + "]"
		}
		return "{" + strings.Join(parts, ",") + "}"
	default:
		return string(bytes.TrimSpace(raw))
	}
}
