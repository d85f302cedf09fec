package tool

import (
	"fmt"

	"throwbar.dev/throwbar/agent/tool/naming"
	"throwbar.dev/throwbar/agent/tool/result"
)

// View is what one agent has of all tools. It never changes; make another one where the access may have changed.
type View struct {
	set   *Set
	tools []*Tool // in the order of the set
	has   map[*Tool]bool
}

// View is what an agent with this access has.
func (s *Set) View(a Access) *View {
	v := &View{set: s, has: map[*Tool]bool{}}
	for _, t := range s.tools {
		if s.has(a, t) {
			v.tools = append(v.tools, t)
			v.has[t] = true
		}
	}
	return v
}

// Tools are those that it has: queries, commands, then facilities, each by name.
func (v *View) Tools() []*Tool { return v.tools }

// Lookup finds a tool that it has by its name or an accepted older one, whether the model was told of it or not. Where
// there is none, Absent says why.
func (v *View) Lookup(name string) (*Tool, bool) {
	t, ok := v.set.byName[name]
	if !ok || !v.has[t] {
		return nil, false
	}
	return t, true
}

// Has says whether it has a tool of the set.
func (v *View) Has(t *Tool) bool { return v.has[t] }

// Nearest is the tool of its own that an unknown name was most likely meant to be, or empty.
func (v *View) Nearest(name string) string { return naming.Nearest(name, names(v.tools)) }

// notHad tells the model what not to make of a tool that it does not have.
const notHad = "nothing was done. Do not try it again, nor the same by another way. If the user needs it, say that this conversation " +
	"does not have the tool and that its owner can grant it"

// Absent is the answer of a call that Lookup finds no tool for: there is no such tool, or this conversation does not have it.
func (v *View) Absent(called string) Answer {
	if t, ok := v.set.byName[called]; ok {
		a := Fail("not_granted", fmt.Sprintf("this conversation does not have %s", t.Name))
		a.Denied = true
		a.say(notHad)
		return a
	}
	text := fmt.Sprintf("there is no tool %q", cut(called))
	if nearest := v.Nearest(called); nearest != "" {
		text += "; did you mean " + nearest + "?"
	}
	return Fail("unknown_tool", text)
}

// cut bounds a name that somebody made up.
func cut(name string) string { return result.Cut(name, 100) }

// Finds says whether the tool is the one that finds others. The turn answers its calls by Search: no Facilities know it.
func (t *Tool) Finds() bool { return t.finds }
