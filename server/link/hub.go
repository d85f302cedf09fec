package link

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/fault"
)

// Commands is told what devices say of commands.
type Commands interface {
	// Reconnected returns those of the running commands that the device should go on with.
	Reconnected(device string, running []string, outcomes []*devicev1.Outcome) []string
	// Displaced is called before Attached when the device's link was taken, while it stood, by another start of its
	// program: what went out on that link may be under way there still, so it must not be sent again. The new one has
	// what is in has.
	Displaced(device string, has []string)
	// Attached is called when frames can be sent on a new link.
	Attached(device string, epoch uint64, has []string)
	Acknowledged(device, commandID string)
	Outcome(device string, outcome *devicev1.Outcome)
}

// State is told what devices say of their browsers.
type State interface {
	// Attach begins a new link. It says whether a snapshot is needed.
	Attach(device, boot string, epoch uint64) bool
	// Snapshot and Delta say why a snapshot is needed, if one is. An error ends the link.
	Snapshot(device string, epoch uint64, s *devicev1.Snapshot) (resync string, err error)
	Delta(device string, epoch uint64, d *devicev1.Delta) (resync string, err error)
	// Detach says that the link is gone, and what is known is not live any more.
	Detach(device string, epoch uint64)
}

// Directory is told who comes and goes.
type Directory interface {
	// Online returns the device's name and the number of its new link, higher than any before. It is a conflict if the
	// present link was dialled later.
	Online(ctx context.Context, device string, hello *devicev1.Hello) (name string, epoch uint64, err error)
	Offline(device string, epoch uint64)
	// Condition notes what a person has set on the device itself, as its link with that number says.
	Condition(device string, epoch uint64, c *devicev1.Condition)
	// Away is called instead of Offline when the server stops: the device will come back.
	Away(device string, epoch uint64)
}

// Config is what a Hub is made of. Heartbeat, Lease and AdmitPerSecond are the package's own where they are zero.
type Config struct {
	State     State
	Directory Directory
	NewID     func() string
	Log       *slog.Logger
	Meter     Meter // may be nil
	Heartbeat time.Duration
	Lease     time.Duration

	AdmitPerSecond int
}

// Hub has the current link of each connected device.
type Hub struct {
	Config

	commands Commands // set by Bind, before the first link
	start    time.Time
	gate     *gate

	mu       sync.Mutex       // never held while anything waits
	byDevice map[string]*Link // guarded by mu
	byID     map[string]*Link // guarded by mu
	stopping bool             // guarded by mu
	spread   time.Duration    // guarded by mu; over which devices come back after the stop
}

// New makes a hub. Bind has to be called before the first link.
func New(cfg Config) *Hub {
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = Heartbeat
	}
	if cfg.Lease == 0 {
		cfg.Lease = Lease
	}
	if cfg.AdmitPerSecond == 0 {
		cfg.AdmitPerSecond = AdmitPerSecond
	}
	if cfg.Meter == nil {
		cfg.Meter = noMeter{}
	}
	return &Hub{
		Config: cfg, start: time.Now(), gate: newGate(cfg.AdmitPerSecond),
		byDevice: map[string]*Link{}, byID: map[string]*Link{},
	}
}

// Bind says who is told of commands. It is apart from New because dispatch needs the hub and the hub needs dispatch.
func (h *Hub) Bind(commands Commands) { h.commands = commands }

// elapsed is the hub's clock: monotonic, whatever happens to the wall clock.
func (h *Hub) elapsed() time.Duration { return time.Since(h.start) }

// Admit waits for a new link's turn. When too many devices come at once it returns the End that the device is to be
// told: nothing was read of it yet, and nothing is written.
func (h *Hub) Admit(ctx context.Context) error {
	h.mu.Lock()
	stopping := h.stopping
	h.mu.Unlock()
	if stopping {
		return h.away()
	}
	turn, retry := h.gate.enter(h.elapsed())
	if retry > 0 {
		h.Meter.LinkRefused()
		return busy(retry)
	}
	if turn == 0 {
		return nil
	}
	timer := time.NewTimer(turn)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Open begins a link. The newest link of a device wins: an older one is told that it is replaced. The Welcome is the
// first frame of the new one, and what waits for the device follows. Rotate says whether the device should take another
// token. The caller then has to call Serve.
func (h *Hub) Open(ctx context.Context, device, transport string, hello *devicev1.Hello, rotate func() bool) (*Link, error) {
	if hello.GetDeviceId() != device {
		return nil, fault.New(fault.Forbidden, "the token belongs to another device than %q", hello.GetDeviceId())
	}
	name, epoch, err := h.Directory.Online(ctx, device, hello)
	if fault.CodeOf(err) == fault.Conflict {
		h.Log.InfoContext(ctx, "a late hello was refused", slog.String("device_id", device), slog.Uint64("dial", hello.GetDial()))
		return nil, replaced()
	}
	if err != nil {
		return nil, fmt.Errorf("open a link of %s: %w", device, err)
	}
	l := newLink(h, device, transport, epoch)
	l.boot = hello.GetBootTag()
	// The older link ends before anything is sent on the new one, so that no command is on two links.
	displaced, end := h.replace(l)
	if end != nil {
		h.gone(l, end)
		return nil, end
	}
	h.Meter.LinkOpened(transport)
	asked := rotate()
	keep := h.commands.Reconnected(device, hello.GetRunningCommandIds(), nil)
	l.queue(&devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Welcome{Welcome: &devicev1.Welcome{
		LinkId: l.ID, Epoch: epoch, Heartbeat: durationpb.New(h.Heartbeat), Lease: durationpb.New(h.Lease),
		Resync: h.State.Attach(device, hello.GetBootTag(), epoch), KeepCommandIds: keep, Name: name,
		RotateToken: asked,
	}}})
	if end := h.settle(l); end != nil {
		l.finish(end)
		return l, nil // Serve says why
	}
	if !asked && rotate() { // it was asked for meanwhile, when there was no link to tell
		l.queue(rotation())
	}
	// The outcomes come after the link stands, for their receipts travel on it, and before what waits is sent again.
	for _, o := range hello.GetOutcomes() {
		h.commands.Outcome(device, o)
	}
	if displaced {
		h.commands.Displaced(device, keep)
	}
	h.commands.Attached(device, epoch, keep)
	return l, nil
}

