package term

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	plainAgain = "\x1b[0m"
	boldBegins = "\x1b[1m"
	eraseBelow = "\r\x1b[J"
	tabStop    = 8
	indented   = "  " // what begins the further lines of a line of several
)

// sheet is what is known of the last rows of a screen: the row that text is written in, if it is not full, and below it
// the line that is typed. Whatever changes, these rows are written anew; what is above them is never touched again.
type sheet struct {
	width, height int

	half   string // the row that text is written in, with its colours
	column int    // how many columns it has by now
	style  string // the colours that hold after it; empty for none
	closed bool   // that row was ended before its text was: a line end that comes next is that one

	above   int   // rows of ours above the cursor
	widths  []int // of those of them that belong to the line
	from    int   // column of the cursor
	hasHalf bool  // the row of the text is among them
}

// add takes text to write. What it gives back is finished, and begins where the row of the text began.
func (s *sheet) add(text string) string {
	var out strings.Builder
	for len(text) > 0 {
		if n := colours(text); n > 0 {
			s.colour(text[:n])
			text = text[n:]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		switch r {
		case '\n':
			s.end(&out)
		case '\t':
			for n := min(tabStop-s.column%tabStop, max(s.width-s.column, 1)); n > 0; n-- {
				s.put(&out, ' ')
			}
		default:
			for _, c := range seen(r, size, text[0]) {
				s.put(&out, c)
			}
		}
		text = text[size:]
	}
	return out.String()
}

// seen is a character, or the escape of one that a terminal must not get.
func seen(r rune, size int, first byte) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf(`\x%02x`, first)
	case !shown(r, false):
		return escape(r)
	default:
		return string(r)
	}
}

// colours is the length of the colour sequence that text begins with: the only ones that a terminal gets.
func colours(text string) int {
	if !strings.HasPrefix(text, "\x1b[") {
		return 0
	}
	rest := strings.TrimLeft(text[2:], "0123456789;")
	if !strings.HasPrefix(rest, "m") {
		return 0
	}
	return len(text) - len(rest) + 1
}

func (s *sheet) colour(sequence string) {
	s.half += sequence
	s.style = sequence
	if sequence == plainAgain {
		s.style = ""
	}
}

func (s *sheet) put(out *strings.Builder, r rune) {
	w := runeWidth(r)
	if s.column+w > s.width { // the terminal begins the next row by itself, and knows that it is the same line
		out.WriteString(s.half)
		s.half, s.column = s.style, 0
	}
	s.half += string(r)
	s.column += w
	s.closed = false
}

func (s *sheet) end(out *strings.Builder) {
	if s.closed && s.column == 0 {
		s.closed = false
		return
	}
	out.WriteString(s.half + plainAgain + "\r\n")
	s.half, s.column, s.closed = s.style, 0, false
}

// close ends the row that text is written in, for something else to be written.
func (s *sheet) close() string {
	if s.column == 0 {
		return ""
	}
	var out strings.Builder
	s.end(&out)
	s.closed = true
	return out.String()
}

// between takes lines that stand between what is written: the row before them is ended, and what comes is below.
func (s *sheet) between(lines string) string {
	finished := s.close()
	closed := s.closed
	finished += s.add(lines)
	s.closed = closed
	return finished
}

// resize tells how large the screen is now. Most terminals break their lines anew; how that came out for the row of the
// text is not known, so that it stays as it is.
func (s *sheet) resize(width, height int) {
	if width <= 0 || height <= 0 {
		width, height = defaultWidth, 24
	}
	s.height = height
	if width == s.width {
		return
	}
	if s.hasHalf {
		s.half, s.column, s.closed, s.hasHalf = s.style, 0, true, false
	}
	s.above = s.from / width
	for _, w := range s.widths {
		s.above += max(1, (w+width-1)/width)
	}
	s.width = width
}

// erase takes our rows off the screen, and leaves the cursor where they began.
func (s *sheet) erase() string {
	up := ""
	if s.above > 0 {
		up = "\x1b[" + strconv.Itoa(s.above) + "A"
	}
	s.above, s.widths, s.from, s.hasHalf = 0, nil, 0, false
	return up + eraseBelow
}

// draw writes what is finished and our rows below it.
func (s *sheet) draw(finished, prompt string, line []rune, at int) string {
	var out strings.Builder
	out.WriteString(s.erase())
	out.WriteString(finished)
	if s.column > 0 {
		out.WriteString(s.half + plainAgain + "\r\n")
		s.above, s.hasHalf = 1, true
	}
	l := s.lay(prompt, line, at)
	first := max(0, l.row+1-max(1, s.height-s.above)) // more than the screen has: the rows above the cursor
	last := min(len(l.rows), first+max(1, s.height-s.above))
	for i := first; i < last; i++ {
		if i > first {
			out.WriteString("\r\n")
		}
		out.WriteString(l.rows[i])
	}
	if up := last - 1 - l.row; up > 0 {
		out.WriteString("\x1b[" + strconv.Itoa(up) + "A")
	}
	out.WriteString("\r")
	if l.column > 0 {
		out.WriteString("\x1b[" + strconv.Itoa(l.column) + "C")
	}
	s.above += l.row - first
	s.widths, s.from = l.widths[first:l.row], l.column
	return out.String()
}

// layout is a line as rows of the screen.
type layout struct {
	rows        []string
	widths      []int
	row, column int // of the cursor
}

// lay breaks a prompt and a line into rows.
func (s *sheet) lay(prompt string, line []rune, at int) layout {
	var l layout
	var text strings.Builder
	column := 0
	next := func() {
		l.rows, l.widths = append(l.rows, text.String()), append(l.widths, column)
		text.Reset()
		column = 0
	}
	put := func(shown string, place bool) {
		for _, c := range shown {
			if column+runeWidth(c) > s.width {
				next()
			}
			if place {
				l.row, l.column, place = len(l.rows), column, false
			}
			text.WriteRune(c)
			column += runeWidth(c)
		}
	}
	text.WriteString(boldBegins)
	put(prompt, false)
	text.WriteString(plainAgain)
	for i, r := range line {
		switch r {
		case keyNewline:
			if i == at {
				put(" ", true)
			}
			next()
			put(indented, false)
		case '\t':
			put(" ", i == at)
		default:
			put(seen(r, utf8.RuneLen(r), 0), i == at)
		}
	}
	if at >= len(line) {
		if column >= s.width {
			next()
		}
		l.row, l.column = len(l.rows), column
	}
	next()
	return l
}
