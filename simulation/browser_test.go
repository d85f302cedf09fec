package simulation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/ident"
)

const (
	bootTag = "b1"
	openURL = "https://open.example/"
	// Native numbers of tabs say which request they belong to.
	toClose    = 1000 // + request: is there at first, and is closed by it
	toActivate = 2000
	opened     = 3000 // + number of the effect
)

// browser is a device's browser, which outlives the program that commands it.
type browser struct {
	device string
	wake   chan struct{}

	mu      sync.Mutex
	last    int64
	active  int64
	tabs    map[int64]*commandv1.Tab // by native number
	changed map[int64]bool
	removed []string
}

var _ throwbar.StateSource = (*browser)(nil)

func newBrowser(device string) *browser {
	b := &browser{device: device, wake: make(chan struct{}, 1), tabs: map[int64]*commandv1.Tab{}, changed: map[int64]bool{}}
	for i := range requests {
		for _, n := range []int64{toClose + int64(i), toActivate + int64(i)} {
			b.tabs[n] = &commandv1.Tab{TabId: b.id(n), Url: fmt.Sprintf("https://tab.example/%d", n), Title: "a tab"}
		}
	}
	return b
}

func (b *browser) id(n int64) string {
	return ident.Composite{Device: b.device, Kind: ident.Tab, Boot: bootTag, Native: n}.String()
}

// Snapshot is all tabs.
func (b *browser) Snapshot() throwbar.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.changed)
	b.removed = nil
	return throwbar.State{Tabs: b.all()}
}

func (b *browser) all() []*commandv1.Tab {
	var all []*commandv1.Tab
	for _, n := range slices.Sorted(maps.Keys(b.tabs)) {
		all = append(all, b.tab(n))
	}
	return all
}

func (b *browser) tab(n int64) *commandv1.Tab {
	t := b.tabs[n]
	return &commandv1.Tab{TabId: t.GetTabId(), Url: t.GetUrl(), Title: t.GetTitle(), Active: n == b.active}
}

// Take is what has changed.
func (b *browser) Take() throwbar.Changes {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := throwbar.Changes{Removed: b.removed}
	for _, n := range slices.Sorted(maps.Keys(b.changed)) {
		if b.tabs[n] != nil {
			c.Tabs = append(c.Tabs, b.tab(n))
		}
	}
	clear(b.changed)
	b.removed = nil
	return c
}

// Changed receives after a change.
func (b *browser) Changed() <-chan struct{} { return b.wake }

func (b *browser) change(apply func()) {
	b.mu.Lock()
	apply()
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// requestIn is the request that an action belongs to, as it says itself.
func requestIn(action *commandv1.Action) int {
	switch {
	case action.GetOpenTab() != nil:
		n, err := strconv.Atoi(action.GetOpenTab().GetUrl()[len(openURL):])
		if err == nil {
			return n
		}
	case action.GetCloseTabs() != nil:
		if id, err := ident.Parse(action.GetCloseTabs().GetTabIds()[0]); err == nil {
			return int(id.Native - toClose)
		}
	case action.GetActivateTab() != nil:
		if id, err := ident.Parse(action.GetActivateTab().GetTabId()); err == nil {
			return int(id.Native - toActivate)
		}
	}
	return -1
}

// handler is what the device's program does with commands. It looks at its context before it does anything, as
// handlers should.
type handler struct {
	commandv1.DeclineTabs
	commandv1.DeclineCustom

	process *process
	browser *browser
}

var _ commandv1.Handler = (*handler)(nil)

// run runs a command of a request: apply is its effect.
func (h *handler) run(ctx context.Context, number int, apply func() *commandv1.Result) (*commandv1.Result, error) {
	p := h.process
	s := p.device.sim
	id := throwbar.CallInfoFrom(ctx).CommandID
	r := &run{device: p.device.n, start: p.n, transit: p.device.host.transit()}
	r.deadline, _ = ctx.Deadline()
	s.world.begins(id, r)
	work := time.Duration(0)
	effect := time.Duration(0)
	if number < requests {
		work, effect = s.plan.requests[number].work, s.plan.requests[number].effect
	}
	if err := wait(s.bug.handlerContext(ctx), effect); err != nil {
		return nil, err
	}
	p.pass(beforeEffect)
	if err := s.bug.handlerContext(ctx).Err(); err != nil {
		return nil, err
	}
	s.world.mu.Lock()
	if p.dead {
		s.world.mu.Unlock()
		return nil, errDead
	}
	r.effect = time.Now()
	r.result = apply()
	s.world.noteLocked("%s.%d has done %s", p.device, p.n, id)
	s.world.mu.Unlock()
	p.pass(afterEffect)
	_ = wait(ctx, work-effect) // it is done, whoever asks it to stop
	return r.result, nil
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return ctx.Err()
	}
}

