package history_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/history"
	"throwbar.dev/throwbar/agent/history/historytest"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/model/modeltest"
)

// asker is one that asks the strict double, which also writes the summaries, and counts.
type asker struct {
	history.Asker
	provider  *historytest.Provider
	restarts  []history.Result
	summaries int
}

func newAsker(t *testing.T, limits history.Limits, config modeltest.Config) *asker {
	t.Helper()
	a := &asker{provider: newProvider(t, config)}
	a.Asker = history.Asker{
		Compactor: history.Compactor{
			Random: rand.Reader,
			Summarise: func(ctx context.Context, messages []model.Message) (string, error) {
				a.summaries++
				turn, err := a.provider.Client.Complete(ctx, model.Request{Messages: messages}, model.Sink{})
				return turn.Text, err
			},
		},
		Limits: limits,
		Complete: func(ctx context.Context, shown []model.Message) (model.Turn, error) {
			if err := model.Lint(shown); err != nil {
				t.Error(err)
			}
			return a.provider.Client.Complete(ctx, model.Request{Messages: shown}, model.Sink{})
		},
		Restart: func(_ context.Context, result history.Result) error {
			a.restarts = append(a.restarts, result)
			return nil
		},
	}
	t.Cleanup(func() {
		for _, v := range a.provider.Violations() {
			t.Error(v)
		}
	})
	return a
}

func TestAskWithRoom(t *testing.T) {
	t.Parallel()
	a := newAsker(t, history.Limits{Estimator: &history.Estimator{}}, modeltest.Config{})
	in := work(3)
	answer, out, err := a.Ask(t.Context(), in)
	if err != nil || answer.Text != "ok" || len(out) != len(in) || len(a.restarts) > 0 || len(a.provider.Requests()) != 1 {
		t.Errorf("%v, %+v, %d messages, %d restarts", err, answer, len(out), len(a.restarts))
	}
	if a.Limits.Estimator.Messages(in) == new(history.Estimator).Messages(in) {
		t.Error("nothing was learned from what the provider counted")
	}
}

func TestAskWhatIsTooLong(t *testing.T) {
	t.Parallel()
	a := newAsker(t, history.Limits{Context: 8000}, modeltest.Config{})
	answer, out, err := a.Ask(t.Context(), work(30))
	if err != nil || answer.Text != "ok" || len(out) >= 100 || len(a.restarts) != 1 || a.summaries != 1 || len(a.provider.Requests()) != 2 {
		t.Fatalf("%v, %+v, %d messages, %d restarts, %d summaries", err, answer, len(out), len(a.restarts), a.summaries)
	}
	if got := a.restarts[0]; got.Mechanical || !strings.Contains(out[1].Text, `"summary":"ok"`) {
		t.Errorf("%+v", got)
	}
}

// TestAskAProviderThatTakesLess is situation C: the configuration says that there is room and the provider that there is not.
func TestAskAProviderThatTakesLess(t *testing.T) {
	t.Parallel()
	in := work(30)
	// One compaction helps.
	a := newAsker(t, history.Limits{Context: 1_000_000}, modeltest.Config{ContextBytes: 20_000})
	answer, out, err := a.Ask(t.Context(), in)
	if err != nil || answer.Text != "ok" || len(a.restarts) != 1 || len(out) >= len(in) {
		t.Fatalf("%v, %+v, %d messages, %d restarts", err, answer, len(out), len(a.restarts))
	}
	// The next request of the turn remembers.
	asked := len(a.provider.Requests())
	if _, _, err = a.Ask(t.Context(), out); err != nil || len(a.provider.Requests()) != asked+1 {
		t.Errorf("%v: asked %d times more", err, len(a.provider.Requests())-asked)
	}
	// None helps: two requests and one for a summary, then it stops and says why.
	a = newAsker(t, history.Limits{Context: 1_000_000}, modeltest.Config{ContextBytes: 300})
	_, _, err = a.Ask(t.Context(), in)
	var long *history.TooLong
	var api *model.APIError
	if !errors.As(err, &long) || !errors.As(err, &api) || !api.Overflow() || !strings.Contains(err.Error(), "begin a new conversation") {
		t.Errorf("%v", err)
	}
	if n := len(a.provider.Requests()); n > 3 || len(a.restarts) > 1 {
		t.Errorf("%d requests, %d restarts: it goes round", n, len(a.restarts))
	}
	// There is nothing to make shorter.
	a = newAsker(t, history.Limits{Context: 1_000_000}, modeltest.Config{ContextBytes: 30})
	if _, _, err = a.Ask(t.Context(), []model.Message{user("hello")}); !errors.As(err, &long) || len(a.provider.Requests()) != 1 || len(a.restarts) > 0 {
		t.Errorf("%v after %d requests", err, len(a.provider.Requests()))
	}
}

