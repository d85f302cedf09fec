package sim

import (
	"context"
	"slices"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/ident"
)

// OpenTab opens a tab at the end of a window.
func (b *Browser) OpenTab(ctx context.Context, a *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.end()
	url, err := checkAddress(a.GetUrl())
	if err != nil {
		return nil, err
	}
	w := b.front()
	if a.WindowId != nil {
		if w, err = b.findWindow(a.GetWindowId()); err != nil {
			return nil, err
		}
		if w.kind != kindNormal {
			return nil, throwbar.Errorf(throwbar.CodeFailed, "a %s window holds no further tabs", w.kind)
		}
	}
	was := b.before(0)
	t := b.open(w, url, len(b.tabs))
	if a.Active == nil || a.GetActive() {
		b.show(t)
	}
	return &commandv1.OpenTab_Result{TabId: b.id(ident.Tab, t.id), Url: url, SideEffects: b.effects(was)}, nil
}

// open opens a tab in a window, or in a new one. The caller holds mu.
func (b *Browser) open(w *window, url string, at int) *tab {
	if w == nil {
		w = b.newWindow(kindNormal)
	}
	t := b.newTab(url, b.pages.title(url))
	b.put(t, w, at)
	return t
}

// CloseTabs closes tabs, but for those whose page asks first, unless it is to force them.
func (b *Browser) CloseTabs(ctx context.Context, a *commandv1.CloseTabs) (*commandv1.CloseTabs_Result, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.end()
	targets, err := b.targets(a.GetTabIds())
	if err != nil {
		return nil, err
	}
	items, effects := b.closeAll(targets, a.GetForce())
	return &commandv1.CloseTabs_Result{ClosedCount: countOK(items), Items: items, SideEffects: effects}, nil
}

// CloseTabsByUrl closes the tabs whose address matches.
func (b *Browser) CloseTabsByUrl(
	ctx context.Context, a *commandv1.CloseTabsByUrl,
) (*commandv1.CloseTabsByUrl_Result, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.end()
	matches := ident.URLPattern(a.GetUrl())
	var targets []target
	for _, w := range b.windows {
		for _, t := range w.tabs {
			if matches(t.url) {
				targets = append(targets, target{id: b.id(ident.Tab, t.id), tab: t})
			}
		}
	}
	items, effects := b.closeAll(targets, a.GetForce())
	res := &commandv1.CloseTabsByUrl_Result{ClosedCount: countOK(items), Items: items, SideEffects: effects}
	res.Closed = res.GetClosedCount() > 0
	if len(items) == 0 {
		res.Reason = "not_found"
	}
	return res, nil
}

// closeAll closes tabs. The caller holds mu.
func (b *Browser) closeAll(targets []target, force bool) ([]*commandv1.ItemOutcome, *commandv1.SideEffects) {
	was := b.before(0)
	b.keepOpen(was, targets)
	items := b.each(targets, func(t *tab) (commandv1.ItemStatus, string) {
		if t.asks() && !force {
			b.show(t) // as the question does
			return commandv1.ItemStatus_ITEM_STATUS_BLOCKED_BY_PAGE, "the page asks before it is left, and nobody answered"
		}
		b.close(t)
		return commandv1.ItemStatus_ITEM_STATUS_OK, ""
	})
	return items, b.effects(was)
}

// each does something to each tab that is there, and says what came of all of them.
func (b *Browser) each(targets []target, do func(*tab) (commandv1.ItemStatus, string)) []*commandv1.ItemOutcome {
	items := make([]*commandv1.ItemOutcome, 0, len(targets))
	for _, t := range targets {
		if t.tab == nil {
			items = append(items, notFound(t.id))
			continue
		}
		status, detail := do(t.tab)
		outcome := item(t.id, status, detail)
		if now := b.id(ident.Tab, t.tab.id); now != t.id && b.tabs[t.tab.id] != nil {
			outcome.NewId = now
		}
		items = append(items, outcome)
	}
	return items
}

// ActivateTab shows a tab, and gives its window the focus if asked to.
func (b *Browser) ActivateTab(ctx context.Context, a *commandv1.ActivateTab) (*commandv1.ActivateTab_Result, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.end()
	t, err := b.findTab(a.GetTabId())
	if err != nil {
		return nil, err
	}
	was := b.before(0)
	b.show(t)
	if a.GetFocusWindow() {
		b.focus(t.window)
	}
	return &commandv1.ActivateTab_Result{Activated: true, SideEffects: b.effects(was)}, nil
}

