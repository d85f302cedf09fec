package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"throwbar.dev/throwbar/store/db"
	"throwbar.dev/throwbar/store/storetest"
)

// TestOneBadOpHarmsNoOther puts three bad ops among many into one group: one breaks a key, one returns an error of its
// own, one panics.
func TestOneBadOpHarmsNoOther(t *testing.T) {
	t.Parallel()
	onEach(t, testOneBadOpHarmsNoOther)
}

func testOneBadOpHarmsNoOther(t *testing.T, engine storetest.Engine) {
	s := opened(t, engine, Config{Delay: time.Hour})
	const ops = 60
	own := errors.New("not today")
	bad := map[int]func(context.Context, *db.Queries) error{
		7: func(ctx context.Context, q *db.Queries) error { return q.InsertCommand(ctx, command("c00", 1)) },
		23: func(ctx context.Context, q *db.Queries) error {
			if err := q.InsertCommand(ctx, command("half done", 1)); err != nil {
				return err
			}
			return own
		},
		41: func(context.Context, *db.Queries) error { panic("at the disco") },
	}
	answers := make([]error, ops)
	runs := make([]int, ops)
	var group sync.WaitGroup
	for n := range ops {
		write := bad[n]
		if write == nil {
			write = both(fmt.Sprintf("c%02d", n))
		}
		group.Go(func() {
			answers[n] = s.Write(t.Context(), Fast, func(ctx context.Context, q *db.Queries) error {
				runs[n]++
				return write(ctx, q)
			})
		})
		waitQueued(s, n+1)
	}
	run(t, s)
	group.Wait()
	for n, err := range answers {
		if bad[n] == nil && err != nil {
			t.Errorf("op %d: %v", n, err)
		}
		if runs[n] < 1 || runs[n] > 2 {
			t.Errorf("op %d ran %d times", n, runs[n])
		}
	}
	if !errors.Is(answers[7], ErrConflict) {
		t.Errorf("key again: error is %v, want ErrConflict", answers[7])
	}
	if !errors.Is(answers[23], own) {
		t.Errorf("own error came back as %v", answers[23])
	}
	if err := answers[41]; err == nil || !strings.Contains(err.Error(), "at the disco") {
		t.Errorf("panic came back as %v", err)
	}
	rows, err := s.Read().ListCommands(t.Context(), listCommands("default"))
	check(t, err)
	if len(rows) != ops-len(bad) {
		t.Errorf("%d rows, want %d", len(rows), ops-len(bad))
	}
	assertSound(t, s)
}

// TestOrder mixes Write and WriteLater; the events have to be numbered in the order of queuing, over several groups.
func TestOrder(t *testing.T) {
	t.Parallel()
	onEach(t, testOrder)
}

func testOrder(t *testing.T, engine storetest.Engine) {
	s := opened(t, engine, Config{Delay: time.Hour, Batch: 7})
	const ops = 100
	var writes sync.WaitGroup
	var done []int // by the writer's goroutine only
	for n := range ops {
		write := func(ctx context.Context, q *db.Queries) error {
			if n == 50 {
				return errors.New("bad")
			}
			_, err := q.InsertEvent(ctx, event(fmt.Sprint(n), 1))
			return err
		}
		if n%3 == 0 {
			writes.Go(func() {
				if err := s.Write(t.Context(), Level(n%2), write); err != nil {
					t.Errorf("write %d: %v", n, err)
				}
			})
		} else {
			s.WriteLater(write, func(err error) {
				if (err != nil) != (n == 50) {
					t.Errorf("write %d: %v", n, err)
				}
				done = append(done, n)
			})
		}
		waitQueued(s, n+1)
	}
	stop := run(t, s)
	writes.Wait()
	stop()
	if !slices.IsSorted(done) || len(done) != ops-ops/3-1 {
		t.Errorf("done was called in the order %v", done)
	}
	events, err := s.Read().ListEvents(t.Context(), db.ListEventsParams{Workspace: "default", PageSize: 1000})
	check(t, err)
	var want []string
	for n := range ops {
		if n != 50 {
			want = append(want, fmt.Sprint(n))
		}
	}
	var got []string
	for _, e := range events {
		got = append(got, string(e.Body))
	}
	if !slices.Equal(got, want) {
		t.Errorf("order is %v", got)
	}
}

func TestWriteTakesDeferredOnesAlong(t *testing.T) {
	t.Parallel()
	onEach(t, testWriteTakesDeferredOnesAlong)
}

