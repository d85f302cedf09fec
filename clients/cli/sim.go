package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/clients/sim"
	"throwbar.dev/throwbar/gen"
)

const (
	simTabs    = 40
	simWindows = 2
	simMost    = 10_000
)

// simVerb runs simulated browsers.
func (p *program) simVerb() *cobra.Command {
	var ask simAsk
	c := &cobra.Command{
		Use:     "sim",
		Short:   "Run simulated browsers until interrupted",
		GroupID: groupDevices,
		Long: "Run simulated browsers until interrupted. Each is a device of its own, with windows and tabs that are made from " +
			"the seed, and runs every browser command.\n\nThey are enrolled with the owner's token. A browser of the same name " +
			"is the same device the next time.",
		Example: "  throwbar sim --name laptop --name phone\n  throwbar sim --count 50 --tabs 200 --state-dir \"\"",
		Args:    p.takes(),
		RunE:    func(c *cobra.Command, _ []string) error { return p.runSim(c.Context(), ask) },
	}
	set := c.Flags()
	set.SortFlags = false
	set.StringArrayVar(&ask.names, "name", nil, "`name` of a browser; repeat it for several")
	set.IntVar(&ask.count, "count", 0, "run this `number` of browsers, called sim-1 and so on")
	set.IntVar(&ask.tabs, "tabs", simTabs, "`number` of tabs of each")
	set.IntVar(&ask.windows, "windows", simWindows, "`number` of windows of each")
	set.Uint64Var(&ask.seed, "seed", 1, "`number` that the tabs are made from; each further browser takes the next one")
	set.DurationVar(&ask.activity, "activity", 0, "mean `time` between two acts of a simulated person; none if left out")
	set.StringVar(&ask.folder, "state-dir", filepath.Join(DataDir(p.Env), "sim"),
		"`folder` that keeps who the browsers are; with an empty one they are new devices each time")
	return c
}

type simAsk struct {
	names         []string
	count         int
	tabs, windows int
	seed          uint64
	activity      time.Duration
	folder        string
}

// all are the names of all browsers.
func (a simAsk) all() ([]string, error) {
	names := slices.Clone(a.names)
	switch {
	case a.count < 0 || a.count > simMost || a.tabs < 1 || a.windows < 1 || a.windows > a.tabs:
		return nil, Errorf(Invalid, "--count has to be at most %d, and --tabs at least --windows, which is at least 1", simMost)
	case a.activity < 0:
		return nil, Errorf(Invalid, "--activity cannot be negative")
	}
	for i := range a.count {
		names = append(names, fmt.Sprintf("sim-%d", i+1))
	}
	if len(names) == 0 {
		names = []string{"sim"}
	}
	for i, name := range names {
		if name == "" || slices.Contains(names[:i], name) {
			return nil, Errorf(Invalid, "--name %q is empty or there twice", name)
		}
	}
	return names, nil
}

// simulators are the browsers of one run.
type simulators struct {
	program   *program
	server    *throwbar.Client
	catalogue *catalog.Catalogue
	ask       simAsk

	say  sync.Mutex // one line at a time
	runs sync.WaitGroup
	ends chan error // one from each run
}

func (p *program) runSim(ctx context.Context, ask simAsk) error {
	names, err := ask.all()
	if err != nil {
		return err
	}
	s, err := p.api()
	if err != nil {
		return err
	}
	catalogue, err := catalog.New(gen.Descriptors)
	if err != nil {
		return fmt.Errorf("read the program's own catalogue: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	all := &simulators{program: p, server: s, catalogue: catalogue, ask: ask, ends: make(chan error, len(names))}
	defer all.runs.Wait()
	defer cancel(nil)
	for i, name := range names {
		if err := all.start(ctx, name, ask.seed+uint64(i)); err != nil {
			return fmt.Errorf("browser %s: %w", name, err)
		}
	}
	var codes []int
	for range names {
		codes = append(codes, all.report(<-all.ends))
	}
	return exit(codes)
}

// report says at once why a browser ended by itself; the others go on.
func (a *simulators) report(err error) int {
	if err == nil {
		return OK
	}
	a.say.Lock()
	defer a.say.Unlock()
	code, text := a.program.explain(err)
	a.program.err.Line(term.Red, "throwbar: %s", text)
	return code
}

// start enrols a browser and runs it.
func (a *simulators) start(ctx context.Context, name string, seed uint64) error {
	identity, err := sim.EnrolWithOwner(ctx, a.server, name, a.ask.folder)
	if err != nil {
		return err
	}
	// What it was enrolled with may be older than what this run was told.
	if key := a.program.flags.serverKey; key != "" {
		identity.ServerKey = key
	}
	identity.Plaintext = a.program.flags.plaintext
	device := throwbar.DeviceConfig{
		Identity: identity, Catalogue: a.catalogue, Version: a.program.Version, OnStatus: a.status(name, identity.DeviceID),
	}
	device.Keep = func(throwbar.Identity) error { return nil } // without a folder it is another device the next time
	done := func() error { return nil }
	if a.ask.folder != "" {
		journal, err := throwbar.OpenJournal(sim.JournalPath(a.ask.folder, a.server.Server(), name))
		if err != nil {
			return fmt.Errorf("open the journal: %w", err)
		}
		device.Journal, done = journal, journal.Close
		path := sim.IdentityPath(a.ask.folder, a.server.Server(), name)
		device.Keep = func(i throwbar.Identity) error { return i.Save(path) }
	}
	browser, err := sim.New(sim.Config{
		Device: device, Activity: a.ask.activity,
		Contents: sim.Contents{Windows: a.ask.windows, Tabs: a.ask.tabs, Seed: seed},
	})
	if err != nil {
		return errors.Join(err, done())
	}
	a.runs.Go(func() {
		err := browser.Run(ctx)
		a.ends <- errors.Join(a.explain(name, err), done())
	})
	return nil
}

// explain says what to do about a browser that ended by itself.
func (a *simulators) explain(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, throwbar.ErrRevoked), throwbar.CodeOf(err) == throwbar.CodeUnauthenticated:
		path := sim.IdentityPath(a.ask.folder, a.server.Server(), name)
		return Errorf(Unauthenticated, "the server does not know the browser %s any more: remove %s to enrol it again", name, path)
	default:
		return fmt.Errorf("browser %s: %w", name, err)
	}
}

// status prints what becomes of a browser's link.
func (a *simulators) status(name, id string) func(throwbar.Status) {
	return func(s throwbar.Status) {
		a.say.Lock()
		defer a.say.Unlock()
		p := a.program
		switch {
		case p.flags.json():
			line := struct {
				DeviceID string `json:"deviceId"`
				Name     string `json:"name"`
				Online   bool   `json:"online"`
			}{id, name, s.Connected}
			_ = p.printLine(line) // plain values always are JSON
		case s.Connected:
			p.out.Line(term.Plain, "%s (%s) is online with %d tabs", s.Name, id, a.ask.tabs)
		case s.RetryIn > 0:
			why := "the server ended it"
			if s.Err != nil {
				_, why = p.explain(s.Err)
			}
			p.err.Line(term.Yellow, "%s (%s) has lost its link and dials again in %s: %s", name, id, term.Span(s.RetryIn), why)
		}
	}
}
