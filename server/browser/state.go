// Package browser is what the server knows of open tabs, windows and groups: devices push snapshots and deltas, and
// queries answer from memory, for devices that are offline too.
package browser

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/ident"
	"throwbar.dev/throwbar/server/fault"
)

const (
	maxTabs    = 50_000
	maxTitle   = 1024  // bytes
	maxURL     = 65536 // bytes
	storeEvery = 5 * time.Second
)

// Copy is a device's last known state as it is stored.
type Copy struct {
	Device string
	AsOf   time.Time
	Body   []byte // a device.v1.Snapshot
}

// Store keeps last known states.
type Store interface {
	Copies(ctx context.Context) ([]Copy, error)
	Keep(ctx context.Context, copies []Copy) error
}

// State is the state of all devices.
type State struct {
	store Store
	now   func() time.Time
	log   *slog.Logger

	mu      sync.RWMutex
	devices map[string]*deviceState // guarded by mu
}

// deviceState is one device's state, guarded by the State's mu.
type deviceState struct {
	epoch    uint64 // link that the state comes from
	boot     string
	sequence uint64
	live     bool // in step with the device
	asOf     time.Time
	dirty    bool // not stored yet

	tabs    map[string]*commandv1.Tab
	windows map[string]*commandv1.Window
	groups  map[string]*commandv1.TabGroup
	sorted  []*row // tabs in the order of lists; nil when it has to be made again

	incoming *devicev1.Snapshot // chunks so far
}

func newDeviceState() *deviceState {
	return &deviceState{
		tabs: map[string]*commandv1.Tab{}, windows: map[string]*commandv1.Window{}, groups: map[string]*commandv1.TabGroup{},
	}
}

// New reads the stored copies.
func New(ctx context.Context, store Store, now func() time.Time, log *slog.Logger) (*State, error) {
	copies, err := store.Copies(ctx)
	if err != nil {
		return nil, fmt.Errorf("read last known browser states: %w", err)
	}
	s := &State{store: store, now: now, log: log, devices: map[string]*deviceState{}}
	for _, c := range copies {
		snapshot := &devicev1.Snapshot{}
		if err := proto.Unmarshal(c.Body, snapshot); err != nil {
			return nil, fmt.Errorf("read last known state of %s: %w", c.Device, err)
		}
		ds := newDeviceState()
		ds.fill(snapshot)
		ds.asOf = c.AsOf
		s.devices[c.Device] = ds
	}
	return s, nil
}

// Run stores changed states now and then, and once more at the end.
func (s *State) Run(ctx context.Context) error {
	tick := time.NewTicker(storeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return s.flush(context.WithoutCancel(ctx))
		case <-tick.C:
			if err := s.flush(ctx); err != nil {
				s.log.ErrorContext(ctx, "storing browser states failed", slog.Any("error", err))
			}
		}
	}
}

func (s *State) flush(ctx context.Context) error {
	s.mu.Lock()
	var copies []Copy
	for id, ds := range s.devices {
		if !ds.dirty {
			continue
		}
		body, err := proto.Marshal(ds.snapshot())
		if err != nil {
			s.mu.Unlock()
			return fmt.Errorf("encode state of %s: %w", id, err)
		}
		ds.dirty = false
		copies = append(copies, Copy{Device: id, AsOf: ds.asOf, Body: body})
	}
	s.mu.Unlock()
	if len(copies) == 0 {
		return nil
	}
	if err := s.store.Keep(ctx, copies); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range copies {
			if ds := s.devices[c.Device]; ds != nil {
				ds.dirty = true
			}
		}
		return fmt.Errorf("store browser states: %w", err)
	}
	return nil
}

// Attach begins a new link of a device; the state is not live until a snapshot has come.
func (s *State) Attach(device, boot string, epoch uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ds := s.devices[device]
	if ds == nil {
		ds = newDeviceState()
		s.devices[device] = ds
	}
	ds.epoch, ds.boot, ds.live, ds.incoming = epoch, boot, false, nil
	return true
}

// Detach says that a link is gone.
func (s *State) Detach(device string, epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ds := s.devices[device]
	if ds == nil || ds.epoch != epoch {
		return
	}
	if ds.live {
		ds.live, ds.asOf, ds.dirty = false, s.now(), true
	}
}

// Forget drops a revoked device.
func (s *State) Forget(device string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.devices, device)
}

