package linktest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"throwbar.dev/throwbar/app"
	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/server/rpc"
)

// roleVariable makes this program one of the processes of a test.
const roleVariable = "THROWBAR_LINK_ROLE"

func TestMain(m *testing.M) {
	role, arg, _ := strings.Cut(os.Getenv(roleVariable), " ")
	run := map[string]func(context.Context, string) error{"server": runServer, "device": runDevice}[role]
	if run == nil {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := run(ctx, arg)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
}

// process is a child process of a test.
type process struct {
	cmd   *exec.Cmd
	lines chan string // what it prints
}

// spawn starts this program in a role. It ends with the test.
func spawn(t *testing.T, role string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(self), lines: make(chan string, 1000)}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+role)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			p.lines <- scan.Text()
		}
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the process at once. A second call does nothing.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// line is the next line that the process prints.
func (p *process) line(t *testing.T) string {
	t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			t.Fatal("the process has ended")
		}
		return line
	case <-time.After(time.Minute):
		t.Fatal("the process says nothing")
	}
	return ""
}

// runServer serves a folder on loopback until SIGTERM, and prints its address. SIGUSR1 makes it collect its garbage,
// which it says.
func runServer(ctx context.Context, dir string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	s, err := app.NewServer(ctx, app.Config{DataDir: dir, Listener: rpc.Listener{Hosts: rpc.LoopbackHosts(address)}})
	if err != nil {
		return err
	}
	collect := make(chan os.Signal, 1)
	signal.Notify(collect, syscall.SIGUSR1)
	go func() {
		for range collect {
			debug.FreeOSMemory()
			fmt.Println("collected")
		}
	}()
	return s.Serve(ctx, listener, func() { fmt.Println(address) })
}

// runDevice is a device that notes each effect in a file, says what it does, and dies when it is told to.
func runDevice(ctx context.Context, dir string) error {
	identity, err := throwbar.LoadIdentity(filepath.Join(dir, "identity"))
	if err != nil {
		return err
	}
	journal, err := throwbar.OpenJournal(filepath.Join(dir, "journal"))
	if err != nil {
		return err
	}
	defer journal.Close()
	d, err := throwbar.NewDevice(throwbar.DeviceConfig{
		Identity: identity, Handler: &effects{path: filepath.Join(dir, "effects")}, Actions: []string{"openTab"}, Journal: journal,
		Jitter: func() float64 { return 0 }, // it comes back as soon as it may
		OnStatus: func(s throwbar.Status) {
			if s.Connected {
				fmt.Println("connected")
			} else {
				fmt.Println("ended", s.Err)
			}
		},
	})
	if err != nil {
		return err
	}
	err = d.Run(ctx)
	fmt.Println("stopped", err)
	return err
}

// effects opens tabs by writing their addresses into a file: each line is an effect that cannot be taken back.
type effects struct {
	commandv1.DeclineTabs
	commandv1.DeclineCustom

	path string
}

func (e *effects) OpenTab(ctx context.Context, a *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
	f, err := os.OpenFile(e.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintln(f, a.GetUrl())
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	fmt.Println("ran", a.GetUrl())
	if strings.Contains(a.GetUrl(), "wait") { // for a kill between the effect and its outcome, however long that takes to come
		<-ctx.Done()
	}
	return &commandv1.OpenTab_Result{TabId: "x", Url: a.GetUrl()}, nil
}

// metric reads one number of a server's /metrics.
func metric(t *testing.T, address, token, name string) float64 {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("metrics: %d, %v", res.StatusCode, err)
	}
	for line := range strings.Lines(string(body)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0 // a counter that nothing has counted yet is not written
}

// owner is the token of a folder's owner.
func owner(t *testing.T, dir string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "owner.token"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// fleet runs devices until it is stopped.
type fleet struct {
	cancel context.CancelFunc
	all    sync.WaitGroup
}

func (f *fleet) stop() {
	f.cancel()
	f.all.Wait()
}
