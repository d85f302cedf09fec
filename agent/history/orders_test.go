package history_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/history"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
)

// What a person ordered stays whole where another agent has said something since, or the person has said it in several
// messages that one turn reads together: none of them is less an order than the last.
func TestAnOrderStaysWholeAmongOtherMessages(t *testing.T) {
	t.Parallel()
	order := "Close these: " + strings.Repeat("https://a.example/some/long/path ", 60)
	more := "And keep these: " + strings.Repeat("https://b.example/another/path ", 60)
	agent, err := tool.Quote(rand.Reader, tool.Speaker{Handle: "ab12", Title: "Budget"}, "I am done.")
	if err != nil {
		t.Fatal(err)
	}
	for name, said := range map[string][]string{
		"another agent's last":  {order, agent},
		"another agent's first": {agent, order},
		"several of the person": {order, more, "and hurry"},
	} {
		for _, summarise := range []history.Summarise{nil, func(context.Context, []model.Message) (string, error) { return "They talked.", nil }} {
			var in []model.Message
			for _, text := range said {
				in = append(in, user(text))
			}
			in = append(in, toil(60)...)
			got, err := history.Compactor{Random: rand.Reader, Summarise: summarise}.Compact(t.Context(), in, history.Limits{Context: 20_000})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, text := range said {
				if !slices.ContainsFunc(got.Messages, func(m model.Message) bool { return m.Role == model.RoleUser && m.Text == text }) &&
					!strings.Contains(got.Messages[0].Text, text) {
					t.Errorf("%s: %.40q… is gone", name, text)
				}
			}
			if err := model.Lint(got.Messages); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// toil is calls with long results.
func toil(n int) []model.Message {
	var out []model.Message
	for i := range n {
		id := fmt.Sprintf("call%d", i)
		out = append(out, model.Message{Role: model.RoleAssistant, Calls: []model.Call{{ID: id, Name: "listTabs", Arguments: "{}"}}},
			model.Message{Role: model.RoleTool, CallID: id, Text: `{"ok":true,"data":{"text":"` + strings.Repeat("words ", 250) + `"}}`})
	}
	return out
}

// An order that took more rounds than a turn has stays whole when the person says no more than that it is to go on.
func TestAnOrderStaysWholeAfterALimit(t *testing.T) {
	t.Parallel()
	order := "Close these: " + strings.Repeat("https://a.example/some/long/path ", 60)
	old := "An old order: " + strings.Repeat("https://c.example/path ", 60)
	in := slices.Concat([]model.Message{user(old), says("Done.")}, []model.Message{user(order)}, toil(30), []model.Message{user("go on")}, toil(30))
	got, err := history.Compactor{Random: rand.Reader}.Compact(t.Context(), in, history.Limits{Context: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, m := range got.Messages[1:] {
		if m.Role == model.RoleUser {
			said = append(said, m.Text)
		}
	}
	if !slices.Equal(said, []string{order, "go on"}) {
		t.Errorf("what is left of what was said: %q", said)
	}
}
