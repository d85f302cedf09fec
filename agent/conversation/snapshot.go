package conversation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// Snapshot is what a conversation last answered and what it does now. It waits for nothing.
func (b *Book) Snapshot(ctx context.Context, workspace, ref string) (Snapshot, error) {
	if err := b.await(ctx); err != nil {
		return Snapshot{}, err
	}
	c, err := b.readable(ctx, workspace, ref)
	if err != nil {
		return Snapshot{}, err
	}
	var s Snapshot
	err = b.locked(ctx, Ref{workspace, c.ID}, func(t *thread) error {
		s.Conversation, s.Status = t.c, t.status()
		return nil
	})
	if err != nil {
		return Snapshot{}, err
	}
	if s.Access, err = b.access(ctx, s.Conversation); err != nil {
		return Snapshot{}, err
	}
	if s.Handle, err = b.handle(ctx, s.Conversation); err != nil {
		return Snapshot{}, err
	}
	s.Answer, s.Answered, err = b.lastAnswer(ctx, s.Conversation)
	return s, err
}

// lastAnswer is the text of the last turn that was completed and has one, as things stood when the conversation was read.
func (b *Book) lastAnswer(ctx context.Context, c Conversation) (answer string, ok bool, err error) {
	completed := "" // the turn that is being read, from its end
	var texts []string
	err = b.backwards(ctx, c.ID, func(event *agentv1.Event) bool {
		if event.GetSequence() > c.Sequence {
			return true
		}
		switch kind := event.GetKind().(type) {
		case *agentv1.Event_TurnEnded:
			completed, texts = "", nil
			if kind.TurnEnded.GetReason() == agentv1.TurnEnd_TURN_END_ANSWERED {
				completed = event.GetTurnId()
			}
		case *agentv1.Event_Message:
			if event.GetTurnId() == completed && completed != "" && kind.Message.GetRole() == agentv1.Role_ROLE_ASSISTANT {
				texts = append([]string{kind.Message.GetText()}, texts...)
			}
		case *agentv1.Event_TurnStarted:
			if event.GetTurnId() == completed && len(texts) > 0 {
				answer, ok = strings.Join(texts, "\n\n"), true
				return false
			}
		}
		return true
	})
	return answer, ok, err
}

// backwards goes through the events of a conversation from the last one, as long as look says so.
func (b *Book) backwards(ctx context.Context, id string, look func(*agentv1.Event) bool) error {
	for before := uint64(math.MaxInt64); ; {
		events, err := b.config.Lists.EventsBefore(ctx, id, before, pageOfEvents)
		if err != nil {
			return fmt.Errorf("list events: %w", err)
		}
		for _, event := range events {
			if !look(event) {
				return nil
			}
		}
		if len(events) < pageOfEvents {
			return nil
		}
		before = events[len(events)-1].GetSequence()
	}
}

// MaxOutputPiece is how many bytes of a tool's answer are given at once.
const MaxOutputPiece = 1 << 20

// Output is a piece of the whole answer of a call from an offset on, cut between characters, with the size of all of it
// and where the next piece begins; zero at the end.
func (b *Book) Output(ctx context.Context, workspace, ref, call string, offset uint64) (piece string, whole, next uint64, err error) {
	row, err := b.Get(ctx, workspace, ref)
	if err != nil {
		return "", 0, 0, err
	}
	text, err := b.config.Outputs.Output(ctx, row.ID, call)
	if errors.Is(err, ErrNoRow) {
		text, err = b.toldOutput(ctx, row.ID, call)
	}
	if err != nil {
		return "", 0, 0, err
	}
	whole = uint64(len(text))
	if offset > whole {
		return "", 0, 0, errorf(Invalid, "the answer has %d bytes, and no byte %d", whole, offset)
	}
	for offset < whole && !utf8.RuneStart(text[offset]) {
		offset++
	}
	end := min(whole, offset+MaxOutputPiece)
	for end < whole && end > offset+MaxOutputPiece-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	if end < whole {
		next = end
	}
	return text[offset:end], whole, next, nil
}

// toldOutput is the answer of a call of which the model was told all.
func (b *Book) toldOutput(ctx context.Context, id, call string) (string, error) {
	text, found := "", false
	err := b.backwards(ctx, id, func(event *agentv1.Event) bool {
		if r := event.GetToolResult(); r != nil && r.GetCallId() == call {
			text, found = r.GetContent(), true
		}
		return !found
	})
	if err == nil && !found {
		err = errorf(NotFound, "no call %q was answered in this conversation", shown(call))
	}
	return text, err
}
