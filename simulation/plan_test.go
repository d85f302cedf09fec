package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	throwbar "throwbar.dev/throwbar/clients/go"
)

const (
	devices  = 3
	requests = 20 // one life each, or one for each device
	callers  = 2

	begin   = 3 * time.Second  // when requests begin
	horizon = 45 * time.Second // when the last fault is over
	// quiet is how long nothing goes wrong before the end: the longest time to live, then what it takes to notice a
	// dead link (a lease and a heartbeat), and the longest wait before the next one.
	quiet = 150 * time.Second
)

// plan is what a seed fixes: what is asked of whom and when, what goes wrong and when, and all clocks. What it does not
// fix is which of several goroutines runs first where virtual time leaves that open.
type plan struct {
	seed        uint64
	hosts       map[string]time.Duration // latency of each
	transports  [devices]throwbar.Transport
	reconciling [devices]bool
	clocks      [devices][]time.Duration // how far the device's wall clock is off, by start
	server      []time.Duration          // how far the server's is, by start
	requests    [requests]request
	faults      []fault
	points      [devices][]point
}

// action is what a request asks for.
type action int

const (
	openTab     action = iota // not idempotent
	closeTab                  // not idempotent; what it did can be read
	activateTab               // idempotent
)

func (a action) String() string { return [...]string{"openTab", "closeTabs", "activateTab"}[a] }

// request is one call of a caller.
type request struct {
	at      time.Duration
	caller  int
	action  action
	devices []int
	ttl     time.Duration // zero: the command's own
	submit  bool
	detach  bool
	leaveIn time.Duration // the caller goes away after it; zero: it stays
	stopIn  time.Duration // CancelCommand after it; zero: never
	work    time.Duration // how long the handler takes
	effect  time.Duration // when in that time it does what it does
}

func (r request) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v caller%d %s on %v ttl %v work %v effect at %v", r.at, r.caller, r.action, r.devices, r.ttl, r.work, r.effect)
	for _, flag := range []struct {
		on   bool
		text string
	}{
		{r.submit, " submit"},
		{r.detach, " detached"},
		{r.leaveIn > 0, fmt.Sprint(" leaves after ", r.leaveIn)},
		{r.stopIn > 0, fmt.Sprint(" cancels after ", r.stopIn)},
	} {
		if flag.on {
			b.WriteString(flag.text)
		}
	}
	return b.String()
}

// kind is a kind of fault.
type kind int

const (
	cutBoth     kind = iota // connections end for both sides after some bytes
	cutServer               // only the server learns that they have
	cutHost                 // only the host does
	goDark                  // what is sent from now on is lost, and nobody is told
	freeze                  // nothing arrives for a while, then everything at once
	stall                   // the same for the connections that there are, and not for new ones
	late                    // for a while, what is sent on every second new connection arrives up to 20 s late
	refuse                  // dials are refused for a while
	slow                    // everything takes longer for a while
	deviceKill              // the process is killed
	devicePower             // the machine is: its peers are told nothing
	deviceStop              // the process is stopped in order
	serverKill              // the process is killed now
	serverPower             // the machine is
	killBefore              // the server is killed before its next commit
	killAfter               // the server is killed after its next commit, before it says so
	serverStop              // the server is stopped in order
	diskBegin               // no transaction begins for a while
	diskCommit              // none is committed
	kinds
)

func (k kind) String() string {
	return [...]string{
		"cut", "cut for the server", "cut for the host", "go dark", "freeze", "stall", "delay new connections", "refuse dials", "slow down", "kill device",
		"power off device", "stop device", "kill server", "power off server", "kill server before a commit",
		"kill server after a commit", "stop server", "disk fails to begin", "disk fails to commit",
	}[k]
}

func (k kind) ofServer() bool { return k >= serverKill && k <= serverStop }

// fault is something that goes wrong.
type fault struct {
	at   time.Duration
	kind kind
	host string // that it happens to, or on the road to
	dir  direction
	both bool          // directions
	n    int           // bytes until a cut, or the device's number
	long time.Duration // how long it lasts, or how long something is down
}

func (f fault) String() string {
	return fmt.Sprintf("%v %s host %q direction %d both %v n %d for %v", f.at, f.kind, f.host, f.dir, f.both, f.n, f.long)
}

// place is where in a command's life on a device its process can be killed.
type place int

const (
	beforeStart place = iota // is written to the journal
	afterStart
	beforeEffect
	afterEffect
	beforeFinish // is written to the journal
	afterFinish
	afterReceipt
	places
)

func (p place) String() string {
	return [...]string{
		"before the start is written", "after the start is written", "before the effect", "after the effect",
		"before the outcome is written", "after the outcome is written", "after the receipt",
	}[p]
}

// point is one kill of a device in mid-command.
type point struct {
	place place
	nth   int // time that a command comes by
	torn  bool
	down  time.Duration
}

