package catalog

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// TargetOf is the (target) option of a field.
func TargetOf(fd protoreflect.FieldDescriptor) optionv1.Target {
	t, _ := proto.GetExtension(fd.Options(), optionv1.E_Target).(optionv1.Target)
	return t
}

// Sensitive is the (sensitive) option of a field.
func Sensitive(fd protoreflect.FieldDescriptor) bool {
	s, _ := proto.GetExtension(fd.Options(), optionv1.E_Sensitive).(bool)
	return s
}

// Unadvertised is the (unadvertised) option of a field: the model is not told of it.
func Unadvertised(fd protoreflect.FieldDescriptor) bool {
	u, _ := proto.GetExtension(fd.Options(), optionv1.E_Unadvertised).(bool)
	return u
}

// Ref is one id in a message that points at a target.
type Ref struct {
	Kind  optionv1.Target
	Field protoreflect.FieldDescriptor
	ID    string
}

// Targets are the ids in a message, in field order, also those in nested messages.
func Targets(m protoreflect.Message) []Ref {
	var refs []Ref
	walk(m, func(fd protoreflect.FieldDescriptor, v protoreflect.Value) {
		kind := TargetOf(fd)
		if kind == optionv1.Target_TARGET_UNSPECIFIED || fd.Kind() != protoreflect.StringKind {
			return
		}
		if !fd.IsList() {
			if id := v.String(); id != "" {
				refs = append(refs, Ref{Kind: kind, Field: fd, ID: id})
			}
			return
		}
		for i := range v.List().Len() {
			refs = append(refs, Ref{Kind: kind, Field: fd, ID: v.List().Get(i).String()})
		}
	})
	return refs
}

// walk calls visit for every set field of a message and of its nested messages, in declaration order.
func walk(m protoreflect.Message, visit func(protoreflect.FieldDescriptor, protoreflect.Value)) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if !m.Has(fd) {
			continue
		}
		v := m.Get(fd)
		visit(fd, v)
		switch {
		case fd.IsMap():
			if fd.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, mv protoreflect.Value) bool {
					walk(mv.Message(), visit)
					return true
				})
			}
		case fd.IsList() && fd.Message() != nil:
			for i := range v.List().Len() {
				walk(v.List().Get(i).Message(), visit)
			}
		case fd.Message() != nil:
			walk(v.Message(), visit)
		}
	}
}

// FixesDevice says whether the arguments of a command always say which device runs it: a field that has to be set
// holds composite ids, which name their device.
func (e *Entry) FixesDevice() bool {
	fields := e.In.Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		switch TargetOf(fd) {
		case optionv1.Target_TARGET_TAB, optionv1.Target_TARGET_WINDOW, optionv1.Target_TARGET_GROUP:
			if Required(fd) {
				return true
			}
		default:
		}
	}
	return false
}

// HasSaved says whether the command names saved tabs, which know the device that they were saved on.
func (e *Entry) HasSaved() bool {
	fields := e.In.Fields()
	for i := range fields.Len() {
		if TargetOf(fields.Get(i)) == optionv1.Target_TARGET_SAVED {
			return true
		}
	}
	return false
}

// Undo is the command that undoes another one, by the latter's option.
func (c *Catalogue) Undo(e *Entry) (*Entry, bool) {
	for _, other := range c.commands {
		if name := e.Command.GetUndo(); name != "" && string(other.member.Name()) == name {
			return other, true
		}
	}
	return nil, false
}
