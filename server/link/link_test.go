package link_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/link"
)

// directory gives out epochs and remembers who is here.
type directory struct {
	mu     sync.Mutex
	epoch  map[string]uint64
	online map[string]uint64 // epoch of the link that made it so
	events []string
}

func (d *directory) Online(_ context.Context, device string, _ *devicev1.Hello) (string, uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.epoch[device]++
	d.online[device] = d.epoch[device]
	return device, d.epoch[device], nil
}

func (d *directory) Offline(device string, epoch uint64) { d.gone(device, epoch, "offline") }

// Condition notes what is said, whoever says it: whose word counts is the directory's matter.
func (d *directory) Condition(device string, epoch uint64, c *devicev1.Condition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, fmt.Sprintf("%s of link %d: %v", device, epoch, c.GetPaused()))
}

func (d *directory) Away(device string, epoch uint64) { d.gone(device, epoch, "away") }

func (d *directory) gone(device string, epoch uint64, what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.online[device] == epoch {
		delete(d.online, device)
		d.events = append(d.events, what)
	}
}

func (d *directory) is(device string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.online[device] != 0
}

// commands is a dispatcher that sends something whenever it is told something, with its lock held, as the real one does.
type commands struct {
	hub *link.Hub
	mu  sync.Mutex
	n   int

	displaced []string // devices
}

func (c *commands) send(device string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	if epoch := c.hub.Connected(device); epoch != 0 {
		c.hub.Send(device, epoch, command(strconv.Itoa(c.n)))
	}
}

func (c *commands) Reconnected(string, []string, []*devicev1.Outcome) []string { return nil }
func (c *commands) Displaced(device string, _ []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.displaced = append(c.displaced, device)
}
func (c *commands) Attached(device string, _ uint64, _ []string) { c.send(device) }
func (c *commands) Acknowledged(device, _ string)                { c.send(device) }
func (c *commands) Outcome(device string, _ *devicev1.Outcome)   { c.send(device) }

type state struct{}

func (state) Attach(string, string, uint64) bool                          { return true }
func (state) Snapshot(string, uint64, *devicev1.Snapshot) (string, error) { return "", nil }
func (state) Detach(string, uint64)                                       {}
func (state) Delta(_ string, _ uint64, d *devicev1.Delta) (resync string, err error) {
	if d.GetSequence()%3 == 0 {
		return "a gap", nil
	}
	if d.GetSequence()%7 == 0 {
		return "", fault.New(fault.Invalid, "not its own")
	}
	return "", nil
}

func command(id string) *devicev1.ServerFrame {
	return &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Command{Command: &devicev1.CommandRequest{CommandId: id}}}
}

func never() bool { return false }

// wire is a device's end in memory.
type wire struct {
	stuck chan struct{} // Send waits for it, or for the end
	hung  chan struct{}
	once  sync.Once

	mu     sync.Mutex
	frames []*devicev1.ServerFrame
	active atomic.Int32
	twice  atomic.Bool // two Sends at a time
}

func newWire() *wire { return &wire{hung: make(chan struct{})} }

func (w *wire) Send(frames []*devicev1.ServerFrame) error {
	if w.active.Add(1) != 1 {
		w.twice.Store(true)
	}
	defer w.active.Add(-1)
	if w.stuck != nil {
		<-w.stuck
		return errors.New("the deadline passed")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frames = append(w.frames, frames...)
	return nil
}

func (w *wire) Hurry() {
	if w.stuck != nil {
		w.once.Do(func() { close(w.stuck) })
	}
}

func (w *wire) Hangup() { close(w.hung) }

func (w *wire) got() []*devicev1.ServerFrame {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*devicev1.ServerFrame(nil), w.frames...)
}

// end is the reason that the device was told last.
func (w *wire) end() devicev1.EndReason {
	frames := w.got()
	if len(frames) == 0 {
		return 0
	}
	return frames[len(frames)-1].GetEnd().GetReason()
}

type bench struct {
	hub       *link.Hub
	directory *directory
	commands  *commands
	all       sync.WaitGroup
}

func newBench(change func(*link.Config)) *bench {
	d := &directory{epoch: map[string]uint64{}, online: map[string]uint64{}}
	var ids atomic.Int64
	cfg := link.Config{
		State: state{}, Directory: d, Log: slog.New(slog.DiscardHandler), AdmitPerSecond: 1e6,
		Heartbeat: time.Hour, Lease: 3 * time.Hour, // a machine that stands still for a minute must not end a link
		NewID: func() string { return strconv.FormatInt(ids.Add(1), 10) },
	}
	if change != nil {
		change(&cfg)
	}
	b := &bench{hub: link.New(cfg), directory: d}
	b.commands = &commands{hub: b.hub}
	b.hub.Bind(b.commands)
	return b
}