func newPlan(seed uint64) *plan {
	p := &plan{seed: seed, hosts: map[string]time.Duration{}}
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range callers {
		p.hosts[callerHost(i)] = upTo(r, 5*time.Millisecond)
	}
	for i := range devices {
		p.hosts[deviceHost(i)] = upTo(r, 30*time.Millisecond)
		p.transports[i] = throwbar.Transport(r.IntN(2))
		p.reconciling[i] = r.IntN(2) == 0
		p.clocks[i] = clocks(r)
	}
	p.server = clocks(r)
	for i := range p.requests {
		p.requests[i] = newRequest(r)
	}
	slices.SortFunc(p.requests[:], func(a, b request) int { return int(a.at - b.at) })
	wild := []int{0, 2, 4, 4, 6, 6, 9, 14}[r.IntN(8)]
	restarts := 0
	for range wild {
		f := newFault(r)
		if f.kind.ofServer() {
			if restarts++; restarts > 2 {
				continue
			}
		}
		p.faults = append(p.faults, f)
	}
	slices.SortFunc(p.faults, func(a, b fault) int { return int(a.at - b.at) })
	for i := range devices {
		for n := []int{0, 0, 1, 1, 2, 3}[r.IntN(6)]; n > 0 && wild > 0; n-- {
			p.points[i] = append(p.points[i], point{
				place: place(r.IntN(int(places))), nth: 1 + r.IntN(6), torn: r.IntN(3) == 0, down: downtime(r),
			})
		}
	}
	return p
}

func callerHost(i int) string { return fmt.Sprintf("caller%d", i) }
func deviceHost(i int) string { return fmt.Sprintf("device%d", i) }

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + upTo(r, most-least)
}

// clocks are a wall clock's errors at each start of a program: none, a constant one, or one that changes while the
// program is down.
func clocks(r *rand.Rand) []time.Duration {
	any := func() time.Duration { return between(r, -24*time.Hour, 24*time.Hour).Truncate(time.Millisecond) }
	out := make([]time.Duration, 16)
	constant := any()
	mode := r.IntN(3)
	for i := range out {
		switch mode {
		case 1:
			out[i] = constant
		case 2:
			out[i] = any()
		}
	}
	return out
}

func downtime(r *rand.Rand) time.Duration {
	return []time.Duration{upTo(r, 100*time.Millisecond), upTo(r, 2*time.Second), between(r, 2*time.Second, 15*time.Second)}[r.IntN(3)]
}

func newRequest(r *rand.Rand) request {
	req := request{
		at: begin + upTo(r, horizon-begin-3*time.Second), caller: r.IntN(callers), action: action(r.IntN(3)),
		devices: []int{r.IntN(devices)},
		ttl: []time.Duration{
			0, between(r, 50*time.Millisecond, time.Second), between(r, time.Second, 5*time.Second),
			between(r, 5*time.Second, 20*time.Second), time.Minute,
		}[r.IntN(5)],
		work: []time.Duration{0, upTo(r, 50*time.Millisecond), upTo(r, 2*time.Second), upTo(r, 10*time.Second)}[r.IntN(4)],
	}
	req.effect = []time.Duration{0, req.work / 2, req.work}[r.IntN(3)]
	if req.action == openTab && r.IntN(5) == 0 {
		req.devices = []int{0, 1, 2}
	}
	switch r.IntN(6) {
	case 0, 1:
		req.submit = true
		if r.IntN(3) == 0 {
			req.stopIn = between(r, time.Millisecond, 5*time.Second)
		}
	case 2:
		req.detach = true
		req.leaveIn = between(r, time.Millisecond, 3*time.Second)
	case 3:
		req.leaveIn = between(r, time.Millisecond, 3*time.Second)
	}
	return req
}

func newFault(r *rand.Rand) fault {
	f := fault{at: 2*time.Second + upTo(r, horizon-22*time.Second), kind: kind(r.IntN(int(kinds)))}
	if f.kind.ofServer() && r.IntN(3) == 0 { // restarts cost the most and are not the rarest of faults
		f.kind = kind(r.IntN(int(deviceKill)))
	}
	if f.kind == late { // a scenario of its own has it
		f.kind = stall
	}
	f.dir, f.both, f.n = direction(r.IntN(2)), r.IntN(2) == 0, r.IntN(devices)
	f.host = deviceHost(f.n)
	if r.IntN(4) == 0 {
		f.host = callerHost(r.IntN(callers))
	}
	f.long = between(r, 100*time.Millisecond, 20*time.Second)
	switch f.kind {
	case cutBoth, cutServer, cutHost:
		f.n = []int{0, r.IntN(100), r.IntN(2000)}[r.IntN(3)]
	case deviceKill, devicePower, deviceStop, serverKill, serverPower, killBefore, killAfter, serverStop:
		f.long = downtime(r)
	case diskBegin, diskCommit:
		f.long = []time.Duration{upTo(r, 50*time.Millisecond), upTo(r, 3*time.Second), between(r, 3*time.Second, 15*time.Second)}[r.IntN(3)]
	}
	return f
}
