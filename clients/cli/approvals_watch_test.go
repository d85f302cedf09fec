package cli_test

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const (
	approved = controlv1.ApprovalState_APPROVAL_STATE_APPROVED
	denied   = controlv1.ApprovalState_APPROVAL_STATE_DENIED
	expired  = controlv1.ApprovalState_APPROVAL_STATE_EXPIRED
)

// session is a run that goes on while a test acts: it types lines and reads what was written.
type session struct {
	t        *testing.T
	out, err *buffer
	typing   *io.PipeWriter
	signals  chan os.Signal
	code     chan int
}

// begin runs the program in the background, at a terminal unless a pipe is wanted.
func begin(t *testing.T, r run) *session {
	t.Helper()
	in, typing := io.Pipe()
	s := &session{t: t, out: &buffer{}, err: &buffer{}, typing: typing, signals: make(chan os.Signal, 2), code: make(chan int, 1)}
	r.stdin, r.signals, r.env = in, s.signals, map[string]string{"NO_COLOR": "1"}
	go func() { s.code <- start(t, r, s.out, s.err) }()
	t.Cleanup(func() { _ = typing.Close() })
	return s
}

// sees waits until the program has written a text so many times.
func (s *session) sees(text string, times int) *session {
	s.t.Helper()
	select {
	case <-s.out.holds(text, times):
	case <-s.err.holds(text, times):
	case <-time.After(time.Minute):
		s.t.Fatalf("%q is missing\nstdout:\n%s\nstderr:\n%s", text, s.out.String(), s.err.String())
	}
	return s
}

