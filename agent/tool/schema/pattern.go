package schema

import (
	"regexp/syntax"
	"strconv"
	"strings"
)

// Pattern writes a regular expression of the contract (RE2) in the subset that all dialects read the same way, or
// returns false if it cannot be said there.
func Pattern(expression string) (string, bool) {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return "", false
	}
	var out strings.Builder
	w := regexWriter{out: &out}
	w.write(re)
	return out.String(), !w.failed
}

// literal is a text as a regular expression that matches it alone.
func literal(text string) string {
	var out strings.Builder
	for _, r := range text {
		writeRune(&out, r, `\.+*?()|[]{}^$/`)
	}
	return out.String()
}

type regexWriter struct {
	out    *strings.Builder
	failed bool
}

func (w *regexWriter) write(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpEmptyMatch:
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			w.failed = true
			return
		}
		for _, r := range re.Rune {
			writeRune(w.out, r, `\.+*?()|[]{}^$/`)
			w.failed = w.failed || r > 0xFFFF
		}
	case syntax.OpCharClass:
		w.class(re.Rune)
	case syntax.OpAnyCharNotNL:
		w.out.WriteString(`[^\n]`)
	case syntax.OpBeginText:
		w.out.WriteByte('^')
	case syntax.OpEndText:
		w.out.WriteByte('$')
	case syntax.OpCapture:
		w.group(re.Sub[0])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		w.repeat(re)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if sub.Op == syntax.OpAlternate {
				w.group(sub)
				continue
			}
			w.write(sub)
		}
	case syntax.OpAlternate:
		for i, sub := range re.Sub {
			if i > 0 {
				w.out.WriteByte('|')
			}
			w.write(sub)
		}
	default: // word borders, multi-line anchors, any character at all
		w.failed = true
	}
}

func (w *regexWriter) group(re *syntax.Regexp) {
	w.out.WriteByte('(')
	w.write(re)
	w.out.WriteByte(')')
}

func (w *regexWriter) repeat(re *syntax.Regexp) {
	if re.Flags&syntax.NonGreedy != 0 {
		w.failed = true
		return
	}
	switch sub := re.Sub[0]; {
	case sub.Op == syntax.OpCharClass, sub.Op == syntax.OpAnyCharNotNL, sub.Op == syntax.OpCapture,
		sub.Op == syntax.OpLiteral && len(sub.Rune) == 1:
		w.write(sub)
	default:
		w.group(sub)
	}
	switch re.Op {
	case syntax.OpStar:
		w.out.WriteByte('*')
	case syntax.OpPlus:
		w.out.WriteByte('+')
	case syntax.OpQuest:
		w.out.WriteByte('?')
	default:
		w.out.WriteString("{" + strconv.Itoa(re.Min))
		if re.Max != re.Min {
			w.out.WriteByte(',')
			if re.Max > 0 {
				w.out.WriteString(strconv.Itoa(re.Max))
			}
		}
		w.out.WriteByte('}')
	}
}

const lastRune = 0x10FFFF

// class writes a set of characters, given as pairs of ends. A set that reaches the last character is written as what
// it leaves out.
func (w *regexWriter) class(pairs []rune) {
	if len(pairs) == 0 {
		w.failed = true
		return
	}
	w.out.WriteByte('[')
	if pairs[len(pairs)-1] == lastRune {
		w.out.WriteByte('^')
		var rest []rune
		next := rune(0)
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] > next {
				rest = append(rest, next, pairs[i]-1)
			}
			next = pairs[i+1] + 1
		}
		pairs = rest
	}
	for i := 0; i < len(pairs); i += 2 {
		w.failed = w.failed || pairs[i+1] > 0xFFFF
		writeRune(w.out, pairs[i], `\]^-[`)
		if pairs[i+1] > pairs[i] {
			if pairs[i+1] > pairs[i]+1 {
				w.out.WriteByte('-')
			}
			writeRune(w.out, pairs[i+1], `\]^-[`)
		}
	}
	w.failed = w.failed || len(pairs) == 0
	w.out.WriteByte(']')
}

// writeRune writes a character, with a backslash before it if it is one of special.
func writeRune(out *strings.Builder, r rune, special string) {
	switch {
	case r == '\n':
		out.WriteString(`\n`)
	case r == '\r':
		out.WriteString(`\r`)
	case r == '\t':
		out.WriteString(`\t`)
	case r < 0x20 || r == 0x7F:
		out.WriteString(`\x` + string("0123456789abcdef"[r>>4]) + string("0123456789abcdef"[r&15]))
	default:
		if strings.ContainsRune(special, r) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
}
