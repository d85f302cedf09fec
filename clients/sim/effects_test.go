package sim

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/ident"
)

// withEffects is a result that tells them.
type withEffects interface {
	GetSideEffects() *commandv1.SideEffects
}

// TestWhatChangesBesideWhatWasAsked does to two windows what has side effects: in each row the pages a and b, of which a is
// pinned, c and d in a group, and in another window, with the focus, x in a group of its own.
func TestWhatChangesBesideWhatWasAsked(t *testing.T) {
	t.Parallel()
	yes := proto.Bool(true)
	for name, row := range map[string]struct {
		run  func(context.Context, *Browser, func(string) string) (withEffects, error)
		want string // with the pages' addresses, w1, w2 and the groups g and h for their ids; new things are new
	}{
		"open": {func(ctx context.Context, b *Browser, _ func(string) string) (withEffects, error) {
			return b.OpenTab(ctx, &commandv1.OpenTab{Url: "n.example"})
		}, "none"},
		"show": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			return b.ActivateTab(ctx, &commandv1.ActivateTab{TabId: id("b")})
		}, "none"},
		"show and focus": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			return b.ActivateTab(ctx, &commandv1.ActivateTab{TabId: id("b"), FocusWindow: yes})
		}, "focused w1"},
		"close one": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			return b.CloseTabs(ctx, &commandv1.CloseTabs{TabIds: []string{id("b")}})
		}, "none"},
		"close the last of a window": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			return b.CloseTabs(ctx, &commandv1.CloseTabs{TabIds: []string{id("x")}})
		}, "closed w2, removed h, focused w1"},
		"close a group": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			return b.CloseTabs(ctx, &commandv1.CloseTabs{TabIds: []string{id("c"), id("d")}})
		}, "removed g"},
		"close everything": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			return b.CloseTabs(ctx, &commandv1.CloseTabs{TabIds: []string{id("a"), id("b"), id("c"), id("d"), id("x")}})
		}, "closed w1, removed g h, opened tab new"},
		"close by address": {func(ctx context.Context, b *Browser, _ func(string) string) (withEffects, error) {
			return b.CloseTabsByUrl(ctx, &commandv1.CloseTabsByUrl{Url: "https://x.example/"})
		}, "closed w2, removed h, focused w1"},
		"pin one of a group": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			return b.PinTabs(ctx, &commandv1.PinTabs{TabIds: []string{id("c")}, Pinned: yes})
		}, "ungrouped c"},
		"pin the last of a group": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			return b.PinTabs(ctx, &commandv1.PinTabs{TabIds: []string{id("x")}, Pinned: yes})
		}, "removed h, ungrouped x"},
		"unpin": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			return b.PinTabs(ctx, &commandv1.PinTabs{TabIds: []string{id("a")}, Pinned: proto.Bool(false)})
		}, "none"},
		"group a pinned one": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			return b.GroupTabs(ctx, &commandv1.GroupTabs{TabIds: []string{id("a"), id("b")}, AllowUnpin: yes})
		}, "unpinned a"},
		"group one of a group": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			return b.GroupTabs(ctx, &commandv1.GroupTabs{TabIds: []string{id("b"), id("c"), id("d")}})
		}, "removed g, ungrouped c d"},
		"group in a window": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			w := b.id(ident.Window, b.windows[0].id)
			return b.GroupTabs(ctx, &commandv1.GroupTabs{TabIds: []string{id("b"), id("x")}, WindowId: &w})
		}, "closed w2, removed h, ungrouped x, moved x, focused w1"},
		"ungroup": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			return b.UngroupTabs(ctx, &commandv1.UngroupTabs{TabIds: []string{id("x"), id("c")}})
		}, "removed h"},
		"move to another window": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			w := b.id(ident.Window, b.windows[0].id)
			return b.MoveTabs(ctx, &commandv1.MoveTabs{TabIds: []string{id("x")}, WindowId: &w})
		}, "closed w2, removed h, ungrouped x, focused w1"},
		"save and close": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			return b.SaveTabs(ctx, &commandv1.SaveTabs{TabIds: []string{id("x")}, Close: yes})
		}, "closed w2, removed h, focused w1"},
		"save": {func(ctx context.Context, b *Browser, id func(string) string) (withEffects, error) {
			return b.SaveTabs(ctx, &commandv1.SaveTabs{TabIds: []string{id("x")}})
		}, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := func(name string) string { return "https://" + name + ".example/" }
			b := shown(t, []string{page("a"), page("b"), page("c"), page("d")}, []string{page("x")})
			id := func(name string) string { return tabID(t, b, page(name)) }
			b.mu.Lock()
			names := map[string]string{}
			for i, w := range b.windows {
				names[b.id(ident.Window, w.id)] = fmt.Sprint("w", i+1)
			}
			first, second := b.windows[0], b.windows[1]
			b.pin(first.tabs[0], true)
			g, h := b.newGroup(first, "g", 0), b.newGroup(second, "h", 0)
			g.window.tabs[2].group, g.window.tabs[3].group, h.window.tabs[0].group = g, g, h
			names[b.id(ident.Group, g.id)], names[b.id(ident.Group, h.id)] = "g", "h"
			b.mu.Unlock()
			for _, n := range []string{"a", "b", "c", "d", "x"} {
				names[id(n)] = n
			}
			res, err := row.run(t.Context(), b, id)
			if err != nil {
				t.Fatal(err)
			}
			if got := inWords(res.GetSideEffects(), names); got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
			checkState(t, b.Look())
		})
	}
}

