package link

import (
	"google.golang.org/protobuf/proto"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

const (
	outboxFrames = 2048    // most frames that wait for a device
	outboxBytes  = 8 << 20 // most bytes; a single frame may be larger

	batchFrames = 256     // most frames in one message
	batchBytes  = 1 << 20 // no further frame is added to a message of this size; a single one may be larger
)

// outbox is what waits to be written to a device. It grows on demand and gives its memory back: an idle link costs
// nothing here. The link's mu guards it.
type outbox struct {
	waiting []waiting
	bytes   int
}

type waiting struct {
	frame *devicev1.ServerFrame
	size  int
}

func wait(frame *devicev1.ServerFrame) waiting { return waiting{frame, proto.Size(frame)} }

// push adds a frame. It says false if there is no room.
func (o *outbox) push(w waiting) bool {
	if len(o.waiting) >= outboxFrames || (o.bytes+w.size > outboxBytes && len(o.waiting) > 0) {
		return false
	}
	o.waiting = append(o.waiting, w)
	o.bytes += w.size
	return true
}

// take moves what one message takes into frames.
func (o *outbox) take(frames []*devicev1.ServerFrame) []*devicev1.ServerFrame {
	size, n := 0, 0
	for n < len(o.waiting) && n < batchFrames && (n == 0 || size < batchBytes) {
		frames = append(frames, o.waiting[n].frame)
		size += o.waiting[n].size
		n++
	}
	o.bytes -= size
	if n == len(o.waiting) {
		o.waiting = nil
		return frames
	}
	clear(o.waiting[:n])
	o.waiting = o.waiting[n:]
	return frames
}
