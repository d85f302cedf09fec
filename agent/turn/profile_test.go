package turn_test

import (
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/turn"
	"throwbar.dev/throwbar/gen"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// A model in strict mode has to write every argument, and null for those that it leaves out: that is no mistake, even where
// nothing is mended.
func TestStrictModeWritesNullForWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	b := newBenchWith(t, gen.Descriptors, turn.Config{Strict: true},
		modeltest.Reply{Calls: []modeltest.Call{modeltest.NewCall("closeTabs", `{"tabIds":["lap_tb-1"],"force":null}`)}}, modeltest.Text("done"))
	b.choices[0].Profile = schema.ProfileStrict
	b.world.Tab("lap", "https://a.example", "A")
	j := b.chat("close it")
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
	if len(b.world.Commands()) != 1 || len(b.world.Tabs()) != 0 {
		t.Errorf("commands: %v", b.world.Commands())
	}
	for _, e := range j.events {
		if repairs := e.GetToolCall().GetRepairs(); len(repairs) > 0 {
			t.Errorf("repairs: %q", repairs)
		}
	}
	request := b.model.Requests()[0]
	for _, tool := range request.Tools {
		if !tool.Strict || !strings.Contains(string(tool.Parameters), `"additionalProperties":false`) {
			t.Errorf("%s is not strict: %s", tool.Name, tool.Parameters)
		}
	}
}
