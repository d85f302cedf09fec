package throwbar

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

func opened(url string) *commandv1.Result {
	return &commandv1.Result{Kind: &commandv1.Result_OpenTab{OpenTab: &commandv1.OpenTab_Result{Url: url}}}
}

func outcome(id string) *devicev1.Outcome {
	return &devicev1.Outcome{CommandId: id, Outcome: &devicev1.Outcome_Result{Result: opened(id)}}
}

// reopen opens a journal that the test does not have to close. Closing writes nothing: a journal that was closed is as
// a killed process leaves it.
func reopen(t *testing.T, path string) *FileJournal {
	t.Helper()
	j, err := OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestJournals(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "journal")
	for name, open := range map[string]func() Journal{
		"memory": func() Journal { return NewMemoryJournal() },
		"file":   func() Journal { return reopen(t, path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := open()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(j.Start("a", openTab("a")))
			must(j.Start("b", openTab("b")))
			must(j.Finish(outcome("a")))
			must(j.Finish(outcome("c"))) // never started
			must(j.Receipt([]string{"a", "unknown"}))
			check := func(j Journal) {
				t.Helper()
				all := j.Entries()
				if len(all) != 3 || all[0].CommandID != "a" || all[1].CommandID != "b" || all[2].CommandID != "c" {
					t.Fatalf("entries: %+v", all)
				}
				a, b, c := all[0], all[1], all[2]
				if !proto.Equal(a.Outcome, outcome("a")) || !a.Receipted || !proto.Equal(a.Action, openTab("a")) || a.At.IsZero() {
					t.Errorf("a: %+v", a)
				}
				if b.Outcome != nil || b.Receipted || c.Action != nil || c.Outcome == nil {
					t.Errorf("b: %+v, c: %+v", b, c)
				}
				if _, ok := j.Lookup("unknown"); ok {
					t.Error("an unknown command is known")
				}
			}
			check(j)
			if file, ok := j.(*FileJournal); ok {
				must(file.Close())
				file = reopen(t, path)
				check(file)
				must(file.Close())
				check(reopen(t, path)) // what the first one wrote anew
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("mode %v, %v", info.Mode(), err)
				}
			}
		})
	}
}

