package turn_test

import (
	"slices"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/tool/tooltest"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// T32 of the case table: with far more tools than a request carries the model looks for one, has it from the next step on,
// and keeps it in the next turn; one that it names without having looked for it is run all the same.
func TestToolsAreLoadedOnDemand(t *testing.T) {
	t.Parallel()
	b := newBenchWith(t, tooltest.Varied(t, 1000), turn.Config{},
		modeltest.Use("findTools", map[string]any{"query": "lock the rooms"}),
		modeltest.Func(func(r *modeltest.Received) modeltest.Reply {
			name := modeltest.Collect(r.LastResult(), "name")[0]
			if _, ok := r.Tool(name); !ok || !strings.HasPrefix(name, "lockRooms") {
				t.Errorf("%s was found and is not offered", name)
			}
			return modeltest.Use(name, map[string]any{"deviceId": "lap", "roomName": "attic"})
		}),
		modeltest.Reply{Unchecked: true, Calls: []modeltest.Call{modeltest.NewCall("printLetters1", map[string]any{"deviceId": "lap", "letterName": "a", "wrong": 1})}},
		modeltest.Text("locked"),
		modeltest.Func(func(r *modeltest.Received) modeltest.Reply {
			for _, name := range []string{"lockRooms86", "printLetters1", "searchTabs", "undo", "findTools"} {
				if _, ok := r.Tool(name); !ok {
					t.Errorf("in the next turn there is no %s", name)
				}
			}
			return modeltest.Text("still locked")
		}),
	)
	b.world.Stranger = func(*commandv1.Action) *commandv1.Result { return &commandv1.Result{} }
	j := b.chat("lock the rooms")
	results := j.results()
	if len(results) != 3 || j.end() != agentv1.TurnEnd_TURN_END_ANSWERED || len(b.world.Commands()) != 1 {
		t.Fatalf("%v, %d commands", results, len(b.world.Commands()))
	}
	if got := results[2].GetContent(); !strings.Contains(got, `"code":"invalid"`) || !strings.Contains(got, "/wrong") {
		t.Errorf("a tool that was not loaded: %s", got)
	}
	b.say(t.Context(), j, "and now?")
	for _, r := range b.model.Requests() {
		size := 0
		for _, offered := range r.Tools {
			size += len(offered.Name) + len(offered.Description) + len(offered.Parameters)
		}
		if len(r.Tools) > 30 || size/4 > tool.DefaultBudget || !slices.ContainsFunc(r.Tools, func(x modeltest.Tool) bool { return x.Name == "findTools" }) {
			t.Errorf("request %d has %d tools of %d bytes", r.Number, len(r.Tools), size)
		}
	}
}
