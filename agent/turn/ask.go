package turn

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"

	"throwbar.dev/throwbar/agent/history"
	"throwbar.dev/throwbar/agent/model"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
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
		if err == nil || ctx.Err() != nil || i == len(choices)-1 || !answer.Empty() || !another(err, choice, choices[i+1]) {
			return answer, err
		}
		if err := s.record(ctx, nil, modelChanged(choice.Name, choices[i+1].Name, explain(err))); err != nil {
			return model.Turn{}, &journalError{err}
		}
	}
	return model.Turn{}, errors.New("there is no model") // not reachable: a step with none is not asked
}

// another says whether the next model may do what this one could not: what is too long for it, if it reads more.
func another(err error, choice, next Choice) bool {
	var long *history.TooLong
	if errors.As(err, &long) {
		return cmp.Or(next.Context, history.DefaultContext) > cmp.Or(choice.Context, history.DefaultContext)
	}
	return model.Another(err)
}

// askOne asks one model. A conversation that is too long for it is made shorter first.
func (s *session) askOne(ctx context.Context, step Step, choice Choice) (model.Turn, error) {
	tools, _ := s.hand.view.Offered(choice.Profile, s.hand.loaded, s.config.ToolTokens)
	s.profile = choice.Profile
	effort := cmp.Or(step.Effort, choice.Effort)
	asker := s.asker(choice)
	asker.Limits.Fixed = s.memory.Tools(asker.Limits.Estimator, tools)
	asker.Loaded = s.hand.loaded
	asker.Complete = func(ctx context.Context, shown []model.Message) (model.Turn, error) {
		answer, err := choice.Model.Complete(ctx, model.Request{
			Messages: shown, Known: &s.memory.Sent, Tools: tools, MaxTokens: choice.Output, Effort: effort,
		}, model.Sink{
			OnText:      func(piece string) { s.task.Journal.Delta(textDelta(piece)) },
			OnReasoning: func(piece string) { s.task.Journal.Delta(reasoningDelta(piece)) },
		})
		s.count(answer, func() int { return asker.Limits.Estimator.Messages(shown) + asker.Limits.Fixed })
		return answer, err
	}
	system := model.Message{Role: model.RoleSystem, Text: prompt(step)}
	answer, shown, err := asker.Ask(ctx, s.framed(system))
	s.history = unsystemed(shown)
	return answer, err
}

// framed is the history after a message of the system. Both stay in memory of the turn's own, with room for what comes, so that the
// history is not copied for each request.
func (s *session) framed(system model.Message) []model.Message {
	n := len(s.history)
	if n == 0 || cap(s.frame) <= n || &s.frame[:2][1] != &s.history[0] {
		s.frame = append(make([]model.Message, 1, 1+n+frameRoom), s.history...)
		s.history = s.frame[1:]
	}
	s.frame = s.frame[:1+n]
	s.frame[0] = system
	return s.frame
}

// frameRoom is for how many messages more there is room at first: about as many as a turn of some rounds adds.
const frameRoom = 32

// asker asks a model in this turn; it remembers what that model refused.
func (s *session) asker(choice Choice) *history.Asker {
	if a := s.askers[choice.Name]; a != nil {
		return a
	}
	var spoken []*agentv1.Event // what summaries cost
	a := &history.Asker{
		Memory: s.memory,
		Limits: history.Limits{Context: choice.Context, Output: choice.Output, Images: choice.Images, Estimator: &history.Estimator{}},
		Compactor: history.Compactor{Random: s.config.Random, Summarise: func(ctx context.Context, messages []model.Message) (string, error) {
			answer, err := choice.Model.Complete(ctx, model.Request{Messages: messages, MaxTokens: choice.Output}, model.Sink{})
			s.count(answer, func() int { return s.askers[choice.Name].Limits.Estimator.Messages(messages) })
			spoken = append(spoken, usage(answer.Usage, choice.Name)...)
			return answer.Text, err
		}},
		Restart: func(ctx context.Context, result history.Result) error {
			events := append(spoken, compacted(result.Before, result.After))
			spoken = nil
			if err := s.keep(ctx, Entry{Restart: true, Messages: unsystemed(result.Messages), Events: events}); err != nil {
				return &journalError{err}
			}
			return nil
		},
	}
	s.askers[choice.Name] = a
	return a
}

// count adds what a request cost; about that, where the provider does not say.
func (s *session) count(answer model.Turn, estimate func() int) {
	u := answer.Usage
	switch {
	case u.Prompt > 0 || u.Completion > 0:
		s.spent.Tokens += max(u.Prompt, 0) + max(u.Completion, 0)
	case !answer.Empty():
		s.spent.Tokens += int64(estimate() + len(answer.Text+answer.Reasoning)/bytesPerToken)
	}
}

// bytesPerToken is about how long a token is.
const bytesPerToken = 4

// unsystemed are messages without those of the system, which every request has anew.
func unsystemed(messages []model.Message) []model.Message {
	if at := slices.IndexFunc(messages, func(m model.Message) bool { return m.Role != model.RoleSystem }); at > 0 &&
		!slices.ContainsFunc(messages[at:], func(m model.Message) bool { return m.Role == model.RoleSystem }) {
		return messages[at:] // as always
	}
	return slices.DeleteFunc(slices.Clone(messages), func(m model.Message) bool { return m.Role == model.RoleSystem })
}

// explain says why the model could not be asked, or did not answer.
func explain(err error) string {
	var api *model.APIError
	var long *history.TooLong
	var request *url.Error
	switch {
	case errors.As(err, &long) && errors.As(long.Cause, &api):
		return long.Error() + " (" + api.Error() + ")"
	case errors.As(err, &long):
		return long.Error()
	case errors.As(err, &api):
		return api.Error()
	case errors.Is(err, model.ErrIdle):
		return "the model's provider went silent: try again"
	case errors.Is(err, model.ErrCutOff):
		return "the model's answer was cut off: try again"
	case errors.As(err, &request):
		return "the model cannot be reached: " + request.Err.Error()
	default:
		return "the model cannot be reached: " + err.Error()
	}
}
