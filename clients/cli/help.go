package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"throwbar.dev/throwbar/clients/cli/term"
)

const (
	helpWidth  = 100
	textLeast  = 30
	textIndent = 6
)

// help writes the help text of a verb. Comments of a foreign catalogue are in it, so that all of it is made visible.
func (p *program) help(c *cobra.Command, _ []string) {
	h := helpPage{screen: p.out, width: min(p.out.Width, helpWidth)}
	text := c.Long
	if text == "" {
		text = c.Short
	}
	h.paragraphs(text)
	h.head("Usage")
	h.paragraphs("  " + usageLine(c))
	if c.HasExample() {
		h.head("Examples")
		p.out.Print(term.VisibleText(strings.TrimRight(c.Example, "\n")) + "\n")
	}
	h.verbs(c)
	h.flags("Flags", c.LocalFlags())
	if c.HasAvailableInheritedFlags() {
		h.flags("Global flags", c.InheritedFlags())
	}
	if !c.HasParent() {
		h.head("Exit codes")
		h.pairs(exitCodes())
	}
	if c.HasAvailableSubCommands() {
		h.screen.Print("\n")
		h.paragraphs(fmt.Sprintf("`%s <verb> --help` explains a verb.", c.CommandPath()))
	}
}

// usageLine is the one line of how to call a verb.
func usageLine(c *cobra.Command) string {
	line := c.UseLine()
	if c.HasAvailableSubCommands() {
		line = strings.TrimSuffix(line, " [flags]")
		if c.Annotations["alone"] != "" {
			line += " [verb]"
		} else {
			line += " <verb>"
		}
	}
	return line
}

type helpPage struct {
	screen *term.Screen
	width  int
}

func (h helpPage) head(text string) {
	h.screen.Print("\n" + h.screen.Paint(term.Bold, text) + "\n")
}

func (h helpPage) paragraphs(text string) {
	for i, block := range strings.Split(text, "\n\n") {
		if i > 0 {
			h.screen.Print("\n")
		}
		indent := block[:len(block)-len(strings.TrimLeft(block, " "))]
		for _, line := range term.Wrap(term.VisibleText(block), h.width-len(indent)) {
			h.screen.Print(indent + line + "\n")
		}
	}
}

// verbs lists the verbs under a verb, by group.
func (h helpPage) verbs(c *cobra.Command) {
	groups := map[string][][2]string{}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			groups[sub.GroupID] = append(groups[sub.GroupID], [2]string{sub.Name(), sub.Short})
		}
	}
	for _, g := range c.Groups() {
		if len(groups[g.ID]) > 0 {
			h.head(g.Title)
			h.pairs(groups[g.ID])
		}
	}
	if len(groups[""]) > 0 {
		h.head("Verbs")
		h.pairs(groups[""])
	}
}

// flags lists flags that are not hidden.
func (h helpPage) flags(title string, set *pflag.FlagSet) {
	var rows [][2]string
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		word, text := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if word != "" {
			name += " " + word
		}
		switch f.DefValue {
		case "", "0", "false", "0s", "[]":
		default:
			text += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		rows = append(rows, [2]string{name, text})
	})
	if len(rows) > 0 {
		h.head(title)
		h.pairs(rows)
	}
}

// pairs writes names with their texts beside them, or under them where the window has no room for that.
func (h helpPage) pairs(rows [][2]string) {
	column := 0
	for _, row := range rows {
		column = max(column, term.Width(term.Visible(row[0])))
	}
	if h.width-column-4 < textLeast {
		for _, row := range rows {
			h.screen.Print("  " + term.Visible(row[0]) + "\n")
			for _, line := range term.Wrap(term.VisibleText(row[1]), max(h.width-textIndent, textLeast/2)) {
				h.screen.Print(strings.Repeat(" ", textIndent) + line + "\n")
			}
		}
		return
	}
	for _, row := range rows {
		name := term.Visible(row[0])
		lines := term.Wrap(term.VisibleText(row[1]), h.width-column-4)
		if len(lines) == 0 {
			lines = []string{""}
		}
		for i, line := range lines {
			if i > 0 {
				name = ""
			}
			pad := strings.Repeat(" ", max(column-term.Width(name), 0))
			h.screen.Print(strings.TrimRight("  "+name+pad+"  "+line, " ") + "\n")
		}
	}
}

// helpVerb explains the verb that its arguments name.
func (p *program) helpVerb() *cobra.Command {
	return &cobra.Command{
		Use:     "help [verb]...",
		Short:   "Explain a verb",
		GroupID: groupServer,
		RunE: func(c *cobra.Command, words []string) error {
			at := c.Root()
			for _, word := range words {
				next, rest, err := at.Find([]string{word})
				if err != nil || len(rest) > 0 || next == at {
					return p.unknownVerb(at, word)
				}
				at = next
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}
