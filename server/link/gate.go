package link

import (
	"sync"
	"time"
)

const (
	// AdmitPerSecond is how many links may be opened a second: 10,000 devices are back within half a minute, and the
	// commands of those that are back already are not held up.
	AdmitPerSecond = 400

	admitBurst  = 50                     // links that may be opened at once after a quiet moment
	admitWithin = 250 * time.Millisecond // how long a link may wait for its turn
	retryLeast  = time.Second            // the least and the most that a device is told to stay away
	retryMost   = time.Minute
)

// gate admits links at a bounded rate. What comes too fast is told when to come back: each device another time, at
// the rate at which links are admitted. It costs nothing but arithmetic.
type gate struct {
	every time.Duration // from one admission to the next in a steady flow

	mu   sync.Mutex
	next time.Duration // guarded by mu; when the next link would open in a steady flow, on the hub's clock
	slot time.Duration // guarded by mu; the last time that a device was told to come back at
}

func newGate(perSecond int) *gate { return &gate{every: time.Second / time.Duration(perSecond)} }

// enter says how long a link has to wait for its turn, or else after what time the device may try again.
func (g *gate) enter(now time.Duration) (turn, retry time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next = max(g.next, now-admitBurst*g.every)
	if turn = max(g.next-now, 0); turn <= admitWithin {
		g.next += g.every
		return turn, 0
	}
	if g.slot = max(g.slot, g.next) + g.every; g.slot-now > retryMost {
		g.slot = now + retryMost
	}
	return 0, max(g.slot-now, retryLeast)
}
