package args

import (
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/catalog"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

const (
	durationName  = protoreflect.FullName("google.protobuf.Duration")
	timestampName = protoreflect.FullName("google.protobuf.Timestamp")
)

// field is the value of one flag.
type field struct {
	fd     protoreflect.FieldDescriptor
	name   string
	values []protoreflect.Value
}

// hasFlag says whether a field has a form on the command line.
func hasFlag(fd protoreflect.FieldDescriptor) bool {
	if fd.IsMap() {
		return false
	}
	if m := fd.Message(); m != nil {
		return m.FullName() == durationName || m.FullName() == timestampName
	}
	return true
}

// String is empty: a flag has no default of its own.
func (f *field) String() string { return "" }

// Type is the word for the value in the help text.
func (f *field) Type() string { return word(f.fd) }

// Set takes one occurrence of the flag.
func (f *field) Set(text string) error {
	if !f.fd.IsList() {
		v, err := parse(f.fd, text)
		if err != nil {
			return err
		}
		f.values = []protoreflect.Value{v}
		return nil
	}
	items, err := split(text)
	if err != nil {
		return err
	}
	for _, item := range items {
		v, err := parse(f.fd, item)
		if err != nil {
			return err
		}
		f.values = append(f.values, v)
	}
	return nil
}

// split takes a list apart at commas and line ends. An item in double quotes may hold them.
func split(text string) ([]string, error) {
	reader := csv.NewReader(strings.NewReader(text))
	reader.FieldsPerRecord = -1
	reader.TrimLeadingSpace = true
	records, err := reader.ReadAll()
	if err != nil {
		return nil, errors.New("is no comma-separated list: put items that hold commas or quotes in double quotes")
	}
	var items []string
	for _, record := range records {
		for _, item := range record {
			item = strings.TrimSpace(item)
			if item == "" {
				return nil, errors.New("has an empty item")
			}
			items = append(items, item)
		}
	}
	if len(items) == 0 {
		return nil, errors.New("is empty")
	}
	return items, nil
}

// write sets the field of a message.
func (f *field) write(m *dynamicpb.Message) {
	if !f.fd.IsList() {
		m.Set(f.fd, f.values[0])
		return
	}
	m.Clear(f.fd)
	list := m.Mutable(f.fd).List()
	for _, v := range f.values {
		list.Append(v)
	}
}

// word is a short word for the values of a field.
func word(fd protoreflect.FieldDescriptor) string {
	one := "text"
	switch kind := fd.Kind(); {
	case kind == protoreflect.StringKind:
		switch catalog.TargetOf(fd) {
		case optionv1.Target_TARGET_UNSPECIFIED, optionv1.Target_TARGET_TAB_URL:
		case optionv1.Target_TARGET_DEVICE:
			one = "device"
		default:
			one = "id"
		}
	case kind == protoreflect.BoolKind:
		one = "bool"
	case kind == protoreflect.EnumKind:
		one = "name"
	case kind == protoreflect.BytesKind:
		one = "base64"
	case fd.Message() != nil && fd.Message().FullName() == durationName:
		one = "duration"
	case fd.Message() != nil:
		one = "time"
	default:
		one = "number"
	}
	switch {
	case fd.IsList():
		return one + "," + one
	case one == "bool":
		return ""
	default:
		return one
	}
}

// parse reads one value.
func parse(fd protoreflect.FieldDescriptor, text string) (protoreflect.Value, error) {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return protoreflect.Value{}, errors.New("is neither true nor false")
		}
		return protoreflect.ValueOfBool(b), nil
	case protoreflect.StringKind:
		if !utf8.ValidString(text) {
			return protoreflect.Value{}, errors.New("is not UTF-8")
		}
		return protoreflect.ValueOfString(text), nil
	case protoreflect.BytesKind:
		return parseBytes(text)
	case protoreflect.EnumKind:
		return parseEnum(fd, text)
	case protoreflect.MessageKind:
		return parseMessage(fd.Message(), text)
	default:
		return parseNumber(fd.Kind(), text)
	}
}

func parseNumber(kind protoreflect.Kind, text string) (protoreflect.Value, error) {
	var v protoreflect.Value
	var err error
	switch kind {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		var n int64
		n, err = strconv.ParseInt(text, 10, 32)
		v = protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		v = protoreflect.ValueOfInt64(n)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		var n uint64
		n, err = strconv.ParseUint(text, 10, 32)
		v = protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		var n uint64
		n, err = strconv.ParseUint(text, 10, 64)
		v = protoreflect.ValueOfUint64(n)
	case protoreflect.FloatKind:
		var x float64
		x, err = strconv.ParseFloat(text, 32)
		v = protoreflect.ValueOfFloat32(float32(x))
	default:
		var x float64
		x, err = strconv.ParseFloat(text, 64)
		v = protoreflect.ValueOfFloat64(x)
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		return protoreflect.Value{}, errors.New("is out of range")
	case err != nil:
		return protoreflect.Value{}, fmt.Errorf("is no number of the kind %s", kind)
	}
	return v, nil
}

func parseBytes(text string) (protoreflect.Value, error) {
	plain := strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(text), "=")
	raw, err := base64.RawStdEncoding.DecodeString(plain)
	if err != nil {
		return protoreflect.Value{}, errors.New("is no base64")
	}
	return protoreflect.ValueOfBytes(raw), nil
}

// parseMessage reads a duration (1m30s) or a time (RFC 3339).
func parseMessage(md protoreflect.MessageDescriptor, text string) (protoreflect.Value, error) {
	var seconds int64
	var nanos int
	if md.FullName() == durationName {
		d, err := time.ParseDuration(text)
		if err != nil {
			return protoreflect.Value{}, errors.New("is no duration such as 10s or 1m30s")
		}
		seconds, nanos = int64(d/time.Second), int(d%time.Second)
	} else {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return protoreflect.Value{}, errors.New("is no time such as 2026-11-28T09:30:00Z")
		}
		seconds, nanos = t.Unix(), t.Nanosecond()
	}
	m := dynamicpb.NewMessage(md)
	m.Set(md.Fields().ByName("seconds"), protoreflect.ValueOfInt64(seconds))
	m.Set(md.Fields().ByName("nanos"), protoreflect.ValueOfInt32(int32(nanos)))
	return protoreflect.ValueOfMessage(m), nil
}
