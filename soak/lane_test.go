package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"throwbar.dev/throwbar/app/apptest"
	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/soak/soaktest"
)

const (
	devices  = 3
	dispatch = 6 // callers that wait for each outcome
	submit   = 2 // callers that do not
	watch    = 3
)

// lane is one server with its devices, callers and watchers, through many lives.
type lane struct {
	t      *testing.T
	dir    string
	engine engine
	random *rand.Rand

	address string
	server  *soaktest.Process
	devices []*deviceLife
	ids     []string
	token   string

	told  told
	calls sync.WaitGroup
	stop  chan struct{} // closed when callers send nothing more
	watch []*watcher
}

// deviceLife is one device through many lives.
type deviceLife struct {
	dir     string
	process *soaktest.Process
}

// newLane enrols devices and starts everything.
func newLane(t *testing.T, seed uint64, open func(*testing.T, string) engine) *lane {
	t.Helper()
	l := &lane{t: t, dir: folder(t), random: rand.New(rand.NewPCG(seed, 0)), stop: make(chan struct{})}
	l.engine = open(t, l.data())
	l.address = apptest.FreeAddress(t)
	identities, err := apptest.Enrol(t.Context(), l.engine.config(), l.url(), devices)
	check(t, err)
	t.Cleanup(l.killAll)
	l.startServer()
	check(t, l.server.Ready(t.Context()))
	raw, err := os.ReadFile(filepath.Join(l.data(), "owner.token"))
	check(t, err)
	l.token = strings.TrimSpace(string(raw))
	for i, identity := range identities {
		d := &deviceLife{dir: filepath.Join(l.dir, fmt.Sprintf("device-%d", i))}
		check(t, os.MkdirAll(d.dir, 0o700))
		check(t, identity.Save(filepath.Join(d.dir, identityFile)))
		l.ids = append(l.ids, identity.DeviceID)
		l.devices = append(l.devices, d)
		l.startDevice(d)
	}
	return l
}

func (l *lane) url() string  { return "http://" + l.address }
func (l *lane) data() string { return filepath.Join(l.dir, "data") }

func (l *lane) startServer() {
	l.t.Helper()
	args := append([]string{"serve", "--listen", l.address, "--data-dir", l.data(), "--log-level", "warn"}, l.engine.flags()...)
	var err error
	l.server, err = soaktest.Start(filepath.Join(l.dir, "server.log"), soaktest.RoleServer, args...)
	check(l.t, err)
}

func (l *lane) startDevice(d *deviceLife) {
	l.t.Helper()
	var err error
	d.process, err = soaktest.Start(filepath.Join(d.dir, "log"), roleDevice, d.dir)
	check(l.t, err)
	check(l.t, d.process.Ready(l.t.Context()))
}

// killAll is for a test that ends early; what has ended already does not mind.
func (l *lane) killAll() {
	if l.server != nil {
		l.server.Kill()
	}
	for _, d := range l.devices {
		d.process.Kill()
	}
}

func (l *lane) client() *throwbar.Client {
	l.t.Helper()
	c, err := throwbar.New(throwbar.Config{Server: l.url(), Token: l.token})
	check(l.t, err)
	l.t.Cleanup(c.CloseIdle)
	return c
}

// load starts callers and watchers. Watchers read from the beginning of the log.
func (l *lane) load() {
	for n := range dispatch + submit {
		c := &caller{client: l.client(), told: &l.told, device: l.ids[n%len(l.ids)], stop: l.stop}
		l.calls.Go(func() { c.run(l.t.Context(), n < dispatch) })
	}
	for range watch {
		w := newWatcher(l.client(), 0)
		l.watch = append(l.watch, w)
		go w.run(l.t.Context())
	}
}

// working waits until outcomes come back again.
func (l *lane) working() {
	l.t.Helper()
	from := l.told.successes.Load()
	until(l.t, soaktest.Patience, "callers hear of successes", func() bool { return l.told.successes.Load() >= from+10 })
}

// moment is a part of a time, by the seed.
func (l *lane) moment(most time.Duration) time.Duration {
	return time.Duration(l.random.Int64N(int64(most)))
}

// killServer kills the server and starts it again. One life in three is cut short while it starts.
func (l *lane) killServer() {
	l.server.Kill()
	wait(l.t, l.moment(200*time.Millisecond))
	l.startServer()
	for l.random.IntN(3) == 0 {
		wait(l.t, l.moment(800*time.Millisecond))
		l.server.Kill()
		l.startServer()
	}
	check(l.t, l.server.Ready(l.t.Context()))
}

// killDevice kills a device and starts it again.
func (l *lane) killDevice() {
	d := l.devices[l.random.IntN(len(l.devices))]
	d.process.Kill()
	wait(l.t, l.moment(200*time.Millisecond))
	l.startDevice(d)
}

// quiet ends the load, waits until every command has ended, and stops everything in good order.
func (l *lane) quiet(ctx context.Context) {
	l.t.Helper()
	close(l.stop)
	l.calls.Wait()
	c := l.client()
	until(l.t, soaktest.Patience, "every command has ended", func() bool { return pending(ctx, c) == 0 })
	last := lastWords(l.t, c, l.ids)
	for _, w := range l.watch {
		check(l.t, w.readTo(ctx, last))
	}
	for _, d := range l.devices {
		check(l.t, d.process.Stop())
	}
	check(l.t, l.server.Stop())
}
