package store

import (
	"context"
	"math"
	"runtime"
	"testing"

	"throwbar.dev/throwbar/store/db"
	"throwbar.dev/throwbar/store/storetest"
)

// at is the time that rows of the tests begin with.
const at = int64(1_700_000_000_000)

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// postgres is the server of this test binary.
var postgres storetest.Cluster

func TestMain(m *testing.M) {
	defer postgres.Stop()
	m.Run()
}

// onEach runs a test on both engines.
func onEach(t *testing.T, test func(t *testing.T, engine storetest.Engine)) {
	t.Helper()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			test(t, engine)
		})
	}
}

// onSQLite is for tests of what only SQLite has.
func onSQLite() storetest.Engine { return postgres.Engines()[0] }

// place puts the store where nothing is, unless it says where it is.
func place(tb testing.TB, engine storetest.Engine, config Config) Config {
	tb.Helper()
	switch {
	case config.Dir != "" || config.URL != "":
	case engine.SQLite():
		config.Dir = tb.TempDir()
	default:
		config.URL = engine.URL(tb)
	}
	return config
}

// opened gives a store whose writer does not run, closed at the end of the test.
func opened(tb testing.TB, engine storetest.Engine, config Config) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), place(tb, engine, config))
	check(tb, err)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return s
}

// running gives a store with its writer, both ended at the end of the test.
func running(tb testing.TB, engine storetest.Engine, config Config) *Store {
	tb.Helper()
	s := opened(tb, engine, config)
	run(tb, s)
	return s
}

// run starts the writer of a store and gives what ends it and waits for its end. The end of the test does so too.
func run(tb testing.TB, s *Store) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			tb.Errorf("run: %v", err)
		}
	}
	tb.Cleanup(stop)
	return stop
}

// do is a write that has to succeed.
func do(tb testing.TB, s *Store, write func(context.Context, *db.Queries) error) {
	tb.Helper()
	check(tb, s.Write(tb.Context(), Fast, write))
}

// waitQueued returns when n ops wait for the writer.
func waitQueued(s *Store, n int) {
	for {
		s.queue.mu.Lock()
		waiting := len(s.queue.waiting)
		s.queue.mu.Unlock()
		if waiting >= n {
			return
		}
		runtime.Gosched()
	}
}

func command(id string, n int64) db.InsertCommandParams {
	return db.InsertCommandParams{
		ID: id, GroupID: "group", Workspace: "default", DeviceID: "k3v9x2mqta", Name: "closeTabs", Principal: "token",
		Action: []byte("\x0a\x10an action to run"), State: "accepted", CreatedAt: at + n, Deadline: at + n + 30_000,
	}
}

func finish(id string, n int64) db.FinishCommandParams {
	return db.FinishCommandParams{
		ID: id, State: "succeeded", EndedAt: at + n + 10, Result: []byte("\x0a\x08a result"), Summary: "closedCount=4",
	}
}

func event(body string, n int64) db.InsertEventParams {
	return db.InsertEventParams{Workspace: "default", Time: at + n, DeviceID: "k3v9x2mqta", Body: []byte(body)}
}

func listCommands(workspace string) db.ListCommandsParams {
	return db.ListCommandsParams{Workspace: workspace, BeforeTime: math.MaxInt64, PageSize: math.MaxInt32}
}
