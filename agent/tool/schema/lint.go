package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// Lint says what a provider behind a profile may refuse in a schema, a line each. One bad schema makes some providers
// refuse the whole request. For ProfileStrict it is about tools that are sent with strict mode on.
func Lint(profile Profile, raw []byte) []string {
	limits := LimitsOf(profile)
	l := &linter{limits: limits, key: regexp.MustCompile(limits.Key), used: map[string]bool{}}
	if twice := repeated(raw); twice != "" {
		return []string{twice}
	}
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return []string{"not JSON: " + err.Error()}
	}
	o, ok := root.(map[string]any)
	if !ok || o["type"] != "object" {
		return []string{"the root is no object"}
	}
	if _, ok := o["properties"].(map[string]any); !ok {
		l.fault("", "the root has no properties")
	}
	l.root = o
	l.schema("", o, 1)
	l.unused()
	l.sizes()
	sort.Strings(l.faults)
	return l.faults
}

// Named is a tool of a request: its name and what Print made.
type Named struct {
	Name       string
	Parameters []byte
}

// LintRequest says what a provider may refuse in the tools of one request, a line each.
func LintRequest(profile Profile, tools []Named) []string {
	var faults []string
	limits := LimitsOf(profile)
	if len(tools) > limits.Tools {
		faults = append(faults, fmt.Sprintf("%d tools; a request carries at most %d", len(tools), limits.Tools))
	}
	legal, seen := regexp.MustCompile(limits.Name), map[string]bool{}
	for _, t := range tools {
		if !legal.MatchString(t.Name) {
			faults = append(faults, fmt.Sprintf("the name %q does not match %s", t.Name, limits.Name))
		}
		if seen[t.Name] {
			faults = append(faults, fmt.Sprintf("two tools have the name %q", t.Name))
		}
		seen[t.Name] = true
		for _, fault := range Lint(profile, t.Parameters) {
			faults = append(faults, t.Name+fault)
		}
	}
	return faults
}

type linter struct {
	limits                   Limits
	key                      *regexp.Regexp
	root                     map[string]any
	used                     map[string]bool // definitions that something refers to
	properties, enums, names int
	faults                   []string
}

func (l *linter) fault(at, format string, args ...any) {
	l.faults = append(l.faults, at+": "+fmt.Sprintf(format, args...))
}

func (l *linter) schema(at string, o map[string]any, depth int) {
	if depth > l.limits.Nesting && (is(o, "object") || is(o, "array")) {
		l.fault(at, "deeper than %d levels", l.limits.Nesting)
		return
	}
	for keyword := range o {
		if !slices.Contains(l.limits.Keywords, keyword) {
			l.fault(at, "the keyword %s", keyword)
		}
	}
	if ref, ok := o["$ref"]; ok {
		l.reference(at, ref, len(o))
		return
	}
	_, union := o["anyOf"]
	switch kind := o["type"].(type) {
	case string:
	case []any:
		if !l.limits.Required || len(kind) != 2 || kind[1] != "null" {
			l.fault(at, "a type that is not one word")
		}
	case nil:
		if (l.limits.Typed || l.limits.Required) && !union {
			l.fault(at, "no type")
		}
	default:
		l.fault(at, "a type that is no word")
	}
	if union && (at == "" || l.limits.Typed && len(o) > 1) {
		l.fault(at, "anyOf at the root, or with keywords beside it")
	}
	l.values(at, o)
	l.children(at, o, depth)
}

// is says whether a type is, or may be, a kind.
func is(o map[string]any, kind string) bool {
	if list, ok := o["type"].([]any); ok {
		return slices.Contains(list, any(kind))
	}
	return o["type"] == kind
}

// values checks the keywords about a value itself.
func (l *linter) values(at string, o map[string]any) {
	if enum, ok := o["enum"].([]any); ok {
		l.enum(at, enum, o)
	}
	for _, keyword := range []string{"minLength", "maxLength"} {
		if n, ok := o[keyword].(float64); ok && uint64(n) > l.limits.Length {
			l.fault(at, "%s is %v; at most %d is taken", keyword, n, l.limits.Length)
		}
	}
	pattern, ok := o["pattern"].(string)
	if !ok {
		return
	}
	if l.limits.Anchored && !anchored(pattern) {
		l.fault(at, "the pattern %s is not anchored, or has a group", pattern)
	}
	// Escapes of classes are read differently or not at all: a backslash stands only before what it makes literal.
	for i := 0; i+1 < len(pattern); i++ {
		if pattern[i] != '\\' {
			continue
		}
		if i++; strings.IndexByte(`dDwWsSbB`, pattern[i]) >= 0 {
			l.fault(at, `the pattern %s has \%c`, pattern, pattern[i])
		}
	}
}

