package sim

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"throwbar.dev/throwbar/catalog"
	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/gen"
	"throwbar.dev/throwbar/ident"
)

// Agent is what a simulated browser says that it is.
const Agent = "Simulated browser 1"

// Config is what a Sim is made of.
type Config struct {
	// Device is the device that the browser is: its identity, and what else the device library may be told. The
	// handler, the actions, the state and, where they are left out, the boot tag, the agent and the platform are the
	// simulator's own. Many simulators of one process share a catalogue.
	Device throwbar.DeviceConfig

	Contents Contents      // what it shows at first
	Activity time.Duration // mean time between two acts of the simulated person; none if left out
	Delay    time.Duration // longest time that a command takes; none if left out
}

// Sim is a simulated browser that is a device.
type Sim struct {
	browser  *Browser
	device   *throwbar.Device
	activity time.Duration
}

var errEnded = errors.New("the device has ended")

// New makes a simulated browser. It dials nothing yet.
func New(cfg Config) (*Sim, error) {
	d := cfg.Device
	if d.Catalogue == nil {
		var err error
		if d.Catalogue, err = catalog.New(gen.Descriptors); err != nil {
			return nil, fmt.Errorf("read built-in catalogue: %w", err)
		}
	}
	if d.BootTag == "" {
		var err error
		if d.BootTag, err = ident.NewBootTag(rand.Reader); err != nil {
			return nil, fmt.Errorf("make boot tag: %w", err)
		}
	}
	if d.Agent == "" {
		d.Agent = Agent
	}
	if d.Platform == "" {
		d.Platform = "simulated"
	}
	b := NewBrowser(d.Identity.DeviceID, d.BootTag, cfg.Contents)
	b.delay = cfg.Delay
	d.Handler, d.State, d.Actions = b, b, Actions(d.Catalogue)
	device, err := throwbar.NewDevice(d)
	if err != nil {
		return nil, fmt.Errorf("make device: %w", err)
	}
	return &Sim{browser: b, device: device, activity: cfg.Activity}, nil
}

// Actions are the names of the commands that a simulated browser runs: those of the family that it implements.
func Actions(catalogue *catalog.Catalogue) []string {
	var names []string
	for _, e := range catalogue.Commands() {
		if e.Family == "tabs" {
			names = append(names, e.Name)
		}
	}
	return names
}

// Browser is what the simulator shows.
func (s *Sim) Browser() *Browser { return s.browser }

// SetPaused pauses the device as the person in front of it would, or ends the pause: see throwbar.Device.SetPaused.
func (s *Sim) SetPaused(paused bool) { s.device.SetPaused(paused) }

// Run holds the device's link until the context ends. See throwbar.Device.Run for how it ends by itself.
func (s *Sim) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var person sync.WaitGroup
	defer person.Wait()
	defer cancel(errEnded)
	if s.activity > 0 {
		person.Go(func() { s.browser.live(ctx, s.activity) })
	}
	return s.device.Run(ctx)
}
