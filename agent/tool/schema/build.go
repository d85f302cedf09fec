package schema

import (
	"encoding/json"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"throwbar.dev/throwbar/agent/tool/naming"
	"throwbar.dev/throwbar/catalog"
)

// Of models a message, and lists every rule on it and on the messages in it. The comment of a descriptor is what
// comment says.
func Of(md protoreflect.MessageDescriptor, comment func(protoreflect.Descriptor) string) (*Object, []Rule) {
	b := &builder{comment: comment, objects: map[protoreflect.FullName]*Object{}}
	return b.object(md), b.rules
}

type builder struct {
	comment func(protoreflect.Descriptor) string
	objects map[protoreflect.FullName]*Object
	rules   []Rule
}

func (b *builder) object(md protoreflect.MessageDescriptor) *Object {
	if o, ok := b.objects[md.FullName()]; ok {
		return o
	}
	o := &Object{Name: md.FullName(), Text: b.text(md)}
	b.objects[md.FullName()] = o // before its fields, which may hold it
	required := catalog.RequiredFields(md)
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if node := b.field(fd); node != nil {
			o.Properties = append(o.Properties, Property{Name: fd.JSONName(), Node: node, Required: required[fd.Number()]})
		}
	}
	b.oneofs(o, md)
	b.across(o, md)
	return o
}

// text is the comment of a descriptor as one paragraph.
func (b *builder) text(d protoreflect.Descriptor) string {
	return strings.Join(strings.Fields(b.comment(d)), " ")
}

// field models a field, or returns nil if it is not offered.
func (b *builder) field(fd protoreflect.FieldDescriptor) *Node {
	if catalog.Unadvertised(fd) {
		return nil
	}
	rules := catalog.Rules(fd)
	var node *Node
	switch {
	case fd.IsMap():
		node = &Node{
			Kind: KindMap,
			Key:  b.key(fd.MapKey(), rules.GetMap().GetKeys()),
			Item: b.value(fd.MapValue(), rules.GetMap().GetValues()),
		}
	case fd.IsList():
		node = &Node{Kind: KindList, Item: b.value(fd, rules.GetRepeated().GetItems())}
	default:
		node = b.value(fd, rules)
	}
	if node == nil || (node.Kind == KindMap || node.Kind == KindList) && node.Item == nil {
		return nil
	}
	if node.Kind == KindMap || node.Kind == KindList {
		b.apply(node, fd, rules)
	}
	if catalog.RequiresApproval(fd) {
		node.Notes = append(node.Notes, "Needs approval.")
	}
	node.Text = b.text(fd)
	node.Plain = plain(node.Text, string(fd.ContainingMessage().Name())+" "+fd.JSONName())
	node.Paging = fd.Name() == "page_size" || fd.Name() == "page_token"
	return node
}

// value models one value of a field: the field itself, an item of a list, or a value of a map.
func (b *builder) value(fd protoreflect.FieldDescriptor, rules *validate.FieldRules) *Node {
	node := b.scalar(fd, rules)
	if node == nil && fd.Message() != nil {
		node = b.message(fd, rules)
	}
	if node != nil {
		b.apply(node, fd, rules)
	}
	return node
}

// scalar models a value that is not a message, or a wrapper of one.
func (b *builder) scalar(fd protoreflect.FieldDescriptor, rules *validate.FieldRules) *Node {
	kind := fd.Kind()
	if fd.Message() != nil {
		wrapped, ok := wrappers()[fd.Message().FullName()]
		if !ok {
			return nil
		}
		kind = wrapped
	}
	switch kind {
	case protoreflect.BoolKind:
		return &Node{Kind: KindBoolean}
	case protoreflect.StringKind:
		return &Node{Kind: KindString}
	case protoreflect.BytesKind:
		return &Node{Kind: KindString, Notes: []string{"Base64."}}
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return &Node{Kind: KindNumber}
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		if Quoted(fd, rules) {
			return &Node{Kind: KindString, Pattern: "^-?[0-9]+$"}
		}
		return &Node{Kind: KindInteger}
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		if Quoted(fd, rules) {
			return &Node{Kind: KindString, Pattern: "^[0-9]+$"}
		}
		return &Node{Kind: KindInteger}
	case protoreflect.EnumKind:
		return enumNode(fd.Enum(), rules.GetEnum())
	default:
		return &Node{Kind: KindInteger}
	}
}

