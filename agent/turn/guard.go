package turn

import (
	"fmt"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// How much of the same a turn bears.
const (
	sameCalls  = 2 // equal calls that run while nothing changes between them
	sameRefuse = 3 // calls refused for that, until the turn ends
	sameErrors = 4 // errors of one tool in a row, until the turn ends
)

// guard ends a turn that goes in circles.
type guard struct {
	same    map[string]int // equal calls since the last change, by key
	failing map[string]int // errors in a row, by tool
	refused int
	notice  *agentv1.Event // why the turn has to end; nil while it has not
}

func newGuard() *guard { return &guard{same: map[string]int{}, failing: map[string]int{}} }

// before says whether a call may run. Its key stands for tool, device and arguments.
func (g *guard) before(key string) bool {
	if g.same[key] < sameCalls {
		g.same[key]++
		return true
	}
	g.refused++
	if g.refused == sameRefuse {
		g.notice = notice("repeated_calls", "Stopped: the model made the same calls again and again, and nothing changed.")
	}
	return false
}

// after counts how a call ended. A change makes it worth while to look again.
func (g *guard) after(name, key string, ok, reads bool) {
	if ok {
		g.failing[name] = 0
		if !reads {
			own := g.same[key]
			clear(g.same)
			g.same[key] = own
		}
		return
	}
	g.failing[name]++
	if g.failing[name] == sameErrors {
		g.notice = notice("repeated_errors", fmt.Sprintf("Stopped: %s failed %d times in a row.", name, sameErrors))
	}
}
