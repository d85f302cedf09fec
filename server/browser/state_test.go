package browser_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/browser"
	"throwbar.dev/throwbar/server/browser/search"
	"throwbar.dev/throwbar/server/fault"
)

func fuzzFrames(t *testing.T, title, url, query, id string, sequence uint64, chunk uint32, last bool) {
	t.Helper()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	fill(t, s, tab(1, url, title), tab(2, title, url))
	odd := &commandv1.Tab{TabId: id, WindowId: id, GroupId: id, Url: query, Title: title, Index: chunk}
	_, _ = s.Delta("lap", 1, &devicev1.Delta{Sequence: sequence, Tabs: []*commandv1.Tab{odd, tab(3, query, title)}, Removed: []string{id}})
	_, _ = s.Delta("lap", 1, &devicev1.Delta{
		Sequence: sequence + 1, Replaced: []*devicev1.Replacement{{OldTabId: id, NewTabId: query}, {OldTabId: "lap_tb1-1", NewTabId: id}},
	})
	_, _ = s.Snapshot("lap", 1, &devicev1.Snapshot{Sequence: sequence, Chunk: chunk, Last: last, Tabs: []*commandv1.Tab{odd}})
	_, _ = s.Delta("lap", 1, &devicev1.Delta{Sequence: 8, Removed: []string{"lap_tb1-2", id}})
	all, _ := s.Tabs([]string{"lap"}, "", browser.Page{Limit: 100})
	_, total := s.Search([]string{"lap"}, query, browser.Page{Limit: 100})
	want := 0
	for _, tab := range all {
		if search.Match(browser.Texts(tab.GetTitle(), tab.GetUrl()), search.Words(query)) {
			want++
		}
	}
	if total != want {
		t.Errorf("query %q finds %d, a reader %d of %v", query, total, want, all)
	}
	s.Describe(s.Current(id))
	s.Domains([]string{"lap"}, browser.Page{Limit: 10})
	s.Windows([]string{"lap"}, browser.Page{Limit: 10})
	s.Tabs([]string{"lap"}, id, browser.Page{Limit: 10})
	s.Match("lap", query)
	s.Forget("lap")
}

func TestDeltasBetweenChunksAreNotLost(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	s.Attach("lap", "b1", 1)
	steps := []func() (string, error){
		func() (string, error) {
			return s.Snapshot("lap", 1, &devicev1.Snapshot{Sequence: 5, Tabs: []*commandv1.Tab{tab(1, "https://a.example/", "A")}})
		},
		func() (string, error) {
			return s.Delta("lap", 1, &devicev1.Delta{Sequence: 6, Tabs: []*commandv1.Tab{tab(3, "https://c.example/", "C")}, Removed: []string{"lap_tb1-1"}})
		},
		func() (string, error) {
			return s.Snapshot("lap", 1, &devicev1.Snapshot{Sequence: 5, Chunk: 1, Last: true, Tabs: []*commandv1.Tab{tab(2, "https://b.example/", "B")}})
		},
		func() (string, error) {
			return s.Delta("lap", 1, &devicev1.Delta{Sequence: 7, Tabs: []*commandv1.Tab{tab(4, "https://d.example/", "D")}})
		},
	}
	for i, step := range steps {
		for range 2 { // each one twice
			if resync, err := step(); resync != "" || err != nil {
				t.Fatalf("step %d: %q, %v", i, resync, err)
			}
		}
	}
	got, _ := s.Tabs([]string{"lap"}, "", browser.Page{Limit: 9})
	if !slices.Equal(ids(got), []string{"2", "3", "4"}) || !s.Freshness("lap").Live {
		t.Errorf("tabs %v", ids(got))
	}
}

func TestALinkThatComesLateChangesNothing(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	s.Attach("lap", "b1", 2)
	s.Attach("lap", "b0", 1) // opened before, told after
	if resync, err := s.Snapshot("lap", 2, &devicev1.Snapshot{Last: true, Tabs: []*commandv1.Tab{tab(1, "", "")}}); resync != "" || err != nil {
		t.Fatalf("%q, %v", resync, err)
	}
	if s.CountTabs("lap") != 1 || !s.Freshness("lap").Live {
		t.Error("the newest link does not count")
	}
}

// TestABrowserThatStartsAgainHasNewTabs also when their numbers and addresses are the same.
func TestABrowserThatStartsAgainHasNewTabs(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	fill(t, s, tab(1, "https://a.example/", "A"))
	s.Attach("lap", "b2", 2)
	if !s.Exists("lap_tb1-1") {
		t.Error("the last known state is gone before there is a newer one")
	}
	again := tab(1, "https://a.example/", "A")
	again.TabId, again.WindowId = "lap_tb2-1", "lap_wb2-1"
	if _, err := s.Snapshot("lap", 2, &devicev1.Snapshot{Last: true, Tabs: []*commandv1.Tab{again}}); err != nil {
		t.Fatal(err)
	}
	got, total := s.Search([]string{"lap"}, "a.example", browser.Page{Limit: 9})
	if total != 1 || got[0].GetTabId() != "lap_tb2-1" || s.Exists("lap_tb1-1") {
		t.Errorf("after the restart: %v", got)
	}
}

func TestTooMuchIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	fill(t, s, tab(1, "https://a.example/", "A"))
	d := &devicev1.Delta{Sequence: 8}
	for n := range 50_001 {
		d.Tabs = append(d.Tabs, tab(n+2, "", ""))
	}
	if _, err := s.Delta("lap", 1, d); fault.CodeOf(err) != fault.Invalid || s.CountTabs("lap") != 1 {
		t.Errorf("%v, %d tabs", err, s.CountTabs("lap"))
	}
	long := strings.Repeat("x", 65_000)
	for n := range d.GetTabs() {
		d.Tabs[n].Url = long
	}
	d.Tabs = d.GetTabs()[:2000]
	if _, err := s.Delta("lap", 1, d); fault.CodeOf(err) != fault.Invalid || s.CountTabs("lap") != 1 {
		t.Errorf("%v, %d tabs", err, s.CountTabs("lap"))
	}
	if got, _ := s.Search([]string{"lap"}, "a.example", browser.Page{Limit: 9}); len(got) != 1 {
		t.Error("what was there is gone")
	}
}

// damaged is a store whose writes can fail; it notes how large each was.
type damaged struct {
	shelf

	fail    error
	batches []int
}

func (s *damaged) Keep(ctx context.Context, copies []browser.Copy) error {
	if s.fail != nil {
		return s.fail
	}
	s.batches = append(s.batches, len(copies))
	return s.shelf.Keep(ctx, copies)
}

