package result

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/agent/tool/naming"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// Of prints a typed result. Fields that are empty are left out, but for numbers and truth values at the top: how many
// is said even if it is none. Outcomes of items that say no more than that all went well are left out too: the counts
// beside them say it. Times are cut to seconds.
func Of(m protoreflect.Message) *Value {
	return printer{}.message(m, true)
}

// Arguments prints a message exactly, as a model would have to write it: what Decode reads back to the same message.
// Only what the contract calls sensitive is hidden.
func Arguments(m protoreflect.Message) *Value {
	return printer{exact: true}.message(m, true)
}

const hiddenText = "(hidden)"

type printer struct{ exact bool }

func (p printer) message(m protoreflect.Message, top bool) *Value {
	v := Object()
	fields := m.Descriptor().Fields()
	hides := !p.exact && private(m)
	for i := range fields.Len() {
		fd := fields.Get(i)
		if !m.Has(fd) && !(top && !p.exact && counts(fd)) {
			continue
		}
		if catalog.Sensitive(fd) || hides && isText(fd) {
			v.Add(fd.JSONName(), Text(hiddenText))
			continue
		}
		if value := p.field(m, fd); value != nil {
			v.Add(fd.JSONName(), value)
		}
	}
	return v
}

// private says whether a message is a tab that the person has opened so that nothing of it is kept. What a model reads is
// kept, and goes to whoever runs the model.
func private(m protoreflect.Message) bool {
	fd := m.Descriptor().Fields().ByName("private")
	return fd != nil && m.Descriptor().FullName() == "throwbar.command.v1.Tab" && m.Get(fd).Bool()
}

// isText says whether a field has text that is no id.
func isText(fd protoreflect.FieldDescriptor) bool {
	return fd.Kind() == protoreflect.StringKind && catalog.TargetOf(fd) == optionv1.Target_TARGET_UNSPECIFIED
}

// counts says whether zero or false is an answer of a field.
func counts(fd protoreflect.FieldDescriptor) bool {
	return !fd.HasPresence() && !fd.IsList() && !fd.IsMap() && fd.Message() == nil &&
		fd.Kind() != protoreflect.StringKind && fd.Kind() != protoreflect.BytesKind && fd.Kind() != protoreflect.EnumKind
}

func (p printer) field(m protoreflect.Message, fd protoreflect.FieldDescriptor) *Value {
	value := m.Get(fd)
	switch {
	case fd.IsMap():
		return p.mapping(value.Map(), fd)
	case fd.IsList():
		v := List()
		for i := range value.List().Len() {
			if item := value.List().Get(i); p.exact || !plain(fd, item) {
				v.Append(p.value(item, fd, p.rules(fd).GetRepeated().GetItems()))
			}
		}
		if len(v.items) == 0 {
			return nil
		}
		return v
	default:
		return p.value(value, fd, p.rules(fd))
	}
}

// rules are those of a field, which decide the form of a 64-bit number only when it has to be exact.
func (p printer) rules(fd protoreflect.FieldDescriptor) *validate.FieldRules {
	if !p.exact {
		return nil
	}
	return catalog.Rules(fd)
}

// plain says whether an item is the outcome of one target and says no more than that it went well.
func plain(fd protoreflect.FieldDescriptor, item protoreflect.Value) bool {
	if fd.Message() == nil || fd.Message().FullName() != (&commandv1.ItemOutcome{}).ProtoReflect().Descriptor().FullName() {
		return false
	}
	m, fields := item.Message(), fd.Message().Fields()
	status := fields.ByName("status")
	if status == nil || m.Get(status).Enum() != protoreflect.EnumNumber(commandv1.ItemStatus_ITEM_STATUS_OK) {
		return false
	}
	set := 0
	m.Range(func(protoreflect.FieldDescriptor, protoreflect.Value) bool {
		set++
		return true
	})
	return set <= 2 // the id and the status
}

func (p printer) mapping(m protoreflect.Map, fd protoreflect.FieldDescriptor) *Value {
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, key)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return strings.Compare(a.String(), b.String()) })
	v := Object()
	for _, key := range keys {
		v.Add(key.String(), p.value(m.Get(key), fd.MapValue(), p.rules(fd).GetMap().GetValues()))
	}
	return v
}

