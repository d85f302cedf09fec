package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// TestPromptedModelClosesTabs does the main job with a model that cannot call tools, whose provider refuses every request
// that says something of them.
func TestPromptedModelClosesTabs(t *testing.T) {
	t.Parallel()
	use := func(tool string, args any) modeltest.Reply {
		text, err := json.Marshal(map[string]any{"tool": tool, "arguments": args})
		if err != nil {
			t.Error(err)
		}
		return modeltest.Text("```tool\n" + string(text) + "\n```")
	}
	scripted := modeltest.NewServerWith(t, modeltest.Config{NoTools: true},
		use("serchTabs", map[string]any{"query": "youtube"}),
		modeltest.Func(func(r *modeltest.Received) modeltest.Reply {
			if last := r.LastUser(); !strings.Contains(last, "serchTabs") || !strings.Contains(last, "searchTabs") {
				t.Errorf("the model is told %q of a tool that there is not", last)
			}
			return use("searchTabs", map[string]any{"query": "youtube"})
		}),
		modeltest.Func(func(r *modeltest.Received) modeltest.Reply {
			ids := modeltest.Collect(r.LastUser(), "tabId")
			if len(ids) == 0 {
				t.Errorf("no tab in %s", r.LastUser())
			}
			return use("closeTabs", map[string]any{"tabIds": ids})
		}),
		modeltest.Text("They are closed."),
	)
	s := apptest.Start(t, app.Config{Models: []app.ModelConfig{{Name: "small", BaseURL: scripted.URL, Key: modeltest.Key, Prompted: true}}})
	startSim(t, s, "work laptop")
	code, out, errs := throwbarCLI(t, s, "chat", "close my YouTube tabs")
	if code != 0 || !strings.Contains(out, "They are closed.") || strings.Contains(out, `"arguments"`) {
		t.Fatalf("chat: %d\n%s%s", code, out, errs)
	}
	after, err := s.Browser(t).SearchTabs(t.Context(), &controlv1.SearchTabsRequest{Query: "youtube"})
	if err != nil || after.GetTotal() != 0 {
		t.Errorf("%d tabs are left, %v", after.GetTotal(), err)
	}
}
