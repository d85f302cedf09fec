// Package dispatch is a command's life: it decides whether a command may be sent, writes it down before it is sent,
// hands it to the device's link, and gives it exactly one end.
package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/policy"
)

const (
	// Grace is how long after its deadline a command that a connected device has taken over may still be answered.
	// The device starts nothing after the deadline; this is for what it started before.
	Grace = 5 * time.Second
	// LookEvery is how often it is looked whether an approval is about to expire, or has.
	LookEvery = time.Second
	// SweepEvery is how often ended commands are cleared.
	SweepEvery = time.Minute
	// Readable is how long the payloads of an ended command can be read.
	Readable = 5 * time.Minute
	// History is how long the row of an ended command stays.
	History = 90 * 24 * time.Hour

	// A device's outbox in server/link has room for twice as many.
	maxLivePerDevice = 1024
	// A fan-out to 2,000 devices is several dispatches side by side.
	maxLivePerCaller = 10_000
	// So many commands of a caller may wait for a person.
	maxWaitingPerCaller = 1000
)

// Device is what dispatch has to know of a device.
type Device struct {
	ID, Name string
	Boot     string   // tag of the browser's current start
	Actions  []string // names that it runs; empty if it never said
	Away     bool     // it may be back in a moment: the server has just started
}

// Devices finds devices.
type Devices interface {
	// Find is a fault NotFound for an id that the workspace does not have.
	Find(workspace, id string) (Device, error)
}

// Links hands frames to connected devices.
type Links interface {
	// Connected is the number of the device's current link; zero if it has none.
	Connected(device string) uint64
	// Send queues a frame on the given link. It says false if that link is not the current one any more.
	Send(device string, epoch uint64, frame *devicev1.ServerFrame) bool
}

// Browser is what the server knows of open tabs.
type Browser interface {
	// Describe says what it would take to open a tab again; nil if the tab is not known.
	Describe(tabID string) *commandv1.SavedTab
	// Current is the id that a tab has now, by any id that it has had since its browser started; the id itself where no
	// other is known.
	Current(tabID string) string
	// Private says whether an id is of a private window, or of a tab or group in one.
	Private(id string) bool
	// Match lists the ids of a device's tabs whose address matches a pattern.
	Match(device, pattern string) []string
	// Exists says whether a tab, window or group with this composite id is known.
	Exists(id string) bool
}

// Policy decides which commands run, which ask a person and which are denied.
type Policy interface {
	Decide(call policy.Call) policy.Decision
	// Settings are a workspace's settings of approvals, with defaults filled in.
	Settings(workspace string) *controlv1.PolicySettings
}

// Config is what a Dispatcher is made of.
type Config struct {
	Policy    Policy
	Approvals Approvals
	// Reachable says whether somebody follows now who may approve what a principal asks for.
	Reachable func(workspace, principal string) bool
	Catalogue *catalog.Catalogue
	Ledger    Ledger
	Reader    Reader
	Acts      Acts
	Devices   Devices
	Links     Links
	Browser   Browser
	Meter     Meter // may be nil
	NewID     func() string
	Now       func() time.Time
	Log       *slog.Logger
}

// Dispatcher runs the lives of all commands.
type Dispatcher struct {
	Config

	acts  exclusive[actKey]  // of those who accept
	joins exclusive[joinKey] // of those who look what a request became, and send it
	tasks sync.WaitGroup     // writes under way; Run waits for them
	stop  chan struct{}      // closed when Run ends

	mu       sync.Mutex
	live     map[string]*live   // guarded by mu; by command id, all that have not ended
	byDevice map[string][]*live // guarded by mu; in the order in which they were accepted
	byCaller map[string]int     // guarded by mu
	plans    map[string]plan    // guarded by mu; by hash
	noted    []*live            // guarded by mu; those with steps that are not written down
	noting   bool               // guarded by mu; the ledger will come for the steps
	// receipts are those that wait to be sent, by device; receipting says that it will be done. Guarded by mu.
	receipts   map[string][]string
	receipting bool
	ends       []*end // guarded by mu; not written down yet, in order
	settling   bool   // guarded by mu; somebody writes them
	closed     bool   // guarded by mu; Run has ended

	questions map[string]*question // guarded by mu; by approval id, those with commands that wait
	waiting   map[string]*live     // guarded by mu; by command id, those that wait for a person
	asking    map[string]int       // guarded by mu; by principal, how many of them
}

// live is a command that has not ended. Its fields are guarded by the dispatcher's mu, but for done, which is closed
// once, and out, which is written before that.
type live struct {
	rec     Record
	entry   *catalog.Entry
	action  *commandv1.Action
	saved   []*commandv1.SavedTab // what the server keeps for it
	restore []*commandv1.SavedTab // what travels beside the action; it has claimed them
	order   *Order                // who waits for it; nil after a restart
	part    *part                 // of the order

	due       time.Time // when nothing starts any more, on this process's monotonic clock
	recorded  bool      // it is written down, and may be sent
	steps     []Step    // not written down yet
	sentOn    uint64    // link that it was last sent on
	attempt   uint32
	recovered bool // from before the server's start
	ending    bool // its end is being written
	told      bool // whoever waits knows its end
	repeats   []*devicev1.Outcome
	timer     *time.Timer                 // nil until it is recorded
	question  *question                   // that it waits for; nil if it does not
	joined    []func(*controlv1.Approval) // who waits for it too, to be told of what it waits for
	starting  bool                        // its start is being written: until then nothing ends it
	startedAt time.Time                   // when it was approved and accepted; zero if nobody was asked
	cancelled string                      // why it is to end then
	done      chan struct{}
	out       *controlv1.DeviceOutcome
}

