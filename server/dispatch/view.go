package dispatch

import (
	"cmp"
	"context"
	"errors"
	"slices"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/fault"
)

// Get is one command of a workspace.
func (d *Dispatcher) Get(ctx context.Context, workspace, id string) (*controlv1.Command, error) {
	rec, err := d.Reader.Get(ctx, workspace, id)
	if err != nil {
		return nil, err
	}
	return d.view(rec)
}

// List is a page of commands, newest first, and whether there are more. The last one says where the next page begins.
func (d *Dispatcher) List(ctx context.Context, filter Filter) ([]*controlv1.Command, bool, error) {
	limit := filter.Limit
	filter.Limit++
	recs, err := d.Reader.List(ctx, filter)
	if err != nil {
		return nil, false, err
	}
	more := len(recs) > limit
	if more {
		recs = recs[:limit]
	}
	out := make([]*controlv1.Command, 0, len(recs))
	for _, rec := range recs {
		c, err := d.view(rec)
		if err != nil {
			return nil, false, err
		}
		out = append(out, c)
	}
	return out, more, nil
}

// Cancel ends a command of a workspace that has not ended, or all of a dispatch, and says what became of it; of a
// dispatch, of its first command.
func (d *Dispatcher) Cancel(ctx context.Context, workspace, id string) (*controlv1.Command, error) {
	lives := d.underWay(workspace, id)
	for _, l := range lives {
		d.cancel(l, "somebody asked to")
	}
	for _, l := range lives {
		select {
		case <-l.done:
		case <-ctx.Done():
			return nil, fault.Wrap(fault.Cancelled, context.Cause(ctx), "the caller went away")
		}
	}
	if len(lives) > 0 {
		id = lives[0].rec.ID
	}
	return d.Get(ctx, workspace, id)
}

// underWay are the commands with an id, or of the dispatch with it, in the order in which they were accepted.
func (d *Dispatcher) underWay(workspace, id string) []*live {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := cmp.Or(d.live[id], d.waiting[id]); l != nil {
		if l.rec.Workspace != workspace || !l.recorded {
			return nil
		}
		return []*live{l}
	}
	var lives []*live
	for _, all := range []map[string]*live{d.live, d.waiting} {
		for _, l := range all {
			if l.rec.Group == id && l.rec.Workspace == workspace && l.recorded && !slices.Contains(lives, l) {
				lives = append(lives, l)
			}
		}
	}
	slices.SortFunc(lives, func(a, b *live) int {
		return cmp.Or(a.rec.CreatedAt.Compare(b.rec.CreatedAt), cmp.Compare(a.rec.ID, b.rec.ID))
	})
	return lives
}

// view is a command as callers see it. Of one that has not ended the live state counts, which may be ahead of the row.
func (d *Dispatcher) view(rec Record) (*controlv1.Command, error) {
	d.mu.Lock()
	if l := d.live[rec.ID]; l != nil && !rec.State.Ended() {
		rec.State = l.rec.State
	}
	d.mu.Unlock()
	c := &controlv1.Command{
		CommandId: rec.ID, GroupId: rec.Group, DeviceId: rec.Device, Name: rec.Name, State: rec.State.Proto(),
		CreatedAt: timestamp(rec.CreatedAt), Deadline: timestamp(rec.Deadline), Principal: rec.Principal,
		Summary: rec.Summary, ApprovalId: rec.Approval,
	}
	if device, err := d.Devices.Find(rec.Workspace, rec.Device); err == nil {
		c.DeviceName = device.Name
	}
	if !rec.EndedAt.IsZero() {
		c.EndedAt = timestamp(rec.EndedAt)
	}
	var errs []error
	if len(rec.Action) > 0 {
		c.Action = &commandv1.Action{}
		errs = append(errs, decode(rec.Action, c.Action))
	}
	if len(rec.Result) > 0 {
		c.Result = &commandv1.Result{}
		errs = append(errs, decode(rec.Result, c.Result))
	}
	if len(rec.Error) > 0 {
		c.Error = &commandv1.CommandError{}
		errs = append(errs, decode(rec.Error, c.Error))
	}
	return c, errors.Join(errs...)
}
