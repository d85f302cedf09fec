package conversation

import (
	"context"
	"io"
	"sync"

	"google.golang.org/protobuf/proto"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

const (
	// maxPending is how many events wait for a caller that does not read.
	maxPending = 4096
	// maxPiece is how long a piece of text may grow while it waits.
	maxPiece = 4096
)

// Feed is what happens in one turn, for the caller who began it. The turn never waits for it.
type Feed struct {
	wake chan struct{} // has room for one signal

	mu      sync.Mutex
	pending []*agentv1.Event
	ended   bool
	slow    bool
}

func newFeed() *Feed { return &Feed{wake: make(chan struct{}, 1)} }

// Next waits for the next event. It is io.EOF after the last one.
func (f *Feed) Next(ctx context.Context) (*agentv1.Event, error) {
	for {
		event, err := f.take()
		if event != nil || err != nil {
			return event, err
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take is the next event or the end; neither if there is nothing yet.
func (f *Feed) take() (*agentv1.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.slow:
		return nil, errorf(Slow, "the events were not read in time: list them, and go on from there")
	case len(f.pending) > 0:
		event := f.pending[0]
		f.pending = f.pending[1:]
		return event, nil
	case f.ended:
		return nil, io.EOF
	default:
		return nil, nil
	}
}

// push adds events. Pieces of text that wait become one piece.
func (f *Feed) push(events ...*agentv1.Event) {
	f.mu.Lock()
	for _, event := range events {
		if !f.join(event) {
			f.pending = append(f.pending, event)
		}
	}
	if len(f.pending) > maxPending {
		f.slow, f.pending = true, nil
	}
	f.mu.Unlock()
	f.signal()
}

// join adds a piece of text to the one that waits before it. The caller holds mu.
func (f *Feed) join(event *agentv1.Event) bool {
	piece := event.GetTextDelta()
	if piece == nil || len(f.pending) == 0 {
		return false
	}
	last := f.pending[len(f.pending)-1]
	if last.GetTextDelta() == nil || len(last.GetTextDelta().GetText()) > maxPiece {
		return false
	}
	joined := proto.CloneOf(last)
	joined.GetTextDelta().Text += piece.GetText()
	f.pending[len(f.pending)-1] = joined
	return true
}

func (f *Feed) end() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.signal()
}

func (f *Feed) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}
