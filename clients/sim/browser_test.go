package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/ident"
)

// mirror is what a server makes of snapshots and deltas.
type mirror struct {
	windows map[string]*commandv1.Window
	groups  map[string]*commandv1.TabGroup
	tabs    map[string]*commandv1.Tab
}

func newMirror(s throwbar.State) *mirror {
	m := &mirror{map[string]*commandv1.Window{}, map[string]*commandv1.TabGroup{}, map[string]*commandv1.Tab{}}
	m.put(s)
	return m
}

func (m *mirror) put(s throwbar.State) {
	for _, w := range s.Windows {
		m.windows[w.GetWindowId()] = w
	}
	for _, g := range s.Groups {
		m.groups[g.GetGroupId()] = g
	}
	for _, t := range s.Tabs {
		m.tabs[t.GetTabId()] = t
	}
}

func (m *mirror) apply(t *testing.T, c throwbar.Changes) {
	t.Helper()
	for _, r := range c.Replaced {
		tab := m.tabs[r.GetOldTabId()]
		if tab == nil {
			t.Errorf("%s is replaced and never was", r.GetOldTabId())
			continue
		}
		delete(m.tabs, r.GetOldTabId())
		tab = proto.CloneOf(tab)
		tab.TabId = r.GetNewTabId()
		m.tabs[tab.GetTabId()] = tab
	}
	for _, id := range c.Removed {
		if m.windows[id] == nil && m.groups[id] == nil && m.tabs[id] == nil {
			t.Errorf("%s is removed and never was", id)
		}
		delete(m.windows, id)
		delete(m.groups, id)
		delete(m.tabs, id)
	}
	m.put(c.State)
}

func (m *mirror) compare(t *testing.T, s throwbar.State) {
	t.Helper()
	want := newMirror(s)
	same(t, "window", m.windows, want.windows)
	same(t, "group", m.groups, want.groups)
	same(t, "tab", m.tabs, want.tabs)
}

func same[M proto.Message](t *testing.T, what string, got, want map[string]M) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d %ss, want %d", len(got), what, len(want))
	}
	for id, w := range want {
		if g, ok := got[id]; !ok || !proto.Equal(g, w) {
			t.Errorf("%s %s: %v, want %v", what, id, g, w)
		}
	}
}

// checkState fails where a state is none that a browser can have.
func checkState(t *testing.T, s throwbar.State) {
	t.Helper()
	active, next, lastGroup, closed := map[string]int{}, map[string]uint32{}, map[string]string{}, map[string]bool{}
	inGroup := map[string]int{}
	unpinned := map[string]bool{}
	for _, tab := range s.Tabs {
		w := tab.GetWindowId()
		if tab.GetIndex() != next[w] {
			t.Errorf("tab %s stands at %d, want %d", tab.GetTabId(), tab.GetIndex(), next[w])
		}
		next[w]++
		if tab.GetActive() {
			active[w]++
		}
		if tab.GetPinned() && (unpinned[w] || tab.GetGroupId() != "") {
			t.Errorf("pinned tab %s is behind others or in a group", tab.GetTabId())
		}
		unpinned[w] = unpinned[w] || !tab.GetPinned()
		if g := tab.GetGroupId(); g != lastGroup[w] {
			closed[lastGroup[w]] = lastGroup[w] != ""
			if closed[g] {
				t.Errorf("group %s is torn apart", g)
			}
			lastGroup[w] = g
		}
		inGroup[tab.GetGroupId()+" "+w]++
	}
	focused := 0
	for _, w := range s.Windows {
		if active[w.GetWindowId()] != 1 {
			t.Errorf("window %s shows %d of %d tabs", w.GetWindowId(), active[w.GetWindowId()], next[w.GetWindowId()])
		}
		if w.GetFocused() {
			focused++
		}
	}
	if len(s.Windows) > 0 && focused != 1 || len(next) != len(s.Windows) {
		t.Errorf("%d windows with tabs, %d in all, %d with the focus", len(next), len(s.Windows), focused)
	}
	for _, g := range s.Groups {
		if inGroup[g.GetGroupId()+" "+g.GetWindowId()] == 0 {
			t.Errorf("group %s has no tabs in its window", g.GetGroupId())
		}
	}
}

