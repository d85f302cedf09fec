package dispatch

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"buf.build/go/protovalidate"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/fault"
)

// started is a command of an approval that is about to start.
type started struct {
	live *live
	call *approval.Call
	part *part
	ttl  time.Duration
}

// execute starts the commands of an approval, if all that was bound is as it was and nothing speaks against it now. What
// cannot run ends; what a person has to see again is asked again.
func (d *Dispatcher) execute(ctx context.Context, q *question, a *approval.Approval) error {
	d.mu.Lock()
	lives := q.copied()
	d.mu.Unlock()
	if a.Bound == "" || a.Sum() != a.Bound {
		return d.void(ctx, q, a, "what is written down is not what was approved")
	}
	var ready []started
	again := ""
	for _, l := range lives {
		i := slices.IndexFunc(a.Calls, func(c approval.Call) bool { return c.Command == l.rec.ID })
		if i < 0 || a.Calls[i].Caller != a.Caller || !sameCall(l.rec, &a.Calls[i]) {
			return d.void(ctx, q, a, "what is written down is not what was approved")
		}
		c := &a.Calls[i]
		if !c.UsedAt.IsZero() {
			d.endOne(l, Failed, fault.New(fault.Failed, "this was started before, and the server does not know how it ended"))
			continue
		}
		p, err := d.partOf(ctx, a, c)
		if err == nil {
			err = p.err
		}
		switch {
		case err == nil:
			ready = append(ready, started{live: l, call: c, part: p, ttl: c.TTL})
			if why := d.newer(a, c, p); why != "" && again == "" {
				again = why
			}
		case fault.CodeOf(err) == fault.Internal:
			return err
		default:
			d.endOne(l, Failed, faultOf(err))
		}
	}
	switch {
	case len(ready) == 0:
		return nil
	case again != "":
		return d.askAgain(ctx, a, ready, again)
	default:
		return d.start(ctx, a, ready)
	}
}

// sameCall says whether a command in memory is the call that was approved.
func sameCall(rec Record, c *approval.Call) bool {
	return caller(rec) == c.Caller && rec.Device == c.Device && rec.Name == c.Name && rec.TTL == c.TTL && rec.Approval != ""
}

func faultOf(err error) *fault.Error {
	ce := fault.Command(err)
	f := fault.New(fault.CodeOf(err), "%s", ce.GetMessage())
	f.Retryable = ce.GetRetryable()
	return f
}

func (d *Dispatcher) endOne(l *live, state State, err *fault.Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endWaiting(l, state, err)
}

// partOf is a call as it would run now, through the same gate as any command.
func (d *Dispatcher) partOf(ctx context.Context, a *approval.Approval, c *approval.Call) (*part, error) {
	return d.reviewed(ctx, a, c, c.Effective)
}

// reviewed holds an action in a call's place against what any command is held against.
func (d *Dispatcher) reviewed(ctx context.Context, a *approval.Approval, c *approval.Call, raw []byte) (*part, error) {
	action := &commandv1.Action{}
	if err := decode(raw, action); err != nil {
		return nil, fault.Wrap(fault.Failed, err, "the arguments of %s cannot be read any more", c.Name)
	}
	entry, err := d.Catalogue.ByAction(action)
	if err != nil || entry.Name != c.Name {
		return nil, fault.New(fault.Unsupported, "this server does not know %s any more: it cannot run it", c.Name)
	}
	args, err := entry.Body(action)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the arguments of %s cannot be read", entry.Name)
	}
	if err := protovalidate.Validate(args.Interface()); err != nil {
		return nil, fault.New(fault.Invalid, "the arguments of %s break a rule: %v", entry.Name, err)
	}
	saved, err := d.savedOf(ctx, a.Workspace, args)
	if err != nil {
		return nil, err
	}
	of, err := owners(args, saved)
	if err != nil {
		return nil, err
	}
	if len(of) > 1 || (len(of) == 1 && of[0] != c.Device && !entry.HasSaved()) {
		return nil, fault.New(fault.Invalid, "some of the ids belong to another device than %s", c.Device)
	}
	return d.gateAll(requestOf(a), entry, []piece{{device: c.Device, action: action, args: args}}, saved, 0)[0], nil
}

