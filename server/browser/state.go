// Package browser is what the server knows of open tabs, windows and groups: devices push snapshots and deltas, and
// queries answer from memory, for devices that are offline too.
//
// A tab is a row of its device and a slot of the index that queries use. A changed title or address is a new row: it
// goes into the index first, is then shown in the old one's place, and the old one goes. So a query never sees a half
// of a change, and the lock that queries wait for is held for a few tabs at a time, however large a snapshot is.
package browser

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/browser/search"
)

const (
	maxTabs    = 50_000
	maxWindows = 5_000
	maxGroups  = 10_000
	maxTitle   = 1024     // bytes
	maxURL     = 65536    // bytes
	maxWord    = 256      // bytes of the kind or state of a window
	maxText    = 64 << 20 // bytes of all titles and addresses of a device
)

// Copy is a device's last known state as it is stored.
type Copy struct {
	Device string
	AsOf   time.Time
	Body   []byte // a device.v1.Snapshot
}

// Store keeps last known states.
type Store interface {
	// Copies are some of the copies of devices after the one named, by device; none at the end.
	Copies(ctx context.Context, after string) ([]Copy, error)
	Keep(ctx context.Context, copies []Copy) error
	Drop(ctx context.Context, devices []string) error
}

// State is the state of all devices.
type State struct {
	store Store
	now   func() time.Time
	log   *slog.Logger

	mu      sync.RWMutex
	devices map[string]*deviceState // guarded by mu, as all that follows
	index   *search.Index
	owners  []owner // of the pages of the index
	domains domains
	dropped []string // devices whose copies have to go
}

// owner says whose a page of the index is.
type owner struct {
	device *deviceState
	first  uint32 // row of its first slot
}

// New reads the stored copies. One that cannot be read is dropped: its device sends a snapshot when it is back.
func New(ctx context.Context, store Store, now func() time.Time, log *slog.Logger) (*State, error) {
	s := &State{
		store: store, now: now, log: log, devices: map[string]*deviceState{}, index: search.New(),
		domains: domains{ids: map[string]uint32{}},
	}
	for after := ""; ; {
		copies, err := store.Copies(ctx, after)
		if err != nil {
			return nil, fmt.Errorf("read last known browser states: %w", err)
		}
		if len(copies) == 0 {
			return s, nil
		}
		s.restoreAll(ctx, copies)
		after = copies[len(copies)-1].Device
	}
}

// restoreAll takes in copies side by side: a server that knows a million tabs has some seconds of work before it can
// answer.
func (s *State) restoreAll(ctx context.Context, copies []Copy) {
	next := make(chan Copy)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for c := range next {
				if err := s.restore(c); err != nil {
					s.log.ErrorContext(ctx, "the stored browser state of a device is damaged and dropped",
						slog.String("device", c.Device), slog.Any("error", err))
					s.mu.Lock()
					s.dropped = append(s.dropped, c.Device)
					s.mu.Unlock()
				}
			}
		})
	}
	for _, c := range copies {
		next <- c
	}
	close(next)
	workers.Wait()
}

func (s *State) restore(c Copy) error {
	snapshot := &devicev1.Snapshot{}
	if err := proto.Unmarshal(c.Body, snapshot); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	all := content{tabs: snapshot.GetTabs(), windows: snapshot.GetWindows(), groups: snapshot.GetGroups()}
	boot := all.boot()
	if err := all.check(c.Device, boot); err != nil {
		return err
	}
	ds := newDeviceState(c.Device)
	ds.boot, ds.sequence = boot, snapshot.GetSequence()
	return s.apply(ds, change{content: all, whole: true}, func() {
		ds.asOf = c.AsOf
		s.devices[c.Device] = ds
	})
}

func (s *State) device(id string) *deviceState {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.devices[id]
}

// Attach begins a new link of a device; the state is not live until a snapshot has come.
func (s *State) Attach(device, boot string, epoch uint64) bool {
	ds := s.hold(device)
	defer ds.ingest.Unlock()
	if epoch < ds.epoch { // links may come here out of order: the newest one counts
		return true
	}
	ds.epoch, ds.boot, ds.incoming = epoch, boot, nil
	s.lose(ds, false)
	return true
}

// hold returns a device's state with ingest held.
func (s *State) hold(device string) *deviceState {
	for {
		s.mu.Lock()
		ds := s.devices[device]
		if ds == nil {
			ds = newDeviceState(device)
			s.devices[device] = ds
		}
		s.mu.Unlock()
		ds.ingest.Lock()
		if !ds.gone {
			return ds
		}
		ds.ingest.Unlock() // it was forgotten meanwhile
	}
}

// Detach says that a link is gone.
func (s *State) Detach(device string, epoch uint64) {
	ds := s.device(device)
	if ds == nil {
		return
	}
	ds.ingest.Lock()
	defer ds.ingest.Unlock()
	if ds.epoch == epoch {
		ds.incoming = nil
		s.lose(ds, true)
		s.dropPrivate(ds)
	}
}

// lose takes a device's state as not live. It was in step until now, or until the last change that came.
func (s *State) lose(ds *deviceState, untilNow bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ds.live && untilNow {
		ds.asOf = s.now()
		ds.changed++
	}
	ds.live = false
}

// Forget drops a revoked device.
func (s *State) Forget(device string) {
	ds := s.device(device)
	if ds == nil {
		return
	}
	ds.ingest.Lock()
	defer ds.ingest.Unlock()
	s.mu.Lock()
	if s.devices[device] == ds {
		delete(s.devices, device)
		s.dropped = append(s.dropped, device)
	}
	ds.gone, ds.live, ds.incoming = true, false, nil
	ds.epoch++ // nobody's
	rows := ds.order
	s.hide(ds, rows)
	ds.order = nil
	s.mu.Unlock()
	s.clear(ds, rows)
}
