package browser

import (
	"maps"
	"slices"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/ident"
	"throwbar.dev/throwbar/server/browser/search"
)

// batch is how many tabs go into the index, or out of it, while queries wait: a few microseconds each.
const batch = 16

// change is what happens to a device's state at once.
type change struct {
	content

	replaced []*devicev1.Replacement // before all that follows
	removed  []string
	whole    bool // all else goes
}

// plan is a change worked out against a state.
type plan struct {
	fresh []row    // to be put into the index
	rows  []uint32 // of fresh, once they are in
	same  []moved
	old   []uint32 // rows that go: closed, or replaced by fresh ones
	bytes int
	names *renames

	windows map[string]*commandv1.Window
	groups  map[string]*commandv1.TabGroup
}

// moved is a row with the same title and address that is changed where it is.
type moved struct {
	at    uint32
	row   row
	stays bool // it is not named, so that its place is what the others leave
}

// apply takes in a change; shown is called when queries see it. The device's ingest is held. On an error nothing has
// happened.
func (s *State) apply(ds *deviceState, c change, shown func()) error {
	p := ds.plan(c)
	if len(ds.byTab)+len(p.fresh)-len(p.old) > maxTabs || len(p.windows) > maxWindows || len(p.groups) > maxGroups || p.bytes > maxText {
		return tooMuch()
	}
	s.put(ds, p)
	s.show(ds, p, c, ds.boot, shown)
	return nil
}

// show lets queries see a change, whose fresh rows are in the index. Of is the boot tag that all ids have then.
func (s *State) show(ds *deviceState, p *plan, c change, of string, shown func()) {
	order, shifts := ds.arrange(p, c.whole)
	s.mu.Lock()
	for id := range p.names.left {
		delete(ds.byTab, id)
	}
	for _, m := range p.same {
		ds.rows[m.at] = m.row
	}
	for _, to := range shifts {
		ds.rows[to.at].index = to.index
	}
	for _, r := range p.old {
		delete(ds.byTab, ds.rows[r].tab)
	}
	for id, r := range p.names.rows {
		if _, goes := slices.BinarySearch(p.old, r); !goes {
			ds.byTab[id] = r
		}
	}
	for _, r := range p.rows {
		ds.byTab[ds.rows[r].tab] = r
		ds.pages[r/search.PageSize].shown |= 1 << (r % search.PageSize)
	}
	ds.remember(p, c, of)
	s.hide(ds, p.old)
	ds.order, ds.windows, ds.groups, ds.bytes, ds.of = order, p.windows, p.groups, p.bytes, of
	shown()
	s.mu.Unlock()
	s.clear(ds, p.old)
}

// plan compares a change with the state.
func (ds *deviceState) plan(c change) *plan {
	p := &plan{bytes: ds.bytes, windows: ds.windows, groups: ds.groups, names: ds.renames(c.replaced)}
	named := make(map[int64]*commandv1.Tab, len(c.tabs)) // of two with one id the last counts
	for _, t := range c.tabs {
		named[native(t.GetTabId())] = t
	}
	foreign := ds.of != ds.boot // ids of an earlier start of the browser name other tabs
	for id, t := range named {
		fresh := rowOf(t)
		at, known := p.names.at(ds, id)
		known = known && !foreign
		if known && ds.rows[at].alike(&fresh) {
			fresh.text = ds.rows[at].text
			if fresh != ds.rows[at] || !c.whole { // a place that a delta names counts, also where it is the old one
				p.same = append(p.same, moved{at: at, row: fresh})
			}
			continue
		}
		if known {
			p.old = append(p.old, at)
		}
		p.fresh = append(p.fresh, fresh)
	}
	if c.whole {
		for id, at := range ds.byTab {
			if named[id] == nil || foreign {
				p.old = append(p.old, at)
			}
		}
		p.windows, p.groups = map[string]*commandv1.Window{}, map[string]*commandv1.TabGroup{}
	} else {
		for _, text := range c.removed {
			p.remove(ds, text, named)
		}
	}
	p.rename(ds, named)
	for _, r := range p.fresh {
		p.bytes += len(r.text)
	}
	p.old = slices.Compact(slices.Sorted(slices.Values(p.old)))
	for _, at := range p.old {
		p.bytes -= len(ds.rows[at].text)
	}
	p.merge(ds, c)
	return p
}

