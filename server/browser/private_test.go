package browser_test

import (
	"fmt"
	"strings"
	"testing"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/browser"
)

// TestPrivateTabsAreInMemoryOnly: they are found while their device is connected; the stored copy has nothing of them, and
// nothing is left of them when the device is gone.
func TestPrivateTabsAreInMemoryOnly(t *testing.T) {
	t.Parallel()
	store := &shelf{copies: map[string]browser.Copy{}}
	s := newState(t, store)
	s.Attach("lap", "b1", 1)
	mine := tab(2, "https://canary.example/", "canary")
	mine.Private, mine.WindowId, mine.GroupId = true, "lap_wb1-2", "lap_gb1-5"
	all := &devicev1.Snapshot{
		Sequence: 7, Last: true, Tabs: []*commandv1.Tab{tab(1, "https://a.example/", "A"), mine},
		Windows: append(window(), &commandv1.Window{WindowId: "lap_wb1-2", Kind: "normal", Private: true}),
		Groups: []*commandv1.TabGroup{
			{GroupId: "lap_gb1-4", WindowId: "lap_wb1-1", Title: "plain"}, {GroupId: "lap_gb1-5", WindowId: "lap_wb1-2", Title: "canary"},
		},
	}
	if _, err := s.Snapshot("lap", 1, all); err != nil {
		t.Fatal(err)
	}
	lap, most := []string{"lap"}, browser.Page{Limit: 9}
	if got, n := s.Search(lap, "canary", most); n != 1 || !got[0].GetPrivate() || s.CountTabs("lap") != 2 {
		t.Errorf("live: %v", got)
	}
	for id, want := range map[string]bool{
		"lap_tb1-1": false, "lap_tb1-2": true, "lap_wb1-1": false, "lap_wb1-2": true, "lap_gb1-4": false, "lap_gb1-5": true,
		"lap_tb1-9": false, "desk_tb1-2": false, "nothing": false,
	} {
		if s.Private(id) != want {
			t.Errorf("%s: private is %v", id, !want)
		}
	}
	if got, _ := s.Groups(lap, most); len(got) != 2 || got[0].GetTitle() != "plain" || got[1].GetTitle() != "" {
		t.Errorf("groups: %v", got)
	}
	if got, n := s.Domains(lap, most); n != 1 || got[0].Domain != "a.example" {
		t.Errorf("domains: %v", got)
	}
	if got, _ := s.Windows(lap, most); len(got) != 2 || !got[1].GetPrivate() || got[1].GetTabCount() != 1 {
		t.Errorf("windows: %v", got)
	}
	follows(t, s, 8, &devicev1.Delta{Replaced: replaced(2, 12)})
	if !s.Private(id(2)) || !s.Private(id(12)) {
		t.Error("with another id it is not private")
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if body := string(store.copies["lap"].Body); strings.Contains(body, "canary") || !strings.Contains(body, "a.example") {
		t.Errorf("stored: %q", body)
	}
	again := newState(t, store)
	if again.CountTabs("lap") != 1 || again.Exists("lap_wb1-2") || again.Exists("lap_gb1-5") || !again.Exists("lap_gb1-4") {
		t.Error("a server that starts again knows of it")
	}
	used := s.Used()
	s.Detach("lap", 1)
	if got, _ := s.Tabs(lap, "", most); fmt.Sprint(ids(got)) != "[1]" || s.Exists(id(12)) || s.Exists(id(2)) || s.Exists("lap_wb1-2") ||
		s.Exists("lap_gb1-5") || s.Used() != used-2 { // a slot and a domain
		t.Errorf("left when it is gone: %v, %d of %d", got, s.Used(), used)
	}
	if _, n := s.Search(lap, "canary", most); n != 0 {
		t.Error("it is found when its device is gone")
	}
	s.Forget("lap")
	if s.Used() != 0 {
		t.Errorf("%d slots in use and no device", s.Used())
	}
}

// TestAStateThatIsAllPrivateIsStoredEmpty: a server that starts again takes it, and the device's next snapshot.
func TestAStateThatIsAllPrivateIsStoredEmpty(t *testing.T) {
	t.Parallel()
	store := &shelf{copies: map[string]browser.Copy{}}
	s := newState(t, store)
	mine := tab(1, "https://canary.example/", "canary")
	mine.Private = true
	s.Attach("lap", "b1", 1)
	if _, err := s.Snapshot("lap", 1, &devicev1.Snapshot{Last: true, Tabs: []*commandv1.Tab{mine}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := newState(t, store)
	fill(t, again, tab(3, "https://a.example/", "A"))
	if again.CountTabs("lap") != 1 || again.Freshness("lap").AsOf.IsZero() {
		t.Errorf("%d tabs", again.CountTabs("lap"))
	}
}
