package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"throwbar.dev/throwbar/store/db"
	"throwbar.dev/throwbar/store/storetest"
)

// TestKill kills a process that writes, ten times in the same folder. What it said was written has to be there, and of
// each op all or nothing.
func TestKill(t *testing.T) {
	t.Parallel()
	onEach(t, testKill)
}

func testKill(t *testing.T, engine storetest.Engine) {
	config := place(t, engine, Config{})
	var acknowledged []string
	for range 10 {
		acknowledged = append(acknowledged, killedWriter(t, config)...)
		s, err := Open(t.Context(), config)
		check(t, err)
		assertSound(t, s)
		for _, id := range acknowledged {
			if _, err := s.Read().GetCommand(t.Context(), db.GetCommandParams{Workspace: "default", ID: id}); err != nil {
				t.Fatalf("acknowledged write %s: %v", id, err)
			}
		}
		check(t, s.Close())
	}
	t.Logf("%d acknowledged writes", len(acknowledged))
}

// killedWriter starts a child, kills it in the midst of its writes and gives what it acknowledged.
func killedWriter(t *testing.T, config Config) []string {
	t.Helper()
	process, out, _ := child(t, "TestChildWrites", config)
	enough := 20 + rand.IntN(300)
	var acknowledged []string
	for out.Scan() {
		id, ok := strings.CutPrefix(out.Text(), "wrote ")
		if !ok {
			t.Fatalf("child said %q", out.Text())
		}
		acknowledged = append(acknowledged, id)
		if len(acknowledged) == enough {
			check(t, process.Process.Kill()) // what is in the pipe still counts
		}
	}
	if len(acknowledged) < enough {
		t.Fatalf("child ended by itself after %d writes", len(acknowledged))
	}
	_ = process.Wait() // it was killed
	return acknowledged
}

// TestChildWrites is the process to kill: it writes until then, and says what is written.
func TestChildWrites(t *testing.T) {
	t.Parallel()
	s := running(t, onSQLite(), asChild(t))
	say := func(id string) { fmt.Fprintln(os.Stdout, "wrote "+id) } // one system call: a line is whole or not there
	var group sync.WaitGroup
	for caller := range 8 {
		group.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), caller, n)
				write := both(id)
				if caller == 0 {
					later := id // the writer may call after id has changed
					s.WriteLater(write, func(err error) {
						if err == nil {
							say(later)
						}
					})
					id += "-again"
					write = both(id)
				}
				if err := s.Write(t.Context(), Level(caller%2), write); err != nil {
					t.Error(err)
					return
				}
				say(id)
			}
		})
	}
	group.Wait()
}

// both is an op of two statements, a command and an event that names it.
func both(id string) func(context.Context, *db.Queries) error {
	return func(ctx context.Context, q *db.Queries) error {
		if err := q.InsertCommand(ctx, command(id, 1)); err != nil {
			return err
		}
		_, err := q.InsertEvent(ctx, event(id, 1))
		return err
	}
}

// assertSound checks the file, and that each command has its event and the other way round.
func assertSound(tb testing.TB, s *Store) {
	tb.Helper()
	if _, ok := s.engine.(*sqliteEngine); ok {
		var verdict string
		check(tb, s.reader.QueryRowContext(tb.Context(), "pragma integrity_check").Scan(&verdict))
		if verdict != "ok" {
			tb.Errorf("integrity_check says %q", verdict)
		}
	}
	check(tb, s.ReadTx(tb.Context(), func(q *db.Queries) error {
		commands, err := q.ListCommands(tb.Context(), listCommands("default"))
		if err != nil {
			return err
		}
		events, err := q.ListEvents(tb.Context(), db.ListEventsParams{Workspace: "default", PageSize: 1 << 30})
		if err != nil {
			return err
		}
		named := make(map[string]bool, len(events))
		for n, e := range events {
			named[string(e.Body)] = true
			if e.Seq != int64(n+1) {
				tb.Errorf("event %d has the number %d", n+1, e.Seq)
				break
			}
		}
		if len(named) != len(commands) || len(events) != len(commands) {
			tb.Errorf("%d commands, %d events, %d of them different", len(commands), len(events), len(named))
		}
		for _, c := range commands {
			if !named[c.ID] {
				tb.Errorf("command %s has no event", c.ID)
			}
		}
		return nil
	}))
}
