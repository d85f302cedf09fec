package browser_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/browser"
	"throwbar.dev/throwbar/server/fault"
)

// id is a tab of the device lap.
func id(n int) string { return fmt.Sprintf("lap_tb1-%d", n) }

func replaced(pairs ...int) (out []*devicev1.Replacement) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, &devicev1.Replacement{OldTabId: id(pairs[i]), NewTabId: id(pairs[i+1])})
	}
	return out
}

// follows sends deltas from the eighth on.
func follows(t *testing.T, s *browser.State, from uint64, deltas ...*devicev1.Delta) uint64 {
	t.Helper()
	for _, d := range deltas {
		d.Sequence = from
		if resync, err := s.Delta("lap", 1, d); err != nil || resync != "" {
			t.Fatalf("delta %d: %q, %v", from, resync, err)
		}
		from++
	}
	return from
}

// is checks which tab an id finds; 0 is none.
func is(t *testing.T, s *browser.State, n, now int) {
	t.Helper()
	saved := s.Describe(id(n))
	switch {
	case now == 0 && (saved != nil || s.Exists(id(n)) || s.Current(id(n)) != id(n)):
		t.Errorf("%d is %s: %v", n, s.Current(id(n)), saved)
	case now != 0 && (saved.GetTabId() != id(n) || !s.Exists(id(n)) || s.Current(id(n)) != id(now)):
		t.Errorf("%d is %s, want %d: %v", n, s.Current(id(n)), now, saved)
	}
}

func TestAReplacedTabStaysTheSame(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	second := tab(2, "https://b.example/", "B")
	second.Pinned, second.GroupId = true, "lap_gb1-4"
	fill(t, s, tab(1, "https://a.example/", "A"), second, tab(3, "https://c.example/", "C"))
	at := follows(t, s, 8, &devicev1.Delta{Replaced: replaced(2, 12)})
	got, total := s.Search([]string{"lap"}, "b.example", browser.Page{Limit: 9})
	want := proto.CloneOf(second)
	want.TabId = id(12)
	if total != 1 || !proto.Equal(got[0], want) || s.CountTabs("lap") != 3 || s.Describe(id(2)).GetGroupId() != "lap_gb1-4" {
		t.Errorf("%d of %v", total, got)
	}
	is(t, s, 2, 12)
	at = follows(t, s, at, &devicev1.Delta{Replaced: replaced(12, 22, 22, 32)}) // through a chain, two steps of it at once
	for _, n := range []int{2, 12, 22, 32} {
		is(t, s, n, 32)
	}
	if all, _ := s.Tabs([]string{"lap"}, "", browser.Page{Limit: 9}); fmt.Sprint(ids(all)) != "[1 32 3]" {
		t.Errorf("order %v", ids(all))
	}
	// Together with another address, which is another row.
	at = follows(t, s, at, &devicev1.Delta{Replaced: replaced(1, 41), Tabs: []*commandv1.Tab{tab(41, "https://new.example/", "N")}})
	if s.Describe(id(1)).GetUrl() != "https://new.example/" || s.CountTabs("lap") != 3 {
		t.Errorf("%v, %d tabs", s.Describe(id(1)), s.CountTabs("lap"))
	}
	// An id that another tab has now is that tab's; what goes takes its ids with it.
	at = follows(t, s, at, &devicev1.Delta{Tabs: []*commandv1.Tab{tab(12, "https://d.example/", "D")}, Removed: []string{id(41)}})
	is(t, s, 12, 12)
	is(t, s, 22, 32)
	is(t, s, 1, 0)
	is(t, s, 41, 0)
	at = follows(t, s, at, &devicev1.Delta{Tabs: []*commandv1.Tab{tab(41, "https://other.example/", "O")}}) // another tab with that id
	is(t, s, 1, 0)
	is(t, s, 41, 41)
	at = follows(t, s, at, &devicev1.Delta{Removed: []string{id(41)}})
	// A tab that is replaced and closed in one delta; and one that is replaced by a tab that was told already.
	follows(t, s, at,
		&devicev1.Delta{Replaced: replaced(32, 52), Removed: []string{id(52)}},
		&devicev1.Delta{Tabs: []*commandv1.Tab{tab(63, "https://c.example/", "C")}},
		&devicev1.Delta{Replaced: replaced(3, 63, 70, 71)})
	for _, n := range []int{2, 22, 32, 52, 70, 71} {
		is(t, s, n, 0)
	}
	is(t, s, 3, 63)
	if all, _ := s.Tabs([]string{"lap"}, "", browser.Page{Limit: 9}); fmt.Sprint(ids(all)) != "[12 63]" {
		t.Errorf("in the end %v", ids(all))
	}
	s.Attach("lap", "b2", 2) // until the browser that was started again has said what it shows, what was known counts
	is(t, s, 3, 63)
	again := tab(63, "https://c.example/", "C")
	again.TabId, again.WindowId = "lap_tb2-63", "lap_wb2-1"
	if _, err := s.Snapshot("lap", 2, &devicev1.Snapshot{Last: true, Tabs: []*commandv1.Tab{again}}); err != nil {
		t.Fatal(err)
	}
	is(t, s, 3, 0)
	if s.Exists("lap_tb2-3") || !s.Exists("lap_tb2-63") {
		t.Error("an id of the earlier start names a tab of this one")
	}
}

