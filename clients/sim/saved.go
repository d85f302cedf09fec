package sim

import (
	"cmp"
	"context"
	"slices"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/ident"
)

// SaveTabs confirms which tabs can be saved: the server keeps them. It closes them if asked to.
func (b *Browser) SaveTabs(ctx context.Context, a *commandv1.SaveTabs) (*commandv1.SaveTabs_Result, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.end()
	targets, err := b.targets(a.GetTabIds())
	if err != nil {
		return nil, err
	}
	res := &commandv1.SaveTabs_Result{}
	was := b.before(0)
	if a.GetClose() {
		b.keepOpen(was, openable(targets))
	}
	res.Items = b.each(targets, func(t *tab) (commandv1.ItemStatus, string) {
		if _, err := checkAddress(t.url); err != nil {
			return commandv1.ItemStatus_ITEM_STATUS_REFUSED_URL, "this address cannot be opened again: " + message(err)
		}
		switch {
		case !a.GetClose():
			return commandv1.ItemStatus_ITEM_STATUS_OK, ""
		case t.asks():
			return commandv1.ItemStatus_ITEM_STATUS_OK, "saved, and still open: the page asks before it is left"
		default:
			b.close(t)
			res.ClosedCount++
			return commandv1.ItemStatus_ITEM_STATUS_OK, ""
		}
	})
	res.SavedCount = countOK(res.GetItems())
	res.SideEffects = b.effects(was)
	return res, nil
}

// openable are the tabs whose addresses can be opened again.
func openable(targets []target) []target {
	return slices.DeleteFunc(slices.Clone(targets), func(t target) bool {
		if t.tab == nil {
			return true
		}
		_, err := checkAddress(t.tab.url)
		return err != nil
	})
}

// message is the text of a refused address.
func message(err error) string {
	if own, ok := err.(*throwbar.Error); ok { //nolint:errorlint // checkAddress returns it unwrapped
		return own.Message
	}
	return err.Error()
}

// RestoreTabs opens saved tabs again, from the descriptions that came with the command: in the window and at the
// place where they were, pinned, muted and grouped as they were.
func (b *Browser) RestoreTabs(ctx context.Context, a *commandv1.RestoreTabs) (*commandv1.RestoreTabs_Result, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.end()
	known := map[string]*commandv1.SavedTab{}
	for _, s := range throwbar.CallInfoFrom(ctx).Saved {
		known[s.GetSavedId()] = s
	}
	outcomes := map[string]*commandv1.ItemOutcome{}
	var order []*commandv1.SavedTab
	for _, id := range a.GetSavedIds() {
		if outcomes[id] != nil {
			continue
		}
		outcomes[id] = notFound(id)
		if s := known[id]; s != nil {
			order = append(order, s)
		}
	}
	// From left to right, so that each one's place is there.
	slices.SortStableFunc(order, func(a, b *commandv1.SavedTab) int { return cmp.Compare(a.GetIndex(), b.GetIndex()) })
	was := b.before(0)
	opened := map[string]*tab{}
	for _, s := range order {
		outcomes[s.GetSavedId()] = b.restore(s, opened)
	}
	b.regroup(order, opened)
	res := &commandv1.RestoreTabs_Result{}
	for _, id := range a.GetSavedIds() {
		if o := outcomes[id]; o != nil {
			res.Items = append(res.Items, o)
			delete(outcomes, id)
		}
	}
	res.RestoredCount = countOK(res.GetItems())
	res.SideEffects = b.effects(was)
	return res, nil
}

// restore opens one saved tab and notes it. The caller holds mu.
func (b *Browser) restore(s *commandv1.SavedTab, opened map[string]*tab) *commandv1.ItemOutcome {
	url, err := checkAddress(s.GetUrl())
	if err != nil {
		return item(s.GetSavedId(), commandv1.ItemStatus_ITEM_STATUS_REFUSED_URL, message(err))
	}
	w := b.front()
	if native, current, err := b.native(ident.Window, s.GetWindowId()); err == nil && current {
		if old := b.window(native); old != nil && old.kind == kindNormal {
			w = old
		}
	}
	if w == nil {
		w = b.newWindow(kindNormal)
	}
	title := s.GetTitle()
	if title == "" {
		title = b.pages.title(url)
	}
	t := b.newTab(url, title)
	t.pinned, t.muted = s.GetPinned(), s.GetMuted()
	b.put(t, w, int(min(s.GetIndex(), uint32(len(w.tabs)))))
	opened[s.GetSavedId()] = t
	o := ok(s.GetSavedId())
	o.NewId = b.id(ident.Tab, t.id)
	return o
}

// regroup brings tabs that were in one group into one again: into the old one if it is still there. The caller holds
// mu.
func (b *Browser) regroup(order []*commandv1.SavedTab, opened map[string]*tab) {
	type key struct {
		id, title string
		colour    commandv1.Colour
		window    *window
	}
	members := map[key][]*tab{}
	var keys []key
	for _, s := range order {
		t := opened[s.GetSavedId()]
		if t == nil || t.pinned || (s.GetGroupId() == "" && s.GetGroupTitle() == "") {
			continue
		}
		k := key{s.GetGroupId(), s.GetGroupTitle(), s.GetGroupColour(), t.window}
		if members[k] == nil {
			keys = append(keys, k)
		}
		members[k] = append(members[k], t)
	}
	for _, k := range keys {
		g := b.oldGroup(k.id, k.window)
		if g == nil {
			g = b.newGroup(k.window, k.title, k.colour)
		}
		var rest []*tab // one that came between two of the group is in it already
		for _, t := range members[k] {
			if t.group != g {
				rest = append(rest, t)
			}
		}
		b.join(g, byIndex(rest))
	}
}

func (b *Browser) oldGroup(id string, w *window) *group {
	native, current, err := b.native(ident.Group, id)
	if err != nil || !current {
		return nil
	}
	if g := b.groups[native]; g != nil && g.window == w {
		return g
	}
	return nil
}
