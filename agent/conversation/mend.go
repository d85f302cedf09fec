package conversation

import (
	"context"
	"fmt"
	"log/slog"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

const whyStopped = "The server stopped while this turn ran. Say \"go on\" to continue."

// resume takes up what an earlier process has left, wherever something ran or waits.
func (b *Book) resume(ctx context.Context) error {
	refs, err := b.config.Store.Unfinished(ctx)
	if err != nil {
		return fmt.Errorf("find turns to go on with: %w", err)
	}
	for _, ref := range refs {
		err := b.locked(ctx, ref, func(t *thread) error {
			if t.run != nil {
				return nil
			}
			return b.next(ctx, t, Change{Conversation: t.c}) // what waits because the server stopped
		})
		if err != nil { // the others go on; this one is tried again when somebody looks at it
			b.config.Log.ErrorContext(ctx, "conversation cannot go on", slog.String("conversation_id", ref.ID), slog.Any("error", err))
		}
	}
	b.mu.Lock()
	bereft := b.bereft
	b.bereft, b.resumed = nil, true
	b.mu.Unlock()
	for _, c := range bereft {
		b.abandon(ctx, c)
	}
	return nil
}

// adopt takes up a turn that runs in no process. The caller holds t.mu.
func (b *Book) adopt(ctx context.Context, t *thread, row Turn) error {
	if !row.Durable {
		why := whyStopped
		if row.Stopping {
			why = ""
		}
		if err := b.mend(ctx, t, row, why); err != nil {
			return err
		}
		b.bereave(ctx, t.c)
		return nil
	}
	past, err := b.past(ctx, row)
	if err != nil {
		return err
	}
	if !b.reserve() {
		t.loaded = false
		return errClosed()
	}
	resumed := &agentv1.Event{TurnId: row.ID, Kind: &agentv1.Event_TurnResumed{TurnResumed: &agentv1.TurnResumed{}}}
	if err := b.commit(ctx, t, Change{Conversation: t.c, Events: []*agentv1.Event{resumed}}); err != nil {
		b.turns.Done()
		return err
	}
	b.run(context.WithoutCancel(ctx), t, row, nil, true)
	t.run.follow(past)
	t.run.past = append(past, resumed)
	b.note(t)
	if row.Stopping { // the turn itself ends, and takes back what it waits for
		t.run.stop(ErrStopped)
	}
	return nil
}

// bereave has the agents stopped that a turn had started which ended with an earlier process: when all that goes on does, or
// at once if that is over. The caller holds the lock of the turn's thread, which those below are not locked under.
func (b *Book) bereave(ctx context.Context, c Conversation) {
	b.mu.Lock()
	if !b.resumed {
		b.bereft = append(b.bereft, c)
		b.mu.Unlock()
		return
	}
	b.mu.Unlock()
	if !b.reserve() {
		return
	}
	go func() {
		defer b.turns.Done()
		b.abandon(context.WithoutCancel(ctx), c)
	}()
}

// past is what a turn told before its process ended.
func (b *Book) past(ctx context.Context, row Turn) ([]*agentv1.Event, error) {
	var past []*agentv1.Event
	for after := row.Sequence; ; {
		events, err := b.config.Lists.Events(ctx, row.Conversation, after, pageOfEvents)
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		for _, e := range events {
			if e.GetTurnId() == row.ID {
				past = append(past, e)
			}
		}
		if len(events) < pageOfEvents {
			return past, nil
		}
		after = events[len(events)-1].GetSequence()
	}
}

// mend ends a turn that cannot go on: every open call of the history gets a result. One that was stopped has no why. The
// caller holds t.mu.
func (b *Book) mend(ctx context.Context, t *thread, row Turn, why string) error {
	history, err := b.config.Store.Messages(ctx, t.ref.ID)
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	change := Change{Conversation: t.c}
	for _, call := range turn.Unanswered(history) {
		content, err := tool.Fail("interrupted",
			"the turn broke before the outcome was known; it may have taken effect: look before you try again").Print(b.config.Random)
		if err != nil {
			return fmt.Errorf("print result: %w", err)
		}
		change.Messages = append(change.Messages, model.Message{Role: model.RoleTool, CallID: call.ID, Text: content})
		change.Events = append(change.Events, &agentv1.Event{TurnId: row.ID, Kind: &agentv1.Event_ToolResult{ToolResult: &agentv1.ToolResult{
			CallId: call.ID, Name: call.Name, Outcome: agentv1.Outcome_OUTCOME_FAILED, Content: content,
		}}})
	}
	end := agentv1.TurnEnd_TURN_END_STOPPED
	if why != "" {
		end = agentv1.TurnEnd_TURN_END_FAILED
		change.Events = append(change.Events, &agentv1.Event{TurnId: row.ID, Kind: &agentv1.Event_Error{Error: &agentv1.TurnError{Message: why}}})
	}
	change.Events = append(change.Events, &agentv1.Event{TurnId: row.ID, Kind: &agentv1.Event_TurnEnded{TurnEnded: &agentv1.TurnEnded{Reason: end}}})
	return b.finish(ctx, t, row, change, end)
}

// finish stores the end of a turn, and begins the next one if something waits. The caller holds t.mu.
func (b *Book) finish(ctx context.Context, t *thread, row Turn, change Change, end agentv1.TurnEnd) error {
	if row.State != "" { // one of an earlier version has no row
		row.State, row.End, row.EndedAt = TurnEnded, end, b.config.Now()
		change.Turn = &row
	}
	change.Conversation.LastEnd = end
	return b.next(ctx, t, change)
}