// NavigateTab loads another address in a tab.
func (b *Browser) NavigateTab(ctx context.Context, a *commandv1.NavigateTab) (*commandv1.NavigateTab_Result, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.end()
	url, err := checkAddress(a.GetUrl())
	if err != nil {
		return nil, err
	}
	t, err := b.findTab(a.GetTabId())
	if err != nil {
		return nil, err
	}
	b.load(t, url, b.pages.title(url))
	return &commandv1.NavigateTab_Result{Url: url}, nil
}

// load makes a tab show another page. The caller holds mu.
func (b *Browser) load(t *tab, url, title string) {
	t.url, t.title, t.audible, t.discarded = url, title, false, false
	b.changes.touch(ident.Tab, t.id)
}

// ReloadTabs loads tabs again, which wakes those that sleep.
func (b *Browser) ReloadTabs(ctx context.Context, a *commandv1.ReloadTabs) (*commandv1.ReloadTabs_Result, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.end()
	targets, err := b.targets(a.GetTabIds())
	if err != nil {
		return nil, err
	}
	items := b.each(targets, func(t *tab) (commandv1.ItemStatus, string) {
		if t.asks() {
			return commandv1.ItemStatus_ITEM_STATUS_BLOCKED_BY_PAGE, "the page did not begin to load again"
		}
		if t.discarded {
			t.discarded = false
			b.changes.touch(ident.Tab, t.id)
		}
		return commandv1.ItemStatus_ITEM_STATUS_OK, ""
	})
	return &commandv1.ReloadTabs_Result{ReloadedCount: countOK(items), Items: items}, nil
}

// PinTabs pins or unpins tabs of normal windows. One that gets pinned leaves its group.
func (b *Browser) PinTabs(ctx context.Context, a *commandv1.PinTabs) (*commandv1.PinTabs_Result, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.end()
	targets, err := b.targets(a.GetTabIds())
	if err != nil {
		return nil, err
	}
	was := b.before(toUnpin)
	items := b.each(targets, func(t *tab) (commandv1.ItemStatus, string) {
		if t.window.kind != kindNormal {
			return commandv1.ItemStatus_ITEM_STATUS_UNSUPPORTED_WINDOW, "only tabs of normal windows can be pinned"
		}
		b.pin(t, a.GetPinned())
		return commandv1.ItemStatus_ITEM_STATUS_OK, ""
	})
	return &commandv1.PinTabs_Result{PinnedCount: countOK(items), Items: items, SideEffects: b.effects(was)}, nil
}

// MuteTabs mutes or unmutes tabs.
func (b *Browser) MuteTabs(ctx context.Context, a *commandv1.MuteTabs) (*commandv1.MuteTabs_Result, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.end()
	targets, err := b.targets(a.GetTabIds())
	if err != nil {
		return nil, err
	}
	items := b.each(targets, func(t *tab) (commandv1.ItemStatus, string) {
		if t.muted != a.GetMuted() {
			t.muted = a.GetMuted()
			b.changes.touch(ident.Tab, t.id)
		}
		return commandv1.ItemStatus_ITEM_STATUS_OK, ""
	})
	return &commandv1.MuteTabs_Result{MutedCount: countOK(items), Items: items}, nil
}

// GetActiveTab finds the shown tab of the window with the focus.
func (b *Browser) GetActiveTab(ctx context.Context, _ *commandv1.GetActiveTab) (*commandv1.GetActiveTab_Result, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.end()
	if len(b.windows) == 0 {
		return &commandv1.GetActiveTab_Result{}, nil
	}
	t := b.windows[len(b.windows)-1].active
	id := b.id(ident.Tab, t.id)
	return &commandv1.GetActiveTab_Result{TabId: &id, Url: t.url, Title: t.title}, nil
}

// byIndex sorts tabs of one window as they stand.
func byIndex(tabs []*tab) []*tab {
	slices.SortFunc(tabs, func(a, b *tab) int { return a.index - b.index })
	return tabs
}
