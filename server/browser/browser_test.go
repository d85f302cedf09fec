package browser_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/browser"
	"throwbar.dev/throwbar/server/fault"
)

// shelf is a store in memory.
type shelf struct {
	mu     sync.Mutex
	copies map[string]browser.Copy
}

func (s *shelf) Copies(_ context.Context, after string) ([]browser.Copy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, device := range slices.Sorted(maps.Keys(s.copies)) {
		if device > after {
			return []browser.Copy{s.copies[device]}, nil
		}
	}
	return nil, nil
}

func (s *shelf) Drop(_ context.Context, devices []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, device := range devices {
		delete(s.copies, device)
	}
	return nil
}

func (s *shelf) Keep(_ context.Context, copies []browser.Copy) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range copies {
		s.copies[c.Device] = c
	}
	return nil
}

func newState(t *testing.T, s *shelf) *browser.State {
	t.Helper()
	st, err := browser.New(t.Context(), s, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func tab(n int, url, title string) *commandv1.Tab {
	return &commandv1.Tab{
		TabId: fmt.Sprintf("lap_tb1-%d", n), WindowId: "lap_wb1-1", Index: uint32(n), Url: url, Title: title,
	}
}

func window() []*commandv1.Window {
	return []*commandv1.Window{{WindowId: "lap_wb1-1", Kind: "normal"}}
}

func fill(t *testing.T, s *browser.State, tabs ...*commandv1.Tab) {
	t.Helper()
	s.Attach("lap", "b1", 1)
	if resync, err := s.Snapshot("lap", 1, &devicev1.Snapshot{Sequence: 7, Last: true, Tabs: tabs, Windows: window()}); err != nil || resync != "" {
		t.Fatalf("snapshot: %q, %v", resync, err)
	}
}

func ids(tabs []*commandv1.Tab) []string {
	var out []string
	for _, tab := range tabs {
		out = append(out, strings.TrimPrefix(tab.GetTabId(), "lap_tb1-"))
	}
	return out
}

func TestSearchFindsEveryWordInTitleOrAddress(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	fill(t, s,
		tab(1, "https://www.youtube.com/watch?v=1", "Cats – YouTube"), tab(2, "https://go.dev/doc", "Documentation"),
		tab(3, "https://xn--e1afmkfd.example/", "Привет мир"), tab(4, "https://a.example/?q=100%25", "50% off"))
	for query, want := range map[string][]string{
		"youtube": {"1"}, "CATS watch": {"1"}, "cats go.dev": nil, "привет": {"3"}, "o": {"1", "2", "4"}, "%": {"4"}, "  ": {"1", "2", "3", "4"},
	} {
		got, total := s.Search([]string{"lap"}, query, browser.Page{Limit: 10})
		if !slices.Equal(ids(got), want) || total != len(want) {
			t.Errorf("%q: %v (%d), want %v", query, ids(got), total, want)
		}
	}
	page, total := s.Tabs([]string{"lap"}, "", browser.Page{Offset: 1, Limit: 2})
	if !slices.Equal(ids(page), []string{"2", "3"}) || total != 4 {
		t.Errorf("page: %v of %d", ids(page), total)
	}
}

func TestDeltasChangeAndRemove(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	fill(t, s, tab(1, "https://a.example/", "A"), tab(2, "https://b.example/", "B"))
	step := func(d *devicev1.Delta) string {
		resync, err := s.Delta("lap", 1, d)
		if err != nil {
			t.Fatal(err)
		}
		return resync
	}
	if r := step(&devicev1.Delta{Sequence: 8, Removed: []string{"lap_tb1-1"}, Tabs: []*commandv1.Tab{tab(2, "https://c.example/", "C"), tab(3, "https://d.example/", "D")}}); r != "" {
		t.Errorf("resync: %s", r)
	}
	if got, _ := s.Tabs([]string{"lap"}, "", browser.Page{Limit: 9}); !slices.Equal(ids(got), []string{"2", "3"}) || got[0].GetTitle() != "C" {
		t.Errorf("tabs: %v", got)
	}
	if r := step(&devicev1.Delta{Sequence: 8, Removed: []string{"lap_tb1-2"}}); r != "" {
		t.Errorf("a repeat asks for a resync: %s", r)
	}
	if r := step(&devicev1.Delta{Sequence: 10}); r == "" {
		t.Error("a gap asks for nothing")
	}
	if s.Freshness("lap").Live {
		t.Error("live after a gap")
	}
	w, n := s.Windows([]string{"lap"}, browser.Page{Limit: 9})
	if n != 1 || w[0].GetTabCount() != 2 {
		t.Errorf("windows: %v", w)
	}
}

func TestASnapshotComesInChunks(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	s.Attach("lap", "b1", 1)
	for i := range 3 {
		resync, err := s.Snapshot("lap", 1, &devicev1.Snapshot{
			Sequence: 1, Chunk: uint32(i), Last: i == 2, Tabs: []*commandv1.Tab{tab(i, "https://a.example/", "A")},
		})
		if err != nil || resync != "" {
			t.Fatalf("chunk %d: %q, %v", i, resync, err)
		}
	}
	if s.CountTabs("lap") != 3 || !s.Freshness("lap").Live {
		t.Errorf("%d tabs, %+v", s.CountTabs("lap"), s.Freshness("lap"))
	}
	if _, err := s.Snapshot("lap", 1, &devicev1.Snapshot{Sequence: 2}); err != nil {
		t.Fatal(err)
	}
	if resync, _ := s.Snapshot("lap", 1, &devicev1.Snapshot{Sequence: 2, Chunk: 2, Last: true}); resync == "" {
		t.Error("a missing chunk asks for nothing")
	}
	if s.CountTabs("lap") != 3 {
		t.Error("half a snapshot took the place of a whole one")
	}
}

func TestForeignIdsAreRefused(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	s.Attach("lap", "b1", 1)
	for _, id := range []string{"desk_tb1-1", "lap_told-1", "lap_wb1-1", "nonsense", ""} {
		_, err := s.Snapshot("lap", 1, &devicev1.Snapshot{Last: true, Tabs: []*commandv1.Tab{{TabId: id}}})
		if fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestAnOlderLinkChangesNothing(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	fill(t, s, tab(1, "https://a.example/", "A"))
	s.Attach("lap", "b1", 2)
	if _, err := s.Snapshot("lap", 2, &devicev1.Snapshot{Sequence: 1, Last: true, Tabs: []*commandv1.Tab{tab(1, "https://a.example/", "A")}}); err != nil {
		t.Fatal(err)
	}
	s.Detach("lap", 1)
	if _, err := s.Delta("lap", 1, &devicev1.Delta{Sequence: 2, Removed: []string{"lap_tb1-1"}}); err != nil {
		t.Fatal(err)
	}
	if !s.Freshness("lap").Live || s.CountTabs("lap") != 1 {
		t.Error("the older link took the newer one's state away")
	}
}

func TestTheLastKnownStateIsStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &shelf{copies: map[string]browser.Copy{}}
		s := newState(t, store)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		fill(t, s, tab(1, "https://a.example/", "A"))
		<-time.After(6 * time.Second)
		synctest.Wait()
		if len(store.copies) != 1 {
			t.Error("not stored after six seconds")
		}
		s.Detach("lap", 1)
		gone := time.Now()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		again := newState(t, store)
		f := again.Freshness("lap")
		if f.Live || !f.AsOf.Equal(gone) || again.CountTabs("lap") != 1 {
			t.Errorf("after a restart: %+v, %d tabs; gone at %v", f, again.CountTabs("lap"), gone)
		}
	})
}

func TestDomainsAreRegistrable(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	fill(t, s, tab(1, "https://www.youtube.com/", ""), tab(2, "https://m.youtube.com/x", ""), tab(3, "https://a.b.co.uk/", ""),
		tab(4, "about:blank", ""), tab(5, "http://127.0.0.1:8080/", ""))
	got, total := s.Domains([]string{"lap"}, browser.Page{Limit: 9})
	want := []browser.DomainCount{{"youtube.com", 2}, {"", 1}, {"127.0.0.1", 1}, {"b.co.uk", 1}}
	if !slices.Equal(got, want) || total != 4 {
		t.Errorf("domains: %v", got)
	}
}

func TestDescribeAndMatch(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	grouped := tab(1, "https://a.example/x", "A")
	grouped.GroupId, grouped.Pinned = "lap_gb1-5", true
	s.Attach("lap", "b1", 1)
	if _, err := s.Snapshot("lap", 1, &devicev1.Snapshot{
		Last: true, Tabs: []*commandv1.Tab{grouped, tab(2, "https://b.example/", "B")}, Windows: window(),
		Groups: []*commandv1.TabGroup{{GroupId: "lap_gb1-5", Title: "Work", Colour: commandv1.Colour_COLOUR_RED}},
	}); err != nil {
		t.Fatal(err)
	}
	saved := s.Describe("lap_tb1-1")
	if saved.GetGroupTitle() != "Work" || saved.GetGroupColour() != commandv1.Colour_COLOUR_RED || !saved.GetPinned() || saved.GetUrl() != "https://a.example/x" {
		t.Errorf("described: %v", saved)
	}
	if s.Describe("lap_tb1-9") != nil || s.Describe("x") != nil || !s.Exists("lap_gb1-5") || s.Exists("lap_tb1-9") {
		t.Error("what is not there is described")
	}
	if got := s.Match("lap", "https://a.example/*"); !slices.Equal(got, []string{"lap_tb1-1"}) {
		t.Errorf("matched: %v", got)
	}
}
