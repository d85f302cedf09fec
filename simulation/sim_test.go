package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	throwbar "throwbar.dev/throwbar/clients/go"
)

// sim is one seed's run.
type sim struct {
	plan    *plan
	bug     *bug
	fixture *fixture
	folders string
	world   *world
	net     *network
	random  *randomness
	devices []*device
	callers []*throwbar.Client
	webs    []*http.Client // of the callers
	asked   sync.WaitGroup // requests and faults under way

	mu    sync.Mutex
	made  int  // guarded by mu; folders
	quiet bool // guarded by mu; nothing goes wrong any more
}

// randomness is what the server makes its ids from.
type randomness struct {
	mu     sync.Mutex
	source *rand.ChaCha8 // guarded by mu
}

// Read fills b.
func (r *randomness) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Read(b)
}

func newRandomness(seed uint64) *randomness {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	return &randomness{source: rand.NewChaCha8(key)}
}

// pause lets virtual time go by.
func pause(d time.Duration) { time.Sleep(d) } // synctest

func (s *sim) folder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	dir := filepath.Join(s.folders, fmt.Sprint(s.made))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.world.breakf("make a folder: %v", err)
	}
	return dir
}

// calm says whether nothing goes wrong any more.
func (s *sim) calm() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quiet
}

func (s *sim) log(who string, n int, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(logWriter{s.world, fmt.Sprint(who, ".", n)}, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// simulate runs a seed and returns what it broke, and its trace.
func simulate(t *testing.T, f *fixture, folders string, p *plan, b *bug) (broken, trace []string) {
	t.Helper()
	s := &sim{plan: p, bug: b, fixture: f, folders: folders, random: newRandomness(p.seed)}
	defer func() { // a goroutine that never ends, or one that waits for ever
		if cause := recover(); cause != nil {
			s.world.breakf("%v", cause)
		}
		broken, trace = s.world.broken, s.world.lines
	}()
	synctest.Test(t, func(*testing.T) {
		s.world, s.net = newWorld(), newNetwork()
		s.run()
	})
	return nil, nil
}

func (s *sim) run() {
	w := s.world
	for name, latency := range s.plan.hosts {
		s.net.host(name).latency = latency
	}
	for i, r := range s.plan.requests {
		w.notef("plan: request %d at %v", i, r)
	}
	for _, f := range s.plan.faults {
		w.notef("plan: fault at %v", f)
	}
	for i, points := range s.plan.points {
		for _, k := range points {
			w.notef("plan: device%d is killed %s, time %d, torn %v, down %v", i, k.place, k.nth, k.torn, k.down)
		}
	}
	dir := s.folder()
	if err := copyFolder(s.fixture.dir, dir); err != nil {
		w.breakf("copy the fixture: %v", err)
		return
	}
	s.startServer(dir)
	for i := range callers {
		s.callers = append(s.callers, s.newCaller(callerHost(i)))
	}
	for i := range devices {
		s.startDevice(i)
	}
	watching := s.watch()
	for i := range s.plan.requests {
		s.asked.Go(func() { s.ask(i) })
	}
	s.asked.Go(s.goWrong)
	pause(horizon)
	s.heal()
	pause(quiet)
	s.asked.Wait()
	s.probe()
	final := s.collect()
	watching()
	s.stopAll()
	s.check(final)
}

func (s *sim) startDevice(i int) {
	d := &device{
		sim: s, n: i, identity: s.fixture.identities[i], host: s.net.host(deviceHost(i)), folder: s.folder(),
		halt: make(chan struct{}), over: make(chan struct{}),
	}
	d.browser = newBrowser(d.identity.DeviceID)
	s.devices = append(s.devices, d)
	go d.live()
}

// goWrong is the seed's faults.
func (s *sim) goWrong() {
	restarts := make(chan struct{}, 1) // one of the server's ends at a time; a mutex would stop virtual time
	for _, f := range s.plan.faults {
		pause(time.Until(s.world.start.Add(f.at)))
		s.world.notef("fault: %v", f)
		switch f.kind {
		case serverKill, serverPower, killBefore, killAfter, serverStop:
			s.asked.Go(func() {
				restarts <- struct{}{}
				defer func() { <-restarts }()
				if f.kind == serverStop {
					s.restart(f)
				} else {
					s.kill(f)
				}
			})
		case deviceKill, devicePower:
			s.devices[f.n%devices].kill(f.kind == devicePower, f.long)
		case deviceStop:
			s.devices[f.n%devices].stop(f.long)
		case diskBegin:
			s.server().failDisk("begin", f.long)
		case diskCommit:
			s.server().failDisk("commit", f.long)
		default:
			s.net.host(f.host).goWrong(f)
		}
	}
}

// goWrong is a fault of the road between a host and the server.
func (h *host) goWrong(f fault) {
	n := h.net
	switch f.kind {
	case freeze, refuse, slow, late:
		n.mu.Lock()
		defer n.mu.Unlock()
		until := time.Now().Add(f.long)
		switch f.kind {
		case late:
			h.flaky = later(h.flaky, until)
		case refuse:
			h.refused = later(h.refused, until)
		case slow:
			before := h.latency
			h.latency = f.long / 20
			time.AfterFunc(f.long, func() {
				n.mu.Lock()
				defer n.mu.Unlock()
				h.latency = before
			})
		default:
			h.frozen[f.dir] = later(h.frozen[f.dir], until)
			if f.both {
				h.frozen[1-f.dir] = later(h.frozen[1-f.dir], until)
			}
		}
		return
	default:
	}
	for _, p := range h.all() {
		switch f.kind {
		case cutBoth:
			p.cutAfter(f.dir, f.n, p.reset)
		case cutServer:
			p.cutAfter(f.dir, f.n, func() { p.resetOne(up) })
		case cutHost:
			p.cutAfter(f.dir, f.n, func() { p.resetOne(down) })
		case stall:
			p.stall(f.dir, f.long)
			if f.both {
				p.stall(1-f.dir, f.long)
			}
		default:
			p.goDark()
		}
	}
}

// heal ends all faults. Connections that are dead and not noticed to be stay so: finding out is up to their ends.
func (s *sim) heal() {
	s.mu.Lock()
	s.quiet = true
	s.mu.Unlock()
	s.world.notef("nothing goes wrong any more")
	s.net.mu.Lock()
	now := time.Now()
	var flows []*flow
	for _, h := range s.net.hosts {
		h.frozen = [2]time.Time{earlierOf(h.frozen[0], now), earlierOf(h.frozen[1], now)}
		h.refused, h.flaky = time.Time{}, time.Time{}
		h.latency = min(h.latency, 50*time.Millisecond)
		for _, p := range h.conns {
			flows = append(flows, p.flows[:]...)
		}
	}
	s.net.mu.Unlock()
	for _, f := range flows { // a flow's lock comes before the network's
		f.heal()
	}
}

func earlierOf(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

func (s *sim) stopAll() {
	for _, d := range s.devices {
		close(d.halt)
	}
	for _, d := range s.devices {
		<-d.over
	}
	s.world.mu.Lock()
	servers := s.world.servers
	s.world.mu.Unlock()
	for _, v := range servers {
		v.stop()
		<-v.ended
	}
	for _, c := range s.webs {
		c.CloseIdleConnections()
	}
	s.net.closeAll()
}

// closeAll ends what is still open: connections of which no end knew that it is dead.
func (n *network) closeAll() {
	n.mu.Lock()
	var all []*pair
	for _, h := range n.hosts {
		all = append(all, h.conns...)
	}
	n.mu.Unlock()
	for _, p := range all {
		p.reset()
	}
}

func background() context.Context { return context.Background() }
