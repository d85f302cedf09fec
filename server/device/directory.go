// Package device is the directory of devices: who they are, whether they are here, and how a new one is paired.
package device

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
)

const (
	maxDevices = 20_000
	// epochStep is how far epochs are raised at each start. The epoch of a new link is written a moment after the link
	// is opened; what a crash or a power cut loses of that is less than this.
	epochStep = 1 << 20
)

// Device is one device as it is stored.
type Device struct {
	ID, Workspace, Name string

	Kind            devicev1.Kind
	Agent, Platform string
	Origin          string // of the browser extension that it is; empty for others
	PairedAt        time.Time
	LastSeen        time.Time
	Boot            string
	Actions         []string
	Epoch           uint64
	Online          bool // has a link
	// Away says that it had a link when the server stopped, and that it is not known yet whether it comes back. Online
	// or Away is stored.
	Away bool
	// Skew is how far its wall clock was ahead of the server's when it connected. It is shown, never stored, and
	// nothing depends on it.
	Skew time.Duration
	// Paused says that a person has paused it on the device itself. It is known while the device has a link, which says it
	// before anything else, and it is never stored: whether a device is paused that is not here, nobody can say.
	Paused bool
	// Dial is the number that the present link's Hello had, which orders the dials of a device; zero if it had none.
	Dial uint64
}

// Store keeps devices.
type Store interface {
	// Devices reads all of them. Those that were online when the server stopped are Away.
	Devices(ctx context.Context) ([]Device, error)
	// Begin raises the epochs of all devices by a step, and returns when that is on disk.
	Begin(ctx context.Context, step uint64) error
	// Seen notes what a device said of itself; it may be written a moment later. Change is unspecified or an event.
	Seen(d Device, change controlv1.DeviceChange)
	Rename(ctx context.Context, d Device) error
	// Revoke removes the device and its tokens.
	Revoke(ctx context.Context, d Device) error
}

// Directory knows all devices of the server. It is read from the store once and then kept in step with it.
type Directory struct {
	store Store
	now   func() time.Time
	log   *slog.Logger

	mu      sync.RWMutex       // the store's Seen is called under it, and only queues
	devices map[string]*Device // guarded by mu
	names   map[string][]Named // by workspace, guarded by mu; emptied by a change
}

// NewDirectory reads the stored devices.
func NewDirectory(ctx context.Context, store Store, now func() time.Time, log *slog.Logger) (*Directory, error) {
	stored, err := store.Devices(ctx)
	if err != nil {
		return nil, fmt.Errorf("read devices: %w", err)
	}
	d := &Directory{store: store, now: now, log: log, devices: map[string]*Device{}, names: map[string][]Named{}}
	for i := range stored {
		d.devices[stored[i].ID] = &stored[i]
	}
	return d, nil
}

// Begin makes sure that no epoch of an earlier run of the server is used again. It has to return before the first link.
func (d *Directory) Begin(ctx context.Context) error {
	if err := d.store.Begin(ctx, epochStep); err != nil {
		return fmt.Errorf("raise epochs: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dev := range d.devices {
		dev.Epoch += epochStep
	}
	return nil
}

// Run waits for the devices that were online when the server stopped. Those that are not back within the grace have
// gone offline.
func (d *Directory) Run(ctx context.Context, grace time.Duration) error {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-timer.C:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dev := range d.devices {
		if dev.Away {
			dev.Away = false
			d.store.Seen(*dev, controlv1.DeviceChange_DEVICE_CHANGE_OFFLINE)
		}
	}
	return nil
}

// Add makes a paired device known.
func (d *Directory) Add(dev Device) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.devices[dev.ID] = &dev
	clear(d.names)
}

// Room is a fault if no further device can be paired.
func (d *Directory) Room() error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if len(d.devices) >= maxDevices {
		return fault.New(fault.Busy, "this server has %d devices: revoke one first", maxDevices)
	}
	return nil
}

// Get is a device of a workspace.
func (d *Directory) Get(workspace, id string) (Device, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	dev := d.devices[id]
	if dev == nil || dev.Workspace != workspace {
		return Device{}, fault.New(fault.NotFound, "there is no device %q: list devices to get their ids", id)
	}
	return *dev, nil
}

// Find is what dispatch has to know of a device of a workspace.
func (d *Directory) Find(workspace, id string) (dispatch.Device, error) {
	dev, err := d.Get(workspace, id)
	if err != nil {
		return dispatch.Device{}, err
	}
	return dispatch.Device{ID: dev.ID, Name: dev.Name, Boot: dev.Boot, Actions: dev.Actions, Away: dev.Away}, nil
}

