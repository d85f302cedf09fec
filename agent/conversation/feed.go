package conversation

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

const (
	// maxPending is how many events wait for a caller that does not read.
	maxPending = 4096
	// maxPiece is how long a piece of text may grow while it waits.
	maxPiece = 4096
)

// Feed is what happens in a conversation from some moment on, for one who follows it. What happens never waits for it.
type Feed struct {
	wake chan struct{} // has room for one signal

	mu      sync.Mutex
	pending []*agentv1.Event // guarded by mu
	over    error            // guarded by mu; why nothing more comes
}

func newFeed() *Feed { return &Feed{wake: make(chan struct{}, 1)} }

// next waits for the next event. It is nil, without an error, at each tick.
func (f *Feed) next(ctx context.Context, tick <-chan time.Time) (*agentv1.Event, error) {
	for {
		event, err := f.take()
		if event != nil || err != nil {
			return event, err
		}
		select {
		case <-f.wake:
		case <-tick:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take is the next event or why there is none any more; neither if there is nothing yet.
func (f *Feed) take() (*agentv1.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.pending) == 0 {
		return nil, f.over
	}
	event := f.pending[0]
	f.pending = f.pending[1:]
	return event, nil
}

// push adds events. Pieces of text that wait become one piece.
func (f *Feed) push(events ...*agentv1.Event) {
	f.mu.Lock()
	if f.over == nil {
		for _, event := range events {
			if !f.join(event) {
				f.pending = append(f.pending, event)
			}
		}
		if len(f.pending) > maxPending {
			f.over = errorf(Slow, "the events were not read in time: follow the conversation again from the last one that you have")
			f.pending = nil
		}
	}
	f.mu.Unlock()
	f.signal()
}

// join adds a piece of text to the one that waits before it. The caller holds mu.
func (f *Feed) join(event *agentv1.Event) bool {
	if len(f.pending) == 0 {
		return false
	}
	last := f.pending[len(f.pending)-1]
	switch {
	case event.GetTextDelta() != nil && last.GetTextDelta() != nil && len(last.GetTextDelta().GetText()) <= maxPiece:
		joined := proto.CloneOf(last)
		joined.GetTextDelta().Text += event.GetTextDelta().GetText()
		f.pending[len(f.pending)-1] = joined
	case event.GetReasoningDelta() != nil && last.GetReasoningDelta() != nil && len(last.GetReasoningDelta().GetText()) <= maxPiece:
		joined := proto.CloneOf(last)
		joined.GetReasoningDelta().Text += event.GetReasoningDelta().GetText()
		f.pending[len(f.pending)-1] = joined
	default:
		return false
	}
	return true
}

// cut says why nothing more comes. What waits can still be read.
func (f *Feed) cut(why error) {
	f.mu.Lock()
	if f.over == nil {
		f.over = why
	}
	f.mu.Unlock()
	f.signal()
}

func (f *Feed) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}
