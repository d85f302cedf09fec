package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// testCase is one message and the rules that it breaks. In the message {"$repeat": x, "$times": n} stands for a string or
// a list made of n times x, and {"$bytes": n} for n zero bytes.
type testCase struct {
	Message string      `json:"message"`
	Value   any         `json:"value"`
	Broken  []violation `json:"broken"`
}

type violation struct {
	Field string `json:"field"`
	Rule  string `json:"rule"`
}

// makeCases makes cases around the border of every rule and lets protovalidate judge them. Each rule has to be broken
// by one of them, else the table would prove nothing about it.
func makeCases(tables []table) ([]byte, error) {
	var all []testCase
	for _, t := range tables {
		base := baseMessage(t.message)
		cases := []testCase{{Message: string(t.message.FullName()), Value: map[string]any{}}, {Message: string(t.message.FullName()), Value: base}}
		for _, f := range t.fields {
			for _, v := range fieldSamples(f) {
				cases = append(cases, testCase{Message: string(t.message.FullName()), Value: with(base, f.desc, v)})
			}
		}
		broken := map[string]bool{}
		valid := false
		for i := range cases {
			if err := judge(t.message, &cases[i]); err != nil {
				return nil, err
			}
			valid = valid || len(cases[i].Broken) == 0
			for _, v := range cases[i].Broken {
				broken[strings.TrimRight(v.Field, "[0123456789]")+" "+v.Rule] = true
			}
		}
		if err := covered(t, broken, valid); err != nil {
			return nil, err
		}
		all = append(all, cases...)
	}
	var out strings.Builder
	out.WriteString("[\n")
	for i, c := range all {
		line, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		out.WriteString("  " + string(line))
		if i < len(all)-1 {
			out.WriteString(",")
		}
		out.WriteString("\n")
	}
	out.WriteString("]\n")
	return []byte(out.String()), nil
}

func covered(t table, broken map[string]bool, valid bool) error {
	if !valid {
		return fmt.Errorf("%s: no case keeps all its rules", t.message.FullName())
	}
	for _, f := range t.fields {
		name := string(f.desc.Name())
		for _, c := range slices.Concat(f.checks, f.each) {
			if !broken[name+" "+c.id] {
				return fmt.Errorf("%s: no case breaks %s", f.desc.FullName(), c.id)
			}
		}
		if f.required != "" && !broken[name+" required"] {
			return fmt.Errorf("%s: no case breaks required", f.desc.FullName())
		}
	}
	return nil
}

// judge asks protovalidate.
func judge(m protoreflect.MessageDescriptor, c *testCase) error {
	text, err := json.Marshal(expand(c.Value))
	if err != nil {
		return err
	}
	msg := dynamicpb.NewMessage(m)
	if err := protojson.Unmarshal(text, msg); err != nil {
		return fmt.Errorf("%s: case %.200s: %w", m.FullName(), text, err)
	}
	c.Broken = []violation{}
	err = protovalidate.Validate(msg)
	var invalid *protovalidate.ValidationError
	if err != nil && !errors.As(err, &invalid) {
		return fmt.Errorf("%s: %w", m.FullName(), err)
	}
	if invalid == nil {
		return nil
	}
	for _, v := range invalid.Violations {
		c.Broken = append(c.Broken, violation{Field: protovalidate.FieldPathString(v.Proto.GetField()), Rule: v.Proto.GetRuleId()})
	}
	return nil
}

func fieldSamples(f field) []any {
	var out []any
	for _, c := range f.checks {
		out = append(out, c.samples...)
	}
	for _, c := range f.each {
		for _, v := range c.samples {
			out = append(out, []any{v}, []any{sampleItem(f.desc), v})
		}
	}
	return out
}

// with is a copy of a message with one field set.
func with(base map[string]any, fd protoreflect.FieldDescriptor, v any) map[string]any {
	out := map[string]any{}
	for k, old := range base {
		out[k] = old
	}
	out[fd.JSONName()] = v
	return out
}

// baseMessage is a message that keeps as many rules as simple values can: every field of it is set.
func baseMessage(m protoreflect.MessageDescriptor) map[string]any {
	out := map[string]any{}
	for i := range m.Fields().Len() {
		fd := m.Fields().Get(i)
		if fd.IsMap() || fd.ContainingOneof() != nil && !fd.ContainingOneof().IsSynthetic() {
			continue
		}
		v := sampleItem(fd)
		if fd.IsList() {
			v = []any{v}
		}
		out[fd.JSONName()] = v
	}
	return out
}

func sampleItem(fd protoreflect.FieldDescriptor) any {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return "a"
	case protoreflect.BytesKind:
		return map[string]any{"$bytes": 1}
	case protoreflect.BoolKind:
		return true
	case protoreflect.EnumKind:
		return 1
	case protoreflect.MessageKind, protoreflect.GroupKind:
		if fd.Message().FullName().Parent() == "google.protobuf" {
			return nil
		}
		return baseMessage(fd.Message())
	default:
		return jsonNumber(fd.Kind(), 1)
	}
}

// lists are lists around a length.
func lists(fd protoreflect.FieldDescriptor, n uint64) []any {
	var out []any
	for _, m := range neighbours(n) {
		out = append(out, map[string]any{"$repeat": []any{sampleItem(fd)}, "$times": m})
	}
	return out
}

// around are strings around a length, of plain letters and of ones that take more than one byte or code unit.
func around(n uint64, fill string) []any {
	var out []any
	for _, m := range neighbours(n) {
		out = append(out, map[string]any{"$repeat": "a", "$times": m}, map[string]any{"$repeat": fill, "$times": m})
		if fill == "é" && m%2 == 0 {
			out = append(out, map[string]any{"$repeat": fill, "$times": m / 2})
		}
	}
	return out
}

func neighbours(n uint64) []uint64 {
	if n == 0 {
		return []uint64{0, 1}
	}
	return []uint64{n - 1, n, n + 1}
}

// expand writes the short forms of a case out.
func expand(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = expand(v[i])
		}
		return out
	case map[string]any:
		if n, ok := v["$bytes"]; ok {
			return base64.StdEncoding.EncodeToString(make([]byte, count(n)))
		}
		if n, ok := v["$times"]; ok {
			if s, isText := v["$repeat"].(string); isText {
				return strings.Repeat(s, count(n))
			}
			items, _ := v["$repeat"].([]any)
			return slices.Repeat(expand(items).([]any), count(n))
		}
		out := map[string]any{}
		for k, inner := range v {
			out[k] = expand(inner)
		}
		return out
	default:
		return v
	}
}

func count(v any) int {
	switch n := v.(type) {
	case int:
		return n
	case uint64:
		return int(n) //nolint:gosec // lengths in rules are small
	default:
		return 0
	}
}
