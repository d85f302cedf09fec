package browser

import (
	"cmp"
	"math/bits"
	"slices"
	"sync"
	"time"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/ident"
	"throwbar.dev/throwbar/server/browser/search"
)

// deviceState is one device's state. Whoever changes it holds ingest; what queries read is changed with the State's mu
// held for writing too, so that holding either one is enough to read it. mu is taken after ingest, never before.
type deviceState struct {
	id     string
	ingest sync.Mutex

	// Guarded by ingest alone.
	epoch    uint64 // link that the state comes from
	boot     string // that the link has told
	sequence uint64
	incoming *incoming // a snapshot that is not whole yet

	// Guarded by ingest and mu.
	live    bool // in step with the device
	gone    bool
	asOf    time.Time
	changed uint64 // counts changes
	of      string // boot tag of all that follows
	bytes   int    // of titles and addresses
	byTab   map[int64]uint32
	aliases aliases
	order   []uint32 // rows that are shown, by window, position and id
	windows map[string]*commandv1.Window
	groups  map[string]*commandv1.TabGroup

	// A row has the slot of the same place on its page. One that is in use and not shown is coming or going.
	rows    []row
	domains []uint32 // of rows
	pages   []page

	kept uint64 // changes that are stored; used by flush only
}

type page struct {
	number      uint32
	used, shown uint64
}

// row is a tab.
type row struct {
	text               string // title and address
	tab, window, group int64  // native ids; none if there is no such
	index              uint32
	title              uint16 // length
	flags              flags
}

const none = -1

type flags uint8

const (
	active flags = 1 << iota
	pinned
	muted
	audible
	discarded
	private
)

func (r *row) titleText() string { return r.text[:r.title] }

func (r *row) url() string { return r.text[r.title:] }

func newDeviceState(id string) *deviceState {
	return &deviceState{
		id: id, byTab: map[int64]uint32{}, windows: map[string]*commandv1.Window{}, groups: map[string]*commandv1.TabGroup{},
	}
}

// native is the number in an id of this device's current start, which check has seen; none if the id is empty.
func native(id string) int64 {
	if id == "" {
		return none
	}
	c, err := ident.Parse(id)
	if err != nil {
		return none
	}
	return c.Native
}

func rowOf(t *commandv1.Tab) row {
	title, url := clip(t.GetTitle(), maxTitle), clip(t.GetUrl(), maxURL)
	r := row{
		text: title + url, title: uint16(len(title)), tab: native(t.GetTabId()), window: native(t.GetWindowId()),
		group: native(t.GetGroupId()), index: t.GetIndex(),
	}
	r.flags = bit(t.GetActive(), active) | bit(t.GetPinned(), pinned) | bit(t.GetMuted(), muted) |
		bit(t.GetAudible(), audible) | bit(t.GetDiscarded(), discarded) | bit(t.GetPrivate(), private)
	return r
}

func bit(set bool, flag flags) flags {
	if set {
		return flag
	}
	return 0
}

// place is a row with what its ids need.
type place struct {
	row

	device, boot string
}

func (ds *deviceState) place(r uint32) place {
	return place{row: ds.rows[r], device: ds.id, boot: ds.of}
}

func (p *place) id(kind ident.Kind, native int64) string {
	if native == none {
		return ""
	}
	return ident.Composite{Device: p.device, Kind: kind, Boot: p.boot, Native: native}.String()
}

func (p *place) proto() *commandv1.Tab {
	return &commandv1.Tab{
		TabId: p.id(ident.Tab, p.tab), WindowId: p.id(ident.Window, p.window), GroupId: p.id(ident.Group, p.group),
		Index: p.index, Url: p.url(), Title: p.titleText(),
		Active: p.flags&active != 0, Pinned: p.flags&pinned != 0, Muted: p.flags&muted != 0,
		Audible: p.flags&audible != 0, Discarded: p.flags&discarded != 0, Private: p.flags&private != 0,
	}
}

func compareRows(a, b *row) int {
	return cmp.Or(cmp.Compare(a.window, b.window), cmp.Compare(a.index, b.index), cmp.Compare(a.tab, b.tab))
}

// slot is the number of a row in the index.
func (ds *deviceState) slot(r uint32) uint32 {
	return ds.pages[r/search.PageSize].number*search.PageSize + r%search.PageSize
}

// take finds room for a row, on a new page if there is none.
func (ds *deviceState) take(newPage func() uint32) uint32 {
	at := slices.IndexFunc(ds.pages, func(p page) bool { return p.used != ^uint64(0) })
	if at < 0 {
		at = len(ds.pages)
		ds.pages = append(ds.pages, page{number: newPage()})
	}
	p := &ds.pages[at]
	bit := bits.TrailingZeros64(^p.used)
	p.used |= 1 << bit
	r := uint32(at*search.PageSize + bit)
	if int(r) >= len(ds.rows) {
		ds.rows = append(ds.rows, make([]row, int(r)+1-len(ds.rows))...)
		ds.domains = append(ds.domains, make([]uint32, int(r)+1-len(ds.domains))...)
	}
	return r
}

// give makes room of a row that is not in the index any more. Pages at the end that are empty go.
func (ds *deviceState) give(r uint32, release func(page uint32)) {
	ds.rows[r] = row{}
	ds.pages[r/search.PageSize].used &^= 1 << (r % search.PageSize)
	for n := len(ds.pages) - 1; n >= 0 && ds.pages[n].used == 0; n-- {
		release(ds.pages[n].number)
		ds.pages = ds.pages[:n]
		if rows := n * search.PageSize; len(ds.rows) > rows {
			ds.rows, ds.domains = ds.rows[:rows], ds.domains[:rows]
		}
	}
	if 4*len(ds.rows)+search.PageSize < cap(ds.rows) {
		ds.rows, ds.domains = slices.Clone(ds.rows), slices.Clone(ds.domains)
	}
}