func testWriteTakesDeferredOnesAlong(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{Delay: time.Hour})
	var later error = errors.New("not called")
	s.WriteLater(both("later"), func(err error) { later = err })
	check(t, s.Write(t.Context(), Fast, both("now")))
	if later != nil {
		t.Errorf("deferred op: %v", later)
	}
	assertSound(t, s)
}

func TestWriteLaterIsCommittedAlone(t *testing.T) {
	t.Parallel()
	onEach(t, testWriteLaterIsCommittedAlone)
}

func testWriteLaterIsCommittedAlone(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{Delay: time.Millisecond})
	for n := range 3 {
		done := make(chan error)
		s.WriteLater(both(fmt.Sprint("alone ", n)), func(err error) { done <- err })
		check(t, <-done)
	}
	s.WriteLater(both("without done"), nil)
	check(t, s.Write(t.Context(), Fast, both("after it")))
	assertSound(t, s)
}

// TestFullGroupDoesNotWait: a group of deferred ops that is full is committed before the delay is over.
func TestFullGroupDoesNotWait(t *testing.T) {
	t.Parallel()
	onEach(t, testFullGroupDoesNotWait)
}

func testFullGroupDoesNotWait(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{Delay: time.Hour, Batch: 10})
	done := make(chan error, 10)
	for n := range 10 {
		s.WriteLater(both(fmt.Sprint(n)), func(err error) { done <- err })
	}
	for range 10 {
		check(t, <-done)
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	s := opened(t, onSQLite(), Config{Delay: time.Hour})
	var seen []int
	look := func(ctx context.Context, _ *db.Queries) error {
		var level int
		if err := s.writer.session.(*sqliteSession).conn.QueryRowContext(ctx, "pragma synchronous").Scan(&level); err != nil {
			return err
		}
		seen = append(seen, level)
		return nil
	}
	// One group of three with one strict member, and groups of one.
	s.WriteLater(look, nil)
	var group sync.WaitGroup
	for n, level := range []Level{Synced, Fast} {
		group.Go(func() { check(t, s.Write(t.Context(), level, look)) })
		waitQueued(s, n+2)
	}
	run(t, s)
	group.Wait()
	check(t, s.Write(t.Context(), Fast, look))
	check(t, s.Write(t.Context(), Synced, look))
	check(t, s.Write(t.Context(), Fast, look))
	const normal, full = 1, 2
	if want := []int{full, full, full, normal, full, normal}; !slices.Equal(seen, want) {
		t.Errorf("synchronous was %v, want %v", seen, want)
	}
}

func TestCancelledBeforeTaken(t *testing.T) {
	t.Parallel()
	onEach(t, testCancelledBeforeTaken)
}

