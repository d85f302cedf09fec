package turn

import (
	"fmt"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/tool/result"
	"throwbar.dev/throwbar/agent/tool/schema"
)

// hand is the tools that a model has in one step.
type hand struct {
	set   *tool.Set
	index string // which tools there are beside those that are offered
}

// deal gives the model the tools of a step.
func (s *session) deal(Step) { s.hand = hand{set: s.config.Tools} }

func (h hand) offered(schema.Profile) []model.Tool { return h.set.Portable() }

func (h hand) lookup(name string) (*tool.Tool, bool) { return h.set.Lookup(name) }

func (h hand) absent(name string) tool.Answer {
	text := fmt.Sprintf("there is no tool %q", result.Cut(name, 100))
	if nearest := h.set.Nearest(name); nearest != "" {
		text += "; did you mean " + nearest + "?"
	}
	return tool.Fail("unknown_tool", text)
}
