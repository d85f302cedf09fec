package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/clients/cli/args"
	"throwbar.dev/throwbar/clients/cli/term"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// namedDevices is the most devices that a line names.
const namedDevices = 3

// approvalState is the state of an approval in words.
func approvalState(s controlv1.ApprovalState) term.Cell {
	cell := term.Cell{Text: args.ShortOf(s.Descriptor(), s.Number())}
	switch s {
	case controlv1.ApprovalState_APPROVAL_STATE_PENDING:
		cell.Style = term.Yellow
	case controlv1.ApprovalState_APPROVAL_STATE_APPROVED:
		cell.Style = term.Green
	case controlv1.ApprovalState_APPROVAL_STATE_DENIED, controlv1.ApprovalState_APPROVAL_STATE_EXPIRED:
		cell.Style = term.Red
	default:
		cell.Style = term.Dim
	}
	return cell
}

func pending(a *controlv1.Approval) bool {
	return a.GetState() == controlv1.ApprovalState_APPROVAL_STATE_PENDING
}

// deadline is when a pending approval expires, in words.
func (p *program) deadline(a *controlv1.Approval) term.Cell {
	if !pending(a) || a.GetExpiresAt() == nil {
		return term.Cell{}
	}
	left := a.GetExpiresAt().AsTime().Sub(p.Now())
	cell := term.Text(term.When(a.GetExpiresAt().AsTime(), p.Now()))
	if whole := a.GetExpiresAt().AsTime().Sub(a.GetCreatedAt().AsTime()); left < whole/5 {
		cell.Style = term.Red
	}
	return cell
}

// callsLine says in one line what an approval is about.
func callsLine(a *controlv1.Approval) string {
	var what []string
	var devices []string
	targets := 0
	for _, c := range a.GetCalls() {
		if !slices.Contains(what, c.GetName()) {
			what = append(what, c.GetName())
		}
		if name := deviceTitle(c); !slices.Contains(devices, name) {
			devices = append(devices, name)
		}
		targets += len(c.GetTargets())
	}
	text := strings.Join(what, ", ")
	switch {
	case len(devices) > namedDevices:
		text += fmt.Sprintf(" on %d devices", len(devices))
	case len(devices) > 0:
		text += " on " + strings.Join(devices, ", ")
	}
	if targets > 0 {
		text += fmt.Sprintf(": %d %s", targets, plural("target", uint64(targets)))
	}
	return text
}

func deviceTitle(c *controlv1.ApprovalCall) string {
	if c.GetDeviceName() == "" {
		return c.GetDeviceId()
	}
	return c.GetDeviceName()
}

// askedBy says who asked for something and where that comes from.
func (p *program) askedBy(ctx context.Context, a *controlv1.Approval) string {
	return p.tokenNames(ctx).asker(a) + ", " + originWords(a)
}

// approval shows an approval with everything that a decision binds. by says who asked.
func (p *program) approval(ctx context.Context, to *term.Screen, a *controlv1.Approval, by string) {
	names := p.tokenNames(ctx)
	state := approvalState(a.GetState())
	to.Print(to.Paint(term.Bold, "Approval "+term.Visible(a.GetApprovalId())) + "  " + to.Paint(state.Style, term.Visible(state.Text)) + "\n")
	rule := a.GetRuleId()
	if rule == "" {
		rule = "none: the command's own option asks"
	}
	deadline := ""
	if pending(a) && a.GetExpiresAt() != nil {
		deadline = fmt.Sprintf("%s (%s)", term.When(a.GetExpiresAt().AsTime(), p.Now()), a.GetExpiresAt().AsTime().Format(time.RFC3339))
	}
	to.Facts(outcomeIndent,
		[2]string{"why", a.GetReason()},
		[2]string{"rule", rule},
		[2]string{"deadline", deadline},
		[2]string{"asked by", by},
		[2]string{"asked", term.When(a.GetCreatedAt().AsTime(), p.Now())},
		[2]string{"request", a.GetRequestId()},
		[2]string{"decided", p.decided(a, names)},
		[2]string{"reason", a.GetDecisionReason()},
		[2]string{"remembered", a.GetRememberedRuleId()},
		[2]string{"hash", a.GetHash()},
	)
	for _, call := range a.GetCalls() {
		p.approvalCall(to, call)
	}
}

// originWords says where a request comes from.
func originWords(a *controlv1.Approval) string {
	switch o := a.GetOrigin(); {
	case o == controlv1.Origin_ORIGIN_INTERACTIVE:
		return "who waits for it"
	case o == controlv1.Origin_ORIGIN_BACKGROUND && a.GetConversationId() != "": // somebody may well sit in front of it
		return "whose turn goes on by itself"
	case o == controlv1.Origin_ORIGIN_BACKGROUND:
		return "in the background"
	default:
		return "from an unknown origin"
	}
}

