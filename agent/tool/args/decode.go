package args

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/agent/tool/naming"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/catalog"
)

// Options say how to decode.
type Options struct {
	// Strict mends nothing.
	Strict bool
	// Profile is the dialect in which the tool was described. What it asks for is no repair: null for what is left out,
	// and maps as lists of {key, value}.
	Profile schema.Profile
	// Extra are further keys, all of them text, and where their values go. Two keys may share a place, as two names of
	// the same thing.
	Extra map[string]*string
	// Required are those of the further keys that have to be there.
	Required []string
	// Files has the types that an Any may hold.
	Files *protoregistry.Files
}

// requires says whether one of the further keys with a place has to be there.
func (o Options) requires(place *string) bool {
	return slices.ContainsFunc(o.Required, func(name string) bool { return o.Extra[name] == place })
}

// Decoded is what the arguments say.
type Decoded struct {
	Message *dynamicpb.Message
	// Repairs is what was mended, a line each.
	Repairs []string
}

// Decode reads arguments into an empty message and checks its rules. The error is always Problems.
func Decode(source string, into *dynamicpb.Message, options Options) (Decoded, error) {
	d := &decoder{options: options, spelled: map[string]string{}}
	if strings.TrimSpace(source) == "" {
		d.mend("", "expected an object with the arguments, got nothing", "nothing was taken as no arguments")
		source = "{}"
	}
	root, problems := parse(source)
	if d.problems = append(d.problems, problems...); root == nil {
		return Decoded{}, d.problems
	}
	if root.kind == null {
		d.mend("", "expected an object with the arguments, got null", "null was taken as no arguments")
		root = &value{kind: object}
	}
	if root.kind == text {
		root = d.unquote(root, "", object)
	}
	if root.kind != object {
		d.wrong("", "expected an object with the arguments, got "+root.kind.String())
		return Decoded{}, d.problems
	}
	d.root(into, root)
	d.problems = append(d.problems, d.broken(into, "")...)
	if len(d.problems) > 0 {
		return Decoded{}, d.problems
	}
	return Decoded{Message: into, Repairs: d.repairs}, nil
}

type decoder struct {
	options  Options
	problems Problems
	repairs  []string
	meant    []string // pointers that misspelt keys were meant to be
	places   places   // of the problems
	// spelled is where a value stands whose place was not written by its JSON name, by the pointer with that name.
	spelled map[string]string
}

func (d *decoder) wrong(at, format string, args ...any) {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	d.problems = append(d.problems, Problem{Pointer: at, Text: format})
}

// mend notes a repair, or a problem where nothing is mended.
func (d *decoder) mend(at, expected, repair string) bool {
	if d.options.Strict {
		d.wrong(at, "%s", expected)
		return false
	}
	where := at
	if where == "" {
		where = "the arguments"
	}
	d.repairs = append(d.repairs, where+": "+repair)
	return true
}

// root reads the message and the further keys beside its fields.
func (d *decoder) root(m protoreflect.Message, v *value) {
	rest := &value{kind: object}
	set := map[*string]string{}
	for _, mem := range v.members {
		place, ok := d.options.Extra[mem.name]
		if !ok {
			rest.members = append(rest.members, mem)
			continue
		}
		at := below("", mem.name)
		switch other, twice := set[place]; {
		case twice:
			d.wrong(at, "the same argument as %s; set one of them", other)
		case mem.value.kind == null:
			d.null(at, "text")
		case mem.value.kind == text && mem.value.text == "" && !d.options.Strict && !d.options.requires(place):
			d.mend(at, "", "empty text was taken as left out")
		case mem.value.kind != text || mem.value.text == "":
			d.wrong(at, "expected text, got "+mem.value.describe())
			set[place] = mem.name
		default:
			*place, set[place] = mem.value.text, mem.name
		}
	}
	d.message(m, rest, "")
	for _, name := range d.options.Required {
		if _, ok := set[d.options.Extra[name]]; !ok {
			d.wrong(below("", name), "is required")
		}
	}
}

// message reads the members of an object into a message.
func (d *decoder) message(m protoreflect.Message, v *value, at string) {
	seen := map[protoreflect.FieldNumber]string{}
	groups := map[protoreflect.OneofDescriptor]string{}
	for _, mem := range v.members {
		here := below(at, mem.name)
		fd := find(m.Descriptor(), mem.name)
		if fd == nil {
			d.unknown(m.Descriptor(), mem.name, at)
			continue
		}
		if other, ok := seen[fd.Number()]; ok {
			d.wrong(here, "the same argument as %s; set one of them", other)
			continue
		}
		seen[fd.Number()] = mem.name
		if d.absent(fd, mem.value, here) {
			continue
		}
		if group := fd.ContainingOneof(); group != nil && !group.IsSynthetic() {
			if other, ok := groups[group]; ok {
				d.wrong(here, "%s is set too; set only one of them", other)
				continue
			}
			groups[group] = mem.name
		}
		if mem.name != fd.JSONName() {
			d.spelled[below(at, fd.JSONName())] = here
		}
		d.field(m, fd, mem.value, here)
	}
	d.required(m, seen, at)
}