// open opens a link and serves it until it ends.
func (b *bench) open(t testing.TB, device string, w *wire) *link.Link {
	t.Helper()
	l, err := b.hub.Open(t.Context(), device, link.Bidi, &devicev1.Hello{DeviceId: device}, never)
	if err != nil {
		return nil
	}
	b.all.Go(func() {
		_ = l.Serve(context.Background(), w, func() error { <-w.hung; return nil })
		if w.twice.Load() {
			t.Error("two frames were written at a time")
		}
	})
	return l
}

// R2: links of one device begin and end in any order. The newest one stays, and its presence, whatever the clean-up of
// an older one does.
func TestR02ACleanUpRemovesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			b := newBench(nil)
			var links []*link.Link
			var wires []*wire
			goodbye := &devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Goodbye{Goodbye: &devicev1.Goodbye{}}}
			ended := map[int]bool{}
			for range 3 + random.IntN(6) {
				if len(links) == 0 || random.IntN(2) == 0 {
					w := newWire()
					links, wires = append(links, b.open(t, "d", w)), append(wires, w)
					continue
				}
				n := random.IntN(len(links))
				_ = links[n].Receive(goodbye) // an old one's goodbye does not count
				ended[n] = true
				if random.IntN(2) == 0 {
					synctest.Wait()
				}
			}
			synctest.Wait()
			last := len(links) - 1
			if want := !ended[last]; b.directory.is("d") != want || (b.hub.Connected("d") == links[last].Epoch) != want {
				t.Errorf("seed %d: online %v, connected %d, the newest link is %d and ended %v", seed,
					b.directory.is("d"), b.hub.Connected("d"), links[last].Epoch, ended[last])
			}
			for n, w := range wires {
				if n < last && w.end() != devicev1.EndReason_END_REASON_REPLACED && !ended[n] {
					t.Errorf("seed %d: link %d was told %v", seed, n, w.end())
				}
			}
			if !ended[last] {
				before := len(wires[last].got())
				if !b.hub.Send("d", links[last].Epoch, command("x")) {
					t.Errorf("seed %d: a command does not reach the newest link", seed)
				}
				synctest.Wait()
				if len(wires[last].got()) != before+1 {
					t.Errorf("seed %d: the command was not written", seed)
				}
			}
			b.hub.Revoke("d")
			b.all.Wait()
		})
	}
}

// TestADeviceSaysOnlyItsOwnCondition: the frame has no id of a device; the link's counts.
func TestADeviceSaysOnlyItsOwnCondition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(nil)
		first, second := b.open(t, "one", newWire()), b.open(t, "two", newWire())
		frame := func(paused bool) *devicev1.DeviceFrame {
			return &devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Condition{Condition: &devicev1.Condition{Paused: paused}}}
		}
		if err := errors.Join(second.Receive(frame(true)), first.Receive(frame(true)), second.Receive(frame(false))); err != nil {
			t.Fatal(err)
		}
		b.hub.Revoke("two")
		synctest.Wait()
		if err := second.Receive(frame(true)); err == nil {
			t.Error("a link that has ended still says something")
		}
		want := []string{"two of link 1: true", "one of link 1: true", "two of link 1: false", "offline"}
		if got := b.directory.events; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		b.hub.Revoke("one")
		b.all.Wait()
	})
}

// R7: with devices that take nothing, whatever else is done goes on at once: no lock is held while a link waits.
func TestR07NothingWaitsForAStuckDevice(t *testing.T) {
	t.Parallel()
	b := newBench(nil)
	var stuck []*wire
	for n := range 8 {
		w := newWire()
		w.stuck = make(chan struct{})
		b.open(t, "stuck"+strconv.Itoa(n), w)
		stuck = append(stuck, w)
	}
	var all sync.WaitGroup
	for g := range uint64(8) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(g, 7))
			device := func() string {
				if random.IntN(2) == 0 {
					return "stuck" + strconv.Itoa(random.IntN(8))
				}
				return "quick" + strconv.Itoa(random.IntN(8))
			}
			var mine []*link.Link
			for range 1000 {
				d := device()
				switch random.IntN(6) {
				case 0:
					if l := b.open(t, "quick"+strconv.Itoa(random.IntN(8)), newWire()); l != nil {
						mine = append(mine, l)
					}
				case 1:
					b.hub.Send(d, b.hub.Connected(d), command("x"))
				case 2:
					b.hub.Load()
				case 3:
					_, _ = b.hub.Find(d, "1")
				case 4:
					b.hub.Revoke("quick" + strconv.Itoa(random.IntN(8)))
				default:
					if len(mine) > 0 {
						_ = mine[random.IntN(len(mine))].Receive(&devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Outcome{}})
					}
				}
			}
		})
	}
	all.Wait() // would not return if any of them waited for a stuck device
	for n, w := range stuck {
		if b.hub.Connected("stuck"+strconv.Itoa(n)) == 0 { // more than it may hold: its link was ended, without waiting
			continue
		}
		w.Hurry()
	}
	b.hub.Drain(0)
	b.all.Wait()
}

