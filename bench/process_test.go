package bench_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"throwbar.dev/throwbar/app/apptest"
	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/soak/soaktest"
	"throwbar.dev/throwbar/store"
)

// The processes of a benchmark, beside those that the soak has too.
const (
	roleDevice      = "bench-device"
	roleRelay       = "bench-relay"
	roleRelayDevice = "bench-relay-device"
	roleWay         = "bench-way"
)

func TestMain(m *testing.M) {
	code, played := soaktest.Play(map[string]soaktest.Part{
		roleDevice: runProductDevice, roleRelay: serveRelay, roleRelayDevice: runRelayDevice, roleWay: serveWay,
	})
	if !played {
		code = m.Run()
	}
	os.Exit(code)
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// spawn starts a process of a benchmark and waits until it is ready. It ends with the benchmark.
func spawn(b *testing.B, role string, args ...string) *soaktest.Process {
	b.Helper()
	log := filepath.Join(b.TempDir(), "log")
	p, err := soaktest.Start(log, role, args...)
	check(b, err)
	b.Cleanup(func() {
		p.Kill()
		if raw, err := os.ReadFile(log); err == nil && b.Failed() {
			b.Logf("%s said:\n%s", role, raw)
		}
	})
	check(b, p.Ready(b.Context()))
	return p
}

// product is a running server.
type product struct {
	server  *soaktest.Process
	url     string
	token   string
	client  *throwbar.Client
	devices []throwbar.Identity
}

// startProduct starts the whole program as a server that knows some devices, none of which runs yet.
func startProduct(b *testing.B, devices int) *product {
	b.Helper()
	dir, listen := b.TempDir(), apptest.FreeAddress(b)
	p := &product{url: "http://" + listen}
	var err error
	p.devices, err = apptest.Enrol(b.Context(), store.Config{Dir: dir}, p.url, devices)
	check(b, err)
	p.server = spawn(b, soaktest.RoleServer, "serve", "--listen", listen, "--data-dir", dir, "--log-level", "warn")
	token, err := os.ReadFile(filepath.Join(dir, "owner.token"))
	check(b, err)
	p.token = strings.TrimSpace(string(token))
	p.client, err = throwbar.New(throwbar.Config{Server: p.url, Token: p.token})
	check(b, err)
	b.Cleanup(p.client.CloseIdle)
	return p
}

// startDevice starts the first device as a process that keeps its journal in a file, and returns its id.
func (p *product) startDevice(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	check(b, p.devices[0].Save(filepath.Join(dir, "identity")))
	spawn(b, roleDevice, dir)
	return p.devices[0].DeviceID
}

// startRelay starts a relay and its device, and returns a caller.
func startRelay(b *testing.B) controlv1connect.CommandServiceClient {
	b.Helper()
	listen := apptest.FreeAddress(b)
	spawn(b, roleRelay, listen)
	url := "http://" + listen
	spawn(b, roleRelayDevice, url)
	client, err := throwbar.New(throwbar.Config{Server: url, Token: "none"})
	check(b, err)
	b.Cleanup(client.CloseIdle)
	return client.Commands
}
