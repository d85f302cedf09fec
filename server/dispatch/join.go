package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/fault"
)

// joinMost is how many commands one request can have become.
const joinMost = maxLivePerCaller

// joinKey names a request over restarts of the server.
type joinKey struct{ workspace, principal, request string }

// joint is a command that was written down under a request, and that another caller follows to its end.
type joint struct {
	rec  Record
	live *live // nil if it has ended
}

// Join is Dispatch for a request that may have been made before, by a process that is gone too: what was written down under
// its principal and request id is followed to its end, however that comes about, and only devices for which nothing was
// written down are sent it now. Of two that join at once one waits for the other, so nothing is sent twice.
//
// A caller that has gone away already joins too, and so cancels what its request became, unless that stays.
//
// The end of a command is told with its result for as long as that is kept, and after that in words.
func (d *Dispatcher) Join(ctx context.Context, req Request) (*controlv1.DispatchResponse, error) {
	release, err := d.claimJoin(ctx, req)
	if err != nil {
		return nil, err
	}
	joints, err := d.written(ctx, req)
	if err != nil {
		release()
		return nil, err
	}
	if len(joints) == 0 && ctx.Err() != nil {
		release()
		return nil, fault.Wrap(fault.Cancelled, context.Cause(ctx), wentAway)
	}
	if len(joints) == 0 {
		return d.await(ctx, req.stays, func(answer func(*controlv1.DispatchResponse, error)) *Order {
			defer release()
			o := &Order{Request: req, Answer: answer}
			d.Start(ctx, []*Order{o})
			return o
		})
	}
	rest := d.unwrittenParts(ctx, req, joints)
	answers := make(chan *controlv1.DispatchResponse, 1)
	o := &Order{Request: req, parts: rest, Answer: func(res *controlv1.DispatchResponse, err error) {
		if err != nil {
			res = &controlv1.DispatchResponse{Outcomes: []*controlv1.DeviceOutcome{{Outcome: &controlv1.DeviceOutcome_Error{Error: fault.Command(err)}}}}
		}
		answers <- res
	}}
	if len(rest) > 0 {
		d.accept(ctx, []*Order{o})
	} else {
		answers <- &controlv1.DispatchResponse{}
	}
	release()
	res, err := d.joined(ctx, req, joints)
	if err != nil {
		if !req.stays(context.Cause(ctx)) {
			d.abandon(o)
		}
		return nil, err
	}
	select {
	case more := <-answers:
		res.Outcomes = append(res.Outcomes, more.GetOutcomes()...)
		return res, nil
	case <-ctx.Done():
		if !req.stays(context.Cause(ctx)) {
			d.abandon(o)
		}
		return nil, fault.Wrap(fault.Cancelled, context.Cause(ctx), wentAway)
	}
}

// Joined is Join that sends nothing: it is false if nothing was written down under the request.
func (d *Dispatcher) Joined(ctx context.Context, req Request) (*controlv1.DispatchResponse, bool, error) {
	release, err := d.claimJoin(ctx, req)
	if err != nil {
		return nil, false, err
	}
	joints, err := d.written(ctx, req)
	release()
	if err != nil || len(joints) == 0 {
		return nil, false, err
	}
	res, err := d.joined(ctx, req, joints)
	return res, true, err
}

// Withdraw is Joined for a request that is not wanted any more: what still waits for a person is cancelled first.
func (d *Dispatcher) Withdraw(ctx context.Context, req Request, why string) (*controlv1.DispatchResponse, bool, error) {
	release, err := d.claimJoin(ctx, req)
	if err != nil {
		return nil, false, err
	}
	joints, err := d.written(ctx, req)
	release()
	if err != nil || len(joints) == 0 {
		return nil, false, err
	}
	for _, j := range joints {
		if j.live != nil {
			d.withdraw(j.live, why)
		}
	}
	res, err := d.joined(ctx, req, joints)
	return res, true, err
}

// withdraw cancels a command that waits for a person.
func (d *Dispatcher) withdraw(l *live, why string) {
	d.mu.Lock()
	waits := l.question != nil
	d.mu.Unlock()
	if waits {
		d.cancel(l, why)
	}
}

// claimJoin waits until nobody else looks under a request and sends it.
func (d *Dispatcher) claimJoin(ctx context.Context, req Request) (release func(), err error) {
	key := joinKey{req.Workspace, req.Principal, req.request()}
	if key.request == "" {
		return nil, fault.New(fault.Invalid, "a request without an id cannot be joined")
	}
	return d.joins.claim(ctx, key)
}

// written finds what a request became, in the order in which it was accepted.
func (d *Dispatcher) written(ctx context.Context, req Request) ([]*joint, error) {
	recs, err := d.Reader.List(context.WithoutCancel(ctx), Filter{
		Workspace: req.Workspace, Principal: req.Principal, Request: req.request(), Limit: joinMost,
	})
	if err != nil {
		return nil, fmt.Errorf("find what a request became: %w", err)
	}
	slices.SortFunc(recs, func(a, b Record) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Device, b.Device), cmp.Compare(a.ID, b.ID))
	})
	joints := make([]*joint, len(recs))
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, rec := range recs {
		joints[i] = &joint{rec: rec, live: cmp.Or(d.live[rec.ID], d.waiting[rec.ID])}
	}
	return joints, nil
}

