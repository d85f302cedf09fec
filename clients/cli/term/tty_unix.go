//go:build unix

package term

import (
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// canEdit says that terminals can be taken over here.
const canEdit = true

// stopWait is how long a stop of the program may take to come; one that is ignored never does.
const stopWait = 200 * time.Millisecond

// IsTerminal says whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && columns(f) >= 0
}

// columns is the width of a terminal, zero if it does not tell, and -1 for what is no terminal.
func columns(f *os.File) int {
	n := -1
	_ = control(f, func(fd int) error {
		size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if err == nil {
			n = int(size.Col)
		}
		return err
	}) // -1 says that it did not
	return n
}

// control does something with a file's descriptor, and leaves the file as it is.
func control(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return fmt.Errorf("use the terminal: %w", err)
	}
	var done error
	if err := conn.Control(func(fd uintptr) { done = do(int(fd)) }); err != nil {
		return fmt.Errorf("use the terminal: %w", err)
	}
	return done
}

// unblock ends a read that waits, where that is possible.
func unblock(f *os.File) error { return f.SetReadDeadline(time.Unix(1, 0)) }

// heed follows what happens to the terminal: its size, a stop and its end, and a signal that would end the program with
// the terminal as we have it.
func (e *Editor) heed() {
	wanted := []os.Signal{unix.SIGWINCH, unix.SIGCONT}
	for _, deadly := range []os.Signal{unix.SIGHUP, unix.SIGQUIT} {
		if !signal.Ignored(deadly) {
			wanted = append(wanted, deadly)
		}
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, wanted...)
	e.work.Go(func() {
		defer e.Guard()
		defer signal.Stop(signals)
		for {
			select {
			case <-e.done:
				return
			case s := <-signals:
				switch s {
				case unix.SIGCONT:
					e.goOn()
				case unix.SIGWINCH:
					e.mu.Lock()
					e.draw("")
					e.mu.Unlock()
				default:
					e.Release()
					signal.Reset(s)
					_ = unix.Kill(os.Getpid(), s.(unix.Signal)) // it does what it would have done
					return
				}
			}
		}
	})
}

// suspend stops the program, as Ctrl-Z does on a terminal that nobody has taken over.
func (e *Editor) suspend() {
	e.mu.Lock()
	e.giveBack()
	e.mu.Unlock()
	if unix.Kill(0, unix.SIGTSTP) == nil { // all that the shell has started together
		select {
		case <-time.After(stopWait):
		case <-e.done:
		}
	}
	e.goOn()
}

// goOn takes the terminal over again after a stop.
func (e *Editor) goOn() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return
	}
	_ = e.sheet.erase() // what stands there now is not known
	if e.takeOver() == nil {
		e.draw("")
	}
}