func testCancelledBeforeTaken(t *testing.T, engine storetest.Engine) {
	s := opened(t, engine, Config{})
	never := func(context.Context, *db.Queries) error {
		t.Error("a withdrawn op ran")
		return nil
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	answer := make(chan error)
	go func() { answer <- s.Write(ctx, Fast, never) }()
	waitQueued(s, 1)
	gone := errors.New("caller went away")
	cancel(gone)
	if err := <-answer; !errors.Is(err, gone) {
		t.Errorf("error is %v, want the cause", err)
	}
	if err := s.Write(ctx, Fast, never); !errors.Is(err, gone) {
		t.Errorf("error is %v, want the cause", err)
	}
	run(t, s)
	check(t, s.Write(t.Context(), Fast, both("next")))
}

// TestCancelledAfterTaken: what the writer has begun it ends, and the caller is told how.
func TestCancelledAfterTaken(t *testing.T) {
	t.Parallel()
	onEach(t, testCancelledAfterTaken)
}

func testCancelledAfterTaken(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	err := s.Write(ctx, Fast, func(inside context.Context, q *db.Queries) error {
		cancel()
		if inside.Err() != nil || inside.Done() != nil || inside.Value(key{}) != "value" {
			t.Errorf("context of the op: %v, %v", inside.Err(), inside.Value(key{}))
		}
		return both("taken")(inside, q)
	})
	check(t, err)
	assertSound(t, s)
}

func TestWriteInsideWrite(t *testing.T) {
	t.Parallel()
	onEach(t, testWriteInsideWrite)
}

func testWriteInsideWrite(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	inner := func(ctx context.Context, _ *db.Queries) error { return s.Write(ctx, Fast, both("inner")) }
	if err := s.Write(t.Context(), Fast, inner); !errors.Is(err, ErrNested) {
		t.Errorf("error is %v, want ErrNested", err)
	}
	done := make(chan error)
	s.WriteLater(inner, func(err error) { done <- err })
	if err := <-done; !errors.Is(err, ErrNested) {
		t.Errorf("error is %v, want ErrNested", err)
	}
}

func TestOverload(t *testing.T) {
	t.Parallel()
	onEach(t, testOverload)
}

func testOverload(t *testing.T, engine storetest.Engine) {
	s := opened(t, engine, Config{Queue: 2})
	var answers []error
	for n := range 3 {
		s.WriteLater(both(fmt.Sprint(n)), func(err error) { answers = append(answers, err) })
	}
	if len(answers) != 1 || !errors.Is(answers[0], ErrOverloaded) {
		t.Errorf("answers are %v, want one ErrOverloaded", answers)
	}
	if err := s.Write(t.Context(), Fast, both("now")); !errors.Is(err, ErrOverloaded) {
		t.Errorf("error is %v, want ErrOverloaded", err)
	}
	run(t, s)()
	if len(answers) != 3 || answers[1] != nil || answers[2] != nil {
		t.Errorf("answers are %v", answers)
	}
	assertSound(t, s)
}

func TestRunDrains(t *testing.T) {
	t.Parallel()
	onEach(t, testRunDrains)
}

func testRunDrains(t *testing.T, engine storetest.Engine) {
	s := opened(t, engine, Config{Delay: time.Hour, Batch: 3})
	const ops = 20
	written := 0
	for n := range ops {
		s.WriteLater(both(fmt.Sprint(n)), func(err error) {
			if err == nil {
				written++
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check(t, s.Run(ctx))
	if written != ops {
		t.Errorf("%d of %d were written", written, ops)
	}
	assertSound(t, s)
	if err := s.Write(t.Context(), Fast, both("late")); !errors.Is(err, ErrClosed) {
		t.Errorf("write after Run: error is %v, want ErrClosed", err)
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("Run ran a second time")
	}
}

func TestCloseAnswersWhoWaits(t *testing.T) {
	t.Parallel()
	onEach(t, testCloseAnswersWhoWaits)
}

func testCloseAnswersWhoWaits(t *testing.T, engine storetest.Engine) {
	s := opened(t, engine, Config{})
	answer := make(chan error)
	go func() { answer <- s.Write(t.Context(), Fast, both("a")) }()
	waitQueued(s, 1)
	check(t, s.Close())
	if err := <-answer; !errors.Is(err, ErrClosed) {
		t.Errorf("error is %v, want ErrClosed", err)
	}
	check(t, s.Close())
}

func TestCloseWhileRunning(t *testing.T) {
	t.Parallel()
	onEach(t, testCloseWhileRunning)
}

func testCloseWhileRunning(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	check(t, s.Write(t.Context(), Fast, both("a")))
	if err := s.Close(); err == nil {
		t.Error("a running store was closed")
	}
	check(t, s.Write(t.Context(), Fast, both("b")))
}

func TestErrorsOfOpsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	onEach(t, testErrorsOfOpsStayAsTheyAre)
}

func testErrorsOfOpsStayAsTheyAre(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	err := s.Write(t.Context(), Fast, func(ctx context.Context, q *db.Queries) error {
		_, err := q.GetCommand(ctx, db.GetCommandParams{Workspace: "default", ID: "none"})
		return err
	})
	if err != sql.ErrNoRows { //nolint:errorlint // it has to be the very value
		t.Errorf("error is %v, want sql.ErrNoRows", err)
	}
}

// TestOpEndsTheWriter: an op that ends its goroutine, as a failed assertion in a test does, leaves nobody waiting.
func TestOpEndsTheWriter(t *testing.T) {
	t.Parallel()
	onEach(t, testOpEndsTheWriter)
}

func testOpEndsTheWriter(t *testing.T, engine storetest.Engine) {
	s := opened(t, engine, Config{Batch: 2})
	answers := make(chan error)
	for n := range 4 {
		write := both(fmt.Sprint(n))
		if n == 1 {
			write = func(context.Context, *db.Queries) error {
				runtime.Goexit()
				return nil
			}
		}
		go func() { answers <- s.Write(t.Context(), Fast, write) }()
		waitQueued(s, n+1)
	}
	go func() { _ = s.Run(t.Context()) }() // does not return
	for range 4 {
		if err := <-answers; !errors.Is(err, ErrClosed) {
			t.Errorf("error is %v, want ErrClosed", err)
		}
	}
}
