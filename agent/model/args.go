package model

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// argText collects the arguments of a call from their pieces. Most providers send pieces of one text; some send the
// whole text so far each time, some repeat the whole at the end, some send {} first and the real thing after it.
//
// Pieces and growing snapshots cannot always be told apart while they arrive ({"a": then {"a":1}} is a nested object
// or a longer snapshot), so both readings are kept until the end, where only one of them is JSON.
type argText struct {
	pieces object // all pieces joined
	// grown is the reading as snapshots, kept from the first piece that looks like one; snapshots counts those.
	grown     *object
	snapshots int
}

// certainSnapshots is the number of growing snapshots in a row after which the other reading is dropped, so that they
// cost no memory: that many nested objects, cut exactly so, do not happen.
const certainSnapshots = 3

// add takes the next piece.
func (a *argText) add(piece string) {
	if a.done() && isEmptyObject(piece) {
		return // a placeholder after the real thing
	}
	if a.grown == nil && a.pieces.extendedBy(piece) {
		grown := a.pieces
		grown.text = bytes.Clone(grown.text)
		a.grown = &grown
	}
	if a.grown != nil {
		addition := piece
		if a.grown.extendedBy(piece) {
			addition = piece[len(a.grown.text):]
			a.snapshots++
		} else if a.snapshots < certainSnapshots {
			a.snapshots = 0
		}
		a.grown.add(addition)
	}
	if a.snapshots >= certainSnapshots {
		a.pieces = object{}
		return
	}
	a.pieces.add(piece)
}

// replace takes a whole value that the provider sent as JSON instead of text.
func (a *argText) replace(value string) {
	if a.done() && isEmptyObject(value) {
		return
	}
	*a = argText{}
	a.pieces.add(value)
}

// empty reports whether nothing but space has arrived.
func (a *argText) empty() bool { return a.grown == nil && !a.pieces.begun }

// done reports whether a whole object has arrived.
func (a *argText) done() bool {
	return a.pieces.done || a.grown != nil && a.grown.done
}

// size is the number of bytes held.
func (a *argText) size() int {
	n := a.pieces.size()
	if a.grown != nil {
		n += a.grown.size()
	}
	return n
}

// text returns the arguments as far as they arrived.
func (a *argText) text() string {
	if a.empty() {
		return "{}"
	}
	readings := []string{a.pieces.String()}
	if a.grown != nil {
		readings = append(readings, a.grown.String())
	}
	for _, reading := range readings {
		if isObject(reading) {
			return reading
		}
	}
	// Some models write the object as a string that contains it.
	var inner string
	if json.Unmarshal([]byte(readings[0]), &inner) == nil && isObject(inner) {
		return clean(inner)
	}
	if a.snapshots >= certainSnapshots {
		return readings[1]
	}
	if readings[0] == "null" {
		return "{}"
	}
	return readings[0]
}

// equals reports whether text is the same JSON as what has arrived.
func (a *argText) equals(text string) bool { return sameJSON(a.text(), text) }

// object follows a JSON object byte by byte to the place where it ends, without judging its inside.
type object struct {
	// before is a whole object that came before text, and is not the same.
	before   []byte
	text     []byte
	depth    int
	begun    bool // something other than space was seen
	done     bool // the brace that opened first was closed
	spoilt   bool // what came after an object is neither its repeat nor noise
	inString bool
	escape   bool
}

// String is what arrived: one object where a repeat or the real thing after an empty one says what was meant, and otherwise
// all of it, which is no JSON. Which of two objects to run is not ours to choose.
func (o *object) String() string {
	if len(o.before) == 0 {
		return string(o.text)
	}
	if o.done && !o.spoilt {
		if meant, ok := oneOf(string(o.before), string(o.text)); ok {
			return meant
		}
	}
	return string(o.before) + string(o.text)
}

