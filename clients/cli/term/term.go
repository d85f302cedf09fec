// Package term writes for people: tables that fit the window, colours where there is a terminal to show them, and
// foreign text made harmless.
//
// It knows nothing of Throwbar. A Screen is one output stream with what is known about its reader; an Editor is a terminal
// whose last rows are the line that a person types.
package term

import (
	"fmt"
	"io"
	"os"
	"strconv"
)

const (
	defaultWidth = 100
	leastWidth   = 40
)

// Style is how a piece of text looks on a terminal.
type Style int

// The styles.
const (
	Plain Style = iota
	Bold
	Dim
	Red
	Green
	Yellow
)

// code is the style's number in an escape sequence.
func (s Style) code() string {
	switch s {
	case Bold:
		return "1"
	case Dim:
		return "2"
	case Red:
		return "31"
	case Green:
		return "32"
	case Yellow:
		return "33"
	default:
		return "0"
	}
}

// Screen is one output stream.
type Screen struct {
	W        io.Writer
	Terminal bool // a person reads it as it comes
	Colour   bool
	Width    int // columns; meaningful on a terminal
}

// Detect finds out what kind of stream w is. terminal says whether a stream is one; it is IsTerminal but in tests.
func Detect(w io.Writer, env func(string) string, terminal func(any) bool) *Screen {
	s := &Screen{W: w, Terminal: terminal(w), Width: defaultWidth}
	s.Colour = s.Terminal && env("NO_COLOR") == "" && env("TERM") != "dumb"
	if f, ok := w.(*os.File); ok && s.Terminal {
		if n := columns(f); n > 0 {
			s.Width = n
		}
	}
	if n, err := strconv.Atoi(env("COLUMNS")); err == nil && n > 0 {
		s.Width = n
	}
	s.Width = max(s.Width, leastWidth)
	return s
}

// Resize tells how many columns the screen has now.
func (s *Screen) Resize(columns int) { s.Width = max(columns, leastWidth) }

// Paint gives text a style, if the screen has colours.
func (s *Screen) Paint(style Style, text string) string {
	if !s.Colour || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + style.code() + "m" + text + "\x1b[0m"
}

// Print writes text as it is. A stream that takes nothing any more is no matter: there is nobody to tell.
func (s *Screen) Print(text string) {
	_, _ = io.WriteString(s.W, text)
}

// Line writes one line in a style. The text is made visible first.
func (s *Screen) Line(style Style, format string, args ...any) {
	s.Print(s.Paint(style, Visible(fmt.Sprintf(format, args...))) + "\n")
}
