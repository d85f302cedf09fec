package sim

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/ident"
)

const (
	kindNormal = "normal"
	kindPopup  = "popup"

	// unsavedHost is the host of pages that ask before they go away.
	unsavedHost = "unsaved.example"
)

// Browser is the simulated browser: the state, and the commands that change it. It is safe for concurrent use.
type Browser struct {
	commandv1.DeclineCustom // it has no services of its own

	device string
	boot   string
	delay  time.Duration // longest time that a command takes
	wake   chan struct{} // receives after a change

	mu      sync.Mutex
	random  *rand.Rand       // guarded by mu
	pages   *library         // guarded by mu
	last    int64            // guarded by mu; the native number that was given last
	windows []*window        // guarded by mu; the one with the focus is the last one
	tabs    map[int64]*tab   // guarded by mu; by native number
	groups  map[int64]*group // guarded by mu; by native number
	former  map[int64]int64  // guarded by mu; by an id that a tab had, the next one that it got
	changes *changes         // guarded by mu
}

var (
	_ commandv1.Handler    = (*Browser)(nil)
	_ throwbar.StateSource = (*Browser)(nil)
)

type window struct {
	id     int64
	kind   string
	tabs   []*tab // pinned ones first; the tabs of a group side by side
	active *tab
}

type group struct {
	id        int64
	window    *window
	title     string
	colour    commandv1.Colour
	collapsed bool
}

type tab struct {
	id     int64
	window *window
	group  *group // nil if it is in none
	index  int

	url, title string
	pinned     bool
	muted      bool
	audible    bool
	discarded  bool
}

// asks says whether the page asks before it goes away.
func (t *tab) asks() bool { return strings.HasPrefix(t.url, "https://"+unsavedHost+"/") }

// Contents says what a browser shows at first.
type Contents struct {
	Windows int // normal ones; 2 if left out
	Tabs    int // 40 if left out
	Popups  int // further windows that cannot hold groups or pinned tabs, with one tab each
	Seed    uint64
}

// NewBrowser makes a browser of a device. The boot tag is a part of all its ids: a browser that starts again takes
// another one.
func NewBrowser(device, boot string, c Contents) *Browser {
	b := &Browser{
		device: device, boot: boot, wake: make(chan struct{}, 1),
		random: rand.New(rand.NewPCG(c.Seed, uint64(c.Tabs))), pages: newLibrary(),
		tabs: map[int64]*tab{}, groups: map[int64]*group{}, former: map[int64]int64{}, changes: newChanges(),
	}
	b.fill(c)
	return b
}

// begin waits as long as the command takes, and takes the lock. Its error is the end of the context.
func (b *Browser) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.delay > 0 {
		timer := time.NewTimer(rand.N(b.delay))
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
	}
	b.mu.Lock()
	return nil
}

// end releases the lock and says that something may have changed.
func (b *Browser) end() {
	changed := b.changes.any()
	b.mu.Unlock()
	if changed {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
}

func (b *Browser) id(kind ident.Kind, native int64) string {
	return ident.Composite{Device: b.device, Kind: kind, Boot: b.boot, Native: native}.String()
}

// native takes the native number out of a composite id. It is false for a thing of another device or of an earlier
// start, and an INVALID error for what is no such id at all.
func (b *Browser) native(kind ident.Kind, id string) (int64, bool, error) {
	c, err := ident.Parse(id)
	if err != nil {
		return 0, false, throwbar.Errorf(throwbar.CodeInvalid, "%w", err)
	}
	if c.Kind != kind {
		return 0, false, throwbar.Errorf(throwbar.CodeInvalid, "%q is the id of a %s, not of a %s", id, c.Kind, kind)
	}
	return c.Native, c.Device == b.device && c.Boot == b.boot, nil
}

// target is a tab that a caller named; without a tab if there is none now.
type target struct {
	id  string
	tab *tab
}

// targets finds tabs, each once, in the order of the ids.
func (b *Browser) targets(ids []string) ([]target, error) {
	seen, tabs := make(map[string]bool, len(ids)), map[*tab]bool{}
	found := make([]target, 0, len(ids))
	for _, id := range ids {
		native, current, err := b.native(ident.Tab, id)
		if err != nil {
			return nil, err
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		t := target{id: id}
		if current {
			t.tab = b.tabs[b.current(native)]
		}
		if t.tab != nil && tabs[t.tab] {
			continue // an old and a new id of one tab
		}
		tabs[t.tab] = true
		found = append(found, t)
	}
	return found, nil
}

// current is the number that a tab has now, by one that it had.
func (b *Browser) current(native int64) int64 {
	for {
		next, replaced := b.former[native]
		if !replaced {
			return native
		}
		native = next
	}
}

// Sleep puts a tab to sleep, by any id that it has had, which gives it another id, as a browser does. It says which; the same
// one if there is no such tab or it is the shown one of its window.
func (b *Browser) Sleep(tabID string) string {
	b.mu.Lock()
	defer b.end()
	found, err := b.targets([]string{tabID})
	if err != nil || found[0].tab == nil || found[0].tab.window.active == found[0].tab {
		return tabID
	}
	t := found[0].tab
	old := t.id
	delete(b.tabs, old)
	t.id, t.discarded = b.next(), true
	b.tabs[t.id], b.former[old] = t, t.id
	b.changes.replace(old, t.id)
	return b.id(ident.Tab, t.id)
}

// findTab finds one tab, or is a NOT_FOUND error.
func (b *Browser) findTab(id string) (*tab, error) {
	found, err := b.targets([]string{id})
	if err != nil {
		return nil, err
	}
	if found[0].tab == nil {
		return nil, throwbar.Errorf(throwbar.CodeNotFound, "there is no tab %s now; list the tabs again", id)
	}
	return found[0].tab, nil
}

// findWindow finds a window, or is a NOT_FOUND error.
func (b *Browser) findWindow(id string) (*window, error) {
	native, current, err := b.native(ident.Window, id)
	if err != nil {
		return nil, err
	}
	if w := b.window(native); w != nil && current {
		return w, nil
	}
	return nil, throwbar.Errorf(throwbar.CodeNotFound, "there is no window %s now; list the windows again", id)
}

func (b *Browser) window(native int64) *window {
	for _, w := range b.windows {
		if w.id == native {
			return w
		}
	}
	return nil
}

// front is the normal window that had the focus last; nil if there is none.
func (b *Browser) front() *window {
	for i := len(b.windows) - 1; i >= 0; i-- {
		if b.windows[i].kind == kindNormal {
			return b.windows[i]
		}
	}
	return nil
}

func item(id string, status commandv1.ItemStatus, detail string) *commandv1.ItemOutcome {
	return &commandv1.ItemOutcome{Id: id, Status: status, Detail: detail}
}

func ok(id string) *commandv1.ItemOutcome {
	return item(id, commandv1.ItemStatus_ITEM_STATUS_OK, "")
}

func notFound(id string) *commandv1.ItemOutcome {
	return item(id, commandv1.ItemStatus_ITEM_STATUS_NOT_FOUND, "")
}

// countOK counts what was done.
func countOK(items []*commandv1.ItemOutcome) uint32 {
	var n uint32
	for _, i := range items {
		if i.GetStatus() == commandv1.ItemStatus_ITEM_STATUS_OK {
			n++
		}
	}
	return n
}
