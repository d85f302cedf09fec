package turn_test

import (
	"context"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// Access is that of the last step, unless a test has changed it since.
func (j *journal) Access(context.Context) (tool.Access, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.access, j.fail
}

// Access is everything, always.
func (m mortal) Access(context.Context) (tool.Access, error) { return tool.Access{}, nil }

// Access is everything, always.
func (p *play) Access(context.Context) (tool.Access, error) { return tool.Access{}, nil }

// What is taken from an agent while a call runs holds for the next call, also where the model made both in one answer.
func TestAGrantThatIsTakenBackHoldsForTheNextCall(t *testing.T) {
	t.Parallel()
	both := modeltest.Reply{Calls: []modeltest.Call{
		modeltest.NewCall("openTab", map[string]any{"deviceId": "lap", "url": "https://first.example/"}),
		modeltest.NewCall("muteTabs", `{"tabIds":["lap_t1-1"],"muted":true}`),
		modeltest.NewCall("listDevices", map[string]any{}),
	}}
	b := newBench(t, both, modeltest.Text("only the first"))
	j := &journal{}
	b.world.BeforeCommand = func(context.Context, turn.Call) error {
		j.grant(tool.Access{Denied: []string{"muteTabs", "listDevices"}})
		return nil
	}
	b.say(t.Context(), j, "open one and mute the other")
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
	if n := len(b.world.Commands()); n != 1 || len(b.world.Queries()) != 0 {
		t.Errorf("%d commands and %d queries", n, len(b.world.Queries()))
	}
	results := j.results()
	if len(results) != 3 || results[0].GetOutcome() != agentv1.Outcome_OUTCOME_SUCCEEDED {
		t.Fatalf("%v", results)
	}
	for _, r := range results[1:] {
		if r.GetOutcome() != agentv1.Outcome_OUTCOME_DENIED || !strings.Contains(r.GetContent(), "does not have "+r.GetName()) {
			t.Errorf("%v", r)
		}
	}
}

// What is taken from an agent while its model thinks holds for the first call too.
func TestAGrantThatIsTakenBackWhileTheModelAnswers(t *testing.T) {
	t.Parallel()
	j := &journal{}
	b := newBench(t, modeltest.Func(func(*modeltest.Received) modeltest.Reply {
		j.grant(tool.Access{Denied: []string{"act"}})
		return modeltest.Use("openTab", map[string]any{"deviceId": "lap", "url": "https://first.example/"})
	}), modeltest.Text("it may not"))
	b.say(t.Context(), j, "open one")
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
	if n := len(b.world.Commands()); n != 0 {
		t.Errorf("%d commands", n)
	}
}

func (j *journal) grant(a tool.Access) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.access = a
}
