package browser

import (
	"cmp"
	"math/bits"
	"slices"

	"throwbar.dev/throwbar/server/browser/search"
)

// domains are the domains of all tabs, by number.
type domains struct {
	ids   map[string]uint32
	names []string
	uses  []uint32
	free  []uint32
}

func (d *domains) use(name string) uint32 {
	id, known := d.ids[name]
	if !known {
		if n := len(d.free); n > 0 {
			id, d.free = d.free[n-1], d.free[:n-1]
			d.names[id] = name
		} else {
			id = uint32(len(d.names))
			d.names, d.uses = append(d.names, name), append(d.uses, 0)
		}
		d.ids[name] = id
	}
	d.uses[id]++
	return id
}

func (d *domains) drop(id uint32) {
	if d.uses[id]--; d.uses[id] == 0 {
		delete(d.ids, d.names[id])
		d.names[id] = ""
		d.free = append(d.free, id)
	}
}

// DomainCount is the number of tabs of one domain.
type DomainCount struct {
	Domain string
	Tabs   int
}

// privateDomain stands for the domain of every private tab.
const privateDomain = "\x00private"

// Domains counts tabs by registrable domain, largest first. Private tabs are not counted.
func (s *State) Domains(devices []string, page Page) ([]DomainCount, int) {
	all := s.countDomains(devices)
	// The end of a long list is seldom asked for: what comes after the page need not be in order.
	return cutPage(smallest(all, page.Offset+page.Limit, compareCounts), page), len(all)
}

func compareCounts(a, b DomainCount) int {
	return cmp.Or(cmp.Compare(b.Tabs, a.Tabs), cmp.Compare(a.Domain, b.Domain))
}

func (s *State) countDomains(devices []string) []DomainCount {
	s.mu.RLock()
	defer s.mu.RUnlock()
	counts := make([]uint32, len(s.domains.names))
	for _, device := range devices {
		ds := s.devices[device]
		if ds == nil {
			continue
		}
		for i, p := range ds.pages {
			first := i * search.PageSize
			for shown := p.shown; shown != 0; shown &= shown - 1 {
				counts[ds.domains[first+bits.TrailingZeros64(shown)]]++
			}
		}
	}
	var all []DomainCount
	for id, n := range counts {
		if n > 0 && s.domains.names[id] != privateDomain {
			all = append(all, DomainCount{Domain: s.domains.names[id], Tabs: int(n)})
		}
	}
	return all
}

// smallest leaves the n smallest values, in order. It changes the order of all.
func smallest[V any](all []V, n int, compare func(a, b V) int) []V {
	if n >= len(all)/4 {
		slices.SortFunc(all, compare)
		return all[:min(n, len(all))]
	}
	// Sorted stretches of a few times n, of which the best n go on to the next one.
	stretch := max(4*n, 1024)
	best := 0
	for from := 0; from < len(all); {
		end := min(len(all), from+stretch)
		copied := copy(all[best:], all[from:end])
		slices.SortFunc(all[:best+copied], compare)
		best = min(n, best+copied)
		from = end
	}
	return all[:best]
}
