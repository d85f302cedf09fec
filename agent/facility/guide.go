package facility

import (
	"fmt"
	"slices"
	"strings"

	"throwbar.dev/throwbar/agent/tool"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
)

const (
	maxExplained  = 40  // agents of which a model is told what they are for
	maxDescribing = 160 // characters of that
)

// Guides are what a model is told beside a tool, by its name: of the one that starts agents, which ones there are. What they
// are for is written by the owner of the server, in its configuration.
func Guides(tools *tool.Set, definitions []*configv1.AgentDefinition) map[string]string {
	summons := (&agentv1.SummonAgent{}).ProtoReflect().Descriptor().FullName()
	at := slices.IndexFunc(tools.Tools(), func(t *tool.Tool) bool { return t.Entry.In.FullName() == summons })
	if at < 0 {
		return nil
	}
	name := tools.Tools()[at].Name
	if len(definitions) == 0 {
		return map[string]string{name: fmt.Sprintf("There is no agent that %s could start: none is defined.", name)}
	}
	lines := []string{fmt.Sprintf("The agents that %s can start, and what each is for:", name)}
	var rest []string
	for i, d := range definitions {
		if i < maxExplained {
			lines = append(lines, "- "+d.GetName()+": "+cut(d.GetDescription(), maxDescribing))
		} else {
			rest = append(rest, d.GetName())
		}
	}
	if len(rest) > 0 {
		lines = append(lines, "- and "+strings.Join(rest, ", "))
	}
	return map[string]string{name: strings.Join(lines, "\n")}
}
