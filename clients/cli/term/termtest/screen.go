//go:build unix

package termtest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Screen shows what a terminal shows that gets some bytes: text with characters of one and two columns, which begins a
// new row when the next character has no room left, and the few sequences that a line editor needs. Anything else that
// acts on a terminal is a fault, and is kept as one.
//
// It is our own because those that were tried do not know where a wide character goes at the end of a row
// (charmbracelet/x/vt 0.1.0 loses it, hinshun/vt10x knows no widths).
type Screen struct {
	width, height int
	gone          []string // rows that have left at the top
	rows          [][]cell
	x, y          int
	full          bool // the last column was written: the next character begins a row
	rest          []byte
	faults        []string
	pastes        bool // pastes come in brackets
}

// cell is a column; the second one of a wide character has no text.
type cell string

// NewScreen is an empty screen.
func NewScreen(width, height int) *Screen {
	s := &Screen{width: width, height: height}
	for range height {
		s.rows = append(s.rows, s.blank())
	}
	return s
}

func (s *Screen) blank() []cell {
	row := make([]cell, s.width)
	for x := range row {
		row[x] = " "
	}
	return row
}

// Write takes bytes as a terminal gets them. What is incomplete at the end is kept for the next time.
func (s *Screen) Write(b []byte) (int, error) {
	size := len(b)
	b = append(s.rest, b...)
	s.rest = nil
	for len(b) > 0 {
		n := s.next(b)
		if n == 0 {
			s.rest = b
			break
		}
		b = b[n:]
	}
	return size, nil
}

func (s *Screen) next(b []byte) int {
	switch {
	case b[0] == '\x1b':
		end := strings.IndexFunc(string(b), func(r rune) bool { return unicode.IsLetter(r) })
		if end < 0 {
			return 0
		}
		s.sequence(string(b[:end+1]))
		return end + 1
	case b[0] == '\r':
		s.x, s.full = 0, false
	case b[0] == '\n':
		s.down()
	case b[0] == '\t':
		s.x = min(s.x/8*8+8, s.width-1)
	case !utf8.FullRune(b):
		return 0
	default:
		r, size := utf8.DecodeRune(b)
		s.put(r)
		return size
	}
	return 1
}

func columns(r rune) int {
	if r >= 0x300 && unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

func (s *Screen) put(r rune) {
	n := columns(r)
	switch {
	case unicode.IsControl(r) || r == utf8.RuneError:
		s.faults = append(s.faults, fmt.Sprintf("%q", r))
		return
	case n == 0: // it goes with the character before it
		at := max(s.x-1, 0)
		if s.full {
			at = s.x
		}
		if s.rows[s.y][at] == "" && at > 0 {
			at--
		}
		s.rows[s.y][at] += cell(r)
		return
	case s.full || s.x+n > s.width:
		s.down()
		s.x = 0
	}
	row := s.rows[s.y]
	if row[s.x] == "" && s.x > 0 {
		row[s.x-1] = " "
	}
	row[s.x] = cell(r)
	if after := s.x + n; after < s.width && row[after] == "" {
		row[after] = " "
	}
	if n == 2 {
		row[s.x+1] = ""
	}
	s.x += n
	if s.full = s.x >= s.width; s.full {
		s.x = s.width - 1
	}
}

func (s *Screen) down() {
	s.full = false
	if s.y < s.height-1 {
		s.y++
		return
	}
	s.gone = append(s.gone, text(s.rows[0]))
	s.rows = append(s.rows[1:], s.blank())
}

func (s *Screen) sequence(sequence string) {
	body, final := strings.TrimPrefix(sequence[:len(sequence)-1], "\x1b["), sequence[len(sequence)-1]
	n := 1
	if given, err := strconv.Atoi(body); err == nil {
		n = given
	}
	switch {
	case !strings.HasPrefix(sequence, "\x1b["):
		s.faults = append(s.faults, fmt.Sprintf("%q", sequence))
	case final == 'm' && strings.Trim(body, "0123456789;") == "":
	case sequence == "\x1b[?2004h" || sequence == "\x1b[?2004l":
		s.pastes = final == 'h'
	case final == 'A':
		s.y, s.full = max(s.y-n, 0), false
	case final == 'C':
		s.x, s.full = min(s.x+n, s.width-1), false
	case sequence == "\x1b[H":
		s.x, s.y, s.full = 0, 0, false
	case sequence == "\x1b[J" || sequence == "\x1b[2J":
		from := s.y
		if body == "2" {
			from = 0
		} else {
			copy(s.rows[s.y][s.x:], s.blank())
			from++
		}
		for y := from; y < s.height; y++ {
			s.rows[y] = s.blank()
		}
	default:
		s.faults = append(s.faults, fmt.Sprintf("%q", sequence))
	}
}

// resize makes it another size, as a terminal does that does not break its lines anew.
func (s *Screen) resize(width, height int) {
	for s.y >= height {
		s.gone, s.rows, s.y = append(s.gone, text(s.rows[0])), s.rows[1:], s.y-1
	}
	s.width, s.height, s.full = width, height, false
	rows := make([][]cell, height)
	for y := range rows {
		rows[y] = s.blank()
		if y < len(s.rows) {
			copy(rows[y], s.rows[y])
		}
	}
	s.rows, s.x = rows, min(s.x, width-1)
}

func text(row []cell) string {
	var out strings.Builder
	for _, c := range row {
		out.WriteString(string(c))
	}
	return strings.TrimRight(out.String(), " ")
}

// Picture is what a person sees, also of what has gone off the top: the rows without the blanks at their ends, and ▏
// where the cursor is.
func (s *Screen) Picture() string {
	rows := append([]string{}, s.gone...)
	for y, row := range s.rows {
		if y == s.y {
			rows = append(rows, strings.Join([]string{before(row, s.x), text(row[s.x:])}, cursor))
			continue
		}
		rows = append(rows, text(row))
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n")
}

func before(row []cell, x int) string {
	var out strings.Builder
	for _, c := range row[:x] {
		out.WriteString(string(c))
	}
	return out.String()
}

// cursor stands in a picture of the screen where the cursor is.
const cursor = "▏"
