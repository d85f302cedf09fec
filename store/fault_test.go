package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"throwbar.dev/throwbar/store/db"
	"throwbar.dev/throwbar/store/storetest"
)

// TestDiskFull: an op that fits no more says so, and those that fit go on.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := opened(t, onSQLite(), Config{Delay: time.Hour, MaxPages: 120})
	large := command("large", 1)
	large.Action = make([]byte, 1<<20)
	answers := make(chan error, 3)
	for n, write := range []func(context.Context, *db.Queries) error{
		both("small"),
		func(ctx context.Context, q *db.Queries) error { return q.InsertCommand(ctx, large) },
		both("small too"),
	} {
		s.WriteLater(write, func(err error) {
			if (err != nil) != (n == 1) {
				t.Errorf("op %d: %v", n, err)
			}
			answers <- err
		})
	}
	run(t, s)()
	<-answers
	var typed *Error
	if err := <-answers; !errors.Is(err, ErrDiskFull) || !errors.As(err, &typed) || typed.Cause == nil {
		t.Errorf("error is %v, want ErrDiskFull with its cause", err)
	}
	<-answers
	assertSound(t, s)
}

// TestFault: what a test injects is taken for the database's own error, first for the group, then for each op alone.
func TestFault(t *testing.T) {
	t.Parallel()
	onEach(t, testFault)
}

func testFault(t *testing.T, engine storetest.Engine) {
	for _, stage := range []string{"begin", "commit"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			const ops = 4
			var calls []string // by the writer's goroutine only
			s := opened(t, engine, Config{Delay: time.Hour, Fault: func(at string) error {
				calls = append(calls, at)
				n := strings.Count(strings.Join(calls, " "), stage)
				if at == stage && (n == 1 || n == 3) { // the group, and the second op by itself
					return fmt.Errorf("no more blocks: %w", ErrDiskFull)
				}
				return nil
			}})
			answers := make([]error, ops)
			var group sync.WaitGroup
			for n := range ops {
				group.Go(func() { answers[n] = s.Write(t.Context(), Fast, both(fmt.Sprint("op", n))) })
				waitQueued(s, n+1)
			}
			stop := run(t, s)
			group.Wait()
			stop()
			for n, err := range answers {
				if errors.Is(err, ErrDiskFull) != (n == 1) || (err != nil) != (n == 1) {
					t.Errorf("op %d: %v", n, err)
				}
			}
			want := slices.Repeat([]string{"begin", "commit"}, 1+ops)
			if stage == "begin" { // a transaction that did not begin is not committed
				want = []string{"begin", "begin", "commit", "begin", "begin", "commit", "begin", "commit"}
			}
			if !slices.Equal(calls, want) {
				t.Errorf("Fault was called with %v, want %v", calls, want)
			}
			rows, err := s.Read().ListCommands(t.Context(), listCommands("default"))
			check(t, err)
			if len(rows) != ops-1 {
				t.Errorf("%d rows, want %d", len(rows), ops-1)
			}
			assertSound(t, s)
		})
	}
}