func TestADamagedCopyIsDroppedAndTheOthersStay(t *testing.T) {
	t.Parallel()
	store := &shelf{copies: map[string]browser.Copy{}}
	s := newState(t, store)
	fill(t, s, tab(1, "https://a.example/", "A"))
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	store.copies["desk"] = browser.Copy{Device: "desk", AsOf: time.Now(), Body: []byte("no snapshot")}
	foreign := store.copies["lap"]
	foreign.Device = "alien" // its ids are another device's
	store.copies["alien"] = foreign
	var out strings.Builder
	again, err := browser.New(t.Context(), store, time.Now, slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if again.CountTabs("lap") != 1 || again.CountTabs("alien") != 0 || !again.Freshness("desk").AsOf.IsZero() {
		t.Error("a damaged copy counts, or takes a whole one with it")
	}
	if !strings.Contains(out.String(), "desk") || !strings.Contains(out.String(), "alien") {
		t.Errorf("the log says %q", out.String())
	}
	if err := again.Flush(t.Context()); err != nil || len(store.copies) != 1 {
		t.Errorf("%v; %d copies", err, len(store.copies))
	}
	if !again.Attach("desk", "b1", 1) {
		t.Error("its device need not send a snapshot")
	}
}

func TestCopiesAreStoredInBatchesAndAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	store := &damaged{shelf: shelf{copies: map[string]browser.Copy{}}, fail: errors.New("disk full")}
	s, err := browser.New(t.Context(), store, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 300 {
		id := fmt.Sprintf("d%d", n)
		s.Attach(id, "b", 1)
		if _, err := s.Snapshot(id, 1, &devicev1.Snapshot{Last: true, Tabs: []*commandv1.Tab{{TabId: id + "_tb-1", Title: id}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Flush(t.Context()); err == nil || len(store.copies) != 0 {
		t.Fatal("no error")
	}
	store.fail = nil
	s.Forget("d7")
	if err := s.Flush(t.Context()); err != nil || len(store.copies) != 299 || slices.Max(store.batches) > 64 {
		t.Errorf("%v; %d copies in batches of %v", err, len(store.copies), store.batches)
	}
	store.batches = nil
	if _, err := s.Delta("d1", 1, &devicev1.Delta{Sequence: 1, Tabs: []*commandv1.Tab{{TabId: "d1_tb-2"}}}); err != nil {
		t.Fatal(err)
	}
	s.Forget("d8")
	if err := s.Flush(t.Context()); err != nil || !slices.Equal(store.batches, []int{1}) || len(store.copies) != 298 {
		t.Errorf("%v; batches %v, %d copies", err, store.batches, len(store.copies))
	}
}

// TestQueriesSeeWholeChanges reads while devices change: a tab that only ever swaps between two pages, both with the
// word, is found by every query.
func TestQueriesSeeWholeChanges(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	devices := []string{"lap", "desk"}
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for n, id := range devices {
		all := func(page int) (tabs []*commandv1.Tab) {
			for n := range 100 {
				tabs = append(tabs, &commandv1.Tab{TabId: fmt.Sprintf("%s_tb-%d", id, n), Title: fmt.Sprint("steady ", page, n), Url: fmt.Sprintf("https://%d.example/", page)})
			}
			return tabs
		}
		s.Attach(id, "b", 1)
		if _, err := s.Snapshot(id, 1, &devicev1.Snapshot{Last: true, Tabs: all(0)}); err != nil {
			t.Fatal(err)
		}
		writers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 1))
			for i := uint64(1); i < 200; i++ {
				if i%20 == 0 {
					_, _ = s.Snapshot(id, 1, &devicev1.Snapshot{Sequence: i, Last: true, Tabs: all(int(i))})
					continue
				}
				_, _ = s.Delta(id, 1, &devicev1.Delta{Sequence: i, Tabs: []*commandv1.Tab{all(int(i))[r.IntN(100)]}})
			}
		})
	}
	for n := range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got, total := s.Search(devices, "steady .example", browser.Page{Limit: 500}); total != 200 || len(got) != 200 {
					t.Errorf("%d of 200 found", total)
					return
				}
				s.Domains(devices, browser.Page{Limit: 10})
				if n > 0 { // one goroutine stores, as Run does
					continue
				}
				if err := s.Flush(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

func TestPagesFollowEachOther(t *testing.T) {
	t.Parallel()
	s := newState(t, &shelf{copies: map[string]browser.Copy{}})
	devices := []string{"c", "a", "none", "b"}
	for _, id := range []string{"a", "b", "c"} {
		snapshot := &devicev1.Snapshot{Last: true}
		for n := range 70 {
			window := fmt.Sprintf("%s_wb-%d", id, n%3)
			snapshot.Tabs = append(snapshot.Tabs, &commandv1.Tab{
				TabId: fmt.Sprintf("%s_tb-%d", id, n), WindowId: window, Index: uint32(n / 3), Title: []string{"odd", "even"}[n%2],
				Url: fmt.Sprintf("https://%d.example/", n),
			})
		}
		for n := range 3 {
			snapshot.Windows = append(snapshot.Windows, &commandv1.Window{WindowId: fmt.Sprintf("%s_wb-%d", id, n)})
			snapshot.Groups = append(snapshot.Groups, &commandv1.TabGroup{GroupId: fmt.Sprintf("%s_gb-%d", id, n)})
		}
		s.Attach(id, "b", 1)
		if _, err := s.Snapshot(id, 1, snapshot); err != nil {
			t.Fatal(err)
		}
	}
	paged(t, "tabs", func(p browser.Page) ([]*commandv1.Tab, int) { return s.Tabs(devices, "", p) }, 210)
	paged(t, "window", func(p browser.Page) ([]*commandv1.Tab, int) { return s.Tabs(devices, "a_wb-1", p) }, 23)
	paged(t, "search", func(p browser.Page) ([]*commandv1.Tab, int) { return s.Search(devices, "ODD", p) }, 105)
	paged(t, "windows", func(p browser.Page) ([]*commandv1.Window, int) { return s.Windows(devices, p) }, 9)
	paged(t, "groups", func(p browser.Page) ([]*commandv1.TabGroup, int) { return s.Groups(devices, p) }, 9)
	if w, _ := s.Windows(devices, browser.Page{Limit: 1}); w[0].GetWindowId() != "c_wb-0" || w[0].GetTabCount() != 24 {
		t.Errorf("first window: %v", w)
	}
	want, _ := s.Domains(devices, browser.Page{Limit: 1000})
	for from := range len(want) {
		got, total := s.Domains(devices, browser.Page{Offset: from, Limit: 3})
		if total != len(want) || !slices.Equal(got, want[from:min(len(want), from+3)]) {
			t.Fatalf("domains from %d: %v of %d", from, got, total)
		}
	}
}

func paged[M proto.Message](t *testing.T, what string, list func(browser.Page) ([]M, int), want int) {
	t.Helper()
	same := func(a, b M) bool { return proto.Equal(a, b) }
	all, total := list(browser.Page{Limit: 1000})
	if total != want || len(all) != want {
		t.Errorf("%s: %d of %d, want %d", what, len(all), total, want)
	}
	for from := 0; from <= total; from += 7 {
		page, n := list(browser.Page{Offset: from, Limit: 7})
		if n != total || !slices.EqualFunc(page, all[from:min(total, from+7)], same) {
			t.Errorf("%s: the page from %d is not that of the list", what, from)
		}
	}
}
