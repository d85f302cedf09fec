package bench_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/storage"
	"throwbar.dev/throwbar/store"
)

// ceiling is the server's storage with nothing before it: as many commands cannot be kept by any road.
type ceiling struct{ ledger *storage.Storage }

func openCeiling(b *testing.B) ceiling {
	b.Helper()
	s, err := store.Open(b.Context(), store.Config{Dir: b.TempDir()})
	check(b, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		check(b, <-ended)
		check(b, s.Close())
	})
	return ceiling{storage.New(s, slog.New(slog.DiscardHandler))}
}

// round keeps n commands from their acceptance to their end, window of them at a time.
func (c ceiling) round(b *testing.B, window, n int) round {
	b.Helper()
	action, err := proto.Marshal(request("device").GetAction())
	check(b, err)
	result, err := proto.Marshal(answer(request("device").GetAction()))
	check(b, err)
	var next atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	for range window {
		group.Go(func() {
			for next.Add(1) <= int64(n) {
				if err := c.keep(action, result); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	return round{Wall: time.Since(began)}
}

// keep is all that the server writes of a command that goes well.
func (c ceiling) keep(action, result []byte) error {
	now := time.Now()
	rec := dispatch.Record{
		ID: uuid.NewString(), Group: uuid.NewString(), Workspace: auth.DefaultWorkspace, Device: "device", Name: "activateTab",
		Principal: "bench", Action: action, State: dispatch.Accepted, CreatedAt: now, Deadline: now.Add(time.Minute),
	}
	if err := c.ledger.Accept(context.Background(), []dispatch.Acceptance{{Record: rec}}); err != nil {
		return err
	}
	end := dispatch.End{Record: rec}
	for _, to := range []dispatch.State{dispatch.Sent, dispatch.Acknowledged} { // written with the end, as the dispatcher does
		end.Steps = append(end.Steps, dispatch.Step{Record: end.Record, To: to, At: now})
		end.Record.State = to
	}
	end.Record.State, end.Record.EndedAt, end.Record.Result = dispatch.Succeeded, now, result
	return c.ledger.Finish(context.Background(), []dispatch.End{end})
}

// peer is the caller of the NATS relay, a process of a module of its own.
type peer struct {
	in  io.Writer
	out *bufio.Reader
}

// startPeer builds and starts the relay, its device and its caller.
func startPeer(b *testing.B) *peer {
	b.Helper()
	program := filepath.Join(b.TempDir(), "peer")
	build := exec.CommandContext(b.Context(), "go", "build", "-C", "peer", "-o", program, "./cmd/peer")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build the NATS relay: %v\n%s", err, out)
	}
	_, relay := startPeerPart(b, program, "relay")
	url := said(b, relay)
	_, device := startPeerPart(b, program, "device", url)
	said(b, device)
	in, out := startPeerPart(b, program, "caller", url)
	said(b, out)
	return &peer{in, out}
}

func startPeerPart(b *testing.B, program string, args ...string) (io.Writer, *bufio.Reader) {
	b.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // it ends when this is closed, however that comes
	check(b, err)
	out, err := cmd.StdoutPipe()
	check(b, err)
	check(b, cmd.Start())
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return in, bufio.NewReader(out)
}

func said(b *testing.B, out *bufio.Reader) string {
	b.Helper()
	line, err := out.ReadString('\n')
	check(b, err)
	return strings.TrimSpace(line)
}

// round has the peer send n commands: how is "window" or "calls".
func (p *peer) round(b *testing.B, how string, width, n int) round {
	b.Helper()
	_, err := fmt.Fprintln(p.in, how, width, n)
	check(b, err)
	var r round
	check(b, json.Unmarshal([]byte(said(b, p.out)), &r))
	return r
}
