package tool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/agent/tool/result"
	"throwbar.dev/throwbar/agent/tool/schema"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

const (
	// maxFound is how many tools one search finds.
	maxFound = 12
	// maxSummary is how many bytes are told of what a tool does.
	maxSummary = 160
	// groupPrefix marks a row that is a group and no tool.
	groupPrefix = "group:"
)

// What a word counts by where it stands.
const (
	inName    = 8
	inAlias   = 6
	inFamily  = 5
	inSummary = 3
	inField   = 2
	inText    = 1
	wholeName = 100
)

// Search answers a call of the tool that finds others.
func (v *View) Search(c Call) Answer {
	query := ""
	if c.Message != nil {
		if fd := c.Message.ProtoReflect().Descriptor().Fields().ByName("query"); fd != nil && fd.Kind() == protoreflect.StringKind {
			query = c.Message.ProtoReflect().Get(fd).String()
		}
	}
	return answered(v.Find(query))
}

// Find looks for tools that the agent has by words in their names, older names, groups, descriptions and arguments, the
// best first. Without words it lists all tools if they are few, or else the groups; a group's name finds its tools.
func (v *View) Find(query string) proto.Message {
	words := split(query)
	if len(words) == 0 {
		return v.overview()
	}
	type hit struct {
		tool  *Tool
		score int
	}
	var hits []hit
	for _, t := range v.tools {
		if score := t.score(words, strings.TrimSpace(query)); score > 0 && !t.Finds() {
			hits = append(hits, hit{t, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	out := &agentv1.FindTools_Result{}
	for _, h := range hits[:min(len(hits), maxFound)] {
		out.Tools = append(out.Tools, &agentv1.FoundTool{Name: h.tool.Name, Summary: h.tool.summary()})
	}
	return out
}

func (v *View) overview() *agentv1.FindTools_Result {
	out := &agentv1.FindTools_Result{}
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
		if len(out.Tools) <= maxFound {
			out.Tools = append(out.Tools, &agentv1.FoundTool{Name: t.Name, Summary: t.summary()})
		}
	}
	if len(out.Tools) <= maxFound {
		return out
	}
	out.Tools = nil
	for _, family := range families[:min(len(families), 5*maxFound)] {
		list := in[family]
		shown := strings.Join(list[:min(len(list), 2*maxInGroup)], ", ")
		if len(list) > 2*maxInGroup {
			shown += ", …"
		}
		out.Tools = append(out.Tools, &agentv1.FoundTool{
			Name: groupPrefix + plain(family), Summary: fmt.Sprintf("%d tools: %s", len(list), shown),
		})
	}
	return out
}

// summary is what the tool does, in one line.
func (t *Tool) summary() string {
	line, _, _ := strings.Cut(t.Entry.Summary, "\n")
	if at := strings.Index(line, ". "); at >= 0 {
		line = line[:at+1]
	}
	return result.Cut(line, maxSummary)
}

// score says how well the tool answers a search; zero if not at all. A word that nothing has counts for nothing, so
// that a whole sentence finds tools too.
func (t *Tool) score(words []string, query string) int {
	t.index.Do(t.makeIndex)
	score := 0
	for _, word := range words {
		score += t.words[word]
	}
	if score > 0 || strings.EqualFold(query, t.Name) {
		for _, name := range append([]string{t.Name, groupPrefix + t.Entry.Family}, t.Entry.Aliases...) {
			if strings.EqualFold(query, name) {
				score += wholeName
			}
		}
	}
	return score
}

func (t *Tool) makeIndex() {
	t.words = map[string]int{}
	note := func(text string, worth int) {
		for _, word := range split(text) {
			t.words[word] = max(t.words[word], worth)
		}
	}
	note(t.Name, inName)
	for _, alias := range t.Entry.Aliases {
		note(alias, inAlias)
	}
	note(t.Entry.Family, inFamily)
	note(t.Entry.Summary, inSummary)
	seen := map[*schema.Object]bool{}
	var visit func(o *schema.Object)
	visit = func(o *schema.Object) {
		if o == nil || seen[o] {
			return
		}
		seen[o] = true
		for _, p := range o.Properties {
			note(p.Name, inField)
			for n := p.Node; n != nil; n = n.Item {
				if !n.Paging {
					note(n.Text, inText)
				}
				visit(n.Object)
			}
		}
	}
	visit(t.Schema)
}

// split makes words of a text: in lower case, each once, camelCase taken apart, endings cut off, without those that say
// nothing.
func split(text string) []string {
	var out []string
	var word []rune
	end := func() {
		if w := stem(string(word)); w != "" && !slices.Contains(out, w) {
			out = append(out, w)
		}
		word = word[:0]
	}
	small := false
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) || unicode.IsUpper(r) && small {
			end()
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			word = append(word, unicode.ToLower(r))
		}
		small = unicode.IsLower(r)
	}
	end()
	return out
}

// stem cuts the endings of a word, so that closing, closed and closes find close. Empty for a word that says nothing.
func stem(word string) string {
	switch word {
	case "a", "an", "the", "of", "or", "and", "to", "in", "on", "it", "is", "be", "all", "if", "left", "out", "with", "by", "for":
		return ""
	}
	for _, ending := range []string{"ing", "ed", "es", "s", "e"} {
		if short, ok := strings.CutSuffix(word, ending); ok && len(short) >= 3 {
			return short
		}
	}
	return word
}
