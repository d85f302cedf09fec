package browser

import (
	"slices"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

const (
	// maxReplaced is how many ids that tabs had before are remembered for a device, and maxFormer for one tab; beyond that
	// the oldest go.
	maxReplaced = 10_000
	maxFormer   = 16
)

// renames are the ids that a change gives to tabs, worked out against a state: one after the other, before anything else
// of the change.
type renames struct {
	pairs   [][2]int64       // the old and the new id, in order
	rows    map[int64]uint32 // rows by the id that they get
	left    map[int64]bool   // ids that their tabs have no more
	doubles []uint32         // rows of tabs that have another row under their new id already
}

func (ds *deviceState) renames(replaced []*devicev1.Replacement) *renames {
	n := &renames{}
	if len(replaced) == 0 {
		return n
	}
	n.rows, n.left = map[int64]uint32{}, map[int64]bool{}
	for _, r := range replaced {
		from, to := native(r.GetOldTabId()), native(r.GetNewTabId())
		if from == to {
			continue
		}
		n.pairs = append(n.pairs, [2]int64{from, to})
		at, known := n.at(ds, from)
		if !known {
			continue
		}
		delete(n.rows, from)
		n.left[from] = true
		if _, taken := n.at(ds, to); taken {
			n.doubles = append(n.doubles, at)
			continue
		}
		n.rows[to] = at
	}
	return n
}

// at is the row of a tab by the id that it has after the renames.
func (n *renames) at(ds *deviceState, id int64) (uint32, bool) {
	if at, known := n.rows[id]; known {
		return at, true
	}
	if n.left[id] {
		return 0, false
	}
	at, known := ds.byTab[id]
	return at, known
}

// aliases are ids that open tabs had before, so that whoever still has one finds the tab. The zero value has none.
type aliases struct {
	now map[int64]int64   // by an id that a tab had, the one that it has
	was map[int64][]int64 // the other way round, oldest first
	age []int64           // the ids that tabs had, oldest first; some may be forgotten already
}

// add says that a tab has another id now.
func (a *aliases) add(from, to int64) {
	if a.now == nil {
		a.now, a.was = map[int64]int64{}, map[int64][]int64{}
	}
	a.forget(to) // it is an id that is used now
	a.forget(from)
	former := append(slices.Concat(a.was[to], a.was[from]), from)
	for ; len(former) > maxFormer; former = former[1:] {
		delete(a.now, former[0])
	}
	for _, id := range former {
		a.now[id] = to
	}
	delete(a.was, from)
	a.was[to] = former
	a.age = append(a.age, from)
	for len(a.now) > maxReplaced {
		a.forget(a.age[0])
		a.age = a.age[1:]
	}
	if len(a.age) > 2*maxReplaced {
		a.shorten()
	}
}

// shorten takes out of the ages what is forgotten, and of what was told several times all but the last.
func (a *aliases) shorten() {
	seen := make(map[int64]bool, len(a.now))
	left := make([]int64, 0, len(a.now))
	for _, id := range slices.Backward(a.age) {
		if _, known := a.now[id]; known && !seen[id] {
			seen[id] = true
			left = append(left, id)
		}
	}
	slices.Reverse(left)
	a.age = left
}

// forget drops an id that a tab had.
func (a *aliases) forget(id int64) {
	to, known := a.now[id]
	if !known {
		return
	}
	delete(a.now, id)
	if left := slices.DeleteFunc(a.was[to], func(other int64) bool { return other == id }); len(left) > 0 {
		a.was[to] = left
	} else {
		delete(a.was, to)
	}
}

// gone drops all ids that a tab had, which is closed.
func (a *aliases) gone(id int64) {
	for _, old := range a.was[id] {
		delete(a.now, old)
	}
	delete(a.was, id)
}

// remember keeps the aliases right after a change, whose rows and ids are in the state. mu is held for writing.
func (ds *deviceState) remember(p *plan, c change, of string) {
	if ds.of != of { // ids of an earlier start of the browser
		ds.aliases = aliases{}
		return
	}
	for _, pair := range p.names.pairs {
		ds.aliases.add(pair[0], pair[1])
	}
	if len(ds.aliases.now) == 0 {
		return
	}
	for _, t := range c.tabs {
		ds.aliases.forget(native(t.GetTabId()))
	}
	closed := func(id int64) {
		if _, open := ds.byTab[id]; !open {
			ds.aliases.gone(id)
		}
	}
	for _, pair := range p.names.pairs {
		closed(pair[1])
	}
	for _, r := range p.old {
		closed(ds.rows[r].tab)
	}
	for to, at := range p.names.rows { // and those that were closed under the id that they have since this change
		if _, found := slices.BinarySearch(p.old, at); found {
			closed(to)
		}
	}
}
