// Package link holds the live connections of devices. It knows frames and not transports: the bidirectional stream and
// the pair of Watch and Report drive the same Link.
package link

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/fault"
)

const (
	// Heartbeat is how often each side says that it is alive.
	Heartbeat = 15 * time.Second
	// Lease is how long a silent side counts as alive.
	Lease = 45 * time.Second

	outbox = 2048

	batchFrames = 256     // most frames in one message
	batchBytes  = 1 << 20 // no further frame is added to a message of this size; a single one may be larger
)

// endError ends a link for a reason that the device is told.
type endError struct {
	reason devicev1.EndReason
	after  time.Duration
	text   string
}

func (e *endError) Error() string { return e.text }

// Link is one live connection of one device.
type Link struct {
	ID     string
	Device string
	Epoch  uint64

	hub     *Hub
	out     chan *devicev1.ServerFrame // closed by nobody; bounded
	done    chan struct{}
	endOnce sync.Once
	end     *endError // written before done is closed

	heard atomic.Int64 // when the device last said something, as nanoseconds of the hub's clock

	receiving sync.Mutex // frames of a link are taken in one at a time
	sequence  uint64     // guarded by receiving; of the last report
}

// queue adds a frame for the device. A device that does not take its frames loses its link and gets them on the next.
func (l *Link) queue(frame *devicev1.ServerFrame) bool {
	select {
	case <-l.done:
		return false
	default:
	}
	select {
	case l.out <- frame:
		return true
	default:
		l.finish(&endError{reason: devicev1.EndReason_END_REASON_VIOLATION, text: "the device does not take its frames"})
		return false
	}
}

func (l *Link) finish(e *endError) {
	l.endOnce.Do(func() {
		l.end = e
		close(l.done)
	})
}

// Done is closed when the link has to end.
func (l *Link) Done() <-chan struct{} { return l.done }

// Serve writes the link's frames by send until the link ends, and returns why. It sends heartbeats and watches the
// device's.
func (l *Link) Serve(ctx context.Context, send func([]*devicev1.ServerFrame) error) error {
	defer l.hub.leave(l)
	beat := time.NewTicker(l.hub.Heartbeat)
	defer beat.Stop()
	var number uint64
	var waiting []*devicev1.ServerFrame // kept for its memory
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("link of %s: %w", l.Device, context.Cause(ctx))
		case <-l.done:
			return l.farewell(send)
		case frame := <-l.out:
			waiting = l.waiting(append(waiting[:0], frame))
			if err := send(waiting); err != nil {
				return fmt.Errorf("send to %s: %w", l.Device, err)
			}
			clear(waiting)
		case <-beat.C:
			if silent := l.hub.elapsed() - time.Duration(l.heard.Load()); silent > l.hub.Lease {
				return fault.New(fault.Expired, "the device was silent for %s", silent.Round(time.Second))
			}
			number++
			if err := send([]*devicev1.ServerFrame{{Kind: &devicev1.ServerFrame_Heartbeat{
				Heartbeat: &devicev1.ServerHeartbeat{Number: number},
			}}}); err != nil {
				return fmt.Errorf("send to %s: %w", l.Device, err)
			}
		}
	}
}

// farewell tells the device why its link ends. A device that does not listen any more is no fault.
// waiting adds what else is queued, as far as one message takes it.
func (l *Link) waiting(frames []*devicev1.ServerFrame) []*devicev1.ServerFrame {
	for size := proto.Size(frames[0]); size < batchBytes && len(frames) < batchFrames; {
		select {
		case frame := <-l.out:
			frames = append(frames, frame)
			size += proto.Size(frame)
		default:
			return frames
		}
	}
	return frames
}

func (l *Link) farewell(send func([]*devicev1.ServerFrame) error) error {
	if l.end == nil {
		return nil
	}
	frame := &devicev1.LinkEnd{Reason: l.end.reason}
	if l.end.after > 0 {
		frame.RetryAfter = durationpb.New(l.end.after)
	}
	err := send([]*devicev1.ServerFrame{{Kind: &devicev1.ServerFrame_End{End: frame}}})
	return errors.Join(l.end, err)
}

// Receive takes in one frame of the device. An error ends the link.
func (l *Link) Receive(frame *devicev1.DeviceFrame) error {
	l.receiving.Lock()
	defer l.receiving.Unlock()
	return l.receive(frame)
}

func (l *Link) receive(frame *devicev1.DeviceFrame) error {
	l.heard.Store(int64(l.hub.elapsed()))
	select {
	case <-l.done: // what a replaced link still says does not count
		return fault.New(fault.NotFound, "this link has ended: open a new one")
	default:
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
	case *devicev1.DeviceFrame_Goodbye:
		l.finish(nil)
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
