package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
)

// Redacted stands for a text that was there and is sensitive.
const Redacted = "[redacted]"

const anyName = protoreflect.FullName("google.protobuf.Any")

// Redact is a copy of a message without the values of sensitive fields, wherever they are in it: a text is replaced by
// Redacted, anything else is cleared. What cannot be looked into is left out, since nobody knows what it has: unknown
// fields, and an Any of a type that the program was not built with.
func Redact(m proto.Message) proto.Message { return redactor{}.message(m.ProtoReflect()).Interface() }

// Redact is the function of that name, which also looks into what only this catalogue knows: members of the unions that
// the program was not built with, and their like.
func (c *Catalogue) Redact(m proto.Message) proto.Message {
	return redactor{c}.message(m.ProtoReflect()).Interface()
}

// Harmless says that Redact would leave a message as it is: nothing in it is sensitive or cannot be looked into. It is
// much cheaper than a copy.
func (c *Catalogue) Harmless(m proto.Message) bool { return redactor{c}.harmless(m.ProtoReflect()) }

func (r redactor) harmless(m protoreflect.Message) bool {
	md := m.Descriptor()
	if !m.IsValid() || len(m.GetUnknown()) > 0 || md.FullName() == anyName {
		return false
	}
	sensitive, fine := r.sensitive(md), true
	m.Range(func(fd protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case sensitive[fd.Number()] || fd.IsExtension():
			fine = false
		case fd.Message() == nil:
		case fd.IsMap():
			fine = fd.MapValue().Message() == nil
		case fd.IsList():
			for list, n := value.List(), 0; fine && n < list.Len(); n++ {
				fine = r.harmless(list.Get(n).Message())
			}
		default:
			fine = r.harmless(value.Message())
		}
		return fine
	})
	return fine
}

// redactor makes redacted copies.
type redactor struct{ catalogue *Catalogue } // which may be nil

func (r redactor) message(m protoreflect.Message) protoreflect.Message {
	if len(m.GetUnknown()) > 0 {
		if known, ok := r.known(m); ok {
			return known
		}
	}
	out := m.New()
	if !m.IsValid() {
		return out
	}
	if m.Descriptor().FullName() == anyName {
		r.any(m, out)
		return out
	}
	sensitive := r.sensitive(m.Descriptor())
	m.Range(func(fd protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if sensitive[fd.Number()] || fd.IsExtension() && Sensitive(fd) {
			hide(out, fd)
		} else {
			r.field(out, fd, value)
		}
		return true
	})
	return out
}

// sensitive are the sensitive fields of a message. A catalogue remembers them: options are dear to read.
func (r redactor) sensitive(md protoreflect.MessageDescriptor) map[protoreflect.FieldNumber]bool {
	if r.catalogue != nil {
		if known, ok := r.catalogue.sensitive.Load(md); ok {
			numbers, _ := known.(map[protoreflect.FieldNumber]bool)
			return numbers
		}
	}
	var numbers map[protoreflect.FieldNumber]bool
	for n := range md.Fields().Len() {
		if fd := md.Fields().Get(n); Sensitive(fd) {
			if numbers == nil {
				numbers = map[protoreflect.FieldNumber]bool{}
			}
			numbers[fd.Number()] = true
		}
	}
	if r.catalogue != nil && r.catalogue.owns(md) {
		r.catalogue.sensitive.Store(md, numbers)
	}
	return numbers
}

// owns says whether a descriptor lives as long as the program or the catalogue, and not only as long as a message.
func (c *Catalogue) owns(md protoreflect.MessageDescriptor) bool {
	if own, err := c.files.FindDescriptorByName(md.FullName()); err == nil && own == protoreflect.Descriptor(md) {
		return true
	}
	linked, err := protoregistry.GlobalTypes.FindMessageByName(md.FullName())
	return err == nil && linked.Descriptor() == md
}

// hide says that a sensitive field is set, if that can be said in it.
func hide(out protoreflect.Message, fd protoreflect.FieldDescriptor) {
	switch {
	case fd.Kind() != protoreflect.StringKind || fd.IsMap():
	case fd.IsList():
		out.Mutable(fd).List().Append(protoreflect.ValueOfString(Redacted))
	default:
		out.Set(fd, protoreflect.ValueOfString(Redacted))
	}
}

func (r redactor) field(out protoreflect.Message, fd protoreflect.FieldDescriptor, value protoreflect.Value) {
	switch {
	case fd.IsMap():
		to := out.Mutable(fd).Map()
		value.Map().Range(func(key protoreflect.MapKey, one protoreflect.Value) bool {
			if fd.MapValue().Message() != nil {
				one = protoreflect.ValueOfMessage(r.message(one.Message()))
			}
			to.Set(key, one)
			return true
		})
	case fd.IsList():
		to := out.Mutable(fd).List()
		for n := range value.List().Len() {
			one := value.List().Get(n)
			if fd.Message() != nil {
				one = protoreflect.ValueOfMessage(r.message(one.Message()))
			}
			to.Append(one)
		}
	case fd.Message() != nil:
		out.Set(fd, protoreflect.ValueOfMessage(r.message(value.Message())))
	default:
		out.Set(fd, value)
	}
}