func (p printer) value(value protoreflect.Value, fd protoreflect.FieldDescriptor, rules *validate.FieldRules) *Value {
	switch x := value.Interface().(type) {
	case string:
		return Text(x)
	case []byte:
		return Text(base64.StdEncoding.EncodeToString(x))
	case protoreflect.EnumNumber:
		return enum(fd.Enum(), x)
	case int64:
		return p.long(strconv.FormatInt(x, 10), x > 1<<53-1 || x < -(1<<53-1), fd, rules)
	case uint64:
		return p.long(strconv.FormatUint(x, 10), x > 1<<53-1, fd, rules)
	case float32:
		return float(float64(x), 32)
	case float64:
		return float(x, 64)
	case protoreflect.Message:
		return p.wellKnown(x, fd, rules)
	default: // bool, int32, uint32
		return Literal(value.String())
	}
}

func (p printer) long(digits string, beyond bool, fd protoreflect.FieldDescriptor, rules *validate.FieldRules) *Value {
	if p.exact && schema.Quoted(fd, rules) || !p.exact && beyond {
		return Text(digits)
	}
	return Literal(digits)
}

func float(x float64, bits int) *Value {
	switch {
	case math.IsNaN(x):
		return Text("NaN")
	case math.IsInf(x, 1):
		return Text("Infinity")
	case math.IsInf(x, -1):
		return Text("-Infinity")
	default:
		return Literal(strconv.FormatFloat(x, 'g', -1, bits))
	}
}

func enum(ed protoreflect.EnumDescriptor, number protoreflect.EnumNumber) *Value {
	if ed.FullName() == "google.protobuf.NullValue" {
		return Literal("null")
	}
	if name, ok := naming.Short(ed, number); ok {
		return Text(name)
	}
	return Literal(strconv.Itoa(int(number)))
}

// wellKnown prints a message, or one of the well-known types, whose JSON is not that of its fields.
func (p printer) wellKnown(m protoreflect.Message, fd protoreflect.FieldDescriptor, rules *validate.FieldRules) *Value {
	fields := m.Descriptor().Fields()
	switch m.Descriptor().FullName() {
	case "google.protobuf.Struct":
		return p.mapping(m.Get(fields.ByName("fields")).Map(), fields.ByName("fields"))
	case "google.protobuf.ListValue":
		v := List()
		values := m.Get(fields.ByName("values")).List()
		for i := range values.Len() {
			v.Append(p.value(values.Get(i), fields.ByName("values"), nil))
		}
		return v
	case "google.protobuf.Value":
		set := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
		if set == nil {
			return Literal("null")
		}
		return p.value(m.Get(set), set, nil)
	case "google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.FieldMask":
		return p.spelled(m)
	case "google.protobuf.Any":
		return Object().Add("@type", Text(m.Get(fields.ByName("type_url")).String()))
	case "google.protobuf.BoolValue", "google.protobuf.StringValue", "google.protobuf.BytesValue", "google.protobuf.FloatValue",
		"google.protobuf.DoubleValue", "google.protobuf.Int32Value", "google.protobuf.UInt32Value":
		return p.value(m.Get(fields.Get(0)), fields.Get(0), nil)
	case "google.protobuf.Int64Value", "google.protobuf.UInt64Value":
		return p.value(m.Get(fields.Get(0)), fd, rules)
	default:
		return p.message(m, false)
	}
}

// spelled prints a time, duration or field mask.
func (p printer) spelled(m protoreflect.Message) *Value {
	raw, err := protojson.Marshal(m.Interface())
	if err != nil {
		return Literal("null") // a time that no calendar has
	}
	s, err := strconv.Unquote(string(raw))
	if err != nil {
		return Literal("null")
	}
	if day, fraction, ok := strings.Cut(s, "."); ok && !p.exact && m.Descriptor().Name() == "Timestamp" && strings.HasSuffix(fraction, "Z") {
		s = day + "Z"
	}
	return Text(s)
}

func itoa(n int) string { return strconv.Itoa(n) }
