package dispatch

import (
	"context"
	"sync"

	"throwbar.dev/throwbar/server/fault"
)

// exclusive lets one at a time have a key.
type exclusive[K comparable] struct {
	mu    sync.Mutex
	taken map[K]chan struct{} // guarded by mu; each closed when the next one may look
}

// claim waits until nobody else has a key. It is a fault Cancelled if the caller goes away before.
func (e *exclusive[K]) claim(ctx context.Context, key K) (release func(), err error) {
	for {
		e.mu.Lock()
		taken := e.taken[key]
		if taken == nil {
			mine := make(chan struct{})
			if e.taken == nil {
				e.taken = map[K]chan struct{}{}
			}
			e.taken[key] = mine
			e.mu.Unlock()
			return func() {
				e.mu.Lock()
				delete(e.taken, key)
				e.mu.Unlock()
				close(mine)
			}, nil
		}
		e.mu.Unlock()
		select {
		case <-taken:
		case <-ctx.Done():
			return nil, fault.Wrap(fault.Cancelled, context.Cause(ctx), wentAway)
		}
	}
}