// known redacts a message that has fields which the program was not built with, by the catalogue's descriptor.
func (r redactor) known(m protoreflect.Message) (protoreflect.Message, bool) {
	md, ok := r.find(m.Descriptor().FullName())
	if _, dynamic := m.Interface().(*dynamicpb.Message); !ok || dynamic && m.Descriptor() == md {
		return nil, false
	}
	raw, err := proto.Marshal(m.Interface())
	if err != nil {
		return nil, false
	}
	whole := dynamicpb.NewMessage(md)
	if err := proto.Unmarshal(raw, whole); err != nil {
		return nil, false
	}
	// Its nested messages are the catalogue's too, so that nothing in it is unknown but what nobody knows.
	raw, err = proto.MarshalOptions{Deterministic: true}.Marshal(r.message(whole).Interface())
	if err != nil {
		return nil, false
	}
	out := m.New()
	if err := proto.Unmarshal(raw, out.Interface()); err != nil {
		return nil, false
	}
	return out, true
}

func (r redactor) find(name protoreflect.FullName) (protoreflect.MessageDescriptor, bool) {
	if r.catalogue == nil {
		return nil, false
	}
	d, err := r.catalogue.files.FindDescriptorByName(name)
	if err != nil {
		return nil, false
	}
	md, ok := d.(protoreflect.MessageDescriptor)
	return md, ok
}

// any redacts what an Any holds. Without a type that is known its value is left out.
func (r redactor) any(m, out protoreflect.Message) {
	packed := &anypb.Any{}
	raw, err := proto.Marshal(m.Interface())
	if err != nil || proto.Unmarshal(raw, packed) != nil {
		return
	}
	held := &anypb.Any{TypeUrl: packed.GetTypeUrl()}
	if inner, ok := r.newMessage(packed.MessageName()); ok && proto.Unmarshal(packed.GetValue(), inner) == nil {
		held.Value, err = proto.MarshalOptions{Deterministic: true}.Marshal(r.message(inner.ProtoReflect()).Interface())
		if err != nil {
			held.Value = nil
		}
	} else {
		held.TypeUrl = ""
	}
	if raw, err = proto.Marshal(held); err == nil {
		_ = proto.Unmarshal(raw, out.Interface()) // of the same message
	}
}

func (r redactor) newMessage(name protoreflect.FullName) (proto.Message, bool) {
	if md, ok := r.find(name); ok {
		return dynamicpb.NewMessage(md), true
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err != nil {
		return nil, false
	}
	return mt.New().Interface(), true
}

// Secrets are the texts in sensitive fields of a message, wherever they are in it, the longest first. Those of less than
// four characters are left out: they are words of other texts.
func Secrets(m protoreflect.Message) []string {
	const least = 4
	var found []string
	collect(m, false, func(s string) {
		if len(s) >= least {
			found = append(found, s)
		}
	})
	slices.SortFunc(found, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(found)
}

// collect visits the texts of a message that are in sensitive fields; all of them inside of one.
func collect(m protoreflect.Message, inside bool, visit func(string)) {
	m.Range(func(fd protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		secret := inside || Sensitive(fd)
		one := func(fd protoreflect.FieldDescriptor, value protoreflect.Value) {
			switch {
			case fd.Message() != nil:
				collect(value.Message(), secret, visit)
			case secret && fd.Kind() == protoreflect.StringKind:
				visit(value.String())
			case secret && fd.Kind() == protoreflect.BytesKind:
				visit(string(value.Bytes()))
			}
		}
		switch {
		case fd.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				one(fd.MapKey(), key.Value())
				one(fd.MapValue(), value)
				return true
			})
		case fd.IsList():
			for n := range value.List().Len() {
				one(fd, value.List().Get(n))
			}
		default:
			one(fd, value)
		}
		return true
	})
}

// Scrub replaces secrets in a text.
func Scrub(text string, secrets []string) string {
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, Redacted)
	}
	return text
}

// Problem is what is wrong with a message that breaks its rules, in words that have no value of it: of a sensitive field,
// and of a rule in CEL, which may repeat what it was given, only the name of the rule.
func Problem(err error) string {
	var invalid *protovalidate.ValidationError
	if !errors.As(err, &invalid) {
		return "it cannot be checked"
	}
	var words []string
	for _, v := range invalid.Violations {
		words = append(words, violation(v))
	}
	return strings.Join(words, "; ")
}

func violation(v *protovalidate.Violation) string {
	var path strings.Builder
	for _, element := range v.Proto.GetField().GetElements() {
		if path.Len() > 0 {
			path.WriteByte('.')
		}
		path.WriteString(element.GetFieldName())
		switch {
		case element.HasIndex():
			fmt.Fprintf(&path, "[%d]", element.GetIndex())
		case element.HasSubscript(): // the key of a map is a value
			path.WriteString("[…]")
		}
	}
	said := v.Proto.GetMessage()
	sensitive := v.FieldDescriptor != nil && Sensitive(v.FieldDescriptor)
	if said == "" || sensitive || !v.RuleValue.IsValid() && v.RuleDescriptor == nil {
		said = "it breaks the rule " + v.Proto.GetRuleId()
	}
	if path.Len() == 0 {
		return said
	}
	return path.String() + ": " + said
}
