package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"throwbar.dev/throwbar/agent/tool/naming"
)

// Access says which tools a conversation's agent has. What policy forbids stays forbidden whatever it says.
type Access struct {
	Only   []string // names or groups; every command and query if empty
	Extra  []string // names of tools that are off unless they are named here
	Denied []string // names or groups that it does not have, whatever else is said
}

// Groups beside the families, which are called like the file of the contract that declares their tools, for example tabs.
// In Only and Extra no group covers a facility that has to be granted; in Denied a group covers everything in it.
const (
	GroupAll  = "all"
	GroupRead = "read" // changes nothing
	GroupAct  = "act"  // changes something
	GroupNone = "none" // nothing; for an agent that has no command and no query
)

// names says whether a name or group covers a tool.
func (s *Set) covers(words []string, t *Tool) bool {
	for _, word := range words {
		switch word {
		case GroupAll, t.Name, t.Entry.Family:
			return true
		case GroupRead, GroupAct:
			if t.Reads() == (word == GroupRead) {
				return true
			}
		case GroupNone:
		default:
			if s.byName[word] == t {
				return true
			}
		}
	}
	return false
}

// has says whether an agent with this access has a tool.
func (s *Set) has(a Access, t *Tool) bool {
	switch {
	case s.covers(a.Denied, t):
		return false
	case t.granted():
		if !s.named(a.Extra, t) {
			return false
		}
		for _, name := range t.Entry.Facility.GetWith() {
			if other := s.byName[name]; !s.named(a.Extra, other) || s.covers(a.Denied, other) {
				return false
			}
		}
		return true
	case len(a.Only) == 0:
		return true
	case t.Entry.Facility != nil && t.Reads():
		return true // to find one's tools is no right
	default:
		return s.covers(a.Only, t)
	}
}

func (s *Set) named(list []string, t *Tool) bool {
	return slices.ContainsFunc(list, func(name string) bool { return s.byName[name] == t })
}

// Check says what is wrong with an access that somebody sets: names and groups that do not exist, with the nearest one;
// a tool in the wrong list; one that is granted without what belongs to it.
func (s *Set) Check(a Access) error {
	var wrong []string
	for _, word := range slices.Concat(a.Only, a.Denied) {
		if !s.known(word) {
			wrong = append(wrong, s.unknown(word, slices.Concat(names(s.tools), s.groups)))
		}
	}
	for _, word := range a.Only {
		if t := s.byName[word]; t != nil && t.granted() {
			wrong = append(wrong, fmt.Sprintf("%s has to be granted by its name as an extra: take it out of the list of tools", t.Name))
		}
	}
	for _, word := range a.Extra {
		wrong = append(wrong, s.wrongExtra(a, word)...)
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

func (s *Set) wrongExtra(a Access, word string) []string {
	t := s.byName[word]
	switch {
	case t == nil && slices.Contains(s.groups, word):
		return []string{fmt.Sprintf("%q is a group, and what has to be granted is granted by its name", cut(word))}
	case t == nil:
		var can []string
		for _, t := range s.tools {
			if t.granted() {
				can = append(can, t.Name)
			}
		}
		return []string{s.unknown(word, can)}
	case !t.granted():
		return []string{fmt.Sprintf("%s needs no extra grant: name it in the list of tools, or leave that empty for all", t.Name)}
	}
	var wrong []string
	for _, name := range t.Entry.Facility.GetWith() {
		if other := s.byName[name]; !s.named(a.Extra, other) || s.covers(a.Denied, other) {
			wrong = append(wrong, fmt.Sprintf("%s makes no sense without %s: grant both", t.Name, other.Name))
		}
	}
	return wrong
}

func (s *Set) known(word string) bool {
	return s.byName[word] != nil || slices.Contains(s.groups, word)
}

func (s *Set) unknown(word string, among []string) string {
	text := fmt.Sprintf("there is no tool or group %q", cut(word))
	if nearest := naming.Nearest(word, among); nearest != "" {
		return text + ": did you mean " + nearest + "?"
	}
	return text
}

// Listed is the access that one list of names and groups gives, as the definition of an agent has it: nothing but what
// is in it. A tool that has to be granted is granted where it is named.
func (s *Set) Listed(list []string) Access {
	var a Access
	for _, word := range list {
		if t := s.byName[word]; t != nil && t.granted() {
			a.Extra = append(a.Extra, t.Name)
		} else {
			a.Only = append(a.Only, word)
		}
	}
	if len(a.Only) == 0 {
		a.Only = []string{GroupNone}
	}
	return a
}

// Within is the access of a child: what it would have by its own and its parent has too. It has nothing that the parent
// lacks, also after commands were added or removed. The parent's may change: ask again for each step.
func (s *Set) Within(child, parent Access) Access {
	a := Access{Denied: union(child.Denied, parent.Denied)}
	for _, t := range s.tools {
		if t.granted() && s.named(child.Extra, t) && s.named(parent.Extra, t) {
			a.Extra = append(a.Extra, t.Name)
		}
	}
	switch {
	case len(parent.Only) == 0:
		a.Only = slices.Clone(child.Only)
		return a
	case len(child.Only) == 0:
		a.Only = slices.Clone(parent.Only)
		return a
	}
	for _, t := range s.tools {
		if !t.granted() && s.covers(child.Only, t) && s.covers(parent.Only, t) {
			a.Only = append(a.Only, t.Name)
		}
	}
	if len(a.Only) == 0 {
		a.Only = []string{GroupNone}
	}
	return a
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, word := range b {
		if !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}
