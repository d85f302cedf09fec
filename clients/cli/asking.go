package cli

import (
	"context"
	"time"

	"github.com/google/uuid"

	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const (
	askedAfter    = 400 * time.Millisecond // how long a command may take before it is looked up whether it waits for a person
	withdrawnWait = 10 * time.Second
	withdrawnStep = 50 * time.Millisecond
)

// asking calls a command that may have to wait for a person. If its answer takes longer than a moment, it follows the
// approvals that the call needs, says what it waits for, and lets a person at the terminal decide. own says which
// approvals are those of the call.
func asking[T any](
	ctx context.Context, p *program, s *throwbar.Client, own func(*controlv1.Approval) bool, call func(context.Context) (T, error),
) (T, error) {
	var answer T
	d := p.newDesk(s, true)
	f := p.newFeed(s)
	follow := func(ctx context.Context, each func(*controlv1.WatchApprovalsResponse) error) error {
		if err := rest(ctx, askedAfter); err != nil {
			return err
		}
		return f.follow(ctx, func(frame *controlv1.WatchApprovalsResponse) error {
			if !own(frame.GetApproval()) {
				return nil
			}
			return each(frame)
		})
	}
	err := p.attend(ctx, d, follow, func(ctx context.Context) error {
		var err error
		answer, err = call(ctx)
		return err
	}, false)
	if ctx.Err() != nil {
		p.withdrawn(ctx, d)
	}
	return answer, err
}

// withdrawn says what became of the approvals that an interrupted call waited for.
func (p *program) withdrawn(ctx context.Context, d *desk) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawnWait)
	defer cancel()
	for _, a := range d.queue {
		id := shortID(a.GetApprovalId())
		for { // the server hears of the interrupt a moment later
			answer, err := d.server.Approvals.GetApproval(ctx, &controlv1.GetApprovalRequest{ApprovalId: a.GetApprovalId()})
			switch {
			case err != nil:
				p.err.Line(term.Yellow, "Interrupted while approval %s was pending: `throwbar approvals show %s` shows what became of it.", id, id)
			case pending(answer.GetApproval()) && rest(ctx, withdrawnStep) == nil:
				continue
			case answer.GetApproval().GetState() == controlv1.ApprovalState_APPROVAL_STATE_WITHDRAWN:
				p.err.Line(term.Yellow, "Withdrawn: approval %s is not needed any more, and nothing of it has run.", id)
			default:
				p.err.Line(term.Yellow, "%s. `throwbar history` shows whether anything has run.", p.resolved(ctx, answer.GetApproval()))
			}
			break
		}
	}
}

// newRequest is what a call is called, so that its approvals are found, and which approvals those are.
func newRequest() (string, func(*controlv1.Approval) bool) {
	id := uuid.NewString()
	return id, func(a *controlv1.Approval) bool { return a.GetRequestId() == id }
}

// unnamed is for a call that cannot be given a name: the approvals that have none and were not there before it.
func (p *program) unnamed(ctx context.Context) func(*controlv1.Approval) bool {
	before := map[string]bool{}
	if list, err := p.approvals(ctx, true, 0); err == nil {
		for _, a := range list.GetApprovals() {
			before[a.GetApprovalId()] = true
		}
	}
	return func(a *controlv1.Approval) bool {
		return a.GetRequestId() == "" && a.GetConversationId() == "" && a.GetOrigin() == controlv1.Origin_ORIGIN_INTERACTIVE &&
			!before[a.GetApprovalId()]
	}
}
