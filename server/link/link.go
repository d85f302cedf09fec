// Package link holds the live connections of devices. It knows frames and not transports: the bidirectional stream and
// the pair of Watch and Report drive the same Link.
//
// An idle link has no goroutine of its own: the transport's reads, a writer runs while there is something to write, and
// heartbeats are timers.
package link

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/fault"
)

const (
	// Heartbeat is how often each side says that it is alive.
	Heartbeat = 15 * time.Second
	// Lease is how long a silent side counts as alive.
	Lease = 45 * time.Second
)

// Wire is the road that a link's frames take to the device.
type Wire interface {
	// Send writes one message. It is called by one goroutine at a time and may wait for the device.
	Send(frames []*devicev1.ServerFrame) error
	// Hurry bounds what is being sent: the link has ended.
	Hurry()
	// Hangup is called once, after the last Send. It ends the read that waits for the device.
	Hangup()
}

// Link is one live connection of one device.
type Link struct {
	ID     string
	Device string
	Epoch  uint64

	hub       *Hub
	transport string
	boot      string        // tag of the start of the device's program
	done      chan struct{} // closed when the link has to end
	gone      chan struct{} // closed when nothing is written any more
	left      chan struct{} // closed when the hub has forgotten it

	heard atomic.Int64 // when the device last said something, as nanoseconds of the hub's clock

	receiving sync.Mutex // frames of a link are taken in one at a time
	sequence  uint64     // guarded by receiving; of the last report

	mu      sync.Mutex // never held while anything waits
	out     outbox     // guarded by mu
	wire    Wire       // guarded by mu; nil until Serve
	writing bool       // guarded by mu; a writer runs
	end     *End       // guarded by mu until done is closed; nil while the link stands
	timer   *time.Timer
	beats   uint64 // belongs to the timer
}

func newLink(h *Hub, device, transport string, epoch uint64) *Link {
	l := &Link{
		ID: h.NewID(), Device: device, Epoch: epoch, hub: h, transport: transport,
		done: make(chan struct{}), gone: make(chan struct{}), left: make(chan struct{}),
	}
	l.heard.Store(int64(h.elapsed()))
	return l
}

// queue adds a frame for the device. A device that does not take its frames loses its link and gets them on the next.
func (l *Link) queue(frame *devicev1.ServerFrame) bool {
	w := wait(frame)
	l.mu.Lock()
	if l.end != nil {
		l.mu.Unlock()
		return false
	}
	ok := l.out.push(w)
	start := ok && l.startLocked()
	l.mu.Unlock()
	if start {
		go l.write()
	}
	if !ok {
		l.finish(overfull())
	}
	return ok
}

// startLocked says whether the caller has to start a writer.
func (l *Link) startLocked() bool {
	if l.wire == nil || l.writing {
		return false
	}
	l.writing = true
	return true
}

// finish ends the link; the first reason counts. It does not wait. What still waits to be written is dropped: it may
// travel on the next link already.
func (l *Link) finish(end *End) {
	l.mu.Lock()
	if l.end != nil {
		l.mu.Unlock()
		return
	}
	l.end = end
	dropped := len(l.out.waiting)
	l.out = outbox{}
	close(l.done)
	if l.timer != nil {
		l.timer.Stop()
	}
	wire, start := l.wire, l.startLocked()
	l.mu.Unlock()
	l.hub.Meter.FramesDropped(dropped)
	go func() { // finish is called under locks, and these may wait
		l.hub.leave(l)
		close(l.left)
		if wire != nil {
			wire.Hurry()
		}
		if start {
			l.write()
		}
	}()
}

// Done is closed when the link has to end.
func (l *Link) Done() <-chan struct{} { return l.done }

func (l *Link) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// Serve holds the link: it writes to the wire while read takes in what the device says. It returns when the link has
// ended and nothing is written any more, and says why. Read has to return when the wire hangs up.
func (l *Link) Serve(ctx context.Context, wire Wire, read func() error) error {
	stop := context.AfterFunc(ctx, func() { l.finish(broken(context.Cause(ctx))) })
	defer stop()
	l.mu.Lock()
	l.wire = wire
	if l.end == nil {
		// The first beat comes a little early, each link's at another time: links that were opened in one moment do not
		// all beat in one moment.
		l.timer = time.AfterFunc(time.Duration((1+rand.Float64())/2*float64(l.hub.Heartbeat)), l.beat)
	}
	over := l.end != nil // and whoever ended it did not know the wire
	start := (over || len(l.out.waiting) > 0) && l.startLocked()
	l.mu.Unlock()
	if over {
		wire.Hurry()
	}
	if start {
		go l.write()
	}
	l.finish(broken(read()))
	<-l.gone
	<-l.left
	if l.end.cause == nil {
		return nil
	}
	return l.end
}

