package rpc

import (
	"sync"
	"time"
)

// buckets are token buckets by key: each lets a burst through and then so many a second. A bucket that is full again is
// as good as none and goes, so that what is kept is bounded by who was active lately; beyond the most that are kept,
// newcomers share one.
type buckets struct {
	rate, burst float64
	openMost    int // most that may be open of one key; without bound if zero
	most        int // keys that are kept
	now         func() time.Time

	mu    sync.Mutex
	byKey map[string]*bucket // guarded by mu
	rest  bucket             // guarded by mu; for keys that find no room
	swept time.Time          // guarded by mu
}

type bucket struct {
	left float64
	at   time.Time // when left was right
	open int
}

func newBuckets(rate, burst float64, openMost, most int, now func() time.Time) *buckets {
	return &buckets{
		rate: rate, burst: burst, openMost: openMost, most: most, now: now,
		byKey: map[string]*bucket{}, rest: bucket{left: burst, at: now()},
	}
}

// take takes one. It is zero if there was one, else the time until there is.
func (b *buckets) take(key string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spend(b.of(key))
}

// enter takes one and counts it as open until done is called. Without done it was refused: for the rate, or because too
// many are open, and wait is when to try again.
func (b *buckets) enter(key string) (done func(), wait time.Duration, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.of(key)
	if b.openMost > 0 && of.open >= b.openMost && of != &b.rest {
		return nil, time.Second, true
	}
	if wait := b.spend(of); wait > 0 {
		return nil, wait, false
	}
	of.open++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		of.open--
	}, 0, false
}

// of is a key's bucket as it is now. The caller holds the lock.
func (b *buckets) of(key string) *bucket {
	now := b.now()
	of, ok := b.byKey[key]
	if !ok {
		if len(b.byKey) >= b.most {
			b.sweep(now)
		}
		of = &b.rest
		if len(b.byKey) < b.most {
			of = &bucket{left: b.burst, at: now}
			b.byKey[key] = of
		}
	}
	of.fill(now, b.rate, b.burst)
	return of
}

func (o *bucket) fill(now time.Time, rate, burst float64) {
	if passed := now.Sub(o.at); passed > 0 {
		o.left = min(burst, o.left+passed.Seconds()*rate)
	}
	o.at = now // also when the clock was set back
}

func (b *buckets) spend(of *bucket) time.Duration {
	if of.left >= 1 {
		of.left--
		return 0
	}
	return max(time.Millisecond, time.Duration((1-of.left)/b.rate*float64(time.Second)))
}

// sweep forgets buckets that are full and have nothing open; at most once a second, because it looks at all.
func (b *buckets) sweep(now time.Time) {
	if since := now.Sub(b.swept); since >= 0 && since < time.Second {
		return
	}
	b.swept = now
	for key, of := range b.byKey {
		if of.fill(now, b.rate, b.burst); of.open == 0 && of.left >= b.burst {
			delete(b.byKey, key)
		}
	}
}
