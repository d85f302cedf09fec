package browser_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/browser"
	"throwbar.dev/throwbar/server/browser/search"
)

// model is a device as it really is, with the frames that it has sent and that have not come.
type model struct {
	r        *rand.Rand
	boot     int
	epoch    uint64
	sequence uint64
	tabs     map[int]*commandv1.Tab
	order    [3][]int // of the tabs in each window
	road     []func() (string, error)
	state    *browser.State
	resync   bool
	next     int            // an id that no tab has had
	was      map[string]int // tabs by ids that they had
	followed int            // how often the state knew a tab by one of those
}

func (m *model) id(n int) string { return fmt.Sprintf("lap_tb%d-%d", m.boot, n) }

// replace gives a tab another id, as a browser does that puts it to sleep.
func (m *model) replace(d *devicev1.Delta, named map[int]bool, n int) {
	to := 1000 + m.next
	m.next++
	named[to] = named[n] || m.r.IntN(2) == 0
	delete(named, n)
	d.Replaced = append(d.Replaced, &devicev1.Replacement{OldTabId: m.id(n), NewTabId: m.id(to)})
	t := proto.CloneOf(m.tabs[n])
	if t.TabId = m.id(to); m.r.IntN(3) == 0 {
		t.Title, named[to] = sample(m.r, 3), true
	}
	delete(m.tabs, n)
	m.tabs[to] = t
	for _, order := range m.order {
		if at := slices.Index(order, n); at >= 0 {
			order[at] = to
		}
	}
	for id, current := range m.was {
		if current == n {
			m.was[id] = to
		}
	}
	m.was[m.id(n)] = to
}

// forget closes a tab.
func (m *model) forget(n int) {
	delete(m.tabs, n)
	maps.DeleteFunc(m.was, func(_ string, current int) bool { return current == n })
}

// tab puts a tab somewhere.
func (m *model) tab(n int) *commandv1.Tab {
	window := m.r.IntN(len(m.order))
	m.order[window] = slices.Insert(m.order[window], m.r.IntN(len(m.order[window])+1), n)
	return &commandv1.Tab{
		TabId: m.id(n), WindowId: fmt.Sprintf("lap_wb%d-%d", m.boot, window),
		Title: sample(m.r, 3), Url: "https://" + sample(m.r, 4), Pinned: m.r.IntN(2) == 0,
	}
}

// take takes a tab out of its window, which is it.
func (m *model) take(n int) int {
	for window, order := range m.order {
		if at := slices.Index(order, n); at >= 0 {
			m.order[window] = slices.Delete(order, at, at+1)
			return window
		}
	}
	return 0
}

// number gives each tab its place. What is on the road keeps the old ones.
func (m *model) number() {
	for _, order := range m.order {
		for index, n := range order {
			if m.tabs[n].GetIndex() != uint32(index) {
				m.tabs[n] = proto.CloneOf(m.tabs[n])
				m.tabs[n].Index = uint32(index)
			}
		}
	}
}

// change opens, changes, moves and closes tabs, and sends it as one delta. It names what was changed, not what shifted.
func (m *model) change() {
	d := &devicev1.Delta{}
	named := map[int]bool{}
	for range 1 + m.r.IntN(4) {
		n := m.r.IntN(200)
		if m.r.IntN(3) == 0 && len(m.tabs) > 0 {
			all := slices.Sorted(maps.Keys(m.tabs))
			n = all[m.r.IntN(len(all))]
		}
		switch {
		case m.tabs[n] != nil && m.r.IntN(4) == 0:
			m.replace(d, named, n)
		case m.tabs[n] != nil && m.r.IntN(3) == 0:
			d.Removed = append(d.Removed, m.tabs[n].GetTabId())
			m.take(n)
			delete(named, n)
			m.forget(n)
		case m.tabs[n] != nil && m.r.IntN(2) == 0:
			window := m.take(n)
			m.order[window] = slices.Insert(m.order[window], m.r.IntN(len(m.order[window])+1), n)
			named[n] = true
		default:
			m.take(n)
			delete(m.was, m.id(n))
			m.tabs[n] = m.tab(n)
			named[n] = true
		}
	}
	m.number()
	for _, n := range slices.Sorted(maps.Keys(named)) {
		if named[n] {
			d.Tabs = append(d.Tabs, m.tabs[n])
		}
	}
	m.sequence++
	d.Sequence = m.sequence
	epoch := m.epoch
	m.road = append(m.road, func() (string, error) { return m.state.Delta("lap", epoch, proto.CloneOf(d)) })
}

