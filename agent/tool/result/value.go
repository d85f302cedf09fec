package result

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind byte

const (
	literal kind = iota
	text
	list
	object
)

// Value is one JSON value in the making.
type Value struct {
	kind    kind
	text    string // the text, or the JSON of a literal
	items   []*Value
	members []member
}

type member struct {
	name  string
	value *Value
}

// Text is a string.
func Text(s string) *Value { return &Value{kind: text, text: s} }

// Literal is a value that is JSON already: a number, true, false or null.
func Literal(raw string) *Value { return &Value{kind: literal, text: raw} }

// List is a list.
func List(items ...*Value) *Value { return &Value{kind: list, items: items} }

// Texts is a list of strings.
func Texts(all []string) *Value {
	v := List()
	for _, s := range all {
		v.items = append(v.items, Text(s))
	}
	return v
}

// Object is an empty object.
func Object() *Value { return &Value{kind: object} }

// Add appends a member to an object and returns the object.
func (v *Value) Add(name string, value *Value) *Value {
	v.members = append(v.members, member{name, value})
	return v
}

// Append adds items to a list.
func (v *Value) Append(items ...*Value) { v.items = append(v.items, items...) }

// Get is a member of an object, or nil.
func (v *Value) Get(name string) *Value {
	for _, m := range v.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// Drop removes a member of an object.
func (v *Value) Drop(name string) {
	for i, m := range v.members {
		if m.name == name {
			v.members = append(v.members[:i:i], v.members[i+1:]...)
			return
		}
	}
}

// Merge appends the members of another object, but those whose names are taken, and says whether all found their place.
func (v *Value) Merge(other *Value) bool {
	whole := true
	for _, m := range other.members {
		if v.Get(m.name) != nil {
			whole = false
			continue
		}
		v.members = append(v.members, m)
	}
	return whole
}

// Empty says whether an object has no members, or a list no items.
func (v *Value) Empty() bool {
	return v.kind == object && len(v.members) == 0 || v.kind == list && len(v.items) == 0
}

// String is the value as compact JSON.
func (v *Value) String() string {
	var out strings.Builder
	v.write(&out)
	return out.String()
}

func (v *Value) write(out *strings.Builder) {
	switch v.kind {
	case literal:
		out.WriteString(v.text)
	case text:
		writeText(out, v.text)
	case list:
		out.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				out.WriteByte(',')
			}
			item.write(out)
		}
		out.WriteByte(']')
	case object:
		out.WriteByte('{')
		for i, m := range v.members {
			if i > 0 {
				out.WriteByte(',')
			}
			writeText(out, m.name)
			out.WriteByte(':')
			m.value.write(out)
		}
		out.WriteByte('}')
	}
}

const hex = "0123456789abcdef"

// writeText writes a string as JSON. Characters that a reader would not see, or that change how the rest is shown, are
// escapes: control and format characters, bidirectional marks, characters without width, tags, private ones.
func writeText(out *strings.Builder, s string) {
	out.WriteByte('"')
	for _, r := range s { // a byte that is no UTF-8 becomes U+FFFD
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\t':
			out.WriteString(`\t`)
		case r == '\r':
			out.WriteString(`\r`)
		case hidden(r):
			escape(out, r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
}

func escape(out *strings.Builder, r rune) {
	if r > 0xFFFF {
		r -= 0x10000
		escape(out, 0xD800+r>>10)
		r = 0xDC00 + r&0x3FF
	}
	out.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		out.WriteByte(hex[r>>shift&0xF])
	}
}

// Visible is a text without characters that cannot be seen: each is a U+FFFD, and breaks of lines and tabs are spaces. It
// is for texts that do not stand in JSON.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case hidden(r):
			return utf8.RuneError
		default:
			return r
		}
	}, s)
}

// hidden says whether a character cannot be seen. The two variation selectors that choose between text and emoji are
// harmless and common.
func hidden(r rune) bool {
	switch {
	case r < 0x7F:
		return r < 0x20
	case r == 0xFE0E || r == 0xFE0F:
		return false
	case r >= 0xFE00 && r <= 0xFE0D, r >= 0x180B && r <= 0x180F, r >= 0xE0000 && r <= 0xE0FFF:
		return true // other variation selectors and tags, also those that are not assigned, which can carry text unseen
	case r == 0x034F, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x2065, r == 0x2800, r == 0x3164, r == 0xFFA0:
		return true // fillers and blanks
	case r >= 0xFFF0 && r <= 0xFFF8, r&0xFFFE == 0xFFFE, r >= 0xFDD0 && r <= 0xFDEF:
		return true // what is shown as nothing, and what is no character
	default:
		return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
	}
}

// Cut shortens a text to at most a number of bytes, at the border of a character, and says how much is missing.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	at := most
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at] + "…(" + itoa(len(s)-at) + " more bytes)"
}
