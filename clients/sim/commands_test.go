package sim

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/ident"
)

const (
	isOK      = commandv1.ItemStatus_ITEM_STATUS_OK
	isGone    = commandv1.ItemStatus_ITEM_STATUS_NOT_FOUND
	isBlocked = commandv1.ItemStatus_ITEM_STATUS_BLOCKED_BY_PAGE
	isRefused = commandv1.ItemStatus_ITEM_STATUS_REFUSED_URL
	isPopup   = commandv1.ItemStatus_ITEM_STATUS_UNSUPPORTED_WINDOW
	isSkipped = commandv1.ItemStatus_ITEM_STATUS_SKIPPED
)

// shown makes a browser with one window for each list of addresses; the last one has the focus and in each the first
// tab is shown.
func shown(t *testing.T, windows ...[]string) *Browser {
	t.Helper()
	b := NewBrowser("dev", "b00t", Contents{Windows: 1, Tabs: 1})
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, urls := range windows {
		w := b.newWindow(kindNormal)
		for _, url := range urls {
			b.put(b.newTab(url, url), w, len(w.tabs))
		}
	}
	for _, first := range b.windows[0].tabs {
		b.close(first)
	}
	b.changes = newChanges()
	return b
}

// tabID is the id of the tab with an address.
func tabID(t *testing.T, b *Browser, url string) string {
	t.Helper()
	for _, tab := range b.Look().Tabs {
		if tab.GetUrl() == url {
			return tab.GetTabId()
		}
	}
	t.Fatalf("no tab shows %s", url)
	return ""
}

func tabIDs(t *testing.T, b *Browser, urls ...string) []string {
	t.Helper()
	var ids []string
	for _, url := range urls {
		ids = append(ids, tabID(t, b, url))
	}
	return ids
}

