package link

import "time"

// The roads that a link can take, as metrics name them.
const (
	Bidi  = "bidi"
	Watch = "watch"
)

// Meter counts what happens to links. Its methods must not wait.
type Meter interface {
	LinkOpened(transport string)
	// LinkEnded is told one of a few reasons.
	LinkEnded(transport, reason string)
	// LinkRefused is a link that was not admitted and told to come back later.
	LinkRefused()
	// FramesSent is one message that the transport has taken.
	FramesSent(frames int, took time.Duration)
	// FramesDropped are frames that waited when their link ended.
	FramesDropped(frames int)
	// HeartbeatMissed is a device that was silent for longer than a heartbeat and a half.
	HeartbeatMissed()
}

// noMeter is for hubs that nobody measures.
type noMeter struct{}

func (noMeter) LinkOpened(string)             {}
func (noMeter) LinkEnded(string, string)      {}
func (noMeter) LinkRefused()                  {}
func (noMeter) FramesSent(int, time.Duration) {}
func (noMeter) FramesDropped(int)             {}
func (noMeter) HeartbeatMissed()              {}

// Load is what the links hold at the moment.
type Load struct {
	Links   map[string]int // by transport
	Frames  int            // that wait to be written, over all links
	Bytes   int
	Deepest int // most frames that wait for one device
}

// Load looks at every link.
func (h *Hub) Load() Load {
	load := Load{Links: map[string]int{Bidi: 0, Watch: 0}}
	for _, l := range h.all() {
		load.Links[l.transport]++
		l.mu.Lock()
		n, bytes := len(l.out.waiting), l.out.bytes
		l.mu.Unlock()
		load.Frames += n
		load.Bytes += bytes
		load.Deepest = max(load.Deepest, n)
	}
	return load
}

// all are the links of the moment.
func (h *Hub) all() []*Link {
	h.mu.Lock()
	defer h.mu.Unlock()
	links := make([]*Link, 0, len(h.byID))
	for _, l := range h.byID {
		links = append(links, l)
	}
	return links
}
