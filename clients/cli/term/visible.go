package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Visible makes one line of foreign text harmless: control characters, characters that change the direction of
// writing, invisible characters and broken UTF-8 are written as escapes, so that a title can neither move the cursor
// nor pass for another one.
func Visible(text string) string { return visible(text, false) }

// VisibleText is Visible for text of several lines: line ends and tabs stay.
func VisibleText(text string) string { return visible(text, true) }

func visible(text string, lines bool) string {
	if clean(text, lines) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case shown(r, lines):
			out.WriteRune(r)
		default:
			out.WriteString(escape(r))
		}
		i += size
	}
	return out.String()
}

func clean(text string, lines bool) bool {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if (r == utf8.RuneError && size == 1) || !shown(r, lines) {
			return false
		}
		i += size
	}
	return true
}

// shown says whether a character may be written as it is. The two joiners are: many languages and emoji need them.
func shown(r rune, lines bool) bool {
	switch r {
	case '\n', '\t':
		return lines
	case '\u200c', '\u200d':
		return true
	}
	return !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Cs)
}

// Escaped says whether Visible would replace a character.
func Escaped(r rune) bool { return !shown(r, true) }

func escape(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r)
	default:
		return fmt.Sprintf(`\u%04x`, r)
	}
}

// Width is the number of columns that visible text takes.
func Width(text string) int {
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// Fit cuts visible text to a number of columns; what is cut shows as an ellipsis.
func Fit(text string, columns int) string {
	if Width(text) <= columns {
		return text
	}
	used := 0
	for i, r := range text {
		if used+runeWidth(r) > columns-1 {
			return text[:i] + "…"
		}
		used += runeWidth(r)
	}
	return text
}

// Wrap breaks words into lines of at most the given columns; a longer word has a line of its own.
func Wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case Width(line)+1+Width(word) <= columns:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
