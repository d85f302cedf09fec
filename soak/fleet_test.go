package soak_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"throwbar.dev/throwbar/app/apptest"
	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/soak/soaktest"
	"throwbar.dev/throwbar/store"
)

// The bars of the long version.
const (
	memoryBar  = 1 << 20 // KiB of the server with all devices
	deviceBar  = 80      // KiB for each device
	backWithin = 60 * time.Second
	bucket     = 100 * time.Millisecond
	bucketBar  = 0.05 // part of all Hellos that one bucket may have
	stormBar   = time.Second
)

// idleVariable is how long the long version holds idle devices.
const idleVariable = "THROWBAR_SOAK_IDLE"

// herd is many devices of one server.
type herd struct {
	t       *testing.T
	dir     string
	size    int
	address string
	devices []string

	server  *soaktest.Process
	empty   int64 // KiB that the server holds without any device
	fleets  []*soaktest.Process
	client  *throwbar.Client
	figures *soaktest.Figures
}

// TestFleet holds many devices through a restart and a kill of their server. The long version judges memory, how fast
// all are back, how evenly they come, and how dispatch fares meanwhile.
func TestFleet(t *testing.T) {
	t.Parallel()
	h := &herd{t: t, dir: folder(t), size: 300}
	if long() {
		h.size = 10_000
	}
	h.figures = &soaktest.Figures{Title: fmt.Sprintf("%d devices", h.size)}
	t.Cleanup(h.killAll)
	bare := h.holdBare()
	h.connect()
	h.weigh(bare)
	h.idle()
	h.dispatchAll()
	h.steady("with nothing but commands", nil)
	h.storm("a restart", func() { check(t, h.server.Stop()) })
	h.storm("kill -9", h.server.Kill)
	h.end()
}

func (h *herd) killAll() {
	for _, p := range append(h.fleets, h.server) {
		if p != nil {
			p.Kill()
		}
	}
}

// holdBare measures what a server holds, in KiB, that does nothing but hold as many streams.
func (h *herd) holdBare() int64 {
	h.t.Helper()
	address := apptest.FreeAddress(h.t)
	log := filepath.Join(h.dir, "bare.log")
	server, err := soaktest.Start(log, soaktest.RoleBare, address)
	check(h.t, err)
	defer server.Kill()
	check(h.t, server.Ready(h.t.Context()))
	_, err = soaktest.AskHeap(h.t.Context(), server)
	check(h.t, err)
	before, _ := server.Memory()
	var fleets []*soaktest.Process
	for range 2 {
		p, err := soaktest.Start(log, soaktest.RoleBareFleet, address, strconv.Itoa(h.size/2))
		check(h.t, err)
		defer p.Kill()
		fleets = append(fleets, p)
		check(h.t, p.Ready(h.t.Context()))
	}
	until(h.t, soaktest.Patience, "all bare streams stand", func() bool {
		return h.standing(fleets).Connected == h.size
	})
	heap, err := soaktest.AskHeap(h.t.Context(), server)
	check(h.t, err)
	after, _ := server.Memory()
	each := float64(after-before) / float64(h.size)
	h.figures.Note("bare stream: memory, goroutines, each", "%.1f KiB, %.1f", each, float64(heap.Goroutines)/float64(h.size))
	return after - before
}

// standing adds up how fleets stand.
func (h *herd) standing(fleets []*soaktest.Process) soaktest.Standing {
	h.t.Helper()
	all := soaktest.Standing{Lost: map[string]int{}}
	for _, p := range fleets {
		st, err := soaktest.AskStanding(h.t.Context(), p)
		check(h.t, err)
		if st.Ended != "" {
			h.t.Fatalf("a device gave up: %s", st.Ended)
		}
		all.Connected += st.Connected
		all.Executed += st.Executed
		all.Hellos = append(all.Hellos, st.Hellos...)
		for why, n := range st.Lost {
			all.Lost[why] += n
		}
	}
	return all
}

// steady fails if a link has ended that nobody ended on purpose.
func (h *herd) steady(when string, lost map[string]int) {
	h.t.Helper()
	for why, n := range h.standing(h.fleets).Lost {
		if n > lost[why] {
			h.t.Errorf("%s: %d links ended: %s", when, n-lost[why], why)
		}
	}
}

