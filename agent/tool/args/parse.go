package args

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of what is read.
const (
	MaxBytes = 1 << 20
	MaxDepth = 32
)

type kind byte

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

func (k kind) String() string {
	return [...]string{"null", "true or false", "a number", "text", "a list", "an object"}[k]
}

// value is one JSON value as it was written.
type value struct {
	kind    kind
	text    string // of text; the spelling of a number; true or false
	items   []*value
	members []member
}

type member struct {
	name  string
	value *value
}

// parse reads one JSON value. Keys that occur twice are problems; the first one counts.
func parse(source string) (*value, Problems) {
	if len(source) > MaxBytes {
		return nil, Problems{{Text: fmt.Sprintf("the arguments have %d bytes; at most %d are read", len(source), MaxBytes)}}
	}
	if !utf8.ValidString(source) {
		return nil, Problems{{Text: "the arguments are not valid UTF-8"}}
	}
	if at := loneSurrogate(source); at >= 0 {
		return nil, Problems{{Text: fmt.Sprintf(`the \u escape at byte %d is half a character`, at)}}
	}
	p := &parser{tokens: json.NewDecoder(strings.NewReader(source))}
	p.tokens.UseNumber()
	v, err := p.value("", 0)
	if err == nil {
		if _, err = p.tokens.Token(); err == nil {
			err = errors.New("something follows after the end")
		} else if errors.Is(err, io.EOF) {
			return v, p.problems
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	return nil, Problems{{Text: fmt.Sprintf("the arguments are not JSON: %s (at byte %d)", plain(err), p.tokens.InputOffset())}}
}

// plain is the text of a syntax error.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "json: ") }

type parser struct {
	tokens   *json.Decoder
	problems Problems
}

func (p *parser) value(at string, depth int) (*value, error) {
	token, err := p.tokens.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case nil:
		return &value{kind: null}, nil
	case bool:
		return &value{kind: boolean, text: strconv.FormatBool(t)}, nil
	case json.Number:
		return &value{kind: number, text: string(t)}, nil
	case string:
		return &value{kind: text, text: t}, nil
	case json.Delim:
		if depth == MaxDepth {
			return nil, fmt.Errorf("it is deeper than %d levels", MaxDepth)
		}
		if t == '[' {
			return p.list(at, depth)
		}
		return p.object(at, depth)
	default:
		return nil, fmt.Errorf("unexpected %v", t)
	}
}

func (p *parser) list(at string, depth int) (*value, error) {
	v := &value{kind: list}
	for p.tokens.More() {
		next, err := p.value(item(at, len(v.items)), depth+1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, next)
	}
	_, err := p.tokens.Token()
	return v, err
}

func (p *parser) object(at string, depth int) (*value, error) {
	v := &value{kind: object}
	seen := map[string]bool{}
	for p.tokens.More() {
		token, err := p.tokens.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		next, err := p.value(below(at, name), depth+1)
		if err != nil {
			return nil, err
		}
		if seen[name] {
			p.problems = append(p.problems, Problem{Pointer: below(at, name), Text: "the key occurs twice"})
			continue
		}
		seen[name] = true
		v.members = append(v.members, member{name, next})
	}
	_, err := p.tokens.Token()
	return v, err
}

// loneSurrogate finds an escape that is half of a character, which the decoder would replace. It is -1 if there is none.
func loneSurrogate(source string) int {
	const width = 6 // of \uXXXX
	half := func(i int) (code uint64, ok bool) {
		if i+width > len(source) || source[i] != '\\' || source[i+1] != 'u' {
			return 0, false
		}
		code, err := strconv.ParseUint(source[i+2:i+width], 16, 16)
		return code, err == nil && code >= 0xD800 && code <= 0xDFFF
	}
	for i := strings.IndexByte(source, '\\'); i >= 0 && i < len(source); {
		code, ok := half(i)
		switch {
		case !ok && source[i] == '\\':
			i += 2
		case !ok:
			i++
		case code >= 0xDC00:
			return i
		default:
			if low, ok := half(i + width); !ok || low < 0xDC00 {
				return i
			}
			i += 2 * width
		}
	}
	return -1
}

// write appends the value as JSON, for the readers of well-known types.
func (v *value) write(out *strings.Builder) {
	switch v.kind {
	case null:
		out.WriteString("null")
	case boolean, number:
		out.WriteString(v.text)
	case text:
		writeString(out, v.text)
	case list:
		out.WriteByte('[')
		for i, next := range v.items {
			if i > 0 {
				out.WriteByte(',')
			}
			next.write(out)
		}
		out.WriteByte(']')
	case object:
		out.WriteByte('{')
		for i, m := range v.members {
			if i > 0 {
				out.WriteByte(',')
			}
			writeString(out, m.name)
			out.WriteByte(':')
			m.value.write(out)
		}
		out.WriteByte('}')
	}
}

func writeString(out *strings.Builder, s string) {
	raw, err := json.Marshal(s)
	if err != nil { // not reachable: a string
		raw = []byte(`""`)
	}
	out.Write(raw)
}