// New makes a dispatcher. Recover has to be called before the first device connects, and Run while it is in use.
func New(cfg Config) *Dispatcher {
	return &Dispatcher{
		Config:   cfg,
		stop:     make(chan struct{}),
		live:     map[string]*live{},
		byDevice: map[string][]*live{},
		byCaller: map[string]int{},
		plans:    map[string]plan{},
		receipts: map[string][]string{},

		questions: map[string]*question{}, waiting: map[string]*live{}, asking: map[string]int{},
	}
}

// Recover takes up the commands that had not ended when the server stopped. Whether the device has started them is
// not known: they are sent again under their ids if it comes back in time, and it answers from its journal.
func (d *Dispatcher) Recover(ctx context.Context) error {
	pending, err := d.Reader.Pending(ctx)
	if err != nil {
		return fmt.Errorf("read pending commands: %w", err)
	}
	for _, p := range pending {
		recover := d.recover
		if p.Record.State == AwaitingApproval {
			recover = d.recoverWaiting
		}
		if err := recover(ctx, p); err != nil {
			return fmt.Errorf("take up command %s: %w", p.Record.ID, err)
		}
	}
	return nil
}

func (d *Dispatcher) recover(ctx context.Context, p Acceptance) error {
	l := &live{
		rec: p.Record, action: &commandv1.Action{}, saved: p.Saved, recorded: true, recovered: true, done: make(chan struct{}),
	}
	if err := decode(p.Record.Action, l.action); err != nil {
		return err
	}
	if entry, err := d.Catalogue.ByAction(l.action); err == nil {
		l.entry = entry
		args, err := entry.Body(l.action)
		if err != nil {
			return err
		}
		rows, err := d.savedOf(ctx, l.rec.Workspace, args)
		if err != nil {
			return err
		}
		for _, ref := range catalog.Targets(args) { // it is written down with those only that it has claimed
			if row, ok := rows[ref.ID]; ok && row.Claimed {
				l.restore = append(l.restore, row.Tab)
			}
		}
	}
	// The wall clock may have been set while the server was down: the time left is never more than all of it.
	left := min(l.rec.Deadline.Sub(d.Now()), l.rec.Deadline.Sub(l.rec.CreatedAt))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.track(l)
	d.begin(l, left)
	if l.rec.State == Accepted { // it may have been sent: that note is written a moment later
		d.step(l, Sent)
	}
	return nil
}

// Run sweeps until the context ends, then waits for the writes under way.
func (d *Dispatcher) Run(ctx context.Context) error {
	tick := time.NewTicker(SweepEvery)
	defer tick.Stop()
	look := time.NewTicker(LookEvery)
	defer look.Stop()
	d.followAll()
	for {
		select {
		case <-ctx.Done():
			d.stopTimers()
			d.tasks.Wait()
			return nil
		case <-look.C:
			d.lookAtQuestions()
		case <-tick.C:
			now := d.Now()
			if err := d.Ledger.Sweep(ctx, now.Add(-Readable), now.Add(-History)); err != nil {
				d.Log.ErrorContext(ctx, "sweep of ended commands failed", slog.Any("error", err))
			}
			d.dropPlans()
			d.followAll()
		}
	}
}

func (d *Dispatcher) stopTimers() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		close(d.stop)
	}
	for _, l := range d.live {
		if l.timer != nil {
			l.timer.Stop()
		}
	}
}

// track makes a command count, before it is written down. The dispatcher's mu is held.
func (d *Dispatcher) track(l *live) {
	d.live[l.rec.ID] = l
	d.byDevice[l.rec.Device] = append(d.byDevice[l.rec.Device], l)
	d.byCaller[l.rec.Principal]++
}

// begin starts the time to live of a recorded command. The dispatcher's mu is held.
func (d *Dispatcher) begin(l *live, left time.Duration) {
	l.recorded = true
	l.due = time.Now().Add(left)
	if !d.closed {
		l.timer = time.AfterFunc(left, func() { d.deadline(l, false) })
	}
}

// forget removes an ended command from what is live. The dispatcher's mu is held.
func (d *Dispatcher) forget(l *live) {
	d.unpark(l)
	d.untrack(l)
}

// untrack makes a command count no more. The dispatcher's mu is held.
func (d *Dispatcher) untrack(l *live) {
	if d.live[l.rec.ID] != l {
		return
	}
	delete(d.live, l.rec.ID)
	list := d.byDevice[l.rec.Device]
	if i := slices.Index(list, l); i >= 0 {
		d.byDevice[l.rec.Device] = slices.Delete(list, i, i+1)
	}
	if len(list) <= 1 {
		delete(d.byDevice, l.rec.Device)
	}
	if d.byCaller[l.rec.Principal]--; d.byCaller[l.rec.Principal] <= 0 {
		delete(d.byCaller, l.rec.Principal)
	}
}
