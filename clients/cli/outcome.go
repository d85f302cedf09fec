package cli

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/clients/cli/args"
	"throwbar.dev/throwbar/clients/cli/term"
	"throwbar.dev/throwbar/clients/cli/view"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const (
	outcomeIndent = 2
	leftAlone     = "left alone"
	itemName      = protoreflect.FullName("throwbar.command.v1.ItemOutcome")
)

// printJSON writes a message for a program: indented, or on one line where many follow each other.
func (p *program) printJSON(m proto.Message, indent bool) error {
	var c *catalog.Catalogue
	if p.known != nil {
		c = p.known.Catalogue
	}
	raw, err := view.JSON(m, c, indent)
	if err != nil {
		return err
	}
	p.out.Print(string(raw) + "\n")
	return nil
}

// dispatched shows the outcomes of a dispatch; its error carries their exit code. line is what runs the plan of a dry run.
func (p *program) dispatched(e *catalog.Entry, answer *controlv1.DispatchResponse, line string) error {
	codes := make([]int, 0, len(answer.GetOutcomes()))
	for _, o := range answer.GetOutcomes() {
		codes = append(codes, p.codeOf(e, o))
	}
	if p.flags.json() {
		if err := p.printJSON(answer, true); err != nil {
			return err
		}
	} else {
		p.outcomes(e, answer.GetOutcomes())
		if line != "" {
			p.out.Line(term.Plain, "Nothing was sent. To run exactly this:")
			p.out.Line(term.Plain, "%s%s", strings.Repeat(" ", outcomeIndent), line)
		}
	}
	return exit(codes)
}

// outcomes shows how a command ended: one device in full, several as an aggregate, a plan for each device.
func (p *program) outcomes(e *catalog.Entry, outcomes []*controlv1.DeviceOutcome) {
	planned := slices.ContainsFunc(outcomes, func(o *controlv1.DeviceOutcome) bool { return o.GetPlan() != nil })
	if len(outcomes) > 1 && !planned {
		p.aggregate(e, outcomes)
		return
	}
	for _, o := range outcomes {
		p.outcome(e, o)
	}
}

// entryOf is the command that an outcome belongs to: the one that was called, or else the one of the result or the plan;
// nil if the catalogue has none.
func (p *program) entryOf(o *controlv1.DeviceOutcome, called *catalog.Entry) *catalog.Entry {
	if called != nil {
		return called
	}
	if o.GetPlan() != nil {
		e, err := p.known.ByAction(o.GetPlan().GetAction())
		if err != nil {
			return nil
		}
		return e
	}
	for _, e := range p.known.Commands() {
		if _, err := e.ResultBody(o.GetResult()); err == nil {
			return e
		}
	}
	return nil
}

// submitted shows the commands that were written down.
func (p *program) submitted(e *catalog.Entry, answer *controlv1.SubmitResponse) error {
	codes := make([]int, 0, len(answer.GetOutcomes()))
	for _, o := range answer.GetOutcomes() {
		code := OK
		if o.GetError() != nil {
			code = codeOfError(o.GetError())
		}
		codes = append(codes, code)
	}
	if p.flags.json() {
		if err := p.printJSON(answer, true); err != nil {
			return err
		}
		return exit(codes)
	}
	for _, o := range answer.GetOutcomes() {
		if o.GetError() != nil {
			p.outcome(e, o)
			continue
		}
		if id := o.GetApprovalId(); id != "" {
			p.out.Line(term.Yellow, "%s  waits for approval %s: `throwbar approvals show %s` shows it", title(o), shortID(id), shortID(id))
			continue
		}
		p.out.Line(term.Plain, "%s  accepted  `throwbar history show %s` shows it", title(o), o.GetCommandId())
	}
	return exit(codes)
}

func exit(codes []int) error {
	if code := together(codes); code != OK {
		return &Exit{Code: code}
	}
	return nil
}

// title is a device as every outcome begins with it.
func title(o *controlv1.DeviceOutcome) string {
	if o.GetDeviceName() == "" {
		return o.GetDeviceId()
	}
	return fmt.Sprintf("%s (%s)", o.GetDeviceName(), o.GetDeviceId())
}

// outcome shows how a command ended on one device. What went wrong goes to the standard error.
func (p *program) outcome(called *catalog.Entry, o *controlv1.DeviceOutcome) {
	e := p.entryOf(o, called)
	switch {
	case o.GetError() != nil:
		p.err.Line(term.Red, "%s  %s: %s", title(o), errorWord(o.GetError()), o.GetError().GetMessage())
	case e == nil:
		p.err.Line(term.Red, "%s  the server sent a result of no command that its catalogue has", title(o))
	case o.GetPlan() != nil:
		p.plan(e, o)
	default:
		p.result(e, o)
	}
}

// errorWord is an error's code in words.
func errorWord(e *commandv1.CommandError) string {
	return strings.ReplaceAll(args.ShortOf(e.GetCode().Descriptor(), e.GetCode().Number()), "_", " ")
}

func (p *program) result(e *catalog.Entry, o *controlv1.DeviceOutcome) {
	m, err := e.Unwrap(o.GetResult())
	if err != nil {
		p.err.Line(term.Red, "%s  the server sent a result that is not one of %s: %v", title(o), e.Name, err)
		return
	}
	word, style := itemsWord(m)
	p.out.Print(p.out.Paint(term.Bold, term.Visible(title(o))) + "  " + p.out.Paint(style, word) + "\n")
	p.show().Message(m, outcomeIndent)
	if len(o.GetSavedIds()) > 0 && o.GetCommandId() != "" {
		p.out.Line(term.Dim, "%sundo: throwbar undo %s", strings.Repeat(" ", outcomeIndent), o.GetCommandId())
	}
}

// codeOf is the exit code of one device's outcome.
func (p *program) codeOf(called *catalog.Entry, o *controlv1.DeviceOutcome) int {
	e := p.entryOf(o, called)
	switch {
	case o.GetError() != nil:
		return codeOfError(o.GetError())
	case o.GetPlan() != nil:
		return OK
	case e == nil:
		return Failed
	}
	m, err := e.Unwrap(o.GetResult())
	if err != nil {
		return Failed
	}
	return itemsCode(m)
}

// itemCounts is how many items of a result are done, were left alone, and failed.
type itemCounts struct{ done, skipped, failed int }

func countItems(m protoreflect.Message) (n itemCounts) {
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		if !fd.IsList() || fd.Message() == nil || fd.Message().FullName() != itemName {
			continue
		}
		field := fd.Message().Fields().ByName("status")
		for j := range m.Get(fd).List().Len() {
			switch status := commandv1.ItemStatus(m.Get(fd).List().Get(j).Message().Get(field).Enum()); {
			case view.ItemOK(status):
				n.done++
			case view.ItemSkipped(status):
				n.skipped++
			default:
				n.failed++
			}
		}
	}
	return n
}

// itemsCode is the exit code of a result: its items may have failed, some or all of them. What was left alone is not what
// was asked for, so it is no success; where nothing went wrong it is no failure either.
func itemsCode(m protoreflect.Message) int {
	switch n := countItems(m); {
	case n.failed+n.skipped == 0:
		return OK
	case n.done > 0 || n.failed == 0:
		return Partial
	default:
		return Failed
	}
}

// itemsWord is how a result went, in words.
func itemsWord(m protoreflect.Message) (string, term.Style) {
	switch n := countItems(m); {
	case n.failed+n.skipped == 0:
		return "ok", term.Green
	case n.done > 0:
		return "partly done", term.Yellow
	case n.failed == 0:
		return leftAlone, term.Yellow
	default:
		return "not done", term.Red
	}
}