// order is the addresses of a window's tabs as they stand, by the window of a tab; pinned ones with a caret, grouped
// ones with the group's number.
func order(b *Browser, at int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	var groups []*group
	for _, tab := range b.windows[at].tabs {
		text := tab.url
		if tab.pinned {
			text += "^"
		}
		if tab.group != nil {
			if !slices.Contains(groups, tab.group) {
				groups = append(groups, tab.group)
			}
			text += string(rune('1' + slices.Index(groups, tab.group)))
		}
		if b.windows[at].active == tab {
			text = "*" + text
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func wantOrder(t *testing.T, b *Browser, at int, want string) {
	t.Helper()
	if got := order(b, at); got != want {
		t.Errorf("window shows %q, want %q", got, want)
	}
	checkState(t, b.Look())
}

func wantItems(t *testing.T, items []*commandv1.ItemOutcome, want ...commandv1.ItemStatus) {
	t.Helper()
	var got []commandv1.ItemStatus
	for _, i := range items {
		got = append(got, i.GetStatus())
		if i.GetStatus() != isOK && i.GetStatus() != isGone && i.GetDetail() == "" {
			t.Errorf("item %v says nothing", i)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("items %v, want %v", got, want)
	}
}

func wantCode(t *testing.T, err error, code throwbar.Code) {
	t.Helper()
	if throwbar.CodeOf(err) != code {
		t.Errorf("error %v, want %s", err, code)
	}
}

func TestOpenTab(t *testing.T) {
	t.Parallel()
	b := shown(t, []string{"a"}, []string{"b"})
	res, err := b.OpenTab(t.Context(), &commandv1.OpenTab{Url: "Example.com/x"})
	if err != nil || res.GetUrl() != "https://example.com/x" || res.GetTabId() != tabID(t, b, "https://example.com/x") {
		t.Fatalf("OpenTab = %v, %v", res, err)
	}
	wantOrder(t, b, 1, "b *https://example.com/x")
	first := b.id(ident.Window, b.windows[0].id)
	if _, err := b.OpenTab(t.Context(), &commandv1.OpenTab{Url: "c.example", WindowId: &first, Active: proto.Bool(false)}); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, b, 0, "*a https://c.example/")
	_, err = b.OpenTab(t.Context(), &commandv1.OpenTab{Url: "javascript:alert(1)"})
	wantCode(t, err, throwbar.CodeRefused)
	_, err = b.OpenTab(t.Context(), &commandv1.OpenTab{Url: "a.example", WindowId: proto.String("dev_wb00t-99")})
	wantCode(t, err, throwbar.CodeNotFound)
	_, err = b.OpenTab(t.Context(), &commandv1.OpenTab{Url: "a.example", WindowId: proto.String("dev_tb00t-1")})
	wantCode(t, err, throwbar.CodeInvalid)
	b.mu.Lock()
	popup := b.newWindow(kindPopup)
	b.put(b.newTab("p", "p"), popup, 0)
	b.mu.Unlock()
	_, err = b.OpenTab(t.Context(), &commandv1.OpenTab{Url: "a.example", WindowId: proto.String(b.id(ident.Window, popup.id))})
	wantCode(t, err, throwbar.CodeFailed)
	if _, err := b.OpenTab(t.Context(), &commandv1.OpenTab{Url: "front.example"}); err != nil { // not into the popup
		t.Fatal(err)
	}
	wantOrder(t, b, 1, "b https://example.com/x *https://front.example/")
}

func TestCloseTabsSaysWhatHappenedToEach(t *testing.T) {
	t.Parallel()
	guarded := "https://" + unsavedHost + "/"
	b := shown(t, []string{"a", "b", "c", guarded})
	ids := tabIDs(t, b, "a", "b", "c", guarded)
	b.mu.Lock()
	b.close(b.windows[0].tabs[1]) // somebody closes one before
	b.mu.Unlock()
	ids = append(ids, ids[0], "dev_told-1", "other_tb00t-1")
	res, err := b.CloseTabs(t.Context(), &commandv1.CloseTabs{TabIds: ids})
	if err != nil || res.GetClosedCount() != 2 {
		t.Fatalf("CloseTabs = %v, %v", res, err)
	}
	wantItems(t, res.GetItems(), isOK, isGone, isOK, isBlocked, isGone, isGone)
	wantOrder(t, b, 0, "*"+guarded+" "+emptyTab) // which was opened so that the browser stays open
	for _, bad := range []string{"dev_wb00t-1", "no id"} {
		_, err = b.CloseTabs(t.Context(), &commandv1.CloseTabs{TabIds: []string{ids[3], bad}})
		wantCode(t, err, throwbar.CodeInvalid)
	}
	wantOrder(t, b, 0, "*"+guarded+" "+emptyTab) // which was opened so that the browser stays open
}

func TestClosingShowsTheNeighbourAndRemovesWhatIsEmpty(t *testing.T) {
	t.Parallel()
	b := shown(t, []string{"a", "b", "c"}, []string{"d"})
	if _, err := b.ActivateTab(t.Context(), &commandv1.ActivateTab{TabId: tabID(t, b, "b")}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.GroupTabs(t.Context(), &commandv1.GroupTabs{TabIds: tabIDs(t, b, "b")}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ url, want string }{{"b", "a *c"}, {"c", "*a"}} {
		if _, err := b.CloseTabs(t.Context(), &commandv1.CloseTabs{TabIds: tabIDs(t, b, step.url)}); err != nil {
			t.Fatal(err)
		}
		wantOrder(t, b, 0, step.want)
	}
	if len(b.Look().Groups) != 0 {
		t.Error("the empty group is still there")
	}
	if _, err := b.CloseTabs(t.Context(), &commandv1.CloseTabs{TabIds: tabIDs(t, b, "d")}); err != nil {
		t.Fatal(err)
	}
	if s := b.Look(); len(s.Windows) != 1 || !s.Windows[0].GetFocused() {
		t.Errorf("windows: %v", s.Windows)
	}
	if _, err := b.CloseTabs(t.Context(), &commandv1.CloseTabs{TabIds: tabIDs(t, b, "a")}); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, b, 0, "*"+emptyTab)
	b.mu.Lock()
	b.close(b.windows[0].tabs[0]) // a person closes it
	b.mu.Unlock()
	if res, err := b.GetActiveTab(t.Context(), &commandv1.GetActiveTab{}); err != nil || res.TabId != nil || res.GetUrl() != "" {
		t.Errorf("GetActiveTab without windows = %v, %v", res, err)
	}
	if _, err := b.OpenTab(t.Context(), &commandv1.OpenTab{Url: "e.example"}); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, b, 0, "*https://e.example/")
}

func TestCloseTabsByUrl(t *testing.T) {
	t.Parallel()
	guarded := "https://" + unsavedHost + "/"
	b := shown(t, []string{"https://www.youtube.com/watch?v=1", "https://a.example/", guarded}, []string{"https://www.youtube.com/"})
	res, err := b.CloseTabsByUrl(t.Context(), &commandv1.CloseTabsByUrl{Url: "https://www.youtube.com/*"})
	if err != nil || !res.GetClosed() || res.GetClosedCount() != 2 || res.GetReason() != "" {
		t.Errorf("CloseTabsByUrl = %v, %v", res, err)
	}
	wantItems(t, res.GetItems(), isOK, isOK)
	res, err = b.CloseTabsByUrl(t.Context(), &commandv1.CloseTabsByUrl{Url: "https://www.youtube.com/*"})
	if err != nil || res.GetClosed() || res.GetReason() != "not_found" || len(res.GetItems()) != 0 {
		t.Errorf("CloseTabsByUrl = %v, %v", res, err)
	}
	res, err = b.CloseTabsByUrl(t.Context(), &commandv1.CloseTabsByUrl{Url: unsavedHost})
	if err != nil || res.GetClosed() || res.GetReason() != "" {
		t.Errorf("CloseTabsByUrl = %v, %v", res, err)
	}
	wantItems(t, res.GetItems(), isBlocked)
	wantOrder(t, b, 0, "https://a.example/ *"+guarded) // which comes to the front with its question
	res, err = b.CloseTabsByUrl(t.Context(), &commandv1.CloseTabsByUrl{Url: unsavedHost, Force: proto.Bool(true)})
	if err != nil || !res.GetClosed() {
		t.Errorf("CloseTabsByUrl by force = %v, %v", res, err)
	}
	wantOrder(t, b, 0, "*https://a.example/")
}

func TestActivateNavigateReloadMute(t *testing.T) {
	t.Parallel()
	guarded := "https://" + unsavedHost + "/"
	b := shown(t, []string{"a", "b"}, []string{"c", guarded})
	b.mu.Lock()
	b.windows[0].tabs[1].discarded = true
	b.mu.Unlock()
	active := func() string {
		res, err := b.GetActiveTab(t.Context(), &commandv1.GetActiveTab{})
		if err != nil {
			t.Fatal(err)
		}
		return res.GetUrl()
	}
	if res, err := b.ActivateTab(t.Context(), &commandv1.ActivateTab{TabId: tabID(t, b, "b")}); err != nil || !res.GetActivated() || active() != "c" {
		t.Errorf("ActivateTab = %v, %v; %s is active", res, err, active())
	}
	id := tabID(t, b, "b")
	if res, err := b.ActivateTab(t.Context(), &commandv1.ActivateTab{TabId: id, FocusWindow: proto.Bool(true)}); err != nil || !res.GetActivated() || active() != "b" {
		t.Errorf("ActivateTab = %v, %v; %s is active", res, err, active())
	}
	for _, tab := range b.Look().Tabs {
		if tab.GetDiscarded() {
			t.Errorf("%s sleeps", tab.GetUrl())
		}
	}
	if res, err := b.NavigateTab(t.Context(), &commandv1.NavigateTab{TabId: id, Url: "new.example"}); err != nil || res.GetUrl() != "https://new.example/" || active() != res.GetUrl() {
		t.Errorf("NavigateTab = %v, %v", res, err)
	}
	_, err := b.NavigateTab(t.Context(), &commandv1.NavigateTab{TabId: id, Url: "file:///etc/passwd"})
	wantCode(t, err, throwbar.CodeRefused)
	_, err = b.NavigateTab(t.Context(), &commandv1.NavigateTab{TabId: "dev_told-1", Url: "a.example"})
	wantCode(t, err, throwbar.CodeNotFound)
	_, err = b.ActivateTab(t.Context(), &commandv1.ActivateTab{TabId: "dev_tb00t-99"})
	wantCode(t, err, throwbar.CodeNotFound)

	reload, err := b.ReloadTabs(t.Context(), &commandv1.ReloadTabs{TabIds: append(tabIDs(t, b, "a", guarded), "dev_told-1")})
	if err != nil || reload.GetReloadedCount() != 1 {
		t.Errorf("ReloadTabs = %v, %v", reload, err)
	}
	wantItems(t, reload.GetItems(), isOK, isBlocked, isGone)
	mute, err := b.MuteTabs(t.Context(), &commandv1.MuteTabs{TabIds: append(tabIDs(t, b, "a"), "dev_told-1"), Muted: proto.Bool(true)})
	if err != nil || mute.GetMutedCount() != 1 {
		t.Errorf("MuteTabs = %v, %v", mute, err)
	}
	wantItems(t, mute.GetItems(), isOK, isGone)
}

func TestPinTabs(t *testing.T) {
	t.Parallel()
	b := shown(t, []string{"a", "b", "c", "d"})
	if _, err := b.GroupTabs(t.Context(), &commandv1.GroupTabs{TabIds: tabIDs(t, b, "c", "d")}); err != nil {
		t.Fatal(err)
	}
	res, err := b.PinTabs(t.Context(), &commandv1.PinTabs{TabIds: append(tabIDs(t, b, "d", "b"), "dev_told-1"), Pinned: proto.Bool(true)})
	if err != nil || res.GetPinnedCount() != 2 {
		t.Errorf("PinTabs = %v, %v", res, err)
	}
	wantItems(t, res.GetItems(), isOK, isOK, isGone)
	wantOrder(t, b, 0, "d^ b^ *a c1")
	if _, err := b.PinTabs(t.Context(), &commandv1.PinTabs{TabIds: tabIDs(t, b, "d", "a"), Pinned: proto.Bool(false)}); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, b, 0, "b^ d *a c1")
	b = NewBrowser("dev", "b00t", Contents{Windows: 1, Tabs: 1, Popups: 1})
	popup := b.id(ident.Tab, b.windows[0].tabs[0].id)
	if res, err = b.PinTabs(t.Context(), &commandv1.PinTabs{TabIds: []string{popup}, Pinned: proto.Bool(true)}); err != nil || res.GetPinnedCount() != 0 {
		t.Errorf("PinTabs = %v, %v", res, err)
	}
	wantItems(t, res.GetItems(), isPopup)
	group, err := b.GroupTabs(t.Context(), &commandv1.GroupTabs{TabIds: []string{popup}})
	if err != nil || group.GetGroupId() != "" {
		t.Errorf("GroupTabs = %v, %v", group, err)
	}
	wantItems(t, group.GetItems(), isPopup)
	move, err := b.MoveTabs(t.Context(), &commandv1.MoveTabs{TabIds: []string{popup}})
	if err != nil || move.GetMovedCount() != 0 {
		t.Errorf("MoveTabs = %v, %v", move, err)
	}
	wantItems(t, move.GetItems(), isPopup)
}

func TestGroupAndUngroup(t *testing.T) {
	t.Parallel()
	b := shown(t, []string{"a", "b", "c", "d", "e", "f"}, []string{"x"})
	if _, err := b.PinTabs(t.Context(), &commandv1.PinTabs{TabIds: tabIDs(t, b, "a"), Pinned: proto.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	res, err := b.GroupTabs(t.Context(), &commandv1.GroupTabs{
		TabIds: append(tabIDs(t, b, "e", "a", "c"), "dev_told-1"),
		Title:  proto.String("Trip"), Colour: commandv1.Colour_COLOUR_PINK.Enum(),
	})
	if err != nil || res.GetGroupedCount() != 2 {
		t.Fatalf("GroupTabs = %v, %v", res, err)
	}
	wantItems(t, res.GetItems(), isOK, isSkipped, isOK, isGone)
	wantOrder(t, b, 0, "*a^ b c1 e1 d f")
	want := &commandv1.TabGroup{GroupId: res.GetGroupId(), WindowId: b.id(ident.Window, b.windows[0].id), Title: "Trip", Colour: commandv1.Colour_COLOUR_PINK}
	if got := b.Look().Groups; len(got) != 1 || !proto.Equal(got[0], want) {
		t.Errorf("groups: %v", got)
	}
	before := b.Look()
	_, err = b.GroupTabs(t.Context(), &commandv1.GroupTabs{TabIds: tabIDs(t, b, "b", "x")})
	wantCode(t, err, throwbar.CodeInvalid)
	newMirror(before).compare(t, b.Look())
	if _, err := b.GroupTabs(t.Context(), &commandv1.GroupTabs{TabIds: tabIDs(t, b, "e", "f")}); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, b, 0, "*a^ b c1 e2 f2 d")
	un, err := b.UngroupTabs(t.Context(), &commandv1.UngroupTabs{TabIds: append(tabIDs(t, b, "c", "e", "d"), "dev_told-1")})
	if err != nil || un.GetUngroupedCount() != 3 {
		t.Errorf("UngroupTabs = %v, %v", un, err)
	}
	wantItems(t, un.GetItems(), isOK, isOK, isOK, isGone)
	wantOrder(t, b, 0, "*a^ b c f1 e d")
	if len(b.Look().Groups) != 1 {
		t.Error("the empty group is still there")
	}
	if g := b.Look().Groups[0]; g.GetColour() == commandv1.Colour_COLOUR_UNSPECIFIED {
		t.Error("the browser chose no colour")
	}
}

func TestMoveTabs(t *testing.T) {
	t.Parallel()
	b := shown(t, []string{"x", "y"}, []string{"a", "b", "c", "d", "e"})
	move := func(to *string, index *uint32, urls ...string) {
		t.Helper()
		res, err := b.MoveTabs(t.Context(), &commandv1.MoveTabs{TabIds: tabIDs(t, b, urls...), WindowId: to, Index: index})
		if err != nil || int(res.GetMovedCount()) != len(urls) {
			t.Fatalf("MoveTabs = %v, %v", res, err)
		}
	}
	move(nil, proto.Uint32(1), "e", "a")
	wantOrder(t, b, 1, "b e *a c d")
	move(nil, nil, "e", "b")
	wantOrder(t, b, 1, "*a c d e b")
	move(nil, proto.Uint32(99), "a")
	wantOrder(t, b, 1, "c d e b *a")
	if _, err := b.GroupTabs(t.Context(), &commandv1.GroupTabs{TabIds: tabIDs(t, b, "d", "e")}); err != nil {
		t.Fatal(err)
	}
	move(nil, proto.Uint32(2), "b") // between two of a group: it joins
	wantOrder(t, b, 1, "c d1 b1 e1 *a")
	move(nil, proto.Uint32(0), "b")
	wantOrder(t, b, 1, "b c d1 e1 *a")
	if _, err := b.PinTabs(t.Context(), &commandv1.PinTabs{TabIds: tabIDs(t, b, "c"), Pinned: proto.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	move(nil, proto.Uint32(0), "a") // not in front of a pinned one
	wantOrder(t, b, 1, "c^ *a b d1 e1")
	first := b.id(ident.Window, b.windows[0].id)
	move(&first, proto.Uint32(1), "a", "d")
	wantOrder(t, b, 0, "*x a d y")
	wantOrder(t, b, 1, "c^ *b e1")
	move(&first, nil, "b", "e", "c") // the window is empty then, and goes
	wantOrder(t, b, 0, "c^ *x a d y b e")
	if s := b.Look(); len(s.Windows) != 1 || len(s.Groups) != 0 {
		t.Errorf("%d windows, %d groups", len(s.Windows), len(s.Groups))
	}
	_, err := b.MoveTabs(t.Context(), &commandv1.MoveTabs{TabIds: tabIDs(t, b, "a"), WindowId: proto.String("dev_wb00t-99")})
	wantCode(t, err, throwbar.CodeNotFound)
}

func TestSaveAndRestore(t *testing.T) {
	t.Parallel()
	guarded, odd := "https://"+unsavedHost+"/", "chrome://settings"
	b := shown(t, []string{"https://a.example/", "https://b.example/", "https://c.example/", guarded, odd})
	if _, err := b.GroupTabs(t.Context(), &commandv1.GroupTabs{TabIds: tabIDs(t, b, "https://b.example/", "https://c.example/")}); err != nil {
		t.Fatal(err)
	}
	ids := tabIDs(t, b, "https://b.example/", guarded, odd, "https://a.example/")
	before := map[string]*commandv1.Tab{}
	for _, tab := range b.Look().Tabs {
		before[tab.GetTabId()] = tab
	}
	kept, err := b.SaveTabs(t.Context(), &commandv1.SaveTabs{TabIds: ids})
	if err != nil || kept.GetSavedCount() != 3 || kept.GetClosedCount() != 0 {
		t.Errorf("SaveTabs = %v, %v", kept, err)
	}
	res, err := b.SaveTabs(t.Context(), &commandv1.SaveTabs{TabIds: append(ids, "dev_told-1"), Close: proto.Bool(true)})
	if err != nil || res.GetSavedCount() != 3 || res.GetClosedCount() != 2 {
		t.Errorf("SaveTabs = %v, %v", res, err)
	}
	wantItems(t, res.GetItems(), isOK, isOK, isRefused, isOK, isGone)
	wantOrder(t, b, 0, "*https://c.example/1 "+guarded+" "+odd)

	describe := func(saved, id string) *commandv1.SavedTab {
		tab := before[id]
		return &commandv1.SavedTab{
			SavedId: saved, Url: tab.GetUrl(), Title: tab.GetTitle(), WindowId: tab.GetWindowId(), Index: tab.GetIndex(),
			Pinned: tab.GetPinned(), GroupId: tab.GetGroupId(), GroupTitle: "Trip", Muted: true,
		}
	}
	saved := []*commandv1.SavedTab{
		describe("s-b", ids[0]), describe("s-a", ids[3]),
		{SavedId: "s-bad", Url: "data:x"},
		{SavedId: "s-new", Url: "new.example", WindowId: "dev_wold-1", Index: 70, Pinned: true},
	}
	saved[1].GroupTitle = ""
	ctx := throwbar.WithCallInfo(t.Context(), throwbar.CallInfo{Saved: saved})
	back, err := b.RestoreTabs(ctx, &commandv1.RestoreTabs{SavedIds: []string{"s-b", "s-none", "s-a", "s-bad", "s-new", "s-a"}})
	if err != nil || back.GetRestoredCount() != 3 {
		t.Fatalf("RestoreTabs = %v, %v", back, err)
	}
	wantItems(t, back.GetItems(), isOK, isGone, isOK, isRefused, isOK)
	wantOrder(t, b, 0, "https://new.example/^ https://a.example/ *https://c.example/1 https://b.example/1 "+guarded+" "+odd)
	if got := back.GetItems()[0].GetNewId(); got != tabID(t, b, "https://b.example/") || got == ids[0] {
		t.Errorf("new id %q", got)
	}
	for _, tab := range b.Look().Tabs {
		if tab.GetMuted() != (tab.GetUrl() == "https://a.example/" || tab.GetUrl() == "https://b.example/") {
			t.Errorf("muted: %v", tab)
		}
	}
}

func TestRestoreIntoANewWindowAndGroup(t *testing.T) {
	t.Parallel()
	b := shown(t, []string{"a"})
	if _, err := b.CloseTabs(t.Context(), &commandv1.CloseTabs{TabIds: tabIDs(t, b, "a")}); err != nil {
		t.Fatal(err)
	}
	ctx := throwbar.WithCallInfo(t.Context(), throwbar.CallInfo{Saved: []*commandv1.SavedTab{
		{SavedId: "1", Url: "https://1.example/", GroupId: "dev_gold-7", GroupTitle: "Trip", GroupColour: commandv1.Colour_COLOUR_RED, Index: 5},
		{SavedId: "2", Url: "https://2.example/", Index: 2},
		{SavedId: "3", Url: "https://3.example/", GroupId: "dev_gold-7", GroupTitle: "Trip", GroupColour: commandv1.Colour_COLOUR_RED, Index: 9},
	}})
	if _, err := b.RestoreTabs(ctx, &commandv1.RestoreTabs{SavedIds: []string{"1", "2", "3"}}); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, b, 0, "*"+emptyTab+" https://2.example/ https://1.example/1 https://3.example/1")
	if g := b.Look().Groups; len(g) != 1 || g[0].GetTitle() != "Trip" || g[0].GetColour() != commandv1.Colour_COLOUR_RED {
		t.Errorf("groups: %v", g)
	}
}