// inWords names side effects.
func inWords(e *commandv1.SideEffects, names map[string]string) string {
	if e == nil {
		return "none"
	}
	out := ""
	for _, part := range []struct {
		word string
		ids  []string
	}{
		{"closed", e.GetClosedWindowIds()},
		{"opened", e.GetOpenedWindowIds()},
		{"removed", e.GetRemovedGroupIds()},
		{"ungrouped", e.GetUngroupedTabIds()},
		{"unpinned", e.GetUnpinnedTabIds()},
		{"moved", e.GetMovedTabIds()},
		{"opened tab", e.GetOpenedTabIds()},
		{"focused", []string{e.GetFocusedWindowId()}},
	} {
		if len(part.ids) == 0 || part.ids[0] == "" {
			continue
		}
		if out != "" {
			out += ", "
		}
		out += part.word
		for _, id := range part.ids {
			if name := names[id]; name != "" {
				out += " " + name
			} else {
				out += " new"
			}
		}
	}
	return out
}

// TestGroupsAcrossWindowsWantOneToBeNamed: without that nothing is changed.
func TestGroupsAcrossWindowsWantOneToBeNamed(t *testing.T) {
	t.Parallel()
	b := shown(t, []string{"a", "b"}, []string{"x"})
	was := b.Look()
	_, err := b.GroupTabs(t.Context(), &commandv1.GroupTabs{TabIds: tabIDs(t, b, "a", "x")})
	wantCode(t, err, throwbar.CodeInvalid)
	gone := "dev_wb00t-999"
	_, err = b.GroupTabs(t.Context(), &commandv1.GroupTabs{TabIds: tabIDs(t, b, "a"), WindowId: &gone})
	wantCode(t, err, throwbar.CodeNotFound)
	newMirror(was).compare(t, b.Look())
	second := b.id(ident.Window, b.windows[1].id)
	res, err := b.GroupTabs(t.Context(), &commandv1.GroupTabs{TabIds: tabIDs(t, b, "a", "b", "x"), WindowId: &second})
	if err != nil || res.GetGroupedCount() != 3 {
		t.Fatalf("GroupTabs = %v, %v", res, err)
	}
	wantOrder(t, b, 0, "*x1 a1 b1")
}
