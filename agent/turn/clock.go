package turn

import (
	"errors"
	"sync"
	"time"
)

// errTime is why a turn ends that took too long.
var errTime = errors.New("the turn took too long")

// clock counts the time of a turn, but for that in which it waits for people.
type clock struct {
	budget time.Duration

	mu      sync.Mutex
	used    time.Duration // guarded by mu; until it last stood still
	since   time.Time     // guarded by mu; when it last began to run
	waiting int           // guarded by mu; for how many decisions; it stands still while there are any
	timer   *time.Timer   // guarded by mu
	over    bool          // guarded by mu; it does not run again
}

// newClock starts a clock that calls end when the budget is used up.
func newClock(budget, used time.Duration, end func()) *clock {
	return &clock{budget: budget, used: used, since: time.Now(), timer: time.AfterFunc(max(budget-used, 0), end)}
}

// wait says that one more decision is waited for.
func (c *clock) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting++; c.waiting == 1 {
		c.used += time.Since(c.since)
		c.timer.Stop()
	}
}

// decided says that of one decision less.
func (c *clock) decided() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting--; c.waiting == 0 && !c.over {
		c.since = time.Now()
		c.timer.Reset(max(c.budget-c.used, 0))
	}
}

// millis is the time that was used.
func (c *clock) millis() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	used := c.used
	if c.waiting == 0 {
		used += time.Since(c.since)
	}
	return used.Milliseconds()
}

func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.timer.Stop()
}
