package simulation

import (
	"context"
	"slices"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"throwbar.dev/throwbar/app"
	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/event"
	"throwbar.dev/throwbar/server/link"
)

// bug is a planted one. It sits in the seams that the real code is composed of; what is nil changes nothing.
type bug struct {
	name     string
	within   int // seeds in which it has to be found
	parts    func(s *server, parts *app.Parts)
	wrap     func(*journal) throwbar.Journal
	patience bool // handlers do not look at their contexts
}

func (b *bug) into(cfg *app.Config, s *server) {
	if b != nil && b.parts != nil {
		b.parts(s, &cfg.Parts)
	}
}

func (b *bug) journal(j *journal) throwbar.Journal {
	if b != nil && b.wrap != nil {
		return b.wrap(j)
	}
	return j
}

func (b *bug) handlerContext(ctx context.Context) context.Context {
	if b != nil && b.patience {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

var bugs = []*bug{
	{
		name: "the ledger says that commands and ends are written before they are", within: 50,
		parts: func(s *server, parts *app.Parts) {
			watch := parts.Ledger
			parts.Ledger = func(l dispatch.Ledger) dispatch.Ledger { return watch(hasty{l}) }
		},
	},
	{
		name: "the ledger forgets one end in ten", within: 20,
		parts: func(s *server, parts *app.Parts) {
			watch := parts.Ledger
			parts.Ledger = func(l dispatch.Ledger) dispatch.Ledger { return watch(&forgetful{Ledger: l}) }
		},
	},
	{
		name: "a command is sent once more under a new id", within: 20,
		parts: func(s *server, parts *app.Parts) {
			parts.Links = func(l dispatch.Links) dispatch.Links { return &twice{Links: l, server: s} }
		},
	},
	{
		name: "the device counts by its wall clock, not the time that is left", within: 20,
		parts: func(s *server, parts *app.Parts) {
			parts.Links = func(l dispatch.Links) dispatch.Links { return clocked{l, s} }
		},
	},
	{
		name: "an old link's clean-up removes the newer one", within: 50,
		parts: func(s *server, parts *app.Parts) {
			gone := &cleanUp{newest: map[string]uint64{}, removed: map[string]uint64{}}
			parts.Directory = func(d link.Directory) link.Directory { return departures{d, gone} }
			parts.Links = func(l dispatch.Links) dispatch.Links { return removals{l, gone} }
		},
	},
	{
		name: "a watcher misses an event when it reads two at once", within: 20,
		parts: func(_ *server, parts *app.Parts) {
			parts.Events = func(j event.Journal) event.Journal { return skipping{j} }
		},
	},
	{
		name: "a watcher is told an event again after it was silent", within: 20,
		parts: func(_ *server, parts *app.Parts) {
			parts.Events = func(j event.Journal) event.Journal { return repeating{j} }
		},
	},
	{
		name: "the journal loses what was started when the device restarts", within: 50,
		wrap: func(j *journal) throwbar.Journal { return &lossy{journal: j, begun: map[string]bool{}} },
	},
	{
		name: "the journal forgets outcomes that have no receipt when the device restarts", within: 50,
		wrap: func(j *journal) throwbar.Journal { return &amnesic{journal: j, begun: map[string]bool{}} },
	},
	{name: "handlers do not look at their deadline", within: 20, patience: true},
}

// TestPlantedBugs shows that each planted bug is found, and that the seed that finds it passes without it.
func TestPlantedBugs(t *testing.T) {
	t.Parallel()
	if *oneSeed >= 0 {
		t.Skip("one seed was asked for")
	}
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			for seed := range b.within {
				broken, _ := once(t, uint64(seed+1), b)
				if len(broken) == 0 {
					continue
				}
				t.Logf("found by seed %d: %s", seed+1, broken[0])
				broken, trace := once(t, uint64(seed+1), nil)
				report(t, uint64(seed+1), broken, trace)
				return
			}
			t.Errorf("not found by %d seeds", b.within)
		})
	}
}

// hasty answers before it writes.
type hasty struct{ dispatch.Ledger }

// Accept says that commands are written and writes them.
func (h hasty) Accept(ctx context.Context, commands []dispatch.Acceptance) error {
	copies := slices.Clone(commands)
	go func() { _ = h.Ledger.Accept(context.WithoutCancel(ctx), copies) }()
	return nil
}

// Finish says that ends are written and writes them.
func (h hasty) Finish(ctx context.Context, ends []dispatch.End) error {
	copies := slices.Clone(ends)
	go func() { _ = h.Ledger.Finish(ctx, copies) }()
	return nil
}

// forgetful does not write every tenth end.
type forgetful struct {
	dispatch.Ledger

	mu sync.Mutex
	n  int // guarded by mu
}

// Finish writes most ends.
func (f *forgetful) Finish(ctx context.Context, ends []dispatch.End) error {
	var rest []dispatch.End
	f.mu.Lock()
	for _, e := range ends {
		if f.n++; f.n%10 != 0 {
			rest = append(rest, e)
		}
	}
	f.mu.Unlock()
	if len(rest) == 0 {
		return nil
	}
	return f.Ledger.Finish(ctx, rest)
}

// twice repeats the fifth command of a server under a new id.
type twice struct {
	dispatch.Links
	server *server

	mu sync.Mutex
	n  int // guarded by mu
}

