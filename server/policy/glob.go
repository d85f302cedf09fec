package policy

import (
	"errors"
	"strings"
)

// glob is a compiled pattern: the literal texts between its stars. One without a star has one text.
type glob []string

var errEscape = errors.New(`a \ stands before * or another \ only: write \* for a star, \\ for a backslash`)

// parseGlob reads a pattern: * is any text, \* a star, \\ a backslash, and everything else is itself.
func parseGlob(pattern string) (glob, error) {
	var parts glob
	var text strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '*':
			parts = append(parts, text.String())
			text.Reset()
		case '\\':
			i++
			if i == len(pattern) || (pattern[i] != '*' && pattern[i] != '\\') {
				return nil, errEscape
			}
			text.WriteByte(pattern[i])
		default:
			text.WriteByte(c)
		}
	}
	return append(parts, text.String()), nil
}

// escaped is the pattern that matches a text and nothing else.
func escaped(text string) string { return strings.NewReplacer(`\`, `\\`, `*`, `\*`).Replace(text) }

// match takes time in proportion to the text: each literal is looked for once, from where the one before ended.
func (g glob) match(text string) bool {
	last := len(g) - 1
	if last == 0 {
		return text == g[0]
	}
	text, ok := strings.CutPrefix(text, g[0])
	if !ok {
		return false
	}
	for _, part := range g[1:last] {
		_, after, ok := strings.Cut(text, part)
		if !ok {
			return false
		}
		text = after
	}
	return strings.HasSuffix(text, g[last])
}
