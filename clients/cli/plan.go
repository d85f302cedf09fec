package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/clients/cli/args"
	"throwbar.dev/throwbar/clients/cli/term"
	"throwbar.dev/throwbar/clients/cli/view"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// plan shows what a command would act on, on one device.
func (p *program) plan(e *catalog.Entry, o *controlv1.DeviceOutcome) {
	targets := o.GetPlan().GetTargets()
	if len(targets) == 0 {
		p.out.Line(term.Bold, "%s  would run %s", title(o), e.Name)
		p.wouldAsk(o.GetPlan())
		return
	}
	p.out.Line(term.Bold, "%s  would run %s on %d %s", title(o), e.Name, len(targets), plural("target", uint64(len(targets))))
	p.wouldAsk(o.GetPlan())
	p.targets(p.out, e, targets)
}

// wouldAsk says that a person would be asked first, and why.
func (p *program) wouldAsk(plan *controlv1.Plan) {
	if plan.GetAsks() {
		p.out.Line(term.Yellow, "%sa person would be asked first: %s", strings.Repeat(" ", outcomeIndent), plan.GetAskReason())
	}
}

// targets lists what a command would act on.
func (p *program) targets(to *term.Screen, e *catalog.Entry, targets []*controlv1.PlannedTarget) {
	t := term.Table{
		Header: []string{"status", "title", "address", "undo", "id"}, Shrink: []int{1, 2}, Indent: outcomeIndent, DropEmpty: true,
	}
	for _, target := range targets {
		status := term.Cell{Text: statusWord(target.GetStatus()), Style: term.Green}
		if !view.ItemOK(target.GetStatus()) {
			status.Style = term.Red
		}
		undo := term.Cell{}
		switch {
		case target.GetUndoable():
			undo = term.Text("yes")
		case status.Style == term.Green && e.Command.GetKeep() != optionv1.Keep_KEEP_UNSPECIFIED:
			// A command that keeps nothing takes nothing away, and what is gone already is not taken either.
			undo = term.Cell{Text: "no", Style: term.Yellow}
		}
		t.Rows = append(t.Rows, []term.Cell{
			status, term.Text(target.GetTitle()), {Text: target.GetUrl(), Style: term.Dim}, undo, term.Text(target.GetId()),
		})
	}
	to.Table(t)
}

// statusWord is the status of an item in words.
func statusWord(status commandv1.ItemStatus) string {
	return strings.ReplaceAll(args.ShortOf(status.Descriptor(), status.Number()), "_", " ")
}

// planLine is the line that runs exactly a plan: the one that was typed, with the plan's hash in place of --dry-run.
// What it took from elsewhere (the standard input, the devices that were online) is written out.
func (p *program) planLine(c *cobra.Command, m *dynamicpb.Message, devices []string, hash string) (string, error) {
	line := []string{"throwbar"}
	for i := 0; i < len(p.Args); i++ {
		word := p.Args[i]
		name, value, joined := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		flag := c.Flag(name)
		if !strings.HasPrefix(word, "--") || flag == nil {
			line = append(line, word)
			continue
		}
		if !joined && flag.NoOptDefVal == "" && i+1 < len(p.Args) {
			i++
			value = p.Args[i]
		}
		switch {
		case name == "dry-run" || name == "plan-hash" || name == "device" && slices.Contains(line, "--device"):
		case name == "device" && len(devices) > 0:
			line = append(line, "--device", strings.Join(devices, ","))
		case name == "json" && value == "-":
			raw, err := protojson.Marshal(m)
			if err == nil {
				raw, err = view.Tidy(raw, false)
			}
			if err != nil {
				return "", err
			}
			line = append(line, "--json", string(raw))
		case joined:
			line = append(line, word)
		case flag.NoOptDefVal == "":
			line = append(line, "--"+name, value)
		default:
			line = append(line, word)
		}
	}
	for i, word := range line {
		line[i] = quoted(word)
	}
	return strings.Join(append(line, "--plan-hash", quoted(hash)), " "), nil
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-+=.,:/@%", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
