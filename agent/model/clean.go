package model

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// clean makes s fit for every later edge: valid UTF-8 (protobuf and JSON refuse anything else) and without NUL
// (which SQL text columns refuse).
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, string(utf8.RuneError)), "\x00", "")
}

// validUTF8 is clean for documents, in which NUL is not allowed anyway.
func validUTF8(document []byte) []byte {
	if utf8.Valid(document) {
		return document
	}
	return bytes.ToValidUTF8(document, []byte(string(utf8.RuneError)))
}

func isClean(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

// cut shortens s to at most max bytes at the border of a rune.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + "…"
}

// joiner decodes the string literals of consecutive deltas into text. A provider may split a character outside the
// basic plane between two deltas, one half of its surrogate pair in each; the joiner keeps the first half until the
// second arrives.
type joiner struct {
	half string // the escape of a high surrogate that waits for its low half
}

// decode returns the text of a JSON string literal, which must be valid.
func (j *joiner) decode(literal []byte) string {
	inner := string(literal[1 : len(literal)-1])
	if j.half == "" && !endsInEscape(inner) {
		return unquote(inner)
	}
	inner = j.half + inner
	j.half = ""
	if at := len(inner) - escapeLen; endsInHighHalf(inner) {
		inner, j.half = inner[:at], inner[at:]
	}
	return unquote(inner)
}

// rest returns what stands for a half that never found the other.
func (j *joiner) rest() string {
	if j.half == "" {
		return ""
	}
	j.half = ""
	return string(utf8.RuneError)
}

func unquote(inner string) string {
	var out string
	if err := json.Unmarshal([]byte(`"`+inner+`"`), &out); err != nil {
		return "" // not reachable: the literal was part of a valid document
	}
	return clean(out)
}

// escapeLen is the length of \uXXXX.
const escapeLen = 6

func endsInEscape(inner string) bool {
	return len(inner) >= escapeLen && inner[len(inner)-escapeLen] == '\\'
}

// endsInHighHalf reports whether the inner part of a string literal ends in the escape of a high surrogate.
func endsInHighHalf(inner string) bool {
	at := len(inner) - escapeLen
	if at < 0 || !isHigh(escaped(inner[at:])) {
		return false
	}
	slashes := 0
	for at-1-slashes >= 0 && inner[at-1-slashes] == '\\' {
		slashes++
	}
	return slashes%2 == 0 // else the backslash is itself escaped
}

// escaped returns the code unit of the \uXXXX escape with which s begins, or zero.
func escaped(s string) uint64 {
	if len(s) < escapeLen || s[0] != '\\' || s[1] != 'u' {
		return 0
	}
	unit, err := strconv.ParseUint(s[2:escapeLen], 16, 16)
	if err != nil {
		return 0
	}
	return unit
}

func isHigh(unit uint64) bool { return unit >= 0xd800 && unit < 0xdc00 }

func isLow(unit uint64) bool { return unit >= 0xdc00 && unit < 0xe000 }

// plainEscapes replaces, in a JSON text, every escape of half a surrogate pair or of NUL by that of U+FFFD. Such halves pass
// one provider's parser and make another's fail for as long as they stay in the history.
func plainEscapes(text string) string {
	if !strings.Contains(text, `\u`) {
		return text
	}
	out := []byte(text)
	for i := 0; i < len(text)-1; i++ {
		if text[i] != '\\' {
			continue
		}
		unit := escaped(text[i:])
		switch {
		case isHigh(unit) && isLow(escaped(text[i+escapeLen:])):
			i += 2*escapeLen - 1
		case isHigh(unit), isLow(unit), strings.HasPrefix(text[i:], `\u0000`):
			copy(out[i:], `\ufffd`)
			i += escapeLen - 1
		default:
			i++ // the escaped character does not begin another escape
		}
	}
	return string(out)
}
