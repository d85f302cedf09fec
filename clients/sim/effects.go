package sim

import (
	"slices"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/ident"
)

// asked is what a command was asked to change, and so is no side effect of it.
type asked int

const (
	toMove asked = 1 << iota
	toUngroup
	toUnpin
)

// before is what a command's side effects are told by: how things were when it began. The lock is held from then on until
// they are told, so that nobody else changes anything.
type before struct {
	tabs    []tabBefore
	windows []*window // the one with the focus is the last one
	groups  map[int64]*group
	asked   asked
	spare   *tab // an empty tab that was opened so that the browser stays open
}

type tabBefore struct {
	tab    *tab
	window *window
	group  *group
	pinned bool
}

// before notes how things are. The caller holds mu.
func (b *Browser) before(asked asked) *before {
	was := &before{windows: slices.Clone(b.windows), groups: map[int64]*group{}, asked: asked}
	for _, w := range b.windows {
		for _, t := range w.tabs {
			was.tabs = append(was.tabs, tabBefore{tab: t, window: w, group: t.group, pinned: t.pinned})
		}
	}
	for id, g := range b.groups {
		was.groups[id] = g
	}
	return was
}

// effects is what has changed beside what was asked; nil if nothing has. The caller holds mu.
func (b *Browser) effects(was *before) *commandv1.SideEffects {
	e := &commandv1.SideEffects{}
	for _, w := range was.windows {
		if !slices.Contains(b.windows, w) {
			e.ClosedWindowIds = append(e.ClosedWindowIds, b.id(ident.Window, w.id))
		}
	}
	for _, w := range b.windows {
		if !slices.Contains(was.windows, w) {
			e.OpenedWindowIds = append(e.OpenedWindowIds, b.id(ident.Window, w.id))
		}
	}
	for id, g := range was.groups {
		if b.groups[id] != g {
			e.RemovedGroupIds = append(e.RemovedGroupIds, b.id(ident.Group, id))
		}
	}
	slices.Sort(e.RemovedGroupIds)
	b.tabEffects(was, e)
	if was.spare != nil {
		e.OpenedTabIds = []string{b.id(ident.Tab, was.spare.id)}
	}
	if front := b.focused(); front != nil && (len(was.windows) == 0 || was.windows[len(was.windows)-1] != front) {
		id := b.id(ident.Window, front.id)
		e.FocusedWindowId = &id
	}
	if e.FocusedWindowId == nil && len(e.GetClosedWindowIds())+len(e.GetOpenedWindowIds())+len(e.GetRemovedGroupIds())+
		len(e.GetUngroupedTabIds())+len(e.GetUnpinnedTabIds())+len(e.GetMovedTabIds())+len(e.GetOpenedTabIds()) == 0 {
		return nil
	}
	return e
}

func (b *Browser) tabEffects(was *before, e *commandv1.SideEffects) {
	for _, t := range was.tabs {
		if b.tabs[t.tab.id] != t.tab {
			continue // closed
		}
		id := b.id(ident.Tab, t.tab.id)
		if was.asked&toUngroup == 0 && t.group != nil && t.tab.group != t.group {
			e.UngroupedTabIds = append(e.UngroupedTabIds, id)
		}
		if was.asked&toUnpin == 0 && t.pinned && !t.tab.pinned {
			e.UnpinnedTabIds = append(e.UnpinnedTabIds, id)
		}
		if was.asked&toMove == 0 && t.tab.window != t.window {
			e.MovedTabIds = append(e.MovedTabIds, id)
		}
	}
}

// focused is the window that has the focus; nil if there is none.
func (b *Browser) focused() *window {
	if len(b.windows) == 0 {
		return nil
	}
	return b.windows[len(b.windows)-1]
}

// emptyTab is what a browser shows in a tab without a page.
const emptyTab = "chrome://newtab/"

// keepOpen opens an empty tab if every tab of the normal windows is about to be closed: with its last window a browser
// ends, and with it the device and the answer.
func (b *Browser) keepOpen(was *before, targets []target) {
	closing := map[*tab]bool{}
	for _, t := range targets {
		closing[t.tab] = true
	}
	for _, t := range b.tabs {
		if t.window.kind == kindNormal && !closing[t] {
			return
		}
	}
	if w := b.front(); w != nil {
		was.spare = b.newTab(emptyTab, "New Tab")
		b.put(was.spare, w, len(w.tabs))
	}
}
