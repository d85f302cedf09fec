package dispatch

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/ident"
	"throwbar.dev/throwbar/server/fault"
)

// piece is the share of one device in a command.
type piece struct {
	device string
	action *commandv1.Action
	args   protoreflect.Message
}

// split says which devices run a command: those named in the envelope, or those that the ids in the action belong to.
// A list of ids that spans devices is split, each device getting its own.
func (d *Dispatcher) split(req Request, entry *catalog.Entry, args protoreflect.Message, saved map[string]Saved) ([]piece, error) {
	owners, err := owners(args, saved)
	if err != nil {
		return nil, err
	}
	switch {
	case len(owners) == 0 && len(req.Devices) == 0:
		return nil, fault.New(fault.Invalid, "%s needs a device: name one", entry.Name)
	case len(owners) == 0 || (len(req.Devices) > 0 && entry.HasSaved()):
		owners = unique(req.Devices)
		pieces := make([]piece, 0, len(owners))
		for _, device := range owners {
			pieces = append(pieces, piece{device: device, action: req.Action, args: args})
		}
		return pieces, nil
	}
	for _, named := range req.Devices {
		if !slices.Contains(owners, named) {
			return nil, fault.New(fault.Invalid, "no id of this command belongs to device %s", named)
		}
	}
	if len(req.Devices) > 0 && len(req.Devices) < len(owners) {
		return nil, fault.New(fault.Invalid, "the ids of this command belong to more devices than were named")
	}
	if len(owners) == 1 {
		return []piece{{device: owners[0], action: req.Action, args: args}}, nil
	}
	return share(entry, args, owners, saved)
}

// unique leaves out what came before.
func unique(ids []string) []string {
	seen := make(map[string]bool, len(ids))
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// owners are the devices that the ids in the arguments belong to, in order of appearance.
func owners(args protoreflect.Message, saved map[string]Saved) ([]string, error) {
	var owners []string
	for _, ref := range catalog.Targets(args) {
		owner, err := owner(ref, saved)
		if err != nil {
			return nil, err
		}
		if owner != "" && !slices.Contains(owners, owner) {
			owners = append(owners, owner)
		}
	}
	return owners, nil
}

// owner is the device that an id belongs to; empty if it does not say.
func owner(ref catalog.Ref, saved map[string]Saved) (string, error) {
	kind, composite := kindOf(ref.Kind)
	switch {
	case composite:
		id, err := ident.Parse(ref.ID)
		if err != nil {
			return "", fault.New(fault.Invalid, "%s: %v", ref.Field.JSONName(), err)
		}
		if id.Kind != kind {
			return "", fault.New(fault.Invalid, "%s: %q is the id of a %s, not of a %s", ref.Field.JSONName(), ref.ID, id.Kind, kind)
		}
		return id.Device, nil
	case ref.Kind == optionv1.Target_TARGET_DEVICE:
		return ref.ID, nil
	case ref.Kind == optionv1.Target_TARGET_SAVED:
		row, ok := saved[ref.ID]
		if !ok {
			return "", fault.New(fault.NotFound, "there is no saved tab %q: list them to get their ids", ref.ID)
		}
		return row.Tab.GetDeviceId(), nil
	default:
		return "", nil
	}
}

func kindOf(t optionv1.Target) (ident.Kind, bool) {
	switch t {
	case optionv1.Target_TARGET_TAB:
		return ident.Tab, true
	case optionv1.Target_TARGET_WINDOW:
		return ident.Window, true
	case optionv1.Target_TARGET_GROUP:
		return ident.Group, true
	default:
		return 0, false
	}
}

// share gives each device the ids that are its own. Only lists can be shared out: a single id of another device makes
// the command senseless for the rest.
func share(entry *catalog.Entry, args protoreflect.Message, owners []string, saved map[string]Saved) ([]piece, error) {
	pieces := make([]piece, 0, len(owners))
	for _, device := range owners {
		own := proto.Clone(args.Interface()).ProtoReflect()
		var foreign error
		fields := own.Descriptor().Fields()
		for i := range fields.Len() {
			fd := fields.Get(i)
			kind := catalog.TargetOf(fd)
			if kind == optionv1.Target_TARGET_UNSPECIFIED || fd.IsList() || !own.Has(fd) {
				continue
			}
			if of, err := owner(catalog.Ref{Kind: kind, Field: fd, ID: own.Get(fd).String()}, saved); err != nil || (of != device && of != "") {
				foreign = fault.New(fault.Invalid, "%s belongs to another device than some of the other ids", fd.JSONName())
			}
		}
		if foreign != nil {
			return nil, foreign
		}
		keepOnly(own, func(kind optionv1.Target, id string) bool {
			of, err := owner(catalog.Ref{Kind: kind, ID: id}, saved)
			return err == nil && (of == device || of == "")
		})
		action, err := entry.Wrap(own.Interface())
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, piece{device: device, action: action, args: own})
	}
	return pieces, nil
}

// keepOnly takes the ids out of a message's lists of targets that are not wanted.
func keepOnly(m protoreflect.Message, want func(kind optionv1.Target, id string) bool) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		kind := catalog.TargetOf(fd)
		if kind == optionv1.Target_TARGET_UNSPECIFIED || !fd.IsList() || !m.Has(fd) {
			continue
		}
		all := m.Get(fd).List()
		some := m.NewField(fd).List()
		for j := range all.Len() {
			if want(kind, all.Get(j).String()) {
				some.Append(all.Get(j))
			}
		}
		m.Set(fd, protoreflect.ValueOfList(some))
	}
}

// checkRefs refuses a command whose every target is of an earlier start of the browser, and finds the tabs that it
// would act on. Single stale ids are left to the device, which answers for each.
func (d *Dispatcher) checkRefs(p *part) error {
	stale, current := 0, 0
	found := map[string]bool{} // a tab may be named by an id that it had, too: it is one tab all the same
	for _, ref := range p.refs {
		if ref.Kind == optionv1.Target_TARGET_TAB_URL {
			for _, id := range d.Browser.Match(p.device.ID, ref.ID) {
				p.addTab(found, id, id)
			}
			continue
		}
		if _, composite := kindOf(ref.Kind); !composite {
			continue
		}
		id, err := ident.Parse(ref.ID)
		if err != nil {
			return fault.New(fault.Invalid, "%v", err)
		}
		if id.Boot != p.device.Boot {
			stale++
			continue
		}
		current++
		if ref.Kind == optionv1.Target_TARGET_TAB {
			p.addTab(found, ref.ID, d.Browser.Current(ref.ID))
		}
	}
	if stale > 0 && current == 0 {
		return fault.New(fault.NotFound, "%s has been restarted since these ids were listed: list again", p.device.Name)
	}
	return nil
}

// addTab adds a tab that a part would act on, by the id that it was named by. Current is the one that it has now.
func (p *part) addTab(found map[string]bool, id, current string) {
	if !found[current] {
		found[current] = true
		p.tabs = append(p.tabs, id)
	}
}

// targetCount is the number of things that a part acts on, as far as the server can tell.
func targetCount(p *part) int {
	n := 0
	for _, ref := range p.refs {
		if ref.Kind != optionv1.Target_TARGET_TAB_URL && ref.Field.IsList() {
			n++
		}
	}
	return max(n, len(p.tabs))
}
