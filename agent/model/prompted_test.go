package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/model/modeltest"
)

// TestPromptedRound goes through the loop against a provider that refuses everything about tools, and then on with one
// that takes them, and back.
func TestPromptedRound(t *testing.T) {
	t.Parallel()
	plain := modeltest.NewServerWith(t, modeltest.Config{NoTools: true},
		modeltest.Text("Looking.\n```tool\n{\"tool\": \"searchTabs\", \"arguments\": {}}\n```\n"),
		modeltest.Text("```tool\n{\"tool\": \"closeTabs\", \"arguments\": {\"tabIds\": [\"t1\"]}}\n```"),
		modeltest.Text("Closed one."),
		modeltest.Text("Still here."),
	)
	tools := modeltest.NewServer(t, modeltest.Use("searchTabs", `{}`), modeltest.Text("Nothing left."))
	prompted := model.NewPrompted(newClient(t, model.Config{BaseURL: plain.URL}))
	normal := newClient(t, model.Config{BaseURL: tools.URL})
	request := model.Request{
		Messages: []model.Message{{Role: model.RoleSystem, Text: "Be kind."}, user("close the news")},
		Tools:    []model.Tool{tool("searchTabs"), tool("closeTabs"), {Name: "listDevices"}},
	}
	results := map[string]string{"searchTabs": `{"tabs":[{"id":"t1"}]}`, "closeTabs": `{"closed":1}`}
	var shown strings.Builder
	step := func(m interface {
		Complete(ctx context.Context, request model.Request, sink model.Sink) (model.Turn, error)
	},
	) model.Turn {
		t.Helper()
		turn, err := m.Complete(t.Context(), request, model.Sink{OnText: func(s string) { shown.WriteString(s) }})
		if err != nil {
			t.Fatal(err)
		}
		request.Messages = append(request.Messages, turn.Message())
		for _, call := range turn.Calls {
			request.Messages = append(request.Messages, model.Message{Role: model.RoleTool, CallID: call.ID, Text: results[call.Name]})
		}
		return turn
	}
	for range 3 {
		step(prompted)
	}
	request.Messages = append(request.Messages, user("what is left?"))
	step(normal)
	step(normal)
	request.Messages = append(request.Messages, user("sure?"))
	if last := step(prompted); last.Text != "Still here." || shown.String() != "Looking.Closed one.Nothing left.Still here." {
		t.Errorf("shown %q, last %+v", shown.String(), last)
	}
	first, last := plain.Requests()[0], plain.Last()
	for _, want := range []string{"Be kind.", "## closeTabs", "For <tests> & more.", `"tabIds":{"type":"array"`, "## listDevices"} {
		if !strings.Contains(first.System(), want) {
			t.Errorf("no %q in the system message %s", want, first.System())
		}
	}
	if strings.Contains(string(last.Body), "tool_call") || len(last.Tools) > 0 {
		t.Errorf("tools in %s", last.Body)
	}
	for i, m := range last.Messages[1:] {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			t.Errorf("message %d is from %s", i, m.Role)
		}
	}
	if got := last.Messages[4].Text; !strings.Contains(got, `"tool": "closeTabs", "arguments": {"tabIds": ["t1"]}`) {
		t.Errorf("the call is told as %q", got)
	}
	if got := last.Messages[5].Text; !strings.Contains(got, "Result of the tool closeTabs") || !strings.Contains(got, `{"closed":1}`) {
		t.Errorf("the result is told as %q", got)
	}
}

// TestPromptedHistories sends what aborts, crashes and bad models leave behind.
func TestPromptedHistories(t *testing.T) {
	t.Parallel()
	call := model.Call{ID: "a", Name: "searchTabs", Arguments: "{}", Extra: json.RawMessage(`{"x":1}`)}
	histories := [][]model.Message{
		{user("a"), {Role: model.RoleAssistant, Calls: []model.Call{call}}, user("go on")},
		{user("a"), {Role: model.RoleAssistant, Text: "b", Reasoning: "c", Calls: []model.Call{call, call}}, {Role: model.RoleTool, CallID: "a", Text: "x", Images: []string{"data:image/png;base64,AA=="}}},
		{{Role: model.RoleAssistant, Text: "so far"}, {Role: model.RoleSystem, Text: "s"}, {Role: model.RoleTool, CallID: "z", Text: "x"}, user("b\x00\xff"), user("c")},
	}
	server := modeltest.NewServerWith(t, modeltest.Config{NoTools: true, Rule: modeltest.Text("ok")})
	prompted := model.NewPrompted(newClient(t, model.Config{BaseURL: server.URL}))
	for _, history := range histories {
		for _, choice := range []string{"", "none", "required", "searchTabs"} {
			turn, err := prompted.Complete(t.Context(), model.Request{Messages: history, Tools: []model.Tool{tool("searchTabs")}, ToolChoice: choice}, model.Sink{})
			if err != nil || turn.Text != "ok" {
				t.Errorf("%+v, %v", turn, err)
			}
		}
	}
	if _, err := prompted.Complete(t.Context(), model.Request{Messages: []model.Message{user("a"), {Role: model.RoleAssistant, Text: "b"}}}, model.Sink{}); !errors.Is(err, model.ErrNothingToAnswer) {
		t.Errorf("error %v", err)
	}
	if _, err := prompted.Complete(t.Context(), ask("a"), model.Sink{}); err != nil || server.Last().System() != "" {
		t.Errorf("%v, system message without tools: %q", err, server.Last().System())
	}
}

// TestPromptedFailures has a provider that fails before and in the middle of an answer.
func TestPromptedFailures(t *testing.T) {
	t.Parallel()
	server := modeltest.NewServerWith(t, modeltest.Config{NoTools: true}, modeltest.Fail(404, "no such model"),
		modeltest.Reply{Text: "One.\n```tool\n{\"tool\": \"searchTabs\", \"arguments\": {}}\n```", CutAfter: 7, Piece: 8})
	prompted := model.NewPrompted(newClient(t, model.Config{BaseURL: server.URL}))
	request := ask("a")
	request.Tools = []model.Tool{tool("searchTabs")}
	if turn, err := prompted.Complete(t.Context(), request, model.Sink{}); !model.Another(err) || !turn.Empty() {
		t.Errorf("%+v, %v", turn, err)
	}
	turn, err := prompted.Complete(t.Context(), request, model.Sink{})
	if !errors.Is(err, model.ErrCutOff) || !turn.CutOff || turn.Text != "One." || len(turn.Calls) > 0 || len(turn.Open) != 1 {
		t.Errorf("%+v, %v", turn, err)
	}
}
