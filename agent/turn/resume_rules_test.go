package turn_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// goesOn resumes a turn whose process ended after a call.
func (b *bench) goesOn(j *journal, call model.Call, told string, more ...*agentv1.Event) {
	b.t.Helper()
	b.resumes(j, turn.Spent{Rounds: 1}, []model.Message{
		{Role: model.RoleUser, Text: "go"}, {Role: model.RoleAssistant, Calls: []model.Call{call}},
	}, append([]*agentv1.Event{{Kind: &agentv1.Event_ToolCall{ToolCall: &agentv1.ToolCall{
		CallId: call.ID, Name: call.Name, Arguments: told,
	}}}}, more...)...)
}

func (b *bench) resumes(j *journal, spent turn.Spent, history []model.Message, past ...*agentv1.Event) {
	b.t.Helper()
	j.choices, j.messages = b.choices, slices.Clone(history)
	err := b.runner.Run(b.t.Context(), turn.Task{
		Workspace: "w", Conversation: "c1", Root: "c1", TurnID: "t1", Durable: true, Resumed: true, Spent: spent,
		History: history, Past: past, Journal: j,
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// Text that the server reads as something else since it was updated is not run: nobody asked for that.
func TestAChangedReadingIsNotRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, modeltest.Text("not done"))
	j := &journal{}
	b.goesOn(j, model.Call{ID: "call_1", Name: "openTab", Arguments: `{"deviceId":"lap","url":"https://a.example"}`},
		`{"deviceId":"lap","url":"https://a.example","pinned":true}`)
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
	if got := j.content(t, 0); got.OK || !strings.Contains(got.Error.Message, "updated") || len(b.world.Commands()) != 0 {
		t.Errorf("%+v, commands %v", got, b.world.Commands())
	}
}

// What the agent itself may have done before a restart is not told as undone because it may not do it any more. What was
// wrong from the beginning was not done.
func TestWhatMayHaveBeenDoneIsNotDenied(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		arguments, told string
		denied          bool
		code            string
	}{
		{`{"commandId":"c1"}`, `{"commandId":"c1"}`, true, "interrupted"},
		{`{"command_id":"c1"}`, `{"commandId":"c1"}`, true, "interrupted"},
		{`{"command_id":"c1"}`, `{"command_id":"c1"}`, true, "not_granted"}, // it was not understood, so it was not granted then either
		{`{"commando":"c1"}`, `{"commando":"c1"}`, false, "invalid"},
		{`{"commando":"c1"}`, `{"commandId":"c1"}`, false, "interrupted"},
	} {
		b := newBenchWith(t, nil, turn.Config{Facilities: facilities(func(turn.FacilityCall) (proto.Message, error) {
			t.Error("it was done")
			return &agentv1.Undo_Result{}, nil
		})}, modeltest.Text("I do not know"))
		j := &journal{next: func(_ int, step *turn.Step) {
			if row.denied {
				step.Access.Denied = []string{"undo"}
			}
		}}
		b.goesOn(j, model.Call{ID: "call_1", Name: "undo", Arguments: row.arguments}, row.told)
		if got := j.content(t, 0).Error; got.Code != row.code || row.code == "interrupted" && !strings.Contains(got.Message, "may have taken effect") {
			t.Errorf("%s, told as %s: %+v", row.arguments, row.told, got)
		}
		if gone := slices.Contains(j.notices(), "tool_gone"); gone != (row.code == "interrupted") || j.end() != agentv1.TurnEnd_TURN_END_ANSWERED {
			t.Errorf("%s, told as %s: notices %q, ended %v", row.arguments, row.told, j.notices(), j.end())
		}
	}
}

// A stop does not make undone what an earlier process may have done, also if the tool is gone since.
func TestAStopAfterARestartClaimsNothing(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]bool{"openTab": true, "boilWater": true, "listTabs": false} {
		b, release := newBench(t), make(chan struct{})
		ctx, cancel := context.WithCancelCause(t.Context())
		j := &journal{choices: b.choices, next: func(_ int, step *turn.Step) { step.Access.Denied = []string{"openTab", "listTabs"} }}
		b.world.Gone = func(turn.Call) *controlv1.DispatchResponse {
			cancel(errors.New("stopped by the user"))
			<-release // what it became is not known in time
			return nil
		}
		j.messages = []model.Message{
			{Role: model.RoleUser, Text: "go"}, {Role: model.RoleAssistant, Calls: []model.Call{{ID: "call_1", Name: name, Arguments: `{}`}}},
		}
		err := b.runner.Run(ctx, turn.Task{
			Conversation: "c1", TurnID: "t1", Durable: true, Resumed: true, History: slices.Clone(j.messages), Journal: j,
		})
		close(release)
		j.expect(t, agentv1.TurnEnd_TURN_END_STOPPED, "stopped")
		if got := j.content(t, 0).Error; err != nil || got.Code != "interrupted" || strings.Contains(got.Message, "may have taken effect") != said {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// A decision whose end was told before a restart is not told again, and still stands in the result.
func TestADecisionBeforeARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t, modeltest.Text("done"))
	b.world.BeforeCommand = func(_ context.Context, call turn.Call) error {
		yes := question(call, approved, "only this one")
		call.Asked(yes) // as joining tells of it
		call.Resolved(yes)
		call.Resolved(yes)
		return nil
	}
	j, arguments := &journal{}, `{"deviceId":"lap","url":"https://a.example"}`
	b.goesOn(j, model.Call{ID: "call_1", Name: "openTab", Arguments: arguments}, arguments,
		&agentv1.Event{Kind: &agentv1.Event_ApprovalRequested{ApprovalRequested: &agentv1.ApprovalRequested{CallId: "call_1", ApprovalId: "ap-1"}}},
		&agentv1.Event{Kind: &agentv1.Event_ApprovalResolved{ApprovalResolved: &agentv1.ApprovalResolved{CallId: "call_1", ApprovalId: "ap-1"}}})
	if got := j.content(t, 0); !got.OK || got.Data["personSaid"] != "only this one" || strings.Contains(strings.Join(j.kinds(), " "), "approval") {
		t.Errorf("%s, events %q", j.results()[0].GetContent(), j.kinds())
	}
}

