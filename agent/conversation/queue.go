package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/agent/model"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// Message is a letter as the contract has it.
func (l Letter) Message() *agentv1.QueuedMessage {
	return &agentv1.QueuedMessage{
		MessageId: l.ID, Text: l.Text, Sender: l.Sender, Mode: l.Mode, CreatedAt: timestamppb.New(l.CreatedAt),
	}
}

// Waiting lists the messages that wait in a conversation and came after an event, in the order in which they will be read.
func (b *Book) Waiting(ctx context.Context, workspace, ref string, after uint64, limit int) ([]Letter, error) {
	var page []Letter
	_, err := b.change(ctx, workspace, ref, func(t *thread) (*Change, error) {
		for _, l := range t.queue {
			// A message is an event too: no two came after the same one. The first page begins before all of them.
			if (after == 0 || l.Sequence > after) && len(page) < limit {
				page = append(page, l)
			}
		}
		return nil, nil
	})
	return page, err
}

// Edit changes the text of a message of a person that waits.
func (b *Book) Edit(ctx context.Context, workspace, ref, id, text string) (Letter, error) {
	if model.Blank(text) {
		return Letter{}, errorf(Invalid, "the message is empty: remove it instead")
	}
	return b.onWaiting(ctx, workspace, ref, id, func(t *thread, l Letter) (Letter, error) {
		if !l.person() {
			return l, errorf(Invalid, "an agent wrote this message: it can be removed, and not be changed")
		}
		if l.Text == text {
			return l, nil
		}
		l.Text = text
		event := &agentv1.Event{Kind: &agentv1.Event_QueueEdited{QueueEdited: l.Message()}}
		return l, b.commit(ctx, t, Change{
			Conversation: t.c, Durable: true, Letters: []Move{{Letter: l, Edit: true}}, Events: []*agentv1.Event{event},
		})
	})
}

// Remove takes back a message that waits. It may be taken back again.
func (b *Book) Remove(ctx context.Context, workspace, ref, id string) error {
	_, err := b.onWaiting(ctx, workspace, ref, id, func(t *thread, l Letter) (Letter, error) {
		l.State, l.Text, l.Turn = LetterRemoved, "", ""
		event := &agentv1.Event{Kind: &agentv1.Event_QueueRemoved{QueueRemoved: &agentv1.QueueRemoved{MessageId: l.ID}}}
		return l, b.commit(ctx, t, Change{
			Conversation: t.c, Durable: true, Letters: []Move{{Letter: l}}, Events: []*agentv1.Event{event},
		})
	})
	var known *Error
	if errors.As(err, &known) && known.Code == Late && known.Message == goneText {
		return nil
	}
	return err
}

const goneText = "this message was taken back"

// onWaiting does something with a message that waits. One that does not is an error that says what became of it.
func (b *Book) onWaiting(
	ctx context.Context, workspace, ref, id string, do func(*thread, Letter) (Letter, error),
) (Letter, error) {
	var out Letter
	_, err := b.change(ctx, workspace, ref, func(t *thread) (*Change, error) {
		at := slices.IndexFunc(t.queue, func(l Letter) bool { return l.ID == id })
		if at < 0 {
			return nil, b.fate(ctx, t, id)
		}
		var err error
		out, err = do(t, t.queue[at])
		return nil, err
	})
	return out, err
}

// fate says what became of a message that does not wait.
func (b *Book) fate(ctx context.Context, t *thread, id string) error {
	l, err := b.config.Store.Letter(ctx, t.ref.Workspace, id)
	switch {
	case err != nil && !errors.Is(err, ErrNoRow):
		return fmt.Errorf("read message: %w", err)
	case err != nil || l.Conversation != t.ref.ID:
		return errorf(NotFound, "no message %q waits in this conversation", shown(id))
	case l.State == LetterRemoved:
		return errorf(Late, goneText)
	default:
		return errorf(Late, "this message has been read: a turn took it")
	}
}
