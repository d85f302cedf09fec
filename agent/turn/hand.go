package turn

import (
	"throwbar.dev/throwbar/agent/tool"
)

// hand is the tools that a model has in one step.
type hand struct {
	view   *tool.View
	loaded []string // on demand, the newest last
}

// deal gives the model the tools of a step. Those that it has loaded stay, also what a summary says of them.
func (s *session) deal(step Step) {
	s.hand = hand{view: s.config.Tools.View(step.Access), loaded: s.config.Tools.Loaded(s.history)}
}
