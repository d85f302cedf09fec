package soaktest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
)

// Stage is what a part has from its process: its arguments, and somebody who asks.
type Stage struct {
	Args []string

	in  io.Reader
	mu  sync.Mutex
	out io.Writer // guarded by mu
}

// Part is something that a process can be instead of a test program. It plays until its context ends.
type Part func(ctx context.Context, s *Stage) error

// Play plays the part that this process was started in and gives its exit code. It says false if there is none, which
// makes this the test program itself. TestMain calls it first. The part of the server and those of fleets are known;
// a program has more of its own.
func Play(own map[string]Part) (code int, played bool) {
	role := os.Getenv(roleVariable)
	if role == "" {
		return 0, false
	}
	parts := map[string]Part{
		RoleServer: serve, RoleFleet: playFleet, RoleBare: serveBare, RoleBareFleet: playBareFleet,
	}
	for name, part := range own {
		parts[name] = part
	}
	part := parts[role]
	if part == nil {
		_, _ = fmt.Fprintf(os.Stderr, "there is no part %q\n", role)
		return 2, true
	}
	ctx := context.Background()
	if role != RoleServer { // which has its own way to stop
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGTERM)
		defer stop()
	}
	if err := part(ctx, &Stage{Args: os.Args[1:], in: os.Stdin, out: os.Stdout}); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		return 1, true
	}
	return 0, true
}

// Write passes on what the part prints, whole lines at a time.
func (s *Stage) Write(raw []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(raw)
}

// Ready says that the part is ready.
func (s *Stage) Ready() { _, _ = fmt.Fprintln(s, readyLine) }

// Listen answers questions until nobody asks any more, which is when the test is over: the returned context ends then.
// Every part can be asked for "memory".
func (s *Stage) Listen(ctx context.Context, answer func(question string) any) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		scan := bufio.NewScanner(s.in)
		for scan.Scan() {
			question := strings.TrimSpace(scan.Text())
			var reply any
			if question == "memory" {
				reply = measureHeap()
			} else {
				reply = answer(question)
			}
			raw, err := json.Marshal(reply)
			if err != nil {
				raw = []byte(`null`)
			}
			_, _ = fmt.Fprintf(s, "%s%s\n", answerMark, raw)
		}
	}()
	return ctx
}

// Heap is what a process holds after a forced collection, by its own books.
type Heap struct {
	InUse, Stacks uint64 // bytes
	Goroutines    int
}

// measureHeap collects what is not used any more and gives it back to the system, so that the system's books show what
// is held and not what was once needed.
func measureHeap() Heap {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Heap{InUse: m.HeapInuse, Stacks: m.StackInuse, Goroutines: runtime.NumGoroutine()}
}