// write sends what waits, and after that the farewell if the link has ended.
func (l *Link) write() {
	var frames []*devicev1.ServerFrame
	for {
		l.mu.Lock()
		frames = l.out.take(frames[:0])
		end := l.end
		if len(frames) == 0 && end == nil {
			l.writing = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if end != nil {
			if frame := end.Frame(); frame != nil {
				_ = l.wire.Send([]*devicev1.ServerFrame{frame}) // a device that does not listen any more is no fault
			}
			break
		}
		began := time.Now()
		if err := l.wire.Send(frames); err != nil {
			l.finish(broken(err))
			break
		}
		l.hub.Meter.FramesSent(len(frames), time.Since(began))
		clear(frames)
	}
	l.wire.Hangup()
	close(l.gone)
}

// beat tells the device that the server is alive, and looks whether the device is. A device whose queue is not empty
// gets no heartbeat: what waits says as much.
func (l *Link) beat() {
	if l.ended() {
		return
	}
	quiet := l.hub.elapsed() - time.Duration(l.heard.Load())
	if quiet >= l.hub.Lease {
		l.finish(silent(quiet))
		return
	}
	if quiet > l.hub.Heartbeat*3/2 {
		l.hub.Meter.HeartbeatMissed()
	}
	l.mu.Lock()
	idle := len(l.out.waiting) == 0
	l.mu.Unlock()
	if idle {
		l.beats++
		l.queue(&devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Heartbeat{
			Heartbeat: &devicev1.ServerHeartbeat{Number: l.beats},
		}})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == nil {
		l.timer.Reset(min(l.hub.Heartbeat, l.hub.Lease-quiet))
	}
}

// Receive takes in one frame of the device. An error ends the link.
func (l *Link) Receive(frame *devicev1.DeviceFrame) error {
	l.receiving.Lock()
	defer l.receiving.Unlock()
	return l.receive(frame)
}

func (l *Link) receive(frame *devicev1.DeviceFrame) error {
	l.heard.Store(int64(l.hub.elapsed()))
	if l.ended() { // what a replaced link still says does not count
		return fault.New(fault.NotFound, "this link has ended: open a new one")
	}
	switch kind := frame.GetKind().(type) {
	case *devicev1.DeviceFrame_Acknowledgement:
		l.hub.commands.Acknowledged(l.Device, kind.Acknowledgement.GetCommandId())
	case *devicev1.DeviceFrame_Outcome:
		l.hub.commands.Outcome(l.Device, kind.Outcome)
	case *devicev1.DeviceFrame_Snapshot:
		return l.apply(l.hub.State.Snapshot(l.Device, l.Epoch, kind.Snapshot))
	case *devicev1.DeviceFrame_Delta:
		return l.apply(l.hub.State.Delta(l.Device, l.Epoch, kind.Delta))
	case *devicev1.DeviceFrame_Condition:
		l.hub.Directory.Condition(l.Device, l.Epoch, kind.Condition)
	case *devicev1.DeviceFrame_Goodbye:
		l.finish(left())
	case *devicev1.DeviceFrame_Hello:
		return fault.New(fault.Invalid, "a link begins with one Hello")
	default: // heartbeats, and kinds of a newer device
	}
	return nil
}

// apply asks for a snapshot where the state could not be taken in, and fails where it must not be.
func (l *Link) apply(resync string, err error) error {
	if err != nil {
		return err
	}
	if resync != "" {
		l.queue(&devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Resync{Resync: &devicev1.Resync{Reason: resync}}})
	}
	return nil
}

// Report takes in the frames of one report, once for each sequence number, and says up to which number it has them.
func (l *Link) Report(sequence uint64, frames []*devicev1.DeviceFrame) (uint64, error) {
	l.receiving.Lock()
	defer l.receiving.Unlock()
	l.heard.Store(int64(l.hub.elapsed()))
	switch {
	case sequence <= l.sequence:
		return l.sequence, nil
	case sequence > l.sequence+1:
		return l.sequence, fault.New(fault.Invalid, "report %d came after report %d: send the ones between first", sequence, l.sequence)
	}
	for _, frame := range frames {
		if err := l.receive(frame); err != nil {
			return l.sequence, err
		}
	}
	l.sequence = sequence
	return l.sequence, nil
}