// connect enrols all devices and connects them.
func (h *herd) connect() {
	h.t.Helper()
	h.address = apptest.FreeAddress(h.t)
	began := time.Now()
	identities, err := apptest.Enrol(h.t.Context(), store.Config{Dir: filepath.Join(h.dir, "data")}, "http://"+h.address, h.size)
	check(h.t, err)
	h.figures.Note("enrolled", "%s", round(time.Since(began)))
	for _, i := range identities {
		h.devices = append(h.devices, i.DeviceID)
	}
	file := filepath.Join(h.dir, "identities")
	check(h.t, soaktest.WriteIdentities(file, identities))
	h.start()
	raw, err := os.ReadFile(filepath.Join(h.dir, "data", "owner.token"))
	check(h.t, err)
	h.client, err = throwbar.New(throwbar.Config{Server: "http://" + h.address, Token: strings.TrimSpace(string(raw))})
	check(h.t, err)
	h.t.Cleanup(h.client.CloseIdle)

	_, err = soaktest.AskHeap(h.t.Context(), h.server)
	check(h.t, err)
	h.empty, _ = h.server.Memory()

	began = time.Now()
	for half := range 2 {
		spread := time.Duration(h.size) * time.Millisecond
		p, err := soaktest.Start(filepath.Join(h.dir, "fleet.log"), soaktest.RoleFleet, file,
			strconv.Itoa(half*h.size/2), strconv.Itoa((half+1)*h.size/2), spread.String())
		check(h.t, err)
		h.fleets = append(h.fleets, p)
	}
	for _, p := range h.fleets {
		check(h.t, p.Ready(h.t.Context()))
	}
	h.allBack(1, func([]string) {})
	h.figures.Note("connected for the first time", "%s", round(time.Since(began)))
}

func (h *herd) start() {
	h.t.Helper()
	var err error
	h.server, err = soaktest.Start(filepath.Join(h.dir, "server.log"), soaktest.RoleServer,
		"serve", "--listen", h.address, "--data-dir", filepath.Join(h.dir, "data"), "--log-level", "warn")
	check(h.t, err)
	check(h.t, h.server.Ready(h.t.Context()))
}

// allBack waits until all devices have a link that they began at a moment or later, and returns when each did. It says
// now and then which have.
func (h *herd) allBack(from int64, say func(back []string)) []int64 {
	h.t.Helper()
	var hellos []int64
	until(h.t, soaktest.Patience, "all devices are connected", func() bool {
		hellos = h.standing(h.fleets).Hellos
		var back []string
		for n, at := range hellos {
			if at >= from {
				back = append(back, h.devices[n])
			}
		}
		say(back)
		if len(back) < h.size {
			wait(h.t, bucket) // asking all the time would load the machine that is measured
		}
		return len(back) == h.size
	})
	return hellos
}

// weigh measures the server's memory with all devices idle.
func (h *herd) weigh(bare int64) {
	h.t.Helper()
	if long() {
		wait(h.t, 20*time.Second) // more than a heartbeat
	}
	asIs, most := h.server.Memory()
	heap, err := soaktest.AskHeap(h.t.Context(), h.server)
	check(h.t, err)
	held, _ := h.server.Memory()
	if held == 0 {
		h.t.Log("this system keeps no books about memory")
		return
	}
	h.figures.Judge(asIs < memoryBar, "server's memory, all idle", "< 1024 MiB", "%d MiB (at most %d)", asIs>>10, most>>10)
	h.figures.Note("server's memory before the first device", "%d MiB", h.empty>>10)
	held -= h.empty
	each := float64(held) / float64(h.size)
	h.figures.Judge(each <= deviceBar, "of it for each device, after a collection", "<= 80 KiB", "%.1f KiB, %.1f goroutines", each,
		float64(heap.Goroutines)/float64(h.size))
	h.figures.Note("heap in use and stacks, after a collection", "%d and %d MiB", heap.InUse>>20, heap.Stacks>>20)
	h.figures.Note("memory to that of bare streams", "%.2f", float64(held)/float64(max(bare, 1)))
}

// idle holds all devices for a long time, if asked to: no link ends, and nothing grows.
func (h *herd) idle() {
	h.t.Helper()
	length, err := time.ParseDuration(os.Getenv(idleVariable))
	if err != nil || length == 0 {
		return
	}
	before, _ := h.server.Memory()
	wait(h.t, length)
	_, err = soaktest.AskHeap(h.t.Context(), h.server)
	check(h.t, err)
	after, _ := h.server.Memory()
	lost := 0
	for _, n := range h.standing(h.fleets).Lost {
		lost += n
	}
	h.figures.Judge(lost == 0, "idle for "+length.String()+": links that ended", "none", "%d", lost)
	h.figures.Judge(after-before < (after+before)/40, "idle for "+length.String()+": memory before, after", "grows < 5 %",
		"%d, %d MiB", before>>10, after>>10)
}

// dispatchAll sends commands to devices while nothing else happens.
func (h *herd) dispatchAll() {
	h.t.Helper()
	length := time.Second
	if long() {
		length = 10 * time.Second
	}
	for _, callers := range []int{1, 16} {
		heard := h.load(length, callers)
		if len(heard.Took) == 0 || len(heard.Failed) > 0 || heard.Offline > 0 {
			h.t.Errorf("dispatch to connected devices: %d answers, %d offline, failed %v", len(heard.Took), heard.Offline, heard.Failed)
		}
		h.figures.Note(fmt.Sprintf("dispatch, %d callers: p50, p99, each second", callers), "%s, %s, %.0f",
			round(heard.At(0.5)), round(heard.At(0.99)), float64(len(heard.Took))/length.Seconds())
	}
}