func TestASnapshotForgetsIdsOfTabsThatAreGone(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	fill(t, s, tab(1, "https://a.example/", "A"), tab(2, "https://b.example/", "B"))
	follows(t, s, 8, &devicev1.Delta{Replaced: replaced(1, 11, 2, 12)})
	if _, err := s.Snapshot("lap", 1, &devicev1.Snapshot{Sequence: 20, Last: true, Tabs: []*commandv1.Tab{tab(11, "https://a.example/", "A")}}); err != nil {
		t.Fatal(err)
	}
	is(t, s, 1, 11)
	is(t, s, 2, 0)
}

// TestFormerIdsAreBounded: for a tab and for a device, and at a cost that a device cannot drive up.
func TestFormerIdsAreBounded(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	fill(t, s, tab(1, "https://a.example/", "A"))
	d := &devicev1.Delta{}
	for n := range 50_000 { // one tab that gets fifty thousand ids in turn
		d.Replaced = append(d.Replaced, replaced(n+1, n+2)...)
	}
	at := follows(t, s, 8, d)
	is(t, s, 50_000, 50_001)
	is(t, s, 50_001-16, 50_001)
	is(t, s, 50_001-17, 0)
	is(t, s, 1, 0)
	if s.CountTabs("lap") != 1 {
		t.Errorf("%d tabs", s.CountTabs("lap"))
	}
	var tabs []*commandv1.Tab
	d, back := &devicev1.Delta{}, &devicev1.Delta{}
	for n := range 12_000 {
		tabs = append(tabs, tab(100_000+n, "", ""))
		d.Replaced = append(d.Replaced, replaced(100_000+n, 200_000+n)...)
	}
	for range 30_000 { // there and back
		back.Replaced = append(back.Replaced, replaced(211_999, 300_000, 300_000, 211_999)...)
	}
	follows(t, s, at, &devicev1.Delta{Tabs: tabs}, d)
	is(t, s, 111_999, 211_999)
	is(t, s, 102_001, 202_001)
	is(t, s, 101_999, 0)
	follows(t, s, at+2, back)
	is(t, s, 300_000, 211_999)
	is(t, s, 102_100, 202_100)
	if got := s.Former("lap"); got > 10_000 {
		t.Errorf("%d ids are remembered", got)
	}
}

func TestReplacementsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	for _, r := range []*devicev1.Replacement{
		{OldTabId: "desk_tb1-1", NewTabId: id(2)},
		{OldTabId: id(1), NewTabId: "desk_tb1-2"},
		{OldTabId: id(1), NewTabId: "lap_tb0-2"},
		{OldTabId: "lap_wb1-1", NewTabId: id(2)},
		{OldTabId: id(1), NewTabId: ""},
		{},
	} {
		s := newState(t, &shelf{copies: map[string]browser.Copy{}})
		fill(t, s, tab(1, "https://a.example/", "A"))
		if _, err := s.Delta("lap", 1, &devicev1.Delta{Sequence: 8, Replaced: []*devicev1.Replacement{r}}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%v: %v", r, err)
		}
		is(t, s, 1, 1)
	}
}
