package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/policy"
)

// Request is a command and the envelope it travels in.
type Request struct {
	Workspace string
	Principal string
	Devices   []string // may be empty where the ids in the action say which
	Action    *commandv1.Action
	TTL       time.Duration // the command's own default if zero
	DryRun    bool
	PlanHash  string
	Detached  bool
}

// Dispatch sends a command and waits for its end on every device. When the context ends first, what is unsent is
// cancelled and what is sent is asked to stop, unless the request is detached.
func (d *Dispatcher) Dispatch(ctx context.Context, req Request) (*controlv1.DispatchResponse, error) {
	parts, err := d.plan(ctx, req)
	if err != nil {
		return nil, err
	}
	if req.DryRun {
		return d.dryRun(parts), nil
	}
	if err := d.accept(ctx, req, parts); err != nil {
		return nil, err
	}
	res := &controlv1.DispatchResponse{}
	for _, p := range parts {
		if p.live == nil {
			res.Outcomes = append(res.Outcomes, p.refusal())
			continue
		}
		select {
		case <-p.live.done:
		case <-ctx.Done():
			if !req.Detached {
				d.abandon(parts)
			}
			return nil, fault.Wrap(fault.Cancelled, context.Cause(ctx), "the caller went away")
		}
		res.Outcomes = append(res.Outcomes, p.live.out)
	}
	return res, nil
}

// Submit sends a command and says under which ids it was written down.
func (d *Dispatcher) Submit(ctx context.Context, req Request) (*controlv1.SubmitResponse, error) {
	parts, err := d.plan(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := d.accept(ctx, req, parts); err != nil {
		return nil, err
	}
	res := &controlv1.SubmitResponse{}
	for _, p := range parts {
		if p.live == nil {
			res.Outcomes = append(res.Outcomes, p.refusal())
			continue
		}
		res.Outcomes = append(res.Outcomes, &controlv1.DeviceOutcome{
			DeviceId: p.device.ID, DeviceName: p.device.Name, CommandId: p.live.rec.ID, SavedIds: savedIDs(p.live.saved),
		})
	}
	return res, nil
}

// abandon cancels what a caller that went away has left and waits until that is written down.
func (d *Dispatcher) abandon(parts []*part) {
	for _, p := range parts {
		if p.live != nil {
			d.cancel(p.live, "the caller went away")
		}
	}
	for _, p := range parts {
		if p.live != nil {
			<-p.live.done
		}
	}
}

// part is a command on one device, before it is accepted.
type part struct {
	device Device
	entry  *catalog.Entry
	action *commandv1.Action
	refs   []catalog.Ref
	tabs   []string // composite ids that it would act on
	err    error    // why it is not accepted
	live   *live    // set once it is accepted
}

func (p *part) refusal() *controlv1.DeviceOutcome {
	return &controlv1.DeviceOutcome{
		DeviceId: p.device.ID, DeviceName: p.device.Name,
		Outcome: &controlv1.DeviceOutcome_Error{Error: fault.Command(p.err)},
	}
}

// plan says which device does what. An error means that the request as a whole makes no sense; what is wrong with one
// device is said in its part.
func (d *Dispatcher) plan(ctx context.Context, req Request) ([]*part, error) {
	entry, err := d.Catalogue.ByAction(req.Action)
	switch {
	case errors.Is(err, catalog.ErrNoAction):
		return nil, fault.New(fault.Invalid, "the action is empty: set one of its members")
	case err != nil:
		return nil, fault.Wrap(fault.Unsupported, err, "this server does not know the action %s", d.Catalogue.Name(req.Action))
	}
	args, err := entry.Body(req.Action)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the arguments of %s cannot be read", entry.Name)
	}
	if err := protovalidate.Validate(args.Interface()); err != nil {
		return nil, fault.New(fault.Invalid, "the arguments of %s break a rule: %v", entry.Name, err)
	}
	if req.TTL > entry.MaxTTL() {
		return nil, fault.New(fault.Invalid, "the time to live of %s is at most %s", entry.Name, entry.MaxTTL())
	}
	split, err := d.split(ctx, req, entry, args)
	if err != nil {
		return nil, err
	}
	parts := make([]*part, 0, len(split))
	for _, s := range split {
		p := &part{entry: entry, action: s.action, refs: catalog.Targets(s.args), device: Device{ID: s.device}}
		p.err = d.gate(req, p)
		parts = append(parts, p)
	}
	if err := d.checkPlan(req.PlanHash, parts); err != nil {
		return nil, err
	}
	return parts, nil
}