// decided says who ended an approval and when; empty while it is pending.
func (p *program) decided(a *controlv1.Approval, n names) string {
	if pending(a) || a.GetDecidedAt() == nil {
		return ""
	}
	text := term.When(a.GetDecidedAt().AsTime(), p.Now())
	if a.GetDecidedBy() != "" {
		text = "by " + n.token(a.GetDecidedBy()) + ", " + text
	}
	return text
}

// approvalCall shows one call: what was asked for, what a decision made of it, and what it would act on.
func (p *program) approvalCall(to *term.Screen, c *controlv1.ApprovalCall) {
	head := fmt.Sprintf("%s on %s", c.GetName(), deviceTitle(c))
	if c.GetDeviceName() != "" {
		head += fmt.Sprintf(" (%s)", c.GetDeviceId())
	}
	e, err := p.known.ByAction(c.GetProposed())
	if err == nil {
		head += "  " + effect(e)
	}
	to.Line(term.Bold, "%s", head)
	to.Facts(outcomeIndent, [2]string{"command", c.GetCommandId()}, [2]string{"started", p.started(c)})
	if c.GetProposed() == nil {
		to.Line(term.Dim, "  its arguments are not kept any more: the audit record has them")
		return
	}
	if err != nil {
		to.Line(term.Red, "  this program cannot show its arguments: %v", err)
		return
	}
	p.consents(to, e, c)
	p.callArguments(to, e, c)
	p.targets(to, e, c.GetTargets())
}

// consents says which arguments are set that a person has to agree to, and what they do: an edit may have set or taken
// out some.
func (p *program) consents(to *term.Screen, e *catalog.Entry, c *controlv1.ApprovalCall) {
	runs := c.GetEffective()
	if runs == nil {
		runs = c.GetProposed()
	}
	m, err := e.Args(runs)
	if err != nil {
		return // what is wrong with it is said where the arguments are
	}
	for _, path := range e.ConsentsIn(m) {
		text := "  " + path + " is set"
		if about := e.Comment(catalog.FieldAt(e.In, path)); about != "" {
			text += ": " + about
		}
		to.Line(term.Yellow, "%s", text)
	}
}

func (p *program) started(c *controlv1.ApprovalCall) string {
	if c.GetStartedAt() == nil {
		return ""
	}
	return term.When(c.GetStartedAt().AsTime(), p.Now())
}

// callArguments shows the arguments of a call: proposed, edited and effective, where these differ.
func (p *program) callArguments(to *term.Screen, e *catalog.Entry, c *controlv1.ApprovalCall) {
	shown := []struct {
		word   string
		action *commandv1.Action
	}{{"asked for", c.GetProposed()}, {"edited to", c.GetEdited()}, {"runs as", c.GetEffective()}}
	var last *commandv1.Action
	for _, row := range shown {
		if row.action == nil || proto.Equal(row.action, last) {
			continue
		}
		last = row.action
		p.actionFacts(to, e, row.word, row.action, c.GetTargets())
	}
}

func (p *program) actionFacts(to *term.Screen, e *catalog.Entry, word string, action *commandv1.Action, targets []*controlv1.PlannedTarget) {
	m, err := e.Args(action)
	if err != nil {
		to.Line(term.Red, "  %s: this program cannot show it: %v", word, err)
		return
	}
	n := withoutListed(m, targets)
	given := p.show()
	given.Screen, given.Given = to, true
	to.Line(term.Dim, "  %s", word)
	if n > 0 {
		to.Facts(2*outcomeIndent, [2]string{"targets", fmt.Sprintf("%d, listed below", n)})
	}
	given.Message(m, 2*outcomeIndent)
}

// withoutListed takes ids out of arguments that are just those of the targets listed below them, and counts them.
// Anything else stays: what is bound has to be seen.
func withoutListed(m protoreflect.Message, targets []*controlv1.PlannedTarget) int {
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		if !fd.IsList() || fd.Kind() != protoreflect.StringKind || catalog.TargetOf(fd) == optionv1.Target_TARGET_UNSPECIFIED {
			continue
		}
		list := m.Get(fd).List()
		same := list.Len() == len(targets) && list.Len() > 0
		for j := 0; same && j < list.Len(); j++ {
			same = list.Get(j).String() == targets[j].GetId()
		}
		if same {
			n := list.Len()
			m.Clear(fd)
			return n
		}
	}
	return 0
}
