package args

import (
	"fmt"
	"strconv"
	"strings"
)

// Problem is one thing that is wrong with the arguments.
type Problem struct {
	// Pointer is a JSON pointer to it; empty for the arguments as a whole.
	Pointer string
	// Text says what is wrong or what was expected.
	Text string
	// Nearest is what an unknown name was most likely meant to be, or empty.
	Nearest string
}

func (p Problem) String() string {
	var out strings.Builder
	if p.Pointer != "" {
		out.WriteString(p.Pointer + ": ")
	}
	out.WriteString(p.Text)
	if p.Nearest != "" {
		out.WriteString("; did you mean " + p.Nearest + "?")
	}
	return out.String()
}

// maxShown is how many problems are written out.
const maxShown = 20

// Problems is everything that is wrong with the arguments of one call.
type Problems []Problem

func (p Problems) Error() string { return strings.Join(p.Lines(), "\n") }

// Lines are the problems, a line each.
func (p Problems) Lines() []string {
	var lines []string
	for i, problem := range p {
		if i == maxShown {
			return append(lines, fmt.Sprintf("and %d more", len(p)-maxShown))
		}
		lines = append(lines, problem.String())
	}
	return lines
}

// maxName is how many bytes of a key a pointer has. A key of a megabyte would be in the pointer of everything in it.
const maxName = 100

// below is the pointer of a member.
func below(at, name string) string {
	if len(name) > maxName {
		name = cut(name, maxName) + "…"
	}
	if strings.ContainsAny(name, "~/") {
		name = strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	return at + "/" + name
}

// item is the pointer of an item of a list.
func item(at string, i int) string { return at + "/" + strconv.Itoa(i) }

// shown is a text of the model in a message, cut.
func shown(text string) string {
	const most = 60
	if len(text) <= most {
		return strconv.Quote(text)
	}
	return strconv.Quote(cut(text, most)) + "…"
}

// cut is the beginning of a text, of whole characters.
func cut(text string, most int) string {
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most]
}
