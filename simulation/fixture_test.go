package simulation

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/catalog"
	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/gen"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/rpc"
)

// fixture is what every seed begins with: a migrated database in which the devices are paired.
type fixture struct {
	dir        string
	owner      string
	identities []throwbar.Identity
	cursor     uint64 // of the last event
	catalogue  *catalog.Catalogue
}

// fixtures makes one fixture for all tests of a run. It is made in real time: before the first bubble.
var fixtures struct {
	once sync.Once
	made *fixture
	err  error
}

func loadFixture(t *testing.T) *fixture {
	t.Helper()
	fixtures.once.Do(func() { fixtures.made, fixtures.err = newFixture() })
	if fixtures.err != nil {
		t.Fatal(fixtures.err)
	}
	return fixtures.made
}

func newFixture() (*fixture, error) {
	dir, err := os.MkdirTemp(memory(), "simulation-*")
	if err != nil {
		return nil, err
	}
	f := &fixture{dir: dir}
	if f.catalogue, err = catalog.New(gen.Descriptors); err != nil {
		return nil, err
	}
	server, err := app.NewServer(background(), app.Config{
		DataDir: dir, Random: newRandomness(0), Listener: rpc.Listener{Hosts: []string{"server:1"}},
		Now: func() time.Time { return time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		return nil, err
	}
	n := newNetwork()
	ctx, stop := context.WithCancel(background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- server.Serve(ctx, n.listen(), func() { close(ready) }) }()
	<-ready
	err = f.pair(ctx, n.host("fixture"))
	stop()
	if ended := <-ended; err == nil {
		err = ended
	}
	return f, err
}

// memory is a folder in memory, where there is one: a seed forces some dozens of writes to the disk, and none of its
// kills is a power cut that would need that.
func memory() string {
	if dir := os.Getenv("THROWBAR_SIM_DIR"); dir != "" {
		return dir
	}
	const shared = "/dev/shm"
	if dir, err := os.MkdirTemp(shared, "simulation-*"); err == nil {
		_ = os.Remove(dir)
		return shared
	}
	return ""
}

func (f *fixture) pair(ctx context.Context, h *host) error {
	raw, err := os.ReadFile(filepath.Join(f.dir, "owner.token"))
	if err != nil {
		return err
	}
	f.owner = strings.TrimSpace(string(raw))
	web := callerHTTP(h)
	defer web.CloseIdleConnections()
	client, err := throwbar.New(throwbar.Config{Server: serverURL, Token: f.owner, HTTPClient: web})
	if err != nil {
		return err
	}
	for i := range devices {
		code, err := client.Devices.CreatePairingCode(ctx, &controlv1.CreatePairingCodeRequest{})
		if err != nil {
			return err
		}
		identity, err := client.Pair(ctx, throwbar.Pairing{
			Code: code.GetCode(), Name: deviceHost(i), Kind: devicev1.Kind_KIND_BROWSER,
		})
		if err != nil {
			return err
		}
		f.identities = append(f.identities, identity)
		f.cursor++ // each pairing is an event
	}
	return nil
}

func (f *fixture) remove() { _ = os.RemoveAll(f.dir) }