// required finds fields that the contract itself, not a rule, has required, and that were not written.
func (d *decoder) required(m protoreflect.Message, seen map[protoreflect.FieldNumber]string, at string) {
	numbers := m.Descriptor().RequiredNumbers()
	for i := range numbers.Len() {
		fd := m.Descriptor().Fields().ByNumber(numbers.Get(i))
		here := below(at, fd.JSONName())
		if name, ok := seen[fd.Number()]; ok {
			here = below(at, name)
		}
		if !m.Has(fd) && !d.known(here) {
			d.wrong(here, "is required")
		}
	}
}

// find is the field with a JSON name or, where no JSON name fits, with a name of the contract.
func find(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if fd := md.Fields().ByJSONName(name); fd != nil {
		return fd
	}
	return md.Fields().ByName(protoreflect.Name(name))
}

func (d *decoder) unknown(md protoreflect.MessageDescriptor, name, at string) {
	if len(d.problems) >= maxShown { // nobody reads further ones, and a million would take long
		d.problems = append(d.problems, Problem{Pointer: below(at, name)})
		return
	}
	var names []string
	if at == "" {
		for name := range d.options.Extra {
			if !strings.Contains(name, "_") {
				names = append(names, name)
			}
		}
		slices.Sort(names)
	}
	known := slices.Clone(names)
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		known = append(known, fd.JSONName())
		if !catalog.Unadvertised(fd) {
			names = append(names, fd.JSONName())
		}
	}
	nearest := naming.Nearest(name, known)
	text := "unknown key"
	switch {
	case nearest != "":
		d.meant = append(d.meant, below(at, nearest))
	case len(names) == 0:
		text += "; nothing is expected here"
	case len(names) <= 12:
		text += "; expected " + strings.Join(names, ", ")
	}
	d.problems = append(d.problems, Problem{Pointer: below(at, name), Text: text, Nearest: nearest})
}

// absent takes null for what is left out, where null is no value of the field.
func (d *decoder) absent(fd protoreflect.FieldDescriptor, v *value, at string) bool {
	if v.kind != null || !fd.IsList() && !fd.IsMap() && takesNull(fd) {
		return false
	}
	d.null(at, expectation(fd))
	return true
}

// null takes null for what is left out. Strict mode asks for it.
func (d *decoder) null(at, expected string) {
	if d.options.Profile != schema.ProfileStrict {
		d.mend(at, "expected "+expected+", got null", "null was taken as left out")
	}
}

// takesNull says whether null is a value of a field.
func takesNull(fd protoreflect.FieldDescriptor) bool {
	if fd.Message() != nil {
		return fd.Message().FullName() == "google.protobuf.Value"
	}
	return fd.Enum() != nil && fd.Enum().FullName() == "google.protobuf.NullValue"
}

func (d *decoder) field(m protoreflect.Message, fd protoreflect.FieldDescriptor, v *value, at string) {
	switch {
	case fd.IsMap():
		d.mapField(m, fd, v, at)
	case fd.IsList():
		d.listField(m, fd, v, at)
	case fd.Message() != nil:
		d.messageValue(m.Mutable(fd).Message(), fd, v, at)
	default:
		if d.empty(fd, v, at) {
			return
		}
		if x, ok := d.scalar(fd, v, at); ok {
			m.Set(fd, x)
		}
	}
}

// empty takes empty text for what is left out, where the field may be left out and may not be empty.
func (d *decoder) empty(fd protoreflect.FieldDescriptor, v *value, at string) bool {
	if d.options.Strict || v.kind != text || v.text != "" || fd.Kind() != protoreflect.StringKind || !fd.HasPresence() {
		return false
	}
	rules := catalog.Rules(fd)
	if rules.GetRequired() || rules.GetString().GetMinLen() == 0 {
		return false
	}
	return d.mend(at, "", "empty text was taken as left out")
}

func (d *decoder) listField(m protoreflect.Message, fd protoreflect.FieldDescriptor, v *value, at string) {
	if !isValue(fd) { // whose text is a value of its own
		v = d.unquote(v, at, list)
	}
	if v.kind != list {
		if !d.mend(at, "expected a list, got "+v.describe(), "one item was taken as a list of one") {
			return
		}
		v = &value{kind: list, items: []*value{v}}
	}
	out := m.Mutable(fd).List()
	for i, next := range v.items {
		here := item(at, i)
		if next.kind == null && !takesNull(fd) {
			d.wrong(here, "expected "+expectation(fd)+", got null")
			continue
		}
		if fd.Message() == nil {
			if x, ok := d.scalar(fd, next, here); ok {
				out.Append(x)
			}
			continue
		}
		element := out.NewElement()
		d.messageValue(element.Message(), fd, next, here)
		out.Append(element)
	}
}