func (l *linter) enum(at string, enum []any, o map[string]any) {
	size := 0
	for _, value := range enum {
		text, isText := value.(string)
		size += len(text)
		if !isText && l.limits.TextEnums {
			l.fault(at, "an enum of something else than text")
		}
	}
	l.enums += len(enum)
	l.names += size
	switch {
	case len(enum) == 0:
		l.fault(at, "an empty enum")
	case len(enum) > l.limits.LongEnum && size > l.limits.LongEnumText:
		l.fault(at, "an enum of %d values with %d characters; from %d values on %d are taken", len(enum), size, l.limits.LongEnum, l.limits.LongEnumText)
	case is(o, "null") != slices.Contains(enum, nil):
		l.fault(at, "null is in the type or in the enum, not in both")
	}
}

func (l *linter) children(at string, o map[string]any, depth int) {
	properties, _ := o["properties"].(map[string]any)
	for name, child := range properties {
		l.properties++
		l.names += len(name)
		if at == "" && !l.key.MatchString(name) {
			l.fault(at+"/"+name, "a key that not every provider takes")
		}
		l.child(at+"/"+name, child, depth+1)
	}
	required, _ := o["required"].([]any)
	for _, name := range required {
		if text, ok := name.(string); !ok || properties[text] == nil {
			l.fault(at, "%v is required and not there", name)
		}
	}
	if is(o, "object") && l.limits.Required && len(required) != len(properties) {
		l.fault(at, "not every property is required")
	}
	if is(o, "object") && l.limits.Closed && o["additionalProperties"] != false {
		l.fault(at, "the object is not closed")
	}
	if _, ok := o["items"].(map[string]any); is(o, "array") && !ok {
		l.fault(at, "a list without items")
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if next, ok := o[keyword]; ok && next != false {
			l.child(at+"/*", next, depth+1)
		}
	}
	union, _ := o["anyOf"].([]any)
	for _, next := range union {
		l.child(at, next, depth)
	}
	definitions, _ := o["$defs"].(map[string]any)
	for name, next := range definitions {
		l.names += len(name)
		l.child("/$defs/"+name, next, 2)
	}
}

func (l *linter) child(at string, child any, depth int) {
	if next, ok := child.(map[string]any); ok {
		l.schema(at, next, depth)
		return
	}
	l.fault(at, "no schema, but %v", child)
}

func (l *linter) reference(at string, ref any, keywords int) {
	text, _ := ref.(string)
	if keywords > 1 {
		l.fault(at, "keywords beside $ref")
	}
	definitions, _ := l.root["$defs"].(map[string]any)
	name, local := strings.CutPrefix(text, "#/$defs/")
	if text != "#" && (!local || definitions[name] == nil) {
		l.fault(at, "$ref to %s, which is not there", text)
	}
	l.used[name] = true
}

func (l *linter) unused() {
	definitions, _ := l.root["$defs"].(map[string]any)
	for name := range definitions {
		if !l.used[name] {
			l.fault("/$defs/"+name, "nothing refers to it")
		}
	}
}

func (l *linter) sizes() {
	for _, size := range []struct {
		what     string
		is, most int
	}{
		{"properties", l.properties, l.limits.Properties},
		{"values of enums", l.enums, l.limits.Enums},
		{"characters of names and enums", l.names, l.limits.Names},
	} {
		if size.is > size.most {
			l.fault("", "%d %s; at most %d are taken", size.is, size.what, size.most)
		}
	}
}

// repeated finds a key that an object has twice, which readers take differently. It is empty if there is none.
func repeated(raw []byte) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	type level struct {
		keys  map[string]bool // nil in a list
		value bool            // a value comes next, not a key
	}
	var open []level
	for {
		token, err := d.Token()
		if err != nil {
			if err == io.EOF {
				return ""
			}
			return "not JSON: " + err.Error()
		}
		if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
			open = open[:len(open)-1]
			continue
		}
		if n := len(open); n > 0 && open[n-1].keys != nil {
			top := &open[n-1]
			if !top.value {
				name, _ := token.(string)
				if top.keys[name] {
					return "the key " + name + " occurs twice in one object"
				}
				top.keys[name], top.value = true, true
				continue
			}
			top.value = false
		}
		switch token {
		case json.Delim('{'):
			open = append(open, level{keys: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		}
	}
}
