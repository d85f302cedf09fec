package linktest

import (
	"context"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	"throwbar.dev/throwbar/catalog"
	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/gen"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/rpc"
)

// The whole server and a fleet of real device libraries, on a network in memory and in virtual time: what takes a
// minute takes a second, and every instant is exact.

const memoryHost = "throwbar.example"

// world is a server that can be restarted, and its devices.
type world struct {
	dir     string
	network apptest.Memory
	stop    context.CancelFunc
	ended   chan error

	mu        sync.Mutex
	connected int             // guarded by mu
	instants  []time.Duration // guarded by mu; of links that were welcomed, since began
	began     time.Time       // guarded by mu
	refused   int             // guarded by mu; links that ended before they were welcomed
}

// up starts the server on the world's folder.
func (w *world) up(t *testing.T) {
	t.Helper()
	s, err := app.NewServer(t.Context(), app.Config{DataDir: w.dir, Listener: rpc.Listener{Hosts: []string{memoryHost}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w.stop, w.ended = cancel, make(chan error, 1)
	ready := make(chan struct{})
	go func() { w.ended <- s.Run(ctx, func() error { close(ready); return nil }) }()
	<-ready
	w.network.Up(s.Handler())
}

// kill takes the server away as a crash does: its links break when it can write nothing down any more.
func (w *world) kill(t *testing.T) {
	t.Helper()
	w.stop()
	if err := <-w.ended; err != nil {
		t.Error(err)
	}
	w.network.Down()
	synctest.Wait()
}

// mark begins a new measurement.
func (w *world) mark() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began, w.instants, w.refused = time.Now(), nil, 0
}

func (w *world) status(s throwbar.Status, was *bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case s.Connected:
		*was = true
		w.connected++
		w.instants = append(w.instants, time.Since(w.began))
	case *was:
		*was = false
		w.connected--
	default:
		w.refused++
	}
}

func (w *world) online() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.connected
}

// populate runs devices until the returned function is called.
func (w *world) populate(t *testing.T, identities []throwbar.Identity, spread time.Duration) func() {
	t.Helper()
	catalogue, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	var flags []*bool
	for _, identity := range identities {
		identity.Server = "http://" + memoryHost
		was := new(bool)
		flags = append(flags, was)
		d, err := throwbar.NewDevice(throwbar.DeviceConfig{
			Identity: identity, Handler: &effects{}, Actions: []string{"openTab"}, Catalogue: catalogue,
			HTTPClient: &w.network, Spread: spread, OnStatus: func(s throwbar.Status) { w.status(s, was) },
		})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { _ = d.Run(ctx) })
	}
	return func() {
		cancel()
		all.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, was := range flags { // a device that is stopped says nothing more
			if *was {
				w.connected--
			}
		}
	}
}

// until waits in virtual time.
func until(t *testing.T, what string, within time.Duration, check func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !check(); <-time.After(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("not within %v: %s", within, what)
			return // the bubble has to be left in order
		}
	}
}

// R1: a server is killed and started again. Its devices do not come back in one moment, none is turned away for long,
// and all are back within a minute.
func TestR01DevicesComeBackSpread(t *testing.T) {
	t.Parallel()
	devices := 2000
	if os.Getenv("THROWBAR_SOAK") != "" {
		devices = 10_000
	}
	dir := t.TempDir()
	identities := apptest.Seed(t, dir, devices)
	synctest.Test(t, func(t *testing.T) {
		w := &world{dir: dir}
		w.up(t)
		w.mark()
		stop := w.populate(t, identities, time.Duration(devices)*5*time.Millisecond)
		until(t, "all are connected", 90*time.Second, func() bool { return w.online() == devices })
		<-time.After(time.Minute)
		w.kill(t)
		<-time.After(3 * time.Second) // by now most have tried in vain
		w.up(t)
		w.mark()
		until(t, "all are back", time.Minute, func() bool { return w.online() == devices })
		w.mu.Lock()
		buckets := map[time.Duration]int{}
		last := time.Duration(0)
		for _, at := range w.instants {
			buckets[at.Truncate(100*time.Millisecond)]++
			last = max(last, at)
		}
		most := 0
		for _, n := range buckets {
			most = max(most, n)
		}
		t.Logf("all back after %v; at most %d in 100 ms; %d tries were refused or in vain", last.Round(time.Millisecond), most, w.refused)
		if most > devices/20 {
			t.Errorf("%d of %d devices came back within 100 ms", most, devices)
		}
		w.mu.Unlock()
		stop()
		w.kill(t)
	})
}

// R13: after a start nobody is called offline who is back within the grace, and who is not is called so once.
func TestR13ARestartCallsNobodyOffline(t *testing.T) {
	t.Parallel()
	const devices, lost = 500, 5
	dir := t.TempDir()
	identities := apptest.Seed(t, dir, devices)
	synctest.Test(t, func(t *testing.T) {
		w := &world{dir: dir}
		w.up(t)
		w.mark()
		stopLost := w.populate(t, identities[:lost], 0)
		stop := w.populate(t, identities[lost:], 2*time.Second)
		until(t, "all are connected", 30*time.Second, func() bool { return w.online() == devices })
		w.kill(t)
		stopLost()
		w.up(t)
		client, err := throwbar.New(throwbar.Config{Server: "http://" + memoryHost, Token: owner(t, dir), HTTPClient: &w.network})
		if err != nil {
			t.Fatal(err)
		}
		// Presence is honest meanwhile: what is not here is not shown as here.
		list, err := client.Devices.ListDevices(t.Context(), &controlv1.ListDevicesRequest{OnlineOnly: new(true)})
		if err != nil || len(list.GetDevices()) != 0 {
			t.Errorf("online right after the start: %d, %v", len(list.GetDevices()), err)
		}
		until(t, "the rest is back", 44*time.Second, func() bool { return w.online() == devices-lost })
		<-time.After(time.Minute)
		if on, off := deviceEvents(t, client); on != devices || off != lost {
			t.Errorf("%d online and %d offline events, want %d and %d", on, off, devices, lost)
		}
		stop()
		w.kill(t)
	})
}

// deviceEvents counts the whole log's events of devices that came and went.
func deviceEvents(t *testing.T, client *throwbar.Client) (online, offline int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	zero := uint64(0)
	stream, err := client.Commands.WatchEvents(ctx, &controlv1.WatchEventsRequest{Cursor: &zero})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	quiet := false
	for {
		msg, err := stream.Receive()
		if err != nil {
			t.Fatal(err)
		}
		switch msg.GetEvent().GetDevice().GetChange() {
		case controlv1.DeviceChange_DEVICE_CHANGE_ONLINE:
			online++
		case controlv1.DeviceChange_DEVICE_CHANGE_OFFLINE:
			offline++
		default:
		}
		if msg.GetEvent() == nil {
			if quiet { // a heartbeat: all that was there has come
				return online, offline
			}
			quiet = true
		}
	}
}
