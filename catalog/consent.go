package catalog

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// RequiresApproval is the (requires_approval) option of a field: a person is asked wherever it is true.
func RequiresApproval(fd protoreflect.FieldDescriptor) bool {
	asks, _ := proto.GetExtension(fd.Options(), optionv1.E_RequiresApproval).(bool)
	return asks
}

// Consents are the paths of the arguments that have a person asked where they are true, in declaration order: JSON names
// with dots between them.
func (e *Entry) Consents() []string { return e.consents }

// ConsentsIn are those of Consents that are true in arguments, each once, by name.
func (e *Entry) ConsentsIn(args protoreflect.Message) []string {
	if len(e.consents) == 0 || args == nil {
		return nil // most commands have none: their arguments need not be looked through
	}
	var paths []string
	consentsIn(args, "", func(path string) {
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	})
	slices.Sort(paths)
	return paths
}

func consentsIn(m protoreflect.Message, prefix string, found func(path string)) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		path := prefix + fd.JSONName()
		switch {
		case RequiresApproval(fd):
			if isTrue(fd, v) {
				found(path)
			}
		case fd.IsMap():
			if fd.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, value protoreflect.Value) bool {
					consentsIn(value.Message(), path+".", found)
					return true
				})
			}
		case fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				consentsIn(v.List().Get(i).Message(), path+".", found)
			}
		default:
			consentsIn(v.Message(), path+".", found)
		}
		return true
	})
}

// isTrue says whether a bool, or any of a list or map of them, is true.
func isTrue(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
	switch {
	case fd.IsList():
		for i := range v.List().Len() {
			if v.List().Get(i).Bool() {
				return true
			}
		}
		return false
	case fd.IsMap():
		found := false
		v.Map().Range(func(_ protoreflect.MapKey, value protoreflect.Value) bool {
			found = value.Bool()
			return !found
		})
		return found
	default:
		return v.Bool()
	}
}

// consents finds the paths of the fields with the option in a command's arguments. It is an error if one is no bool, or is
// hidden from the person who is to agree.
func consents(md protoreflect.MessageDescriptor, prefix string, within []protoreflect.FullName) ([]string, error) {
	if slices.Contains(within, md.FullName()) {
		return nil, nil // a message that may hold itself: the paths so far tell that there is one
	}
	within = append(slices.Clone(within), md.FullName())
	var paths []string
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		value := fd
		if fd.IsMap() {
			value = fd.MapValue()
		}
		path := prefix + fd.JSONName()
		switch {
		case RequiresApproval(fd) && value.Kind() != protoreflect.BoolKind:
			return nil, fmt.Errorf("%s: only a bool can require approval", fd.FullName())
		case RequiresApproval(fd) && Sensitive(fd):
			return nil, fmt.Errorf("%s: what requires approval cannot be sensitive, for the person has to see it", fd.FullName())
		case RequiresApproval(fd):
			paths = append(paths, path)
		case value.Message() != nil:
			inner, err := consents(value.Message(), path+".", within)
			if err != nil {
				return nil, err
			}
			if len(inner) > 0 && Sensitive(fd) {
				return nil, fmt.Errorf("%s: what requires approval cannot be in something sensitive", fd.FullName())
			}
			paths = append(paths, inner...)
		}
	}
	return paths, nil
}

// FieldAt is the field at a path of JSON names with dots between them; nil if there is none.
func FieldAt(md protoreflect.MessageDescriptor, path string) protoreflect.FieldDescriptor {
	name, rest, more := strings.Cut(path, ".")
	fd := md.Fields().ByJSONName(name)
	if fd == nil || !more {
		return fd
	}
	if fd.IsMap() {
		fd = fd.MapValue()
	}
	if fd.Message() == nil {
		return nil
	}
	return FieldAt(fd.Message(), rest)
}
