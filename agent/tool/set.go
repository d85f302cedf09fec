package tool

import (
	"fmt"
	"regexp"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool/naming"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/catalog"
)

// MaxTools is how many tools one request may carry: providers refuse the whole request above it.
const MaxTools = 128

// Set is the list of all tools. It never changes once it is made.
type Set struct {
	tools  []*Tool
	byName map[string]*Tool // older names too
}

// NewSet makes a tool of every query and command of a catalogue.
func NewSet(c *catalog.Catalogue) (*Set, error) {
	s := &Set{byName: map[string]*Tool{}}
	for _, e := range slices.Concat(c.Queries(), c.Commands()) {
		t, err := newTool(e, c.Files())
		if err != nil {
			return nil, fmt.Errorf("make tool %s: %w", e.Name, err)
		}
		s.tools = append(s.tools, t)
		for _, name := range append([]string{e.Name}, e.Aliases...) {
			s.byName[name] = t
		}
	}
	if len(s.tools) > MaxTools {
		return nil, fmt.Errorf("there are %d tools; a request carries at most %d", len(s.tools), MaxTools)
	}
	return s, nil
}

// Tools are all tools: queries, then commands, each by name.
func (s *Set) Tools() []*Tool { return s.tools }

// Lookup finds a tool by its name or an accepted older one.
func (s *Set) Lookup(name string) (*Tool, bool) {
	t, ok := s.byName[name]
	return t, ok
}

// Nearest is the tool that an unknown name was most likely meant to be, or empty.
func (s *Set) Nearest(name string) string {
	names := make([]string, len(s.tools))
	for i, t := range s.tools {
		names[i] = t.Name
	}
	return naming.Nearest(name, names)
}

// Portable are the tools as they go to a model, those with the given names or all.
func (s *Set) Portable(names ...string) []model.Tool {
	var out []model.Tool
	for _, t := range s.tools {
		if len(names) == 0 || slices.Contains(names, t.Name) {
			out = append(out, model.Tool{Name: t.Name, Description: t.Description, Parameters: schema.Portable(t.Schema)})
		}
	}
	return out
}

// namePattern is what every provider takes as the name of a tool.
const namePattern = `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`

// deviceKey is the argument that names the device where no other does. It belongs to the envelope, not to the action.
const (
	deviceKey   = "deviceId"
	deviceField = "device_id"
)

func newTool(e *catalog.Entry, files *protoregistry.Files) (*Tool, error) {
	if !regexp.MustCompile(namePattern).MatchString(e.Name) {
		return nil, fmt.Errorf("the name does not match %s", namePattern)
	}
	t := &Tool{Name: e.Name, Entry: e, files: files}
	t.Schema, t.Rules = schema.Of(e.In, e.Comment)
	t.Description = describe(e.Summary, t.Schema.Notes)
	if e.Method != nil {
		return t, nil
	}
	for _, name := range []protoreflect.Name{deviceField, deviceKey} {
		if e.In.Fields().ByName(name) != nil || e.In.Fields().ByJSONName(string(name)) != nil {
			return nil, fmt.Errorf("its field %s has the name of the device in the envelope", name)
		}
	}
	if !e.FixesDevice() {
		t.device(!e.HasSaved())
	}
	return t, nil
}