func (d *decoder) mapField(m protoreflect.Message, fd protoreflect.FieldDescriptor, v *value, at string) {
	v = d.unquote(v, at, object, list)
	entries := d.entries(v, at)
	if entries == nil {
		d.wrong(at, "expected an object, got "+v.describe())
		return
	}
	out, item := m.Mutable(fd).Map(), fd.MapValue()
	for _, e := range *entries {
		key, ok := d.key(fd.MapKey(), e.name, e.keyAt)
		if !ok {
			continue
		}
		if out.Has(key) {
			d.wrong(e.keyAt, "the same key as another one")
			continue
		}
		d.spelled[below(at, key.String())] = e.at
		if e.value.kind == null && !takesNull(item) {
			d.wrong(e.at, "expected "+expectation(item)+", got null")
			continue
		}
		if item.Message() == nil {
			if x, ok := d.scalar(item, e.value, e.at); ok {
				out.Set(key, x)
			}
			continue
		}
		element := out.NewValue()
		d.messageValue(element.Message(), item, e.value, e.at)
		out.Set(key, element)
	}
}

// entry is a key of a map with its value, and where both were written.
type entry struct {
	name, keyAt, at string
	value           *value
}

// entries reads a map: an object, or a list of {key, value}. It is nil if the value is neither.
func (d *decoder) entries(v *value, at string) *[]entry {
	out := []entry{}
	if v.kind == object {
		for _, mem := range v.members {
			here := below(at, mem.name)
			out = append(out, entry{mem.name, here, here, mem.value})
		}
		return &out
	}
	if v.kind != list || !schema.LimitsOf(d.options.Profile).Pairs && !v.pairs() {
		return nil
	}
	if !schema.LimitsOf(d.options.Profile).Pairs &&
		!d.mend(at, "expected an object, got a list", "a list of keys and values was taken as an object") {
		return &out
	}
	for i, next := range v.items {
		if e, ok := d.pair(next, item(at, i)); ok {
			out = append(out, e)
		}
	}
	return &out
}

// pairs says whether a list can be meant as a map: all its items have a key or a value.
func (v *value) pairs() bool {
	for _, next := range v.items {
		if !slices.ContainsFunc(next.members, func(m member) bool { return m.name == "key" || m.name == "value" }) {
			return false
		}
	}
	return true
}

// pair reads one {key, value}. A key that is a number or a truth value is what it is spelled as.
func (d *decoder) pair(v *value, at string) (entry, bool) {
	e := entry{keyAt: below(at, "key"), at: below(at, "value")}
	if v.kind != object {
		d.wrong(at, "expected an object with key and value, got "+v.describe())
		return e, false
	}
	keyed := false
	for _, mem := range v.members {
		switch mem.name {
		case "key":
			if mem.value.kind != text && mem.value.kind != number && mem.value.kind != boolean {
				d.wrong(e.keyAt, "expected text, got "+mem.value.describe())
				return e, false
			}
			e.name, keyed = mem.value.text, true
		case "value":
			e.value = mem.value
		default:
			d.problems = append(d.problems, Problem{Pointer: below(at, mem.name), Text: "unknown key; expected key, value"})
		}
	}
	if !keyed {
		d.wrong(e.keyAt, "is required")
	}
	if e.value == nil {
		d.wrong(e.at, "is required")
	}
	return e, keyed && e.value != nil
}

func (d *decoder) messageValue(m protoreflect.Message, fd protoreflect.FieldDescriptor, v *value, at string) {
	if wellKnown(fd.Message().FullName()) {
		d.wellKnown(m, fd, v, at)
		return
	}
	if v = d.unquote(v, at, object); v.kind != object {
		d.wrong(at, "expected an object, got "+v.describe())
		return
	}
	d.message(m, v, at)
}

// unquote reads a list or object that was written as text.
func (d *decoder) unquote(v *value, at string, wanted ...kind) *value {
	if v.kind != text {
		return v
	}
	inner, problems := parse(v.text)
	if inner == nil || !slices.Contains(wanted, inner.kind) {
		return v
	}
	if !d.mend(at, "expected "+inner.kind.String()+", got text", inner.kind.String()+" written as text was read") {
		return &value{kind: inner.kind} // one problem is enough
	}
	for _, p := range problems {
		d.problems = append(d.problems, Problem{Pointer: at + p.Pointer, Text: p.Text})
	}
	return inner
}

func isValue(fd protoreflect.FieldDescriptor) bool {
	return fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Value"
}

// describe is the value in a message.
func (v *value) describe() string {
	switch v.kind {
	case text:
		return shown(v.text)
	case number, boolean:
		return v.text
	default:
		return v.kind.String()
	}
}
