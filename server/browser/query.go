package browser

import (
	"maps"
	"math/bits"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/ident"
	"throwbar.dev/throwbar/server/browser/search"
)

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

// Stale are the first of the devices, at most so many, whose rows are not live.
func (s *State) Stale(devices []string, most int) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []string
	for _, device := range devices {
		if len(out) == most {
			break
		}
		if ds := s.devices[device]; ds == nil || !ds.live {
			out = append(out, device)
		}
	}
	return out
}

// CountTabs is the number of a device's open tabs.
func (s *State) CountTabs(device string) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if ds := s.devices[device]; ds != nil {
		return len(ds.order)
	}
	return 0
}

// Page is a part of a list.
type Page struct{ Offset, Limit int }

// pager lays the rows of several devices one after the other and takes a page out.
type pager struct {
	page  Page
	total int
}

// next counts n rows and says which of them are on the page.
func (p *pager) next(n int) (from, to int) {
	from = min(n, max(0, p.page.Offset-p.total))
	to = min(n, max(0, p.page.Offset+p.page.Limit-p.total))
	p.total += n
	return from, to
}

// known calls visit for the devices of which something is known. The lock is held for reading meanwhile.
func (s *State) known(devices []string, visit func(ds *deviceState)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, device := range devices {
		if ds := s.devices[device]; ds != nil {
			visit(ds)
		}
	}
}

// Tabs is a page of the open tabs of the devices, in one window if it is not empty, and how many there are in all.
func (s *State) Tabs(devices []string, window string, page Page) ([]*commandv1.Tab, int) {
	var found []place
	pages := pager{page: page}
	id, err := ident.Parse(window)
	if window != "" && (err != nil || id.Kind != ident.Window) {
		return nil, 0
	}
	s.known(devices, func(ds *deviceState) {
		order := ds.order
		if window != "" {
			if id.Device != ds.id || id.Boot != ds.of {
				return
			}
			order = ds.inWindow(id.Native)
		}
		from, to := pages.next(len(order))
		for _, r := range order[from:to] {
			found = append(found, ds.place(r))
		}
	})
	return protos(found), pages.total
}

// inWindow is the part of the order that is one window's.
func (ds *deviceState) inWindow(window int64) []uint32 {
	first := func(window int64) int {
		at, _ := slices.BinarySearchFunc(ds.order, window, func(r uint32, w int64) int {
			if ds.rows[r].window < w {
				return -1
			}
			return 1
		})
		return at
	}
	from := first(window)
	rest := ds.order[from:]
	for n, r := range rest {
		if ds.rows[r].window != window {
			return rest[:n]
		}
	}
	return rest
}

// Search is a page of the tabs whose title or address has every word of the query, and how many there are in all.
func (s *State) Search(devices []string, query string, page Page) ([]*commandv1.Tab, int) {
	words := search.Words(query)
	if len(words) == 0 {
		return s.Tabs(devices, "", page)
	}
	var found []place
	var rd reader
	pages := pager{page: page}
	var answer *search.Answer
	s.known(devices, func(ds *deviceState) {
		if answer == nil {
			answer = s.index.Find(words, func(slot uint32, word string) bool {
				own := s.owners[slot/search.PageSize]
				r := &own.device.rows[own.first+slot%search.PageSize]
				return rd.has(r.titleText(), r.url(), word)
			})
		}
		n := 0
		for _, p := range ds.pages {
			n += bits.OnesCount64(answer.Page(p.number) & p.shown)
		}
		if from, to := pages.next(n); from < to {
			found = ds.matching(answer, from, to, found)
		}
	})
	return protos(found), pages.total
}

// matching adds a device's rows from..to among those that an answer has.
func (ds *deviceState) matching(answer *search.Answer, from, to int, found []place) []place {
	n := 0
	for _, r := range ds.order {
		if answer.Page(ds.pages[r/search.PageSize].number)&(1<<(r%search.PageSize)) == 0 {
			continue
		}
		if n >= from {
			found = append(found, ds.place(r))
		}
		if n++; n == to {
			break
		}
	}
	return found
}

