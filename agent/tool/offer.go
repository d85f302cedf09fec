package tool

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool/schema"
)

const (
	// MaxTools is how many tools one request may carry: providers refuse the whole request above it.
	MaxTools = 128
	// DefaultBudget is how many tokens the tools of one request may take where nobody says.
	DefaultBudget = 2500
	// wrapping is what a request writes around one tool, in bytes.
	wrapping = 70
	// maxIndex is how many bytes the list of what else there is may take, and maxInGroup how many tools of a group it names.
	maxIndex   = 600
	maxInGroup = 12
	// maxLoaded is how many tools are remembered as loaded.
	maxLoaded = 100
)

// offer is a tool as a model of one profile reads it.
type offer struct {
	tool   model.Tool
	tokens int // about
}

// offer prints the tool for a profile, once.
func (t *Tool) offer(profile schema.Profile) *offer {
	if o, ok := t.printed.Load(profile); ok {
		return o.(*offer) //nolint:forcetypeassert // nothing else is stored
	}
	strict := profile == schema.ProfileStrict && schema.Strictable(t.Schema)
	form := profile
	if profile == schema.ProfileStrict && !strict {
		form = schema.ProfilePortable
	}
	o := &offer{tool: model.Tool{Name: t.Name, Description: t.Description, Parameters: schema.Print(form, t.Schema), Strict: strict}}
	o.tokens = tokens(o.tool)
	kept, _ := t.printed.LoadOrStore(profile, o)
	return kept.(*offer) //nolint:forcetypeassert // nothing else is stored
}

// tokens is about how many tokens a tool takes in a request. Measured in o200k over all tools of the contract, in each
// profile: 4.3 bytes to a token is 0 to 2 % too much for a whole request, and at most 11 % too little for one tool.
func tokens(t model.Tool) int {
	return (10*(wrapping+len(t.Name)+len(t.Description)+len(t.Parameters)) + 42) / 43
}

// Offered are the tools that a request carries for a model of one profile: never more than MaxTools, nor more tokens than
// the budget (DefaultBudget if it is zero).
//
// If all tools fit, it is all of them but the one that finds others. If not, it is those that are always there, whatever
// the budget, then what was loaded, the newest first, and the one that finds others, whose description has the index.
// The newest loaded one is there even if it is too large. A call of a tool that is not among them works all the same.
//
// The index says in a few lines which groups of tools there are; it is empty if all tools are offered. It is for models
// that read no descriptions of tools.
func (v *View) Offered(profile schema.Profile, loaded []string, budget int) (tools []model.Tool, index string) {
	if budget <= 0 {
		budget = DefaultBudget
	}
	p := pick{profile: profile, left: budget, most: min(MaxTools, schema.LimitsOf(profile).Tools), chosen: map[*Tool]bool{}}
	if p.all(v.tools) {
		return p.print(v.tools, ""), ""
	}
	p.left, p.chosen = budget, map[*Tool]bool{}
	index = v.index()
	finder := false
	for _, t := range v.tools {
		if t.Finds() {
			finder = true
			p.left -= len(index) / 4
		}
		if t.always() && len(p.chosen) < p.most {
			p.take(t)
		}
	}
	newest := true
	for _, name := range slices.Backward(loaded) {
		if t, ok := v.Lookup(name); ok {
			if !p.chosen[t] {
				p.try(t, newest)
			}
			newest = false
		}
	}
	if !finder { // nobody could load the others
		for _, t := range v.tools {
			if !p.chosen[t] {
				p.try(t, false)
			}
		}
		index = ""
	}
	return p.print(v.tools, index), index
}

// pick chooses tools within limits.
type pick struct {
	profile schema.Profile
	left    int // tokens
	most    int // tools
	chosen  map[*Tool]bool
}

// all chooses all tools but the one that finds others, if they fit.
func (p *pick) all(tools []*Tool) bool {
	for _, t := range tools {
		if !t.Finds() {
			p.take(t)
		}
		if p.left < 0 || len(p.chosen) > p.most {
			return false
		}
	}
	return true
}

func (p *pick) take(t *Tool) {
	p.chosen[t] = true
	p.left -= t.offer(p.profile).tokens
}