// unwrittenParts are the parts of a request on devices for which nothing was written down: the process ended between.
func (d *Dispatcher) unwrittenParts(ctx context.Context, req Request, joints []*joint) []*part {
	if ctx.Err() != nil {
		return nil
	}
	req.acted = map[string]int{}
	for _, j := range joints {
		if j.rec.Act == req.Act {
			req.acted[j.rec.Device] += j.rec.ActTargets
		}
	}
	parts, err := d.plan(ctx, req)
	if err != nil { // it would not be accepted now: what was is followed all the same
		return nil
	}
	return slices.DeleteFunc(parts, func(p *part) bool {
		return slices.ContainsFunc(joints, func(j *joint) bool { return j.rec.Device == p.device.ID })
	})
}

// joined follows commands to their ends.
func (d *Dispatcher) joined(ctx context.Context, req Request, joints []*joint) (*controlv1.DispatchResponse, error) {
	if err := d.tellJoined(ctx, req, joints); err != nil {
		return nil, err
	}
	res := &controlv1.DispatchResponse{}
	for _, j := range joints {
		if j.live == nil {
			out, err := d.outcomeOf(ctx, j.rec)
			if err != nil {
				return nil, err
			}
			res.Outcomes = append(res.Outcomes, out)
			continue
		}
		select {
		case <-j.live.done:
			res.Outcomes = append(res.Outcomes, j.live.out)
		case <-ctx.Done():
			d.leave(ctx, req, joints)
			return nil, fault.Wrap(fault.Cancelled, context.Cause(ctx), wentAway)
		}
	}
	return res, nil
}

// tellJoined tells of the approvals that commands wait for, and of those that were decided while nobody waited.
func (d *Dispatcher) tellJoined(ctx context.Context, req Request, joints []*joint) error {
	if req.Asked == nil {
		return nil
	}
	seen := map[string]bool{"": true}
	for _, j := range joints {
		id := j.rec.Approval
		d.mu.Lock()
		if j.live != nil {
			id = j.live.rec.Approval
			j.live.joined = append(j.live.joined, req.Asked)
		}
		d.mu.Unlock()
		if seen[id] {
			continue
		}
		seen[id] = true
		a, err := d.Approvals.GetApproval(context.WithoutCancel(ctx), req.Workspace, id)
		if fault.CodeOf(err) == fault.NotFound && err != nil {
			continue
		}
		if err != nil {
			return fmt.Errorf("read approval: %w", err)
		}
		req.Asked(a.View(d.Catalogue, d.deviceName))
	}
	return nil
}

// leave does what becomes of commands whose caller went away.
func (d *Dispatcher) leave(ctx context.Context, req Request, joints []*joint) {
	if req.stays(context.Cause(ctx)) {
		return
	}
	patience := time.NewTimer(abandonWithin)
	defer patience.Stop()
	for _, j := range joints {
		if j.live != nil {
			d.cancel(j.live, wentAway)
		}
	}
	for _, j := range joints {
		if j.live == nil {
			continue
		}
		select {
		case <-j.live.done:
		case <-patience.C:
			return
		}
	}
}

// outcomeOf is the end of a command as it is written down.
func (d *Dispatcher) outcomeOf(ctx context.Context, rec Record) (*controlv1.DeviceOutcome, error) {
	if !rec.State.Ended() { // it may have ended since it was read
		var err error
		if rec, err = d.Reader.Get(ctx, rec.Workspace, rec.ID); err != nil {
			return nil, err
		}
	}
	out := &controlv1.DeviceOutcome{
		DeviceId: rec.Device, DeviceName: d.deviceName(rec.Workspace, rec.Device), CommandId: rec.ID, ApprovalId: rec.Approval,
	}
	kept, err := d.Reader.Kept(ctx, KeptFilter{Workspace: rec.Workspace, Command: rec.ID, Limit: maxKept})
	if err != nil {
		return nil, fmt.Errorf("read what is kept: %w", err)
	}
	for _, k := range kept {
		out.SavedIds = append(out.SavedIds, k.Tab.GetSavedId())
	}
	slices.Sort(out.SavedIds)
	result, ce := &commandv1.Result{}, &commandv1.CommandError{}
	switch {
	case len(rec.Result) > 0 && decode(rec.Result, result) == nil:
		out.Outcome = &controlv1.DeviceOutcome_Result{Result: result}
	case len(rec.Error) > 0 && decode(rec.Error, ce) == nil:
		out.Outcome = &controlv1.DeviceOutcome_Error{Error: ce}
	default:
		out.Outcome = &controlv1.DeviceOutcome_Error{Error: noLonger(rec)}
	}
	return out, nil
}

// noLonger says how a command ended whose result is not kept any more.
func noLonger(rec Record) *commandv1.CommandError {
	summary := strings.TrimSuffix(rec.Summary, ", late result")
	switch {
	case !rec.State.Ended():
		return fault.Command(fault.New(fault.Interrupted, "the server does not know how this ended: look it up by its id %s before trying again", rec.ID))
	case rec.State == Succeeded && summary != "":
		return fault.Command(fault.New(fault.NotFound, "this was done (%s), and the rest of its result is not kept any more: do not do it again", summary))
	case rec.State == Succeeded:
		return fault.Command(fault.New(fault.NotFound, "this was done, and its result is not kept any more: do not do it again"))
	}
	code, ok := commandv1.ErrorCode_value["ERROR_CODE_"+summary]
	if !ok {
		code = int32(commandv1.ErrorCode_ERROR_CODE_FAILED)
	}
	return &commandv1.CommandError{
		Code: commandv1.ErrorCode(code), Message: fmt.Sprintf("this ended as %s; what was said about it is not kept any more", rec.State),
	}
}
