package term

import (
	"bytes"
	"unicode/utf8"
)

// What the line editor below takes for a key.
const (
	keyInterrupt = 0x03
	keySuspend   = 0x1a
	keyEscape    = 0x1b
	keyNewline   = '\v' // within a line: the editor below has no other place for one
	keysEmpty    = "\x05\x15"
	pasteBegins  = "\x1b[200~"
	pasteEnds    = "\x1b[201~"
)

// decoder makes what a terminal sends into what the line editor below understands, and takes the rest out: of a paste
// everything that could act on a terminal, and all sequences that mean nothing here. Line ends of a paste stay in the line.
type decoder struct {
	rest    []byte // the beginning of a sequence or a character whose end has not come
	pasting bool
	breaks  int // line ends of the paste that nothing has followed yet: its last ones are dropped
}

// decode takes what was read. pressed are the keys that are not for the line, in their order.
func (d *decoder) decode(chunk []byte) (line, pressed []byte) {
	if d.pasting && len(chunk) == 1 && chunk[0] == keyInterrupt { // the end of a paste may never come
		line, d.rest, d.pasting = append(line, pasteEnds...), nil, false
	}
	if len(d.rest) == 1 && d.rest[0] == keyEscape && !d.pasting && len(chunk) > 0 && chunk[0] != '[' && chunk[0] != 'O' {
		d.rest = nil // the key itself: what comes later is not part of it
	}
	b := append(d.rest, chunk...)
	d.rest = nil
	for len(b) > 0 {
		size, out := 0, []byte(nil)
		switch {
		case d.pasting:
			size, out = d.pasted(b)
		case b[0] == keyEscape:
			size, out = d.sequence(b)
		case b[0] == keyInterrupt || b[0] == keySuspend:
			pressed = append(pressed, b[0])
			size = 1
		case b[0] == keyNewline: // deletes to the end of the line
			size, out = 1, b[:1]
		default:
			size, out = character(b)
		}
		if size == 0 {
			d.rest = bytes.Clone(b)
			break
		}
		line = append(line, out...)
		b = b[size:]
	}
	return line, pressed
}

// character is the first character of b, nothing if it is none, and of size 0 if its end has not come.
func character(b []byte) (int, []byte) {
	if !utf8.FullRune(b) {
		return 0, nil
	}
	r, size := utf8.DecodeRune(b)
	if r == utf8.RuneError {
		return size, nil
	}
	return size, b[:size]
}

// pasted is the first character of what is pasted.
func (d *decoder) pasted(b []byte) (int, []byte) {
	switch {
	case bytes.HasPrefix(b, []byte(pasteEnds)):
		d.pasting, d.breaks = false, 0
		return len(pasteEnds), b[:len(pasteEnds)]
	case bytes.HasPrefix([]byte(pasteEnds), b):
		return 0, nil
	case b[0] == '\r' && len(b) == 1:
		return 0, nil
	case b[0] == '\r' || b[0] == '\n':
		d.breaks++
		if bytes.HasPrefix(b, []byte("\r\n")) {
			return 2, nil
		}
		return 1, nil
	}
	size, out := character(b)
	if r, _ := utf8.DecodeRune(out); len(out) > 0 && !shown(r, true) {
		out = nil
	}
	if len(out) > 0 {
		out = append(bytes.Repeat([]byte{keyNewline}, d.breaks), out...)
		d.breaks = 0
	}
	return size, out
}

// sequence is the first sequence of b, as the editor below knows it; nothing if it does not.
func (d *decoder) sequence(b []byte) (int, []byte) {
	size := sequenceSize(b)
	if size == 0 {
		return 0, nil
	}
	switch name := string(b[1:size]); name {
	case "[200~":
		d.pasting, d.breaks = true, 0
		return size, b[:size]
	case "\r", "\n":
		return size, []byte(pasteBegins + string(keyNewline) + pasteEnds)
	case "[A", "[B", "[C", "[D", "[3~":
		return size, b[:size]
	case "OA", "OB", "OC", "OD":
		return size, []byte("\x1b[" + name[1:])
	case "[H", "OH", "[1~", "[7~":
		return size, []byte{0x01}
	case "[F", "OF", "[4~", "[8~":
		return size, []byte{0x05}
	case "b", "[1;5D", "[1;3D":
		return size, []byte("\x1b[1;3D")
	case "f", "[1;5C", "[1;3C":
		return size, []byte("\x1b[1;3C")
	case "\x7f":
		return size, []byte{0x17}
	}
	return size, nil
}

// sequenceSize is the length of the sequence that b begins with, 0 if its end has not come.
func sequenceSize(b []byte) int {
	switch {
	case len(b) == 1:
		return 0
	case b[1] == keyEscape: // twice the key itself
		return 1
	case b[1] == 'O':
		return min(len(b), 3) / 3 * 3
	case b[1] != '[':
		if !utf8.FullRune(b[1:]) {
			return 0
		}
		_, size := utf8.DecodeRune(b[1:])
		return 1 + size
	}
	for i := 2; i < len(b); i++ {
		switch {
		case b[i] >= 0x40 && b[i] <= 0x7e:
			return i + 1
		case b[i] < 0x20 || b[i] > 0x3f: // broken off by something else
			return i
		}
	}
	return 0
}