// A device that takes nothing holds a bounded number of frames and of bytes, and then loses its link.
func TestAnOutboxIsBounded(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"frames": 1, "bytes": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(nil)
			w := newWire()
			w.stuck = make(chan struct{})
			l := b.open(t, "d", w)
			text := string(make([]byte, size))
			n := 0
			for b.hub.Send("d", l.Epoch, command(text)) {
				n++
			}
			<-l.Done()
			if most := map[string]int{"frames": 2048 + 256, "bytes": 12}[name]; n > most || n < 7 {
				t.Errorf("%d frames of %d bytes were taken", n, size)
			}
			b.all.Wait()
			if b.hub.Load().Frames != 0 || b.directory.is("d") {
				t.Error("something is left")
			}
		})
	}
}

// The lease is kept by what the device says on the link, counted on the server's clock; it ends exactly then.
func TestASilentLinkEndsWithItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(func(c *link.Config) { c.Heartbeat, c.Lease = link.Heartbeat, link.Lease })
		w := newWire()
		l := b.open(t, "d", w)
		for range 10 {
			<-time.After(link.Lease - time.Second)
			if err := l.Receive(&devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Heartbeat{}}); err != nil {
				t.Fatal(err)
			}
		}
		heard := time.Now()
		<-l.Done()
		synctest.Wait()
		if silent := time.Since(heard); silent < link.Lease || silent > link.Lease+time.Second || b.directory.is("d") {
			t.Errorf("ended after %v of silence, online %v", silent, b.directory.is("d"))
		}
		b.all.Wait()
	})
}

// A server that stops tells each device another time to come back, over as long as it takes to admit them, and calls
// none of them offline.
func TestADrainIsSpread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const devices = 1000
		b := newBench(func(c *link.Config) { c.AdmitPerSecond = 50 })
		var wires []*wire
		for n := range devices {
			w := newWire()
			b.open(t, strconv.Itoa(n), w)
			wires = append(wires, w)
		}
		synctest.Wait()
		b.hub.Drain(time.Second)
		b.all.Wait()
		var buckets [20]int
		for n, w := range wires {
			end := w.got()[len(w.got())-1].GetEnd()
			after := end.GetRetryAfter().AsDuration()
			if end.GetReason() != devicev1.EndReason_END_REASON_GOING_AWAY || after <= 0 || after > 21*time.Second {
				t.Fatalf("device %d was told %v", n, end)
			}
			buckets[min(19, after/time.Second)]++
		}
		for s, n := range buckets {
			if n < 20 || n > 100 {
				t.Errorf("%d devices come back in second %d", n, s)
			}
		}
		for _, e := range b.directory.events {
			if e != "away" {
				t.Errorf("event %s", e)
			}
		}
		var end *link.End
		if err := b.hub.Admit(t.Context()); !errors.As(err, &end) || fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("a link after the drain: %v", err)
		}
	})
}

// Over the rate a device is told when to come back, and that is spread at the rate at which links are admitted.
func TestAdmissionIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rate, devices = 100, 2000
		b := newBench(func(c *link.Config) { c.AdmitPerSecond = rate })
		began := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		buckets, refused, last := map[time.Duration]int{}, 0, time.Duration(0)
		for range devices { // all in the same moment
			all.Go(func() {
				for {
					err := b.hub.Admit(t.Context())
					mu.Lock()
					if err == nil {
						at := time.Since(began)
						buckets[at.Truncate(100*time.Millisecond)]++
						last = max(last, at)
						mu.Unlock()
						return
					}
					refused++
					mu.Unlock()
					var end *link.End
					if !errors.As(err, &end) || end.Frame().GetEnd().GetReason() != devicev1.EndReason_END_REASON_BUSY {
						t.Error(err)
						return
					}
					<-time.After(end.Frame().GetEnd().GetRetryAfter().AsDuration())
				}
			})
		}
		all.Wait()
		for at, n := range buckets {
			if n > devices/20 {
				t.Errorf("%d links were admitted within 100 ms after %v", n, at)
			}
		}
		if ideal := time.Second * devices / rate; last > ideal*3/2 {
			t.Errorf("all were in after %v, the rate allows %v", last, ideal)
		}
		if refused > devices*3 {
			t.Errorf("%d refusals for %d devices", refused, devices)
		}
	})
}

