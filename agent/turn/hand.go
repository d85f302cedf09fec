package turn

import (
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/tool/schema"
)

// hand is the tools that a model has in one step.
type hand struct {
	view   *tool.View
	loaded []string // on demand, the newest last
	budget int
}

// deal gives the model the tools of a step.
func (s *session) deal(step Step) {
	s.hand = hand{view: s.config.Tools.View(step.Access), loaded: s.config.Tools.Loaded(s.history), budget: s.config.ToolTokens}
}

// offered are the tools that a request carries, and in a few lines which others there are.
func (h hand) offered(profile schema.Profile) ([]model.Tool, string) {
	return h.view.Offered(profile, h.loaded, h.budget)
}
