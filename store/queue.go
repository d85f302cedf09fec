package store

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"throwbar.dev/throwbar/store/db"
)

// op is one write.
type op struct {
	level  Level
	run    func(*transaction, *db.Queries) error
	answer chan error  // of Write; has room for the one answer
	done   func(error) // of WriteLater; may be nil
	queued time.Time   // set by WriteLater only
	taken  atomic.Bool // by the writer, or by the caller who withdraws it
}

// take says whether the op is now the taker's alone.
func (o *op) take() bool { return o.taken.CompareAndSwap(false, true) }

// call runs the op. A panic is its error: it must not end the writer.
func (o *op) call(tx *transaction, queries *db.Queries) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("write panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	return o.run(tx, queries)
}

func (o *op) finish(err error) {
	if o.answer != nil {
		o.answer <- err
	} else if o.done != nil {
		o.done(err)
	}
}

// queue is what waits for the writer, in order.
type queue struct {
	delay time.Duration
	limit int
	batch int
	wake  chan struct{} // has room for one signal

	mu      sync.Mutex
	waiting []*op
	urgent  int  // how many of the waiting are of Write
	busy    bool // a group is being applied: by Run, or by the caller of one of its ops
	running bool // Run has begun and not ended
	closed  bool // nothing is taken any more
}

func newQueue(config Config) *queue {
	return &queue{delay: config.Delay, limit: config.Queue, batch: config.Batch, wake: make(chan struct{}, 1)}
}

// push queues an op.
func (q *queue) push(o *op) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	if len(q.waiting) >= q.limit {
		return ErrOverloaded
	}
	q.waiting = append(q.waiting, o)
	if o.answer != nil {
		q.urgent++
	}
	// A deferred op behind another one, or behind an urgent one, needs no signal: the writer knows already.
	if o.answer != nil || len(q.waiting) == 1 || len(q.waiting) == q.batch {
		q.signal()
	}
	return nil
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// pop appends the next group to into. If it is not time for it yet, it says how long to wait for it, or until a signal
// if that is 0. When the queue is closed it gives the rest, and then says that it is over.
func (q *queue) pop(into []*op) (group []*op, wait time.Duration, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy {
		return into, 0, false // release gives a signal
	}
	if len(q.waiting) == 0 {
		return into, 0, q.closed
	}
	if q.urgent == 0 && !q.closed && len(q.waiting) < q.batch {
		if wait := q.delay - time.Since(q.waiting[0].queued); wait > 0 {
			return into, wait, false
		}
	}
	n := min(len(q.waiting), q.batch)
	for _, o := range q.waiting[:n] {
		if o.answer != nil {
			q.urgent--
		}
	}
	into = append(into, q.waiting[:n]...)
	rest := copy(q.waiting, q.waiting[n:])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	q.busy = true
	return into, 0, false
}

// claim gives an op with what waits before it to the op's own goroutine, which has to release them: two changes of
// goroutine less for a caller who is alone. It gives nothing where the op has to be pushed, to be applied with others or
// to be refused.
func (q *queue) claim(o *op) []*op {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy || q.closed || !q.running || q.urgent > 0 || len(q.waiting) >= claimMost {
		return nil
	}
	q.busy = true
	group := append(make([]*op, 0, len(q.waiting)+1), q.waiting...)
	clear(q.waiting)
	q.waiting = q.waiting[:0]
	return append(group, o)
}

// claimMost is how many deferred ops a caller applies along with its own.
const claimMost = 16

// release says that a group is applied. Run is woken if it has something to do.
func (q *queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy = false
	if len(q.waiting) > 0 || q.closed {
		q.signal()
	}
}

// next waits for the next group. When ctx is done it closes the queue, so that nothing more comes, and gives the rest.
func (q *queue) next(ctx context.Context, into []*op) []*op {
	end := ctx.Done()
	if ctx.Err() != nil {
		q.refuse() // a steady stream of ops would keep the select below from being reached
	}
	for {
		group, wait, over := q.pop(into)
		if over || len(group) > 0 {
			return group
		}
		var due <-chan time.Time
		if wait > 0 {
			due = time.After(wait)
		}
		select {
		case <-q.wake:
		case <-due:
		case <-end:
			end = nil
			q.refuse()
		}
	}
}

// begin says whether Run may begin: it runs once.
func (q *queue) begin() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running || q.closed {
		return false
	}
	q.running = true
	return true
}

// refuse takes no more ops.
func (q *queue) refuse() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

// end is called when Run returns. Ops wait then only if one of them has ended its goroutine.
func (q *queue) end() {
	q.mu.Lock()
	q.running = false
	q.mu.Unlock()
	q.close()
}

// close refuses further ops and answers those that wait. It does nothing and says false while Run is running.
func (q *queue) close() bool {
	q.mu.Lock()
	if q.running {
		q.mu.Unlock()
		return false
	}
	q.closed = true
	left := q.waiting
	q.waiting = nil
	q.mu.Unlock()
	for _, o := range left {
		if o.take() {
			o.finish(ErrClosed)
		}
	}
	return true
}
