package turn_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"throwbar.dev/throwbar/agent/agenttest"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// beside adds a model behind those that a bench has.
func (b *bench) beside(name string, script ...modeltest.Step) *modeltest.Server {
	b.t.Helper()
	s := modeltest.NewServer(b.t, script...)
	client, err := model.New(model.Config{BaseURL: s.URL, Key: modeltest.Key, Model: name})
	if err != nil {
		b.t.Fatal(err)
	}
	b.choices = append(b.choices, turn.Choice{Name: name, Model: client})
	return s
}

func (j *journal) changes() (out []string) {
	for _, e := range j.events {
		if c := e.GetModelChanged(); c != nil {
			out = append(out, c.GetFrom()+" to "+c.GetTo()+": "+c.GetReason())
		}
	}
	return out
}

func openA() modeltest.Reply {
	return modeltest.Use("openTab", map[string]any{"deviceId": "lap", "url": "https://a.example"})
}

// A model that does not answer gives way to the next one, which then answers for the rest of the turn.
func TestTheNextModelAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t, modeltest.Fail(401, "no such key"))
	second := b.beside("second", openA(), modeltest.Text("done"))
	j := b.chat("open")
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
	if got := j.changes(); len(got) != 1 || !strings.HasPrefix(got[0], "test to second: ") || !strings.Contains(got[0], "no such key") {
		t.Errorf("changes: %q", got)
	}
	if len(b.model.Requests()) != 1 || len(second.Requests()) != 2 {
		t.Errorf("asked %d and %d times", len(b.model.Requests()), len(second.Requests()))
	}
	for _, e := range j.events {
		if u := e.GetUsage(); u != nil && u.GetModel() != "second" {
			t.Errorf("usage of %q", u.GetModel())
		}
	}
}

// A fault of the request is nobody else's to answer, and neither is an answer that has begun.
func TestNoOtherModelIsAsked(t *testing.T) {
	t.Parallel()
	cut := modeltest.Reply{Text: "I open it.", Piece: 2, CutAfter: 4}
	for name, step := range map[string]modeltest.Step{"400": modeltest.Fail(400, "bad request"), "begun": cut} {
		b := newBench(t, step)
		second := b.beside("second")
		j := b.chat("open")
		j.expect(t, agentv1.TurnEnd_TURN_END_FAILED)
		if len(j.changes()) != 0 || len(second.Requests()) != 0 {
			t.Errorf("%s: changes %q", name, j.changes())
		}
		if got := j.events[len(j.events)-2].GetError().GetMessage(); !strings.HasPrefix(got, "Model test: ") {
			t.Errorf("%s: whose error is %q?", name, got)
		}
	}
}

// Where several models are configured and none answers, the error names the last one.
func TestNoModelAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t, modeltest.Fail(401, "no such key"))
	b.beside("zweites", modeltest.Fail(401, "another key"))
	j := b.chat("open")
	j.expect(t, agentv1.TurnEnd_TURN_END_FAILED)
	got := j.events[len(j.events)-2].GetError().GetMessage()
	if !strings.HasPrefix(got, "Model zweites: the model provider answered 401") || !strings.Contains(got, "another key") {
		t.Errorf("error: %q", got)
	}
}

// Situation G: the provider is out of order after a round of tools. The turn ends and says so, the next one has the
// result, and the device saw the command once.
func TestAProviderThatFailsAfterATool(t *testing.T) {
	t.Parallel()
	b := newBench(t, openA(), modeltest.Fail(503, "busy"), modeltest.Reply{Text: "it is", CutAfter: 2}, modeltest.Text("it is open"))
	j := b.chat("open")
	j.expect(t, agentv1.TurnEnd_TURN_END_FAILED)
	b.say(t.Context(), j, "go on")
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
	if len(b.world.Commands()) != 1 || len(b.model.Requests()) != 4 {
		t.Errorf("%d commands, %d requests", len(b.world.Commands()), len(b.model.Requests()))
	}
}

