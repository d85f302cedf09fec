package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// device is a machine with a browser, on which a program starts again and again.
type device struct {
	sim      *sim
	n        int
	identity throwbar.Identity
	host     *host
	browser  *browser
	folder   string
	halt     chan struct{} // closed when it is not started any more
	over     chan struct{} // closed when it has ended

	mu      sync.Mutex
	passed  [places]int // guarded by mu; how often commands came by
	current *process    // guarded by mu; nil while none runs
	starts  int         // guarded by mu

	downs []span           // guarded by world.mu; from when the program went down until it was
	left  []throwbar.Entry // what the journal has in the end; written before over is closed
}

// process is one start of the device's program.
type process struct {
	device *device
	n      int
	dead   bool          // guarded by world.mu; nothing that it does counts any more
	down   time.Duration // guarded by device.mu; how long until the next start
	stop   context.CancelFunc
	file   *throwbar.FileJournal

	writing sync.Mutex // held while the journal is written, so that a kill falls between two lines
}

var errDead = errors.New("this process is dead")

func (p *process) alive() bool {
	w := p.device.sim.world
	w.mu.Lock()
	defer w.mu.Unlock()
	return !p.dead
}

// live starts the program until the simulation ends.
func (d *device) live() {
	defer close(d.over)
	var ends sync.WaitGroup
	defer ends.Wait()
	for {
		p, err := d.start()
		if err != nil {
			d.sim.world.breakf("device%d does not start: %v", d.n, err)
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		p.stop = cancel
		ended := make(chan error, 1)
		program, err := throwbar.NewDevice(d.config(p))
		if err != nil {
			d.sim.world.breakf("device%d: %v", d.n, err)
			cancel()
			return
		}
		d.mu.Lock()
		d.current = p
		d.mu.Unlock()
		ends.Go(func() { ended <- program.Run(ctx) })
		stopped := false
		select {
		case <-ctx.Done(): // killed or stopped by a fault; what is killed is not waited for
			if p.alive() {
				<-ended
			}
		case err := <-ended:
			ended <- err
			stopped = true
			d.sim.world.breakf("device%d.%d ended by itself: %v", d.n, p.n, err)
		case <-d.halt:
			stopped = true
		}
		cancel()
		if p.alive() && stopped {
			<-ended
		}
		d.mu.Lock()
		d.current = nil
		down := p.down
		d.mu.Unlock()
		if stopped {
			d.left = p.file.Entries()
			_ = p.file.Close()
			return
		}
		d.isDown()
		d.sim.world.notef("device%d.%d is down for %v", d.n, p.n, down)
		pause(down)
		_ = p.file.Close()
	}
}

func (d *device) config(p *process) throwbar.DeviceConfig {
	random := rand.New(rand.NewPCG(d.sim.plan.seed, uint64(1000*(d.n+1)+p.n)))
	var mu sync.Mutex
	cfg := throwbar.DeviceConfig{
		Identity: d.identity, Actions: []string{"openTab", "closeTabs", "activateTab"},
		BootTag: bootTag, State: d.browser, Catalogue: d.sim.fixture.catalogue,
		Journal: d.sim.bug.journal(&journal{inner: p.file, process: p}), Transport: d.sim.plan.transports[d.n],
		HTTPClient: linkClient(d.host, p.alive), Log: d.sim.log(deviceHost(d.n), p.n, slog.LevelInfo),
		Jitter: func() float64 {
			mu.Lock()
			defer mu.Unlock()
			return random.Float64()
		},
	}
	h := &handler{process: p, browser: d.browser}
	cfg.Handler = h
	if d.sim.plan.reconciling[d.n] {
		cfg.Handler = reader{h}
	}
	return cfg
}

// linkClient is the device library's own client, but for the network.
func linkClient(h *host, alive func() bool) *http.Client {
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return h.dial(ctx, alive) },
		Protocols:         protocols,
		DisableKeepAlives: true,
		HTTP2:             &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}}
}

// start opens the journal that the last start has left, as a clock reads it that may have changed since.
func (d *device) start() (*process, error) {
	d.mu.Lock()
	p := &process{device: d, n: d.starts}
	d.starts++
	d.mu.Unlock()
	clocks := d.sim.plan.clocks[d.n]
	now := clocks[p.n%len(clocks)]
	path := filepath.Join(d.folder, "journal")
	if p.n > 0 {
		if err := shift(path, clocks[(p.n-1)%len(clocks)]-now); err != nil {
			return nil, err
		}
	}
	var err error
	p.file, err = throwbar.OpenJournal(path)
	d.sim.world.notef("device%d.%d starts, its clock is off by %v, its journal has %d entries", d.n, p.n, now, len(p.file.Entries()))
	return p, err
}