// randomAction is a command with ids of which most exist.
func randomAction(r *rand.Rand, s throwbar.State) *commandv1.Action {
	tabID := func() string {
		switch n := r.IntN(20); {
		case n == 0:
			return "dev_tb00t-999999"
		case n == 1:
			return "dev_told-1"
		case n == 2:
			return "other_tb00t-1"
		case len(s.Tabs) > 0:
			return s.Tabs[r.IntN(len(s.Tabs))].GetTabId()
		default:
			return "dev_tb00t-1"
		}
	}
	ids := func() []string {
		list := make([]string, 1+r.IntN(5))
		for i := range list {
			list[i] = tabID()
		}
		return list
	}
	windowID := func() *string {
		if len(s.Windows) == 0 || r.IntN(2) == 0 {
			return nil
		}
		return proto.String(s.Windows[r.IntN(len(s.Windows))].GetWindowId())
	}
	url := []string{"example.com", "javascript:1", "https://" + unsavedHost + "/x"}[r.IntN(3)]
	args := []proto.Message{
		&commandv1.OpenTab{Url: url, WindowId: windowID(), Active: proto.Bool(r.IntN(2) == 0)},
		&commandv1.OpenTab{Url: "example.com/2"},
		&commandv1.CloseTabs{TabIds: ids()},
		&commandv1.CloseTabs{TabIds: ids(), Force: proto.Bool(true)},
		&commandv1.CloseTabsByUrl{Url: []string{"*mail*", "https://example.com/", "*inbox", "https://nowhere/"}[r.IntN(4)]},
		&commandv1.ActivateTab{TabId: tabID(), FocusWindow: proto.Bool(r.IntN(2) == 0)},
		&commandv1.NavigateTab{TabId: tabID(), Url: url},
		&commandv1.ReloadTabs{TabIds: ids()},
		&commandv1.PinTabs{TabIds: ids(), Pinned: proto.Bool(r.IntN(2) == 0)},
		&commandv1.MuteTabs{TabIds: ids(), Muted: proto.Bool(r.IntN(2) == 0)},
		&commandv1.GroupTabs{TabIds: ids()},
		&commandv1.GroupTabs{TabIds: ids(), WindowId: windowID(), AllowUnpin: proto.Bool(r.IntN(2) == 0)},
		&commandv1.UngroupTabs{TabIds: ids()},
		&commandv1.MoveTabs{TabIds: ids(), WindowId: windowID()},
		&commandv1.MoveTabs{TabIds: ids(), WindowId: windowID(), Index: proto.Uint32(r.Uint32N(30))},
		&commandv1.SaveTabs{TabIds: ids(), Close: proto.Bool(r.IntN(3) == 0)},
		&commandv1.RestoreTabs{SavedIds: []string{"s0", "s1", "s2", "s3", "unknown"}},
		&commandv1.GetActiveTab{},
	}
	action, err := throwbar.Wrap(args[r.IntN(len(args))])
	if err != nil {
		panic(err)
	}
	return action
}

// savedOf describes some tabs as a server would have kept them.
func savedOf(r *rand.Rand, s throwbar.State) []*commandv1.SavedTab {
	var saved []*commandv1.SavedTab
	for i := range 4 {
		tab := &commandv1.Tab{WindowId: "dev_wold-1", Url: "javascript:1"}
		if len(s.Tabs) > 0 {
			tab = s.Tabs[r.IntN(len(s.Tabs))]
		}
		saved = append(saved, &commandv1.SavedTab{
			SavedId: fmt.Sprint("s", i), Url: tab.GetUrl(), Title: tab.GetTitle(), WindowId: tab.GetWindowId(),
			Index: tab.GetIndex(), Pinned: tab.GetPinned(), Muted: tab.GetMuted(),
			GroupId: tab.GetGroupId(), GroupTitle: []string{"", "Trip"}[r.IntN(2)], GroupColour: commandv1.Colour_COLOUR_RED,
		})
	}
	return saved
}

