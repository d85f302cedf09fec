package dispatch

import (
	"sync"
	"time"

	"throwbar.dev/throwbar/catalog"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

const (
	// actLasts is how long it is remembered what an act did. A turn takes less, but for the time in which it waits for people.
	actLasts = 24 * time.Hour
	// maxActs is how many acts are remembered before the oldest are looked for and forgotten.
	maxActs = 10_000
)

// acts counts on how many targets each act has acted without anybody being asked, by commands that can destroy something.
// A model that was misled cannot close everything by closing a few again and again. It is forgotten when the server stops.
type acts struct {
	mu   sync.Mutex
	done map[string]tally // guarded by mu; by act
}

type tally struct {
	targets int
	last    time.Time
}

// before is what an act has done so far that counts for another command of it.
func (a *acts) before(act string, entry *catalog.Entry) int {
	if act == "" || entry.Command.GetEffect() != optionv1.Effect_EFFECT_DESTRUCTIVE {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.done[act].targets
}

// note counts a command that runs without asking.
func (a *acts) note(act string, entry *catalog.Entry, targets int, now time.Time) {
	if act == "" || entry.Command.GetEffect() != optionv1.Effect_EFFECT_DESTRUCTIVE {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done == nil {
		a.done = map[string]tally{}
	}
	if len(a.done) >= maxActs {
		for other, t := range a.done {
			if now.Sub(t.last) > actLasts {
				delete(a.done, other)
			}
		}
	}
	a.done[act] = tally{a.done[act].targets + max(targets, 1), now}
}
