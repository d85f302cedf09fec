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
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// Set is the list of all tools, however many there are. It never changes once it is made.
type Set struct {
	tools  []*Tool
	byName map[string]*Tool // older names too
	groups []string         // every name that stands for several tools
}

// Remark is what a model is told of a facility beside its declaration, because it is known only where the server runs.
type Remark struct {
	Facility protoreflect.FullName // its message
	Text     string
}

// NewSet makes a tool of every query, command and facility of a catalogue.
func NewSet(c *catalog.Catalogue, remarks ...Remark) (*Set, error) {
	s := &Set{byName: map[string]*Tool{}, groups: []string{GroupAll, GroupRead, GroupAct, GroupNone}}
	for _, e := range slices.Concat(c.Queries(), c.Commands(), c.Facilities()) {
		t, err := newTool(e, c.Files())
		if err != nil {
			return nil, fmt.Errorf("make tool %s: %w", e.Name, err)
		}
		for _, r := range remarks {
			if e.Facility != nil && r.Facility == e.In.FullName() {
				t.Description = describe(t.Description, []string{r.Text})
			}
		}
		s.tools = append(s.tools, t)
		for _, name := range append([]string{e.Name}, e.Aliases...) {
			s.byName[name] = t
		}
		if !slices.Contains(s.groups, e.Family) {
			s.groups = append(s.groups, e.Family)
		}
	}
	return s, s.sound()
}

// sound says what is wrong with the declarations of tools beside each other.
func (s *Set) sound() error {
	for _, group := range s.groups {
		if t, ok := s.byName[group]; ok {
			return fmt.Errorf("make tool %s: a group of tools is called %q too", t.Name, group)
		}
	}
	for _, t := range s.tools {
		for _, name := range t.Entry.Facility.GetWith() {
			if other, ok := s.byName[name]; !ok || !other.granted() {
				return fmt.Errorf("make tool %s: it is granted with %q, which is no facility that can be granted", t.Name, name)
			}
		}
	}
	return nil
}

// Tools are all tools: queries, commands, then facilities, each by name.
func (s *Set) Tools() []*Tool { return s.tools }

// Lookup finds a tool by its name or an accepted older one, whoever has it.
func (s *Set) Lookup(name string) (*Tool, bool) {
	t, ok := s.byName[name]
	return t, ok
}

// Nearest is the tool that an unknown name was most likely meant to be, or empty.
func (s *Set) Nearest(name string) string { return naming.Nearest(name, names(s.tools)) }

func names(tools []*Tool) []string {
	out := make([]string, len(tools))
	for i, t := range tools {
		out[i] = t.Name
	}
	return out
}

// Portable are the tools as most models read them: those with the given names, or every query and command.
func (s *Set) Portable(names ...string) []model.Tool {
	var out []model.Tool
	for _, t := range s.tools {
		if len(names) == 0 && t.Entry.Facility == nil || slices.Contains(names, t.Name) {
			out = append(out, t.offer(schema.ProfilePortable).tool)
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
	t := &Tool{Name: e.Name, Entry: e, files: files, finds: e.In.FullName() == (&agentv1.FindTools{}).ProtoReflect().Descriptor().FullName()}
	t.Schema, t.Rules = schema.Of(e.In, e.Comment)
	t.Description = describe(e.Summary, t.Schema.Notes)
	if e.Command == nil {
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
