package device

import (
	"cmp"
	"slices"
)

// Named is a device's id and name.
type Named struct{ ID, Name string }

// Names are the devices of a workspace by name, as List has them. Every query over all devices asks for them, so that
// they are kept in order until one comes, goes, or gets another name. The caller must not change them.
func (d *Directory) Names(workspace string) []Named {
	d.mu.RLock()
	names, ok := d.names[workspace]
	d.mu.RUnlock()
	if ok {
		return names
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if names, ok := d.names[workspace]; ok {
		return names
	}
	names = []Named{}
	for _, dev := range d.devices {
		if dev.Workspace == workspace {
			names = append(names, Named{ID: dev.ID, Name: dev.Name})
		}
	}
	slices.SortFunc(names, func(a, b Named) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	if len(names) > 0 { // a workspace without devices is no reason to remember its name
		d.names[workspace] = names
	}
	return names
}
