package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

const (
	storeEvery = 5 * time.Second
	// A transaction has so many copies, or one that is larger, so that commands need not wait long for the writer.
	keepCopies = 64
	keepBytes  = 1 << 20
)

// Run stores changed states now and then, and once more at the end. A killed server loses what changed since the last
// time, and as of says so.
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

// flush stores what has changed, then removes the copies of devices that are gone; in this order, because one of them
// may have gone while its copy was on the way.
func (s *State) flush(ctx context.Context) error {
	var errs []error
	var copies []Copy
	var states []kept
	size := 0
	keep := func() {
		if len(copies) == 0 {
			return
		}
		if err := s.store.Keep(ctx, copies); err != nil {
			errs = append(errs, fmt.Errorf("store browser states: %w", err))
		} else {
			for _, k := range states {
				k.device.kept = k.changed
			}
		}
		copies, states, size = nil, nil, 0
	}
	for _, ds := range s.dirty() {
		if len(errs) > 0 {
			break // the next time tries again
		}
		c, k, err := s.copyOf(ds)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if k.device == nil {
			continue
		}
		if len(copies) == keepCopies || size+len(c.Body) > keepBytes {
			keep()
		}
		copies, states, size = append(copies, c), append(states, k), size+len(c.Body)
	}
	keep()
	return errors.Join(append(errs, s.drop(ctx))...)
}

// kept says up to which change a device's state is in a copy.
type kept struct {
	device  *deviceState
	changed uint64
}

func (s *State) dirty() []*deviceState {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*deviceState
	for _, ds := range s.devices {
		if ds.changed != ds.kept {
			out = append(out, ds)
		}
	}
	return out
}

// copyOf encodes a device's state, without keeping anyone waiting meanwhile.
func (s *State) copyOf(ds *deviceState) (Copy, kept, error) {
	s.mu.RLock()
	if ds.gone {
		s.mu.RUnlock()
		return Copy{}, kept{}, nil
	}
	places := make([]place, 0, len(ds.order))
	for _, r := range ds.order {
		if !ds.rows[r].isPrivate() { // that is in memory only
			places = append(places, ds.place(r))
		}
	}
	windows, groups := ds.public()
	asOf, changed := ds.asOf, ds.changed
	if ds.live {
		asOf = s.now()
	}
	s.mu.RUnlock()
	out := &devicev1.Snapshot{Last: true}
	for i := range places {
		out.Tabs = append(out.Tabs, places[i].proto())
	}
	for _, id := range slices.Sorted(maps.Keys(windows)) {
		out.Windows = append(out.Windows, windows[id])
	}
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		out.Groups = append(out.Groups, groups[id])
	}
	body, err := proto.Marshal(out)
	if err != nil {
		return Copy{}, kept{}, fmt.Errorf("encode state of %s: %w", ds.id, err)
	}
	return Copy{Device: ds.id, AsOf: asOf, Body: body}, kept{device: ds, changed: changed}, nil
}

func (s *State) drop(ctx context.Context) error {
	s.mu.Lock()
	gone := slices.DeleteFunc(s.dropped, func(id string) bool { return s.devices[id] != nil }) // it came back
	s.dropped = nil
	s.mu.Unlock()
	if len(gone) == 0 {
		return nil
	}
	if err := s.store.Drop(ctx, gone); err != nil {
		s.mu.Lock()
		s.dropped = append(s.dropped, gone...)
		s.mu.Unlock()
		return fmt.Errorf("remove browser states: %w", err)
	}
	return nil
}