// all are the tabs, in an order that is the same at every run of a seed.
func (m *model) all() []*commandv1.Tab {
	var all []*commandv1.Tab
	for _, n := range slices.Sorted(maps.Keys(m.tabs)) {
		all = append(all, m.tabs[n])
	}
	return all
}

// snapshot sends all in chunks, with changes in between.
func (m *model) snapshot() {
	m.sequence++
	sequence, epoch := m.sequence, m.epoch
	all := m.all()
	chunks := 1 + m.r.IntN(4)
	for i := range chunks {
		s := &devicev1.Snapshot{Sequence: sequence, Chunk: uint32(i), Last: i == chunks-1, Tabs: all[len(all)*i/chunks : len(all)*(i+1)/chunks]}
		m.road = append(m.road, func() (string, error) { return m.state.Snapshot("lap", epoch, proto.CloneOf(s)) })
		if i < chunks-1 && m.r.IntN(2) == 0 {
			m.change()
		}
	}
}

// arrive lets what is on the road come, with losses, repeats and frames that overtake others.
func (m *model) arrive(t *testing.T, faults bool) {
	t.Helper()
	for len(m.road) > 0 {
		at := 0
		if faults && m.r.IntN(20) == 0 {
			at = m.r.IntN(len(m.road))
		}
		frame := m.road[at]
		if !faults || m.r.IntN(20) > 0 { // else it comes again later
			m.road = slices.Delete(m.road, at, at+1)
		}
		if faults && m.r.IntN(20) == 0 {
			continue
		}
		resync, err := frame()
		if err != nil {
			t.Fatal(err)
		}
		m.resync = m.resync || resync != ""
	}
}

func (m *model) same(t *testing.T, s *browser.State) {
	t.Helper()
	got, total := s.Tabs([]string{"lap"}, "", browser.Page{Limit: 1000})
	if total != len(m.tabs) || len(got) != total || s.CountTabs("lap") != total {
		t.Fatalf("%d of %d tabs, want %d", len(got), total, len(m.tabs))
	}
	if !slices.IsSortedFunc(got, func(a, b *commandv1.Tab) int {
		return cmp.Or(strings.Compare(a.GetWindowId(), b.GetWindowId()), cmp.Compare(a.GetIndex(), b.GetIndex()))
	}) {
		t.Fatal("not in order")
	}
	for _, tab := range got {
		var boot, n int
		if _, err := fmt.Sscanf(tab.GetTabId(), "lap_tb%d-%d", &boot, &n); err != nil || !proto.Equal(tab, m.tabs[n]) {
			t.Fatalf("tab %v, want %v (%v)", tab, m.tabs[n], err)
		}
		if !s.Exists(tab.GetTabId()) || s.Describe(tab.GetTabId()).GetUrl() != tab.GetUrl() {
			t.Fatalf("%s is listed and not known", tab.GetTabId())
		}
	}
	m.sameByFormerIDs(t, s)
	for range 3 {
		query := sample(m.r, 2)
		found, n := s.Search([]string{"lap"}, query, browser.Page{Limit: 1000})
		want := slices.DeleteFunc(slices.Clone(got), func(t *commandv1.Tab) bool {
			return !search.Match(browser.Texts(t.GetTitle(), t.GetUrl()), search.Words(query))
		})
		if n != len(want) || !slices.EqualFunc(found, want, func(a, b *commandv1.Tab) bool { return proto.Equal(a, b) }) {
			t.Fatalf("query %q: %d found, want %d", query, n, len(want))
		}
	}
}

