package browser

import "slices"

// shift is a row that comes to another place of its window because others came or went.
type shift struct{ at, index uint32 }

// arrange is the order of the rows after a change, and what that shifts. Tabs that a delta names have the place that it
// names; the others of their window keep their order and fill the rest, so that a device need not name a thousand tabs
// because the first one closed. The rows still are as they were, but for the fresh ones.
func (ds *deviceState) arrange(p *plan, whole bool) ([]uint32, []shift) {
	gone := make(map[uint32]bool, len(p.old)+len(p.same))
	touched := map[int64]bool{} // windows
	for _, r := range p.old {
		gone[r], touched[ds.rows[r].window] = true, true
	}
	named := make([]moved, 0, len(p.same)+len(p.rows))
	for _, m := range p.same {
		if m.stays {
			continue
		}
		gone[m.at], touched[ds.rows[m.at].window] = true, true
		named = append(named, m)
	}
	for _, r := range p.rows {
		named = append(named, moved{at: r, row: ds.rows[r]})
	}
	for i := range named {
		touched[named[i].row.window] = true
	}
	if len(touched) == 0 {
		return ds.order, nil
	}
	slices.SortFunc(named, func(a, b moved) int { return compareRows(&a.row, &b.row) })
	var shifts []shift
	order := make([]uint32, 0, len(ds.order)+len(named))
	for rest := ds.order; len(rest)+len(named) > 0; {
		window := ds.firstWindow(rest, named)
		var others []uint32
		others, rest = ds.ofWindow(rest, window)
		if !touched[window] {
			order = append(order, others...)
			continue
		}
		n := slices.IndexFunc(named, func(m moved) bool { return m.row.window != window })
		if n < 0 {
			n = len(named)
		}
		others = slices.DeleteFunc(slices.Clone(others), func(r uint32) bool { return gone[r] })
		from := len(order)
		order = weave(order, others, named[:n])
		if !whole {
			shifts = append(shifts, ds.shifted(order[from:], named[:n])...)
		}
		named = named[n:]
	}
	return order, shifts
}

// firstWindow is the window that comes next, of the rows and of those that are named; there is one.
func (ds *deviceState) firstWindow(rest []uint32, named []moved) int64 {
	switch {
	case len(rest) == 0:
		return named[0].row.window
	case len(named) == 0:
		return ds.rows[rest[0]].window
	default:
		return min(ds.rows[rest[0]].window, named[0].row.window)
	}
}

// ofWindow splits an order behind the tabs of its first window, if that is the one.
func (ds *deviceState) ofWindow(order []uint32, window int64) (tabs, rest []uint32) {
	n := slices.IndexFunc(order, func(r uint32) bool { return ds.rows[r].window != window })
	if n < 0 {
		n = len(order)
	}
	return order[:n], order[n:]
}

// weave puts the named tabs of a window at their places and the others around them.
func weave(order, others []uint32, named []moved) []uint32 {
	for index := uint32(0); len(others)+len(named) > 0; index++ {
		if len(named) > 0 && (named[0].row.index <= index || len(others) == 0) {
			order, named = append(order, named[0].at), named[1:]
		} else {
			order, others = append(order, others[0]), others[1:]
		}
	}
	return order
}

// shifted are the tabs of a window whose place is not the one that their row has, or is named with.
func (ds *deviceState) shifted(tabs []uint32, named []moved) []shift {
	said := make(map[uint32]uint32, len(named))
	for _, m := range named {
		said[m.at] = m.row.index
	}
	var out []shift
	for index, r := range tabs {
		was, ok := said[r]
		if !ok {
			was = ds.rows[r].index
		}
		if was != uint32(index) {
			out = append(out, shift{at: r, index: uint32(index)})
		}
	}
	return out
}
