// Package soaktest has what the soak and the benchmarks share: processes that play a part, fleets of devices, a floor
// to compare them with, and load.
package soaktest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// roleVariable makes a test program play a part instead of running its tests.
	roleVariable = "THROWBAR_SOAK_ROLE"
	// answerMark begins the lines in which a part answers what it was asked.
	answerMark = "@"
	// readyLine is what a part says when it is ready.
	readyLine = answerMark + "ready"
	// Patience is how long a process may take to start, to answer, and to stop: only a broken one needs it.
	Patience = 2 * time.Minute
)

// Process is another process of a test. It ends when the test's own process does, however that ends: its standard
// input is closed then.
type Process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan string   // lines that answer a question
	ended   chan struct{} // closed when the process is gone
	err     error         // how it ended; to be read after ended

	asking sync.Mutex // one question at a time
}

// Start starts this program again in a part. Its other output and its errors are appended to the file log.
func Start(log, role string, args ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of a process: %w", err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = out
	p := &Process{cmd: cmd, answers: make(chan string, 16), ended: make(chan struct{})}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", role, err), out.Close())
	}
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", role, err), out.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", role, err), out.Close())
	}
	go p.follow(lines, out)
	return p, nil
}

// follow sorts what a process says until it is gone.
func (p *Process) follow(lines io.Reader, log *os.File) {
	defer close(p.ended)
	scan := bufio.NewScanner(lines)
	scan.Buffer(nil, 64<<20) // an answer about ten thousand devices is one line
	for scan.Scan() {
		if strings.HasPrefix(scan.Text(), answerMark) {
			p.answers <- scan.Text()
			continue
		}
		_, _ = fmt.Fprintln(log, scan.Text())
	}
	p.err = errors.Join(p.cmd.Wait(), scan.Err())
	_ = log.Close()
}

// Ready waits until the process says that it is.
func (p *Process) Ready(ctx context.Context) error {
	line, err := p.answer(ctx)
	if err != nil {
		return err
	}
	if line != readyLine {
		return fmt.Errorf("process %d said %q before it was ready", p.PID(), line)
	}
	return nil
}

func (p *Process) answer(ctx context.Context) (string, error) {
	patience := time.NewTimer(Patience)
	defer patience.Stop()
	select {
	case line := <-p.answers:
		return line, nil
	case <-p.ended:
		return "", fmt.Errorf("process %d ended by itself: %w", p.PID(), p.err)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-patience.C:
		return "", fmt.Errorf("process %d does not answer", p.PID())
	}
}

// Ask asks the process something and returns its answer.
func (p *Process) Ask(ctx context.Context, question string) (string, error) {
	p.asking.Lock()
	defer p.asking.Unlock()
	if _, err := io.WriteString(p.in, question+"\n"); err != nil {
		return "", fmt.Errorf("ask process %d: %w", p.PID(), err)
	}
	line, err := p.answer(ctx)
	return strings.TrimPrefix(line, answerMark), err
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the process is gone.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Kill ends the process without a warning, as kill -9 does, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may be gone already
	<-p.ended
}

// Stop asks the process to stop and waits until it has. Its error says how it ended, if not well.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop process %d: %w", p.PID(), err)
	}
	patience := time.NewTimer(Patience)
	defer patience.Stop()
	select {
	case <-p.ended:
		return p.err
	case <-patience.C:
		p.Kill()
		return fmt.Errorf("process %d does not stop", p.PID())
	}
}

// Memory is what a process holds, in KiB, by the system's books: now, and at most since it began. Both are zero where
// the system keeps no such books.
func (p *Process) Memory() (now, most int64) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID()) + "/status")
	if err != nil {
		return 0, 0
	}
	field := func(name string) int64 {
		_, after, _ := strings.Cut(string(raw), "\n"+name+":")
		value, _, _ := strings.Cut(strings.TrimSpace(after), " ")
		n, _ := strconv.ParseInt(value, 10, 64)
		return n
	}
	return field("VmRSS"), field("VmHWM")
}
