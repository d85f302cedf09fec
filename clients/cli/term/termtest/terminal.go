//go:build unix

// Package termtest is a terminal for tests: a real pseudo terminal, and behind it an emulator that shows what a person
// would see.
package termtest

import (
	"errors"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"
)

// patience is how long a test waits for what has to come.
const patience = time.Minute

// Terminal is a pseudo terminal that somebody looks at.
type Terminal struct {
	// TTY is the side of the program: its three streams.
	TTY *os.File

	t     testing.TB
	other *os.File
	state *xterm.State // before anybody changed it
	read  chan struct{}

	mu     sync.Mutex
	screen *Screen         // guarded by mu
	raw    strings.Builder // guarded by mu
	moved  chan struct{}   // guarded by mu; closed when something comes
}

// New is a terminal of a size.
func New(t testing.TB, width, height int) *Terminal {
	t.Helper()
	opened, tty, err := pty.Open()
	if err != nil {
		t.Fatalf("open a pseudo terminal: %v", err)
	}
	other, err := interruptible(opened)
	if err != nil {
		t.Fatalf("open a pseudo terminal: %v", err)
	}
	term := &Terminal{
		TTY: tty, t: t, other: other, read: make(chan struct{}), screen: NewScreen(width, height), moved: make(chan struct{}),
	}
	term.setSize(width, height)
	term.state = term.State()
	go term.follow()
	t.Cleanup(func() {
		_ = tty.Close()
		_ = other.Close()
		<-term.read
		if term.screen.faults != nil {
			t.Errorf("the terminal got what may not reach it: %q", term.screen.faults)
		}
	})
	return term
}

func (t *Terminal) setSize(width, height int) {
	t.t.Helper()
	t.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)})
	})
}

// follow shows what the program writes.
func (t *Terminal) follow() {
	defer close(t.read)
	chunk := make([]byte, 64<<10)
	for {
		n, err := t.other.Read(chunk)
		t.mu.Lock()
		t.raw.Write(chunk[:n])
		_, _ = t.screen.Write(chunk[:n]) // it takes everything
		close(t.moved)
		t.moved = make(chan struct{})
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// State is the state of the terminal's own editing.
func (t *Terminal) State() *xterm.State {
	t.t.Helper()
	var state *xterm.State
	t.control(func(fd int) (err error) {
		state, err = xterm.GetState(fd)
		return err
	})
	return state
}

// control does something with the program's side, and leaves the file as it is.
func (t *Terminal) control(do func(fd int) error) {
	t.t.Helper()
	conn, err := t.TTY.SyscallConn()
	if err != nil {
		t.t.Fatal(err)
	}
	var failed error
	if err := errors.Join(conn.Control(func(fd uintptr) { failed = do(int(fd)) }), failed); err != nil {
		t.t.Fatal(err)
	}
}

// interruptible is a file whose reading ends when it is closed.
func interruptible(f *os.File) (*os.File, error) {
	defer func() { _ = f.Close() }()                          // it has a descriptor of its own from here on
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0) // no child may have it: it would keep the terminal
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// GivenBack waits until the terminal is as it was before the program began: its own editing, no pastes in brackets, and
// the cursor at the beginning of a row.
func (t *Terminal) GivenBack() *Terminal {
	t.t.Helper()
	return t.until("(a terminal as before)", func(string) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.Edits() && !t.screen.pastes && t.screen.x == 0
	})
}

// Edits says whether the terminal itself edits what is typed, as it did before the program began.
func (t *Terminal) Edits() bool {
	t.t.Helper()
	return reflect.DeepEqual(t.State(), t.state)
}

// Type presses keys.
func (t *Terminal) Type(keys string) *Terminal {
	t.t.Helper()
	if _, err := io.WriteString(t.other, keys); err != nil {
		t.t.Fatal(err)
	}
	return t
}

// Paste pastes text as terminals do that were asked for brackets.
func (t *Terminal) Paste(text string) *Terminal {
	t.t.Helper()
	return t.Type("\x1b[200~" + strings.ReplaceAll(text, "\n", "\r") + "\x1b[201~")
}

// Resize makes the window another size. It breaks no line anew.
func (t *Terminal) Resize(width, height int) *Terminal {
	t.t.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.screen.resize(width, height)
	t.setSize(width, height)
	return t
}

// Hangup takes the terminal away, as a window that is closed.
func (t *Terminal) Hangup() { _ = t.other.Close() }

// All is all that the program wrote, which has ended: the terminal is taken away, and what was still under way waited for.
func (t *Terminal) All() string {
	_ = t.TTY.Close()
	<-t.read
	return t.Raw()
}

// Raw is what has come of what the program writes.
func (t *Terminal) Raw() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.raw.String()
}

// Picture is what a person sees.
func (t *Terminal) Picture() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.screen.Picture()
}

// Shows waits until a picture of the screen has all the texts, each as one piece.
func (t *Terminal) Shows(texts ...string) *Terminal {
	t.t.Helper()
	return t.until(strings.Join(texts, "\nand "), func(picture string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(picture, text) })
	})
}

// Is waits until the picture of the screen is just this.
func (t *Terminal) Is(rows ...string) *Terminal {
	t.t.Helper()
	want := strings.Join(rows, "\n")
	return t.until(want, func(picture string) bool { return picture == want })
}

// Ends waits until the picture ends with rows.
func (t *Terminal) Ends(rows ...string) *Terminal {
	t.t.Helper()
	want := strings.Join(rows, "\n")
	return t.until("..."+want, func(picture string) bool { return strings.HasSuffix("\n"+picture, "\n"+want) })
}

func (t *Terminal) until(want string, holds func(picture string) bool) *Terminal {
	t.t.Helper()
	late := time.After(patience)
	again := time.NewTicker(100 * time.Millisecond) // how a terminal edits changes without anything coming
	defer again.Stop()
	for {
		t.mu.Lock()
		picture, moved := t.screen.Picture(), t.moved
		t.mu.Unlock()
		if holds(picture) {
			return t
		}
		select {
		case <-moved:
		case <-again.C:
		case <-late:
			t.t.Fatalf("the screen does not show it\nwant:\n%s\ngot:\n%s\nbytes: %q", want, picture, t.Raw())
		}
	}
}
