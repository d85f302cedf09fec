package conversation

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

var _ turn.Journal = (*journal)(nil)

// journal keeps what happens in one turn. Only the turn's goroutine uses it, and before that the one that begins it.
type journal struct {
	book         *Book
	run          *run // nil while a turn of an earlier process is mended
	conversation Conversation
	turn         string
	last         uint64 // number of the last event
}

// Next says what holds for the next request to a model.
func (j *journal) Next(context.Context) (turn.Step, error) {
	return turn.Step{Choices: j.book.config.Models, Hint: j.book.config.Hint}, nil
}

// Record stores an entry, then tells its events. With the last one the next turn may begin.
func (j *journal) Record(ctx context.Context, entry turn.Entry) error {
	return j.store(ctx, Change{Messages: entry.Messages, Events: entry.Events})
}

// Delta tells a piece of an answer.
func (j *journal) Delta(event *agentv1.Event) {
	j.run.feed.push(j.stamp(event, 0))
}

func (j *journal) stamp(event *agentv1.Event, number uint64) *agentv1.Event {
	event.Sequence = number
	event.Time = timestamppb.New(j.book.config.Now())
	event.ConversationId = j.conversation.ID
	event.TurnId = j.turn
	return event
}

func (j *journal) store(ctx context.Context, change Change) error {
	number := j.last
	for _, event := range change.Events {
		number++
		j.stamp(event, number)
	}
	change.Conversation = j.conversation
	change.Conversation.UpdatedAt = j.book.config.Now()
	// What has happened is kept, whether or not the caller is still there.
	if err := j.book.config.Store.Append(context.WithoutCancel(ctx), change); err != nil {
		return fmt.Errorf("keep conversation: %w", err)
	}
	j.last = number
	if j.run == nil {
		return nil
	}
	if n := len(change.Events); n > 0 && change.Events[n-1].GetTurnEnded() != nil {
		j.book.release(j.conversation.ID, j.run)
	}
	j.run.feed.push(change.Events...)
	return nil
}

// giveUp ends a turn that broke. If that cannot be kept either, the caller is told at least, and the next look at the
// conversation mends it.
func (j *journal) giveUp(ctx context.Context) {
	const why = "The server failed in the middle of this turn: its log says why."
	if err := j.mend(context.WithoutCancel(ctx), why); err == nil {
		return
	}
	events := ending(why)
	for _, event := range events {
		j.stamp(event, 0)
	}
	j.run.feed.push(events...)
}

// ending are the last events of a turn that failed.
func ending(why string) []*agentv1.Event {
	return []*agentv1.Event{
		{Kind: &agentv1.Event_Error{Error: &agentv1.TurnError{Message: why}}},
		{Kind: &agentv1.Event_TurnEnded{TurnEnded: &agentv1.TurnEnded{Reason: agentv1.TurnEnd_TURN_END_FAILED}}},
	}
}

// load reads where the events of a conversation are, and mends it if its last turn never ended. The caller has claimed
// the conversation.
func (b *Book) load(ctx context.Context, j *journal) error {
	c, last, err := b.config.Store.Conversation(ctx, j.conversation.Workspace, j.conversation.ID)
	if err != nil {
		return fmt.Errorf("read conversation: %w", err)
	}
	j.conversation, j.last = c, last.GetSequence()
	if last == nil || last.GetTurnEnded() != nil {
		return nil
	}
	mending := &journal{book: b, conversation: c, turn: last.GetTurnId(), last: j.last}
	if err := mending.mend(ctx, "The server stopped while this turn ran. Say \"go on\" to continue."); err != nil {
		return err
	}
	j.last = mending.last
	return nil
}

// mend brings a conversation in order whose turn an earlier process did not end. It does nothing if one runs now.
func (b *Book) mend(ctx context.Context, c Conversation) error {
	_, last, err := b.config.Store.Conversation(ctx, c.Workspace, c.ID)
	if err != nil {
		return fmt.Errorf("read conversation: %w", err)
	}
	if last == nil || last.GetTurnEnded() != nil {
		return nil
	}
	r := &run{stop: func(error) {}, ended: make(chan struct{}), feed: newFeed()}
	if err := b.claim(c.ID, r); err != nil {
		var known *Error
		if errors.As(err, &known) {
			return nil // it runs, or the server stops: nothing to mend now
		}
		return err
	}
	defer b.turns.Done()
	defer b.release(c.ID, r)
	return b.load(ctx, &journal{book: b, conversation: c})
}

// mend gives every open call of the history a result, and ends the turn.
func (j *journal) mend(ctx context.Context, why string) error {
	history, err := j.book.config.Store.Messages(ctx, j.conversation.ID)
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	var change Change
	for _, call := range open(history) {
		content, err := tool.Fail("interrupted",
			"the turn broke before the outcome was known; it may have taken effect: look before you try again").Print(j.book.config.Random)
		if err != nil {
			return fmt.Errorf("print result: %w", err)
		}
		change.Messages = append(change.Messages, model.Message{Role: model.RoleTool, CallID: call.ID, Text: content})
		change.Events = append(change.Events, &agentv1.Event{Kind: &agentv1.Event_ToolResult{ToolResult: &agentv1.ToolResult{
			CallId: call.ID, Name: call.Name, Outcome: agentv1.Outcome_OUTCOME_FAILED, Content: content,
		}}})
	}
	change.Events = append(change.Events, ending(why)...)
	return j.store(ctx, change)
}

// open are the calls of a history that have no result.
func open(history []model.Message) []model.Call {
	var calls []model.Call
	for _, m := range history {
		switch m.Role {
		case model.RoleAssistant:
			calls = m.Calls
		case model.RoleTool:
			var rest []model.Call
			for _, call := range calls {
				if call.ID != m.CallID {
					rest = append(rest, call)
				}
			}
			calls = rest
		default:
		}
	}
	return calls
}