// A history that the provider refuses as too long is summed up, kept so, and asked once more.
func TestAnOverflowIsCompacted(t *testing.T) {
	t.Parallel()
	b := newBench(t, modeltest.Overflow(), modeltest.Text("They talked about numbers."), modeltest.Text("42"))
	j := &journal{}
	for i := range 60 {
		j.messages = append(j.messages, model.Message{Role: model.RoleUser, Text: fmt.Sprint("say ", i, strings.Repeat(" word", 800))},
			model.Message{Role: model.RoleAssistant, Text: fmt.Sprint(i)})
	}
	b.say(t.Context(), j, "and now?")
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
	i := slices.IndexFunc(j.events, func(e *agentv1.Event) bool { return e.GetCompacted() != nil })
	if i < 0 || j.restarts != 1 {
		t.Fatalf("%d restarts: %v", j.restarts, j.kinds())
	}
	if c := j.events[i].GetCompacted(); c.GetAfterTokens() == 0 || c.GetAfterTokens() >= c.GetBeforeTokens() {
		t.Errorf("compacted: %v", c)
	}
	if len(j.messages) > 60 || j.messages[0].Role == model.RoleSystem {
		t.Errorf("%d messages are left, the first by %s", len(j.messages), j.messages[0].Role)
	}
	if last := b.model.Last(); !strings.Contains(last.System(), "Safety:") || !strings.Contains(fmt.Sprint(last.Messages), "They talked about numbers.") {
		t.Error("the request after it lacks the rules or the summary")
	}
}

// A second refusal ends the turn, in words.
func TestAnOverflowIsTriedTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t, modeltest.Overflow(), modeltest.Text("Numbers."), modeltest.Overflow())
	j := &journal{}
	for i := range 60 {
		j.messages = append(j.messages, model.Message{Role: model.RoleUser, Text: fmt.Sprint("say ", i, strings.Repeat(" word", 800))},
			model.Message{Role: model.RoleAssistant, Text: fmt.Sprint(i)})
	}
	b.say(t.Context(), j, "and now?")
	j.expect(t, agentv1.TurnEnd_TURN_END_FAILED)
	if got := j.events[len(j.events)-2].GetError().GetMessage(); !strings.Contains(got, "too long") || !strings.Contains(got, "(the model provider answered 400") {
		t.Errorf("error: %q", got)
	}
}

// Limits of tokens and of time are told, and a message goes on.
func TestBudgets(t *testing.T) {
	t.Parallel()
	dear := modeltest.Use("listDevices", map[string]any{})
	dear.Prompt, dear.Completion = 900_000, 200_000
	b := newBench(t, dear)
	j := b.chat("list")
	j.expect(t, agentv1.TurnEnd_TURN_END_LIMIT, "token_limit")
	if j.spent.Tokens != 1_100_000 || j.spent.Rounds != 1 {
		t.Errorf("spent: %+v", j.spent)
	}
	if n := j.events[len(j.events)-2].GetNotice(); !n.GetCanContinue() || !strings.HasSuffix(n.GetText(), `Say "go on" to continue.`) {
		t.Errorf("notice: %v", n)
	}
	b.model.Add(modeltest.Text("two"))
	b.say(t.Context(), j, "go on")
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED, "token_limit")

	uncounted := modeltest.Use("listDevices", map[string]any{})
	uncounted.NoUsage = true
	b = newBench(t, uncounted, modeltest.Text("done"))
	if j = b.chat("list"); j.spent.Tokens < 1000 {
		t.Errorf("a provider that does not count: spent %+v", j.spent)
	}
}

// What does not come back ends with the time of the turn, and has a result.
func TestTheTimeOfATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := catalog.New(gen.Descriptors)
		if err != nil {
			t.Fatal(err)
		}
		tools, err := tool.NewSet(c)
		if err != nil {
			t.Fatal(err)
		}
		world := agenttest.New()
		world.BeforeCommand = hangs
		runner := turn.New(turn.Config{Tools: tools, Commander: world, Querier: world, Random: zeros{}, Log: slog.New(slog.DiscardHandler)})
		j, began := &journal{choices: []turn.Choice{{Name: "brief", Model: &brief{}}}}, time.Now()
		task := turn.Task{Conversation: "c1", Journal: j, History: []model.Message{{Role: model.RoleUser, Text: "open"}}, Spent: turn.Spent{Millis: 60_000}}
		if err := runner.Run(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		runner.Wait()
		j.expect(t, agentv1.TurnEnd_TURN_END_LIMIT, "time_limit")
		if got := j.content(t, 0).Error; got.Code != "interrupted" || time.Since(began) != turn.DefaultTime-time.Minute || j.spent.Millis != turn.DefaultTime.Milliseconds() {
			t.Errorf("after %v: %+v, spent %+v", time.Since(began), got, j.spent)
		}
	})
}
