package cli

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/clients/cli/args"
	"throwbar.dev/throwbar/clients/cli/term"
	"throwbar.dev/throwbar/clients/cli/view"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

const (
	outcomeIndent = 2
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

// dispatched shows the outcomes of a dispatch; its error carries their exit code.
func (p *program) dispatched(e *catalog.Entry, answer *controlv1.DispatchResponse) error {
	codes := make([]int, 0, len(answer.GetOutcomes()))
	for _, o := range answer.GetOutcomes() {
		codes = append(codes, p.codeOf(e, o))
	}
	if p.flags.json() {
		if err := p.printJSON(answer, true); err != nil {
			return err
		}
	} else {
		for _, o := range answer.GetOutcomes() {
			p.outcome(e, o)
		}
		if hash := answer.GetPlanHash(); hash != "" {
			p.out.Line(term.Plain, "Nothing was sent. To run exactly this: the same call with --plan-hash %s", hash)
		}
	}
	return exit(codes)
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
func (p *program) outcome(e *catalog.Entry, o *controlv1.DeviceOutcome) {
	switch {
	case o.GetError() != nil:
		p.err.Line(term.Red, "%s  %s: %s", title(o), errorWord(o.GetError()), o.GetError().GetMessage())
	case o.GetPlan() != nil:
		targets := o.GetPlan().GetTargets()
		p.out.Line(term.Bold, "%s  would run %s on %d targets", title(o), e.Name, len(targets))
		for _, t := range targets {
			p.out.Line(term.Plain, "%s%s  %s", strings.Repeat(" ", outcomeIndent), t.GetId(), t.GetTitle())
		}
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
	word, style := "ok", term.Green
	switch itemsCode(m) {
	case Partial:
		word, style = "partly done", term.Yellow
	case Failed:
		word, style = "not done", term.Red
	}
	p.out.Print(p.out.Paint(term.Bold, term.Visible(title(o))) + "  " + p.out.Paint(style, word) + "\n")
	p.show().Message(m, outcomeIndent)
	if hint := p.restoreHint(e, o.GetSavedIds()); hint != "" {
		p.out.Line(term.Dim, "%s%s", strings.Repeat(" ", outcomeIndent), hint)
	}
}

// restoreHint says how to bring back what a command took away.
func (p *program) restoreHint(e *catalog.Entry, saved []string) string {
	undo, ok := p.known.undo(e)
	if !ok || len(saved) == 0 {
		return ""
	}
	for i := range undo.In.Fields().Len() {
		if fd := undo.In.Fields().Get(i); catalog.TargetOf(fd) == optionv1.Target_TARGET_SAVED {
			return fmt.Sprintf("undo: throwbar call %s --%s %s", undo.Name,
				strings.ReplaceAll(string(fd.Name()), "_", "-"), strings.Join(saved, ","))
		}
	}
	return ""
}

// codeOf is the exit code of one device's outcome.
func (p *program) codeOf(e *catalog.Entry, o *controlv1.DeviceOutcome) int {
	switch {
	case o.GetError() != nil:
		return codeOfError(o.GetError())
	case o.GetPlan() != nil:
		return OK
	}
	m, err := e.Unwrap(o.GetResult())
	if err != nil {
		return Failed
	}
	return itemsCode(m)
}

// itemsCode is the exit code of a result: its items may have failed, some or all of them.
func itemsCode(m protoreflect.Message) int {
	var codes []int
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		if !fd.IsList() || fd.Message() == nil || fd.Message().FullName() != itemName {
			continue
		}
		status := fd.Message().Fields().ByName("status")
		for j := range m.Get(fd).List().Len() {
			code := Failed
			if view.ItemOK(commandv1.ItemStatus(m.Get(fd).List().Get(j).Message().Get(status).Enum())) {
				code = OK
			}
			codes = append(codes, code)
		}
	}
	if len(codes) == 0 {
		return OK
	}
	return together(codes)
}
