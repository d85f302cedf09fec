package main

import (
	"fmt"
	"slices"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// table is the rules of one message.
type table struct {
	message protoreflect.MessageDescriptor
	fields  []field
}

// field is the rules of one field, or of a field whose message has some.
type field struct {
	desc     protoreflect.FieldDescriptor
	required string // "set" or "nonzero"; empty if it is not
	skipZero bool
	checks   []check
	each     []check // of the items of a list
	nested   bool    // the field holds a message that has a table
}

// check is one rule: its id, the call that makes it in TypeScript, and values around its border.
type check struct {
	id      string
	call    string
	samples []any // JSON values of the field or item
}

// readTables finds the rules of every message that an action can hold. Results are none of them: they are what the
// device itself makes.
func readTables(action protoreflect.MessageDescriptor) ([]table, error) {
	r := reader{tables: map[protoreflect.FullName]*table{}}
	if err := r.read(action); err != nil {
		return nil, err
	}
	var out []table
	for _, name := range r.order {
		if t := r.tables[name]; len(t.fields) > 0 && name != action.FullName() {
			out = append(out, *t)
		}
	}
	return out, nil
}

type reader struct {
	tables map[protoreflect.FullName]*table
	order  []protoreflect.FullName
}

func (r *reader) read(m protoreflect.MessageDescriptor) error {
	if r.tables[m.FullName()] != nil {
		return nil
	}
	if rules, err := protovalidate.ResolveMessageRules(m); err != nil || rules != nil {
		return fmt.Errorf("%s: rules of a whole message cannot be expressed: %v", m.FullName(), err)
	}
	t := &table{message: m}
	r.tables[m.FullName()] = t
	r.order = append(r.order, m.FullName())
	for i := range m.Oneofs().Len() {
		if rules, err := protovalidate.ResolveOneofRules(m.Oneofs().Get(i)); err != nil || rules != nil {
			return fmt.Errorf("%s: rules of a oneof cannot be expressed: %v", m.Oneofs().Get(i).FullName(), err)
		}
	}
	for i := range m.Fields().Len() {
		f, err := r.field(m.Fields().Get(i))
		if err != nil {
			return err
		}
		if f.nested || f.required != "" || len(f.checks) > 0 || len(f.each) > 0 {
			t.fields = append(t.fields, f)
		}
	}
	return nil
}

func (r *reader) field(fd protoreflect.FieldDescriptor) (field, error) {
	f := field{desc: fd}
	if !fd.IsMap() && fd.Message() != nil && fd.Message().ParentFile().Package() == fd.ParentFile().Package() {
		if err := r.read(fd.Message()); err != nil {
			return f, err
		}
		inner := r.tables[fd.Message().FullName()]
		f.nested = inner != nil && len(inner.fields) > 0
	}
	rules, err := protovalidate.ResolveFieldRules(fd)
	if err != nil {
		return f, fmt.Errorf("%s: %w", fd.FullName(), err)
	}
	if rules == nil {
		return f, nil
	}
	if fd.IsMap() {
		return f, fmt.Errorf("%s: rules of a map cannot be expressed", fd.FullName())
	}
	if err := f.common(rules); err != nil {
		return f, err
	}
	if fd.IsList() {
		err = f.list(rules)
	} else {
		f.checks, err = valueChecks(fd, rules)
	}
	if err != nil {
		return f, fmt.Errorf("%s: %w", fd.FullName(), err)
	}
	return f, nil
}

// common reads what every kind of field can have.
func (f *field) common(rules *validate.FieldRules) error {
	if len(rules.GetCel())+len(rules.GetCelExpression()) > 0 {
		return fmt.Errorf("%s: a CEL rule cannot be expressed", f.desc.FullName())
	}
	switch rules.GetIgnore() {
	case validate.Ignore_IGNORE_UNSPECIFIED:
	case validate.Ignore_IGNORE_IF_ZERO_VALUE:
		f.skipZero = true
	default:
		return fmt.Errorf("%s: ignore %s cannot be expressed", f.desc.FullName(), rules.GetIgnore())
	}
	if rules.GetRequired() {
		f.required = "nonzero"
		if f.desc.HasPresence() {
			f.required = "set"
		}
	}
	return nil
}

func (f *field) list(rules *validate.FieldRules) error {
	list := rules.GetRepeated()
	if list == nil {
		return nil
	}
	if err := onlyKnown(list, "min_items", "max_items", "unique", "items"); err != nil {
		return err
	}
	if list.MinItems != nil {
		n := list.GetMinItems()
		f.checks = append(f.checks, check{id: "repeated.min_items", call: fmt.Sprintf("minItems(%d)", n), samples: lists(f.desc, n)})
	}
	if list.MaxItems != nil {
		n := list.GetMaxItems()
		f.checks = append(f.checks, check{id: "repeated.max_items", call: fmt.Sprintf("maxItems(%d)", n), samples: lists(f.desc, n)})
	}
	if list.GetUnique() {
		f.checks = append(f.checks, check{id: "repeated.unique", call: "unique()", samples: []any{
			[]any{sampleItem(f.desc), sampleItem(f.desc)},
		}})
	}
	items := list.GetItems()
	if items == nil {
		return nil
	}
	if items.GetRequired() || items.GetIgnore() != 0 || len(items.GetCel())+len(items.GetCelExpression()) > 0 {
		return fmt.Errorf("this rule of its items cannot be expressed: %v", items)
	}
	each, err := valueChecks(f.desc, items)
	f.each = each
	return err
}

// onlyKnown refuses rules beside the named ones. Examples are no rules.
func onlyKnown(rules protoreflect.ProtoMessage, known ...string) error {
	var err error
	rules.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Name() != "example" && !slices.Contains(known, string(fd.Name())) {
			err = fmt.Errorf("the rule %s = %v cannot be expressed: teach it to tools/cmd/gen-es-checks", fd.FullName(), v)
		}
		return err == nil
	})
	if err == nil && len(rules.ProtoReflect().GetUnknown()) > 0 {
		err = fmt.Errorf("it has a rule that this program does not know")
	}
	return err
}
