package sim

import (
	"context"
	"slices"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/ident"
)

// GroupTabs puts tabs into a new group: those of one window, or all that are named in the window that is named. Pinned tabs
// are left alone unless they may be unpinned: a real browser would unpin them without a word.
func (b *Browser) GroupTabs(ctx context.Context, a *commandv1.GroupTabs) (*commandv1.GroupTabs_Result, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.end()
	var into *window
	if a.WindowId != nil {
		w, err := b.findWindow(a.GetWindowId())
		if err != nil {
			return nil, err
		}
		if w.kind != kindNormal {
			return nil, throwbar.Errorf(throwbar.CodeFailed, "a %s window has no groups; choose a normal one", w.kind)
		}
		into = w
	}
	targets, err := b.targets(a.GetTabIds())
	if err != nil {
		return nil, err
	}
	var tabs []*tab
	items := b.each(targets, func(t *tab) (commandv1.ItemStatus, string) {
		switch {
		case t.window.kind != kindNormal:
			return commandv1.ItemStatus_ITEM_STATUS_UNSUPPORTED_WINDOW, "only tabs of normal windows can be grouped"
		case t.pinned && !a.GetAllowUnpin():
			return commandv1.ItemStatus_ITEM_STATUS_SKIPPED, "it is pinned, and grouping would unpin it; allowUnpin lets it"
		default:
			tabs = append(tabs, t)
			return commandv1.ItemStatus_ITEM_STATUS_OK, ""
		}
	})
	if len(tabs) == 0 {
		return &commandv1.GroupTabs_Result{Items: items}, nil
	}
	if into == nil {
		into = tabs[0].window
		if slices.ContainsFunc(tabs, func(t *tab) bool { return t.window != into }) {
			return nil, throwbar.Errorf(throwbar.CodeInvalid, "the tabs are in different windows; "+
				"give the windowId of the one to move them all to, or group those of each window by themselves")
		}
	}
	was := b.before(0)
	g := b.group(tabs, into, a)
	return &commandv1.GroupTabs_Result{
		GroupId: b.id(ident.Group, g.id), GroupedCount: countOK(items), Items: items, SideEffects: b.effects(was),
	}, nil
}

// group brings tabs into a window, if they are in another one, and into a new group there. The caller holds mu.
func (b *Browser) group(tabs []*tab, into *window, look *commandv1.GroupTabs) *group {
	var others []*tab
	for _, t := range tabs {
		b.pin(t, false)
		if t.window != into {
			others = append(others, t)
		}
	}
	if len(others) > 0 {
		b.move(others, into, len(b.tabs))
	}
	g := b.newGroup(into, look.GetTitle(), look.GetColour())
	b.join(g, byIndex(tabs))
	return g
}

// UngroupTabs takes tabs out of their groups.
func (b *Browser) UngroupTabs(ctx context.Context, a *commandv1.UngroupTabs) (*commandv1.UngroupTabs_Result, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.end()
	targets, err := b.targets(a.GetTabIds())
	if err != nil {
		return nil, err
	}
	was := b.before(toUngroup)
	items := b.each(targets, func(t *tab) (commandv1.ItemStatus, string) {
		b.leave(t)
		return commandv1.ItemStatus_ITEM_STATUS_OK, ""
	})
	return &commandv1.UngroupTabs_Result{UngroupedCount: countOK(items), Items: items, SideEffects: b.effects(was)}, nil
}

// MoveTabs puts tabs side by side at a place in their own or another normal window. A moved tab leaves its group, and
// joins one that it comes into the middle of.
func (b *Browser) MoveTabs(ctx context.Context, a *commandv1.MoveTabs) (*commandv1.MoveTabs_Result, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.end()
	var to *window
	if a.WindowId != nil {
		w, err := b.findWindow(a.GetWindowId())
		if err != nil {
			return nil, err
		}
		if w.kind != kindNormal {
			return nil, throwbar.Errorf(throwbar.CodeFailed, "tabs cannot be moved into a %s window", w.kind)
		}
		to = w
	}
	targets, err := b.targets(a.GetTabIds())
	if err != nil {
		return nil, err
	}
	at := len(b.tabs)
	if a.Index != nil {
		at = int(min(a.GetIndex(), uint32(at)))
	}
	was := b.before(toMove)
	moved := map[*window][]*tab{}
	var order []*window // in which windows are moved into
	items := b.each(targets, func(t *tab) (commandv1.ItemStatus, string) {
		if t.window.kind != kindNormal {
			return commandv1.ItemStatus_ITEM_STATUS_UNSUPPORTED_WINDOW, "only tabs of normal windows can be moved"
		}
		w := to
		if w == nil {
			w = t.window
		}
		if moved[w] == nil {
			order = append(order, w)
		}
		moved[w] = append(moved[w], t)
		return commandv1.ItemStatus_ITEM_STATUS_OK, ""
	})
	for _, w := range order {
		b.move(moved[w], w, at)
	}
	return &commandv1.MoveTabs_Result{MovedCount: countOK(items), Items: items, SideEffects: b.effects(was)}, nil
}

// move puts tabs side by side into a window. The caller holds mu.
func (b *Browser) move(tabs []*tab, to *window, at int) {
	windows := []*window{to}
	for _, t := range tabs {
		if t.window != to {
			windows = append(windows, t.window)
		}
		b.take(t)
	}
	for _, t := range tabs {
		at = b.put(t, to, at) + 1
	}
	b.tidy(unique(windows)...)
}

func unique(windows []*window) []*window {
	seen := map[*window]bool{}
	out := windows[:0]
	for _, w := range windows {
		if !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}
