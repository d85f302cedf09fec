package throwbar_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Only a package that the race detector itself gave up on is run again, and only if nothing else failed.
func TestLawOnlyTheRaceDetectorsOwnEndIsTriedAgain(t *testing.T) {
	t.Parallel()
	const (
		fine    = "ok  \texample.test/a\t65.233s\n"
		gaveUp  = "ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346 \"((exiting))\" (0x0, 0x0) (tid=2784)\n"
		fault   = "SIGSEGV: segmentation violation\nPC=0x2ad92c9 m=3 sigcode=1 addr=0x0\n"
		inside  = "                     ^ <racecall+0x23>\n"
		failed  = "FAIL\texample.test/b\t23.454s\n"
		another = "FAIL\texample.test/c [build failed]\n"
	)
	for name, test := range map[string]struct{ log, again string }{
		"nothing failed":      {fine, ""},
		"it gave up":          {fine + "some output\n" + gaveUp + failed + fine + "FAIL\n", "example.test/b\n"},
		"a fault inside it":   {fault + inside + failed + fine, "example.test/b\n"},
		"a fault in C":        {fault + "signal arrived during cgo execution\n" + inside + failed, ""},
		"a fault elsewhere":   {fault + failed, ""},
		"of another package":  {fault + fine + inside + failed, ""},
		"and a test failed":   {"--- FAIL: TestX (0.00s)\n" + gaveUp + failed + fine, ""},
		"and a subtest":       {gaveUp + "    --- FAIL: TestX/y (0.00s)\n" + failed, ""},
		"and a race":          {"WARNING: DATA RACE\n" + gaveUp + failed, ""},
		"and a panic":         {gaveUp + "panic: x\n" + failed, ""},
		"and another package": {gaveUp + failed + another, ""},
		"in one that passed":  {gaveUp + fine + failed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(log, []byte(test.log), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), "scripts/race.sh", "--gave-up", log).Output()
			if err != nil || string(out) != test.again {
				t.Errorf("got %q, %v; want %q", strings.TrimSpace(string(out)), err, test.again)
			}
		})
	}
}

// A lock that another apt-get holds, and a download that fails, pass: what does not is said, with its own status.
func TestLawAptGetIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ fails, runs, status int }{
		"at once": {0, 1, 0},
		"later":   {4, 5, 0},
		"never":   {9, 5, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			// A shell writes them: what this process had open for writing, a child that is just being started by another test
			// may have too, and it could not be run.
			made, err := exec.CommandContext(t.Context(), "sh", "-c", `cd "$1" && printf '#!/bin/sh\nexit 0\n' >sleep &&
				printf '#!/bin/sh\necho "$@" >>runs\n[ $(wc -l <runs) -gt %d ] || exit 100\n' "$2" | sed "s|runs|$1/runs|g" >apt-get &&
				chmod +x sleep apt-get`, "sh", dir, strconv.Itoa(test.fails)).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, made)
			}
			command := exec.CommandContext(t.Context(), "scripts/apt-get.sh", "install", "a")
			command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			out, err := command.CombinedOutput()
			if command.ProcessState.ExitCode() != test.status {
				t.Errorf("ended with %v:\n%s", err, out)
			}
			said, err := os.ReadFile(filepath.Join(dir, "runs"))
			if err != nil || strings.Count(string(said), "\n") != test.runs || !strings.Contains(string(said), "Lock::Timeout=300 ") || !strings.HasSuffix(string(said), "install a\n") {
				t.Errorf("ran with\n%s, %v", said, err)
			}
		})
	}
}