// OpenTab opens a tab.
func (h *handler) OpenTab(ctx context.Context, a *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
	number := requestIn(&commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: a}})
	res, err := h.run(ctx, number, func() *commandv1.Result {
		var n int64
		h.browser.change(func() {
			h.browser.last++
			n = opened + h.browser.last
			h.browser.tabs[n] = &commandv1.Tab{TabId: h.browser.id(n), Url: a.GetUrl(), Title: "opened"}
			h.browser.changed[n] = true
		})
		return &commandv1.Result{Kind: &commandv1.Result_OpenTab{OpenTab: &commandv1.OpenTab_Result{TabId: h.browser.id(n), Url: a.GetUrl()}}}
	})
	return res.GetOpenTab(), err
}

// CloseTabs closes one tab.
func (h *handler) CloseTabs(ctx context.Context, a *commandv1.CloseTabs) (*commandv1.CloseTabs_Result, error) {
	id, err := ident.Parse(a.GetTabIds()[0])
	if err != nil {
		return nil, err
	}
	res, err := h.run(ctx, int(id.Native-toClose), func() *commandv1.Result {
		status, count := commandv1.ItemStatus_ITEM_STATUS_NOT_FOUND, 0
		h.browser.change(func() {
			if h.browser.tabs[id.Native] != nil {
				status, count = commandv1.ItemStatus_ITEM_STATUS_OK, 1
				delete(h.browser.tabs, id.Native)
				h.browser.removed = append(h.browser.removed, a.GetTabIds()[0])
			}
		})
		return closedResult(a.GetTabIds()[0], status, count)
	})
	return res.GetCloseTabs(), err
}

func closedResult(id string, status commandv1.ItemStatus, count int) *commandv1.Result {
	return &commandv1.Result{Kind: &commandv1.Result_CloseTabs{CloseTabs: &commandv1.CloseTabs_Result{
		ClosedCount: uint32(count), Items: []*commandv1.ItemOutcome{{Id: id, Status: status}},
	}}}
}

// ActivateTab shows a tab.
func (h *handler) ActivateTab(ctx context.Context, a *commandv1.ActivateTab) (*commandv1.ActivateTab_Result, error) {
	id, err := ident.Parse(a.GetTabId())
	if err != nil {
		return nil, err
	}
	res, err := h.run(ctx, int(id.Native-toActivate), func() *commandv1.Result {
		h.browser.change(func() {
			h.browser.changed[h.browser.active], h.browser.changed[id.Native] = true, true
			h.browser.active = id.Native
		})
		return &commandv1.Result{Kind: &commandv1.Result_ActivateTab{ActivateTab: &commandv1.ActivateTab_Result{Activated: true}}}
	})
	return res.GetActivateTab(), err
}

// reader is a handler that can tell by reading whether a tab was closed.
type reader struct{ *handler }

// Reconcile reads.
func (r reader) Reconcile(_ context.Context, action *commandv1.Action) (*commandv1.Result, error) {
	ids := action.GetCloseTabs().GetTabIds()
	if len(ids) == 0 {
		return nil, errors.New("this cannot be read")
	}
	id, err := ident.Parse(ids[0])
	if err != nil {
		return nil, err
	}
	r.browser.mu.Lock()
	defer r.browser.mu.Unlock()
	if r.browser.tabs[id.Native] != nil {
		return nil, errors.New("it is still there")
	}
	return closedResult(ids[0], commandv1.ItemStatus_ITEM_STATUS_OK, 1), nil
}
