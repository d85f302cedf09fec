package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"time"

	"throwbar.dev/throwbar/store/db"
)

// Run is the writer: it applies what is queued until ctx is done, then refuses further writes, applies the rest and
// returns nil. It can run once. Nothing is written while it does not run. It ends with an error, ErrLocked, if another
// server has taken the database while the connection was lost.
func (s *Store) Run(ctx context.Context) error {
	if !s.queue.begin() {
		return errors.New("run store: it runs or ran already, or is closed")
	}
	defer s.queue.end()
	var group []*op
	for {
		group = s.queue.next(ctx, group[:0])
		if len(group) == 0 {
			return nil
		}
		s.apply(group)
		if s.writer.stopped != nil {
			return fmt.Errorf("write to %s: %w", s.engine.name(), s.writer.stopped)
		}
		if len(group) > 1 {
			runtime.Gosched() // lets those just answered queue what they do next: a quarter more throughput
		}
		clear(group)
	}
}

// apply has the writer to itself: the queue gives out one group at a time.
func (s *Store) apply(group []*op) {
	defer s.queue.release()
	s.writer.apply(group)
}

// Write runs an op and returns when it is committed, at this level or a stricter one, or its error. If ctx is done
// before the writer takes the op, it is not run and the error is the context's; after that the outcome is awaited. The
// op may run twice and must not call Write; see the package comment.
func (s *Store) Write(ctx context.Context, level Level, write func(context.Context, *db.Queries) error) error {
	if ctx.Value(insideOp{}) != nil {
		return ErrNested
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	o := &op{
		level:  level,
		run:    func(tx *transaction, queries *db.Queries) error { return write(opContext{ctx, tx}, queries) },
		answer: make(chan error, 1),
	}
	if s.direct {
		if group := s.queue.claim(o); group != nil {
			s.apply(group)
			return <-o.answer
		}
	}
	if err := s.queue.push(o); err != nil {
		return err
	}
	select {
	case err := <-o.answer:
		return err
	case <-ctx.Done():
		if o.take() {
			return context.Cause(ctx)
		}
		return <-o.answer
	}
}

// WriteLater queues an op and returns. It is committed with the next group, at the level of that, at the latest after
// Config.Delay if the writer is idle. Then done, which may be nil, is called by the writer, which waits for it: it has
// to be quick and must not call Write. If the op is refused (ErrClosed, ErrOverloaded), done is called before WriteLater
// returns.
func (s *Store) WriteLater(write func(context.Context, *db.Queries) error, done func(error)) {
	o := &op{
		level: Fast,
		run: func(tx *transaction, queries *db.Queries) error {
			return write(opContext{context.Background(), tx}, queries)
		},
		done:   done,
		queued: time.Now(),
	}
	if err := s.queue.push(o); err != nil {
		o.finish(err)
	}
}

// insideOp is the key under which the context of an op says that it is one.
type insideOp struct{}

// opContext has the values of the caller's context, but never ends: a statement that is cut off would take the whole
// group with it.
type opContext struct {
	outer context.Context //nolint:containedctx // it is a context itself
	tx    *transaction
}

// Deadline says that there is none.
func (opContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is nil: it never ends.
func (opContext) Done() <-chan struct{} { return nil }

// Err is nil.
func (opContext) Err() error { return nil }

// Value is the caller's, and says to Write that this is an op.
func (c opContext) Value(key any) any {
	if _, ok := key.(insideOp); ok {
		return c.tx
	}
	return c.outer.Value(key)
}

// writer applies ops to the one connection that writes. It belongs to Run's goroutine.
type writer struct {
	session   session
	watched   *watched
	queries   *db.Queries              // over watched
	fault     func(stage string) error // of Config; may be nil
	reconnect time.Duration
	stopped   error // why nothing can be written any more
	live      []*op // of the group in hand; kept for its memory
}

func newWriter(s session, config Config) *writer {
	w := &writer{session: s, watched: &watched{}, fault: config.Fault, reconnect: config.Reconnect}
	w.queries = db.New(w.watched)
	return w
}

// apply commits a group and answers its ops, in order, even if one of them ends the goroutine.
func (w *writer) apply(group []*op) {
	live, level := w.live[:0], Fast
	for _, o := range group {
		if o.take() {
			live = append(live, o)
			level = max(level, o.level)
		}
	}
	if len(live) == 0 {
		return
	}
	answered := 0
	defer func() {
		for _, o := range live[answered:] {
			o.finish(ErrClosed)
		}
		clear(live)
		w.live = live
	}()
	err := w.commit(level, live...)
	for _, o := range live {
		own := err
		if err != nil && len(live) > 1 && !ofConnection(err) {
			own = w.commit(o.level, o)
		}
		answered++
		o.finish(own)
	}
}

// ofConnection says that the error is no op's fault: to run the group again one by one would not help, or would write
// twice what may be written already.
func ofConnection(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknown)
}

// tries is how often a transaction is run whose connection is lost each time: it may be the transaction that does it.
const tries = 3

// commit runs ops in one transaction. If the connection is lost it is opened again, and then it is certain whether the
// transaction was committed; if it was not, it is run once more.
func (w *writer) commit(level Level, ops ...*op) error {
	var err error
	for range tries {
		var sent bool
		if sent, err = w.once(level, ops); err == nil || !w.session.lost() {
			return err
		}
		committed, failed := w.session.restore(w.reconnect)
		if errors.Is(failed, ErrLocked) {
			w.stopped = failed
		}
		switch {
		case failed != nil && sent:
			return &Error{Kind: ErrUnknown, Cause: errors.Join(err, failed)}
		case failed != nil:
			return &Error{Kind: ErrUnavailable, Cause: failed}
		case sent && committed:
			return nil
		}
	}
	return &Error{Kind: ErrUnavailable, Cause: err}
}

// once runs ops in a transaction, which is rolled back at the first error. sent says whether it came to the commit.
func (w *writer) once(level Level, ops []*op) (sent bool, err error) {
	if err := w.begin(level); err != nil {
		return false, fmt.Errorf("begin write: %w", typed(err))
	}
	tx := &transaction{}
	for _, o := range ops {
		if err := w.watched.seen(o.call(tx, w.queries)); err != nil {
			w.session.rollback()
			return false, typed(err)
		}
	}
	if err := w.watched.seen(tx.end(w.queries)); err != nil {
		w.session.rollback()
		return false, typed(err)
	}
	if err := w.fails("commit"); err != nil {
		w.session.rollback()
		return false, fmt.Errorf("commit: %w", typed(err))
	}
	if err := w.session.commit(); err != nil {
		w.session.rollback()
		return true, fmt.Errorf("commit: %w", typed(err))
	}
	return true, nil
}

func (w *writer) begin(level Level) (err error) {
	if err := w.fails("begin"); err != nil {
		return err
	}
	w.watched.err = nil
	w.watched.DBTX, err = w.session.begin(level)
	return err
}

// fails is what a test says that goes wrong now.
func (w *writer) fails(stage string) error {
	if w.fault == nil {
		return nil
	}
	return w.fault(stage)
}

// watched is what the statements of ops go to. It remembers the first that failed: SQLite would commit what an op did
// after it, PostgreSQL nothing.
type watched struct {
	db.DBTX
	err error
}

func (w *watched) note(err error) error {
	if w.err == nil {
		w.err = err
	}
	return err
}

// seen is the error of an op that has ended so.
func (w *watched) seen(err error) error {
	if err == nil && w.err != nil {
		return fmt.Errorf("write went on after an error: %w", w.err)
	}
	return err
}

// ExecContext is the connection's.
func (w *watched) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	result, err := w.DBTX.ExecContext(ctx, query, args...)
	return result, w.note(err)
}

// QueryContext is the connection's.
func (w *watched) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := w.DBTX.QueryContext(ctx, query, args...)
	return rows, w.note(err)
}

// QueryRowContext is the connection's.
func (w *watched) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	row := w.DBTX.QueryRowContext(ctx, query, args...)
	_ = w.note(row.Err()) // Scan says it too
	return row
}