// replace makes room for a link: the device has none until settle. It returns why the link must not be opened, and
// whether it took the place of a link that stood, of another start of the device's program.
func (h *Hub) replace(l *Link) (displaced bool, end *End) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopping {
		return false, h.awayLocked()
	}
	if old := h.byDevice[l.Device]; old != nil {
		if old.Epoch > l.Epoch {
			return false, replaced()
		}
		displaced = !old.ended() && old.boot != l.boot
		delete(h.byDevice, l.Device)
		delete(h.byID, old.ID)
		old.finish(replaced())
	}
	h.byID[l.ID] = l
	return displaced, nil
}

// settle makes a link the current one. It returns why it cannot be.
func (h *Hub) settle(l *Link) *End {
	h.mu.Lock()
	defer h.mu.Unlock()
	other := h.byDevice[l.Device]
	switch {
	case other != nil && other.Epoch > l.Epoch:
		return replaced()
	case h.stopping:
		return h.awayLocked()
	case l.ended():
		return nil // its clean-up may be over
	case other != nil:
		delete(h.byID, other.ID)
		other.finish(replaced())
	}
	h.byDevice[l.Device] = l
	return nil
}

// leave removes a link that has ended, and only it: a newer one of the same device stays.
func (h *Hub) leave(l *Link) {
	h.mu.Lock()
	delete(h.byID, l.ID)
	if h.byDevice[l.Device] == l {
		delete(h.byDevice, l.Device)
	}
	h.mu.Unlock()
	h.Meter.LinkEnded(l.transport, l.end.label)
	h.State.Detach(l.Device, l.Epoch)
	h.gone(l, l.end)
}

// gone tells the directory that a link has ended, or was not opened after all.
func (h *Hub) gone(l *Link, end *End) {
	if end.reason == devicev1.EndReason_END_REASON_GOING_AWAY {
		h.Directory.Away(l.Device, l.Epoch)
		return
	}
	h.Directory.Offline(l.Device, l.Epoch)
}

// Find is the current link with an id, if it is the device's.
func (h *Hub) Find(device, id string) (*Link, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.byID[id]
	if l == nil || l.Device != device {
		return nil, fault.New(fault.NotFound, "this link has ended: open a new one")
	}
	return l, nil
}

// current is the device's link; nil if it has none that stands.
func (h *Hub) current(device string) *Link {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.byDevice[device]; l != nil && !l.ended() {
		return l
	}
	return nil
}

// Connected is the number of the device's current link; zero if it has none.
func (h *Hub) Connected(device string) uint64 {
	if l := h.current(device); l != nil {
		return l.Epoch
	}
	return 0
}

// Send queues a frame on the given link of a device. It says false if that is not the current one.
func (h *Hub) Send(device string, epoch uint64, frame *devicev1.ServerFrame) bool {
	l := h.current(device)
	return l != nil && l.Epoch == epoch && l.queue(frame)
}

// Rotate asks the device to take another token, if it has a link.
func (h *Hub) Rotate(device string) {
	if l := h.current(device); l != nil {
		l.queue(rotation())
	}
}

func rotation() *devicev1.ServerFrame {
	return &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Rotate{Rotate: &devicev1.RotateRequest{}}}
}

// Revoke ends a device's link at once.
func (h *Hub) Revoke(device string) {
	if l := h.current(device); l != nil {
		l.finish(revoked())
	}
}

// Drain tells every device to come back later, and takes no new link. Each is told another time within the spread,
// which is at least as long as admitting them all takes.
func (h *Hub) Drain(spread time.Duration) {
	h.mu.Lock()
	h.stopping = true
	h.spread = max(spread, time.Duration(len(h.byID))*h.gate.every)
	h.mu.Unlock()
	for _, l := range h.all() {
		l.finish(h.away())
	}
}

func (h *Hub) away() *End {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.awayLocked()
}

func (h *Hub) awayLocked() *End {
	return goingAway(time.Millisecond + time.Duration(rand.Float64()*float64(h.spread)))
}