// TestDeltasAddUp runs random commands and acts: the snapshot with all deltas is the state, and the state is always
// one that a browser can have.
func TestDeltasAddUp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 0))
			b := NewBrowser("dev", "b00t", Contents{
				Windows: 1 + r.IntN(4), Tabs: 1 + r.IntN(40), Popups: r.IntN(2), Seed: seed,
			})
			m := newMirror(b.Snapshot())
			checkState(t, b.Look())
			ran := map[string]int{}
			for step := range 300 {
				s := b.Look()
				switch n := r.IntN(8); {
				case n < 2:
					b.Act()
				case n == 2 && len(s.Tabs) > 0:
					old := s.Tabs[r.IntN(len(s.Tabs))].GetTabId()
					if now := b.Sleep(old); now != old {
						ran["sleep"]++
						if found, err := b.targets([]string{old, now}); err != nil || len(found) != 1 || b.id(ident.Tab, found[0].tab.id) != now {
							t.Errorf("%s is %v, want %s", old, found, now)
						}
					}
				default:
					action := randomAction(r, s)
					ctx := throwbar.WithCallInfo(t.Context(), throwbar.CallInfo{Saved: savedOf(r, s)})
					if _, err := commandv1.Execute(ctx, b, action); err == nil {
						ran[fmt.Sprintf("%T", action.GetKind())]++
					}
				}
				if r.IntN(3) == 0 { // several changes at once, too
					m.apply(t, b.Take())
					m.compare(t, b.Look())
				}
				checkState(t, b.Look())
				if t.Failed() {
					t.Fatalf("at step %d", step)
				}
			}
			m.apply(t, b.Take())
			m.compare(t, b.Look())
			if c := b.Take(); len(c.Windows)+len(c.Groups)+len(c.Tabs)+len(c.Removed)+len(c.Replaced) > 0 {
				t.Errorf("changes after all: %v", c)
			}
			if len(ran) < 10 || ran["sleep"] == 0 {
				t.Errorf("only these ran: %v", ran)
			}
		})
	}
}

func TestSameSeedShowsTheSame(t *testing.T) {
	t.Parallel()
	one := NewBrowser("dev", "b", Contents{Windows: 3, Tabs: 100, Popups: 1, Seed: 7})
	two := NewBrowser("dev", "b", Contents{Windows: 3, Tabs: 100, Popups: 1, Seed: 7})
	for range 200 {
		one.Act()
		two.Act()
	}
	newMirror(one.Look()).compare(t, two.Look())
	fresh := NewBrowser("dev", "b", Contents{Windows: 3, Tabs: 100, Popups: 1, Seed: 8}).Look()
	if len(fresh.Tabs) != 101 || len(fresh.Windows) != 4 || len(fresh.Groups) == 0 {
		t.Errorf("%d tabs, %d windows, %d groups", len(fresh.Tabs), len(fresh.Windows), len(fresh.Groups))
	}
	videos := 0
	for _, tab := range fresh.Tabs {
		if tab.GetTitle() == "" {
			t.Errorf("no title: %v", tab)
		}
		if _, err := checkAddress(tab.GetUrl()); err != nil {
			t.Errorf("%s: %v", tab.GetUrl(), err)
		}
		if len(tab.GetUrl()) > 24 && tab.GetUrl()[:24] == "https://www.youtube.com/" {
			videos++
		}
	}
	if videos == 0 {
		t.Error("nobody watches videos")
	}
}

func TestCommandStopsWithItsContext(t *testing.T) {
	t.Parallel()
	b := NewBrowser("dev", "b", Contents{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := b.Look()
	for seed := range uint64(50) {
		if _, err := commandv1.Execute(ctx, b, randomAction(rand.New(rand.NewPCG(seed, 1)), before)); err == nil {
			t.Error("it ran")
		}
	}
	newMirror(before).compare(t, b.Look())
}
