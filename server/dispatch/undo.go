package dispatch

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/fault"
)

const (
	// maxKept is how many kept tabs are looked at in one read.
	maxKept = 500
	// maxSavedBytes is how much a command may have of what is known of saved tabs. A message to a device holds 4 MiB.
	maxSavedBytes = 3 << 20
)

// UndoRequest says what to bring back.
type UndoRequest struct {
	Workspace, Principal string

	Command string // of a command or a dispatch; the newest dispatch that took something away if empty
	Device  string // only what was taken away on it; on every device if empty
	DryRun  bool

	// Conversation, Origin, RequestID, Detached, Asked and Stays are those of a Request. With Again, what was written down under the
	// request id is followed to its end, and only if nothing was is anything undone.
	Conversation string
	Origin       controlv1.Origin
	RequestID    string
	Again        bool
	Detached     bool
	Asked        func(*controlv1.Approval)
	Stays        func(cause error) bool
}

// Undo brings back what a command, or all commands of a dispatch, took away. It is a dispatch of the undo partner that
// the command's option names, on each device with its own tabs: what the gate, policy and the claims on saved tabs say
// of any command holds for it. What does not come back stays kept, so that a later undo finds it.
func (d *Dispatcher) Undo(ctx context.Context, req UndoRequest) (*controlv1.UndoResponse, error) {
	send := Request{
		Workspace: req.Workspace, Principal: req.Principal, DryRun: req.DryRun, Conversation: req.Conversation, Origin: req.Origin,
		RequestID: req.RequestID, Detached: req.Detached, Asked: req.Asked, Stays: req.Stays,
	}
	if req.Again {
		if res, ok, err := d.joinedUndo(ctx, send); ok || err != nil {
			return res, err
		}
	}
	kept, err := d.undoable(ctx, req)
	if err != nil {
		return nil, err
	}
	parts, err := d.undoParts(send, kept)
	if err != nil {
		return nil, err
	}
	if req.DryRun {
		return &controlv1.UndoResponse{UndoneCommandIds: commandsOf(kept, nil), Outcomes: d.dryRun(send, parts).GetOutcomes()}, nil
	}
	res, err := d.await(ctx, send.stays, func(answer func(*controlv1.DispatchResponse, error)) *Order {
		o := &Order{Request: send, Answer: answer, parts: parts}
		d.accept(ctx, []*Order{o})
		return o
	})
	if err != nil {
		return nil, err
	}
	back := map[string]bool{} // not nil: what is not in it is not back
	for i, out := range res.GetOutcomes() {
		if out.GetResult() == nil {
			continue
		}
		body, err := parts[i].entry.ResultBody(out.GetResult())
		if err != nil {
			continue
		}
		for id, status := range itemsOf(body) {
			back[id] = status == commandv1.ItemStatus_ITEM_STATUS_OK
		}
	}
	return &controlv1.UndoResponse{UndoneCommandIds: commandsOf(kept, back), Outcomes: res.GetOutcomes()}, nil
}

// joinedUndo is Joined for an undo. What it undid is what is written down of it: how many tabs of each command it was about,
// and how many came back.
func (d *Dispatcher) joinedUndo(ctx context.Context, req Request) (*controlv1.UndoResponse, bool, error) {
	res, ok, err := d.Joined(ctx, req)
	if err != nil || !ok {
		return nil, ok, err
	}
	joints, err := d.written(ctx, req) // as they ended
	if err != nil {
		return nil, true, err
	}
	missing := map[string]int{}
	for _, j := range joints {
		missing[j.rec.Undoes] = j.rec.UndoTargets
	}
	for _, j := range joints {
		missing[j.rec.Undoes] -= j.rec.Undone
	}
	delete(missing, "") // of a command that is no undo
	maps.DeleteFunc(missing, func(_ string, n int) bool { return n > 0 })
	return &controlv1.UndoResponse{UndoneCommandIds: slices.Sorted(maps.Keys(missing)), Outcomes: res.GetOutcomes()}, true, nil
}

