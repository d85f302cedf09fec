package turn

import (
	"context"
	"slices"

	"throwbar.dev/throwbar/agent/tool"
)

// hand is the tools that a model has in one step.
type hand struct {
	access tool.Access
	view   *tool.View // by access
	loaded []string   // on demand, the newest last
}

// deal gives the model the tools of a step. Those that it has loaded stay, also what a summary says of them.
func (s *session) deal(step Step) {
	s.hand = hand{access: step.Access, view: s.config.Tools.View(step.Access), loaded: s.config.Tools.Loaded(s.history)}
}

// recheck refuses calls of tools that were taken from the agent after the model was told of them: it may have answered for
// long, and a call before these may have waited for a person for days. When ctx has ended they are not run anyway.
func (s *session) recheck(ctx context.Context, calls []*call) error {
	if ctx.Err() != nil {
		return nil
	}
	access, err := s.task.Journal.Access(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	case !sameAccess(access, s.hand.access):
		s.hand.access, s.hand.view = access, s.config.Tools.View(access)
	}
	for _, c := range calls {
		if c.failure == nil && !s.hand.view.Has(c.tool) {
			gone := s.hand.view.Absent(c.name)
			c.failure, c.begun = &gone, c.again && c.tool.Entry.Facility != nil && !c.tool.Reads()
		}
	}
	return nil
}

func sameAccess(a, b tool.Access) bool {
	return slices.Equal(a.Only, b.Only) && slices.Equal(a.Extra, b.Extra) && slices.Equal(a.Denied, b.Denied)
}
