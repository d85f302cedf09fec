// Package dispatch is a command's life: it decides whether a command may be sent, writes it down before it is sent,
// hands it to the device's link, and gives it exactly one end.
package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

const (
	// Grace is how long after its deadline a command that a connected device has taken over may still be answered.
	// The device starts nothing after the deadline; this is for what it started before.
	Grace = 5 * time.Second
	// SweepEvery is how often ended commands are cleared.
	SweepEvery = time.Minute
	// Readable is how long the payloads of an ended command can be read.
	Readable = 5 * time.Minute
	// History is how long the row of an ended command stays.
	History = 90 * 24 * time.Hour

	maxLivePerDevice = 1000
	maxLivePerCaller = 1000
)

// Record is a command as it is stored. Payloads are bytes: they pass through unchanged, whatever they hold.
type Record struct {
	ID, Group, Workspace, Device, Name, Principal string

	Action    []byte
	State     State
	CreatedAt time.Time
	Deadline  time.Time
	EndedAt   time.Time
	Result    []byte
	Error     []byte
	Summary   string
}

// Acceptance is a command to write down, with the tabs that the server keeps for it.
type Acceptance struct {
	Record Record
	Saved  []*commandv1.SavedTab
}

// End is how a command ended.
type End struct {
	Record  Record
	Detail  string   // for the event
	Kept    []string // ids of saved tabs that count from now on
	Dropped []string // ids of saved tabs that are gone: not taken away after all, or open again
}

// Filter selects commands, newest first.
type Filter struct {
	Workspace, Device string
	PendingOnly       bool
	BeforeTime        time.Time // with BeforeID: only commands after this one in the order of the list
	BeforeID          string
	Limit             int
}

// Ledger writes commands down.
type Ledger interface {
	// Accept writes commands, their saved tabs and their first events in one transaction.
	Accept(ctx context.Context, commands []Acceptance) error
	// Advance notes a step that is no end. It may be written a moment later.
	Advance(rec Record, to State)
	// Finish writes an end and its event. It says false if the command had ended already.
	Finish(ctx context.Context, end End) (bool, error)
	// Late notes a result that came after the end.
	Late(ctx context.Context, rec Record, detail string) error
	// Sweep clears payloads of commands ended before one time and removes rows ended before another.
	Sweep(ctx context.Context, clearBefore, removeBefore time.Time) error
}

// Reader reads commands back.
type Reader interface {
	// Get is a fault NotFound for an id that the workspace does not have. An empty workspace means any.
	Get(ctx context.Context, workspace, id string) (Record, error)
	List(ctx context.Context, filter Filter) ([]Record, error)
	// Pending lists all commands that have not ended, oldest first, with the saved tabs written for each.
	Pending(ctx context.Context) ([]Acceptance, error)
	// Saved reads saved tabs by id; those that the workspace does not have are left out.
	Saved(ctx context.Context, workspace string, ids []string) ([]*commandv1.SavedTab, error)
}

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
	// Match lists the ids of a device's tabs whose address matches a pattern.
	Match(device, pattern string) []string
	// Exists says whether a tab, window or group with this composite id is known.
	Exists(id string) bool
}

// Config is what a Dispatcher is made of.
type Config struct {
	Catalogue *catalog.Catalogue
	Ledger    Ledger
	Reader    Reader
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

	tasks sync.WaitGroup // writes under way; Run waits for them

	mu       sync.Mutex
	live     map[string]*live   // guarded by mu; by command id, all that have not ended
	byDevice map[string][]*live // guarded by mu; in the order in which they were accepted
	byCaller map[string]int     // guarded by mu
	plans    map[string]plan    // guarded by mu; by hash
	closed   bool               // guarded by mu; Run has ended
}

// live is a command that has not ended. Its fields are guarded by the dispatcher's mu, but for done, which is closed
// once, and out, which is written before that.
type live struct {
	rec     Record
	entry   *catalog.Entry
	action  *commandv1.Action
	saved   []*commandv1.SavedTab // what the server keeps for it
	restore []*commandv1.SavedTab // what travels beside the action

	sentOn    uint64 // link that it was last sent on
	attempt   uint32
	recovered bool // from before the server's start
	ending    bool // its end is being written
	timer     *time.Timer
	done      chan struct{}
	out       *controlv1.DeviceOutcome
}

// New makes a dispatcher. Recover has to be called before the first device connects, and Run while it is in use.
func New(cfg Config) *Dispatcher {
	return &Dispatcher{
		Config:   cfg,
		live:     map[string]*live{},
		byDevice: map[string][]*live{},
		byCaller: map[string]int{},
		plans:    map[string]plan{},
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
		action := &commandv1.Action{}
		l := &live{rec: p.Record, action: action, saved: p.Saved, recovered: true, done: make(chan struct{})}
		if l.rec.State == Accepted { // it may have been sent: that note is written a moment later
			d.Ledger.Advance(l.rec, Sent)
			l.rec.State = Sent
		}
		if err := decode(p.Record.Action, action); err != nil {
			return fmt.Errorf("read command %s: %w", p.Record.ID, err)
		}
		if entry, err := d.Catalogue.ByAction(action); err == nil {
			l.entry = entry
			if l.restore, err = d.restored(ctx, l.rec.Workspace, entry, action); err != nil {
				return fmt.Errorf("read saved tabs of command %s: %w", p.Record.ID, err)
			}
		}
		d.track(l)
	}
	return nil
}

// Run sweeps until the context ends, then waits for the writes under way.
func (d *Dispatcher) Run(ctx context.Context) error {
	tick := time.NewTicker(SweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			d.stopTimers()
			d.tasks.Wait()
			return nil
		case <-tick.C:
			now := d.Now()
			if err := d.Ledger.Sweep(ctx, now.Add(-Readable), now.Add(-History)); err != nil {
				d.Log.ErrorContext(ctx, "sweep of ended commands failed", slog.Any("error", err))
			}
			d.dropPlans(now)
		}
	}
}

func (d *Dispatcher) stopTimers() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, l := range d.live {
		l.timer.Stop()
	}
}

// track makes a recorded command live and sets its deadline.
func (d *Dispatcher) track(l *live) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live[l.rec.ID] = l
	d.byDevice[l.rec.Device] = append(d.byDevice[l.rec.Device], l)
	d.byCaller[l.rec.Principal]++
	l.timer = time.AfterFunc(l.rec.Deadline.Sub(d.Now()), func() { d.deadline(l, false) })
}

// forget removes an ended command from what is live.
func (d *Dispatcher) forget(l *live) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.live, l.rec.ID)
	list := d.byDevice[l.rec.Device]
	for i, other := range list {
		if other == l {
			d.byDevice[l.rec.Device] = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(d.byDevice[l.rec.Device]) == 0 {
		delete(d.byDevice, l.rec.Device)
	}
	if d.byCaller[l.rec.Principal]--; d.byCaller[l.rec.Principal] <= 0 {
		delete(d.byCaller, l.rec.Principal)
	}
}
