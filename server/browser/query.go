package browser

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"
	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/ident"
)

// row is a tab with what queries need again and again.
type row struct {
	tab      *commandv1.Tab
	haystack string // title and address, lower-cased
}

// rows are the tabs by window and position. The State's mu is held for writing, or sorted is set.
func (ds *deviceState) rows() []*row {
	if ds.sorted != nil {
		return ds.sorted
	}
	rows := make([]*row, 0, len(ds.tabs))
	for _, t := range ds.tabs {
		rows = append(rows, &row{tab: t, haystack: strings.ToLower(t.GetTitle() + "\n" + t.GetUrl())})
	}
	slices.SortFunc(rows, func(a, b *row) int {
		if c := cmp.Compare(a.tab.GetWindowId(), b.tab.GetWindowId()); c != 0 {
			return c
		}
		if c := cmp.Compare(a.tab.GetIndex(), b.tab.GetIndex()); c != 0 {
			return c
		}
		return cmp.Compare(a.tab.GetTabId(), b.tab.GetTabId())
	})
	ds.sorted = rows
	return rows
}

// Freshness says how old a device's rows are.
type Freshness struct {
	Live bool
	AsOf time.Time // zero if nothing was ever known
}

// Freshness is how old what is known of a device is.
func (s *State) Freshness(device string) Freshness {
	s.mu.RLock()
	defer s.mu.RUnlock()
	ds := s.devices[device]
	if ds == nil {
		return Freshness{}
	}
	if ds.live {
		return Freshness{Live: true, AsOf: s.now()}
	}
	return Freshness{AsOf: ds.asOf}
}

// CountTabs is the number of a device's open tabs.
func (s *State) CountTabs(device string) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if ds := s.devices[device]; ds != nil {
		return len(ds.tabs)
	}
	return 0
}

// each calls visit for the tabs of the devices, in their order, with the state locked.
func (s *State) each(devices []string, visit func(device string, r *row)) {
	s.mu.Lock() // for writing: rows may have to be sorted
	defer s.mu.Unlock()
	for _, device := range devices {
		if ds := s.devices[device]; ds != nil {
			for _, r := range ds.rows() {
				visit(device, r)
			}
		}
	}
}

// Page is a part of a list.
type Page struct{ Offset, Limit int }

func (p Page) has(n int) bool { return n >= p.Offset && n < p.Offset+p.Limit }

// Tabs is a page of the open tabs of the devices, in one window if it is not empty, and how many there are in all.
func (s *State) Tabs(devices []string, window string, page Page) ([]*commandv1.Tab, int) {
	return s.filter(devices, page, func(r *row) bool { return window == "" || r.tab.GetWindowId() == window })
}

// Search is a page of the tabs whose title or address has every word of the query, and how many there are in all.
func (s *State) Search(devices []string, query string, page Page) ([]*commandv1.Tab, int) {
	words := strings.Fields(strings.ToLower(query))
	return s.filter(devices, page, func(r *row) bool {
		for _, w := range words {
			if !strings.Contains(r.haystack, w) {
				return false
			}
		}
		return true
	})
}

func (s *State) filter(devices []string, page Page, match func(*row) bool) ([]*commandv1.Tab, int) {
	var out []*commandv1.Tab
	total := 0
	s.each(devices, func(_ string, r *row) {
		if !match(r) {
			return
		}
		if page.has(total) {
			out = append(out, clone(r.tab))
		}
		total++
	})
	return out, total
}

// Windows are the windows of the devices with their tab counts.
func (s *State) Windows(devices []string, page Page) ([]*commandv1.Window, int) {
	counts := map[string]uint32{}
	s.each(devices, func(_ string, r *row) { counts[r.tab.GetWindowId()]++ })
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []*commandv1.Window
	for _, device := range devices {
		ds := s.devices[device]
		if ds == nil {
			continue
		}
		own := sortedValues(ds.windows)
		for _, w := range own {
			w = clone(w)
			w.TabCount = counts[w.GetWindowId()]
			all = append(all, w)
		}
	}
	return cutPage(all, page), len(all)
}

// Groups are the tab groups of the devices.
func (s *State) Groups(devices []string, page Page) ([]*commandv1.TabGroup, int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []*commandv1.TabGroup
	for _, device := range devices {
		if ds := s.devices[device]; ds != nil {
			for _, g := range sortedValues(ds.groups) {
				all = append(all, clone(g))
			}
		}
	}
	return cutPage(all, page), len(all)
}

// DomainCount is the number of tabs of one domain.
type DomainCount struct {
	Domain string
	Tabs   int
}

// Domains counts tabs by registrable domain, largest first.
func (s *State) Domains(devices []string, page Page) ([]DomainCount, int) {
	counts := map[string]int{}
	s.each(devices, func(_ string, r *row) { counts[domainOf(r.tab.GetUrl())]++ })
	all := make([]DomainCount, 0, len(counts))
	for domain, n := range counts {
		all = append(all, DomainCount{Domain: domain, Tabs: n})
	}
	slices.SortFunc(all, func(a, b DomainCount) int {
		if c := cmp.Compare(b.Tabs, a.Tabs); c != 0 {
			return c
		}
		return cmp.Compare(a.Domain, b.Domain)
	})
	return cutPage(all, page), len(all)
}

// domainOf is the registrable domain of a web address, for example youtube.com; the host itself where there is none,
// and empty for what has no host.
func domainOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return domain
	}
	return host
}

// Describe says what it would take to open a tab again; nil if the tab is not known.
func (s *State) Describe(tabID string) *commandv1.SavedTab {
	id, err := ident.Parse(tabID)
	if err != nil {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	ds := s.devices[id.Device]
	if ds == nil || ds.tabs[tabID] == nil {
		return nil
	}
	t := ds.tabs[tabID]
	saved := &commandv1.SavedTab{
		DeviceId: id.Device, TabId: tabID, Url: t.GetUrl(), Title: t.GetTitle(), WindowId: t.GetWindowId(),
		Index: t.GetIndex(), Pinned: t.GetPinned(), Muted: t.GetMuted(), GroupId: t.GetGroupId(),
	}
	if g := ds.groups[t.GetGroupId()]; g != nil {
		saved.GroupTitle, saved.GroupColour = g.GetTitle(), g.GetColour()
	}
	return saved
}

// Exists says whether a tab, window or group with this composite id is known.
func (s *State) Exists(composite string) bool {
	id, err := ident.Parse(composite)
	if err != nil {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	ds := s.devices[id.Device]
	if ds == nil {
		return false
	}
	return ds.tabs[composite] != nil || ds.windows[composite] != nil || ds.groups[composite] != nil
}

// Match lists the ids of a device's tabs whose address matches a pattern, in the order of lists.
func (s *State) Match(device, pattern string) []string {
	match := ident.URLPattern(pattern)
	var ids []string
	s.each([]string{device}, func(_ string, r *row) {
		if match(r.tab.GetUrl()) {
			ids = append(ids, r.tab.GetTabId())
		}
	})
	return ids
}

func clone[M proto.Message](m M) M {
	return proto.CloneOf(m)
}

func sortedValues[V any](m map[string]V) []V {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	out := make([]V, 0, len(keys))
	for _, k := range keys {
		out = append(out, m[k])
	}
	return out
}

func cutPage[V any](all []V, page Page) []V {
	if page.Offset >= len(all) {
		return nil
	}
	return all[page.Offset:min(len(all), page.Offset+page.Limit)]
}

// clip cuts a text at a rune border.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
