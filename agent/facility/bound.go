package facility

import (
	"throwbar.dev/throwbar/agent/tool"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
)

// bounded is what an agent that another one starts may do.
type bounded struct {
	settings *agentv1.ConversationSettings
	// without are the tools of its definition that it does not have, because whoever starts it has not got them.
	without []string
}

// bound gives an agent of a definition the rights that both the definition and its parent have now: what the parent was
// given once and those above it have lost since is not passed on. They are bounded once more at each step of a child, whose
// parent's may become less.
func bound(tools *tool.Set, parent tool.Access, d *configv1.AgentDefinition) bounded {
	own := tools.Listed(d.GetTools())
	within := tools.Within(own, parent)
	has := tools.View(within)
	out := bounded{settings: &agentv1.ConversationSettings{
		Prompt: d.GetPrompt(),
		Model:  &agentv1.ModelChoice{Models: d.GetModels(), Effort: d.GetEffort()},
		Grants: &agentv1.Grants{Only: within.Only, Extra: within.Extra, Denied: within.Denied},
	}}
	for _, t := range tools.View(own).Tools() {
		if !has.Has(t) {
			out.without = append(out.without, t.Name)
		}
	}
	return out
}
