package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// childDir is the variable by which a test says to its own binary, run again, which folder to use.
const childDir = "THROWBAR_STORE_TEST_DIR"

// child runs one test of this binary in another process. What it writes is read until it ends; closing in ends it.
func child(tb testing.TB, test, dir string) (process *exec.Cmd, out *bufio.Scanner, in io.Closer) {
	tb.Helper()
	self, err := os.Executable()
	check(tb, err)
	process = exec.Command(self, "-test.run=^"+test+"$", "-test.count=1")
	process.Env = append(os.Environ(), childDir+"="+dir)
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
	dir := t.TempDir()
	s := opened(t, Config{Dir: dir})
	_, err := Open(t.Context(), Config{Dir: dir})
	assertLocked(t, err, dir, os.Getpid())
	check(t, s.Close())
	assertUnlocked(t, dir)
}

func TestLockBetweenProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	process, out, in := child(t, "TestChildHoldsLock", dir)
	if !out.Scan() || out.Text() != "locked" {
		t.Fatalf("child said %q, %v", out.Text(), out.Err())
	}
	_, err := Open(t.Context(), Config{Dir: dir})
	assertLocked(t, err, dir, process.Process.Pid)
	check(t, in.Close())
	for out.Scan() { // to the end
	}
	check(t, process.Wait())
	assertUnlocked(t, dir)
}

func TestLockGoesWithTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	process, out, _ := child(t, "TestChildHoldsLock", dir)
	if !out.Scan() || out.Text() != "locked" {
		t.Fatalf("child said %q, %v", out.Text(), out.Err())
	}
	check(t, process.Process.Kill())
	_ = process.Wait() // it was killed
	s := opened(t, Config{Dir: dir})
	check(t, s.Close())
}

// TestChildHoldsLock is the other process: it holds a store open until its input ends.
func TestChildHoldsLock(t *testing.T) {
	t.Parallel()
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("only as a child")
	}
	opened(t, Config{Dir: dir})
	fmt.Fprintln(os.Stdout, "locked")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Error(err)
	}
}

func assertLocked(tb testing.TB, err error, dir string, pid int) {
	tb.Helper()
	if !errors.Is(err, ErrLocked) {
		tb.Fatalf("error is %v, want ErrLocked", err)
	}
	if want := fmt.Sprintf("another throwbar server (pid %d) uses %s", pid, dir); err.Error() != want {
		tb.Errorf("error says %q, want %q", err, want)
	}
}