// Quoted says whether a 64-bit number is text in JSON, because a reader that keeps numbers as doubles might change a
// legal one.
func Quoted(fd protoreflect.FieldDescriptor, rules *validate.FieldRules) bool {
	options, ok := fd.Options().(*descriptorpb.FieldOptions)
	if ok && options.GetJstype() == descriptorpb.FieldOptions_JS_NUMBER {
		return false
	}
	unsigned := fd.Kind() == protoreflect.Uint64Kind || fd.Kind() == protoreflect.Fixed64Kind ||
		fd.Message() != nil && fd.Message().FullName() == "google.protobuf.UInt64Value"
	return !readRange(typeRules(rules)).safe(unsigned)
}

// enumNode is a string that is one of the offered names which the rules allow.
func enumNode(ed protoreflect.EnumDescriptor, rules *validate.EnumRules) *Node {
	node := &Node{Kind: KindString}
	if ed.FullName() == "google.protobuf.NullValue" {
		return &Node{Kind: KindAny, Notes: []string{"Only null."}}
	}
	for _, value := range naming.Offered(ed) {
		if enumAllows(rules, int32(value.Number())) {
			name, _ := naming.Short(ed, value.Number())
			node.Enum = append(node.Enum, quote(name))
		}
	}
	if len(node.Enum) == 0 { // the rules leave only what is not offered otherwise
		for i := range ed.Values().Len() {
			number := ed.Values().Get(i).Number()
			name, ok := naming.Short(ed, number)
			if ok && enumAllows(rules, int32(number)) && !contains(node.Enum, quote(name)) {
				node.Enum = append(node.Enum, quote(name))
			}
		}
	}
	return node
}

func enumAllows(rules *validate.EnumRules, number int32) bool {
	if rules.HasConst() && rules.GetConst() != number {
		return false
	}
	if len(rules.GetIn()) > 0 && !contains(rules.GetIn(), number) {
		return false
	}
	return !contains(rules.GetNotIn(), number)
}

// message models a message: one of the well-known types, which have a JSON form of their own, or an object.
func (b *builder) message(fd protoreflect.FieldDescriptor, rules *validate.FieldRules) *Node {
	md := fd.Message()
	switch md.FullName() {
	case "google.protobuf.Timestamp":
		return &Node{Kind: KindString, Notes: []string{"RFC 3339, for example 2026-01-31T09:00:00Z."}}
	case "google.protobuf.Duration":
		return &Node{Kind: KindString, Pattern: `^-?[0-9]+(\.[0-9]{1,9})?s$`, Notes: []string{"Seconds, for example 1.5s."}}
	case "google.protobuf.FieldMask":
		return &Node{Kind: KindString, Notes: []string{"Field paths in lowerCamel, with commas between."}}
	case "google.protobuf.Value":
		return &Node{Kind: KindAny, Notes: []string{"Any JSON value."}}
	case "google.protobuf.Struct":
		return &Node{Kind: KindMap, Key: &Node{Kind: KindString}, Item: &Node{Kind: KindAny}}
	case "google.protobuf.ListValue":
		return &Node{Kind: KindList, Item: &Node{Kind: KindAny}}
	case "google.protobuf.Any":
		return anyNode(rules)
	default:
		return &Node{Kind: KindObject, Object: b.object(md)}
	}
}

// anyNode offers an Any only where the rules list its types.
func anyNode(rules *validate.FieldRules) *Node {
	types := rules.GetAny().GetIn()
	if len(types) == 0 {
		return nil
	}
	name := &Node{Kind: KindString}
	for _, t := range types {
		name.Enum = append(name.Enum, quote(t))
	}
	return &Node{Kind: KindObject, Object: &Object{
		Name: "google.protobuf.Any", Open: true,
		Properties: []Property{{Name: "@type", Node: name, Required: true}},
		Notes:      []string{"The fields of that type beside it."},
	}}
}

// key models the key of a map, which is a string in JSON.
func (b *builder) key(fd protoreflect.FieldDescriptor, rules *validate.FieldRules) *Node {
	node := &Node{Kind: KindString}
	switch fd.Kind() {
	case protoreflect.StringKind:
	case protoreflect.BoolKind:
		node.Enum = []string{`"true"`, `"false"`}
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		node.Pattern = "^[0-9]+$"
	default:
		node.Pattern = "^-?[0-9]+$"
	}
	b.apply(node, fd, rules)
	return node
}