// try chooses a tool if there is room for it, or else if it must be there.
func (p *pick) try(t *Tool, must bool) {
	if len(p.chosen) < p.most && (must || t.offer(p.profile).tokens <= p.left) {
		p.take(t)
	}
}

// print are the chosen tools in an order that does not change, so that providers can keep what they read before.
func (p *pick) print(tools []*Tool, index string) []model.Tool {
	var out []model.Tool
	for _, t := range tools {
		if !p.chosen[t] {
			continue
		}
		o := t.offer(p.profile).tool
		if index != "" && t.Finds() {
			o.Description += " " + index
		}
		out = append(out, o)
	}
	return out
}

// index says which groups of tools there are, and the names in those where it has room for them.
func (v *View) index() string {
	var families []string
	in := map[string][]string{}
	for _, t := range v.tools {
		if t.Finds() {
			continue
		}
		if in[t.Entry.Family] == nil {
			families = append(families, t.Entry.Family)
		}
		in[t.Entry.Family] = append(in[t.Entry.Family], t.Name)
	}
	slices.SortStableFunc(families, func(a, b string) int { return len(in[a]) - len(in[b]) })
	out := fmt.Sprintf("There are %d tools; those not listed here are found by words, or by a group's name. Groups:", len(v.tools))
	for i, family := range families {
		group := fmt.Sprintf(" %s (%d)", plain(family), len(in[family]))
		named := group + ": " + strings.Join(in[family], ", ")
		switch {
		case len(in[family]) <= maxInGroup && len(out)+len(named) < maxIndex:
			out += named + ";"
		case len(out)+len(group) < maxIndex:
			out += group + ";"
		default:
			return fmt.Sprintf("%s and %d more groups.", strings.TrimSuffix(out, ";"), len(families)-i)
		}
	}
	return strings.TrimSuffix(out, ";") + "."
}

// plain is the name of a group with nothing in it but what names are made of.
func plain(family string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-", r)) {
			return r
		}
		return '_'
	}, cut(family))
}

// Loaded are the tools that a history has loaded: those that a search found and those that were called, the newest last.
// Nothing of it has to be stored. Whoever replaces an earlier part of a history by a summary keeps the names of what it had
// loaded there, as the member loadedTools of a JSON object in a message of the user.
func (s *Set) Loaded(history []model.Message) []string {
	l := loading{searches: map[string]bool{}}
	// Within a text their quotes would be escaped. The patterns are seldom needed, and dear to make.
	found := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"name":"([a-zA-Z_][a-zA-Z0-9_-]{0,63})"`) })
	kept := sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`"loadedTools":\[("[a-zA-Z0-9_-]+"(?:,"[a-zA-Z0-9_-]+")*)\]`)
	})
	for i := range history {
		m := &history[i]
		switch m.Role {
		case model.RoleAssistant:
			for _, call := range m.Calls {
				if t, ok := s.byName[call.Name]; ok {
					l.add(t.Name)
					l.search(call.ID, t.Finds())
				}
			}
		case model.RoleTool:
			if !l.searches[m.CallID] {
				continue
			}
			for _, match := range slices.Backward(found().FindAllStringSubmatch(m.Text, -1)) { // the best is the newest
				l.add(match[1])
			}
		default:
			if !strings.Contains(m.Text, `"loadedTools":[`) {
				continue
			}
			for _, match := range kept().FindAllStringSubmatch(m.Text, -1) {
				for name := range strings.SplitSeq(match[1], ",") {
					l.add(strings.Trim(name, `"`))
				}
			}
		}
	}
	known := slices.DeleteFunc(l.names, func(name string) bool {
		t, ok := s.byName[name]
		return !ok || t.Finds()
	})
	return known[max(0, len(known)-maxLoaded):]
}

type loading struct {
	searches map[string]bool // ids of calls of the tool that finds others
	names    []string
}

// search notes whether the call with an id is one of the tool that finds others.
func (l *loading) search(id string, finds bool) {
	if finds {
		l.searches[id] = true
	} else if len(l.searches) > 0 {
		delete(l.searches, id)
	}
}

// add makes a tool the newest.
func (l *loading) add(name string) {
	if n := len(l.names); n > 0 && l.names[n-1] == name {
		return
	}
	l.names = append(slices.DeleteFunc(l.names, func(other string) bool { return other == name }), name)
}
