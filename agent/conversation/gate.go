package conversation

import (
	"context"
	"sync"
)

// gate bounds how many turns work at once. One that waits for a person does not count.
type gate struct {
	mu      sync.Mutex
	free    int             // guarded by mu; below zero while those that went on without asking make too many
	waiting []chan struct{} // guarded by mu; the first one is the next
}

// enter waits for a place. It says false if ctx ended before.
func (g *gate) enter(ctx context.Context) bool {
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return true
	}
	place := make(chan struct{})
	g.waiting = append(g.waiting, place)
	g.mu.Unlock()
	select {
	case <-place:
		return true
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, p := range g.waiting {
		if p == place {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return false
		}
	}
	return true // it came at the same moment
}

// push enters without waiting: who was in before goes on.
func (g *gate) push() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free--
}

// leave gives a place back.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free++
	if g.free > 0 && len(g.waiting) > 0 {
		g.free--
		close(g.waiting[0])
		g.waiting = g.waiting[1:]
	}
}
