package turn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"throwbar.dev/throwbar/agent/history"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool/schema"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// session is a turn that runs. Only its own goroutine uses it.
type session struct {
	*Runner
	task    Task
	history []model.Message // without the system message
	frame   []model.Message // what a model was shown last: a message of the system, and then the history, in the same memory
	memory  *history.Memory // of the conversation
	spent   Spent
	clock   *clock
	guard   *guard
	hand    hand                      // what the model of this step has
	askers  map[string]*history.Asker // by name of a choice
	answers string                    // name of the choice that answered last; the next step begins with it
	profile schema.Profile            // in which that choice was told of its tools
	past    *past                     // of a resumed turn
	made    map[string]bool           // ids of the calls of this turn
}

// round asks a model once and runs the tools that it calls. It says whether the turn has ended.
func (s *session) round(ctx context.Context) (bool, error) {
	if full := s.limit(); full != nil {
		return true, s.end(ctx, agentv1.TurnEnd_TURN_END_LIMIT, full)
	}
	step, err := s.next(ctx)
	switch {
	case ctx.Err() != nil:
		return true, s.stopped(ctx, model.Turn{})
	case err != nil:
		return false, err
	case len(step.Choices) == 0:
		return true, s.failed(ctx, model.Turn{}, step.Hint)
	}
	answer, err := s.ask(ctx, step)
	s.spent.Rounds++ // not before: what is recorded while it is asked must not count a round that a restart makes again
	var failure *journalError
	switch {
	case errors.As(err, &failure):
		return false, failure.error
	case ctx.Err() != nil:
		return true, s.stopped(ctx, answer)
	case err != nil:
		why := explain(err)
		if len(step.Choices) > 1 {
			why = "model " + s.answers + ": " + why
		}
		return true, s.failed(ctx, answer, why)
	case len(answer.Calls) == 0:
		return true, s.answered(ctx, answer)
	}
	s.nameApart(answer.Calls)
	calls := s.prepare(answer.Calls, s.profile)
	events := said(answer, s.answers)
	for _, c := range calls {
		events = append(events, toolCall(c))
	}
	message := answer.Message()
	message.Profile = string(s.profile)
	if err := s.record(ctx, []model.Message{message}, events...); err != nil {
		return false, err
	}
	return s.work(ctx, calls)
}

// nameApart gives calls other ids if earlier calls of this turn have theirs. The model was not shown those if the history was
// made shorter since, and some providers count anew in every answer. A call under the id of another one would be taken for it.
func (s *session) nameApart(calls []model.Call) {
	for i := range calls {
		call := &calls[i]
		for own, n := call.ID, 1; s.made[call.ID]; n++ {
			call.ID = s.key(own + "\x00" + strconv.Itoa(n))[:apartLength]
		}
		s.made[call.ID] = true
	}
}

// apartLength is a length of ids that every provider takes.
const apartLength = 9

// next reads what holds for the next step, and takes in what was said since the last one.
func (s *session) next(ctx context.Context) (Step, error) {
	step, err := s.task.Journal.Next(ctx)
	if err != nil {
		return Step{}, err
	}
	s.history = append(s.history, step.Messages...)
	if len(step.Messages) > 0 {
		s.guard.heard()
	}
	s.deal(step)
	return step, nil
}

// work runs the calls of one answer. It says whether the turn has ended.
func (s *session) work(ctx context.Context, calls []*call) (bool, error) {
	if err := s.run(ctx, calls); err != nil {
		return false, err
	}
	s.guard.rest()
	switch {
	case ctx.Err() != nil:
		return true, s.stopped(ctx, model.Turn{})
	case s.guard.notice != nil:
		return true, s.end(ctx, agentv1.TurnEnd_TURN_END_LIMIT, s.guard.notice)
	default:
		return false, nil
	}
}

// limit is the notice of a limit that is reached; nil if none is.
func (s *session) limit() *agentv1.Event {
	switch {
	case s.spent.Rounds >= s.config.Rounds:
		return limit("loop_limit", fmt.Sprintf("Stopped after %d rounds of tools.", s.spent.Rounds))
	case s.spent.Tokens >= s.config.Tokens:
		return limit("token_limit", fmt.Sprintf("Stopped after %d tokens.", s.spent.Tokens))
	case s.clock.millis() >= s.config.Time.Milliseconds():
		return s.late()
	default:
		return nil
	}
}

