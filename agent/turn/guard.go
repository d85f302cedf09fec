package turn

import (
	"fmt"
	"maps"
	"slices"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// How much of the same a turn bears.
const (
	sameCalls  = 2 // equal calls that run while nothing changes between them
	sameRefuse = 3 // calls refused for that, until the turn ends
	sameErrors = 4 // answers of the model in a row in which a tool only failed, until the turn ends
	allErrors  = 6 // answers of the model in a row of whose calls none worked, until the turn ends
)

// guard ends a turn that goes in circles.
type guard struct {
	same    map[string]int  // equal calls since the last change, by key
	failing map[string]int  // answers in a row in which a tool only failed, by tool
	round   map[string]bool // the tools of this answer, and whether one of their calls worked
	barren  int             // answers in a row of whose calls none worked
	refused int
	notice  *agentv1.Event // why the turn has to end; nil while it has not
}

func newGuard() *guard {
	return &guard{same: map[string]int{}, failing: map[string]int{}, round: map[string]bool{}}
}

// before says whether a call may run. Its key stands for tool, device and arguments.
func (g *guard) before(key string) bool {
	if g.same[key] < sameCalls {
		g.same[key]++
		return true
	}
	g.refused++
	if g.refused == sameRefuse {
		g.notice = limit("repeated_calls", "Stopped: the model made the same calls again and again, and nothing changed.")
	}
	return false
}

// after counts how a call ended. A change makes it worth while to look again.
func (g *guard) after(name, key string, ok, reads bool) {
	g.round[name] = g.round[name] || ok
	if ok && !reads {
		own := g.same[key]
		clear(g.same)
		g.same[key] = own
	}
}

// heard says that somebody has said something, which may be why the same is worth another try.
func (g *guard) heard() { clear(g.same) }

// rest counts the errors of the calls of one answer, when all of them have ended. The model has seen those of the answers
// before and could have done something else; those of this one it has not.
func (g *guard) rest() {
	worked := len(g.round) == 0
	for _, name := range slices.Sorted(maps.Keys(g.round)) {
		if g.round[name] {
			worked, g.failing[name] = true, 0
			continue
		}
		if g.failing[name]++; g.failing[name] == sameErrors && g.notice == nil {
			g.notice = limit("repeated_errors", fmt.Sprintf("Stopped: %s failed %d times in a row.", name, sameErrors))
		}
	}
	clear(g.round)
	if worked {
		g.barren = 0
	} else if g.barren++; g.barren == allErrors && g.notice == nil {
		g.notice = limit("repeated_errors", fmt.Sprintf("Stopped: nothing worked %d times in a row.", allErrors))
	}
}