// What a person says meanwhile makes the same call worth another try.
func TestAWordOfAPersonIsAChange(t *testing.T) {
	t.Parallel()
	list := modeltest.Use("listTabs", map[string]any{})
	b := newBench(t, list, list, list, list, modeltest.Text("done"))
	j := &journal{next: func(n int, step *turn.Step) {
		if n == 3 {
			step.Messages = []model.Message{{Role: model.RoleUser, Text: "look again, I have opened one"}}
		}
	}}
	b.say(t.Context(), j, "list")
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
	if got := len(b.world.Queries()); got != 4 {
		t.Errorf("%d queries", got)
	}
}

// A server that ends whenever a turn asks its model does not do so for ever; one that was started again while a call waited
// may be started again as often as it likes.
func TestATurnThatComesNoFurtherEnds(t *testing.T) {
	t.Parallel()
	again := func(n int) (out []*agentv1.Event) {
		for range n {
			out = append(out, &agentv1.Event{Kind: &agentv1.Event_TurnResumed{TurnResumed: &agentv1.TurnResumed{}}})
		}
		return out
	}
	asked := []model.Message{{Role: model.RoleUser, Text: "go"}}
	b := newBench(t, modeltest.Text("here"))
	j := &journal{}
	b.resumes(j, turn.Spent{}, asked, again(20)...)
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
	b = newBench(t)
	j = &journal{}
	b.resumes(j, turn.Spent{}, asked, again(21)...)
	j.expect(t, agentv1.TurnEnd_TURN_END_LIMIT, "restart_limit")
	if n := len(b.model.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
	b, j = newBench(t, modeltest.Text("done")), &journal{}
	arguments := `{"deviceId":"lap","url":"https://a.example"}`
	b.goesOn(j, model.Call{ID: "call_1", Name: "openTab", Arguments: arguments}, arguments, again(99)...)
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
}

// A turn whose time was up when its process ended asks nobody again.
func TestTimeThatWasUpIsUpAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBenchWith(t, nil, turn.Config{Time: time.Minute})
	j := &journal{}
	b.resumes(j, turn.Spent{Rounds: 1, Millis: time.Minute.Milliseconds()}, []model.Message{{Role: model.RoleUser, Text: "go"}})
	j.expect(t, agentv1.TurnEnd_TURN_END_LIMIT, "time_limit")
	if n := len(b.model.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// What others say may begin with any character, and may not even be text.
func TestAnErrorIsASentence(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for said, want := range map[string]string{"überlastet": "Überlastet.", "\xff\xfe": "\uFFFD.", "it broke.": "It broke."} {
		ctx, cancel := context.WithCancelCause(t.Context())
		j := &journal{next: func(int, *turn.Step) { cancel(errors.New(said)) }}
		b.say(ctx, j, "go")
		cancel(nil)
		var got string
		for _, e := range j.events {
			got += e.GetNotice().GetText()
		}
		if got != want || !utf8.ValidString(got) {
			t.Errorf("%q became %q", said, got)
		}
	}
}

// A provider that counts its calls anew in every answer uses an id again that was forgotten with a part of the history. The
// second call is one of its own: under the key of the first it would be told the result of that one, and not be run.
func TestAnIDThatComesAgainIsAnotherCall(t *testing.T) {
	t.Parallel()
	again := openA()
	again.Calls[0].ID = "call_0"
	b := newBench(t, again, modeltest.Text("opened"))
	j := &journal{}
	b.resumes(j, turn.Spent{Rounds: 1}, []model.Message{{Role: model.RoleUser, Text: "what was said before, in short: go"}},
		&agentv1.Event{Kind: &agentv1.Event_ToolCall{ToolCall: &agentv1.ToolCall{CallId: "call_0", Name: "openTab", Arguments: `{"deviceId":"lap","url":"https://b.example"}`}}},
		&agentv1.Event{Kind: &agentv1.Event_ToolResult{ToolResult: &agentv1.ToolResult{CallId: "call_0", Name: "openTab", Outcome: agentv1.Outcome_OUTCOME_SUCCEEDED}}},
	)
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
	call, result := "", ""
	for _, e := range j.events {
		if c := e.GetToolCall(); c != nil {
			call = c.GetCallId()
		}
		if r := e.GetToolResult(); r != nil {
			result = r.GetCallId()
		}
	}
	if len(call) != 9 || result != call || len(b.world.Commands()) != 1 {
		t.Errorf("called as %q, answered as %q, %d commands", call, result, len(b.world.Commands()))
	}
	if err := model.Lint(j.messages); err != nil {
		t.Error(err)
	}
}