func protos(found []place) []*commandv1.Tab {
	out := make([]*commandv1.Tab, len(found))
	for i := range found {
		out[i] = found[i].proto()
	}
	return out
}

// Windows are the windows of the devices with their tab counts.
func (s *State) Windows(devices []string, page Page) ([]*commandv1.Window, int) {
	var out []*commandv1.Window
	pages := pager{page: page}
	s.known(devices, func(ds *deviceState) {
		from, to := pages.next(len(ds.windows))
		if from == to {
			return
		}
		for _, id := range slices.Sorted(maps.Keys(ds.windows))[from:to] {
			w := proto.CloneOf(ds.windows[id])
			w.TabCount = uint32(len(ds.inWindow(native(id))))
			out = append(out, w)
		}
	})
	return out, pages.total
}

// Groups are the tab groups of the devices; those in private windows without their titles.
func (s *State) Groups(devices []string, page Page) ([]*commandv1.TabGroup, int) {
	var out []*commandv1.TabGroup
	pages := pager{page: page}
	s.known(devices, func(ds *deviceState) {
		from, to := pages.next(len(ds.groups))
		if from == to {
			return
		}
		for _, id := range slices.Sorted(maps.Keys(ds.groups))[from:to] {
			g := proto.CloneOf(ds.groups[id])
			if ds.hidden(g) {
				g.Title = ""
			}
			out = append(out, g)
		}
	})
	return out, pages.total
}

// Describe says what it would take to open a tab again; nil if the tab is not known. It has the id that was asked for, which
// may be one that the tab had before.
func (s *State) Describe(tabID string) *commandv1.SavedTab {
	id, err := ident.Parse(tabID)
	if err != nil {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	ds := s.devices[id.Device]
	if ds == nil {
		return nil
	}
	at, known := ds.row(id)
	if !known {
		return nil
	}
	p := ds.place(at)
	t := p.proto()
	saved := &commandv1.SavedTab{
		DeviceId: id.Device, TabId: tabID, Url: t.GetUrl(), Title: t.GetTitle(), WindowId: t.GetWindowId(),
		Index: t.GetIndex(), Pinned: t.GetPinned(), Muted: t.GetMuted(), GroupId: t.GetGroupId(),
	}
	if g := ds.groups[t.GetGroupId()]; g != nil {
		saved.GroupTitle, saved.GroupColour = g.GetTitle(), g.GetColour()
	}
	return saved
}

// Current is the id that a tab has now, by any id that it has had since its browser started; the id itself where the
// server knows of no other.
func (s *State) Current(tabID string) string {
	id, err := ident.Parse(tabID)
	if err != nil {
		return tabID
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	ds := s.devices[id.Device]
	if ds == nil {
		return tabID
	}
	at, known := ds.row(id)
	if !known {
		return tabID
	}
	p := ds.place(at)
	return p.id(ident.Tab, p.tab)
}

// row finds a tab, by an id that it had before, too. A tab of an earlier start of the browser is another one.
func (ds *deviceState) row(id ident.Composite) (at uint32, known bool) {
	if id.Kind != ident.Tab || id.Boot != ds.of {
		return 0, false
	}
	if at, known = ds.byTab[id.Native]; known {
		return at, true
	}
	now, replaced := ds.aliases.now[id.Native]
	if !replaced {
		return 0, false
	}
	at, known = ds.byTab[now]
	return at, known
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
	_, known := ds.row(id)
	return known || ds.windows[composite] != nil || ds.groups[composite] != nil
}

// Match lists the ids of a device's tabs whose address matches a pattern, in the order of lists.
func (s *State) Match(device, pattern string) []string {
	var all []place // compared without the lock: a pattern takes its time
	s.known([]string{device}, func(ds *deviceState) {
		for _, r := range ds.order {
			all = append(all, ds.place(r))
		}
	})
	match := ident.URLPattern(pattern)
	var ids []string
	for i := range all {
		if match(all[i].url()) {
			ids = append(ids, all[i].id(ident.Tab, all[i].tab))
		}
	}
	return ids
}

func cutPage[V any](all []V, page Page) []V {
	if page.Offset >= len(all) {
		return nil
	}
	return all[page.Offset:min(len(all), page.Offset+page.Limit)]
}
