package dispatch

import (
	"context"
	"fmt"
	"log/slog"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/fault"
)

// Decided says that an approval may have been decided: its row is looked at, and what waits for it runs or ends.
func (d *Dispatcher) Decided(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if q := d.questions[id]; q != nil {
		d.follow(q)
	}
}

// followAll looks at all approvals that commands wait for, so that a decision is acted on of which nobody told.
func (d *Dispatcher) followAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.questions {
		d.follow(q)
	}
}

// follow acts on what became of an approval, in a goroutine of its own: the row says it, whoever wrote it. The dispatcher's
// mu is held.
func (d *Dispatcher) follow(q *question) {
	if q.following || !q.written || d.closed {
		q.again = true
		return
	}
	q.following, q.again, q.retry = true, false, false
	d.tasks.Go(func() {
		ctx := context.Background() // a decision is acted on whoever has gone away
		for {
			err := d.act(ctx, q)
			if err != nil {
				d.Log.ErrorContext(ctx, "acting on an approval failed: it is tried again",
					slog.String("approval_id", q.id), slog.Any("error", err))
			}
			d.mu.Lock()
			if q.retry = err != nil; q.again && !q.retry && !d.closed {
				q.again = false
				d.mu.Unlock()
				continue
			}
			q.following = false
			d.mu.Unlock()
			return
		}
	})
}

// act does once what an approval's row says.
func (d *Dispatcher) act(ctx context.Context, q *question) error {
	a, err := d.Approvals.GetApproval(ctx, q.workspace, q.id)
	if fault.CodeOf(err) == fault.NotFound && err != nil { // nobody can decide it any more
		d.endAll(q, &approval.Approval{State: approval.Void, DecisionReason: "it is not there any more"})
		return nil
	}
	if err != nil {
		return fmt.Errorf("read approval: %w", err)
	}
	switch a.State {
	case approval.Pending:
	case approval.Approved:
		return d.execute(ctx, q, &a)
	default:
		d.endAll(q, &a)
	}
	return nil
}

// endAll ends the commands of an approval that did not become a yes.
func (d *Dispatcher) endAll(q *question, a *approval.Approval) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range q.copied() {
		state, err := refusalOf(a)
		d.endWaiting(l, state, err)
	}
}

// refusalOf is what the commands of an approval are told that did not become a yes.
func refusalOf(a *approval.Approval) (State, *fault.Error) {
	switch a.State {
	case approval.Denied:
		if a.DecisionReason != "" {
			return Failed, fault.New(fault.Denied, "a person said no: %s", a.DecisionReason)
		}
		return Failed, fault.New(fault.Denied, "a person said no")
	case approval.Expired:
		return Expired, fault.New(fault.ApprovalTimedOut, "nobody decided in time: nothing was sent. Ask again if it is still wanted")
	case approval.Withdrawn:
		return Cancelled, fault.New(fault.Cancelled, "cancelled before anybody decided")
	default:
		return Failed, fault.New(fault.Denied, "the approval does not count any more: %s", a.DecisionReason)
	}
}

// copied are the commands of a question as they are now. The dispatcher's mu is held.
func (q *question) copied() []*live { return append([]*live(nil), q.lives...) }

// endWaiting ends a command that waits. The dispatcher's mu is held.
func (d *Dispatcher) endWaiting(l *live, state State, err *fault.Error) {
	if l.ending {
		return
	}
	l.ending = true
	d.settle(d.failure(l, state, err))
}

// lookAtQuestions warns of approvals that are about to expire, and ends those that have, by the wall clock: of a server that
// was down late.
func (d *Dispatcher) lookAtQuestions() {
	now := d.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.questions {
		d.withdrawRevoked(q)
		switch {
		case !q.written || d.closed:
		case q.retry && !q.following:
			d.follow(q)
		case q.following:
		case !now.Before(q.expiresAt):
			q.following = true
			d.tasks.Go(func() { d.expireQuestion(q) })
		case !q.warned && !now.Before(q.warnAt()):
			q.warned = true
			d.tasks.Go(func() { d.warn(q) })
		}
	}
}

// withdrawRevoked cancels what waits for a device that there is no more. The dispatcher's mu is held.
func (d *Dispatcher) withdrawRevoked(q *question) {
	for _, l := range q.copied() {
		if l.starting || !l.recorded {
			continue
		}
		if _, err := d.Devices.Find(l.rec.Workspace, l.rec.Device); fault.CodeOf(err) == fault.NotFound && err != nil {
			d.endWaiting(l, Cancelled, fault.New(fault.Cancelled, "cancelled: the device was revoked"))
		}
	}
}

// expireQuestion ends an approval that nobody decided in time, and what waited for it. A decision that was first counts.
func (d *Dispatcher) expireQuestion(q *question) {
	ctx := context.Background()
	_, err := d.Approvals.Resolve(ctx, &approval.Approval{
		Caller: approval.Caller{Workspace: q.workspace}, ID: q.id, State: approval.Expired, DecidedAt: d.Now(),
	}, approval.Pending)
	if err == nil {
		err = d.act(ctx, q)
	}
	if err != nil {
		d.Log.ErrorContext(ctx, "ending an approval that has expired failed: it is tried again",
			slog.String("approval_id", q.id), slog.Any("error", err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	q.following, q.retry = false, err != nil
	if q.again {
		d.follow(q)
	}
}

func (d *Dispatcher) warn(q *question) {
	ctx := context.Background()
	err := d.Approvals.Warn(ctx, &approval.Approval{Caller: approval.Caller{Workspace: q.workspace}, ID: q.id, WarnedAt: d.Now()})
	if err != nil {
		d.Log.ErrorContext(ctx, "warning of an approval that is about to expire failed: it is tried again",
			slog.String("approval_id", q.id), slog.Any("error", err))
		d.mu.Lock()
		defer d.mu.Unlock()
		q.warned = false
	}
}

// recoverWaiting takes up a command that waits for a person. One that somebody waited for is cancelled: nobody does any
// more.
func (d *Dispatcher) recoverWaiting(ctx context.Context, p Acceptance) error {
	l := &live{rec: p.Record, action: &commandv1.Action{}, recorded: true, recovered: true, done: make(chan struct{})}
	if err := decode(p.Record.Action, l.action); err != nil {
		return err
	}
	if entry, err := d.Catalogue.ByAction(l.action); err == nil {
		l.entry = entry
	}
	a, err := d.Approvals.GetApproval(ctx, l.rec.Workspace, l.rec.Approval)
	isGone := fault.CodeOf(err) == fault.NotFound
	if err != nil && !isGone {
		return fmt.Errorf("read approval %s: %w", l.rec.Approval, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if isGone {
		d.endWaiting(l, Failed, fault.New(fault.Denied, "its approval is not there any more: nothing was sent"))
		return nil
	}
	d.park(&a, []*live{l}).written = true
	if l.rec.Attached {
		d.endWaiting(l, Cancelled, fault.New(fault.Cancelled, "the server was restarted: whoever waited for this is gone"))
	}
	return nil
}