// gate says whether a part may be accepted: a device of the caller's, allowed, known ids, online, able to do it.
func (d *Dispatcher) gate(req Request, p *part) error {
	device, err := d.Devices.Find(req.Workspace, p.device.ID)
	if err != nil {
		return err
	}
	p.device = device
	if err := d.checkRefs(p); err != nil {
		return err
	}
	if err := policy.Check(p.entry, targetCount(p)); err != nil {
		return err
	}
	if d.Links.Connected(device.ID) == 0 && !device.Away { // what is away gets it on its next link, within the time to live
		return fault.New(fault.Offline, "%s is offline: nothing was sent", device.Name).Retry()
	}
	if len(device.Actions) > 0 && !slices.Contains(device.Actions, p.entry.Name) {
		return fault.New(fault.Unsupported, "%s does not run %s", device.Name, p.entry.Name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.byDevice[device.ID]) >= maxLivePerDevice {
		return fault.New(fault.Busy, "%s has %d commands under way", device.Name, maxLivePerDevice).Retry()
	}
	if d.byCaller[req.Principal] >= maxLivePerCaller {
		return fault.New(fault.Busy, "this caller has %d commands under way", maxLivePerCaller).Retry()
	}
	return nil
}

// accept writes the parts without an error down, in one transaction, and sends them.
func (d *Dispatcher) accept(ctx context.Context, req Request, parts []*part) error {
	group := d.NewID()
	var accepted []Acceptance
	for _, p := range parts {
		if p.err != nil {
			continue
		}
		l, err := d.newLive(ctx, req, p, group)
		if err != nil {
			return err
		}
		if l == nil {
			continue
		}
		p.live = l
		accepted = append(accepted, Acceptance{Record: l.rec, Saved: l.saved})
	}
	if len(accepted) == 0 {
		return nil
	}
	if err := d.Ledger.Accept(ctx, accepted); err != nil {
		return fmt.Errorf("write commands down: %w", err)
	}
	for _, p := range parts {
		if p.live != nil {
			d.track(p.live)
			d.send(p.live)
		}
	}
	return nil
}

// newLive makes the command of a part. It is nil, and the part has an error, if a saved tab is not there.
func (d *Dispatcher) newLive(ctx context.Context, req Request, p *part, group string) (*live, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.action)
	if err != nil {
		return nil, fmt.Errorf("encode action: %w", err)
	}
	restore, err := d.restored(ctx, req.Workspace, p.entry, p.action)
	if err != nil {
		if fault.CodeOf(err) == fault.NotFound {
			p.err = err
			return nil, nil
		}
		return nil, err
	}
	ttl := req.TTL
	if ttl == 0 {
		ttl = p.entry.TTL()
	}
	now := d.Now()
	l := &live{
		rec: Record{
			ID: d.NewID(), Group: group, Workspace: req.Workspace, Device: p.device.ID, Name: p.entry.Name,
			Principal: req.Principal, Action: raw, State: Accepted, CreatedAt: now, Deadline: now.Add(ttl),
		},
		entry: p.entry, action: p.action, restore: restore, done: make(chan struct{}),
	}
	l.saved = d.kept(p, now)
	return l, nil
}

// kept is what the server keeps of the tabs that a command is about to take away or save.
func (d *Dispatcher) kept(p *part, now time.Time) []*commandv1.SavedTab {
	keep := p.entry.Command.GetKeep()
	if keep == optionv1.Keep_KEEP_UNSPECIFIED {
		return nil
	}
	var saved []*commandv1.SavedTab
	for _, id := range p.tabs {
		tab := d.Browser.Describe(id)
		if tab == nil {
			continue
		}
		tab.SavedId = d.NewID()
		tab.DeviceId = p.device.ID
		tab.SavedAt = timestamp(now)
		tab.Closed = keep == optionv1.Keep_KEEP_UNDO
		saved = append(saved, tab)
	}
	return saved
}

// restored reads the saved tabs that an action names.
func (d *Dispatcher) restored(
	ctx context.Context, workspace string, entry *catalog.Entry, action *commandv1.Action,
) ([]*commandv1.SavedTab, error) {
	if !entry.HasSaved() {
		return nil, nil
	}
	args, err := entry.Body(action)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, ref := range catalog.Targets(args) {
		if ref.Kind == optionv1.Target_TARGET_SAVED {
			ids = append(ids, ref.ID)
		}
	}
	saved, err := d.Reader.Saved(ctx, workspace, ids)
	if err != nil {
		return nil, fmt.Errorf("read saved tabs: %w", err)
	}
	if len(saved) == 0 {
		return nil, fault.New(fault.NotFound, "none of these saved tabs exists: list them to get their ids")
	}
	return saved, nil
}