func TestOtherErrorsAreNoReasonToCompact(t *testing.T) {
	t.Parallel()
	a := newAsker(t, history.Limits{}, modeltest.Config{Rule: modeltest.Fail(400, "your account is closed")})
	_, out, err := a.Ask(t.Context(), work(3))
	var api *model.APIError
	if !errors.As(err, &api) || len(a.restarts) > 0 || len(a.provider.Requests()) != 1 || len(out) != len(work(3)) {
		t.Errorf("%v after %d requests", err, len(a.provider.Requests()))
	}
	// What was said before the provider broke off is not asked for again.
	a = newAsker(t, history.Limits{}, modeltest.Config{})
	calls := 0
	a.Complete = func(context.Context, []model.Message) (model.Turn, error) {
		calls++
		return model.Turn{Text: "I have", CutOff: true}, &model.APIError{Midway: true, Code: "context_length_exceeded", Message: "too long"}
	}
	if answer, _, err := a.Ask(t.Context(), work(3)); err == nil || answer.Text != "I have" || calls != 1 {
		t.Errorf("%v, %+v, %d calls", err, answer, calls)
	}
	// A shorter form that cannot be kept is not shown to the model.
	a = newAsker(t, history.Limits{Context: 8000}, modeltest.Config{})
	a.Restart = func(context.Context, history.Result) error { return errors.New("the disk is full") }
	if _, out, err := a.Ask(t.Context(), work(30)); err == nil || len(out) != len(work(30)) || len(a.provider.Requests()) != 1 {
		t.Errorf("%v, %d messages", err, len(out))
	}
}

// TestALongTurnStaysUnderTheLimit lets one turn go on over many rounds with large results, at a provider that refuses what
// is longer than the context. It is never refused, never asked twice for the same, and the order is always shown.
func TestALongTurnStaysUnderTheLimit(t *testing.T) {
	t.Parallel()
	a := newAsker(t, history.Limits{Context: 10_000, Estimator: &history.Estimator{}}, modeltest.Config{ContextBytes: 40_000})
	now := []model.Message{system("the rules"), user("Go through all 80 parts, but never touch part 7.")}
	for i := range 80 {
		var err error
		if _, now, err = a.Ask(t.Context(), now); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if last := a.provider.Last(); last.Refused != "" || !strings.Contains(string(last.Body), "never touch part 7") {
			t.Fatalf("round %d: refused %q, or the order is not shown", i, last.Refused)
		}
		id := fmt.Sprint("c", i)
		now = append(now, says("", id), answers(id, `{"ok":true,"mark":"aaaaaa","data":"`+strings.Repeat("row ", 700)+`","end":"aaaaaa"}`))
	}
	if n := len(a.restarts); n < 2 || n > 30 {
		t.Errorf("%d compactions in 80 rounds", n)
	}
	if n := len(a.provider.Requests()); n != 80+a.summaries {
		t.Errorf("%d requests for 80 rounds and %d summaries", n, a.summaries)
	}
}
