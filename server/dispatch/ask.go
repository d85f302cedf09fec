package dispatch

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/policy"
)

// defaultWithin is how long a person has to decide where nothing is set.
const defaultWithin = 72 * time.Hour

// question is an approval with commands that wait for it. Its fields are guarded by the dispatcher's mu.
type question struct {
	id, workspace      string
	askedAt, expiresAt time.Time
	lives              []*live
	written            bool // it is in the store
	warned             bool
	following          bool // somebody acts on what became of it
	again              bool // and has to look once more
	retry              bool // that could not be done: it is tried again
}

// warnAt is when it is said that a question is about to expire: when four fifths of its time have passed.
func (q *question) warnAt() time.Time { return q.expiresAt.Add(-q.expiresAt.Sub(q.askedAt) / 5) }

// decide asks policy about a part. It is a fault Denied if policy denies it.
func (d *Dispatcher) decide(req Request, p *part) error {
	p.decision = d.Policy.Decide(d.policyCall(req, p))
	switch p.decision.Verdict {
	case controlv1.Verdict_VERDICT_ALLOW, controlv1.Verdict_VERDICT_ASK:
		return nil
	default:
		p.decision.Verdict = controlv1.Verdict_VERDICT_DENY
		return fault.New(fault.Denied, "%s", p.decision.Reason)
	}
}

// policyCall is a part as policy sees it.
func (d *Dispatcher) policyCall(req Request, p *part) policy.Call {
	return policy.Call{
		Workspace: req.Workspace, Conversation: req.Conversation, Principal: req.Principal, Device: p.device.ID,
		Origin: req.origin(), Entry: p.entry, Args: p.args, Targets: targetCount(p), Together: p.together, Before: p.before,
		URLs: func() []string { return d.addresses(p) },
	}
}

// noteDenials writes down what policy denied of an order.
func (d *Dispatcher) noteDenials(o *Order) {
	var denials []Denial
	for _, p := range o.parts {
		if p.err == nil || p.decision.Verdict != controlv1.Verdict_VERDICT_DENY {
			continue
		}
		rec := d.record(o, p)
		rec.CreatedAt = d.Now()
		if raw, err := (proto.MarshalOptions{Deterministic: true}).Marshal(p.action); err == nil {
			rec.Action = raw
		}
		denials = append(denials, Denial{Record: rec, Decision: p.decision})
	}
	if len(denials) > 0 {
		d.Ledger.Refused(denials)
	}
}

// ask asks a person about the parts of an order that need it: one approval for all of them. They wait from then on.
func (d *Dispatcher) ask(ctx context.Context, o *Order) {
	var parts []*part
	for _, p := range o.parts {
		if p.asks() {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return
	}
	refuse := func(err error) {
		for _, p := range parts {
			p.err = err
		}
	}
	if err := d.askable(o.Request.Workspace, o.Request.Principal, o.Request.origin()); err != nil {
		refuse(err)
		for _, p := range parts {
			p.decision.Verdict, p.decision.Reason = controlv1.Verdict_VERDICT_DENY, err.Error()
		}
		d.noteDenials(o)
		return
	}
	lives, a, err := d.newQuestion(o, parts)
	if err == nil {
		err = d.pose(ctx, a, lives)
	}
	if err != nil {
		refuse(err)
		return
	}
	if o.Request.Asked != nil {
		o.Request.Asked(a.View(d.Catalogue, d.deviceName))
	}
	d.posed(a.ID)
}

// askable is a fault Denied where nobody can be asked and the workspace's settings do not say to wait.
func (d *Dispatcher) askable(workspace, principal string, origin controlv1.Origin) error {
	settings := d.Policy.Settings(workspace)
	unreachable := settings.GetInteractive()
	if origin == controlv1.Origin_ORIGIN_BACKGROUND {
		unreachable = settings.GetBackground()
		if unreachable == controlv1.Unreachable_UNREACHABLE_UNSPECIFIED {
			unreachable = controlv1.Unreachable_UNREACHABLE_REFUSE
		}
	}
	if unreachable != controlv1.Unreachable_UNREACHABLE_REFUSE || (d.Reachable != nil && d.Reachable(workspace, principal)) {
		return nil
	}
	return fault.New(fault.Denied, "this asks a person first, and nobody can be asked: no one who may decide follows the approvals. "+
		"Have somebody follow them, or set that such commands wait")
}

// newQuestion makes the approval and the commands of parts that ask.
func (d *Dispatcher) newQuestion(o *Order, parts []*part) ([]*live, *approval.Approval, error) {
	now := d.Now().Truncate(time.Millisecond) // as it is stored: it is bound
	first := parts[0]
	a := &approval.Approval{
		ID: d.NewID(), State: approval.Pending, Reason: first.decision.Reason, Rule: first.decision.Rule,
		Version: first.decision.Version, CreatedAt: now, ExpiresAt: now.Add(d.within(o.Request.Workspace)),
	}
	lives := make([]*live, 0, len(parts))
	for _, p := range parts {
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.action)
		if err != nil {
			return nil, nil, fault.New(fault.Invalid, "the arguments of %s cannot be encoded", p.entry.Name)
		}
		rec := d.record(o, p)
		rec.TTL = rec.TTL.Truncate(time.Millisecond)
		rec.ID, rec.Action, rec.State = d.NewID(), raw, AwaitingApproval
		rec.CreatedAt, rec.Deadline, rec.Approval = now, a.ExpiresAt, a.ID
		a.Version = min(a.Version, p.decision.Version)
		a.Caller = caller(rec)
		a.Calls = append(a.Calls, call(rec, raw, d.shown(p)))
		lives = append(lives, &live{rec: rec, entry: p.entry, action: p.action, order: o, part: p, done: make(chan struct{})})
	}
	a.Hash = a.Sum()
	return lives, a, nil
}