// shift moves the times in a journal: a clock that is set forward by an hour finds all of them an hour older.
func shift(path string, by time.Duration) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for line := range bytes.Lines(raw) {
		var fields map[string]any
		if json.Unmarshal(line, &fields) == nil {
			if text, ok := fields["at"].(string); ok {
				at, err := time.Parse(time.RFC3339Nano, text)
				if err != nil {
					return err
				}
				fields["at"] = at.Add(by)
				if line, err = json.Marshal(fields); err != nil {
					return err
				}
				line = append(line, '\n')
			}
		}
		out.Write(line)
	}
	return os.WriteFile(path, out.Bytes(), 0o600)
}

// kill ends the program as kill -9 does, or the machine as a power cut does. Down is how long until the next start.
func (p *process) kill(power, torn bool, down time.Duration) {
	d := p.device
	w := d.sim.world
	p.writing.Lock()
	defer p.writing.Unlock()
	w.mu.Lock()
	if p.dead {
		w.mu.Unlock()
		return
	}
	p.dead = true
	d.downs = append(d.downs, span{time.Now(), time.Now()})
	w.noteLocked("device%d.%d dies (power cut %v)", d.n, p.n, power)
	w.mu.Unlock()
	d.mu.Lock()
	p.down = down
	d.mu.Unlock()
	for _, c := range d.host.all() {
		if power {
			c.client.vanish()
		} else {
			_ = c.client.Close()
		}
	}
	if torn { // the process was killed while it wrote: what it wrote is not whole
		path := filepath.Join(d.folder, "journal")
		if f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
			_, _ = f.WriteString(`{"op":"finish","id":"x","payl`)
			_ = f.Close()
		}
	}
	p.stop()
}

// isDown ends the span of a program that went down: one that is stopped in order may wait for a server that takes in
// nothing, and takes on nothing itself meanwhile.
func (d *device) isDown() {
	w := d.sim.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(d.downs); n > 0 {
		d.downs[n-1].to = time.Now()
	}
}

// kill ends the device's program, if it runs.
func (d *device) kill(power bool, down time.Duration) {
	d.mu.Lock()
	p := d.current
	d.mu.Unlock()
	if p != nil {
		p.kill(power, false, down)
	}
}

// stop ends the device's program in order, if it runs.
func (d *device) stop(down time.Duration) {
	d.mu.Lock()
	p := d.current
	d.mu.Unlock()
	if p != nil {
		w := d.sim.world
		w.mu.Lock()
		d.downs = append(d.downs, span{time.Now(), time.Now()})
		w.noteLocked("device%d.%d is stopped", d.n, p.n)
		w.mu.Unlock()
		d.mu.Lock()
		p.down = down
		d.mu.Unlock()
		p.stop()
	}
}

// pass is where a kill in mid-command may happen.
func (p *process) pass(at place) {
	d := p.device
	d.mu.Lock()
	d.passed[at]++
	var kill *point
	for _, k := range d.sim.plan.points[d.n] {
		if k.place == at && k.nth == d.passed[at] {
			kill = &k
		}
	}
	d.mu.Unlock()
	if kill != nil && !d.sim.calm() {
		d.sim.world.notef("device%d.%d is killed %s", d.n, p.n, at)
		p.kill(false, kill.torn, kill.down)
	}
}

// journal is the device's real journal until its process is dead.
type journal struct {
	inner   throwbar.Journal
	process *process
}

// Entries are all entries.
func (j *journal) Entries() []throwbar.Entry { return j.inner.Entries() }

// Lookup finds an entry.
func (j *journal) Lookup(id string) (throwbar.Entry, bool) { return j.inner.Lookup(id) }

func (j *journal) write(before, after place, write func() error) error {
	j.process.pass(before)
	j.process.writing.Lock()
	if !j.process.alive() {
		j.process.writing.Unlock()
		return errDead
	}
	err := write()
	j.process.writing.Unlock()
	j.process.pass(after)
	if !j.process.alive() {
		return errDead
	}
	return err
}

// Start writes a start.
func (j *journal) Start(id string, action *commandv1.Action) error {
	return j.write(beforeStart, afterStart, func() error { return j.inner.Start(id, action) })
}

// Finish writes an outcome.
func (j *journal) Finish(outcome *devicev1.Outcome) error {
	return j.write(beforeFinish, afterFinish, func() error { return j.inner.Finish(outcome) })
}

// Receipt writes receipts.
func (j *journal) Receipt(ids []string) error {
	j.process.writing.Lock()
	if !j.process.alive() {
		j.process.writing.Unlock()
		return errDead
	}
	err := j.inner.Receipt(ids)
	j.process.writing.Unlock()
	j.process.pass(afterReceipt)
	return err
}

// Dial numbers a dial.
func (j *journal) Dial() (uint64, error) {
	j.process.writing.Lock()
	defer j.process.writing.Unlock()
	if !j.process.alive() {
		return 0, errDead
	}
	return j.inner.Dial()
}

func (d *device) String() string { return fmt.Sprint("device", d.n) }