func (s *session) types(line string) *session {
	s.t.Helper()
	if _, err := io.WriteString(s.typing, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
	return s
}

// ends waits for the end of the program, after an interrupt if that is wanted.
func (s *session) ends(interrupt bool) ended {
	s.t.Helper()
	if interrupt {
		s.signals <- os.Interrupt
	}
	select {
	case code := <-s.code:
		return ended{code: code, out: s.out.String(), err: s.err.String()}
	case <-time.After(time.Minute):
		s.t.Fatalf("it does not end\nstdout:\n%s\nstderr:\n%s", s.out.String(), s.err.String())
		return ended{}
	}
}

func watching(f *fake, terminal bool, words ...string) run {
	return run{server: f.url, args: append([]string{"approvals", "watch"}, words...), terminal: terminal}
}

func TestWatchApprovals(t *testing.T) {
	t.Parallel()
	f := withDesk(t)
	s := begin(t, watching(f, false)).sees("openTab on work", 1)
	f.desk.put(f.desk.now[bigID], true)
	s.sees("expires in 3 d  3f2a9c1d", 1)
	f.desk.end(bigID, approved, "tok-9", "go \x1b[2Jon")
	f.desk.end(smallID, expired, "", "")
	e := s.sees("expired", 1).ends(true)
	e.check(t, 130)
	zone := now().Local().Format("15:04")
	golden(t, "approvals_watch", strings.ReplaceAll(strings.ReplaceAll(e.out, zone, "12:00"), now().Add(-3*time.Minute).Local().Format("15:04"), "11:57"), f.url)

	s = begin(t, watching(f, false, "-o", "json", "--cursor", "3"))
	e = s.sees("EXPIRED", 1).ends(true)
	lines := strings.Split(strings.TrimSpace(e.out), "\n")
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
	if len(lines) != 2 { // two ends; one of them is told by two events
		t.Errorf("%d lines: %s", len(lines), e.out)
	}
}

// A stream that breaks at any place is opened again: no change is missing and none comes twice.
func TestWatchApprovalsGoesOnAfterALostConnection(t *testing.T) {
	t.Parallel()
	for at := 2; at < 7; at++ {
		f := withDesk(t, func(f *fake) {
			f.desk.cut = func(n, sent int) bool { return n == 1 && sent == at }
			f.desk.onOpen = func(n int) {
				if n == 2 { // while the connection was away
					f.desk.end(bigID, approved, "tok-9", "")
				}
			}
		})
		s := begin(t, watching(f, false))
		if at > 2 {
			s.sees("openTab on work", 1)
			for range at - 3 {
				f.desk.put(opening("00000000-0000-4000-8000-00000000000"+string(rune('0'+at))), false)
			}
			f.desk.put(opening("10000000-0000-4000-8000-000000000000"), false)
		}
		s.sees("approved  3f2a9c1d", 1)
		f.desk.end(smallID, denied, "tok-9", "")
		e := s.sees("denied  3f7b0000", 1).ends(true)
		for _, want := range []string{"pending  3f7b0000", "approved  3f2a9c1d", "denied  3f7b0000"} {
			if n := strings.Count(e.out, want); n != 1 {
				t.Errorf("broken after %d frames: %q came %d times\n%s%s", at, want, n, e.out, e.err)
			}
		}
	}
}

func TestWatchApprovalsWithACursorThatIsTooOld(t *testing.T) {
	t.Parallel()
	f := withDesk(t, func(f *fake) { f.desk.reset = true })
	e := begin(t, watching(f, false, "--cursor", "1")).sees("pending", 2).ends(true)
	e.check(t, 130, "The cursor is too old")
	f.fail = connect.NewError(connect.CodePermissionDenied, "the token may not")
	f.run(t, "approvals", "watch").check(t, 5, "watch approvals: the token may not")
}

func TestDecisionsInPlace(t *testing.T) {
	t.Parallel()
	f := withDesk(t)
	s := begin(t, watching(f, true)).sees("openTab on work", 1).sees("Approve 3f2a9c1d?", 2).sees("https://example.com/3", 1)
	s.types("what").sees("Approve 3f2a9c1d?", 3)
	s.types("d").sees("https://example.com/3", 2)
	s.types("y").sees("3f2a9c1d  approved", 1).sees("Approve 3f7b0000?", 1)
	s.types("n").sees("Why not?", 1).types("not \x1b[2Jthis").sees("3f7b0000  denied", 1)
	s.ends(true).check(t, 130)
	got := f.desk.decisions()
	if len(got) != 2 || got[0].GetDecisions()[0].GetApprove().GetHash() != "hash-of-3f2a" ||
		got[1].GetDecisions()[0].GetDeny().GetReason() != "not \x1b[2Jthis" {
		t.Errorf("decisions: %v", got)
	}
	if e := s.out.String() + s.err.String(); strings.Contains(e, "\x1b[2J") || strings.Contains(e, "\u202e") {
		t.Errorf("control characters of a page were written: %q", e)
	}
}

// What is decided elsewhere leaves the screen, and a line that was meant for it decides nothing else.
func TestWhatIsDecidedElsewhereLeavesTheScreen(t *testing.T) {
	t.Parallel()
	f := withDesk(t)
	s := begin(t, watching(f, true)).sees("Approve 3f2a9c1d?", 1)
	f.desk.end(bigID, denied, "tok-9", "mine")
	s.sees("denied", 1).sees("by laptop (tok-9)", 1).sees("Press Enter", 1)
	s.types("y").sees("Approve 3f7b0000?", 1) // it was meant for the other
	if n := len(f.desk.decisions()); n != 0 {
		t.Fatalf("a line that was meant for another approval decided: %v", f.desk.decisions())
	}
	s.types("s").types("y") // nothing is shown any more
	s.ends(true).check(t, 130)
	if n := len(f.desk.decisions()); n != 0 {
		t.Errorf("decisions: %v", f.desk.decisions())
	}
}

// What changes under the eyes of a person is shown again before it is decided.
func TestWhatChangesIsShownAgain(t *testing.T) {
	t.Parallel()
	f := withDesk(t)
	s := begin(t, watching(f, true)).sees("Approve 3f2a9c1d?", 1)
	other := closing(bigID, laptop, 2)
	other.Hash = "hash-of-another"
	f.desk.put(other, false)
	s.sees("Press Enter", 1).types("y").sees("hash-of-another", 1)
	if n := len(f.desk.decisions()); n != 0 {
		t.Fatalf("decided unseen: %v", f.desk.decisions())
	}
	s.types("y").sees("approved", 1)
	s.ends(true)
	if got := f.desk.decisions()[0].GetDecisions()[0].GetApprove().GetHash(); got != "hash-of-another" {
		t.Errorf("hash: %s", got)
	}
}

func TestATokenThatMayNotDecideIsToldOnce(t *testing.T) {
	t.Parallel()
	f := withDesk(t, func(f *fake) {
		f.desk.refuse = connect.NewError(connect.CodePermissionDenied, "the token may only read")
	})
	s := begin(t, watching(f, true)).sees("Approve 3f2a9c1d?", 1).types("y").sees("This token may not decide", 1)
	f.desk.end(bigID, approved, "tok-9", "")
	e := s.sees("approved", 1).ends(true)
	if strings.Contains(e.err, "Approve 3f7b") || strings.Contains(e.err[strings.Index(e.err, "This token"):], "Approve 3f") {
		t.Errorf("asked again:\n%s", e.err)
	}
}
