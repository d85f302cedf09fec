package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

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
	Checked   bool // the action was held against its rules when it came in

	// Conversation is the one that it comes from, and Origin where; only callers in this process set them. Without an origin
	// it is interactive if somebody waits for it.
	Conversation string
	Origin       controlv1.Origin
	// Act names what a request is a part of: all that agents do because of one message of a person. What commands that can destroy something do without asking
	// is counted over all of an act; of a request without one it is counted over that request.
	Act       string
	RequestID string // what the caller calls it; nothing is decided by it, but Join finds it by that
	// Asked is told of the approval that the command needs, before it waits; it may be nil. It has to return soon and must
	// not call the dispatcher.
	Asked func(*controlv1.Approval)
	// Stays says of why the caller's context ended whether the command goes on all the same; nil means that it does if it is
	// detached.
	Stays func(cause error) bool

	acted map[string]int // by device, what counts for its act already of what this request became
}

// stays says whether the command goes on after the caller's context has ended.
func (r *Request) stays(cause error) bool {
	if r.Stays != nil {
		return r.Stays(cause)
	}
	return r.Detached
}

// origin is where a request comes from.
func (r *Request) origin() controlv1.Origin {
	switch {
	case r.Origin != controlv1.Origin_ORIGIN_UNSPECIFIED:
		return r.Origin
	case r.Detached:
		return controlv1.Origin_ORIGIN_BACKGROUND
	default:
		return controlv1.Origin_ORIGIN_INTERACTIVE
	}
}

// request is what the caller calls it, as it is written down.
func (r *Request) request() string { return strings.ReplaceAll(r.RequestID, "\x00", "") }

// part is a command on one device, before it is accepted.
type part struct {
	device Device
	entry  *catalog.Entry
	action *commandv1.Action
	args   protoreflect.Message
	refs   []catalog.Ref
	tabs   []string              // composite ids that it would act on
	saved  []*commandv1.SavedTab // that it would bring back
	err    error                 // why it is not accepted
	live   *live                 // set once it is accepted

	private  bool            // something that it is about is in a private window
	together int             // on how many targets the whole request acts
	before   int             // on how many earlier requests of the same act have acted
	undoes   string          // command whose tabs it brings back; empty if it is no part of an undo
	wanted   int             // how many of that command's tabs the whole undo is to bring back
	both     int             // of what the act has done, how much is in together
	decision policy.Decision // of policy
}

// asks says whether a person is asked before it is accepted.
func (p *part) asks() bool {
	return p.err == nil && p.decision.Verdict == controlv1.Verdict_VERDICT_ASK
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
	entry, split, saved, err := d.read(ctx, req)
	if err != nil {
		return nil, err
	}
	before, err := d.earlier(ctx, &req, entry)
	if err != nil {
		return nil, err
	}
	parts := d.gateAll(req, entry, split, saved, before)
	if err := d.checkPlan(req, parts); err != nil {
		return nil, err
	}
	return parts, nil
}

// read says which command a request is, which device does what of it, and which saved tabs it names.
func (d *Dispatcher) read(ctx context.Context, req Request) (*catalog.Entry, []piece, map[string]Saved, error) {
	entry, err := d.Catalogue.ByAction(req.Action)
	switch {
	case errors.Is(err, catalog.ErrNoAction):
		return nil, nil, nil, fault.New(fault.Invalid, "the action is empty: set one of its members")
	case err != nil:
		return nil, nil, nil, fault.Wrap(fault.Unsupported, err, "this server does not know the action %s", d.Catalogue.Name(req.Action))
	}
	args, err := entry.Body(req.Action)
	if err != nil {
		return nil, nil, nil, fault.Wrap(fault.Invalid, err, "the arguments of %s cannot be read", entry.Name)
	}
	if _, dynamic := args.Interface().(*dynamicpb.Message); dynamic || !req.Checked { // the edge cannot see into the former
		if err := protovalidate.Validate(args.Interface()); err != nil {
			return nil, nil, nil, fault.New(fault.Invalid, "the arguments of %s break a rule: %s", entry.Name, catalog.Problem(err))
		}
	}
	if req.TTL > entry.MaxTTL() {
		return nil, nil, nil, fault.New(fault.Invalid, "the time to live of %s is at most %s", entry.Name, entry.MaxTTL())
	}
	saved, err := d.savedOf(ctx, req.Workspace, args)
	if err != nil {
		return nil, nil, nil, err
	}
	split, err := d.split(req, entry, args, saved)
	return entry, split, saved, err
}

