// Package catalog reads the contract: it turns a descriptor image into the list of all commands and queries, with
// their names, comments, options and rules.
//
// Dispatch, policy, the model's tools, the command line, and the documentation see a command only as an Entry, so that
// none of them has to know one by name. The image is a parameter: a test hands over one with members of its own.
package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sort"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

const (
	actionName = protoreflect.FullName("throwbar.command.v1.Action")
	resultName = protoreflect.FullName("throwbar.command.v1.Result")
	// customName is the member that carries calls of a device's own services; it is no command by itself.
	customName = protoreflect.FullName("throwbar.command.v1.Custom")
)

// Catalogue is everything the contract offers. It never changes once it is made, but for what it remembers.
type Catalogue struct {
	image    []byte
	digest   string
	files    *protoregistry.Files
	action   protoreflect.MessageDescriptor
	result   protoreflect.MessageDescriptor
	commands []*Entry // by name
	queries  []*Entry // by name
	// facilities are what the agent itself can do, by name
	facilities []*Entry
	byName     map[string]*Entry
	byNumber   map[protoreflect.FieldNumber]*Entry

	sensitive sync.Map // of protoreflect.MessageDescriptor: the numbers of its sensitive fields, as a map
}

// New reads a descriptor image: an encoded google.protobuf.FileDescriptorSet with comments, without the imports that
// are linked into the program.
func New(image []byte) (*Catalogue, error) {
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(image, set); err != nil {
		return nil, fmt.Errorf("read descriptor image: %w", err)
	}
	if err := addImports(set); err != nil {
		return nil, err
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, fmt.Errorf("link descriptor image: %w", err)
	}
	sum := sha256.Sum256(image)
	c := &Catalogue{
		image:    image,
		digest:   hex.EncodeToString(sum[:]),
		files:    files,
		byName:   map[string]*Entry{},
		byNumber: map[protoreflect.FieldNumber]*Entry{},
	}
	if c.action, err = c.message(actionName); err != nil {
		return nil, err
	}
	if c.result, err = c.message(resultName); err != nil {
		return nil, err
	}
	if err := c.readCommands(); err != nil {
		return nil, err
	}
	if err := c.readQueries(); err != nil {
		return nil, err
	}
	if err := c.readFacilities(); err != nil {
		return nil, err
	}
	return c, nil
}

// addImports completes the set with files that are linked into the program.
func addImports(set *descriptorpb.FileDescriptorSet) error {
	have := map[string]bool{}
	for _, f := range set.GetFile() {
		have[f.GetName()] = true
	}
	for i := 0; i < len(set.GetFile()); i++ { // the list grows while it is read
		for _, dep := range set.GetFile()[i].GetDependency() {
			if have[dep] {
				continue
			}
			fd, err := protoregistry.GlobalFiles.FindFileByPath(dep)
			if err != nil {
				return fmt.Errorf("find import %s: %w", dep, err)
			}
			have[dep] = true
			set.File = append(set.File, protodesc.ToFileDescriptorProto(fd))
		}
	}
	return nil
}

func (c *Catalogue) message(name protoreflect.FullName) (protoreflect.MessageDescriptor, error) {
	d, err := c.files.FindDescriptorByName(name)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", name, err)
	}
	m, ok := d.(protoreflect.MessageDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s is no message", name)
	}
	return m, nil
}

func (c *Catalogue) readCommands() error {
	fields := c.action.Fields()
	for i := range fields.Len() {
		member := fields.Get(i)
		if member.Message() == nil {
			return fmt.Errorf("%s: a member has to be a message", member.FullName())
		}
		if member.Message().FullName() == customName {
			continue
		}
		e, err := c.command(member)
		if err != nil {
			return err
		}
		if err := c.add(e); err != nil {
			return err
		}
		c.byNumber[member.Number()] = e
		c.commands = append(c.commands, e)
	}
	sort.Slice(c.commands, func(i, j int) bool { return c.commands[i].Name < c.commands[j].Name })
	return nil
}

func (c *Catalogue) command(member protoreflect.FieldDescriptor) (*Entry, error) {
	pair := c.result.Fields().ByNumber(member.Number())
	if pair == nil || pair.Name() != member.Name() || pair.Message() == nil ||
		pair.Message().Parent() != protoreflect.Descriptor(member.Message()) {
		return nil, fmt.Errorf("%s has no result of the same name and number", member.FullName())
	}
	opt, _ := proto.GetExtension(member.Message().Options(), optionv1.E_Command).(*optionv1.Command)
	if opt.GetEffect() == optionv1.Effect_EFFECT_UNSPECIFIED ||
		opt.GetApproval() == optionv1.Approval_APPROVAL_UNSPECIFIED {
		return nil, fmt.Errorf("%s does not state its effect and approval", member.Message().FullName())
	}
	summary := c.Comment(member)
	if summary == "" {
		summary = c.Comment(member.Message())
	}
	asking, err := consents(member.Message(), "", nil)
	if err != nil {
		return nil, err
	}
	return &Entry{
		Name: member.JSONName(), Summary: summary, Family: family(member.Message()), Aliases: opt.GetAliases(),
		In: member.Message(), Out: pair.Message(), Command: opt,
		catalogue: c, member: member, pair: pair, consents: asking,
	}, nil
}

