package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const keys = "y yes, n no, d show it again, s decide later: "

// desk is where a person meets the approvals that wait: it says what comes and goes, and takes decisions one by one. It
// belongs to one goroutine.
type desk struct {
	program *program
	server  *throwbar.Client
	waiting bool // the program itself waits for them: it says so on the standard error
	offers  bool // somebody is there to decide
	who     func(context.Context, *controlv1.Approval) string

	queue []*controlv1.Approval // pending, the oldest first
	shown *controlv1.Approval   // what the next line is about; nil if about nothing
	typed bool                  // the next line may have been meant for what was decided elsewhere: it decides nothing
	why   bool                  // the next line is the reason of a denial
	mine  map[string]bool       // decided here
}

func (p *program) newDesk(s *throwbar.Client, waiting bool) *desk {
	return &desk{program: p, server: s, waiting: waiting, offers: p.person(), who: p.askedBy, mine: map[string]bool{}}
}

// wants says whether the desk has asked something that a line answers.
func (d *desk) wants() bool { return d.shown != nil || d.typed && len(d.queue) > 0 && d.offers }

// take takes the news of an approval.
func (d *desk) take(ctx context.Context, a *controlv1.Approval, warning bool) {
	at := slices.IndexFunc(d.queue, func(q *controlv1.Approval) bool { return q.GetApprovalId() == a.GetApprovalId() })
	current := d.shown != nil && d.shown.GetApprovalId() == a.GetApprovalId()
	if current && (!pending(a) || d.shown.GetHash() != a.GetHash()) {
		d.breakLine()
		d.shown, d.typed, d.why = nil, true, false
	}
	switch {
	case pending(a) && at < 0:
		d.queue = append(d.queue, a)
	case pending(a):
		d.queue[at] = a
	case at >= 0:
		d.queue = slices.Delete(d.queue, at, at+1)
	}
	if !d.mine[a.GetApprovalId()] {
		d.say(ctx, a, warning)
	}
	d.next(ctx)
}

// clear takes everything off the desk.
func (d *desk) clear() {
	d.breakLine()
	d.queue, d.shown, d.typed, d.why = nil, nil, false, false
}

// gone asks nothing any more, because nobody is there, and says where what is pending can be decided.
func (d *desk) gone() {
	d.breakLine()
	d.offers, d.shown, d.typed, d.why = false, nil, false, false
	if !d.waiting {
		return
	}
	for _, a := range d.queue {
		d.elsewhere(a)
	}
}

// elsewhere says how an approval is decided that is not asked here.
func (d *desk) elsewhere(a *controlv1.Approval) {
	id := shortID(a.GetApprovalId())
	d.program.err.Line(term.Plain, "  decide with: throwbar approvals approve %s   or: throwbar approvals deny %s --reason TEXT", id, id)
}

// breakLine ends the line that a prompt has begun.
func (d *desk) breakLine() {
	if d.shown != nil && d.program.editor.Load() == nil {
		d.program.err.Print("\n")
	}
}

// say tells what an approval is now.
func (d *desk) say(ctx context.Context, a *controlv1.Approval, warning bool) {
	p := d.program
	if d.shown != nil {
		d.breakLine()
		defer d.prompt()
	}
	if !d.waiting {
		p.approvalLine(ctx, a, warning)
		return
	}
	id := shortID(a.GetApprovalId())
	switch {
	case !pending(a):
		p.err.Line(approvalState(a.GetState()).Style, "%s", p.resolved(ctx, a))
	case warning:
		p.err.Line(term.Yellow, "Approval %s expires %s.", id, p.deadline(a).Text)
	case d.offers && d.shown == nil && !d.typed: // it is asked at once, with all of this
	default:
		p.err.Line(term.Yellow, "Waits for approval %s: %s", id, callsLine(a))
		if d.offers { // it is asked in turn
			return
		}
		p.err.Line(term.Plain, "  why: %s", a.GetReason())
		if a.GetConversationId() != "" && a.GetPrincipal() != a.GetConversationId() {
			p.err.Line(term.Plain, "  asked by: %s", d.who(ctx, a))
		}
		d.elsewhere(a)
		if at := p.deadline(a).Text; at != "" {
			p.err.Line(term.Plain, "  it expires %s", at)
		}
	}
}

