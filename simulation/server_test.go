package simulation

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/rpc"
	"throwbar.dev/throwbar/store"
)

const serverURL = "http://server:1"

var (
	errKilled = errors.New("the server was killed")
	errDisk   = errors.New("the disk fails")
)

// server is one start of the server's process.
type server struct {
	sim     *sim
	n       int
	clock   time.Duration // how far its wall clock is off
	started time.Time
	dir     string
	stop    context.CancelFunc
	ended   chan error
	dead    bool      // guarded by world.mu; nothing that it does counts any more
	stopped time.Time // guarded by world.mu; when it was told to stop in order

	mu     sync.Mutex
	arms   []arm // guarded by mu; kills that wait for a stage of a transaction
	failed map[string]time.Time
}

// arm is a kill that waits for the next commit.
type arm struct {
	after bool // it
	fired chan struct{}
}

// startServer starts a server on a folder.
func (s *sim) startServer(dir string) {
	w := s.world
	n := len(w.servers)
	srv := &server{
		sim: s, n: n, clock: s.plan.server[n%len(s.plan.server)], started: time.Now(), dir: dir, ended: make(chan error, 1),
		failed: map[string]time.Time{},
	}
	w.mu.Lock()
	w.servers = append(w.servers, srv)
	w.noteLocked("server%d starts, its clock is off by %v", n, srv.clock)
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	srv.stop = cancel
	go func() {
		err := srv.serve(ctx)
		if ctx.Err() == nil && !srv.gone() {
			w.breakf("server%d ended by itself: %v", n, err)
		}
		srv.ended <- err
	}()
}

func (v *server) serve(ctx context.Context) error {
	s := v.sim
	cfg := app.Config{
		DataDir: v.dir, Catalogue: s.fixture.catalogue, Store: store.Config{Fault: v.fault, Readers: 2},
		Listener: rpc.Listener{Hosts: []string{"server:1"}},
		Random:   s.random, Now: func() time.Time { return time.Now().Add(v.clock) },
		Log: s.log("server", v.n, slog.LevelWarn),
	}
	cfg.Parts.Ledger = func(l dispatch.Ledger) dispatch.Ledger { return observer{l, v} }
	s.bug.into(&cfg, v)
	a, err := app.NewServer(ctx, cfg)
	if err != nil {
		if ctx.Err() == nil && !v.gone() {
			s.world.breakf("server%d does not start: %v", v.n, err)
		}
		return err
	}
	return a.Serve(ctx, s.net.listen(), func() { s.world.notef("server%d serves", v.n) })
}

// observer tells the world what is written down.
type observer struct {
	dispatch.Ledger
	server *server
}

// Accept writes commands down.
func (o observer) Accept(ctx context.Context, commands []dispatch.Acceptance) error {
	for _, c := range commands {
		o.server.sim.world.accepting(o.server, c.Record)
	}
	err := o.Ledger.Accept(ctx, commands)
	for _, c := range commands {
		if err == nil {
			o.server.sim.world.accepted(o.server, c.Record.ID)
		}
	}
	return err
}

// Finish writes ends down.
func (o observer) Finish(ctx context.Context, ends []dispatch.End) error {
	err := o.Ledger.Finish(ctx, ends)
	for _, end := range ends {
		o.server.sim.world.ended(o.server, end.Record.ID, end.Record.State, err)
	}
	return err
}

// fault is the disk: it fails for a while, or the server is killed by it.
func (v *server) fault(stage string) error {
	if v.gone() {
		return errKilled
	}
	v.mu.Lock()
	var fire *arm
	if stage == "commit" && len(v.arms) > 0 {
		fire = &v.arms[0]
		v.arms = nil
	}
	failing := time.Now().Before(v.failed[stage])
	v.mu.Unlock()
	if failing {
		return errDisk
	}
	if fire == nil {
		return nil
	}
	v.die(false)
	close(fire.fired)
	if fire.after { // this one goes through, and nobody is told
		return nil
	}
	return errKilled
}

func (v *server) gone() bool {
	w := v.sim.world
	w.mu.Lock()
	defer w.mu.Unlock()
	return v.dead
}

// die cuts the server off from the world: what it does from now on counts for nothing.
func (v *server) die(power bool) {
	w := v.sim.world
	w.mu.Lock()
	if v.dead {
		w.mu.Unlock()
		return
	}
	v.dead = true
	w.noteLocked("server%d dies", v.n)
	w.mu.Unlock()
	v.sim.net.serverGone(power)
}

// kill ends the server as kill -9 does and starts it again on what was in its folder at that moment. What the old
// process still writes goes to a folder that nobody looks at any more.
func (s *sim) kill(f fault) {
	v := s.server()
	switch f.kind {
	case killBefore, killAfter:
		a := arm{after: f.kind == killAfter, fired: make(chan struct{})}
		v.mu.Lock()
		v.arms = append(v.arms, a)
		v.mu.Unlock()
		select {
		case <-a.fired:
		case <-time.After(3 * time.Second): // nothing was written
		}
		pause(time.Nanosecond) // virtual time goes on when the commit is over
	default:
	}
	v.die(f.kind == serverPower)
	dir := s.folder()
	if err := copyFolder(v.dir, dir); err != nil {
		s.world.breakf("copy the folder of a killed server: %v", err)
		return
	}
	v.stop()
	pause(f.long)
	s.startServer(dir)
}

// restart stops the server in order and starts it again.
func (s *sim) restart(f fault) {
	v := s.server()
	s.world.mu.Lock()
	v.stopped = time.Now()
	s.world.mu.Unlock()
	v.stop()
	if err := <-v.ended; err != nil {
		s.world.notef("server%d ended: %v", v.n, err)
	}
	v.ended <- nil
	pause(f.long)
	s.startServer(v.dir)
}

func (s *sim) server() *server {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	return s.world.servers[len(s.world.servers)-1]
}

func (v *server) failDisk(stage string, long time.Duration) {
	until := time.Now().Add(long)
	v.mu.Lock()
	v.failed[stage] = later(v.failed[stage], until)
	v.mu.Unlock()
	w := v.sim.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.diskBad = append(w.diskBad, span{time.Now(), until})
}

// serverGone closes the server's side of all connections. Without power nobody is told.
func (n *network) serverGone(power bool) {
	n.mu.Lock()
	var all []*pair
	for _, h := range n.hosts {
		all = append(all, h.conns...)
	}
	l := n.listener
	n.mu.Unlock()
	if l != nil {
		_ = l.Close()
	}
	for _, p := range all {
		if power {
			p.server.vanish()
		} else {
			_ = p.server.Close()
		}
	}
}

// copyFolder copies what a killed server leaves behind. The write-ahead log goes first: a server that has lost its
// listener may close its store meanwhile, which moves the log into the database and removes it. What is copied of the log
// covers whatever the copy of the database has of that.
func copyFolder(from, to string) error {
	for _, name := range []string{"owner.token", "throwbar.db-wal", "throwbar.db"} {
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
