package tooltest

import (
	"encoding/json"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
)

// Documents makes random JSON that a printed schema accepts.
type Documents struct {
	*rand.Rand
	root map[string]any
}

// NewDocuments makes documents of a schema.
func NewDocuments(random *rand.Rand, root map[string]any) *Documents { return &Documents{random, root} }

// Next is another document.
func (d *Documents) Next() string {
	raw, err := json.Marshal(d.value(d.root, 0))
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func (d *Documents) value(s map[string]any, depth int) any {
	s = resolve(d.root, s)
	if union, ok := s["anyOf"].([]any); ok {
		if depth > 3 || d.IntN(3) > 0 { // null, where it is one of them, ends what goes on without end
			return d.value(union[len(union)-1].(map[string]any), depth)
		}
		return d.value(union[d.IntN(len(union))].(map[string]any), depth)
	}
	kind, ok := s["type"].(string)
	if list, several := s["type"].([]any); several {
		if kind, ok = list[0].(string), true; d.IntN(8) > 0 || depth > 3 {
			return nil
		}
	}
	if enum, ok := s["enum"].([]any); ok {
		return enum[d.IntN(len(enum))]
	}
	if !ok {
		return []any{nil, "text", 1.5, true, map[string]any{"a": 1}, []any{"b"}}[d.IntN(6)]
	}
	switch kind {
	case "null":
		return nil
	case "object":
		return d.object(s, depth)
	case "array":
		list := []any{}
		for range d.size(s, "minItems", "maxItems", depth) {
			list = append(list, d.value(s["items"].(map[string]any), depth+1))
		}
		return list
	case "string":
		return d.text(s)
	case "boolean":
		return d.IntN(2) == 0
	case "integer":
		return d.number(s, true)
	default:
		return d.number(s, false)
	}
}

// object sets what is required and one or two more.
func (d *Documents) object(s map[string]any, depth int) any {
	out := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		must := slices.Contains(required, any(name))
		if must || depth < 4 && d.IntN(len(names)) < 2 {
			out[name] = d.value(properties[name].(map[string]any), depth+1)
		}
	}
	if values, ok := s["additionalProperties"].(map[string]any); ok {
		for range d.IntN(3) {
			out[[]string{"1", "true", "27", "word"}[d.IntN(4)]] = d.value(values, depth+1)
		}
	}
	return out
}

func (d *Documents) size(s map[string]any, least, most string, depth int) int {
	low, _ := s[least].(float64)
	high, ok := s[most].(float64)
	if !ok || high > low+3 {
		high = low + 3
	}
	if depth > 3 {
		high = low
	}
	return int(low) + d.IntN(int(high-low)+1)
}

func (d *Documents) number(s map[string]any, whole bool) any {
	low, high := -1e9, 1e9
	for keyword, bound := range map[string]*float64{"minimum": &low, "exclusiveMinimum": &low, "maximum": &high, "exclusiveMaximum": &high} {
		if n, ok := s[keyword].(float64); ok {
			*bound = n
		}
	}
	if low == -1e9 && high < 0 {
		low = high - 1e6
	}
	n := low + d.Float64()*(high-low)
	if d.IntN(2) == 0 && low < 100 && high > 0 {
		n = max(low, 0) + d.Float64()*(min(high, 100)-max(low, 0))
	}
	if whole {
		return int64(n)
	}
	return n
}

func (d *Documents) text(s map[string]any) string {
	if pattern, ok := s["pattern"].(string); ok {
		re, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			return err.Error()
		}
		return d.matching(re)
	}
	n := d.size(s, "minLength", "maxLength", 0)
	var out strings.Builder
	for range n {
		out.WriteRune([]rune("ab7A=é")[d.IntN(6)])
	}
	return out.String()
}

// matching is a text that a regular expression matches.
func (d *Documents) matching(re *syntax.Regexp) string {
	var out strings.Builder
	repeat := func(least, most int) {
		for range least + d.IntN(most-least+1) {
			out.WriteString(d.matching(re.Sub[0]))
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		at := d.IntN(len(re.Rune)/2) * 2
		low, high := re.Rune[at], min(re.Rune[at+1], re.Rune[at]+50)
		return string(low + d.Int32N(high-low+1))
	case syntax.OpStar:
		repeat(0, 4)
	case syntax.OpPlus:
		repeat(1, 9)
	case syntax.OpQuest:
		repeat(0, 1)
	case syntax.OpRepeat:
		repeat(re.Min, max(re.Min, min(re.Max, re.Min+4)))
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			out.WriteString(d.matching(sub))
		}
	case syntax.OpAlternate:
		return d.matching(re.Sub[d.IntN(len(re.Sub))])
	case syntax.OpCapture:
		return d.matching(re.Sub[0])
	default:
	}
	return out.String()
}

// resolve follows a reference.
func resolve(root, s map[string]any) map[string]any {
	ref, ok := s["$ref"].(string)
	if !ok {
		return s
	}
	if ref == "#" {
		return root
	}
	definitions, _ := root["$defs"].(map[string]any)
	next, _ := definitions[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	return next
}

// Said says whether the words of a schema tell of a problem at a place: the description of the place, or the sentences of
// the message around it where the problem is about a key or a choice between fields. Three things are not told: the range
// of a number's type, that a text is not empty, and pages, which the prompt tells of once.
func Said(root map[string]any, notes []string, pointer, problem string) bool {
	for _, untold := range []string{"expected a whole number from", "is required"} {
		if strings.Contains(problem, untold) {
			return true
		}
	}
	if strings.HasSuffix(pointer, "/pageSize") || strings.HasSuffix(pointer, "/pageToken") {
		return true
	}
	at, words, around := root, strings.Join(notes, " "), ""
	for _, name := range strings.Split(pointer, "/")[1:] {
		next := step(root, at, name)
		if next == nil {
			return strings.Contains(words, "The form of") // it is left open
		}
		around, at = words, next
		inner := alternative(root, at)
		words = described(at) + described(inner)
		if at["properties"] == nil && inner["$defs"] != nil {
			words += strings.Join(notes, " ") // the whole again, whose sentences are the tool's
		}
		if strings.Contains(around, "key") || strings.Contains(around, "Keys") {
			words += around // of a map
		}
	}
	choice := strings.Contains(problem, "set only one") || strings.Contains(problem, "one of")
	return words != "" || around != "" && choice
}

func described(s map[string]any) string {
	text, _ := s["description"].(string)
	return text
}

// alternative is what a schema refers to, or the first of what it lets be.
func alternative(root, s map[string]any) map[string]any {
	if union, ok := s["anyOf"].([]any); ok {
		s = union[0].(map[string]any)
	}
	return resolve(root, s)
}

// step is the schema of a member or item.
func step(root, s map[string]any, name string) map[string]any {
	s = alternative(root, s)
	if properties, ok := s["properties"].(map[string]any); ok {
		if next, ok := properties[name].(map[string]any); ok {
			return next
		}
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if next, ok := s[keyword].(map[string]any); ok {
			return next
		}
	}
	return nil
}
