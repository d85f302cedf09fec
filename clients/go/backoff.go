package throwbar

import "time"

const (
	// backoffLeast is the shortest wait before a new link.
	backoffLeast = 500 * time.Millisecond
	// backoffFirst is the longest wait before the first try. It is wide, so that the devices of a server that was
	// killed do not all come back in the same moment.
	backoffFirst = 4 * time.Second
	// backoffMost is the longest wait.
	backoffMost = 30 * time.Second
	// healthyAfter is how long a link has to last for the next one to count as a first try again.
	healthyAfter = 10 * time.Second
)

// backoff says how long to wait before the next try: a random time in a window that doubles with each try.
type backoff struct {
	jitter func() float64 // in [0, 1)
	tries  int
}

// next is the wait before the next try. At least is what the server asked for; it spreads its devices itself, so that
// such a wait is no sign to come more seldom.
func (b *backoff) next(atLeast time.Duration) time.Duration {
	if atLeast > 0 {
		return atLeast + backoffLeast + time.Duration(b.jitter()*float64(backoffFirst-backoffLeast))
	}
	window := backoffMost
	if b.tries < 3 { // 4, 8, 16 seconds, then 30
		window = backoffFirst << b.tries
	}
	b.tries++
	return backoffLeast + time.Duration(b.jitter()*float64(window-backoffLeast))
}

// reset makes the next try a first one.
func (b *backoff) reset() { b.tries = 0 }
