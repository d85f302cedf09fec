package turn

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"throwbar.dev/throwbar/agent/model"
)

// journalError is an error of the journal, which ends the turn without a word.
type journalError struct{ error }

// ask asks the models of a step in order, beginning with the one that answered last. The next one is asked only while
// nothing of an answer has come, and only about what another one may not have.
func (s *session) ask(ctx context.Context, step Step) (model.Turn, error) {
	at := max(slices.IndexFunc(step.Choices, func(c Choice) bool { return c.Name == s.answers }), 0)
	choices := step.Choices[at:]
	for i, choice := range choices {
		s.answers = choice.Name
		answer, err := s.askOne(ctx, step, choice)
		if err == nil || ctx.Err() != nil || i == len(choices)-1 || !answer.Empty() || !model.Another(err) {
			return answer, err
		}
		if err := s.record(ctx, nil, modelChanged(choice.Name, choices[i+1].Name, explain(err))); err != nil {
			return model.Turn{}, &journalError{err}
		}
	}
	return model.Turn{}, errors.New("there is no model") // not reachable: a step with none is not asked
}

// askOne asks one model.
func (s *session) askOne(ctx context.Context, step Step, choice Choice) (model.Turn, error) {
	tools, _ := s.hand.offered(choice.Profile)
	system := model.Message{Role: model.RoleSystem, Text: prompt(step)}
	return choice.Model.Complete(ctx, model.Request{
		Messages: slices.Concat([]model.Message{system}, s.history), Tools: tools,
		MaxTokens: choice.Output, Effort: cmp.Or(step.Effort, choice.Effort),
	}, model.Sink{
		OnText:      func(piece string) { s.task.Journal.Delta(textDelta(piece)) },
		OnReasoning: func(piece string) { s.task.Journal.Delta(reasoningDelta(piece)) },
	})
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