// Send queues a frame.
func (w *twice) Send(device string, epoch uint64, frame *devicev1.ServerFrame) bool {
	sent := w.Links.Send(device, epoch, frame)
	w.mu.Lock()
	defer w.mu.Unlock()
	if frame.GetCommand() != nil {
		if w.n++; w.n == 5 {
			again := proto.CloneOf(frame)
			again.GetCommand().CommandId = "again-" + again.GetCommand().GetCommandId()
			return w.Links.Send(device, epoch, again)
		}
	}
	return sent
}

// clocked gives devices the time left that they would find if they were sent the deadline and asked their clocks.
type clocked struct {
	dispatch.Links
	server *server
}

// Send queues a frame.
func (c clocked) Send(device string, epoch uint64, frame *devicev1.ServerFrame) bool {
	if command := frame.GetCommand(); command != nil {
		s := c.server.sim
		d := s.devices[s.number(device)]
		d.mu.Lock()
		clock := s.plan.clocks[d.n][(d.starts-1)%len(s.plan.clocks[d.n])]
		d.mu.Unlock()
		frame = proto.CloneOf(frame)
		frame.GetCommand().TimeLeft = durationpb.New(command.GetTimeLeft().AsDuration() + c.server.clock - clock)
	}
	return c.Links.Send(device, epoch, frame)
}

// cleanUp is a hub's table of links whose clean-up does not look whose entry it removes.
type cleanUp struct {
	mu      sync.Mutex
	newest  map[string]uint64 // guarded by mu
	removed map[string]uint64 // guarded by mu; links that are there and not found
}

type departures struct {
	link.Directory
	table *cleanUp
}

// Online notes a new link.
func (d departures) Online(ctx context.Context, device string, hello *devicev1.Hello) (string, uint64, error) {
	name, epoch, err := d.Directory.Online(ctx, device, hello)
	d.table.mu.Lock()
	defer d.table.mu.Unlock()
	d.table.newest[device] = epoch
	return name, epoch, err
}

// Offline removes whatever link there is.
func (d departures) Offline(device string, epoch uint64) {
	d.table.mu.Lock()
	defer d.table.mu.Unlock()
	d.table.removed[device] = d.table.newest[device]
	d.Directory.Offline(device, d.table.newest[device])
}

type removals struct {
	dispatch.Links
	table *cleanUp
}

// Connected is the link, if its entry is still there.
func (r removals) Connected(device string) uint64 {
	epoch := r.Links.Connected(device)
	r.table.mu.Lock()
	defer r.table.mu.Unlock()
	if r.table.removed[device] == epoch {
		return 0
	}
	return epoch
}

// skipping loses the second of the events that are read at once, if they are just two.
type skipping struct{ event.Journal }

// After lists events.
func (s skipping) After(ctx context.Context, workspace, device string, cursor uint64, limit int) ([]*controlv1.Event, error) {
	events, err := s.Journal.After(ctx, workspace, device, cursor, limit)
	if len(events) == 2 {
		events = events[:1]
	}
	return events, err
}

// repeating tells the last event again when there is none.
type repeating struct{ event.Journal }

// After lists events.
func (r repeating) After(ctx context.Context, workspace, device string, cursor uint64, limit int) ([]*controlv1.Event, error) {
	events, err := r.Journal.After(ctx, workspace, device, cursor, limit)
	if len(events) == 0 && cursor%5 == 0 && err == nil {
		return r.Journal.After(ctx, workspace, device, cursor-1, limit)
	}
	return events, err
}

// lossy knows only what this process has started.
type lossy struct {
	*journal

	mu    sync.Mutex
	begun map[string]bool // guarded by mu
}

func (l *lossy) knows(e throwbar.Entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return e.Outcome != nil || l.begun[e.CommandID]
}

// Entries are those that are not lost.
func (l *lossy) Entries() []throwbar.Entry {
	return slices.DeleteFunc(l.journal.Entries(), func(e throwbar.Entry) bool { return !l.knows(e) })
}

// Lookup finds an entry that is not lost.
func (l *lossy) Lookup(id string) (throwbar.Entry, bool) {
	e, ok := l.journal.Lookup(id)
	return e, ok && l.knows(e)
}

// Start notes a start.
func (l *lossy) Start(id string, action *commandv1.Action) error {
	l.mu.Lock()
	l.begun[id] = true
	l.mu.Unlock()
	return l.journal.Start(id, action)
}

// amnesic knows an outcome without a receipt only while the process runs in which it came about.
type amnesic struct {
	*journal

	mu    sync.Mutex
	begun map[string]bool // guarded by mu; outcomes of this process
}

func (a *amnesic) knows(e throwbar.Entry) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return e.Outcome == nil || e.Receipted || a.begun[e.CommandID]
}

// Entries are those that are not forgotten.
func (a *amnesic) Entries() []throwbar.Entry {
	return slices.DeleteFunc(a.journal.Entries(), func(e throwbar.Entry) bool { return !a.knows(e) })
}

// Lookup finds an entry that is not forgotten.
func (a *amnesic) Lookup(id string) (throwbar.Entry, bool) {
	e, ok := a.journal.Lookup(id)
	return e, ok && a.knows(e)
}

// Finish notes an outcome.
func (a *amnesic) Finish(outcome *devicev1.Outcome) error {
	a.mu.Lock()
	a.begun[outcome.GetCommandId()] = true
	a.mu.Unlock()
	return a.journal.Finish(outcome)
}