func requestOf(a *approval.Approval) Request {
	return Request{Workspace: a.Workspace, Principal: a.Principal, Conversation: a.Conversation, Origin: a.Origin}
}

// newer says why a person has to be asked again: policy has changed and asks, or there is more to act on than was shown.
func (d *Dispatcher) newer(a *approval.Approval, c *approval.Call, p *part) string {
	if p.decision.Verdict == controlv1.Verdict_VERDICT_ASK && p.decision.Version != a.Version {
		return "the policy has changed since: " + p.decision.Reason
	}
	for _, id := range slices.Concat(p.tabs, savedIDs(p.saved)) {
		if !c.Covers(id) && !d.wasShown(c, id) {
			return "it would act on more than was shown: " + p.decision.Reason
		}
	}
	return ""
}

// wasShown says whether a tab was shown under an id that it had then.
func (d *Dispatcher) wasShown(c *approval.Call, id string) bool {
	current := d.Browser.Current(id)
	return slices.ContainsFunc(c.Targets, func(t *controlv1.PlannedTarget) bool { return d.Browser.Current(t.GetId()) == current })
}

// void ends an approval that does not count any more, and its commands.
func (d *Dispatcher) void(ctx context.Context, q *question, a *approval.Approval, why string) error {
	gone := *a
	gone.State, gone.DecidedAt, gone.DecisionReason = approval.Void, d.Now(), why
	if _, err := d.Approvals.Resolve(ctx, &gone, a.State); err != nil {
		return fmt.Errorf("make approval void: %w", err)
	}
	d.endAll(q, &gone)
	return nil
}

// askAgain asks a person anew about commands that were approved: the approval they had is void.
func (d *Dispatcher) askAgain(ctx context.Context, old *approval.Approval, ready []started, why string) error {
	gone := *old
	now := d.Now().Truncate(time.Millisecond)
	gone.State, gone.DecidedAt, gone.DecisionReason = approval.Void, now, why
	if err := d.askable(old.Workspace, old.Principal, old.Origin); err != nil {
		if _, err := d.Approvals.Resolve(ctx, &gone, old.State); err != nil {
			return fmt.Errorf("make approval void: %w", err)
		}
		for _, s := range ready {
			d.endOne(s.live, Failed, faultOf(err))
		}
		return nil
	}
	a := &approval.Approval{
		Caller: old.Caller, ID: d.NewID(), State: approval.Pending, Reason: why, Rule: ready[0].part.decision.Rule,
		Version: ready[0].part.decision.Version, CreatedAt: now, ExpiresAt: now.Add(d.within(old.Workspace)),
	}
	for _, s := range ready {
		a.Version = min(a.Version, s.part.decision.Version)
		a.Calls = append(a.Calls, call(s.live.rec, s.call.Effective, d.shown(s.part)))
	}
	a.Hash = a.Sum()
	d.movePark(a, ready)
	won, err := d.Approvals.Replace(ctx, &gone, old.State, a)
	if err != nil || !won {
		d.movePark(old, ready)
		d.mu.Lock()
		if q := d.questions[old.ID]; q != nil {
			q.written, q.retry = true, true
		}
		d.mu.Unlock()
		return err
	}
	d.tellAsked(a, ready)
	d.posed(a.ID)
	return nil
}

// tellAsked tells whoever waits for commands that they wait for another approval now.
func (d *Dispatcher) tellAsked(a *approval.Approval, ready []started) {
	var tell []func(*controlv1.Approval)
	seen := map[*Order]bool{}
	d.mu.Lock()
	for _, s := range ready {
		if o := s.live.order; o != nil && !seen[o] && o.Request.Asked != nil {
			seen[o] = true
			tell = append(tell, o.Request.Asked)
		}
		tell = append(tell, s.live.joined...)
	}
	d.mu.Unlock()
	for _, asked := range tell {
		asked(a.View(d.Catalogue, d.deviceName))
	}
}

// movePark makes commands wait for another approval.
func (d *Dispatcher) movePark(a *approval.Approval, ready []started) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range ready {
		if s.live.ending {
			continue
		}
		d.unpark(s.live)
		s.live.rec.Deadline = a.ExpiresAt
		d.park(a, []*live{s.live})
	}
}