// resolved says how an approval ended, in words.
func (p *program) resolved(ctx context.Context, a *controlv1.Approval) string {
	id, by := shortID(a.GetApprovalId()), ""
	if a.GetDecidedBy() != "" {
		by = " by " + p.tokenNames(ctx).token(a.GetDecidedBy())
	}
	if a.GetDecisionReason() != "" {
		by += ": " + a.GetDecisionReason()
	}
	switch a.GetState() {
	case controlv1.ApprovalState_APPROVAL_STATE_APPROVED:
		return fmt.Sprintf("Approval %s was given%s", id, by)
	case controlv1.ApprovalState_APPROVAL_STATE_DENIED:
		return fmt.Sprintf("Approval %s was denied%s", id, by)
	case controlv1.ApprovalState_APPROVAL_STATE_EXPIRED:
		return fmt.Sprintf("Approval %s has expired: nobody decided in time", id)
	case controlv1.ApprovalState_APPROVAL_STATE_WITHDRAWN:
		return fmt.Sprintf("Approval %s was withdrawn: nobody wants it any more", id)
	case controlv1.ApprovalState_APPROVAL_STATE_VOID:
		return fmt.Sprintf("Approval %s does not count any more: what it was for has changed%s", id, by)
	default:
		return fmt.Sprintf("Approval %s is %s%s", id, approvalState(a.GetState()).Text, by)
	}
}

// next shows the oldest that waits, if a person is there and nothing else is shown.
func (d *desk) next(ctx context.Context) {
	if !d.offers || d.shown != nil || len(d.queue) == 0 {
		return
	}
	if d.typed {
		d.prompt()
		return
	}
	d.shown = d.queue[0]
	d.program.approval(ctx, d.program.err, d.shown, d.who(ctx, d.shown))
	d.prompt()
}

// prompt asks, where no editor has the question before its line.
func (d *desk) prompt() {
	if d.program.editor.Load() == nil {
		d.program.err.Print(d.program.err.Paint(term.Bold, d.question().Text))
	}
}

// question is what the next line answers. It is another one where it is about anything else.
func (d *desk) question() term.Prompt {
	id, hash := d.shown.GetApprovalId(), d.shown.GetHash()
	switch {
	case d.typed:
		return term.Prompt{Text: "Press Enter to see what else waits. ", Question: "next"}
	case d.why:
		return term.Prompt{Text: "Why not? Whoever asked is told; empty for no reason: ", Question: fmt.Sprint("why ", id, hash)}
	default:
		return term.Prompt{Text: fmt.Sprintf("Approve %s? ", shortID(id)) + keys, Question: fmt.Sprint("approve ", id, hash)}
	}
}

// line takes what a person typed.
func (d *desk) line(ctx context.Context, text string) error {
	text = strings.TrimSpace(text)
	switch {
	case d.typed:
		d.typed = false
		d.next(ctx)
		return nil
	case d.shown == nil:
		return nil
	case d.why:
		return d.decide(ctx, denial(d.shown, text))
	}
	switch strings.ToLower(text) {
	case "y", "yes":
		return d.decide(ctx, &controlv1.Decision{
			ApprovalId: d.shown.GetApprovalId(),
			Verdict:    &controlv1.Decision_Approve{Approve: &controlv1.Approve{Hash: d.shown.GetHash()}},
		})
	case "n", "no":
		d.why = true
	case "d":
		d.program.approval(ctx, d.program.err, d.shown, d.who(ctx, d.shown))
	case "s":
		d.elsewhere(d.shown)
		d.leave()
		d.next(ctx)
		return nil
	}
	d.prompt()
	return nil
}

// leave takes what is shown off the desk.
func (d *desk) leave() {
	id := d.shown.GetApprovalId()
	d.queue = slices.DeleteFunc(d.queue, func(a *controlv1.Approval) bool { return a.GetApprovalId() == id })
	d.shown, d.why = nil, false
}

// decide sends a decision on what is shown. One that does not count leaves the approval to others.
func (d *desk) decide(ctx context.Context, decision *controlv1.Decision) error {
	a := d.shown
	answer, err := d.server.Approvals.Decide(ctx, &controlv1.DecideRequest{Decisions: []*controlv1.Decision{decision}})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && mayNot(err):
		d.offers, d.shown, d.why = false, nil, false
		d.program.err.Line(term.Yellow, "This token may not decide (%v): somebody else has to.", err)
		d.elsewhere(a)
		return nil
	case err != nil:
		d.program.err.Line(term.Red, "It could not be decided: %v", err)
		d.why = false
		d.prompt()
		return nil
	case len(answer.GetOutcomes()) != 1:
		return Errorf(Failed, "the server answered one decision with %d outcomes", len(answer.GetOutcomes()))
	}
	d.leave()
	o := answer.GetOutcomes()[0]
	if o.GetError() == nil {
		d.mine[a.GetApprovalId()] = true
	}
	to := d.program.out
	if d.waiting {
		to = d.program.err // the standard output is for the outcome of the command
	}
	d.program.decision(ctx, to, a, o)
	d.next(ctx)
	return nil
}
