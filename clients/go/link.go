package throwbar

import (
	"context"
	"errors"
	"iter"
	"sync"

	"google.golang.org/protobuf/proto"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// Transport is the road that a device's link takes. The frames are the same on both.
type Transport int

// The transports.
const (
	// Bidi is one bidirectional stream, for programs.
	Bidi Transport = iota
	// WatchReport is a stream of server frames, and calls that carry device frames: what a browser can do.
	WatchReport
)

// dialer opens links.
type dialer interface {
	// dial opens a link and says hello. The link closes when the context ends.
	dial(ctx context.Context, hello *devicev1.Hello) (link, error)
}

// link is one live connection. One goroutine sends, another one receives; close may come from any.
type link interface {
	// send hands frames over, in order. After the server has ended the link it may be io.EOF; receive says why.
	send(ctx context.Context, frames []*devicev1.DeviceFrame) error
	// receive waits for the next frames: at least one.
	receive() ([]*devicev1.ServerFrame, error)
	// finish says that nothing more will be sent.
	finish() error
	// close ends the link at once. Its context has to have ended.
	close()
}

// Why a link ends from this side.
var (
	errNoWelcome  = errors.New("the server did not welcome the device in time")
	errSilent     = errors.New("the server was silent for longer than its lease")
	errAsleep     = errors.New("this computer was asleep for longer than the lease")
	errStuck      = errors.New("the server does not take in what is sent")
	errOverflow   = errors.New("more waits to be sent than is allowed")
	errServerEnd  = errors.New("the server ended the link")
	errStopped    = errors.New("the device stops")
	errNotWelcome = errors.New("the server's first frame is no welcome")
)

// outboxMost is the number of frames that may wait to be sent.
const outboxMost = 8192

// outbox is the bounded queue of frames on their way to the link's writer.
type outbox struct {
	overflow context.CancelCauseFunc // ends the link
	wake     chan struct{}           // receives when there is something to take

	mu     sync.Mutex
	frames []*devicev1.DeviceFrame // guarded by mu
}

func newOutbox(overflow context.CancelCauseFunc) *outbox {
	return &outbox{overflow: overflow, wake: make(chan struct{}, 1)}
}

// offer queues a frame and never waits. A queue that is full ends the link: what matters is said again on the next.
func (o *outbox) offer(frame *devicev1.DeviceFrame) {
	o.mu.Lock()
	full := len(o.frames) >= outboxMost
	if !full {
		o.frames = append(o.frames, frame)
	}
	o.mu.Unlock()
	if full {
		o.overflow(errOverflow)
		return
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take empties the queue.
func (o *outbox) take() []*devicev1.DeviceFrame {
	o.mu.Lock()
	defer o.mu.Unlock()
	frames := o.frames
	o.frames = nil
	return frames
}

const (
	messageFrames = 256     // most frames in one message, by the contract
	messageBytes  = 1 << 20 // a single frame may be larger
)

// parts cuts frames into what one message takes.
func parts(frames []*devicev1.DeviceFrame) iter.Seq[[]*devicev1.DeviceFrame] {
	return func(yield func([]*devicev1.DeviceFrame) bool) {
		for len(frames) > 0 {
			n, size := 1, proto.Size(frames[0])
			for n < len(frames) && n < messageFrames && size+proto.Size(frames[n]) <= messageBytes {
				size += proto.Size(frames[n])
				n++
			}
			if !yield(frames[:n]) {
				return
			}
			frames = frames[n:]
		}
	}
}

func acknowledgement(id string) *devicev1.DeviceFrame {
	return &devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Acknowledgement{
		Acknowledgement: &devicev1.Acknowledgement{CommandId: id},
	}}
}

func outcomeFrame(o *devicev1.Outcome) *devicev1.DeviceFrame {
	return &devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Outcome{Outcome: o}}
}