// remove takes out what an id names. An id that is not of this device's current start names nothing.
func (p *plan) remove(ds *deviceState, text string, named map[int64]*commandv1.Tab) {
	id, err := ident.Parse(text)
	if err != nil || id.Device != ds.id || id.Boot != ds.of {
		return
	}
	if at, known := p.names.at(ds, id.Native); known && id.Kind == ident.Tab && named[id.Native] == nil {
		p.old = append(p.old, at)
	}
	if p.windows[text] != nil {
		p.windows = maps.Clone(p.windows) // queries read the old one
		delete(p.windows, text)
	}
	if p.groups[text] != nil {
		p.groups = maps.Clone(p.groups)
		delete(p.groups, text)
	}
}

// rename gives tabs other ids of which a change says nothing else.
func (p *plan) rename(ds *deviceState, named map[int64]*commandv1.Tab) {
	p.old = append(p.old, p.names.doubles...)
	if len(p.names.rows) == 0 {
		return
	}
	goes := make(map[uint32]bool, len(p.old))
	for _, at := range p.old {
		goes[at] = true
	}
	for id, at := range p.names.rows {
		if named[id] == nil && !goes[at] {
			r := ds.rows[at]
			r.tab = id
			p.same = append(p.same, moved{at: at, row: r, stays: true})
		}
	}
}

// merge puts in the windows and groups of a change.
func (p *plan) merge(ds *deviceState, c change) {
	if len(c.windows) > 0 {
		p.windows = maps.Clone(p.windows)
	}
	for _, w := range c.windows {
		p.windows[w.GetWindowId()] = &commandv1.Window{
			WindowId: w.GetWindowId(), Kind: clip(w.GetKind(), maxWord), Focused: w.GetFocused(), State: clip(w.GetState(), maxWord),
			Private: w.GetPrivate(),
		}
	}
	if len(c.groups) > 0 {
		p.groups = maps.Clone(p.groups)
	}
	for _, g := range c.groups {
		p.groups[g.GetGroupId()] = &commandv1.TabGroup{
			GroupId: g.GetGroupId(), WindowId: g.GetWindowId(), Title: clip(g.GetTitle(), maxTitle), Colour: g.GetColour(),
			Collapsed: g.GetCollapsed(),
		}
	}
}

// put brings the fresh rows into the index, a few at a time. Nobody sees them yet.
func (s *State) put(ds *deviceState, p *plan) {
	var analyzer search.Analyzer
	for some := range slices.Chunk(p.fresh, batch) {
		var terms [batch]search.Terms
		var domain [batch]string
		for i := range some {
			terms[i] = analyzer.Terms(texts(some[i].titleText(), some[i].url()))
			domain[i] = some[i].domain()
		}
		s.mu.Lock()
		for i := range some {
			r := ds.take(func() uint32 { return s.newPage(ds) })
			ds.rows[r], ds.domains[r] = some[i], s.domains.use(domain[i])
			s.index.Put(ds.slot(r), terms[i])
			p.rows = append(p.rows, r)
		}
		s.mu.Unlock()
	}
}

func (s *State) newPage(ds *deviceState) uint32 {
	n := s.index.Page()
	if int(n) >= len(s.owners) {
		s.owners = append(s.owners, make([]owner, int(n)+1-len(s.owners))...)
	}
	s.owners[n] = owner{device: ds, first: uint32(len(ds.pages) * search.PageSize)}
	return n
}

// hide takes rows out of the sight of queries. mu is held.
func (s *State) hide(ds *deviceState, rows []uint32) {
	for _, r := range rows {
		ds.pages[r/search.PageSize].shown &^= 1 << (r % search.PageSize)
	}
}

// clear takes rows that nobody sees out of the index, a few at a time.
func (s *State) clear(ds *deviceState, rows []uint32) {
	var analyzer search.Analyzer
	for some := range slices.Chunk(rows, batch) {
		var terms [batch]search.Terms
		for i, r := range some {
			terms[i] = analyzer.Terms(texts(ds.rows[r].titleText(), ds.rows[r].url()))
		}
		s.mu.Lock()
		for i, r := range some {
			s.index.Take(ds.slot(r), terms[i])
			s.domains.drop(ds.domains[r])
			ds.give(r, func(page uint32) {
				s.owners[page] = owner{}
				s.index.Release(page)
			})
		}
		s.mu.Unlock()
	}
}