// load sends commands to devices for a while. The end is no deadline: that would be the server's to keep too, and end
// the last calls with an answer. Where a machine has so much to do that no answer came meanwhile, it goes on for longer.
func (h *herd) load(length time.Duration, callers int) soaktest.Heard {
	for {
		ctx, cancel := context.WithCancel(h.t.Context())
		end := time.AfterFunc(length, cancel)
		heard := soaktest.Load{Client: h.client, Devices: func() []string { return h.devices }, Callers: callers}.Run(ctx)
		end.Stop()
		cancel()
		if length *= 4; len(heard.Took)+heard.Offline > 0 || length > soaktest.Patience {
			return heard
		}
	}
}

// storm stops the server in some way, starts it again, and watches all devices come back.
func (h *herd) storm(name string, stop func()) {
	h.t.Helper()
	executed := h.standing(h.fleets).Executed
	began := time.Now()
	stop()
	gone := time.Since(began)
	restarted := time.Now()
	h.start()
	h.figures.Note(name+": until gone, until ready again", "%s, %s", round(gone), round(time.Since(restarted)))

	// Commands to devices that are not back wait for them: what counts is how those fare that are.
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	var back atomic.Value
	back.Store([]string(nil))
	heard := make(chan soaktest.Heard, 1)
	go func() {
		heard <- soaktest.Load{
			Client: h.client, Callers: 4, Pace: 10 * time.Millisecond, Devices: func() []string { return back.Load().([]string) },
		}.Run(ctx)
	}()
	hellos := h.allBack(began.UnixMilli(), func(now []string) { back.Store(now) })
	took := time.Since(began)
	cancel()
	during := <-heard

	h.figures.Judge(took <= backWithin, name+": until all are back", "<= 60 s", "%s", round(took))
	share, span := fullest(hellos)
	h.figures.Judge(share <= bucketBar, name+": Hellos in the fullest 100 ms", "<= 5 %", "%.1f %% of %d, over %s", 100*share, len(hellos), round(span))
	h.figures.Judge(during.At(0.99) <= stormBar && len(during.Failed) == 0, name+": dispatch to those that are back, p50, p99", "p99 <= 1 s",
		"%s, %s of %d (%d offline)", round(during.At(0.5)), round(during.At(0.99)), len(during.Took), during.Offline)
	if len(during.Failed) > 0 {
		h.figures.Note(name+": dispatch meanwhile, failed", "%v", during.Failed)
	}
	_, most := h.server.Memory()
	h.figures.Note(name+": server's memory, at most", "%d MiB", most>>10)
	done := len(during.Took)
	for _, n := range during.Failed { // which were not executed, or not surely
		done -= n
	}
	if now := h.standing(h.fleets).Executed; now < executed+int64(done) {
		h.t.Errorf("devices have executed %d commands, and callers heard of %d", now-executed, done)
	}
	lost := h.standing(h.fleets).Lost
	h.dispatchEach()
	h.steady("after "+name, lost)
}

// dispatchEach sends one command to some of the devices: the links that stand are real ones.
func (h *herd) dispatchEach() {
	h.t.Helper()
	heard := h.load(time.Second, 8)
	if len(heard.Took) == 0 || len(heard.Failed) > 0 || heard.Offline > 0 {
		h.t.Errorf("after the storm: %d answers, %d offline, failed %v", len(heard.Took), heard.Offline, heard.Failed)
	}
}

// fullest is the part of all that fell into the fullest bucket, and how long they took to come.
func fullest(hellos []int64) (share float64, span time.Duration) {
	counts := map[int64]int{}
	most := 0
	for _, at := range hellos {
		n := at / bucket.Milliseconds()
		counts[n]++
		most = max(most, counts[n])
	}
	return float64(most) / float64(len(hellos)), time.Duration(slices.Max(hellos)-slices.Min(hellos)) * time.Millisecond
}

func (h *herd) end() {
	h.t.Helper()
	for _, p := range h.fleets {
		check(h.t, p.Stop())
	}
	check(h.t, h.server.Stop())
	judgeLogs(h.t, h.dir)
	h.t.Logf("\n%s", h.figures)
	if !long() {
		return // what is measured beside other tests says nothing
	}
	check(h.t, h.figures.Keep())
	for _, name := range h.figures.Missed() {
		h.t.Errorf("missed: %s", name)
	}
}

func round(d time.Duration) time.Duration {
	if d > 100*time.Millisecond {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}
