//go:build unix

package storetest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const asChild = "THROWBAR_STORETEST_CHILD"

// TestChildHoldsAServer is the test binary to kill.
func TestChildHoldsAServer(t *testing.T) {
	t.Parallel()
	if os.Getenv(asChild) == "" {
		t.Skip("only as a child")
	}
	s, err := start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(os.Stdout, s.dir, s.process.Process.Pid)
	select {}
}

// child starts one and gives its process, the folder of its server, and the processes of the warden and the server.
func child(t *testing.T) (process *exec.Cmd, dir string, warden, server int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process = exec.Command(self, "-test.run=^TestChildHoldsAServer$", "-test.count=1")
	process.Env = append(os.Environ(), asChild+"=yes")
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the child has ended")
	}
	if _, err := fmt.Sscan(lines.Text(), &dir, &warden); err != nil {
		t.Fatalf("%q: %v", lines.Text(), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if server, err = strconv.Atoi(first); err != nil || syscall.Kill(server, 0) != nil {
		t.Fatalf("no server %d: %v", server, err)
	}
	return process, dir, warden, server
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	deadline := time.After(startWithin)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !check() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

func gone(pid int) func() bool { return func() bool { return syscall.Kill(pid, 0) != nil } }

func missingFolder(dir string) func() bool {
	return func() bool { _, err := os.Stat(dir); return os.IsNotExist(err) }
}

// TestAKilledTestBinaryLeavesNothing: the warden sees that it is gone.
func TestAKilledTestBinaryLeavesNothing(t *testing.T) {
	t.Parallel()
	process, dir, _, server := child(t)
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait() // it was killed
	eventually(t, "the server ends", gone(server))
	eventually(t, "its folder goes", missingFolder(dir))
}

// TestTheNextOneClearsUp what is left where the warden was killed too.
func TestTheNextOneClearsUp(t *testing.T) {
	t.Parallel()
	process, dir, warden, server := child(t)
	removeStale() // does nothing to what is in use
	if gone(server)() || missingFolder(dir)() {
		t.Fatal("a server in use was ended")
	}
	if err := syscall.Kill(warden, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait() // it was killed
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "owner"), old, old); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the folder is cleared away", func() bool { removeStale(); return missingFolder(dir)() })
	eventually(t, "the server ends", gone(server))
}

// TestWithoutPostgres says in one line what to do, and does not skip.
func TestWithoutPostgres(t *testing.T) {
	t.Setenv(binaries, t.TempDir())
	if _, err := start(Options{}); err == nil || !strings.Contains(err.Error(), "has no initdb") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error is %v", err)
	}
}

// TestKillAndUp is what the tests of durability rely on.
func TestKillAndUp(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{Fsync: true})
	pool := Open(t, s.URL("postgres"))
	for _, end := range []func(testing.TB){s.Kill, s.Down} {
		if err := pool.PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		end(t)
		eventually(t, "it answers no more", func() bool { return pool.PingContext(t.Context()) != nil })
		s.Up(t)
	}
	var fsync string
	if err := pool.QueryRowContext(t.Context(), "show fsync").Scan(&fsync); err != nil || fsync != "on" {
		t.Errorf("fsync is %s, %v", fsync, err)
	}
}
