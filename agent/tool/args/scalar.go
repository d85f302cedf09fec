package args

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/agent/tool/naming"
	"throwbar.dev/throwbar/catalog"
)

// scalar reads a value that is not a message.
func (d *decoder) scalar(fd protoreflect.FieldDescriptor, v *value, at string) (protoreflect.Value, bool) {
	x, ok := read(fd, v)
	if ok {
		return x, true
	}
	if fd.Kind() == protoreflect.EnumKind {
		d.enum(fd.Enum(), v, at)
		return x, false
	}
	d.wrong(at, "expected %s, got %s", expectation(fd), v.describe())
	return x, false
}

func read(fd protoreflect.FieldDescriptor, v *value) (protoreflect.Value, bool) {
	var none protoreflect.Value
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(v.text == "true"), v.kind == boolean
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(v.text), v.kind == text
	case protoreflect.BytesKind:
		raw, ok := decodeBase64(v.text)
		return protoreflect.ValueOfBytes(raw), ok && v.kind == text
	case protoreflect.EnumKind:
		n, ok := enumNumber(fd.Enum(), v)
		return protoreflect.ValueOfEnum(n), ok
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		n, err := strconv.ParseInt(whole(v), 10, 32)
		return protoreflect.ValueOfInt32(int32(n)), err == nil
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		n, err := strconv.ParseInt(whole(v), 10, 64)
		return protoreflect.ValueOfInt64(n), err == nil
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		n, err := strconv.ParseUint(whole(v), 10, 32)
		return protoreflect.ValueOfUint32(uint32(n)), err == nil
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		n, err := strconv.ParseUint(whole(v), 10, 64)
		return protoreflect.ValueOfUint64(n), err == nil
	case protoreflect.FloatKind:
		f, ok := float(v, 32)
		return protoreflect.ValueOfFloat32(float32(f)), ok
	case protoreflect.DoubleKind:
		f, ok := float(v, 64)
		return protoreflect.ValueOfFloat64(f), ok
	default:
		return none, false
	}
}

// whole is the plain spelling of a whole number, from a number or from text; empty if it is none.
func whole(v *value) string {
	s := v.text
	if v.kind == text {
		if !decimal(s) {
			return ""
		}
		return normal(s)
	}
	if v.kind != number {
		return ""
	}
	if decimal(s) {
		return normal(s)
	}
	// 1.0 and 1e3 are whole numbers too; an exponent without bound would be a number without end.
	if _, exponent, ok := strings.Cut(strings.ToLower(s), "e"); ok {
		if n, err := strconv.Atoi(exponent); err != nil || n > 20 || n < -20 {
			return ""
		}
	}
	if len(s) > 64 {
		return ""
	}
	rat, ok := new(big.Rat).SetString(s)
	if !ok || !rat.IsInt() {
		return ""
	}
	return rat.Num().String()
}

// normal is a number without the sign of a negative zero.
func normal(s string) string {
	if s == "-0" {
		return "0"
	}
	return s
}

// decimal says whether a text is a whole number as JSON spells it.
func decimal(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > 1 && digits[0] == '0' || len(digits) > 20 {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}

// float reads a number, or the text of one, as JSON spells it.
func float(v *value, bits int) (float64, bool) {
	switch {
	case v.kind == text && (v.text == "NaN" || v.text == "Infinity" || v.text == "-Infinity"):
		f, err := strconv.ParseFloat(strings.Replace(v.text, "Infinity", "Inf", 1), bits)
		return f, err == nil
	case v.kind == text && (strings.Trim(v.text, "0123456789+-.eE") != "" || !json.Valid([]byte(v.text))):
		return 0, false
	case v.kind != number && v.kind != text:
		return 0, false
	}
	f, err := strconv.ParseFloat(v.text, bits)
	return f, err == nil && !math.IsInf(f, 0)
}

// decodeBase64 reads either alphabet, with or without padding.
func decodeBase64(s string) ([]byte, bool) {
	encoding := base64.StdEncoding
	if strings.ContainsAny(s, "-_") {
		encoding = base64.URLEncoding
	}
	if len(s)%4 != 0 {
		encoding = encoding.WithPadding(base64.NoPadding)
	}
	raw, err := encoding.Strict().DecodeString(s)
	return raw, err == nil && !strings.ContainsAny(s, "\r\n")
}

func enumNumber(ed protoreflect.EnumDescriptor, v *value) (protoreflect.EnumNumber, bool) {
	switch v.kind {
	case null:
		return 0, ed.FullName() == "google.protobuf.NullValue"
	case text:
		return naming.Find(ed, v.text)
	case number:
		n, err := strconv.ParseInt(whole(v), 10, 32)
		number := protoreflect.EnumNumber(n)
		return number, err == nil && ed.Values().ByNumber(number) != nil
	default:
		return 0, false
	}
}

// enum reports a name or number that an enum does not have.
func (d *decoder) enum(ed protoreflect.EnumDescriptor, v *value, at string) {
	names := enumNames(ed)
	problem := Problem{Pointer: at, Text: "expected one of " + strings.Join(names, ", ") + ", got " + v.describe()}
	if v.kind == text {
		problem.Nearest = naming.Nearest(v.text, names)
	}
	d.problems = append(d.problems, problem)
}

func enumNames(ed protoreflect.EnumDescriptor) []string {
	const most = 50
	var names []string
	for i, value := range naming.Offered(ed) {
		if i == most {
			return append(names, "…")
		}
		name, _ := naming.Short(ed, value.Number())
		names = append(names, name)
	}
	return names
}

// key reads the key of a map.
func (d *decoder) key(fd protoreflect.FieldDescriptor, name, at string) (protoreflect.MapKey, bool) {
	v := &value{kind: text, text: name}
	if fd.Kind() == protoreflect.BoolKind && (name == "true" || name == "false") {
		v.kind = boolean
	}
	x, ok := read(fd, v)
	switch fd.Kind() {
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		ok = ok && name != "-0" // a key without a sign has none at 0 either, unlike a value
	default:
	}
	if !ok {
		d.wrong(at, "expected a key that is %s", expectation(fd))
		return protoreflect.MapKey{}, false
	}
	return x.MapKey(), true
}

// expectation says what a value of a field is.
func expectation(fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.StringKind:
		return "text"
	case protoreflect.BytesKind:
		return "base64 text"
	case protoreflect.EnumKind:
		return "one of " + strings.Join(enumNames(fd.Enum()), ", ")
	case protoreflect.MessageKind, protoreflect.GroupKind:
		if text := wellKnownForm(fd.Message().FullName()); text != "" {
			return text
		}
		return "an object"
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return fmt.Sprintf("a whole number from 0 to %d", uint32(math.MaxUint32))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return fmt.Sprintf("a whole number from 0 to %d", uint64(math.MaxUint64))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return fmt.Sprintf("a whole number from %d to %d", math.MinInt32, math.MaxInt32)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return fmt.Sprintf("a whole number from %d to %d", math.MinInt64, math.MaxInt64)
	default:
		return "a number"
	}
}

// anyTypes are the types that the rules let an Any be.
func anyTypes(fd protoreflect.FieldDescriptor) []string {
	rules := catalog.Rules(fd)
	if fd.IsList() {
		rules = rules.GetRepeated().GetItems()
	}
	return rules.GetAny().GetIn()
}