// start writes down that commands start, and sends them.
func (d *Dispatcher) start(ctx context.Context, a *approval.Approval, ready []started) error {
	now := d.Now()
	ready, err := d.claimStart(ready)
	if err != nil || len(ready) == 0 {
		return err
	}
	rows := make([]Acceptance, 0, len(ready))
	for _, s := range ready {
		rows = append(rows, d.beginning(s, now))
	}
	err = d.Approvals.BeginApproved(ctx, a.ID, now, rows)
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, s := range ready {
		d.startOne(s, rows[i], err)
	}
	if err != nil {
		return fmt.Errorf("write down the start of approved commands: %w", err)
	}
	return nil
}

// claimStart makes room for commands among those under way. From then on until they have started nothing ends them.
func (d *Dispatcher) claimStart(ready []started) ([]started, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ready = slices.DeleteFunc(ready, func(s started) bool { return s.live.ending })
	for i, s := range ready {
		if err := d.room(s.live, s.part.device.Name); err != nil {
			for _, s := range ready[:i] {
				s.live.starting = false
				d.untrack(s.live)
			}
			return nil, err
		}
		s.live.starting = true
		d.track(s.live)
	}
	return ready, nil
}

// beginning is what is written of a command that starts.
func (d *Dispatcher) beginning(s started, now time.Time) Acceptance {
	rec := s.live.rec
	rec.State, rec.Action, rec.Deadline = Accepted, s.call.Effective, now.Add(s.ttl)
	row := Acceptance{Record: rec, Saved: d.kept(s.part, now), Claims: savedIDs(s.part.saved)}
	row.Narrow = func(claimed []string) ([]byte, error) { return narrow(s.part, claimed) }
	if n := savedRefs(s.part.refs); n > len(s.part.saved) { // some are not there any more
		if raw, err := narrow(s.part, row.Claims); err == nil {
			row.Record.Action = raw
		}
	}
	return row
}

// startOne takes in that the start of a command was written down, or was not. The dispatcher's mu is held.
func (d *Dispatcher) startOne(s started, row Acceptance, err error) {
	l := s.live
	l.starting = false
	if err == nil && !row.Stale && !row.Void() {
		l.entry, l.action, l.saved = s.part.entry, s.part.action, row.Saved
		for _, tab := range s.part.saved {
			if !slices.Contains(row.Lost, tab.GetSavedId()) {
				l.restore = append(l.restore, tab)
			}
		}
		d.unpark(l)
		l.rec.State, l.rec.Deadline, l.rec.Action = Accepted, row.Record.Deadline, row.Record.Action
		l.rec.Private = s.part.private
		l.startedAt = d.Now()
		d.begin(l, s.ttl)
		if l.cancelled == "" {
			d.send(l, d.Links.Connected(l.rec.Device))
			return
		}
	} else {
		d.untrack(l)
	}
	switch {
	case l.cancelled != "":
		d.endWaiting(l, Cancelled, fault.New(fault.Cancelled, "cancelled: %s", l.cancelled))
	case err != nil && fault.CodeOf(err) != fault.Internal && fault.CodeOf(err) != fault.Interrupted: // nothing was written
	case err != nil:
		l.saved, l.restore = row.Saved, s.part.saved
		d.endWaiting(l, Failed, fault.New(fault.Failed, "the server could not write this down for certain: nothing was sent"))
	case row.Stale:
		d.endWaiting(l, Failed, fault.New(fault.Failed, "this was started or ended before: nothing was sent"))
	default:
		d.endWaiting(l, Failed, faultOf(taken()))
	}
}

// Review implements approval.Gate.
func (d *Dispatcher) Review(ctx context.Context, a *approval.Approval, c *approval.Call, action []byte) (approval.Review, error) {
	p, err := d.reviewed(ctx, a, c, action)
	if err != nil {
		return approval.Review{}, err
	}
	review := approval.Review{Action: action, Decision: p.decision, Call: d.policyCall(requestOf(a), p)}
	if bytes.Equal(action, c.Proposed) {
		review.Targets = c.Targets
	} else {
		review.Targets = d.shown(p)
	}
	if fault.CodeOf(p.err) == fault.Offline && p.err != nil { // it may be back when the command starts
		return review, nil
	}
	return review, p.err
}

var _ approval.Gate = (*Dispatcher)(nil)
