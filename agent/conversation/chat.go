package conversation

import (
	"context"
	"io"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// Talk follows a message of a person until the turn that took it ends. One goroutine uses it, and closes it.
type Talk struct {
	Delivered

	watch    *Watch
	attached bool
	turn     string // that took the message; empty while it waits
	over     bool
}

// Chat says something in a conversation and follows it. If its caller is attached, the turn that the message begins stops
// when nobody who is attached to it follows it any more.
func (b *Book) Chat(ctx context.Context, d Delivery) (*Talk, error) {
	told, err := b.Deliver(ctx, d)
	if err != nil {
		return nil, err
	}
	ref := Ref{d.Workspace, told.Conversation.ID}
	w, err := b.watch(ctx, ref, told.Sequence, false)
	if err != nil {
		if told.attached {
			b.gone(ref, told.MessageID)
		}
		return nil, err
	}
	return &Talk{Delivered: told, watch: w, attached: told.attached}, nil
}

// Next waits for the next event. It is io.EOF after the last one.
func (k *Talk) Next(ctx context.Context) (*agentv1.Event, error) {
	for !k.over {
		res, err := k.watch.Next(ctx)
		if err != nil {
			return nil, err
		}
		if event := res.GetEvent(); event != nil {
			k.look(event)
			return event, nil
		}
	}
	return nil, io.EOF
}

// look looks for the turn that takes the message, and for its end.
func (k *Talk) look(event *agentv1.Event) {
	switch kind := event.GetKind().(type) {
	case *agentv1.Event_Message:
		if kind.Message.GetMessageId() == k.MessageID {
			k.turn = event.GetTurnId()
		}
	case *agentv1.Event_TurnEnded:
		k.over = k.turn != "" && event.GetTurnId() == k.turn
	case *agentv1.Event_QueueRemoved:
		k.over = kind.QueueRemoved.GetMessageId() == k.MessageID
	case *agentv1.Event_ConversationChanged:
		k.over = k.turn == "" && kind.ConversationChanged.GetArchived() // it waits until somebody writes here again
	}
}

// Close ends it: if the caller was attached and its turn still runs, it is not any more.
func (k *Talk) Close() {
	if k.attached {
		k.watch.book.gone(k.watch.thread.ref, k.MessageID)
	}
	k.watch.Close()
}

// gone says that one caller less waits for a message. A turn that is not durable stops with the last of those who wait.
func (b *Book) gone(ref Ref, message string) {
	t := b.use(ref)
	defer b.leave(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attached.drop(message)
	if t.run == nil || t.run.turn.Durable || t.run.callers[message] == 0 {
		return
	}
	t.run.callers.drop(message)
	if len(t.run.callers) == 0 {
		t.run.stop(ErrGone)
	}
}

// callers counts, by message, those who wait for a turn: a request that is repeated has two while the first is not known
// to be lost.
type callers map[string]int

// drop counts one less.
func (c callers) drop(message string) {
	if c[message]--; c[message] <= 0 {
		delete(c, message)
	}
}

// rejoin lets one more caller wait for a message that was delivered before. It says false where nobody does any more, or
// its turn goes on without them. The caller holds t.mu.
func (t *thread) rejoin(message string) bool {
	switch r := t.run; {
	case t.attached[message] > 0:
		t.attached[message]++
	case r != nil && !r.turn.Durable && r.callers[message] > 0:
		r.callers[message]++
	default:
		return false
	}
	return true
}
