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
// returns nil. It can run once. Nothing is written while it does not run.
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
		s.writer.apply(group)
		if len(group) > 1 {
			runtime.Gosched() // lets those just answered queue what they do next: a quarter more throughput
		}
		clear(group)
	}
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
	inside := opContext{outer: ctx}
	o := &op{
		level:  level,
		run:    func(queries *db.Queries) error { return write(inside, queries) },
		answer: make(chan error, 1),
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
	inside := opContext{outer: context.Background()}
	o := &op{
		level:  Fast,
		run:    func(queries *db.Queries) error { return write(inside, queries) },
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
		return true
	}
	return c.outer.Value(key)
}

// writer has the one connection that writes. It belongs to Run's goroutine.
type writer struct {
	conn    *sql.Conn
	queries *db.Queries
	level   Level
	fault   func(stage string) error // of Config; may be nil
	live    []*op                    // of the group in hand; kept for its memory
}

// newWriter takes a connection on which synchronous is FULL.
func newWriter(conn *sql.Conn, fault func(stage string) error) *writer {
	return &writer{conn: conn, queries: db.New(conn), level: Synced, fault: fault}
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
		if err != nil && len(live) > 1 {
			own = w.commit(o.level, o)
		}
		answered++
		o.finish(own)
	}
}

// commit runs ops in one transaction. At the first error it is rolled back.
func (w *writer) commit(level Level, ops ...*op) error {
	if err := w.begin(level); err != nil {
		return fmt.Errorf("begin write: %w", typed(err))
	}
	for _, o := range ops {
		if err := o.call(w.queries); err != nil {
			w.rollback()
			return typed(err)
		}
	}
	if err := w.end(); err != nil {
		w.rollback()
		return fmt.Errorf("commit: %w", typed(err))
	}
	return nil
}

func (w *writer) end() error {
	if err := w.fails("commit"); err != nil {
		return err
	}
	return w.exec("commit")
}

// fails is what a test says that goes wrong now.
func (w *writer) fails(stage string) error {
	if w.fault == nil {
		return nil
	}
	return w.fault(stage)
}

func (w *writer) begin(level Level) error {
	if err := w.fails("begin"); err != nil {
		return err
	}
	if level != w.level {
		statement := "pragma synchronous = normal"
		if level == Synced {
			statement = "pragma synchronous = full"
		}
		if err := w.exec(statement); err != nil {
			return err
		}
		w.level = level
	}
	return w.exec("begin immediate")
}

// rollback has nothing to roll back where SQLite has done so itself, as it does when the disk is full; that is no error.
func (w *writer) rollback() { _ = w.exec("rollback") }

func (w *writer) exec(statement string) error {
	_, err := w.conn.ExecContext(context.Background(), statement)
	return err
}
