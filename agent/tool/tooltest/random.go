package tooltest

import (
	"errors"
	"math/rand/v2"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/agent/tool/naming"
	"throwbar.dev/throwbar/catalog"
)

// Random makes a random message that meets all its rules, or nil if none was found in some tries. Fields of type Any
// stay unset: they are not offered.
func Random(random *rand.Rand, md protoreflect.MessageDescriptor) *dynamicpb.Message {
	g := generator{random, map[protoreflect.MessageDescriptor]map[protoreflect.FieldNumber]bool{}}
	for range 20 {
		m := dynamicpb.NewMessage(md)
		g.fill(m, 3)
		for range 6 {
			var invalid *protovalidate.ValidationError
			if err := protovalidate.Validate(m); err == nil {
				return m
			} else if !errors.As(err, &invalid) {
				return nil
			}
			for _, v := range invalid.Violations {
				g.mend(m, v.Proto.GetField().GetElements())
			}
		}
	}
	return nil
}

// mend takes out a value that breaks a rule, or makes another where there has to be one.
func (g generator) mend(m protoreflect.Message, path []*validate.FieldPathElement) {
	for i, element := range path {
		fd := m.Descriptor().Fields().ByNumber(protoreflect.FieldNumber(element.GetFieldNumber()))
		if fd == nil {
			return
		}
		if i < len(path)-1 && fd.Message() != nil && !fd.IsList() && !fd.IsMap() && m.Has(fd) {
			m = m.Mutable(fd).Message()
			continue
		}
		m.Clear(fd)
		if g.required(fd) {
			g.field(m, fd, catalog.Rules(fd), 1)
		}
		return
	}
}

type generator struct {
	*rand.Rand
	must map[protoreflect.MessageDescriptor]map[protoreflect.FieldNumber]bool // the required fields of a message
}

func (g generator) required(fd protoreflect.FieldDescriptor) bool {
	must, ok := g.must[fd.ContainingMessage()]
	if !ok {
		must = catalog.RequiredFields(fd.ContainingMessage())
		g.must[fd.ContainingMessage()] = must
	}
	return must[fd.Number()]
}

func (g generator) fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		rules := catalog.Rules(fd)
		if !g.required(fd) && g.IntN(3) == 0 || fd.Message() != nil && depth == 0 {
			continue
		}
		if name := messageName(fd); name == "google.protobuf.Any" {
			continue
		}
		if group := fd.ContainingOneof(); group != nil && !group.IsSynthetic() && m.WhichOneof(group) != nil {
			continue
		}
		g.field(m, fd, rules, depth)
	}
}

func messageName(fd protoreflect.FieldDescriptor) protoreflect.FullName {
	if fd.Message() == nil || fd.IsMap() {
		return ""
	}
	return fd.Message().FullName()
}

func (g generator) field(m protoreflect.Message, fd protoreflect.FieldDescriptor, rules *validate.FieldRules, depth int) {
	switch {
	case fd.IsMap():
		for range g.size(rules.GetMap().GetMinPairs()) {
			key := g.value(m, fd.MapKey(), rules.GetMap().GetKeys(), depth)
			out := m.Mutable(fd).Map()
			if fd.MapValue().Message() != nil {
				value := out.NewValue()
				g.message(value.Message(), depth)
				out.Set(key.MapKey(), value)
				continue
			}
			out.Set(key.MapKey(), g.value(m, fd.MapValue(), rules.GetMap().GetValues(), depth))
		}
	case fd.IsList():
		for range g.size(rules.GetRepeated().GetMinItems()) {
			if fd.Message() != nil {
				g.message(m.Mutable(fd).List().AppendMutable().Message(), depth)
				continue
			}
			m.Mutable(fd).List().Append(g.value(m, fd, rules.GetRepeated().GetItems(), depth))
		}
	case fd.Message() != nil:
		g.message(m.Mutable(fd).Message(), depth)
	default:
		m.Set(fd, g.value(m, fd, rules, depth))
	}
}

func (g generator) size(least uint64) int { return int(least) + g.IntN(3) }

// message fills a message; those of a form of their own get legal values.
func (g generator) message(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	set := func(name protoreflect.Name, v any) { m.Set(fields.ByName(name), protoreflect.ValueOf(v)) }
	switch m.Descriptor().FullName() {
	case "google.protobuf.Timestamp":
		set("seconds", g.Int64N(4e9))
		set("nanos", g.Int32N(1e9))
	case "google.protobuf.Duration":
		set("seconds", g.Int64N(100))
		set("nanos", g.Int32N(1e9))
	case "google.protobuf.FieldMask":
		m.Mutable(fields.ByName("paths")).List().Append(protoreflect.ValueOf("window_id"))
	case "google.protobuf.Value":
		switch g.IntN(4) {
		case 0:
			set("null_value", protoreflect.EnumNumber(0))
		case 1:
			set("string_value", g.text())
		case 2:
			set("bool_value", true)
		default:
			set("number_value", float64(g.IntN(1000))/8)
		}
	default:
		g.fill(m, depth-1)
	}
}

func (g generator) value(m protoreflect.Message, fd protoreflect.FieldDescriptor, rules *validate.FieldRules, _ int) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOf(g.IntN(2) == 0)
	case protoreflect.EnumKind:
		offered := naming.Offered(fd.Enum())
		return protoreflect.ValueOf(offered[g.IntN(len(offered))].Number())
	case protoreflect.StringKind:
		return protoreflect.ValueOf(g.ruled(rules.GetString()))
	case protoreflect.BytesKind:
		raw := make([]byte, g.IntN(9))
		for i := range raw {
			raw[i] = byte(g.Uint32())
		}
		return protoreflect.ValueOf(raw)
	case protoreflect.FloatKind:
		return protoreflect.ValueOf(float32(g.NormFloat64() * 10))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOf(g.NormFloat64() * 10)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOf(int32(g.Uint32()) >> g.IntN(32))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOf(int64(g.Uint64()) >> g.IntN(64))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOf(g.Uint32() >> g.IntN(32))
	default:
		return protoreflect.ValueOf(g.Uint64() >> g.IntN(64))
	}
}

// ruled is a text that has a chance to meet the rules.
func (g generator) ruled(rules *validate.StringRules) string {
	if in := rules.GetIn(); len(in) > 0 {
		return in[g.IntN(len(in))]
	}
	s := g.text()
	for uint64(len(s)) < rules.GetMinLen() {
		s += "x"
	}
	return rules.GetPrefix() + s + rules.GetSuffix()
}

func (g generator) text() string {
	letters := []rune("ab\"\\/\n\t <>&\u202eé\u200b😀[1]{}")
	var out strings.Builder
	for range g.IntN(8) {
		out.WriteRune(letters[g.IntN(len(letters))])
	}
	return out.String()
}
