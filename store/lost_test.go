package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"throwbar.dev/throwbar/store/db"
	"throwbar.dev/throwbar/store/storetest"
)

// TestLostAtCommit cuts the connection at many commits, and at the claims of the sessions that look what became of them.
// Each op is acknowledged, and is there once: not lost,
// though its connection was, and not twice, though its answer was lost.
func TestLostAtCommit(t *testing.T) {
	t.Parallel()
	network, through := between(t, postgres.URL(t))
	s := running(t, onSQLite(), Config{URL: through, Reconnect: time.Minute})
	random := rand.New(rand.NewPCG(3, 4))
	const ops = 40
	for n := range ops {
		cuts := make([]cut, 1+random.IntN(3)) // the first at the commit, further ones at the sessions after it
		for i := range cuts {
			cuts[i] = []cut{pass, cutBefore, cutAfter, cutMeanwhile, cutHalf}[random.IntN(5)]
		}
		network.only(cuts...) // what the op before left over would make more of them than a transaction has tries
		check(t, s.Write(t.Context(), Level(n%2), both(fmt.Sprint("op", n))))
	}
	network.only() // the commits of reads would take them, and reads are not tried again
	rows, err := s.Read().ListCommands(t.Context(), listCommands("default"))
	check(t, err)
	if len(rows) != ops {
		t.Errorf("%d rows, want %d", len(rows), ops)
	}
	assertSound(t, s)
}

// TestUnknown: when the answer to a commit is lost and the database stays away, nobody is told that nothing was written,
// and nothing is written again. What was not sent is ErrUnavailable, at once when the database is known to be away.
func TestUnknown(t *testing.T) {
	t.Parallel()
	network, through := between(t, postgres.URL(t))
	s := opened(t, onSQLite(), Config{URL: through, Reconnect: time.Millisecond, Delay: time.Hour})
	const ops = 3
	answers, runs := make([]error, ops), make([]int, ops)
	var group sync.WaitGroup
	for n := range ops {
		group.Go(func() {
			answers[n] = s.Write(t.Context(), Synced, func(ctx context.Context, q *db.Queries) error {
				runs[n]++
				return both(fmt.Sprint("op", n))(ctx, q)
			})
		})
		waitQueued(s, n+1)
	}
	network.next(cutAfter)
	network.refuse.Store(true)
	run(t, s)
	group.Wait()
	for n, err := range answers {
		if !errors.Is(err, ErrUnknown) || errors.Is(err, ErrUnavailable) || runs[n] != 1 {
			t.Errorf("op %d ran %d times: %v, want ErrUnknown", n, runs[n], err)
		}
	}
	start := time.Now()
	for n := range 50 {
		err := s.Write(t.Context(), Fast, both(fmt.Sprint("not sent", n)))
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknown) {
			t.Fatalf("error is %v, want ErrUnavailable", err)
		}
	}
	t.Logf("50 refusals in %v", time.Since(start))
	network.refuse.Store(false)
	for n := 0; ; n++ {
		err := s.Write(t.Context(), Fast, both(fmt.Sprint("back", n)))
		if err == nil {
			break
		}
		if !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
	}
	rows, err := s.Read().ListCommands(t.Context(), listCommands("default"))
	check(t, err)
	if len(rows) != ops+1 { // the commit had arrived
		t.Errorf("%d rows, want %d", len(rows), ops+1)
	}
	assertSound(t, s)
}

// TestLostInTheMidstOfAnOp: the transaction is gone, so the op runs again.
func TestLostInTheMidstOfAnOp(t *testing.T) {
	t.Parallel()
	network, through := between(t, postgres.URL(t))
	s := running(t, onSQLite(), Config{URL: through, Reconnect: time.Minute})
	ran := 0
	check(t, s.Write(t.Context(), Fast, func(ctx context.Context, q *db.Queries) error {
		ran++
		if err := q.InsertCommand(ctx, command("a", 1)); err != nil {
			return err
		}
		if ran == 1 {
			network.cutAll()
		}
		_, err := q.InsertEvent(ctx, event("a", 1))
		return err
	}))
	if ran != 2 {
		t.Errorf("op ran %d times", ran)
	}
	assertSound(t, s)
	network.cutAll() // while nothing is written
	check(t, s.Write(t.Context(), Fast, both("b")))
	assertSound(t, s)
}

// TestOpThatEndsItsConnection is tried a few times, not for ever, and the next op works.
func TestOpThatEndsItsConnection(t *testing.T) {
	t.Parallel()
	network, through := between(t, postgres.URL(t))
	s := running(t, onSQLite(), Config{URL: through})
	ran := 0
	err := s.Write(t.Context(), Fast, func(ctx context.Context, q *db.Queries) error {
		ran++
		network.cutAll()
		return q.InsertCommand(ctx, command("a", 1))
	})
	if !errors.Is(err, ErrUnavailable) || ran != tries {
		t.Errorf("op ran %d times: %v, want ErrUnavailable", ran, err)
	}
	check(t, s.Write(t.Context(), Fast, both("b")))
	assertSound(t, s)
}