func (d *Dispatcher) within(workspace string) time.Duration {
	if within := d.Policy.Settings(workspace).GetApprovalWithin(); within != nil {
		return within.AsDuration().Truncate(time.Millisecond)
	}
	return defaultWithin
}

func caller(rec Record) approval.Caller {
	return approval.Caller{
		Workspace: rec.Workspace, Principal: rec.Principal, Conversation: rec.Conversation, Group: rec.Group,
		Request: rec.Request, Origin: rec.Origin,
	}
}

func call(rec Record, action []byte, targets []*controlv1.PlannedTarget) approval.Call {
	return approval.Call{
		Caller: caller(rec), Command: rec.ID, Device: rec.Device, Name: rec.Name, TTL: rec.TTL, Proposed: action, Targets: targets,
	}
}

// pose writes an approval and its commands down. They count as waiting before, so that a decision that comes at once finds
// them.
func (d *Dispatcher) pose(ctx context.Context, a *approval.Approval, lives []*live) error {
	d.mu.Lock()
	if d.asking[a.Principal]+len(lives) > maxWaitingPerCaller {
		d.mu.Unlock()
		return fault.New(fault.Busy, "%d commands of this caller wait for a person: have them decided first", d.asking[a.Principal]).Retry()
	}
	d.park(a, lives)
	d.mu.Unlock()
	recs := make([]Record, 0, len(lives))
	for _, l := range lives {
		recs = append(recs, l.rec)
	}
	err := d.Approvals.Ask(ctx, a, recs)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range lives {
		switch {
		case err == nil:
			l.recorded = true
			if l.order != nil {
				l.part.live = l
				l.order.left++
			}
		case fault.CodeOf(err) == fault.Internal, fault.CodeOf(err) == fault.Interrupted: // perhaps it is there
			l.told, l.ending = true, true
			d.settle(d.failure(l, Cancelled, fault.New(fault.Cancelled, "the server could not write this down for certain: nobody was asked")))
		default:
			d.forget(l)
		}
	}
	if err != nil {
		d.Log.ErrorContext(ctx, "writing an approval failed", slog.String("approval_id", a.ID), slog.Any("error", err))
		if fault.CodeOf(err) == fault.Internal {
			return fault.New(fault.Failed, "the server could not write this down for certain: nobody was asked")
		}
	}
	return err
}

// posed says that a question is written down and whoever asked knows: what was decided meanwhile is acted on.
func (d *Dispatcher) posed(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if q := d.questions[id]; q != nil {
		q.written = true
		if q.again {
			d.follow(q)
		}
	}
}

// park makes commands wait for an approval. The dispatcher's mu is held.
func (d *Dispatcher) park(a *approval.Approval, lives []*live) *question {
	q := d.questions[a.ID]
	if q == nil {
		q = &question{id: a.ID, workspace: a.Workspace, askedAt: a.CreatedAt, expiresAt: a.ExpiresAt, warned: !a.WarnedAt.IsZero()}
		d.questions[a.ID] = q
	}
	for _, l := range lives {
		l.question = q
		l.rec.Approval = a.ID
		q.lives = append(q.lives, l)
		d.waiting[l.rec.ID] = l
		d.asking[l.rec.Principal]++
	}
	return q
}

// unpark makes a command wait no more. The dispatcher's mu is held.
func (d *Dispatcher) unpark(l *live) {
	q := l.question
	if q == nil {
		return
	}
	l.question = nil
	delete(d.waiting, l.rec.ID)
	if d.asking[l.rec.Principal]--; d.asking[l.rec.Principal] <= 0 {
		delete(d.asking, l.rec.Principal)
	}
	for i, other := range q.lives {
		if other == l {
			q.lives = append(q.lives[:i:i], q.lives[i+1:]...)
			break
		}
	}
	if len(q.lives) == 0 {
		delete(d.questions, q.id)
	}
}

// askedBy is the approval of a command; empty if nobody was asked.
func (l *live) askedBy() string { return l.rec.Approval }

func (d *Dispatcher) deviceName(workspace, id string) string {
	device, err := d.Devices.Find(workspace, id)
	if err != nil {
		return ""
	}
	return device.Name
}