// gateAll holds what a request does on each device against what it is held against. Done is what its act has done.
func (d *Dispatcher) gateAll(req Request, entry *catalog.Entry, split []piece, saved map[string]Saved, done int) []*part {
	parts := make([]*part, 0, len(split))
	together, both := 0, 0
	for _, s := range split {
		p := &part{entry: entry, action: s.action, args: s.args, refs: catalog.Targets(s.args), device: Device{ID: s.device}}
		if p.err = d.find(req, p, saved); p.err == nil {
			together += targetCount(p)
			both += min(targetCount(p), req.acted[s.device])
		}
		parts = append(parts, p)
	}
	for _, p := range parts {
		p.together, p.both = together, both
		p.before = p.besides(done)
		if p.err == nil {
			p.err = d.gate(req, p)
		}
	}
	return parts
}

// find says what a part is about: a device of the caller's, and ids that are known.
func (d *Dispatcher) find(req Request, p *part, saved map[string]Saved) error {
	device, err := d.Devices.Find(req.Workspace, p.device.ID)
	if err != nil {
		return err
	}
	p.device = device
	if err := d.checkRefs(p); err != nil {
		return err
	}
	p.private = d.isAbout(p)
	return checkSaved(p, saved)
}

// gate says whether a part may be accepted: allowed, its device online and able to do it.
func (d *Dispatcher) gate(req Request, p *part) error {
	if err := d.decide(req, p); err != nil {
		return err
	}
	if d.Links.Connected(p.device.ID) == 0 && !p.device.Away { // what is away gets it on its next link, within the time to live
		return fault.New(fault.Offline, "%s is offline: nothing was sent", p.device.Name).Retry()
	}
	if len(p.device.Actions) > 0 && !slices.Contains(p.device.Actions, p.entry.Name) {
		return fault.New(fault.Unsupported, "%s does not run %s", p.device.Name, p.entry.Name)
	}
	return nil
}

// checkSaved finds the saved tabs that a part would bring back.
func checkSaved(p *part, saved map[string]Saved) error {
	claimed, size := false, 0
	for _, ref := range p.refs {
		row, ok := saved[ref.ID]
		if ref.Kind != optionv1.Target_TARGET_SAVED || !ok {
			continue
		}
		if row.Claimed {
			claimed = true
			continue
		}
		if !slices.Contains(p.saved, row.Tab) {
			p.saved = append(p.saved, row.Tab)
			size += proto.Size(row.Tab)
		}
	}
	if size > maxSavedBytes {
		return fault.New(fault.Invalid, "these saved tabs have %d bytes of titles and addresses: a command carries %d, so bring back some at a time",
			size, maxSavedBytes)
	}
	if claimed && len(p.saved) == 0 {
		return taken()
	}
	return nil
}

func taken() error {
	return fault.New(fault.Busy, "another command is bringing these tabs back just now").Retry()
}

// accept writes the parts without an error down, those of all orders in one transaction, and sends them.
func (d *Dispatcher) accept(ctx context.Context, orders []*Order) {
	var lives []*live
	var rows []Acceptance
	counted := d.tally(ctx, orders)
	judged := make([]*Order, 0, len(orders))
	for _, o := range orders {
		if err := counted.judge(d, o); err != nil {
			o.Answer(nil, err)
			continue
		}
		judged = append(judged, o)
		o.group = d.NewID()
		o.left = 1 // so that it is not answered before it has begun
		for _, p := range o.parts {
			if p.err != nil || p.asks() {
				continue
			}
			l, row, err := d.newLive(o, p)
			if err == nil {
				err = d.reserve(l)
			}
			if p.err = err; err == nil {
				p.live = l
				counted.add(&l.rec)
				lives, rows = append(lives, l), append(rows, row)
			}
		}
	}
	var err error
	if len(rows) > 0 {
		err = d.Ledger.Accept(ctx, rows)
	}
	counted.release()
	d.begun(lives, rows, err)
	for _, o := range judged {
		d.noteDenials(o)
		d.ask(ctx, o)
		d.mu.Lock()
		o.left--
		ended := o.left == 0
		d.mu.Unlock()
		switch {
		case err != nil && slices.ContainsFunc(o.parts, func(p *part) bool { return p.live == nil && p.err == nil }):
			o.Answer(nil, fmt.Errorf("write commands down: %w", err))
		case ended:
			o.Answer(o.response(), nil)
		}
	}
}

// begun starts the lives of commands that were written down, in order, and sends them. After an error nothing is sent.
// Whether something was written is not always known then: what is there after all is ended, or a restarted server would
// send it.
func (d *Dispatcher) begun(lives []*live, rows []Acceptance, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, l := range lives {
		part := l.part
		switch {
		case err != nil:
			part.live = nil
			l.told, l.ending = true, true
			d.forget(l)
			if fault.CodeOf(err) != fault.Internal { // nothing was written
				continue
			}
			d.settle(d.failure(l, Failed, fault.New(fault.Failed, "the server could not write this down for certain: nothing was sent")))
		case rows[i].Void():
			part.live, part.err = nil, taken()
			d.forget(l)
		default:
			l.restore = slices.DeleteFunc(l.restore, func(s *commandv1.SavedTab) bool {
				return slices.Contains(rows[i].Lost, s.GetSavedId())
			})
			l.order.left++
			d.begin(l, l.rec.Deadline.Sub(l.rec.CreatedAt))
			d.send(l, d.Links.Connected(l.rec.Device))
		}
	}
}

