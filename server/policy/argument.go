package policy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
)

const (
	// targetURL is the path of the addresses of the tabs that a command would act on.
	targetURL = "target.url"
	// whole ends the path of a list or map as one value: its JSON.
	whole = "[]"
	// isSet is the value of a message that is set.
	isSet = "{}"
)

// argument is a compiled argument pattern.
type argument struct {
	path  string
	steps []string // of the path; without whole
	whole bool
	glob  glob
}

func parseArgument(path, pattern string) (argument, error) {
	g, err := parseGlob(pattern)
	if err != nil {
		return argument{}, err
	}
	base, isWhole := strings.CutSuffix(path, whole)
	return argument{path: path, steps: strings.Split(base, "."), whole: isWhole, glob: g}, nil
}

// names says whether the pattern is for the argument at a path: for just that one, or for one exact value of a list or map
// that it is in.
func (a *argument) names(path string) bool {
	base := strings.TrimSuffix(a.path, whole)
	return base == path || a.whole && len(a.glob) == 1 && strings.HasPrefix(path, base+".")
}

// values are the values of an argument; one empty value if it is not set or is empty. It says false if a message of
// this type has no such argument.
func (a *argument) values(args protoreflect.Message) ([]string, bool) {
	if args == nil {
		return nil, false
	}
	values, ok := collect(nil, args, a.steps, a.whole)
	if ok && len(values) == 0 {
		values = []string{""}
	}
	return values, ok
}

// collect adds the values that a path leads to.
func collect(values []string, m protoreflect.Message, steps []string, asWhole bool) ([]string, bool) {
	fd := m.Descriptor().Fields().ByJSONName(steps[0])
	if fd == nil {
		return values, false
	}
	rest := steps[1:]
	switch {
	case len(rest) > 0 && (fd.Message() == nil || fd.IsMap()):
		return values, false
	case len(rest) > 0 && fd.IsList():
		ok := reaches(fd.Message(), rest, asWhole)
		for i := range m.Get(fd).List().Len() {
			values, _ = collect(values, m.Get(fd).List().Get(i).Message(), rest, asWhole)
		}
		return values, ok
	case len(rest) > 0:
		return collect(values, m.Get(fd).Message(), rest, asWhole)
	case asWhole && !fd.IsList() && !fd.IsMap():
		return values, false
	case !m.Has(fd):
		return append(values, ""), true
	case asWhole:
		return append(values, jsonOf(m, fd)), true
	case fd.IsList():
		for i := range m.Get(fd).List().Len() {
			values = append(values, scalar(fd, m.Get(fd).List().Get(i)))
		}
		return values, true
	case fd.IsMap():
		m.Get(fd).Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
			values = append(values, scalar(fd.MapValue(), v))
			return true
		})
		return values, true
	default:
		return append(values, scalar(fd, m.Get(fd))), true
	}
}

// reaches says whether messages of a type have what a path leads to.
func reaches(md protoreflect.MessageDescriptor, steps []string, asWhole bool) bool {
	fd := fieldAt(md, steps)
	return fd != nil && (!asWhole || fd.IsList() || fd.IsMap())
}

// fieldAt is the field that a path leads to; nil if there is none.
func fieldAt(md protoreflect.MessageDescriptor, steps []string) protoreflect.FieldDescriptor {
	fd := md.Fields().ByJSONName(steps[0])
	switch {
	case fd == nil || len(steps) == 1:
		return fd
	case fd.Message() == nil || fd.IsMap():
		return nil
	default:
		return fieldAt(fd.Message(), steps[1:])
	}
}

// hides says whether a path leads to a sensitive field, through one, or to something with one in it.
func hides(md protoreflect.MessageDescriptor, steps []string) bool {
	fd := md.Fields().ByJSONName(steps[0])
	switch {
	case fd == nil:
		return false
	case catalog.Sensitive(fd):
		return true
	case len(steps) > 1 && fd.Message() != nil && !fd.IsMap():
		return hides(fd.Message(), steps[1:])
	case len(steps) == 1 && (fd.IsList() || fd.IsMap()) && fd.Message() != nil:
		return hasSensitive(fd.Message(), map[protoreflect.FullName]bool{})
	default:
		return false
	}
}

func hasSensitive(md protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) bool {
	if seen[md.FullName()] {
		return false
	}
	seen[md.FullName()] = true
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if catalog.Sensitive(fd) || fd.Message() != nil && hasSensitive(fd.Message(), seen) {
			return true
		}
	}
	return false
}

// scalar is a value as it is written in JSON, without quotes.
func scalar(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return v.String()
	case protoreflect.BytesKind:
		return base64.StdEncoding.EncodeToString(v.Bytes())
	case protoreflect.EnumKind:
		if value := fd.Enum().Values().ByNumber(v.Enum()); value != nil {
			return string(value.Name())
		}
		return strconv.Itoa(int(v.Enum()))
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return isSet
	case protoreflect.FloatKind:
		return strconv.FormatFloat(v.Float(), 'g', -1, 32)
	case protoreflect.DoubleKind:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	default:
		return v.String()
	}
}

// jsonOf is a list or map as JSON, always the same for the same value.
func jsonOf(m protoreflect.Message, fd protoreflect.FieldDescriptor) string {
	alone := m.New()
	alone.Set(fd, m.Get(fd))
	raw, err := protojson.Marshal(alone.Interface())
	if err != nil {
		return "" // as if it were empty: no pattern that was made of a value matches
	}
	var object map[string]json.RawMessage
	var compact bytes.Buffer
	if json.Unmarshal(raw, &object) != nil || json.Compact(&compact, object[fd.JSONName()]) != nil {
		return ""
	}
	return compact.String()
}

// strange says whether a message holds something that its type does not have.
func strange(m protoreflect.Message) bool {
	if len(m.GetUnknown()) > 0 {
		return true
	}
	found := false
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap() && fd.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				found = strange(v.Message())
				return !found
			})
		case fd.IsMap() || fd.Message() == nil:
		case fd.IsList():
			for i := 0; i < v.List().Len() && !found; i++ {
				found = strange(v.List().Get(i).Message())
			}
		default:
			found = strange(v.Message())
		}
		return !found
	})
	return found
}