// TestAnotherServerTookOver: a store that lost its connection, and with it the lock, to another server writes no more.
func TestAnotherServerTookOver(t *testing.T) {
	t.Parallel()
	for _, stays := range []bool{true, false} {
		t.Run(fmt.Sprint("stays=", stays), func(t *testing.T) {
			t.Parallel()
			direct := postgres.URL(t)
			network, through := between(t, direct)
			first := opened(t, onSQLite(), Config{URL: through, Reconnect: time.Minute})
			ended := make(chan error, 1)
			go func() { ended <- first.Run(context.WithoutCancel(t.Context())) }()
			check(t, first.Write(t.Context(), Fast, both("first")))
			network.refuse.Store(true)
			network.cutAll()
			second, err := Open(t.Context(), Config{URL: direct})
			check(t, err)
			if !stays {
				check(t, second.Close())
			}
			network.refuse.Store(false)
			err = first.Write(t.Context(), Fast, both("too late"))
			if !errors.Is(err, ErrUnavailable) || !errors.Is(err, ErrLocked) {
				t.Errorf("error is %v, want ErrUnavailable by ErrLocked", err)
			}
			if err := <-ended; !errors.Is(err, ErrLocked) {
				t.Errorf("Run ended with %v, want ErrLocked", err)
			}
			if err := first.Write(t.Context(), Fast, both("later")); !errors.Is(err, ErrClosed) {
				t.Errorf("error is %v, want ErrClosed", err)
			}
			rows, err := second.Read().ListCommands(t.Context(), listCommands("default"))
			if stays {
				check(t, err)
				if len(rows) != 1 {
					t.Errorf("%d rows, want 1", len(rows))
				}
				check(t, second.Close())
			}
		})
	}
}

// TestServerKilled kills PostgreSQL itself, which writes to the disk here, under eight writers, five times. What was
// acknowledged is there, though at the weaker level, and no answer was false.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	server := storetest.Start(t, storetest.Options{Fsync: true})
	s := running(t, onSQLite(), Config{URL: server.URL("postgres"), Reconnect: time.Minute})
	var acknowledged sync.Map
	var group sync.WaitGroup
	progress := make(chan struct{}, 1<<16)
	ctx, stop := context.WithCancel(t.Context())
	for caller := range 8 {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id := fmt.Sprintf("%d-%d", caller, n)
				if err := s.Write(context.WithoutCancel(ctx), Fast, both(id)); err != nil {
					t.Errorf("write: %v", err)
					return
				}
				acknowledged.Store(id, true)
				progress <- struct{}{}
			}
		})
	}
	for range 5 {
		for range 50 {
			<-progress
		}
		server.Kill(t)
		server.Up(t)
	}
	stop()
	group.Wait()
	assertSound(t, s)
	count := 0
	acknowledged.Range(func(id, _ any) bool {
		count++
		_, err := s.Read().GetCommand(t.Context(), db.GetCommandParams{Workspace: "default", ID: id.(string)})
		if err != nil {
			t.Errorf("acknowledged write %s: %v", id, err)
		}
		return true
	})
	t.Logf("%d acknowledged writes", count)
}

// TestPostgresLevels reads the setting in the midst of transactions.
func TestPostgresLevels(t *testing.T) {
	t.Parallel()
	url := postgres.URL(t)
	storetest.Exec(t, url, "do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$")
	s := running(t, onSQLite(), Config{URL: url})
	for level, want := range map[Level]string{Fast: "local", Synced: "on"} {
		check(t, s.Write(t.Context(), level, func(ctx context.Context, _ *db.Queries) error {
			var setting string
			err := s.writer.session.(*postgresSession).conn.QueryRowContext(ctx, "show synchronous_commit").Scan(&setting)
			if setting != want {
				t.Errorf("level %d: synchronous_commit is %s, want %s", level, setting, want)
			}
			return err
		}))
	}
}

// TestGoingOnAfterAnErrorIsRefused: SQLite would commit the rest, PostgreSQL would not, and would not say so.
func TestGoingOnAfterAnErrorIsRefused(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, engine storetest.Engine) {
		s := running(t, engine, Config{})
		check(t, s.Write(t.Context(), Fast, both("a")))
		err := s.Write(t.Context(), Fast, func(ctx context.Context, q *db.Queries) error {
			_ = q.InsertCommand(ctx, command("a", 1)) // is there already
			return nil
		})
		if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "went on after an error") {
			t.Errorf("error is %v", err)
		}
		err = s.Write(t.Context(), Fast, func(ctx context.Context, q *db.Queries) error {
			_ = q.InsertCommand(ctx, command("a", 1))
			_, err := q.InsertEvent(ctx, event("b", 1))
			if engine.SQLite() && err != nil {
				t.Errorf("second statement: %v", err)
			}
			return nil
		})
		if !errors.Is(err, ErrConflict) {
			t.Errorf("error is %v", err)
		}
		assertSound(t, s)
	})
}
