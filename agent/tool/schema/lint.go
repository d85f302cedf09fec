package schema

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
)

// Limits of strict providers on the schema of one tool.
const (
	maxNesting    = 10
	maxProperties = 5000
	keyPattern    = `^[a-zA-Z0-9_.-]{1,64}$`
)

// Lint says what a provider may refuse in a schema that Portable printed, a line each. One bad schema makes some
// providers refuse the whole request.
func Lint(raw []byte) []string {
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return []string{"not JSON: " + err.Error()}
	}
	l := &linter{key: regexp.MustCompile(keyPattern)}
	o, ok := root.(map[string]any)
	if !ok || o["type"] != "object" {
		return []string{"the root is no object"}
	}
	properties, ok := o["properties"].(map[string]any)
	if !ok {
		l.fault("", "the root has no properties")
	}
	for name := range properties {
		if !l.key.MatchString(name) {
			l.fault("/"+name, "a key that not every provider takes")
		}
	}
	l.schema("", o, 1)
	if l.properties > maxProperties {
		l.fault("", "too many properties")
	}
	sort.Strings(l.faults)
	return l.faults
}

type linter struct {
	key        *regexp.Regexp
	properties int
	faults     []string
}

func (l *linter) fault(at, format string, args ...any) {
	l.faults = append(l.faults, at+": "+fmt.Sprintf(format, args...))
}

// keywords are all that Portable uses.
func keywords() []string {
	return []string{
		"type", "description", "properties", "required", "additionalProperties", "items", "enum", "pattern", "minimum",
		"maximum", "minLength", "maxLength", "minItems", "maxItems",
	}
}

func (l *linter) schema(at string, o map[string]any, depth int) {
	if depth > maxNesting {
		l.fault(at, "deeper than %d levels", maxNesting)
		return
	}
	for keyword := range o {
		if !slices.Contains(keywords(), keyword) {
			l.fault(at, "the keyword %s", keyword)
		}
	}
	kind, typed := o["type"].(string)
	if _, has := o["type"]; has && !typed {
		l.fault(at, "a type that is not one word")
	}
	if list, ok := o["enum"].([]any); ok && len(list) == 0 {
		l.fault(at, "an empty enum")
	}
	if kind == "array" {
		if _, ok := o["items"].(map[string]any); !ok {
			l.fault(at, "a list without items")
		}
	}
	l.children(at, o, depth)
}

func (l *linter) children(at string, o map[string]any, depth int) {
	properties, _ := o["properties"].(map[string]any)
	for name, child := range properties {
		l.properties++
		if next, ok := child.(map[string]any); ok {
			l.schema(at+"/"+name, next, depth+1)
		}
	}
	required, _ := o["required"].([]any)
	for _, name := range required {
		if text, ok := name.(string); !ok || properties[text] == nil {
			l.fault(at, "%v is required and not there", name)
		}
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if next, ok := o[keyword].(map[string]any); ok {
			l.schema(at+"/*", next, depth+1)
		}
	}
}
