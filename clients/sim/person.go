package sim

import (
	"context"
	"time"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// Act does one thing that a person might do: open, close, load, look at, move, pin, group or ungroup a tab. Which one
// follows from the seed.
func (b *Browser) Act() {
	b.mu.Lock()
	defer b.end()
	r := b.random
	if len(b.windows) == 0 {
		b.put(b.firstTab(), b.newWindow(kindNormal), 0)
		return
	}
	w := b.windows[r.IntN(len(b.windows))]
	t := w.tabs[r.IntN(len(w.tabs))]
	if w.kind != kindNormal {
		b.focus(w)
		return
	}
	switch n := r.IntN(20); {
	case n < 5:
		p := b.pages.page(r)
		opened := b.newTab(p.url, p.title)
		b.put(opened, w, t.index+1)
		b.show(opened)
	case n < 9 && len(b.tabs) > 1 && !t.asks():
		b.close(t)
	case n < 13:
		p := b.pages.page(r)
		b.load(t, p.url, p.title)
	case n < 15:
		b.show(t)
		b.focus(w)
	case n < 17:
		to := b.front()
		b.move([]*tab{t}, to, r.IntN(len(to.tabs)+1))
	case n < 18:
		b.pin(t, !t.pinned)
	case n < 19 && !t.pinned:
		b.join(b.newGroup(w, pick(r, b.pages.groups), commandv1.Colour_COLOUR_UNSPECIFIED), []*tab{t})
	default:
		b.leave(t)
	}
}

// live acts now and then, until the context ends. Every is the mean time between two acts.
func (b *Browser) live(ctx context.Context, every time.Duration) {
	b.mu.Lock()
	r := b.random
	wait := time.Duration(r.ExpFloat64() * float64(every))
	b.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		b.Act()
		b.mu.Lock()
		timer.Reset(time.Duration(r.ExpFloat64() * float64(every)))
		b.mu.Unlock()
	}
}
