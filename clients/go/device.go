package throwbar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// DeviceConfig is what a Device is made of.
type DeviceConfig struct {
	Identity Identity // from Pair or LoadIdentity
	// Keep is called with the identity whenever its tokens change, before they are used: it has to write them down so that
	// they outlast the process. A device without it keeps the token that it has, also when the server asks for a new one.
	Keep    func(Identity) error
	Handler commandv1.Handler // runs the commands
	Actions []string          // names of the commands that it runs, for example closeTabs; it is offered no others

	Version  string // of the program
	Agent    string // browser or program and its version
	Platform string // operating system
	BootTag  string // tag in the composite ids of this start of the browser; empty if it makes none

	State     StateSource        // browser state to push; nil if there is none
	Journal   Journal            // a MemoryJournal if left out
	Catalogue *catalog.Catalogue // the built-in one if left out; share one between many devices
	Transport Transport          // Bidi if left out

	HTTPClient HTTPClient     // one of its own if left out; it has to speak HTTP/2 for Bidi
	Spread     time.Duration  // the first link is dialled after a random part of it; at once if left out
	Concurrent int            // most commands that run at a time; 64 if left out
	OnStatus   func(Status)   // called from Run when a link stands or ends; must return soon
	Jitter     func() float64 // random numbers in [0, 1), safe for concurrent use
	Log        *slog.Logger   // silent if left out
}

// Status is what becomes of a device's link.
type Status struct {
	Connected bool
	Name      string        // the device's name as the server has it; while connected
	LinkID    string        // while connected
	Err       error         // why the link ended, while not connected
	RetryIn   time.Duration // when the next one is dialled, while not connected
}

const defaultConcurrent = 64

// Device holds one device's link to its server and runs the commands that come over it.
type Device struct {
	cfg     DeviceConfig
	dialer  dialer
	keeper  *keeper
	running atomic.Bool
	pause   pause

	getToken func(context.Context) (string, error) // another token from the server
}

// NewDevice makes a device. It dials nothing yet.
func NewDevice(cfg DeviceConfig) (*Device, error) {
	if cfg.Handler == nil {
		return nil, errors.New("a device needs a handler")
	}
	if cfg.Identity.DeviceID == "" || cfg.Identity.Token == "" {
		return nil, errors.New("a device needs an identity: pair it first")
	}
	server, err := serverURL(cfg.Identity.Server)
	if err != nil {
		return nil, err
	}
	way, err := newWire(server, cfg.Identity.ServerKey, cfg.Identity.Plaintext, cfg.HTTPClient)
	if err != nil {
		return nil, err
	}
	if cfg.Catalogue == nil {
		if cfg.Catalogue, err = catalog.New(gen.Descriptors); err != nil {
			return nil, fmt.Errorf("read built-in catalogue: %w", err)
		}
	}
	d := &Device{cfg: cfg, keeper: &keeper{keep: cfg.Keep, identity: cfg.Identity}}
	d.setDefaults()
	client := d.cfg.HTTPClient
	if client == nil {
		client = newLinkHTTP(way)
	}
	d.getToken = rotator(client, server, d.keeper.token)
	switch cfg.Transport {
	case Bidi:
		d.dialer = newBidiDialer(client, server, d.keeper.token)
	case WatchReport:
		d.dialer = newWatchDialer(client, server, d.keeper.token, d.cfg.Jitter)
	default:
		return nil, fmt.Errorf("there is no transport %d", cfg.Transport)
	}
	return d, nil
}

func (d *Device) setDefaults() {
	if d.cfg.Journal == nil {
		d.cfg.Journal = NewMemoryJournal()
	}
	if d.cfg.Concurrent <= 0 {
		d.cfg.Concurrent = defaultConcurrent
	}
	if d.cfg.OnStatus == nil {
		d.cfg.OnStatus = func(Status) {}
	}
	if d.cfg.Jitter == nil {
		d.cfg.Jitter = rand.Float64
	}
	if d.cfg.Log == nil {
		d.cfg.Log = slog.New(slog.DiscardHandler)
	}
}

// Run keeps the device connected until the context ends, which is the clean way to stop it: running commands are
// asked to stop and waited for, and the server is told. It ends by itself with ErrReplaced, with ErrRevoked, or with
// the *Error of a server that does not accept the device's token.
func (d *Device) Run(ctx context.Context) error {
	if !d.running.CompareAndSwap(false, true) {
		return errors.New("this device runs already")
	}
	defer d.running.Store(false)
	e := newExecutor(d.cfg, &d.pause)
	ctx, cancel := context.WithCancelCause(ctx)
	defer e.wait()
	defer cancel(errStopped)
	e.restore(ctx)

	push := &pusher{source: d.cfg.State}
	pause := &backoff{jitter: d.cfg.Jitter}
	wait := time.Duration(d.cfg.Jitter() * float64(d.cfg.Spread))
	again := false
	for sleep(ctx, wait) {
		end := d.link(ctx, e, push)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(end.err, errRotated) || d.keeper.fallBack(end.err) {
			if wait = 0; again { // with the other token, at once, but not over and over
				wait = pause.next(0)
			}
			again = true
			continue
		}
		again = false
		if end.final() {
			d.cfg.OnStatus(Status{Err: end.err})
			return end.err
		}
		if end.lasted >= healthyAfter {
			pause.reset()
		}
		wait = pause.next(end.retryAfter)
		d.cfg.OnStatus(Status{Err: end.err, RetryIn: wait})
		d.cfg.Log.InfoContext(ctx, "link ended", slog.String("device_id", d.cfg.Identity.DeviceID),
			slog.Any("error", end.err), slog.Duration("retry_in", wait))
	}
	return nil
}

// sleep waits and says whether the context goes on.
func sleep(ctx context.Context, wait time.Duration) bool {
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// linkEnd is how a link ended.
type linkEnd struct {
	err        error
	retryAfter time.Duration // what the server asked for
	lasted     time.Duration // from the welcome
}

// final says whether the device has to stay away.
func (e linkEnd) final() bool {
	if errors.Is(e.err, ErrReplaced) || errors.Is(e.err, ErrRevoked) {
		return true
	}
	var own *Error
	return errors.As(e.err, &own) && own.remote && (own.Code == CodeUnauthenticated || own.Code == CodeDenied)
}

// hello is what the device says of itself, but for its commands.
func (d *Device) hello() *devicev1.Hello {
	return &devicev1.Hello{
		DeviceId:        d.cfg.Identity.DeviceID,
		Version:         d.cfg.Version,
		Agent:           d.cfg.Agent,
		Platform:        d.cfg.Platform,
		BootTag:         d.cfg.BootTag,
		CatalogueDigest: d.cfg.Catalogue.Digest(),
		Actions:         d.cfg.Actions,
		Time:            timestamppb.Now(), // for showing how far the clock is off
		Paused:          d.pause.is(),
	}
}
