package soak_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"throwbar.dev/throwbar/soak/soaktest"
)

// longVariable asks for the long versions, whose figures are judged.
const longVariable = "THROWBAR_SOAK"

func long() bool { return os.Getenv(longVariable) != "" }

func TestMain(m *testing.M) {
	code, played := soaktest.Play(map[string]soaktest.Part{roleDevice: playDevice})
	if !played {
		code = m.Run()
	}
	os.Exit(code)
}

// folder makes a folder that is removed when the test has passed: what a failed one leaves is evidence.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".tmp", "soak", filepath.Base(t.Name())+"-"+strconv.FormatInt(time.Now().UnixNano(), 36)))
	check(t, err)
	check(t, os.MkdirAll(dir, 0o700))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what it left is in %s", dir)
			return
		}
		check(t, os.RemoveAll(dir))
	})
	return dir
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wait is a pause that a test makes on purpose: what it tests is what happens in real time.
func wait(t testing.TB, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal("the test was ended")
	}
}

// until waits for something that has to come.
func until(t testing.TB, within time.Duration, what string, come func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !come(); wait(t, 20*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %s still not: %s", within, what)
		}
	}
}
