package args

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// wellKnownForm says what the JSON of a well-known type is; empty for any other message.
func wellKnownForm(name protoreflect.FullName) string {
	switch name {
	case "google.protobuf.Timestamp":
		return "a time like 2026-01-31T09:00:00Z"
	case "google.protobuf.Duration":
		return "seconds like 5s or 1.5s"
	case "google.protobuf.FieldMask":
		return "field paths in lowerCamel with commas between, like windowId,tab.url"
	case "google.protobuf.Struct":
		return "an object"
	case "google.protobuf.ListValue":
		return "a list"
	case "google.protobuf.Value":
		return "any JSON value"
	case "google.protobuf.Any":
		return "an object with @type"
	case "google.protobuf.Empty":
		return "an object without members"
	case "google.protobuf.BoolValue":
		return "true or false"
	case "google.protobuf.StringValue":
		return "text"
	case "google.protobuf.BytesValue":
		return "base64 text"
	case "google.protobuf.FloatValue", "google.protobuf.DoubleValue":
		return "a number"
	case "google.protobuf.Int32Value", "google.protobuf.UInt32Value", "google.protobuf.Int64Value",
		"google.protobuf.UInt64Value":
		return "a whole number"
	default:
		return ""
	}
}

func wellKnown(name protoreflect.FullName) bool { return wellKnownForm(name) != "" }

// wellKnown reads a well-known type, whose JSON is not that of its fields.
func (d *decoder) wellKnown(m protoreflect.Message, fd protoreflect.FieldDescriptor, v *value, at string) {
	name := m.Descriptor().FullName()
	switch {
	case strings.HasSuffix(string(name), "Value") && m.Descriptor().Fields().Len() == 1 && name != "google.protobuf.ListValue":
		wrapped := m.Descriptor().Fields().Get(0)
		if x, ok := d.scalar(wrapped, v, at); ok {
			m.Set(wrapped, x)
		}
		return
	case name == "google.protobuf.Struct":
		v = d.structure(d.unquote(v, at, object, list), at)
	case name == "google.protobuf.Empty":
		v = d.unquote(v, at, object)
	case name == "google.protobuf.ListValue":
		v = d.unquote(v, at, list)
	case name == "google.protobuf.Any" && (!d.allowed(fd, v, at) || d.any(m, v, at)):
		return
	}
	if at, number := inexact(v, at); number != "" && name != "google.protobuf.Any" {
		d.wrong(at, "%s is not exact as a number here; write it as text", number)
		return
	}
	var raw strings.Builder
	v.write(&raw)
	options := protojson.UnmarshalOptions{}
	if d.options.Files != nil {
		options.Resolver = dynamicpb.NewTypes(d.options.Files)
	}
	if err := options.Unmarshal([]byte(raw.String()), m.Interface()); err != nil {
		d.wrong(at, "expected %s, got %s%s", wellKnownForm(name), v.describe(), hint(name, v))
	}
}

// structure reads a list of {key, value} as the object that it stands for.
func (d *decoder) structure(v *value, at string) *value {
	if v.kind != list {
		return v
	}
	out, seen := &value{kind: object}, map[string]bool{}
	entries := d.entries(v, at)
	if entries == nil {
		return v
	}
	for _, e := range *entries {
		if seen[e.name] {
			d.wrong(e.keyAt, "the same key as another one")
			continue
		}
		seen[e.name] = true
		out.members = append(out.members, member{e.name, e.value})
	}
	return out
}

// allowed says whether an Any is of a type that the rules list; without such a list it is not offered at all.
func (d *decoder) allowed(fd protoreflect.FieldDescriptor, v *value, at string) bool {
	types := anyTypes(fd)
	if len(types) == 0 {
		d.wrong(at, "cannot be set here")
		return false
	}
	for _, mem := range v.members {
		if mem.name == "@type" && mem.value.kind == text && slices.Contains(types, mem.value.text) {
			return true
		}
	}
	d.wrong(at, "expected an object whose @type is one of %s", strings.Join(types, ", "))
	return false
}

// any reads an Any as the message of its type, by the same rules as every other message. It says whether it has: a type whose
// JSON is not that of its fields, or that is not among the contract's files, is left to protojson.
func (d *decoder) any(m protoreflect.Message, v *value, at string) bool {
	rest, url := &value{kind: object}, ""
	for _, mem := range v.members {
		if mem.name == "@type" {
			url = mem.value.text
		} else {
			rest.members = append(rest.members, mem)
		}
	}
	name := protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:])
	if d.options.Files == nil || wellKnown(name) {
		return false
	}
	found, err := d.options.Files.FindDescriptorByName(name)
	md, ok := found.(protoreflect.MessageDescriptor)
	if err != nil || !ok {
		return false
	}
	inner := dynamicpb.NewMessage(md)
	d.message(inner, rest, at)
	d.problems = append(d.problems, d.broken(inner, at)...)
	raw, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(inner)
	if err != nil {
		d.wrong(at, "has no wire form: %v", err)
		return true
	}
	fields := m.Descriptor().Fields()
	m.Set(fields.ByName("type_url"), protoreflect.ValueOfString(url))
	m.Set(fields.ByName("value"), protoreflect.ValueOfBytes(raw))
	return true
}

// inexact finds a whole number that a double cannot keep.
func inexact(v *value, at string) (string, string) {
	switch v.kind {
	case number:
		if !exact(v.text) {
			return at, shown(v.text)
		}
	case list:
		for i, next := range v.items {
			if at, number := inexact(next, item(at, i)); number != "" {
				return at, number
			}
		}
	case object:
		for _, mem := range v.members {
			if at, number := inexact(mem.value, below(at, mem.name)); number != "" {
				return at, number
			}
		}
	default:
	}
	return at, ""
}

// exact says whether a number is no whole number in plain digits, or one that a double keeps.
func exact(spelling string) bool {
	if strings.Trim(spelling, "-0123456789") != "" {
		return true
	}
	whole, ok := new(big.Int), decimal(spelling) // not above 20 digits
	if ok {
		whole, ok = whole.SetString(spelling, 10)
	}
	if !ok {
		return false
	}
	_, accuracy := new(big.Float).SetInt(whole).Float64()
	return accuracy == big.Exact
}

// hint says how a value would be written that was probably meant.
func hint(name protoreflect.FullName, v *value) string {
	switch {
	case name == "google.protobuf.Duration" && v.kind == number:
		return fmt.Sprintf("; did you mean %ss?", v.text)
	case name == "google.protobuf.Duration" && strings.HasPrefix(v.text, "PT") && strings.HasSuffix(v.text, "S"):
		return "; did you mean " + strings.ToLower(strings.TrimPrefix(v.text, "PT")) + "?"
	case name == "google.protobuf.FieldMask" && v.kind == text && strings.Contains(v.text, "_"):
		return "; did you mean " + camel(v.text) + "?"
	case name == "google.protobuf.FieldMask" && v.kind == list:
		words := make([]string, len(v.items))
		for i, next := range v.items {
			words[i] = next.text
		}
		return "; did you mean " + strings.Join(words, ",") + "?"
	default:
		return ""
	}
}

func camel(s string) string {
	var out strings.Builder
	up := false
	for _, r := range s {
		if r == '_' {
			up = true
			continue
		}
		if up {
			out.WriteString(strings.ToUpper(string(r)))
		} else {
			out.WriteRune(r)
		}
		up = false
	}
	return out.String()
}
