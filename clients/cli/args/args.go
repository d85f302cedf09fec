// Package args makes command line flags of the fields of a message, and a message of the flags.
//
// It works from descriptors alone, so that a command which the program was not built with has the same flags, help and
// checks as any other. Names are kebab-case, lists are comma-separated or repeated, enum values are short and
// lower-case; what has no form on a command line (messages, maps) can only be given as JSON.
package args

import (
	"errors"
	"fmt"
	"strings"

	"buf.build/go/protovalidate"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/catalog"
)

// Prefix is put before the name of a field's flag where a flag of the program already has that name.
const Prefix = "arg-"

// Flags are the flags of one message.
type Flags struct {
	in       protoreflect.MessageDescriptor
	fields   []*field
	jsonOnly []string
}

// Bind adds a flag for each field to a set. comment finds the text of a field; taken says which names the program
// needs for itself.
func Bind(
	set *pflag.FlagSet, in protoreflect.MessageDescriptor,
	comment func(protoreflect.Descriptor) string, taken func(string) bool,
) *Flags {
	f := &Flags{in: in}
	for i := range in.Fields().Len() {
		fd := in.Fields().Get(i)
		if !hasFlag(fd) {
			f.jsonOnly = append(f.jsonOnly, fd.JSONName())
			continue
		}
		v := &field{fd: fd, name: strings.ReplaceAll(string(fd.Name()), "_", "-")}
		if taken(v.name) {
			v.name = Prefix + v.name
		}
		f.fields = append(f.fields, v)
		flag := set.VarPF(v, v.name, "", usage(fd, comment(fd)))
		if fd.Kind() == protoreflect.BoolKind && !fd.IsList() {
			flag.NoOptDefVal = "true"
		}
	}
	return f
}

// usage is the help text of a flag. Its backquotes would be taken for the name of the value.
func usage(fd protoreflect.FieldDescriptor, comment string) string {
	text := strings.TrimSpace(strings.ReplaceAll(comment, "`", "'"))
	if choices := Choices(fd); len(choices) > 0 {
		text += " One of " + strings.Join(choices, ", ") + "."
	}
	if catalog.RequiresApproval(fd) {
		text += " A person is asked first."
	}
	if catalog.Sensitive(fd) {
		text += " Others on this machine can see arguments: --json - is safer."
	}
	if catalog.Required(fd) {
		text += " (required)"
	}
	return strings.TrimSpace(text)
}

// JSONOnly lists the fields, by JSON name, that have no flag.
func (f *Flags) JSONOnly() []string { return f.jsonOnly }

// Required lists the flags that have to be set, each with the word for its value.
func (f *Flags) Required() []string {
	var names []string
	for _, v := range f.fields {
		if catalog.Required(v.fd) {
			names = append(names, strings.TrimSpace("--"+v.name+" "+word(v.fd)))
		}
	}
	return names
}

// EachChoice calls visit for every flag that has a fixed list of values.
func (f *Flags) EachChoice(visit func(flag string, choices []string)) {
	for _, v := range f.fields {
		switch choices := Choices(v.fd); {
		case len(choices) > 0:
			visit(v.name, choices)
		case v.fd.Kind() == protoreflect.BoolKind:
			visit(v.name, []string{"true", "false"})
		}
	}
}

// Each calls visit for every flag and its field.
func (f *Flags) Each(visit func(flag string, fd protoreflect.FieldDescriptor)) {
	for _, v := range f.fields {
		visit(v.name, v.fd)
	}
}

// Message makes the message of JSON text, which may be empty, and of the flags. Where both set a field the flag counts.
func (f *Flags) Message(text []byte, types *dynamicpb.Types) (*dynamicpb.Message, error) {
	m := dynamicpb.NewMessage(f.in)
	if len(text) > 0 {
		if err := (protojson.UnmarshalOptions{Resolver: types}).Unmarshal(text, m); err != nil {
			return nil, errors.New("--json: " + plainError(err))
		}
	}
	oneofs := map[protoreflect.FullName]string{}
	for _, v := range f.fields {
		if len(v.values) == 0 {
			continue
		}
		if one := v.fd.ContainingOneof(); one != nil && !one.IsSynthetic() {
			if other, ok := oneofs[one.FullName()]; ok {
				return nil, fmt.Errorf("only one of --%s and --%s can be given", other, v.name)
			}
			oneofs[one.FullName()] = v.name
		}
		v.write(m)
	}
	return m, nil
}

// plainError is the text of a protojson error without its prefix and its changing spaces.
func plainError(err error) string {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	return strings.TrimPrefix(strings.TrimSpace(text), "proto: ")
}

// Check holds the message's rules against it. The error names flags.
func (f *Flags) Check(m *dynamicpb.Message) error {
	err := protovalidate.Validate(m)
	var invalid *protovalidate.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	var problems []string
	for _, v := range invalid.Violations {
		problems = append(problems, f.problem(m, v))
	}
	return errors.New(strings.Join(problems, "; "))
}

func (f *Flags) problem(m *dynamicpb.Message, v *protovalidate.Violation) string {
	path := v.Proto.GetField().GetElements()
	text := strings.TrimPrefix(v.Proto.GetMessage(), "value ")
	if len(path) == 0 {
		return text
	}
	fd := f.in.Fields().ByNumber(protoreflect.FieldNumber(path[0].GetFieldNumber()))
	if fd == nil {
		return protovalidate.FieldPathString(v.Proto.GetField()) + ": " + text
	}
	where := f.flag(fd)
	if len(path) > 1 {
		return where + ", " + protovalidate.FieldPathString(v.Proto.GetField()) + ": " + text
	}
	if !m.Has(fd) && catalog.Required(fd) {
		return where + " is missing"
	}
	if n := path[0].GetIndex(); path[0].GetSubscript() != nil && fd.IsList() {
		return fmt.Sprintf("%s, item %d: %s", where, n+1, text)
	}
	return where + ": " + text
}

// flag is how a caller gives a field.
func (f *Flags) flag(fd protoreflect.FieldDescriptor) string {
	for _, v := range f.fields {
		if v.fd.Number() == fd.Number() {
			return "--" + v.name
		}
	}
	return fmt.Sprintf("--json %q", fd.JSONName())
}

// ValidName says whether a name of a foreign catalogue can be a verb: letters, digits, and _ . - between them.
func ValidName(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789_.-", r)) {
			return false
		}
	}
	return name != ""
}
