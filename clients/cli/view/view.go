package view

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/clients/cli/args"
	"throwbar.dev/throwbar/clients/cli/term"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

const (
	freshnessName = protoreflect.FullName("throwbar.control.v1.Freshness")
	timestampName = protoreflect.FullName("google.protobuf.Timestamp")
	durationName  = protoreflect.FullName("google.protobuf.Duration")
	statusName    = protoreflect.FullName("throwbar.command.v1.ItemStatus")
)

// Show writes messages for a person.
type Show struct {
	Screen *term.Screen
	Now    time.Time
	Given  bool // it is what a caller gave: leave out what was not given, and hide what is sensitive
}

// Message writes the single values of a message as facts and each of its lists of messages as a table.
func (s Show) Message(m protoreflect.Message, indent int) {
	s.Screen.Facts(indent, s.Facts(m)...)
	first := true
	eachField(m, func(fd protoreflect.FieldDescriptor) {
		if fd.IsList() && fd.Message() != nil && m.Get(fd).List().Len() > 0 {
			if !first {
				s.Screen.Print("\n")
			}
			first = false
			s.List(m.Get(fd).List(), fd.Message(), indent)
		}
	})
}

// Facts are the single values of a message, as pairs of a label and a text.
func (s Show) Facts(m protoreflect.Message) [][2]string {
	var pairs [][2]string
	eachField(m, func(fd protoreflect.FieldDescriptor) {
		switch {
		case fd.IsList() && fd.Message() != nil, (fd.HasPresence() || s.Given) && !m.Has(fd):
		case fd.Message() != nil && !fd.IsMap() && !plainMessage(fd.Message()):
			for _, pair := range s.Facts(m.Get(fd).Message()) {
				pairs = append(pairs, [2]string{label(fd) + " " + pair[0], pair[1]})
			}
		case s.Given && catalog.Sensitive(fd):
			pairs = append(pairs, [2]string{label(fd), "(hidden)"})
		default:
			pairs = append(pairs, [2]string{label(fd), s.value(m, fd, "no")})
		}
	})
	return pairs
}

// List writes messages of one type as a table, without the columns that are empty in all of them.
func (s Show) List(list protoreflect.List, md protoreflect.MessageDescriptor, indent int) {
	t := term.Table{Indent: indent, DropEmpty: true}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		t.Header = append(t.Header, label(fd))
		if fd.Kind() == protoreflect.StringKind && !strings.HasSuffix(string(fd.Name()), "id") {
			t.Shrink = append(t.Shrink, i)
		}
	}
	for i := range list.Len() {
		row := make([]term.Cell, 0, md.Fields().Len())
		for j := range md.Fields().Len() {
			fd := md.Fields().Get(j)
			row = append(row, term.Cell{Text: s.value(list.Get(i).Message(), fd, ""), Style: style(list.Get(i).Message(), fd)})
		}
		t.Rows = append(t.Rows, row)
	}
	s.Screen.Table(t)
}

// style colours the outcome of an item.
func style(m protoreflect.Message, fd protoreflect.FieldDescriptor) term.Style {
	if fd.IsList() || fd.Kind() != protoreflect.EnumKind || fd.Enum().FullName() != statusName {
		return term.Plain
	}
	return ItemStyle(commandv1.ItemStatus(m.Get(fd).Enum()))
}

// ItemStyle colours the status of an item.
func ItemStyle(status commandv1.ItemStatus) term.Style {
	switch {
	case ItemOK(status):
		return term.Green
	case ItemSkipped(status):
		return term.Yellow
	default:
		return term.Red
	}
}

// ItemSkipped says whether an item was left alone on purpose: it is neither done nor has anything gone wrong.
func ItemSkipped(status commandv1.ItemStatus) bool {
	return status == commandv1.ItemStatus_ITEM_STATUS_SKIPPED
}

// ItemOK says whether the status of an item means that the command did what it should.
func ItemOK(status commandv1.ItemStatus) bool {
	return status == commandv1.ItemStatus_ITEM_STATUS_OK || status == commandv1.ItemStatus_ITEM_STATUS_REPLACED
}

func eachField(m protoreflect.Message, visit func(protoreflect.FieldDescriptor)) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		visit(fields.Get(i))
	}
}

// label is a field's name in words.
func label(fd protoreflect.FieldDescriptor) string {
	return strings.ReplaceAll(string(fd.Name()), "_", " ")
}

// plainMessage says whether a message shows as one word.
func plainMessage(md protoreflect.MessageDescriptor) bool {
	switch md.FullName() {
	case freshnessName, timestampName, durationName:
		return true
	default:
		return false
	}
}

// value is the text of a field; no stands for false.
func (s Show) value(m protoreflect.Message, fd protoreflect.FieldDescriptor, no string) string {
	if fd.HasPresence() && !m.Has(fd) {
		return ""
	}
	v := m.Get(fd)
	switch {
	case fd.IsMap():
		var items []string
		v.Map().Range(func(key protoreflect.MapKey, item protoreflect.Value) bool {
			items = append(items, key.String()+"="+s.single(fd.MapValue(), item, "no"))
			return true
		})
		slices.Sort(items)
		return strings.Join(items, ", ")
	case fd.IsList():
		var items []string
		for i := range v.List().Len() {
			items = append(items, s.single(fd, v.List().Get(i), "no"))
		}
		return strings.Join(items, ", ")
	default:
		return s.single(fd, v, no)
	}
}

func (s Show) single(fd protoreflect.FieldDescriptor, v protoreflect.Value, no string) string {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		if v.Bool() {
			return "yes"
		}
		return no
	case protoreflect.EnumKind:
		if v.Enum() == 0 {
			return ""
		}
		return strings.ReplaceAll(args.ShortOf(fd.Enum(), v.Enum()), "_", " ")
	case protoreflect.BytesKind:
		return base64.StdEncoding.EncodeToString(v.Bytes())
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return s.message(v.Message())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	default:
		return v.String()
	}
}

func (s Show) message(m protoreflect.Message) string {
	field := func(name protoreflect.Name) protoreflect.Value {
		return m.Get(m.Descriptor().Fields().ByName(name))
	}
	switch m.Descriptor().FullName() {
	case timestampName:
		return term.When(time.Unix(field("seconds").Int(), field("nanos").Int()), s.Now)
	case durationName:
		return (time.Duration(field("seconds").Int())*time.Second + time.Duration(field("nanos").Int())).String()
	case freshnessName:
		return s.freshness(field("live").Bool(), field("as_of").Message())
	default:
		var words []string
		for _, pair := range s.Facts(m) {
			if pair[1] != "" {
				words = append(words, fmt.Sprintf("%s=%s", strings.ReplaceAll(pair[0], " ", "_"), pair[1]))
			}
		}
		return strings.Join(words, " ")
	}
}

func (s Show) freshness(live bool, asOf protoreflect.Message) string {
	if live {
		return "live"
	}
	if !asOf.IsValid() {
		return "never"
	}
	return s.message(asOf)
}
