package term

import (
	"slices"
	"strconv"
	"unicode/utf8"
)

// unbounded is the width that the line editor below is told, so that a line is one row for it, whatever its length.
const unbounded = 1 << 30

// row is a terminal of one row without an end: the line editor below writes to it, and where its cursor is and what
// stands in it is what a person has typed. The editor counts a character as a column, which is right in here and not on
// a screen.
type row struct {
	cells   []rune
	at      int
	cleared bool // the screen is to be cleared
}

// apply does what the editor has written.
func (r *row) apply(b []byte) {
	for len(b) > 0 {
		size := 1
		switch b[0] {
		case keyEscape:
			size = max(sequenceSize(b), 1)
			r.sequence(b[:size])
		case '\r':
			r.at = 0
		case '\n': // the line was entered
			r.cells, r.at = nil, 0
		default:
			var c rune
			c, size = utf8.DecodeRune(b)
			r.put(c)
		}
		b = b[size:]
	}
}

func (r *row) put(c rune) {
	for len(r.cells) <= r.at {
		r.cells = append(r.cells, ' ')
	}
	r.cells[r.at] = c
	r.at++
}

func (r *row) sequence(b []byte) {
	if len(b) < 3 {
		return
	}
	n := 1
	if given, err := strconv.Atoi(string(b[2 : len(b)-1])); err == nil {
		n = given
	}
	switch b[len(b)-1] {
	case 'C':
		r.at += n
	case 'D':
		r.at = max(r.at-n, 0)
	case 'K':
		r.cells = r.cells[:min(r.at, len(r.cells))]
	case 'J':
		r.cells, r.cleared = nil, true
	case 'H':
		r.at = 0
	}
}

// line is what was typed. What the editor has blanked out at the end is no part of it.
func (r *row) line() []rune {
	end := len(r.cells)
	for end > r.at && r.cells[end-1] == ' ' {
		end--
	}
	line := slices.Clone(r.cells[:end])
	for len(line) < r.at {
		line = append(line, ' ')
	}
	return line
}
