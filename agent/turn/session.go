package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"throwbar.dev/throwbar/agent/model"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// session is a turn that runs. Only its own goroutine uses it.
type session struct {
	*Runner
	task    Task
	history []model.Message
	spent   Spent
	guard   *guard
}

// round asks the model once and runs the tools that it calls. It says whether the turn has ended.
func (s *session) round(ctx context.Context, number int) (bool, error) {
	step, err := s.task.Journal.Next(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return true, s.stopped(ctx, model.Turn{})
	case err != nil:
		return false, err
	case len(step.Choices) == 0:
		return true, s.failed(ctx, model.Turn{}, step.Hint)
	}
	s.history = append(s.history, step.Messages...)
	s.spent.Rounds = number
	answer, err := step.Choices[0].Model.Complete(ctx, model.Request{Messages: s.history, Tools: s.tools}, model.Sink{
		OnText:      func(piece string) { s.task.Journal.Delta(textDelta(piece)) },
		OnReasoning: func(piece string) { s.task.Journal.Delta(reasoningDelta(piece)) },
	})
	switch {
	case ctx.Err() != nil:
		return true, s.stopped(ctx, answer)
	case err != nil:
		return true, s.failed(ctx, answer, explain(err))
	case len(answer.Calls) == 0:
		return true, s.answered(ctx, answer)
	}
	calls := s.prepare(answer.Calls)
	events := said(answer)
	for _, c := range calls {
		events = append(events, toolCall(c))
	}
	if err := s.record(ctx, []model.Message{answer.Message()}, events...); err != nil {
		return false, err
	}
	if err := s.run(ctx, calls); err != nil {
		return false, err
	}
	switch {
	case ctx.Err() != nil:
		return true, s.stopped(ctx, model.Turn{})
	case s.guard.notice != nil:
		return true, s.end(ctx, agentv1.TurnEnd_TURN_END_LIMIT, s.guard.notice)
	case number == s.config.Rounds:
		return true, s.end(ctx, agentv1.TurnEnd_TURN_END_LIMIT, notice("loop_limit",
			fmt.Sprintf("Stopped after %d rounds of tools. Say \"go on\" to continue.", number)))
	default:
		return false, nil
	}
}

// record stores messages and events, and adds the messages to the history.
func (s *session) record(ctx context.Context, messages []model.Message, events ...*agentv1.Event) error {
	s.history = append(s.history, messages...)
	return s.task.Journal.Record(ctx, Entry{Messages: messages, Events: events, Spent: s.spent})
}

// end is the last thing that a turn does.
func (s *session) end(ctx context.Context, reason agentv1.TurnEnd, events ...*agentv1.Event) error {
	return s.record(ctx, nil, append(events, turnEnded(reason))...)
}

// answered ends a turn whose model called no tool.
func (s *session) answered(ctx context.Context, answer model.Turn) error {
	if strings.TrimSpace(answer.Text) == "" && len(answer.Open) == 0 {
		return s.failed(ctx, answer, "the model answered nothing: ask again")
	}
	reason, events := agentv1.TurnEnd_TURN_END_ANSWERED, said(answer)
	switch {
	case len(answer.Open) > 0:
		reason = agentv1.TurnEnd_TURN_END_LIMIT
		events = append(events, notice("answer_cut", "The answer ended in the middle of a tool call, which was not run."))
	case answer.Finish == model.FinishLength:
		reason = agentv1.TurnEnd_TURN_END_LIMIT
		events = append(events, notice("answer_cut", "The answer reached the model's length limit. Say \"go on\" to continue."))
	case answer.Finish == model.FinishContentFilter:
		events = append(events, notice("answer_filtered", "The model's provider cut the answer short."))
	}
	return s.record(ctx, spoken(answer), append(events, turnEnded(reason))...)
}

// failed ends a turn whose model gave no whole answer. What it said stays; what it began to call is not run.
func (s *session) failed(ctx context.Context, answer model.Turn, why string) error {
	events := said(answer)
	if len(answer.Open)+len(answer.Calls) > 0 {
		why += "; the tools that it had begun to call were not run"
	}
	return s.record(ctx, spoken(answer), append(events, turnError(why), turnEnded(agentv1.TurnEnd_TURN_END_FAILED))...)
}

// stopped ends a turn that was stopped, with what the model had said by then.
func (s *session) stopped(ctx context.Context, answer model.Turn) error {
	events := said(answer)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		events = append(events, notice("stopped", sentence(cause.Error())))
	}
	return s.record(ctx, spoken(answer), append(events, turnEnded(agentv1.TurnEnd_TURN_END_STOPPED))...)
}

// spoken is the message of an answer without its calls; none if it has no text.
func spoken(answer model.Turn) []model.Message {
	if strings.TrimSpace(answer.Text) == "" {
		return nil
	}
	return []model.Message{{Role: model.RoleAssistant, Text: answer.Text, Reasoning: answer.Reasoning}}
}

// explain says why the model could not be asked, or did not answer.
func explain(err error) string {
	var api *model.APIError
	switch {
	case errors.As(err, &api) && api.Overflow():
		return "the conversation is too long for the model: begin a new one"
	case errors.As(err, &api):
		return api.Error()
	case errors.Is(err, model.ErrIdle):
		return "the model's provider went silent: try again"
	case errors.Is(err, model.ErrCutOff):
		return "the model's answer was cut off: try again"
	default:
		return "the model cannot be reached: " + err.Error()
	}
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}
