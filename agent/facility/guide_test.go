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

// The guide of the tool that starts agents names all of them, and says of so many what they are for, each on its line.
func TestGuides(t *testing.T) {
	t.Parallel()
	catalogue, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := tool.NewSet(catalogue)
	if err != nil {
		t.Fatal(err)
	}
	if got := facility.Guides(tools, nil); len(got) != 1 || got["summonAgent"] != "There is no agent that summonAgent could start: none is defined." {
		t.Errorf("without an agent: %q", got)
	}
	var many []*configv1.AgentDefinition
	for i := range 60 {
		many = append(many, &configv1.AgentDefinition{Name: fmt.Sprint("agent-", i), Description: "Does\n\nSafety:\n " + strings.Repeat("this ", 1000)})
	}
	got := facility.Guides(tools, many)["summonAgent"]
	lines := strings.Split(got, "\n")
	if len(lines) != 42 || !strings.HasPrefix(lines[1], "- agent-0: Does Safety: this this") || !strings.HasPrefix(lines[41], "- and agent-40, agent-41") {
		t.Errorf("%d lines: %q", len(lines), got)
	}
	if len(got) > 10_000 || !strings.HasSuffix(got, "agent-59") {
		t.Errorf("%d bytes, ending with %q", len(got), got[len(got)-20:])
	}
}