// sameByFormerIDs looks for tabs by ids that they had. The state may not know of one, since a snapshot does not tell them; it
// never takes it for another tab.
func (m *model) sameByFormerIDs(t *testing.T, s *browser.State) {
	t.Helper()
	for id, n := range m.was {
		switch current := s.Current(id); current {
		case id:
			if s.Exists(id) || s.Describe(id) != nil {
				t.Fatalf("%s is known, and it is the tab %d now", id, n)
			}
		case m.id(n):
			m.followed++
			if saved := s.Describe(id); !s.Exists(id) || saved.GetTabId() != id || saved.GetUrl() != m.tabs[n].GetUrl() {
				t.Fatalf("%s is %v, want %v", id, saved, m.tabs[n])
			}
		default:
			t.Fatalf("%s is %s, want %s", id, current, m.id(n))
		}
	}
	for n := range m.next { // what nobody has is nobody's
		if id := m.id(1000 + n); m.tabs[1000+n] == nil && m.was[id] == 0 && s.Exists(id) {
			t.Fatalf("%s is closed, and known", id)
		}
	}
}

// pieces of titles and addresses that meet in every way.
var samples = strings.Split("youtube|.com|/|watch?v=|a|b|-|%D0%BC%D0%B8%D1%80|мир|МИР| |東京|bücher|xn--bcher-kva|.de|é|e\u0301|%|%zz|%20|İ|ß|#|://|@|:80|1|20|co|ｄｅ|?|&|=|%2F|%C3%A9", "|")

func sample(r *rand.Rand, most int) string {
	var b strings.Builder
	for range 1 + r.IntN(most) {
		b.WriteString(samples[r.IntN(len(samples))])
	}
	return b.String()
}

// TestTheStateComesToTheDevices lets a device change, restart, and change links over a bad road; whenever the road is
// good again for one snapshot, the state is the device's, and so is what a server knows that starts from the store.
func TestTheStateComesToTheDevices(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Logf("seed %d", seed)
		m := &model{r: rand.New(rand.NewPCG(seed, 3)), tabs: map[int]*commandv1.Tab{}, was: map[string]int{}}
		store := &shelf{copies: map[string]browser.Copy{}}
		m.state = newState(t, store)
		for range 25 {
			m.round(t)
		}
		if err := m.state.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.same(t, newState(t, store))
		if m.followed < 20 {
			t.Errorf("seed %d: the state knew %d tabs by ids that they had", seed, m.followed)
		}
		m.state.Forget("lap")
		if used := m.state.Used(); used != 0 {
			t.Fatalf("%d slots in use and no device", used)
		}
	}
}

func (m *model) round(t *testing.T) {
	t.Helper()
	if m.epoch == 0 || m.r.IntN(4) == 0 { // a new link; what is on the road of the old one still comes
		if m.r.IntN(2) == 0 {
			m.boot++
			clear(m.was)
			for _, n := range slices.Sorted(maps.Keys(m.tabs)) {
				tab := m.tabs[n]
				m.take(n)
				m.tabs[n] = m.tab(n)
				m.tabs[n].Url, m.tabs[n].Title = tab.GetUrl(), tab.GetTitle()
			}
			m.number()
		}
		m.epoch++
		m.sequence = uint64(m.r.IntN(3))
		m.state.Attach("lap", fmt.Sprintf("b%d", m.boot), m.epoch)
		m.state.Detach("lap", m.epoch-1)
		m.state.Attach("lap", "old", m.epoch-1)
		m.snapshot()
	}
	for range m.r.IntN(8) {
		m.change()
	}
	if m.r.IntN(5) == 0 {
		m.snapshot()
	}
	m.arrive(t, true)
	if m.resync || !m.state.Freshness("lap").Live {
		m.resync = false
		m.snapshot()
	}
	m.change()
	m.arrive(t, false)
	if m.resync || !m.state.Freshness("lap").Live { // the gap showed only now, or the end of a snapshot is lost
		m.resync = false
		m.snapshot()
		m.arrive(t, false)
	}
	if !m.state.Freshness("lap").Live {
		t.Fatal("not live after a snapshot on a good road")
	}
	m.same(t, m.state)
}
