package conversation

import (
	"context"
	"fmt"
	"io"
	"time"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// pageOfEvents is how many stored events are read at once.
const pageOfEvents = 256

// Watch follows a conversation: what is stored once and in order, then what happens. One goroutine uses it, and closes it.
type Watch struct {
	book   *Book
	thread *thread
	feed   *Feed
	tick   <-chan time.Time
	untick func()

	sent      uint64           // number of the last event that was given
	upTo      uint64           // what was stored when it began
	stored    []*agentv1.Event // that were read and not given yet
	pieces    []*agentv1.Event // of the answer that was being written
	unknown   bool             // the caller's place is beyond the end
	caughtUp  bool             // that has been said
	untilIdle bool
	done      bool
}

// Watch follows a conversation after an event, from the beginning if it is zero. With untilIdle it ends once all was
// given and no turn runs.
func (b *Book) Watch(ctx context.Context, workspace, ref string, after uint64, untilIdle bool) (*Watch, error) {
	if err := b.await(ctx); err != nil {
		return nil, err
	}
	c, err := b.readable(ctx, workspace, ref)
	if err != nil {
		return nil, err
	}
	return b.watch(ctx, Ref{workspace, c.ID}, after, untilIdle)
}

func (b *Book) watch(ctx context.Context, ref Ref, after uint64, untilIdle bool) (*Watch, error) {
	w := &Watch{book: b, thread: b.use(ref), sent: after, untilIdle: untilIdle}
	w.thread.mu.Lock()
	err := b.load(ctx, w.thread)
	if err == nil {
		w.feed, w.upTo, w.pieces = w.thread.hub.join()
		if b.isClosed() { // looked at once it has joined: either this sees it or the end of the server sees the feed
			w.thread.hub.leave(w.feed)
			err = errClosed()
		}
	}
	w.thread.mu.Unlock()
	if err != nil {
		b.leave(w.thread)
		return nil, err
	}
	w.unknown = after > w.upTo
	w.tick, w.untick = b.config.Tick()
	return w, nil
}

// Close ends it.
func (w *Watch) Close() {
	w.untick()
	w.thread.hub.leave(w.feed)
	w.book.leave(w.thread)
}

// Next waits for the next thing to tell. It is io.EOF at the end.
func (w *Watch) Next(ctx context.Context) (*agentv1.WatchConversationResponse, error) {
	switch event, err := w.before(ctx); {
	case err != nil:
		return nil, err
	case w.unknown:
		w.unknown, w.done = false, true
		return &agentv1.WatchConversationResponse{Kind: &agentv1.WatchConversationResponse_UnknownPlace{
			UnknownPlace: &agentv1.UnknownPlace{Sequence: w.upTo},
		}}, nil
	case w.done:
		return nil, io.EOF
	case event != nil:
		return happened(event), nil
	case !w.caughtUp:
		w.caughtUp = true
		return &agentv1.WatchConversationResponse{Kind: &agentv1.WatchConversationResponse_CaughtUp{
			CaughtUp: &agentv1.CaughtUp{Sequence: w.upTo, Status: w.status()},
		}}, nil
	}
	for {
		if w.untilIdle && w.idle(ctx) {
			return nil, io.EOF
		}
		event, err := w.feed.next(ctx, w.tick)
		switch {
		case err != nil:
			return nil, err
		case event == nil:
			return &agentv1.WatchConversationResponse{Kind: &agentv1.WatchConversationResponse_Alive{
				Alive: &agentv1.Alive{Status: w.status()},
			}}, nil
		case event.GetSequence() == 0:
			return happened(event), nil
		case event.GetSequence() > w.sent:
			w.sent = event.GetSequence()
			return happened(event), nil
		}
	}
}

func happened(event *agentv1.Event) *agentv1.WatchConversationResponse {
	return &agentv1.WatchConversationResponse{Kind: &agentv1.WatchConversationResponse_Event{Event: event}}
}

// before gives what was stored when it began, and after that what had come of an answer; nil if all was given.
func (w *Watch) before(ctx context.Context) (*agentv1.Event, error) {
	if w.unknown || w.done {
		return nil, nil
	}
	if len(w.stored) == 0 && w.sent < w.upTo {
		events, err := w.book.config.Lists.Events(ctx, w.thread.ref.ID, w.sent, pageOfEvents)
		if err != nil && w.book.isClosed() {
			return nil, errClosed()
		}
		if err != nil {
			return nil, fmt.Errorf("list events: %w", err)
		}
		for len(events) > 0 && events[len(events)-1].GetSequence() > w.upTo { // the feed has them
			events = events[:len(events)-1]
		}
		if len(events) == 0 {
			return nil, fmt.Errorf("list events: none after %d, of %d", w.sent, w.upTo)
		}
		w.stored = events
	}
	switch {
	case len(w.stored) > 0:
		event := w.stored[0]
		w.stored, w.sent = w.stored[1:], event.GetSequence()
		return event, nil
	case len(w.pieces) > 0:
		piece := w.pieces[0]
		w.pieces = w.pieces[1:]
		return piece, nil
	default:
		return nil, nil
	}
}

// status is what the conversation does now.
func (w *Watch) status() agentv1.ConversationStatus {
	w.thread.mu.Lock()
	defer w.thread.mu.Unlock()
	return w.thread.status()
}

// idle says whether no turn runs and all was given. What is not known is not idle: a turn that goes on when the server runs
// again has not ended.
func (w *Watch) idle(ctx context.Context) bool {
	w.thread.mu.Lock()
	defer w.thread.mu.Unlock()
	return w.book.load(ctx, w.thread) == nil && w.thread.run == nil && w.thread.c.Sequence <= w.sent
}

// Events lists stored events with numbers above after.
func (b *Book) Events(ctx context.Context, workspace, ref string, after uint64, limit int) ([]*agentv1.Event, error) {
	row, err := b.Get(ctx, workspace, ref)
	if err != nil {
		return nil, err
	}
	events, err := b.config.Lists.Events(ctx, row.ID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	return events, nil
}