// Snapshot takes in one chunk of a device's whole state. The last one makes the state live.
func (s *State) Snapshot(device string, epoch uint64, chunk *devicev1.Snapshot) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ds := s.devices[device]
	if ds == nil || ds.epoch != epoch {
		return "", nil // a link that was replaced
	}
	if err := check(device, ds.boot, chunk.GetTabs(), chunk.GetWindows(), chunk.GetGroups()); err != nil {
		return "", err
	}
	if chunk.GetChunk() == 0 {
		ds.incoming = &devicev1.Snapshot{Sequence: chunk.GetSequence()}
	}
	in := ds.incoming
	if in == nil || in.GetSequence() != chunk.GetSequence() || in.GetChunk() != chunk.GetChunk() {
		ds.incoming = nil
		return "a chunk of the snapshot is missing", nil
	}
	in.Chunk++
	in.Tabs = append(in.Tabs, chunk.GetTabs()...)
	in.Windows = append(in.Windows, chunk.GetWindows()...)
	in.Groups = append(in.Groups, chunk.GetGroups()...)
	if len(in.GetTabs()) > maxTabs {
		return "", fault.New(fault.Invalid, "a device may have %d tabs", maxTabs)
	}
	if !chunk.GetLast() {
		return "", nil
	}
	ds.fill(in)
	ds.sequence, ds.incoming, ds.live, ds.dirty, ds.asOf = chunk.GetSequence(), nil, true, true, s.now()
	return "", nil
}

// Delta takes in what changed. A number that does not follow the last one asks for a snapshot.
func (s *State) Delta(device string, epoch uint64, d *devicev1.Delta) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ds := s.devices[device]
	if ds == nil || ds.epoch != epoch || ds.incoming != nil {
		return "", nil
	}
	if err := check(device, ds.boot, d.GetTabs(), d.GetWindows(), d.GetGroups()); err != nil {
		return "", err
	}
	switch {
	case !ds.live:
		return "", nil // the snapshot that was asked for has it
	case d.GetSequence() <= ds.sequence:
		return "", nil
	case d.GetSequence() != ds.sequence+1:
		ds.live, ds.asOf = false, s.now()
		return fmt.Sprintf("delta %d came after %d", d.GetSequence(), ds.sequence), nil
	}
	ds.sequence = d.GetSequence()
	for _, id := range d.GetRemoved() {
		delete(ds.tabs, id)
		delete(ds.windows, id)
		delete(ds.groups, id)
	}
	ds.put(d.GetTabs(), d.GetWindows(), d.GetGroups())
	if len(ds.tabs) > maxTabs {
		return "", fault.New(fault.Invalid, "a device may have %d tabs", maxTabs)
	}
	ds.dirty, ds.asOf = true, s.now()
	return "", nil
}

func (ds *deviceState) fill(snapshot *devicev1.Snapshot) {
	fresh := newDeviceState()
	ds.tabs, ds.windows, ds.groups = fresh.tabs, fresh.windows, fresh.groups
	ds.put(snapshot.GetTabs(), snapshot.GetWindows(), snapshot.GetGroups())
}

func (ds *deviceState) put(tabs []*commandv1.Tab, windows []*commandv1.Window, groups []*commandv1.TabGroup) {
	ds.sorted = nil
	for _, t := range tabs {
		t.Title = clip(t.GetTitle(), maxTitle)
		t.Url = clip(t.GetUrl(), maxURL)
		ds.tabs[t.GetTabId()] = t
	}
	for _, w := range windows {
		ds.windows[w.GetWindowId()] = w
	}
	for _, g := range groups {
		g.Title = clip(g.GetTitle(), maxTitle)
		ds.groups[g.GetGroupId()] = g
	}
}

// snapshot is the whole state as one message.
func (ds *deviceState) snapshot() *devicev1.Snapshot {
	out := &devicev1.Snapshot{Sequence: ds.sequence, Last: true}
	for _, r := range ds.rows() {
		out.Tabs = append(out.Tabs, r.tab)
	}
	for _, w := range ds.windows {
		out.Windows = append(out.Windows, w)
	}
	for _, g := range ds.groups {
		out.Groups = append(out.Groups, g)
	}
	return out
}

// check refuses ids that are not this device's, or not of its current start: a device speaks for itself only.
func check(device, boot string, tabs []*commandv1.Tab, windows []*commandv1.Window, groups []*commandv1.TabGroup) error {
	for _, t := range tabs {
		if err := own(t.GetTabId(), device, boot, ident.Tab); err != nil {
			return err
		}
	}
	for _, w := range windows {
		if err := own(w.GetWindowId(), device, boot, ident.Window); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if err := own(g.GetGroupId(), device, boot, ident.Group); err != nil {
			return err
		}
	}
	return nil
}

func own(id, device, boot string, kind ident.Kind) error {
	c, err := ident.Parse(id)
	if err != nil {
		return fault.New(fault.Invalid, "browser state: %v", err)
	}
	if c.Device != device || c.Boot != boot || c.Kind != kind {
		return fault.New(fault.Invalid, "browser state: %q is no %s of this device's current start", id, kind)
	}
	return nil
}