// List are the devices of a workspace by name.
func (d *Directory) List(workspace string) []Device {
	d.mu.RLock()
	var out []Device
	for _, dev := range d.devices {
		if dev.Workspace == workspace {
			out = append(out, *dev)
		}
	}
	d.mu.RUnlock()
	slices.SortFunc(out, func(a, b Device) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

// Online notes a new link of a device. It implements link.Directory. It is a conflict if the present link was dialled
// later: this Hello was held up on its way.
func (d *Directory) Online(_ context.Context, id string, hello *devicev1.Hello) (string, uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dev := d.devices[id]
	if dev == nil {
		return "", 0, fault.New(fault.NotFound, "this device was revoked: pair it again")
	}
	if dev.Online && hello.GetDial() != 0 && hello.GetDial() < dev.Dial {
		return "", 0, fault.New(fault.Conflict, "this device has dialled again since: the later link stays")
	}
	change := controlv1.DeviceChange_DEVICE_CHANGE_UNSPECIFIED
	if !dev.Online && !dev.Away {
		change = controlv1.DeviceChange_DEVICE_CHANGE_ONLINE
	}
	dev.Epoch++
	dev.Online, dev.Away = true, false
	dev.LastSeen = d.now()
	dev.Skew = 0
	if hello.GetTime() != nil {
		dev.Skew = hello.GetTime().AsTime().Sub(dev.LastSeen)
	}
	dev.Dial = hello.GetDial()
	dev.Boot = hello.GetBootTag()
	dev.Actions = hello.GetActions()
	dev.Agent = orElse(hello.GetAgent(), dev.Agent)
	dev.Platform = orElse(hello.GetPlatform(), dev.Platform)
	was := dev.Paused
	dev.Paused = hello.GetPaused()
	if change != controlv1.DeviceChange_DEVICE_CHANGE_UNSPECIFIED || dev.Paused == was {
		d.store.Seen(*dev, change)
	}
	if dev.Paused != was { // a device that comes is connected first, and then paused
		d.store.Seen(*dev, pauseChange(dev.Paused))
	}
	return dev.Name, dev.Epoch, nil
}

func pauseChange(paused bool) controlv1.DeviceChange {
	if paused {
		return controlv1.DeviceChange_DEVICE_CHANGE_PAUSED
	}
	return controlv1.DeviceChange_DEVICE_CHANGE_RESUMED
}

// Condition notes what a person has set on a device. What an older link than the current one says changes nothing.
func (d *Directory) Condition(id string, epoch uint64, c *devicev1.Condition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dev := d.devices[id]
	if dev == nil || dev.Epoch != epoch || !dev.Online || dev.Paused == c.GetPaused() {
		return
	}
	dev.Paused = c.GetPaused()
	dev.LastSeen = d.now()
	d.store.Seen(*dev, pauseChange(dev.Paused))
}

// Offline notes that a link is gone. The end of an older link than the current one changes nothing.
func (d *Directory) Offline(id string, epoch uint64) {
	d.gone(id, epoch, false, controlv1.DeviceChange_DEVICE_CHANGE_OFFLINE)
}

// Away notes that a link is gone because the server stops.
func (d *Directory) Away(id string, epoch uint64) {
	d.gone(id, epoch, true, controlv1.DeviceChange_DEVICE_CHANGE_UNSPECIFIED)
}

func (d *Directory) gone(id string, epoch uint64, away bool, change controlv1.DeviceChange) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dev := d.devices[id]
	if dev == nil || dev.Epoch != epoch || !dev.Online {
		return
	}
	dev.Online, dev.Away, dev.Paused = false, away, false
	dev.LastSeen = d.now()
	d.store.Seen(*dev, change)
}

// Rename gives a device another name.
func (d *Directory) Rename(ctx context.Context, workspace, id, name string) (Device, error) {
	dev, err := d.Get(workspace, id)
	if err != nil {
		return Device{}, err
	}
	if name, err = deviceName(name); err != nil {
		return Device{}, err
	}
	dev.Name = name
	if err := d.store.Rename(ctx, dev); err != nil {
		return Device{}, fmt.Errorf("rename device %s: %w", id, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if cur := d.devices[id]; cur != nil {
		cur.Name = name
		clear(d.names)
		return *cur, nil
	}
	return dev, nil
}

// Revoke forgets a device. Its link has to be ended by the caller.
func (d *Directory) Revoke(ctx context.Context, workspace, id string) error {
	dev, err := d.Get(workspace, id)
	if err != nil {
		return err
	}
	if err := d.store.Revoke(ctx, dev); err != nil {
		return fmt.Errorf("revoke device %s: %w", id, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.devices, id)
	clear(d.names)
	return nil
}

// Origin is the extension's origin that a device was paired with; empty for others.
func (d *Directory) Origin(id string) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if dev := d.devices[id]; dev != nil {
		return dev.Origin
	}
	return ""
}

// Origins are the extension origins that devices were paired with.
func (d *Directory) Origins() []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var out []string
	for _, dev := range d.devices {
		if dev.Origin != "" && !slices.Contains(out, dev.Origin) {
			out = append(out, dev.Origin)
		}
	}
	return out
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}
