package sim

import (
	"cmp"
	"maps"
	"slices"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/ident"
)

// ref is one tab, window or group.
type ref struct {
	kind   ident.Kind
	native int64
}

// changes are the things that changed since somebody asked last. What came and went meanwhile is not among them.
type changes struct {
	touched  map[ref]bool // whether it is new
	gone     map[ref]bool
	replaced [][2]int64 // ids of tabs, the old and the new one
}

func newChanges() *changes {
	return &changes{touched: map[ref]bool{}, gone: map[ref]bool{}}
}

func (c *changes) any() bool { return len(c.touched)+len(c.gone)+len(c.replaced) > 0 }

// replace notes that a tab has another id.
func (c *changes) replace(from, to int64) {
	old := ref{ident.Tab, from}
	isNew := c.touched[old]
	delete(c.touched, old)
	c.touched[ref{ident.Tab, to}] = isNew
	if !isNew { // else nobody knows the old one
		c.replaced = append(c.replaced, [2]int64{from, to})
	}
}

func (c *changes) create(kind ident.Kind, native int64) { c.touched[ref{kind, native}] = true }

func (c *changes) touch(kind ident.Kind, native int64) {
	r := ref{kind, native}
	if _, ok := c.touched[r]; !ok { // a new one stays new
		c.touched[r] = false
	}
}

func (c *changes) remove(kind ident.Kind, native int64) {
	r := ref{kind, native}
	if !c.touched[r] {
		c.gone[r] = true
	}
	delete(c.touched, r)
}

// Snapshot is the whole state now. Changes that it holds are not returned by Take any more.
func (b *Browser) Snapshot() throwbar.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes = newChanges()
	return b.state()
}

// Look is the whole state now, without any effect.
func (b *Browser) Look() throwbar.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state()
}

// Take is what has changed since the last Snapshot or Take.
func (b *Browser) Take() throwbar.Changes {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out throwbar.Changes
	for _, r := range sorted(b.changes.touched) {
		switch r.kind {
		case ident.Window:
			out.Windows = append(out.Windows, b.windowState(b.window(r.native)))
		case ident.Group:
			out.Groups = append(out.Groups, b.groupState(b.groups[r.native]))
		case ident.Tab:
			out.Tabs = append(out.Tabs, b.tabState(b.tabs[r.native]))
		}
	}
	for _, r := range b.changes.replaced {
		out.Replaced = append(out.Replaced, &devicev1.Replacement{OldTabId: b.id(ident.Tab, r[0]), NewTabId: b.id(ident.Tab, r[1])})
	}
	for _, r := range sorted(b.changes.gone) {
		out.Removed = append(out.Removed, b.id(r.kind, r.native))
	}
	b.changes = newChanges()
	return out
}

// Changed receives after a change.
func (b *Browser) Changed() <-chan struct{} { return b.wake }

func sorted(refs map[ref]bool) []ref {
	return slices.SortedFunc(maps.Keys(refs), func(a, b ref) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.native, b.native))
	})
}

func (b *Browser) state() throwbar.State {
	var s throwbar.State
	for _, w := range b.windows {
		s.Windows = append(s.Windows, b.windowState(w))
		for _, t := range w.tabs {
			s.Tabs = append(s.Tabs, b.tabState(t))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(b.groups)) {
		s.Groups = append(s.Groups, b.groupState(b.groups[id]))
	}
	return s
}

func (b *Browser) windowState(w *window) *commandv1.Window {
	return &commandv1.Window{
		WindowId: b.id(ident.Window, w.id), Kind: w.kind, State: "normal", Focused: b.windows[len(b.windows)-1] == w,
	}
}

func (b *Browser) groupState(g *group) *commandv1.TabGroup {
	return &commandv1.TabGroup{
		GroupId: b.id(ident.Group, g.id), WindowId: b.id(ident.Window, g.window.id),
		Title: g.title, Colour: g.colour, Collapsed: g.collapsed,
	}
}

func (b *Browser) tabState(t *tab) *commandv1.Tab {
	s := &commandv1.Tab{
		TabId: b.id(ident.Tab, t.id), WindowId: b.id(ident.Window, t.window.id), Index: uint32(t.index),
		Url: t.url, Title: t.title, Active: t.window.active == t,
		Pinned: t.pinned, Muted: t.muted, Audible: t.audible, Discarded: t.discarded,
	}
	if t.group != nil {
		s.GroupId = b.id(ident.Group, t.group.id)
	}
	return s
}
