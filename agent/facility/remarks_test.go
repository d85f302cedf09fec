package facility_test

import (
	"fmt"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/facility"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
)

// A model that may start agents is told which there are with the tool, in as little room as every provider takes.
func TestAModelIsToldWhichAgentsThereAre(t *testing.T) {
	t.Parallel()
	c, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	described := func(definitions ...*configv1.AgentDefinition) string {
		tools, err := tool.NewSet(c, facility.Remarks(definitions)...)
		if err != nil {
			t.Fatal(err)
		}
		other, _ := tools.Lookup("retrieveAgent")
		if strings.Contains(other.Description, "Agents:") || strings.Contains(other.Description, "defined now") {
			t.Errorf("the remark is on %s too: %q", other.Name, other.Description)
		}
		summon, _ := tools.Lookup("summonAgent")
		return summon.Description
	}
	if got := described(); !strings.HasSuffix(got, " No agent is defined now.") {
		t.Errorf("none: %q", got)
	}
	if got := described(definitions()...); !strings.HasSuffix(got, " Agents: scout: Looks around; writer: Writes a text.") {
		t.Errorf("two: %q", got)
	}
	var many []*configv1.AgentDefinition
	for i := range 200 {
		many = append(many, &configv1.AgentDefinition{Name: fmt.Sprint("agent-", i), Description: strings.Repeat("does\u202e a lot ", 60)})
	}
	got := described(many...)
	if len(got) > 1000 || strings.Contains(got, "\u202e") || !strings.Contains(got, "agent-0: does") || !strings.Contains(got, " more.") || strings.Contains(got, "…[") {
		t.Errorf("many, %d bytes: %q", len(got), got)
	}
}