func (c *Catalogue) readQueries() error {
	var err error
	c.files.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		services := fd.Services()
		for i := range services.Len() {
			methods := services.Get(i).Methods()
			for j := range methods.Len() {
				if err = c.readQuery(methods.Get(j)); err != nil {
					return false
				}
			}
		}
		return true
	})
	sort.Slice(c.queries, func(i, j int) bool { return c.queries[i].Name < c.queries[j].Name })
	return err
}

func (c *Catalogue) readQuery(m protoreflect.MethodDescriptor) error {
	if !proto.HasExtension(m.Options(), optionv1.E_Tool) {
		return nil
	}
	if m.IsStreamingClient() || m.IsStreamingServer() {
		return fmt.Errorf("%s: only a unary method can be a tool", m.FullName())
	}
	switch asking, err := consents(m.Input(), "", nil); {
	case err != nil:
		return err
	case len(asking) > 0:
		return fmt.Errorf("%s: nobody can be asked about a query, so no field of one requires approval", m.FullName())
	}
	opt, _ := proto.GetExtension(m.Options(), optionv1.E_Tool).(*optionv1.Tool)
	name := string(m.Name())
	e := &Entry{
		Name: strings.ToLower(name[:1]) + name[1:], Summary: c.Comment(m), Family: family(m.Input()),
		Aliases: opt.GetAliases(), In: m.Input(), Out: m.Output(), Method: m, catalogue: c,
	}
	c.queries = append(c.queries, e)
	return c.add(e)
}

func (c *Catalogue) readFacilities() error {
	var err error
	c.files.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		messages := fd.Messages()
		for i := range messages.Len() {
			if err = c.readFacility(messages.Get(i)); err != nil {
				return false
			}
		}
		return true
	})
	sort.Slice(c.facilities, func(i, j int) bool { return c.facilities[i].Name < c.facilities[j].Name })
	return err
}

func (c *Catalogue) readFacility(m protoreflect.MessageDescriptor) error {
	if !proto.HasExtension(m.Options(), optionv1.E_Facility) {
		return nil
	}
	opt, _ := proto.GetExtension(m.Options(), optionv1.E_Facility).(*optionv1.Facility)
	out := m.Messages().ByName("Result")
	switch {
	case out == nil:
		return fmt.Errorf("%s: a facility nests its Result", m.FullName())
	case opt.GetEffect() == optionv1.Effect_EFFECT_UNSPECIFIED:
		return fmt.Errorf("%s: a facility states its effect", m.FullName())
	}
	name := string(m.Name())
	e := &Entry{
		Name: strings.ToLower(name[:1]) + name[1:], Summary: c.Comment(m), Family: family(m),
		Aliases: opt.GetAliases(), In: m, Out: out, Facility: opt, catalogue: c,
	}
	c.facilities = append(c.facilities, e)
	return c.add(e)
}

func (c *Catalogue) add(e *Entry) error {
	for _, name := range append([]string{e.Name}, e.Aliases...) {
		if other, ok := c.byName[name]; ok {
			return fmt.Errorf("%s and %s are both called %q", other.In.FullName(), e.In.FullName(), name)
		}
		c.byName[name] = e
	}
	return advertised(e.In, map[protoreflect.FullName]bool{})
}

// family is the base name of the file that declares a message, for example tabs.
func family(m protoreflect.MessageDescriptor) string {
	path := m.ParentFile().Path()
	return strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], ".proto")
}

// Image is the descriptor image that the catalogue was made from.
func (c *Catalogue) Image() []byte { return c.image }

// Digest is the hex SHA-256 of the image.
func (c *Catalogue) Digest() string { return c.digest }

// Commands are all members of the unions but custom, by name.
func (c *Catalogue) Commands() []*Entry { return c.commands }

// Queries are all methods that are offered to the model, by name.
func (c *Catalogue) Queries() []*Entry { return c.queries }

// Facilities are what the agent itself can do, by name. They are tools of the model and nothing else.
func (c *Catalogue) Facilities() []*Entry { return c.facilities }

// Lookup finds a command, query or facility by its name or an accepted older name.
func (c *Catalogue) Lookup(name string) (*Entry, bool) {
	e, ok := c.byName[name]
	return e, ok
}

// Files are the linked descriptors of the image.
func (c *Catalogue) Files() *protoregistry.Files { return c.files }

// Comment is the comment that leads a descriptor's declaration, in one paragraph per blank line, trimmed.
func (c *Catalogue) Comment(d protoreflect.Descriptor) string {
	text := d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments
	var paragraphs []string
	for block := range strings.SplitSeq(text, "\n\n") {
		if words := strings.Fields(block); len(words) > 0 {
			paragraphs = append(paragraphs, strings.Join(words, " "))
		}
	}
	return strings.Join(paragraphs, "\n\n")
}
