package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"throwbar.dev/throwbar/store/storetest"
)

// The variables by which a test says to its own binary, run again, which database to use.
const (
	childDir = "THROWBAR_STORE_TEST_DIR"
	childURL = "THROWBAR_STORE_TEST_URL"
)

// asChild is what the parent has said. A test that is for children only is skipped if there is no parent.
func asChild(t *testing.T) Config {
	t.Helper()
	config := Config{Dir: os.Getenv(childDir), URL: os.Getenv(childURL)}
	if config.Dir == "" && config.URL == "" {
		t.Skip("only as a child")
	}
	return config
}

// child runs one test of this binary in another process. What it writes is read until it ends; closing in ends it.
func child(tb testing.TB, test string, config Config) (process *exec.Cmd, out *bufio.Scanner, in io.Closer) {
	tb.Helper()
	self, err := os.Executable()
	check(tb, err)
	process = exec.Command(self, "-test.run=^"+test+"$", "-test.count=1")
	process.Env = append(os.Environ(), childDir+"="+config.Dir, childURL+"="+config.URL)
	process.Stderr = os.Stderr
	in, err = process.StdinPipe()
	check(tb, err)
	pipe, err := process.StdoutPipe()
	check(tb, err)
	check(tb, process.Start())
	tb.Cleanup(func() {
		if process.ProcessState == nil {
			_ = process.Process.Kill()
			_ = process.Wait()
		}
	})
	return process, bufio.NewScanner(pipe), in
}

func TestLockInOneProcess(t *testing.T) {
	t.Parallel()
	onEach(t, testLockInOneProcess)
}

func testLockInOneProcess(t *testing.T, engine storetest.Engine) {
	config := place(t, engine, Config{})
	s := opened(t, engine, config)
	for range 2 { // a refusal changes nothing
		_, err := Open(t.Context(), config)
		assertLocked(t, err, s.where(), os.Getpid())
	}
	check(t, s.Close())
	assertUnlocked(t, config)
}

// where is what the message about the lock names.
func (s *Store) where() string {
	if e, ok := s.engine.(*sqliteEngine); ok {
		return e.dir
	}
	return s.Name()
}

func TestLockBetweenProcesses(t *testing.T) {
	t.Parallel()
	onEach(t, testLockBetweenProcesses)
}

func testLockBetweenProcesses(t *testing.T, engine storetest.Engine) {
	config := place(t, engine, Config{})
	process, out, in := child(t, "TestChildHoldsLock", config)
	if !out.Scan() || out.Text() != "locked" {
		t.Fatalf("child said %q, %v", out.Text(), out.Err())
	}
	unused, err := newEngine(config)
	check(t, err)
	_, err = Open(t.Context(), config)
	assertLocked(t, err, (&Store{engine: unused}).where(), process.Process.Pid)
	check(t, in.Close())
	for out.Scan() { // to the end
	}
	check(t, process.Wait())
	assertUnlocked(t, config)
}

func TestLockGoesWithTheProcess(t *testing.T) {
	t.Parallel()
	onEach(t, testLockGoesWithTheProcess)
}

func testLockGoesWithTheProcess(t *testing.T, engine storetest.Engine) {
	config := place(t, engine, Config{})
	process, out, _ := child(t, "TestChildHoldsLock", config)
	if !out.Scan() || out.Text() != "locked" {
		t.Fatalf("child said %q, %v", out.Text(), out.Err())
	}
	check(t, process.Process.Kill())
	_ = process.Wait() // it was killed
	assertUnlocked(t, config)
}

// TestChildHoldsLock is the other process: it holds a store open until its input ends.
func TestChildHoldsLock(t *testing.T) {
	t.Parallel()
	opened(t, onSQLite(), asChild(t))
	fmt.Fprintln(os.Stdout, "locked")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Error(err)
	}
}

func assertLocked(tb testing.TB, err error, where string, pid int) {
	tb.Helper()
	if !errors.Is(err, ErrLocked) {
		tb.Fatalf("error is %v, want ErrLocked", err)
	}
	if want := fmt.Sprintf("another throwbar server (pid %d) uses %s", pid, where); err.Error() != want {
		tb.Errorf("error says %q, want %q", err, want)
	}
}

func assertUnlocked(tb testing.TB, config Config) {
	tb.Helper()
	s, err := Open(tb.Context(), config)
	if err != nil {
		tb.Fatalf("database is still locked: %v", err)
	}
	check(tb, s.Close())
}
