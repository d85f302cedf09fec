package link

import (
	"context"
	"fmt"
	"log/slog"
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
	// Online returns the device's name and the number of its new link, higher than any before.
	Online(ctx context.Context, device string, hello *devicev1.Hello) (name string, epoch uint64, err error)
	Offline(device string, epoch uint64)
}

// Config is what a Hub is made of. Heartbeat and Lease are the package's own where they are zero.
type Config struct {
	State     State
	Directory Directory
	NewID     func() string
	Log       *slog.Logger
	Heartbeat time.Duration
	Lease     time.Duration
}

// Hub has the current link of each connected device.
type Hub struct {
	Config

	commands Commands // set by Bind, before the first link
	start    time.Time

	mu       sync.Mutex
	byDevice map[string]*Link // guarded by mu
	byID     map[string]*Link // guarded by mu
	closing  *endError        // guarded by mu; set once the server stops
}

// New makes a hub. Bind has to be called before the first link.
func New(cfg Config) *Hub {
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = Heartbeat
	}
	if cfg.Lease == 0 {
		cfg.Lease = Lease
	}
	return &Hub{Config: cfg, start: time.Now(), byDevice: map[string]*Link{}, byID: map[string]*Link{}}
}

// Bind says who is told of commands. It is apart from New because dispatch needs the hub and the hub needs dispatch.
func (h *Hub) Bind(commands Commands) { h.commands = commands }

// elapsed is the hub's clock: monotonic, whatever happens to the wall clock.
func (h *Hub) elapsed() time.Duration { return time.Since(h.start) }

// Open begins a link. The newest link of a device wins: an older one is told that it is replaced. The Welcome is the
// first frame of the new one, and what waits for the device follows.
func (h *Hub) Open(ctx context.Context, device string, hello *devicev1.Hello) (*Link, error) {
	if hello.GetDeviceId() != device {
		return nil, fault.New(fault.Forbidden, "the token belongs to another device than %q", hello.GetDeviceId())
	}
	name, epoch, err := h.Directory.Online(ctx, device, hello)
	if err != nil {
		return nil, fmt.Errorf("open a link of %s: %w", device, err)
	}
	l := &Link{
		ID: h.NewID(), Device: device, Epoch: epoch, hub: h,
		out: make(chan *devicev1.ServerFrame, outbox), done: make(chan struct{}),
	}
	l.heard.Store(int64(h.elapsed()))
	// The older link ends before anything is sent on the new one, so that no command is on two links.
	if err := h.replace(l); err != nil {
		h.Directory.Offline(device, epoch)
		return nil, err
	}
	keep := h.commands.Reconnected(device, hello.GetRunningCommandIds(), hello.GetOutcomes())
	l.queue(&devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Welcome{Welcome: &devicev1.Welcome{
		LinkId: l.ID, Epoch: epoch, Heartbeat: durationpb.New(h.Heartbeat), Lease: durationpb.New(h.Lease),
		Resync: h.State.Attach(device, hello.GetBootTag(), epoch), KeepCommandIds: keep, Name: name,
	}}})
	h.admit(l)
	h.commands.Attached(device, epoch, keep)
	return l, nil
}

// replace makes room for a link: the device has none until admit.
func (h *Hub) replace(l *Link) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing != nil {
		return fault.New(fault.Unavailable, "the server stops: come back later").Retry()
	}
	if old := h.byDevice[l.Device]; old != nil {
		if old.Epoch > l.Epoch {
			return fault.New(fault.Conflict, "a newer link of this device has taken over")
		}
		delete(h.byDevice, l.Device)
		delete(h.byID, old.ID)
		old.finish(&endError{reason: devicev1.EndReason_END_REASON_REPLACED, text: "a newer link of this device has taken over"})
	}
	h.byID[l.ID] = l
	return nil
}

func (h *Hub) admit(l *Link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if other := h.byDevice[l.Device]; other != nil && other.Epoch > l.Epoch {
		l.finish(&endError{reason: devicev1.EndReason_END_REASON_REPLACED, text: "a newer link of this device has taken over"})
		return
	}
	if h.closing != nil {
		l.finish(h.closing)
		return
	}
	h.byDevice[l.Device] = l
}

// leave removes a link that has ended, and only it: a newer one of the same device stays.
func (h *Hub) leave(l *Link) {
	l.finish(nil)
	h.mu.Lock()
	delete(h.byID, l.ID)
	if h.byDevice[l.Device] == l {
		delete(h.byDevice, l.Device)
	}
	h.mu.Unlock()
	h.State.Detach(l.Device, l.Epoch)
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

// Connected is the number of the device's current link; zero if it has none.
func (h *Hub) Connected(device string) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.byDevice[device]; l != nil {
		return l.Epoch
	}
	return 0
}

// Send queues a frame on the given link of a device. It says false if that is not the current one.
func (h *Hub) Send(device string, epoch uint64, frame *devicev1.ServerFrame) bool {
	h.mu.Lock()
	l := h.byDevice[device]
	h.mu.Unlock()
	return l != nil && l.Epoch == epoch && l.queue(frame)
}

// Revoke ends a device's link at once.
func (h *Hub) Revoke(device string) {
	h.mu.Lock()
	l := h.byDevice[device]
	h.mu.Unlock()
	if l != nil {
		l.finish(&endError{reason: devicev1.EndReason_END_REASON_REVOKED, text: "the device was revoked"})
	}
}

// Drain tells every device to come back later, and takes no new link. The spread keeps them from coming all at once.
func (h *Hub) Drain(spread time.Duration) {
	h.mu.Lock()
	h.closing = &endError{reason: devicev1.EndReason_END_REASON_GOING_AWAY, after: spread, text: "the server stops"}
	links := make([]*Link, 0, len(h.byID))
	for _, l := range h.byID {
		links = append(links, l)
	}
	h.mu.Unlock()
	for _, l := range links {
		l.finish(h.closing)
	}
}