// commandsOf are the ids, sorted, of the commands that took tabs away, of those of which all are back; or of all, if that is
// nil. One of which some are not back is not undone: another undo goes on with it.
func commandsOf(kept []Kept, back map[string]bool) []string {
	missing := map[string]bool{}
	for _, k := range kept {
		if back != nil && !back[k.Tab.GetSavedId()] {
			missing[k.Command] = true
		}
	}
	var ids []string
	for _, k := range kept {
		if !missing[k.Command] && !slices.Contains(ids, k.Command) {
			ids = append(ids, k.Command)
		}
	}
	slices.Sort(ids) // by nothing that an undo which is followed later would not know
	return ids
}

// undoable finds what a request wants back.
func (d *Dispatcher) undoable(ctx context.Context, req UndoRequest) ([]Kept, error) {
	if req.Command == "" {
		group, err := d.newestGroup(ctx, req)
		if err != nil {
			return nil, err
		}
		return d.keptOf(ctx, KeptFilter{Workspace: req.Workspace, Device: req.Device, Group: group})
	}
	filter := KeptFilter{Workspace: req.Workspace, Device: req.Device, Command: req.Command}
	rec, err := d.Reader.Get(ctx, req.Workspace, req.Command)
	if fault.CodeOf(err) == fault.NotFound {
		filter.Command, filter.Group = "", req.Command
		if rec, err = d.Reader.OfGroup(ctx, req.Workspace, req.Command); fault.CodeOf(err) == fault.NotFound {
			return nil, fault.New(fault.NotFound, "there is no command or dispatch %q: the history has their ids", req.Command)
		}
	}
	if err != nil {
		return nil, err
	}
	if _, err := d.partner(rec.Name); err != nil {
		return nil, err
	}
	kept, err := d.keptOf(ctx, filter)
	if err != nil {
		return nil, err
	}
	if len(kept) == 0 {
		return nil, fault.New(fault.NotFound,
			"there is nothing to bring back: %s took nothing away here, or it is all back, or is being brought back just now", rec.Name)
	}
	return kept, nil
}

// newestGroup is the newest dispatch that took something away which can be brought back. One act is undone as one,
// however many devices it was on.
func (d *Dispatcher) newestGroup(ctx context.Context, req UndoRequest) (string, error) {
	filter := KeptFilter{Workspace: req.Workspace, Device: req.Device, Limit: maxKept}
	for {
		page, err := d.Reader.Kept(ctx, filter)
		if err != nil {
			return "", err
		}
		for _, k := range page {
			if d.isAway(req.Workspace, k) {
				return k.Group, nil
			}
		}
		if len(page) < filter.Limit {
			return "", fault.New(fault.NotFound, "there is nothing to undo: no command took anything away that is still kept")
		}
		last := page[len(page)-1].Tab
		filter.BeforeTime, filter.BeforeID = last.GetSavedAt().AsTime(), last.GetSavedId()
	}
}