// oneOf is what two objects mean that were sent for one, or false if they say different things.
func oneOf(first, second string) (string, bool) {
	switch {
	case isEmptyObject(second):
		return first, true
	case isEmptyObject(first), sameSpelling(first, second):
		return second, true
	case !sameJSON(first, second):
		return "", false
	case len(second) < len(first): // so that what is compared with each further repeat is no longer than that
		return second, true
	}
	return first, true
}

func (o *object) size() int { return len(o.before) + len(o.text) }

// again begins another object after a whole one.
func (o *object) again() {
	next := object{before: o.before, spoilt: o.spoilt}
	switch {
	case len(o.before) == 0:
		next.before = o.text
	case o.spoilt:
		next.before = append(o.before, o.text...)
	case len(o.text) < 100 && isEmptyObject(string(o.text)): // before stays, and is not copied for each of many
	default:
		meant, ok := oneOf(string(o.before), string(o.text))
		if next.before, next.spoilt = []byte(meant), !ok; !ok {
			next.before = append(o.before, o.text...)
		}
	}
	*o = next
}

// extendedBy reports whether piece is everything so far and more, while the object is still open.
func (o *object) extendedBy(piece string) bool {
	return o.begun && !o.done && len(o.before) == 0 && len(piece) > len(o.text) && piece[:len(o.text)] == string(o.text)
}

// add appends piece. After the end of the object a piece that opens another one begins that (a repeat, or the real
// arguments after an empty placeholder). Anything else that follows is noise, unless it may say something.
func (o *object) add(piece string) {
	for i := 0; i < len(piece); i++ {
		if o.done {
			rest := strings.TrimLeft(piece[i:], jsonSpace)
			if o.spoilt || !strings.HasPrefix(rest, "{") {
				o.trailing(piece[i:])
				return
			}
			i = len(piece) - len(rest)
			o.again()
		}
		o.text = append(o.text, piece[i])
		o.follow(piece[i])
	}
}

// trailing takes what follows an object. What may be further members is kept, so that it is seen that the arguments are no
// JSON: to leave it out would change what the model asked for.
func (o *object) trailing(rest string) {
	if o.spoilt || strings.ContainsAny(rest, `{"`) {
		o.text = append(o.text, rest...)
		o.spoilt = true
	}
}

func (o *object) follow(b byte) {
	switch {
	case o.escape:
		o.escape = false
	case o.inString:
		o.escape = b == '\\'
		o.inString = b != '"'
	case b == '"':
		o.begun, o.inString = true, true
	case b == '{':
		o.begun = true
		o.depth++
	case b == '}':
		o.begun = true
		o.depth--
		o.done = o.depth == 0
	case strings.IndexByte(jsonSpace, b) < 0:
		o.begun = true
	}
}

// jsonSpace is what JSON calls white space.
const jsonSpace = " \t\r\n"

// isObject reports whether text is one JSON object.
func isObject(text string) bool {
	trimmed := strings.TrimLeft(text, jsonSpace)
	return strings.HasPrefix(trimmed, "{") && json.Valid([]byte(text))
}

// isEmptyObject reports whether text is an object without members.
func isEmptyObject(text string) bool {
	return len(text) < 100 && isObject(text) && strings.Join(strings.Fields(text), "") == "{}"
}

// sameSpelling reports whether a and b are the same JSON but for space.
func sameSpelling(a, b string) bool {
	var left, right bytes.Buffer
	if json.Compact(&left, []byte(a)) != nil || json.Compact(&right, []byte(b)) != nil {
		return strings.TrimSpace(a) == strings.TrimSpace(b)
	}
	return bytes.Equal(left.Bytes(), right.Bytes())
}

// sameJSON reports whether a and b say the same: some gateways sort the members of what they repeat, or escape it otherwise.
func sameJSON(a, b string) bool {
	if sameSpelling(a, b) {
		return true
	}
	left, whole := decoded(a)
	right, too := decoded(b)
	return whole && too && reflect.DeepEqual(left, right)
}

// decoded is a JSON text with its numbers as they are spelled.
func decoded(text string) (any, bool) {
	var out any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	return out, dec.Decode(&out) == nil
}
