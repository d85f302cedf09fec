package throwbar

import (
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

const (
	// chunkBytes is the most that a chunk of a snapshot holds; a message of the wire holds 4 MiB.
	chunkBytes = 512 << 10
	// fieldBytes is what a field costs beside its content, at the most.
	fieldBytes = 6

	maxURL   = 64 << 10
	maxTitle = 4 << 10
	maxWord  = 256
)

// State is all that a browser shows: its windows, tab groups and tabs.
type State struct {
	Windows []*commandv1.Window
	Groups  []*commandv1.TabGroup
	Tabs    []*commandv1.Tab
}

// Changes is what is new or changed, whole, and the ids of what is gone.
type Changes struct {
	State

	// Replaced are tabs that the browser gave another id, in the order in which it did. The old ids are not in Removed.
	Replaced []*devicev1.Replacement
	Removed  []string
}

// StateSource is where a device's browser state comes from. Only the device calls it, and never from two goroutines
// at a time. What it returns must not be changed afterwards.
type StateSource interface {
	// Snapshot is the whole state now. Changes that it holds are not returned by Take any more.
	Snapshot() State
	// Take is what has changed since the last Snapshot or Take.
	Take() Changes
	// Changed receives after a change. A value that is not taken stands for all changes after it.
	Changed() <-chan struct{}
}

// pusher turns a browser's state into numbered frames. It belongs to the goroutine that writes to the link.
type pusher struct {
	source   StateSource // nil if the device has no browser state
	sequence uint64
	inStep   bool // whether the server has had a snapshot on this link
}

// changed receives when there is something to take.
func (p *pusher) changed() <-chan struct{} {
	if p.source == nil {
		return nil
	}
	return p.source.Changed()
}

// snapshot is the whole state in chunks.
func (p *pusher) snapshot() []*devicev1.DeviceFrame {
	if p.source == nil {
		return nil
	}
	p.sequence++
	p.inStep = true
	chunks := chunk(p.source.Snapshot())
	frames := make([]*devicev1.DeviceFrame, 0, len(chunks))
	for i, c := range chunks {
		frames = append(frames, &devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Snapshot{Snapshot: &devicev1.Snapshot{
			Sequence: p.sequence, Chunk: uint32(i), Last: i == len(chunks)-1,
			Windows: c.Windows, Groups: c.Groups, Tabs: c.Tabs,
		}}})
	}
	return frames
}

// delta is what has changed; nothing while the server has had no snapshot. Too much for one frame becomes a snapshot.
func (p *pusher) delta() []*devicev1.DeviceFrame {
	if p.source == nil || !p.inStep {
		return nil
	}
	c := p.source.Take()
	if len(c.Windows)+len(c.Groups)+len(c.Tabs)+len(c.Removed)+len(c.Replaced) == 0 {
		return nil
	}
	size := 0
	for _, id := range c.Removed {
		size += len(id) + fieldBytes
	}
	for _, r := range c.Replaced {
		size += proto.Size(r) + fieldBytes
	}
	chunks := chunk(c.State)
	if len(chunks) > 1 || size > chunkBytes {
		return p.snapshot()
	}
	p.sequence++
	return []*devicev1.DeviceFrame{{Kind: &devicev1.DeviceFrame_Delta{Delta: &devicev1.Delta{
		Sequence: p.sequence, Windows: chunks[0].Windows, Groups: chunks[0].Groups, Tabs: chunks[0].Tabs,
		Removed: c.Removed, Replaced: c.Replaced,
	}}}}
}

// chunk splits a state into parts that fit into a frame. There is at least one, which may be empty.
func chunk(s State) []State {
	parts := []State{{}}
	size := 0
	room := func(m proto.Message) *State {
		n := proto.Size(m) + fieldBytes
		if size > 0 && size+n > chunkBytes {
			parts = append(parts, State{})
			size = 0
		}
		size += n
		return &parts[len(parts)-1]
	}
	for _, w := range s.Windows {
		w = cleanWindow(w)
		part := room(w)
		part.Windows = append(part.Windows, w)
	}
	for _, g := range s.Groups {
		g = cleanGroup(g)
		part := room(g)
		part.Groups = append(part.Groups, g)
	}
	for _, t := range s.Tabs {
		t = cleanTab(t)
		part := room(t)
		part.Tabs = append(part.Tabs, t)
	}
	return parts
}

// A text that is not UTF-8 cannot travel, and one without a bound would end the link: the texts of pages are both.

func fits(s string, n int) bool { return len(s) <= n && utf8.ValidString(s) }

func cleanTab(t *commandv1.Tab) *commandv1.Tab {
	if fits(t.GetUrl(), maxURL) && fits(t.GetTitle(), maxTitle) {
		return t
	}
	t = proto.CloneOf(t)
	t.Url, t.Title = clip(t.GetUrl(), maxURL), clip(t.GetTitle(), maxTitle)
	return t
}

func cleanWindow(w *commandv1.Window) *commandv1.Window {
	if fits(w.GetKind(), maxWord) && fits(w.GetState(), maxWord) {
		return w
	}
	w = proto.CloneOf(w)
	w.Kind, w.State = clip(w.GetKind(), maxWord), clip(w.GetState(), maxWord)
	return w
}

func cleanGroup(g *commandv1.TabGroup) *commandv1.TabGroup {
	if fits(g.GetTitle(), maxTitle) {
		return g
	}
	g = proto.CloneOf(g)
	g.Title = clip(g.GetTitle(), maxTitle)
	return g
}
