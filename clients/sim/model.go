package sim

import (
	"slices"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/ident"
)

// The functions in this file keep what holds of every browser: the tabs of a window are numbered from zero, pinned
// ones first, those of a group side by side; each window has tabs and one of them is shown; each group has tabs. They
// note what has changed. The caller holds mu.

func (b *Browser) next() int64 {
	b.last++
	return b.last
}

// newWindow makes an empty window, which has the focus. The caller puts a tab into it.
func (b *Browser) newWindow(kind string) *window {
	if n := len(b.windows); n > 0 {
		b.changes.touch(ident.Window, b.windows[n-1].id)
	}
	w := &window{id: b.next(), kind: kind}
	b.windows = append(b.windows, w)
	b.changes.create(ident.Window, w.id)
	return w
}

// focus gives a window the focus.
func (b *Browser) focus(w *window) {
	last := b.windows[len(b.windows)-1]
	if last == w {
		return
	}
	b.changes.touch(ident.Window, last.id)
	b.changes.touch(ident.Window, w.id)
	b.windows = append(slices.DeleteFunc(b.windows, func(o *window) bool { return o == w }), w)
}

// newTab makes a tab that is in no window yet.
func (b *Browser) newTab(url, title string) *tab {
	t := &tab{id: b.next(), url: url, title: title}
	b.tabs[t.id] = t
	b.changes.create(ident.Tab, t.id)
	return t
}

// put puts a tab that is in no window into one, as near to a position as its being pinned allows. A tab that comes
// between two of a group joins it. It returns the position.
func (b *Browser) put(t *tab, w *window, at int) int {
	pinned := w.pinnedCount()
	if t.pinned {
		at = min(at, pinned)
	} else {
		at = max(at, pinned)
	}
	at = min(max(at, 0), len(w.tabs))
	t.window = w
	if !t.pinned && t.group == nil && at > 0 && at < len(w.tabs) && w.tabs[at-1].group == w.tabs[at].group {
		t.group = w.tabs[at].group
	}
	w.tabs = slices.Insert(w.tabs, at, t)
	b.changes.touch(ident.Tab, t.id)
	b.number(w)
	if w.active == nil {
		b.show(t)
	}
	return at
}

func (w *window) pinnedCount() int {
	n := 0
	for n < len(w.tabs) && w.tabs[n].pinned {
		n++
	}
	return n
}

// number numbers the tabs of a window.
func (b *Browser) number(w *window) {
	for i, t := range w.tabs {
		if t.index != i {
			t.index = i
			b.changes.touch(ident.Tab, t.id)
		}
	}
}

// take takes a tab out of its window and group. The caller puts it somewhere, or forgets it, and then calls tidy.
func (b *Browser) take(t *tab) {
	w := t.window
	w.tabs = slices.Delete(w.tabs, t.index, t.index+1)
	b.number(w)
	t.window, t.group = nil, nil
	b.changes.touch(ident.Tab, t.id)
}

// tidy removes a window that is empty, and shows another tab in one whose shown tab was taken; it removes groups
// without tabs. A tab that was shown stays so where it was put back into the same window.
func (b *Browser) tidy(windows ...*window) {
	for _, w := range windows {
		switch {
		case len(w.tabs) == 0:
			b.removeWindow(w)
		case w.active == nil || w.active.window != w:
			old := w.active
			w.active = nil
			b.show(w.tabs[min(w.neighbour(old), len(w.tabs)-1)])
		}
	}
	for id, g := range b.groups {
		if b.members(g) == nil {
			delete(b.groups, id)
			b.changes.remove(ident.Group, id)
		}
	}
}

// neighbour is the position of the tab that comes to the front after a tab that was taken out: the one that stood to
// the right of it.
func (w *window) neighbour(old *tab) int {
	if old == nil {
		return 0
	}
	return old.index
}

func (b *Browser) removeWindow(w *window) {
	had := b.windows[len(b.windows)-1] == w
	b.windows = slices.DeleteFunc(b.windows, func(o *window) bool { return o == w })
	b.changes.remove(ident.Window, w.id)
	if n := len(b.windows); had && n > 0 {
		b.changes.touch(ident.Window, b.windows[n-1].id)
	}
}

// show makes a tab the shown one of its window.
func (b *Browser) show(t *tab) {
	w := t.window
	if w.active == t {
		return
	}
	if old := w.active; old != nil && old.window == w {
		b.changes.touch(ident.Tab, old.id)
	}
	w.active = t
	t.discarded = false
	b.changes.touch(ident.Tab, t.id)
}

// close closes a tab.
func (b *Browser) close(t *tab) {
	w := t.window
	b.take(t)
	delete(b.tabs, t.id)
	b.changes.remove(ident.Tab, t.id)
	ids := []int64{t.id} // what led to it leads nowhere now
	for n := 0; n < len(ids); n++ {
		for old, next := range b.former {
			if next == ids[n] {
				delete(b.former, old)
				ids = append(ids, old)
			}
		}
	}
	b.tidy(w)
}

// newGroup makes a group without tabs. The caller puts some into it.
func (b *Browser) newGroup(w *window, title string, colour commandv1.Colour) *group {
	id := b.next()
	if colour == commandv1.Colour_COLOUR_UNSPECIFIED {
		colour = commandv1.Colour(1 + id%9)
	}
	g := &group{id: id, window: w, title: title, colour: colour}
	b.groups[id] = g
	b.changes.create(ident.Group, id)
	return g
}

// members are the tabs of a group, in order.
func (b *Browser) members(g *group) []*tab {
	var in []*tab
	for _, t := range g.window.tabs {
		if t.group == g {
			in = append(in, t)
		}
	}
	return in
}

// join puts tabs of the group's window, which are not pinned, to its end; into an empty group's they come where the
// first of them is.
func (b *Browser) join(g *group, tabs []*tab) {
	w := g.window
	at := len(w.tabs)
	if in := b.members(g); in != nil {
		at = in[len(in)-1].index + 1
	} else if len(tabs) > 0 {
		at = tabs[0].index
	}
	for _, t := range tabs {
		if t.index < at {
			at--
		}
		b.take(t)
	}
	at = max(at, w.pinnedCount())
	for at > 0 && at < len(w.tabs) && w.tabs[at].group != nil && w.tabs[at-1].group == w.tabs[at].group && w.tabs[at].group != g {
		at++ // not in the middle of another group
	}
	for _, t := range tabs {
		t.group = g
		at = b.put(t, w, at) + 1
	}
	b.tidy(w)
}

// leave takes a tab out of its group and puts it behind it.
func (b *Browser) leave(t *tab) {
	g, w := t.group, t.window
	if g == nil {
		return
	}
	in := b.members(g)
	at := in[len(in)-1].index // it has moved one down when the tab is out
	b.take(t)
	b.put(t, w, at)
	b.tidy(w)
}

// pin pins or unpins a tab: pinned ones stand in front and are in no group.
func (b *Browser) pin(t *tab, pinned bool) {
	if t.pinned == pinned {
		return
	}
	w := t.window
	b.take(t)
	t.pinned = pinned
	b.put(t, w, w.pinnedCount())
	b.tidy(w)
}