func TestJournalForgetsAfterADay(t *testing.T) {
	t.Parallel()
	now := time.Now()
	path := filepath.Join(t.TempDir(), "journal")
	mem, file := NewMemoryJournal(), reopen(t, path)
	mem.now, file.now = func() time.Time { return now }, func() time.Time { return now }
	for _, j := range []Journal{mem, file} {
		if err := errors.Join(j.Start("old", openTab("a")), j.Finish(outcome("old"))); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(JournalKeeps + time.Second)
	for _, j := range []Journal{mem, file} {
		if _, ok := j.Lookup("old"); ok || len(j.Entries()) != 0 {
			t.Error("the entry is still there")
		}
	}
}

func TestJournalIsBounded(t *testing.T) {
	t.Parallel()
	j := NewMemoryJournal()
	for i := range journalMost + 500 {
		id := fmt.Sprint(i)
		if err := errors.Join(j.Start(id, openTab("a")), j.Finish(outcome(id)), j.Receipt([]string{id})); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(j.Entries()); n > journalMost {
		t.Errorf("%d entries", n)
	}
}

func TestFileJournalIsWrittenAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j := reopen(t, path)
	now := time.Now()
	j.now = func() time.Time { return now }
	big := openTab(string(make([]byte, 400_000)))
	for i := range 20 {
		id := fmt.Sprint(i)
		if err := errors.Join(j.Start(id, big), j.Finish(outcome(id)), j.Receipt([]string{id})); err != nil {
			t.Fatal(err)
		}
		now = now.Add(JournalKeeps / 3)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > compactFrom+800_000 {
		t.Errorf("size %d, %v", info.Size(), err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(reopen(t, path).Entries()); n == 0 || n > 10 {
		t.Errorf("%d entries", n)
	}
}

func TestTornAndDamagedLinesAreSkipped(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j := reopen(t, path)
	if err := errors.Join(j.Start("a", openTab("a")), j.Start("b", openTab("b")), j.Close()); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw = append([]byte("{\"op\":\"future\",\"id\":\"x\"}\nrubbish\n{\"op\":\"finish\",\"id\":\"a\",\"payload\":\"/w==\"}\n"), raw...)
	if err := os.WriteFile(path, raw[:len(raw)-7], 0o600); err != nil {
		t.Fatal(err)
	}
	j = reopen(t, path)
	if all := j.Entries(); len(all) != 1 || all[0].CommandID != "a" {
		t.Errorf("entries: %+v", all)
	}
	if err := errors.Join(j.Start("c", openTab("c")), j.Close()); err != nil {
		t.Fatal(err)
	}
	if all := reopen(t, path).Entries(); len(all) != 2 {
		t.Errorf("entries: %+v", all)
	}
}

// reconciler is a handler that can tell how closeTabs of one tab ended.
type reconciler struct{ *testHandler }

func (r reconciler) Reconcile(_ context.Context, a *commandv1.Action) (*commandv1.Result, error) {
	if ids := a.GetCloseTabs().GetTabIds(); len(ids) != 1 || ids[0] != "gone" {
		return nil, errors.New("cannot tell")
	}
	return &commandv1.Result{Kind: &commandv1.Result_CloseTabs{CloseTabs: &commandv1.CloseTabs_Result{ClosedCount: 1}}}, nil
}

// TestRestart kills a device in mid-command, with a journal in a file, and starts it again.
func TestRestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	before := reopen(t, path)
	// What a killed process leaves behind: commands started and not finished, and outcomes without and with a receipt.
	err := errors.Join(
		before.Start("close", closeTabs("d_t-1")), before.Start("closed", closeTabs("gone")),
		before.Start("activate", activateTab("d_t-1")),
		before.Start("done", openTab("done")), before.Finish(outcome("done")),
		before.Start("receipted", openTab("receipted")), before.Finish(outcome("receipted")), before.Receipt([]string{"receipted"}),
		before.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var handler *testHandler
		r := start(t, func(c *DeviceConfig) {
			c.Journal = reopen(t, path)
			handler, _ = c.Handler.(*testHandler)
			c.Handler = reconciler{handler}
		})
		l := r.link()
		if len(l.hello.GetRunningCommandIds()) != 0 {
			t.Errorf("says that it runs %v", l.hello.GetRunningCommandIds())
		}
		got := map[string]*devicev1.Outcome{}
		for _, o := range l.hello.GetOutcomes() {
			got[o.GetCommandId()] = o
		}
		if len(got) != 3 || got["close"].GetError().GetCode() != commandv1.ErrorCode_ERROR_CODE_INTERRUPTED ||
			got["closed"].GetResult().GetCloseTabs().GetClosedCount() != 1 || !proto.Equal(got["done"], outcome("done")) {
			t.Errorf("outcomes: %v", got)
		}
		l.welcome()
		l.command("close", closeTabs("d_t-1"), time.Minute)
		l.wantError(t, "close", commandv1.ErrorCode_ERROR_CODE_INTERRUPTED)
		l.command("receipted", openTab("receipted"), time.Minute)
		if o := l.wantOutcome(t, "receipted"); !proto.Equal(o, outcome("receipted")) {
			t.Errorf("outcome %v", o)
		}
		l.command("activate", activateTab("d_t-1"), time.Minute) // idempotent: it runs again
		l.wantAck(t, "activate")
		if l.wantOutcome(t, "activate").GetResult() == nil {
			t.Error("no result")
		}
		l.command("activate", activateTab("d_t-1"), time.Minute)
		l.wantOutcome(t, "activate")
		if handler.ran("activate") != 1 || handler.ran("close")+handler.ran("receipted") != 0 {
			t.Errorf("runs: %v", handler.runs)
		}
		r.end()
	})
}

// deafJournal cannot be written.
type deafJournal struct{ *MemoryJournal }

func (deafJournal) Start(string, *commandv1.Action) error { return errors.New("disk full") }
func (deafJournal) Finish(*devicev1.Outcome) error        { return errors.New("disk full") }

func TestNothingRunsWithoutItsJournal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(c *DeviceConfig) { c.Journal = deafJournal{NewMemoryJournal()} })
		l := r.welcomed()
		l.command("c", openTab("a"), time.Minute)
		l.wantError(t, "c", commandv1.ErrorCode_ERROR_CODE_FAILED)
		if r.handler.ran("c") != 0 {
			t.Error("it ran")
		}
		r.end()
	})
}

// slowJournal takes its time to start a command.
type slowJournal struct {
	*MemoryJournal

	release chan struct{}
}

func (j slowJournal) Start(id string, action *commandv1.Action) error {
	<-j.release
	return j.MemoryJournal.Start(id, action)
}

func TestAcknowledgedBetweenTwoLinks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		journal := slowJournal{NewMemoryJournal(), make(chan struct{})}
		r := start(t, func(c *DeviceConfig) { c.Journal = journal })
		r.handler.open = func(ctx context.Context, _ *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		l := r.welcomed()
		l.command("c", openTab("a"), time.Hour)
		l.wantNothing(t)
		close(l.down)
		l = r.link()
		if len(l.hello.GetRunningCommandIds()) != 0 {
			t.Error("it is not in the journal yet")
		}
		close(journal.release) // between hello and welcome
		synctest.Wait()
		l.welcome()
		l.wantAck(t, "c")
		if r.handler.ran("c") != 1 {
			t.Error("it does not run")
		}
		r.end()
	})
}

func FuzzJournalFile(f *testing.F) {
	f.Add([]byte("{\"op\":\"start\",\"id\":\"a\",\"payload\":\"CgA=\"}\n"))
	f.Add([]byte("\n\n{}\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		j := reopen(t, path)
		first := j.Entries()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if again := reopen(t, path).Entries(); len(again) != len(first) {
			t.Errorf("%d entries, then %d", len(first), len(again))
		}
	})
}
