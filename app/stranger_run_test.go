package app_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	"throwbar.dev/throwbar/clients/cli"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// kettle is a device that runs the stranger: it was built with a newer contract than the server.
type kettle struct {
	id, token string

	mu     sync.Mutex
	brewed [][]byte // arguments, encoded
	broken bool     // takes commands over and never answers
}

func startKettle(t *testing.T, s *apptest.Server) *kettle {
	t.Helper()
	code, err := s.Devices(t).CreatePairingCode(t.Context(), &controlv1.CreatePairingCodeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Device(t, "").Pair(t.Context(), &devicev1.PairRequest{
		Code: code.GetCode(), Name: "kettle", Kind: devicev1.Kind_KIND_DESKTOP,
	})
	if err != nil {
		t.Fatal(err)
	}
	k := &kettle{id: d.GetDeviceId(), token: d.GetToken()}
	k.connect(t, s)
	return k
}

// connect links it to a server.
func (k *kettle) connect(t *testing.T, s *apptest.Server) {
	t.Helper()
	stream, err := s.Device(t, k.token).Connect(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	send := func(f *devicev1.DeviceFrame) {
		_ = stream.Send(&devicev1.ConnectRequest{Frames: []*devicev1.DeviceFrame{f}})
	}
	send(&devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Hello{Hello: &devicev1.Hello{
		DeviceId: k.id, Actions: []string{"brewDrink"},
	}}})
	up, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			msg, err := stream.Receive()
			if err != nil {
				return
			}
			for _, frame := range msg.GetFrames() {
				if frame.GetWelcome() != nil {
					close(up)
				}
				if c := frame.GetCommand(); c != nil {
					if f := k.brew(t, c); f != nil {
						send(f)
					}
				}
			}
		}
	}()
	t.Cleanup(func() { _ = stream.Close(); <-ended })
	<-up
}

func (k *kettle) brew(t *testing.T, c *devicev1.CommandRequest) *devicev1.DeviceFrame {
	body := strangerBody(t, c.GetAction().ProtoReflect())
	k.mu.Lock()
	k.brewed = append(k.brewed, body)
	broken := k.broken
	k.mu.Unlock()
	if broken {
		return nil
	}
	out := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 3)
	result := &commandv1.Result{}
	if err := proto.Unmarshal(protowire.AppendBytes(protowire.AppendTag(nil, strangerNumber, protowire.BytesType), out), result); err != nil {
		t.Error(err)
	}
	return &devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Outcome{Outcome: &devicev1.Outcome{
		CommandId: c.GetCommandId(), Outcome: &devicev1.Outcome_Result{Result: result},
	}}}
}

// throwbarCLI runs the command line against a server.
func throwbarCLI(t *testing.T, s *apptest.Server, args ...string) (int, string, string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := map[string]string{
		"THROWBAR_SERVER": s.URL, "THROWBAR_TOKEN_FILE": filepath.Join(s.Dir, "owner.token"), "XDG_CACHE_HOME": t.TempDir(),
	}
	code := cli.Config{
		Args: args, Env: func(k string) string { return env[k] }, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
	}.Run(t.Context())
	return code, stdout.String(), stderr.String()
}

func TestACommandThatTheServerWasNotBuiltWithRunsEndToEnd(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{Image: strangerImage(t)})
	k := startKettle(t, s)

	code, out, errs := throwbarCLI(t, s, "commands")
	if code != 0 || !strings.Contains(out, "brewDrink") || !strings.Contains(out, "Brew a drink") {
		t.Errorf("commands: %d\n%s%s", code, out, errs)
	}
	code, out, errs = throwbarCLI(t, s, "call", "brewDrink", "--help")
	if code != 0 || !strings.Contains(out, "--cups") || !strings.Contains(out, "How many cups") || !strings.Contains(out, "--device") {
		t.Errorf("help: %d\n%s%s", code, out, errs)
	}
	code, out, errs = throwbarCLI(t, s, "call", "brewDrink", "--device", "kettle", "--drink", "tea", "--cups", "3", "--output", "json")
	if code != 0 || !strings.Contains(out, `"brewedCount"`) {
		t.Errorf("call: %d\n%s%s", code, out, errs)
	}
	if want := "\x0a\x03tea\x10\x03"; len(k.brewed) != 1 || string(k.brewed[0]) != want {
		t.Errorf("the device got %q, want %q", k.brewed, want)
	}
	if code, _, errs = throwbarCLI(t, s, "call", "brewDrink", "--device", "kettle", "--drink", "tea", "--cups", "13"); code != 2 {
		t.Errorf("too many cups: %d %s", code, errs)
	}
	list, err := s.Commands(t).ListCommands(t.Context(), &controlv1.ListCommandsRequest{})
	if err != nil || len(list.GetCommands()) != 1 || list.GetCommands()[0].GetSummary() != "brewedCount=3" {
		t.Errorf("history: %v, %v", list, err)
	}
}

func TestExitCodesTellWhatHappened(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	k := startKettle(t, s)
	for name, row := range map[string]struct {
		args []string
		want int
	}{
		"fine":                  {[]string{"devices"}, 0},
		"a device that cannot":  {[]string{"call", "openTab", "--device", "kettle", "--url", "a.example"}, 1},
		"wrong flag":            {[]string{"call", "openTab", "--device", "kettle", "--address", "a.example"}, 2},
		"another boot":          {[]string{"call", "closeTabs", "--tab-ids", k.id + "_tzz-1"}, 1},
		"a token that is wrong": {[]string{"devices", "--token-file", "stranger_test.go"}, 6},
		"nobody there":          {[]string{"devices", "--server", "http://127.0.0.1:1"}, 3},
	} {
		if code, out, errs := throwbarCLI(t, s, row.args...); code != row.want {
			t.Errorf("%s: exit %d, want %d\n%s%s", name, code, row.want, out, errs)
		}
	}
}
