package throwbar

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// shifted makes a journal believe that the wall clock is off. Times have no steady clock then, as after a restart.
func shifted(j *FileJournal, off *time.Duration) {
	j.now = func() time.Time { return time.Now().Round(0).Add(*off) }
}

// TestADayOfRestarts lives a day of restarts, one each hour: what was run at its beginning is answered to its end.
func TestADayOfRestarts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	synctest.Test(t, func(t *testing.T) {
		first := reopen(t, path)
		err := errors.Join(
			first.Start("done", openTab("done")), first.Finish(outcome("done")), first.Receipt([]string{"done"}),
			first.Start("close", closeTabs("d_t-1")), first.Start("activate", activateTab("d_t-1")), first.Close(),
		)
		if err != nil {
			t.Fatal(err)
		}
		for hour := range 24 {
			j := reopen(t, path)
			r := start(t, func(c *DeviceConfig) { c.Journal = j })
			l := r.welcomed()
			if hour == 0 { // INTERRUPTED was in the hello already; it is said again to whoever asks
				l.command("activate", activateTab("d_t-1"), time.Minute)
				l.wantAck(t, "activate")
				if l.wantOutcome(t, "activate").GetResult() == nil || r.handler.ran("activate") != 1 {
					t.Error("the idempotent one is not run again")
				}
			}
			for _, id := range []string{"done", "activate"} {
				l.command(id, openTab(id), time.Minute)
				if l.wantOutcome(t, id).GetResult() == nil {
					t.Errorf("hour %d: %s has no result", hour, id)
				}
			}
			l.command("close", closeTabs("d_t-1"), time.Minute)
			l.wantError(t, "close", commandv1.ErrorCode_ERROR_CODE_INTERRUPTED)
			if r.handler.ran("close")+r.handler.ran("done") != 0 || (hour > 0 && r.handler.ran("activate") != 0) {
				t.Fatalf("hour %d: it ran again: %v", hour, r.handler.runs)
			}
			l.receipt("done", "close", "activate")
			r.end()
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour - time.Second)
		}
		time.Sleep(JournalKeeps + wallSlack)
		if n := len(reopen(t, path).Entries()); n != 0 {
			t.Errorf("%d entries are kept for ever", n)
		}
	})
}

// TestJournalAndAWrongWallClock sets the clock between two starts: what the server may not know stays known.
func TestJournalAndAWrongWallClock(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{
		"a day ahead": 25 * time.Hour, "a day behind": -25 * time.Hour, "from 1970": 56 * 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "journal")
			var off time.Duration
			j := reopen(t, path)
			shifted(j, &off)
			if err := errors.Join(j.Start("started", closeTabs("a")), j.Finish(outcome("ended")), j.Close()); err != nil {
				t.Fatal(err)
			}
			off = step
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lock, err := lockJournal(path + ".lock")
			if err != nil {
				t.Fatal(err)
			}
			j = &FileJournal{path: path, index: newIndex(), lock: lock}
			shifted(j, &off)
			if err := errors.Join(j.load(), j.rewrite()); err != nil || len(raw) == 0 {
				t.Fatal(err)
			}
			defer j.Close()
			for _, id := range []string{"started", "ended"} {
				if _, ok := j.Lookup(id); !ok {
					t.Errorf("%s is forgotten", id)
				}
			}
			off += JournalKeeps + wallSlack + time.Minute
			if n := len(j.Entries()); n != 0 {
				t.Errorf("%d entries are kept for ever", n)
			}
		})
	}
}

func TestJournalOfAnotherDevice(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	first := reopen(t, path)
	if _, err := OpenJournal(path); !errors.Is(err, ErrJournalInUse) {
		t.Errorf("OpenJournal = %v", err)
	}
	if err := first.Start("a", openTab("a")); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(reopen(t, path).Entries()); n != 1 {
		t.Errorf("%d entries", n)
	}
}

const holdsJournal = "THROWBAR_TEST_HOLDS_JOURNAL"

// TestJournalOfAnotherProcess has a process that holds a journal, and is killed.
func TestJournalOfAnotherProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	if held := os.Getenv(holdsJournal); held != "" { // this is the other process
		if _, err := OpenJournal(held); err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("held\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestJournalOfAnotherProcess$")
	other.Env = append(os.Environ(), holdsJournal+"="+path)
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("held\n"))); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(path); !errors.Is(err, ErrJournalInUse) {
		t.Errorf("OpenJournal = %v", err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // it was killed
	reopen(t, path)
}

// TestWallClockOfADevice has devices whose wall clock is off, and one that jumps during a command: only the time that
// has passed counts.
func TestWallClockOfADevice(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, row := range map[string]struct {
		before, during time.Duration
		late           bool // the command runs out while it waits
		want           commandv1.ErrorCode
	}{
		"a day ahead":      {before: day, during: day},
		"a day behind":     {before: -day, during: -day},
		"set back":         {during: -day},
		"set back, late":   {during: -day, late: true, want: commandv1.ErrorCode_ERROR_CODE_EXPIRED},
		"behind, late":     {before: -day, during: -day, late: true, want: commandv1.ErrorCode_ERROR_CODE_EXPIRED},
		"a second forward": {during: time.Second},
		// Set forward, and woken after a day of sleep, look the same: what may be late does not run.
		"slept": {during: day, want: commandv1.ErrorCode_ERROR_CODE_EXPIRED},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				handler := &testHandler{}
				d, err := NewDevice(DeviceConfig{
					Identity: Identity{Server: "http://h", DeviceID: "d", Token: "t"}, Handler: handler, Catalogue: catalogue(),
					HTTPClient: noHTTP{}, Concurrent: 1,
				})
				if err != nil {
					t.Fatal(err)
				}
				e := newExecutor(d.cfg, &d.pause)
				var off atomic.Int64
				off.Store(int64(row.before))
				e.wall = func() time.Time { return time.Now().Round(0).Add(time.Duration(off.Load())) }
				ctx, cancel := context.WithCancel(t.Context())
				out := newOutbox(func(error) { t.Error("overflow") })
				e.attach(out, said{}, nil)
				release := make(chan struct{})
				handler.close = func(context.Context, *commandv1.CloseTabs) (*commandv1.CloseTabs_Result, error) {
					<-release
					return &commandv1.CloseTabs_Result{}, nil
				}
				e.handle(ctx, commandFrame("first", closeTabs("a"), time.Hour).GetCommand(), time.Now())
				synctest.Wait()
				e.handle(ctx, commandFrame("c", openTab("a"), time.Minute).GetCommand(), time.Now()) // waits for its turn
				synctest.Wait()
				off.Store(int64(row.during))
				if row.late {
					time.Sleep(2 * time.Minute)
				}
				close(release)
				synctest.Wait()
				for _, f := range out.take() {
					if o := f.GetOutcome(); o.GetCommandId() == "c" && o.GetError().GetCode() != row.want {
						t.Errorf("outcome %v, want %v", o, row.want)
					}
				}
				if ran := handler.ran("c") == 1; ran != (row.want == 0) {
					t.Errorf("ran: %v", ran)
				}
				cancel()
				e.wait()
			})
		})
	}
}