// Whatever a device says, in whatever order, the link goes on or ends: it neither panics nor waits.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte{7, 0, 0, 8, 1, 3, 3, 21, 22, 6})
	f.Fuzz(func(t *testing.T, script []byte) {
		b := newBench(nil)
		var l *link.Link
		var epoch, sequence uint64
		for _, op := range script {
			if l == nil || op%10 == 0 {
				l = b.open(t, "d", newWire())
				if l.Epoch <= epoch {
					t.Fatalf("epoch %d after %d", l.Epoch, epoch)
				}
				epoch, sequence = l.Epoch, 0
			}
			frame := &devicev1.DeviceFrame{}
			switch op % 10 {
			case 1:
				frame.Kind = &devicev1.DeviceFrame_Acknowledgement{}
			case 2:
				frame.Kind = &devicev1.DeviceFrame_Outcome{Outcome: &devicev1.Outcome{CommandId: "x"}}
			case 3:
				frame.Kind = &devicev1.DeviceFrame_Delta{Delta: &devicev1.Delta{Sequence: uint64(op)}}
			case 4:
				frame.Kind = &devicev1.DeviceFrame_Snapshot{}
			case 5:
				frame.Kind = &devicev1.DeviceFrame_Goodbye{}
			case 6:
				frame.Kind = &devicev1.DeviceFrame_Hello{}
			case 7:
				frame.Kind = &devicev1.DeviceFrame_Heartbeat{}
			default:
			}
			if op > 128 {
				_ = l.Receive(frame)
				continue
			}
			got, err := l.Report(sequence+uint64(op%3), []*devicev1.DeviceFrame{frame, {}})
			if got < sequence || err == nil && got > sequence+1 {
				t.Fatalf("report: %d after %d", got, sequence)
			}
			sequence = got
		}
		b.hub.Drain(0)
		b.all.Wait()
	})
}

// A link that ends before it is served still says why, and does not wait for a device that takes nothing.
func TestALinkThatEndedBeforeItIsServedIsOverSoon(t *testing.T) {
	t.Parallel()
	b := newBench(nil)
	l, err := b.hub.Open(t.Context(), "d", link.Bidi, &devicev1.Hello{DeviceId: "d"}, never)
	if err != nil {
		t.Fatal(err)
	}
	b.hub.Revoke("d")
	<-l.Done()
	w := newWire()
	w.stuck = make(chan struct{})
	err = l.Serve(t.Context(), w, func() error { <-w.hung; return nil })
	if fault.CodeOf(err) != fault.Unauthenticated || b.directory.is("d") {
		t.Errorf("it ended with %v, online %v", err, b.directory.is("d"))
	}
}

// A copied profile takes the place of a link that stands with another boot tag; the same program that dials again, or one that
// was started again after its link had ended, takes nobody's.
func TestACopyThatTakesThePlaceIsToldFromTheSameProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(nil)
		open := func(boot string) *link.Link {
			l, err := b.hub.Open(t.Context(), "d", link.Bidi, &devicev1.Hello{DeviceId: "d", BootTag: boot}, never)
			if err != nil {
				t.Fatal(err)
			}
			w := newWire()
			b.all.Go(func() { _ = l.Serve(context.Background(), w, func() error { <-w.hung; return nil }) })
			return l
		}
		for i, step := range []struct {
			boot      string
			displaced int
		}{{"aaaa", 0}, {"aaaa", 0}, {"bbbb", 1}, {"aaaa", 2}} {
			open(step.boot)
			if n := len(b.commands.displaced); n != step.displaced {
				t.Errorf("step %d: displaced %d times, want %d", i, n, step.displaced)
			}
		}
		b.hub.Revoke("d")
		synctest.Wait()
		open("cccc")
		if n := len(b.commands.displaced); n != 2 {
			t.Errorf("after the link had ended: displaced %d times, want 2", n)
		}
		b.hub.Revoke("d")
		b.all.Wait()
	})
}