// oneofs says which fields exclude each other.
func (b *builder) oneofs(o *Object, md protoreflect.MessageDescriptor) {
	for i := range md.Oneofs().Len() {
		od := md.Oneofs().Get(i)
		if od.IsSynthetic() {
			continue
		}
		rules, err := protovalidate.ResolveOneofRules(od)
		required := err == nil && rules.GetRequired()
		var names []string
		for j := range od.Fields().Len() {
			names = named(names, od.Fields().Get(j))
		}
		if required {
			b.rules = append(b.rules, Rule{Field: od.FullName(), Name: "oneof.required", Use: Sentence})
		}
		o.Notes = append(o.Notes, oneOf(names, required)...)
	}
}

// named adds the name of a field that the model is told of.
func named(names []string, fd protoreflect.FieldDescriptor) []string {
	if catalog.Unadvertised(fd) {
		return names
	}
	return append(names, fd.JSONName())
}

func oneOf(names []string, required bool) []string {
	switch {
	case len(names) == 0:
		return nil
	case required:
		return []string{"Set exactly one of " + strings.Join(names, ", ") + "."}
	case len(names) > 1:
		return []string{"Set at most one of " + strings.Join(names, ", ") + "."}
	default:
		return nil
	}
}

// across adds the rules about several fields of a message.
func (b *builder) across(o *Object, md protoreflect.MessageDescriptor) {
	rules, err := protovalidate.ResolveMessageRules(md)
	if err != nil {
		return
	}
	note := func(name string, sentences ...string) {
		b.rules = append(b.rules, Rule{Field: md.FullName(), Name: name, Use: Sentence})
		o.Notes = append(o.Notes, sentences...)
	}
	for _, group := range rules.GetOneof() {
		var names []string
		for _, name := range group.GetFields() {
			if fd := md.Fields().ByName(protoreflect.Name(name)); fd != nil {
				names = named(names, fd)
			}
		}
		note("message.oneof", oneOf(names, group.GetRequired())...)
	}
	for _, rule := range rules.GetCel() {
		note("message.cel", celSentence(rule.GetMessage(), rule.GetExpression()))
	}
	for _, expression := range rules.GetCelExpression() {
		note("message.cel_expression", celSentence("", expression))
	}
}

// plain says whether every word of a text that carries meaning is in the names too.
func plain(text, names string) bool {
	known := map[string]bool{}
	for _, word := range strings.Fields("a an the of to for its it id only this whether they them are too " + spaced(names)) {
		known[stem(word)] = true
	}
	for _, word := range strings.Fields(strings.Trim(text, ".")) {
		if !known[stem(word)] {
			return false
		}
	}
	return true
}

// spaced puts spaces between the words of names in camel case.
func spaced(names string) string {
	var out strings.Builder
	for _, r := range names {
		if r >= 'A' && r <= 'Z' {
			out.WriteByte(' ')
		}
		out.WriteRune(r)
	}
	return out.String()
}

// stem is a word in lower case without the s of the plural.
func stem(word string) string { return strings.TrimSuffix(strings.ToLower(word), "s") }

// celSentence is the author's message for a rule in CEL, or the rule itself.
func celSentence(message, expression string) string {
	if message != "" {
		return sentence(message)
	}
	return "Has to hold: " + strings.Join(strings.Fields(expression), " ") + "."
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// wrappers are the messages whose JSON form is that of their only field.
func wrappers() map[protoreflect.FullName]protoreflect.Kind {
	return map[protoreflect.FullName]protoreflect.Kind{
		"google.protobuf.BoolValue":   protoreflect.BoolKind,
		"google.protobuf.StringValue": protoreflect.StringKind,
		"google.protobuf.BytesValue":  protoreflect.BytesKind,
		"google.protobuf.FloatValue":  protoreflect.FloatKind,
		"google.protobuf.DoubleValue": protoreflect.DoubleKind,
		"google.protobuf.Int32Value":  protoreflect.Int32Kind,
		"google.protobuf.UInt32Value": protoreflect.Uint32Kind,
		"google.protobuf.Int64Value":  protoreflect.Int64Kind,
		"google.protobuf.UInt64Value": protoreflect.Uint64Kind,
	}
}

// quote is a string as JSON, without escapes that only HTML needs.
func quote(s string) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return `""`
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func contains[T comparable](list []T, item T) bool {
	for _, other := range list {
		if other == item {
			return true
		}
	}
	return false
}