// reserve makes room for a command among those under way.
func (d *Dispatcher) reserve(l *live) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.room(l, l.part.device.Name); err != nil {
		return err
	}
	d.track(l)
	return nil
}

// room is a fault Busy where too many commands are under way for another one. The dispatcher's mu is held.
func (d *Dispatcher) room(l *live, device string) error {
	if len(d.byDevice[l.rec.Device]) >= maxLivePerDevice {
		return fault.New(fault.Busy, "%s has %d commands under way", device, maxLivePerDevice).Retry()
	}
	if d.byCaller[l.rec.Principal] >= maxLivePerCaller {
		return fault.New(fault.Busy, "this caller has %d commands under way", maxLivePerCaller).Retry()
	}
	return nil
}

// record is what is written of a part, but for its id, its action and its times.
func (d *Dispatcher) record(o *Order, p *part) Record {
	ttl := o.Request.TTL
	if ttl == 0 {
		ttl = p.entry.TTL()
	}
	return Record{
		Group: o.group, Workspace: o.Request.Workspace, Device: p.device.ID, Name: p.entry.Name,
		Principal: o.Request.Principal, Attached: !o.Request.Detached, Private: p.private, Conversation: o.Request.Conversation,
		Request: o.Request.request(), Origin: o.Request.origin(), TTL: ttl, Undoes: p.undoes, UndoTargets: p.wanted,
	}
}

// newLive makes the command of a part.
func (d *Dispatcher) newLive(o *Order, p *part) (*live, Acceptance, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.action)
	if err != nil {
		return nil, Acceptance{}, fault.New(fault.Invalid, "the arguments of %s cannot be encoded", p.entry.Name)
	}
	now := d.Now()
	rec := d.record(o, p)
	rec.ID, rec.Action, rec.State, rec.CreatedAt, rec.Deadline = d.NewID(), raw, Accepted, now, now.Add(rec.TTL)
	rec.TTL = 0 // it counts from here
	rec.Act, rec.ActTargets = countsFor(&o.Request, p)
	l := &live{
		rec: rec, entry: p.entry, action: p.action, restore: p.saved, order: o, part: p, done: make(chan struct{}),
	}
	l.saved = d.kept(p, now)
	row := Acceptance{Record: l.rec, Saved: l.saved, Claims: savedIDs(p.saved)}
	row.Narrow = func(claimed []string) ([]byte, error) { return narrow(p, claimed) }
	if n := savedRefs(p.refs); n > len(p.saved) { // some are not there
		if row.Record.Action, err = narrow(p, row.Claims); err != nil {
			return nil, Acceptance{}, err
		}
		l.rec.Action = row.Record.Action
	}
	return l, row, nil
}

// narrow is a part's action with some of its saved tabs only, encoded.
func narrow(p *part, claimed []string) ([]byte, error) {
	own := proto.Clone(p.args.Interface()).ProtoReflect()
	keepOnly(own, func(kind optionv1.Target, id string) bool {
		return kind != optionv1.Target_TARGET_SAVED || slices.Contains(claimed, id)
	})
	action, err := p.entry.Wrap(own.Interface())
	if err != nil {
		return nil, err
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(action)
	if err != nil {
		return nil, fmt.Errorf("encode action: %w", err)
	}
	return raw, nil
}

func savedRefs(refs []catalog.Ref) int {
	n := 0
	for _, ref := range refs {
		if ref.Kind == optionv1.Target_TARGET_SAVED {
			n++
		}
	}
	return n
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
		if tab == nil || d.Browser.Private(id) {
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

// savedOf reads the saved tabs that arguments name.
func (d *Dispatcher) savedOf(ctx context.Context, workspace string, args protoreflect.Message) (map[string]Saved, error) {
	var ids []string
	for _, ref := range catalog.Targets(args) {
		if ref.Kind == optionv1.Target_TARGET_SAVED {
			ids = append(ids, ref.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := d.Reader.Saved(ctx, workspace, ids)
	if err != nil {
		return nil, fmt.Errorf("read saved tabs: %w", err)
	}
	out := make(map[string]Saved, len(rows))
	for _, row := range rows {
		out[row.Tab.GetSavedId()] = row
	}
	return out, nil
}
