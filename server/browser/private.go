package browser

import (
	"maps"
	"slices"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/ident"
)

// What is private is known as long as its device is connected and shows it. It is in no stored copy.

// Private says whether an id is of a private window, or of a tab or group in one.
func (s *State) Private(composite string) bool {
	id, err := ident.Parse(composite)
	if err != nil {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	ds := s.devices[id.Device]
	if ds == nil {
		return false
	}
	switch id.Kind {
	case ident.Tab:
		at, known := ds.row(id)
		return known && ds.rows[at].isPrivate()
	case ident.Window:
		return ds.windows[composite].GetPrivate()
	default:
		return ds.groups[composite] != nil && ds.hidden(ds.groups[composite])
	}
}

// hidden says whether a group is of a private window, by what is known of the window or of its tabs.
func (ds *deviceState) hidden(g *commandv1.TabGroup) bool {
	if ds.windows[g.GetWindowId()].GetPrivate() {
		return true
	}
	number := native(g.GetGroupId())
	return slices.ContainsFunc(ds.inWindow(native(g.GetWindowId())), func(r uint32) bool {
		return ds.rows[r].group == number && ds.rows[r].isPrivate()
	})
}

func (r *row) isPrivate() bool { return r.flags&private != 0 }

// domain is what a row counts for.
func (r *row) domain() string {
	if r.isPrivate() {
		return privateDomain
	}
	return domainOf(r.url())
}

// alike says whether a row may take another one's place: it is found and counted by the same.
func (r *row) alike(other *row) bool {
	return r.title == other.title && r.text == other.text && r.isPrivate() == other.isPrivate()
}

// public are the windows and groups that are not private. mu is held.
func (ds *deviceState) public() (map[string]*commandv1.Window, map[string]*commandv1.TabGroup) {
	anyWindow := false
	for _, w := range ds.windows {
		anyWindow = anyWindow || w.GetPrivate()
	}
	anyTab := slices.ContainsFunc(ds.order, func(r uint32) bool { return ds.rows[r].isPrivate() })
	if !anyWindow && !anyTab {
		return ds.windows, ds.groups
	}
	windows, groups := maps.Clone(ds.windows), maps.Clone(ds.groups)
	maps.DeleteFunc(windows, func(_ string, w *commandv1.Window) bool { return w.GetPrivate() })
	maps.DeleteFunc(groups, func(_ string, g *commandv1.TabGroup) bool { return ds.hidden(g) })
	return windows, groups
}

// dropPrivate forgets what is private of a device that is gone. The device's ingest is held.
func (s *State) dropPrivate(ds *deviceState) {
	p := &plan{bytes: ds.bytes, names: &renames{}}
	for _, r := range ds.order {
		if ds.rows[r].isPrivate() {
			p.old = append(p.old, r)
			p.bytes -= len(ds.rows[r].text)
		}
	}
	slices.Sort(p.old)
	p.windows, p.groups = ds.public()
	if len(p.old) > 0 || len(p.windows) != len(ds.windows) {
		s.show(ds, p, change{}, ds.of, func() {})
	}
}