// keptOf reads all that a command or a dispatch has kept, in the order in which it was taken away.
func (d *Dispatcher) keptOf(ctx context.Context, filter KeptFilter) ([]Kept, error) {
	filter.Limit = maxKept
	var all []Kept
	for {
		page, err := d.Reader.Kept(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, k := range page {
			if d.isAway(filter.Workspace, k) {
				all = append(all, k)
			}
		}
		if len(page) < filter.Limit {
			slices.Reverse(all)
			return all, nil
		}
		last := page[len(page)-1].Tab
		filter.BeforeTime, filter.BeforeID = last.GetSavedAt().AsTime(), last.GetSavedId()
	}
}

// isAway says whether a kept tab is gone from its device, as far as the server knows. The device's own word counts more
// than the state that it last pushed, which may be a moment behind.
func (d *Dispatcher) isAway(workspace string, k Kept) bool {
	if _, err := d.Devices.Find(workspace, k.Tab.GetDeviceId()); err != nil {
		return false // revoked: nothing brings it back there
	}
	if _, err := d.partner(k.Name); err != nil {
		return false
	}
	confirmed := k.State == Succeeded && k.Tab.GetClosed()
	return confirmed || !d.Browser.Exists(k.Tab.GetTabId())
}

// partner is the command that undoes another one by ids of saved tabs.
func (d *Dispatcher) partner(name string) (*catalog.Entry, error) {
	entry, ok := d.Catalogue.Lookup(name)
	if !ok {
		return nil, fault.New(fault.Unsupported, "this server does not know %s any more: it cannot undo it", name)
	}
	partner, ok := d.Catalogue.Undo(entry)
	if !ok {
		return nil, fault.New(fault.Unsupported, "%s cannot be undone: nothing undoes it", name)
	}
	if entry.Command.GetKeep() == optionv1.Keep_KEEP_UNSPECIFIED || savedList(partner) == nil {
		return nil, fault.New(fault.Unsupported,
			"%s cannot be undone from here, because nothing was kept for it: use %s", name, partner.Name)
	}
	return partner, nil
}

// savedList is the field of a command that takes ids of saved tabs.
func savedList(e *catalog.Entry) protoreflect.FieldDescriptor {
	fields := e.In.Fields()
	for i := range fields.Len() {
		if fd := fields.Get(i); catalog.TargetOf(fd) == optionv1.Target_TARGET_SAVED && fd.IsList() {
			return fd
		}
	}
	return nil
}

// bunch is what one command of an undo brings back.
type bunch struct {
	device  string
	command string // that took them away
	entry   *catalog.Entry
	ids     []string
	bytes   int // of what is known of the tabs
}

// undoParts makes the commands that bring kept tabs back: for each command that took some away as many as it takes, since a
// command names, and a message carries, only so much.
func (d *Dispatcher) undoParts(req Request, kept []Kept) ([]*part, error) {
	var entries []*catalog.Entry
	bunches := map[*catalog.Entry][]*bunch{}
	saved := make(map[string]Saved, len(kept))
	wanted := map[string]int{}
	for _, k := range kept {
		partner, err := d.partner(k.Name)
		if err != nil {
			return nil, err
		}
		if bunches[partner] == nil {
			entries = append(entries, partner)
		}
		bunches[partner] = pack(bunches[partner], partner, k)
		wanted[k.Command]++
		saved[k.Tab.GetSavedId()] = Saved{Tab: k.Tab}
	}
	var parts []*part
	for _, entry := range entries {
		pieces := make([]piece, 0, len(bunches[entry]))
		for _, b := range bunches[entry] {
			p, err := b.piece()
			if err != nil {
				return nil, err
			}
			pieces = append(pieces, p)
		}
		some := d.gateAll(req, entry, pieces, saved, 0) // together: what is large asks, however it is spread
		for i, b := range bunches[entry] {
			some[i].undoes, some[i].wanted = b.command, wanted[b.command]
		}
		parts = append(parts, some...)
	}
	return parts, nil
}

// pack puts a tab into the last bunch of the command that took it away, which was on one device, or into a new one where that
// is full.
func pack(all []*bunch, entry *catalog.Entry, k Kept) []*bunch {
	tab, size := k.Tab, proto.Size(k.Tab)
	most := int(catalog.Rules(savedList(entry)).GetRepeated().GetMaxItems())
	for _, b := range slices.Backward(all) {
		if b.command != k.Command || b.device != tab.GetDeviceId() {
			continue
		}
		if (most == 0 || len(b.ids) < most) && b.bytes+size <= maxSavedBytes {
			b.ids = append(b.ids, tab.GetSavedId())
			b.bytes += size
			return all
		}
		break
	}
	return append(all, &bunch{device: tab.GetDeviceId(), command: k.Command, entry: entry, ids: []string{tab.GetSavedId()}, bytes: size})
}

func (b *bunch) piece() (piece, error) {
	args := b.entry.New()
	list := args.NewField(savedList(b.entry)).List()
	for _, id := range b.ids {
		list.Append(protoreflect.ValueOfString(id))
	}
	args.Set(savedList(b.entry), protoreflect.ValueOfList(list))
	action, err := b.entry.Wrap(args)
	return piece{device: b.device, action: action, args: args}, err
}