func (s *session) late() *agentv1.Event {
	return limit("time_limit", fmt.Sprintf("Stopped after %s.", s.config.Time.Round(time.Second)))
}

// record stores messages and events, and adds the messages to the history.
func (s *session) record(ctx context.Context, messages []model.Message, events ...*agentv1.Event) error {
	return s.keep(ctx, Entry{Messages: messages, Events: events})
}

// keep stores an entry, and adds its messages to the history.
func (s *session) keep(ctx context.Context, entry Entry) error {
	if entry.Restart {
		s.history = s.history[:0:0]
	}
	s.history = append(s.history, entry.Messages...)
	s.spent.Millis = s.clock.millis()
	entry.Spent = s.spent
	return s.task.Journal.Record(ctx, entry)
}

// end is the last thing that a turn does.
func (s *session) end(ctx context.Context, reason agentv1.TurnEnd, events ...*agentv1.Event) error {
	return s.record(ctx, nil, append(events, turnEnded(reason))...)
}

// answered ends a turn whose model called no tool.
func (s *session) answered(ctx context.Context, answer model.Turn) error {
	silent := model.Blank(answer.Text)
	reason, events := agentv1.TurnEnd_TURN_END_LIMIT, said(answer, s.answers)
	switch {
	case len(answer.Open) > 0:
		events = append(events, limit("answer_cut", "The answer ended in the middle of a tool call, which was not run."))
	case answer.Finish == model.FinishLength:
		events = append(events, limit("answer_cut", "The answer reached the model's length limit."))
	case answer.Finish == model.FinishToolCalls:
		events = append(events, limit("calls_missing", "The model wanted to call a tool and did not say which."))
	case answer.Finish == model.FinishContentFilter:
		reason = agentv1.TurnEnd_TURN_END_ANSWERED
		if silent {
			reason = agentv1.TurnEnd_TURN_END_FAILED
		}
		events = append(events, notice("answer_filtered", "The model's provider cut the answer short."))
	case silent:
		return s.failed(ctx, answer, "the model answered nothing: ask again")
	default:
		reason = agentv1.TurnEnd_TURN_END_ANSWERED
	}
	return s.record(ctx, spoken(answer), append(events, turnEnded(reason))...)
}

// failed ends a turn whose model gave no whole answer. What it said stays; what it began to call is not run.
func (s *session) failed(ctx context.Context, answer model.Turn, why string) error {
	events := said(answer, s.answers)
	if len(answer.Open)+len(answer.Calls) > 0 {
		why += "; the tools that it had begun to call were not run"
	}
	return s.record(ctx, spoken(answer), append(events, turnError(why), turnEnded(agentv1.TurnEnd_TURN_END_FAILED))...)
}

// stays says whether the turn only pauses, because the server stops.
func (s *session) stays(ctx context.Context) bool {
	return s.task.Durable && errors.Is(context.Cause(ctx), ErrShutdown)
}

// stopped ends a turn that was stopped, with what the model had said by then.
func (s *session) stopped(ctx context.Context, answer model.Turn) error {
	if s.stays(ctx) {
		return nil
	}
	reason, events := agentv1.TurnEnd_TURN_END_STOPPED, said(answer, s.answers)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTime):
		reason = agentv1.TurnEnd_TURN_END_LIMIT
		events = append(events, s.late())
	case !errors.Is(cause, context.Canceled):
		events = append(events, notice("stopped", sentence(cause.Error())))
	}
	return s.record(ctx, spoken(answer), append(events, turnEnded(reason))...)
}

// spoken is the message of an answer without its calls; none if it has no text.
func spoken(answer model.Turn) []model.Message {
	if model.Blank(answer.Text) {
		return nil
	}
	return []model.Message{{Role: model.RoleAssistant, Text: answer.Text, Reasoning: answer.Reasoning}}
}
