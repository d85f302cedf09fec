package schema

import (
	"encoding/base64"
	"fmt"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// typeRules is the part of a field's rules that depends on its type; nil if there is none.
func typeRules(rules *validate.FieldRules) protoreflect.Message {
	m := rules.ProtoReflect()
	fd := m.WhichOneof(m.Descriptor().Oneofs().ByName("type"))
	if fd == nil {
		return nil
	}
	return m.Get(fd).Message()
}

// applier adds the rules of one value to its node.
type applier struct {
	*builder
	node  *Node
	field protoreflect.FieldDescriptor
}

// apply adds the rules of a value to its node.
func (b *builder) apply(node *Node, fd protoreflect.FieldDescriptor, rules *validate.FieldRules) {
	if rules == nil || rules.GetIgnore() == validate.Ignore_IGNORE_ALWAYS {
		return
	}
	a := applier{builder: b, node: node, field: fd}
	if rules.GetRequired() {
		a.used("required", Keyword)
	}
	for _, rule := range rules.GetCel() {
		a.say("cel", celSentence(rule.GetMessage(), rule.GetExpression()))
	}
	for _, expression := range rules.GetCelExpression() {
		a.say("cel_expression", celSentence("", expression))
	}
	if m := typeRules(rules); m != nil {
		a.typed(m)
	}
	if rules.GetIgnore() == validate.Ignore_IGNORE_IF_ZERO_VALUE {
		relax(node)
	}
}

// used notes how a rule is told.
func (a applier) used(name string, use Use) {
	a.rules = append(a.rules, Rule{Field: a.field.FullName(), Name: name, Use: use})
}

// say adds a sentence for a rule.
func (a applier) say(name, format string, args ...any) {
	a.used(name, Sentence)
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	a.node.Notes = append(a.node.Notes, format)
}

// typed goes through the rules that are set, in the order of their numbers.
func (a applier) typed(m protoreflect.Message) {
	kind := strings.ToLower(strings.TrimSuffix(string(m.Descriptor().Name()), "Rules"))
	fields := m.Descriptor().Fields()
	numeric := m.Descriptor().Fields().ByName("lt") != nil && kind != "duration" && kind != "timestamp"
	if numeric {
		a.numbers(kind, readRange(m))
	}
	for i := range fields.Len() {
		fd := fields.Get(i)
		if !m.Has(fd) {
			continue
		}
		name, v := kind+"."+string(fd.Name()), m.Get(fd)
		if fd.Name() == "example" || fd.Kind() == protoreflect.BoolKind && !fd.IsList() && kind != "bool" && !v.Bool() {
			a.used(name, Neither)
			continue
		}
		if numeric && a.listed(name, string(fd.Name()), v) {
			continue
		}
		switch kind {
		case "string":
			a.text(name, fd, v)
		case "bytes":
			a.bytes(name, fd, v)
		case "repeated", "map":
			a.many(name, fd, v)
		case "enum":
			a.used(name, Keyword) // enumNode has done it
		case "bool":
			a.node.Enum = []string{fmt.Sprint(v.Bool())}
			a.used(name, Keyword)
		case "any":
			a.anyRule(name, fd, v)
		default:
			a.worded(name, fd, v)
		}
	}
}

// text adds a rule on a string.
func (a applier) text(name string, fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	n := a.node
	switch fd.Name() {
	case "const":
		n.Enum = []string{quote(v.String())}
		a.used(name, Keyword)
	case "in":
		n.Enum = nil
		for i := range v.List().Len() {
			n.Enum = append(n.Enum, quote(v.List().Get(i).String()))
		}
		a.used(name, Keyword)
	case "len", "min_len", "max_len":
		a.size(name, fd.Name(), v.Uint(), v.Uint(), Keyword)
	case "len_bytes", "min_bytes", "max_bytes":
		a.size(name, fd.Name(), (v.Uint()+3)/4, v.Uint(), Weaker)
	case "pattern":
		a.pattern(name, v.String(), fmt.Sprintf("Has to match the regular expression %s .", v.String()))
	case "prefix":
		a.pattern(name, "^"+literal(v.String()), "Begins with "+quote(v.String())+".")
	case "suffix":
		a.pattern(name, literal(v.String())+"$", "Ends with "+quote(v.String())+".")
	case "contains":
		a.pattern(name, literal(v.String()), "Contains "+quote(v.String())+".")
	case "not_contains":
		a.say(name, "Does not contain %s.", quote(v.String()))
	case "not_in":
		a.say(name, "Not %s.", join(v.List(), func(v protoreflect.Value) string { return quote(v.String()) }))
	case "strict":
		a.used(name, Neither)
	case "well_known_regex":
		a.say(name, "The %s of an HTTP header.", map[bool]string{true: "name", false: "value"}[v.Enum() == 1])
	default:
		a.format(name, string(fd.Name()))
	}
}

// format adds a rule that names a known form.
func (a applier) format(name, form string) {
	words := map[string]string{
		"email": "An email address.", "hostname": "A host name.", "ip": "An IP address.", "ipv4": "An IPv4 address.",
		"ipv6": "An IPv6 address.", "uri": "A URI.", "uri_ref": "A URI or a relative reference.",
		"address": "A host name or an IP address.", "uuid": "A UUID.", "tuuid": "A UUID without dashes.",
		"ip_with_prefixlen":   "An IP address with prefix length, for example 10.0.0.7/8.",
		"ipv4_with_prefixlen": "An IPv4 address with prefix length, for example 10.0.0.7/8.",
		"ipv6_with_prefixlen": "An IPv6 address with prefix length, for example fd00::7/8.",
		"ip_prefix":           "An IP prefix, for example 10.0.0.0/8.", "ipv4_prefix": "An IPv4 prefix, for example 10.0.0.0/8.",
		"ipv6_prefix": "An IPv6 prefix, for example fd00::/8.", "host_and_port": "Host and port, for example localhost:80.",
		"ulid": "A ULID.", "protobuf_fqn": "The full name of something in protobuf.",
		"protobuf_dot_fqn": "The full name of something in protobuf, after a dot.",
	}[form]
	if words == "" {
		a.used(name, Neither)
		return
	}
	a.say(name, "%s", words)
}

// bytes adds a rule on bytes, which are base64 in JSON.
func (a applier) bytes(name string, fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	encode := func(v protoreflect.Value) string { return quote(base64.StdEncoding.EncodeToString(v.Bytes())) }
	length := func(n uint64) uint64 { return (n + 2) / 3 * 4 }
	switch fd.Name() {
	case "const":
		a.node.Enum = []string{encode(v)}
		a.used(name, Keyword)
	case "in":
		a.node.Enum = nil
		for i := range v.List().Len() {
			a.node.Enum = append(a.node.Enum, encode(v.List().Get(i)))
		}
		a.used(name, Keyword)
	case "len", "min_len", "max_len":
		a.size(name, fd.Name(), length(v.Uint()), length(v.Uint()), Weaker)
	case "pattern":
		a.say(name, "The bytes match the regular expression %s .", v.String())
	case "prefix", "suffix", "contains":
		a.say(name, "The bytes have the %s %x (hexadecimal).", map[protoreflect.Name]string{
			"prefix": "beginning", "suffix": "end", "contains": "part"}[fd.Name()], v.Bytes())
	case "not_in":
		a.say(name, "Not %s.", join(v.List(), encode))
	default:
		a.format(name, string(fd.Name()))
	}
}

// many adds a rule on a list or map.
func (a applier) many(name string, fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch fd.Name() {
	case "min_items", "min_pairs":
		a.size(name, "min_len", v.Uint(), 0, Keyword)
	case "max_items", "max_pairs":
		a.size(name, "max_len", 0, v.Uint(), Keyword)
	case "unique":
		a.node.Unique = true
		a.used(name, Keyword)
	default: // items, keys and values: the builder has given them to the parts
		a.used(name, Keyword)
	}
}

// size bounds the size of a value.
func (a applier) size(name string, rule protoreflect.Name, least, most uint64, use Use) {
	if !strings.HasPrefix(string(rule), "max") && (a.node.MinSize == nil || *a.node.MinSize < least) {
		a.node.MinSize = &least
	}
	if !strings.HasPrefix(string(rule), "min") && (a.node.MaxSize == nil || *a.node.MaxSize > most) {
		a.node.MaxSize = &most
	}
	a.used(name, use)
}

// pattern adds a regular expression, or words where it is not portable or there is one already.
func (a applier) pattern(name, expression, words string) {
	if portable, ok := Pattern(expression); ok && a.node.Pattern == "" {
		a.node.Pattern = portable
		a.used(name, Keyword)
		return
	}
	a.say(name, "%s", words)
}

// anyRule adds a rule on an Any; its types are offered by anyNode.
func (a applier) anyRule(name string, fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	if fd.Name() == "in" {
		a.used(name, Keyword)
		return
	}
	a.say(name, "Not of type %s.", join(v.List(), protoreflect.Value.String))
}

// worded adds a rule on a duration, time or field mask.
func (a applier) worded(name string, fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	phrase := map[protoreflect.Name]string{
		"const": "Only %s.", "lt": "Less than %s.", "lte": "At most %s.", "gt": "More than %s.", "gte": "At least %s.",
		"in": "One of %s.", "not_in": "Not %s.", "within": "Within %s of now.",
	}[fd.Name()]
	switch fd.Name() {
	case "lt_now":
		a.say(name, "In the past.")
		return
	case "gt_now":
		a.say(name, "In the future.")
		return
	}
	if phrase == "" {
		a.used(name, Neither)
		return
	}
	if strings.HasPrefix(name, "timestamp.") {
		phrase = strings.NewReplacer("Less than", "Before", "At most", "Not after", "More than", "After", "At least", "Not before").
			Replace(phrase)
	}
	if fd.IsList() {
		a.say(name, phrase, join(v.List(), worded))
		return
	}
	a.say(name, phrase, worded(v))
}

// worded is a value of a rule as the caller would write it.
func worded(v protoreflect.Value) string {
	m, ok := v.Interface().(protoreflect.Message)
	if !ok {
		return v.String()
	}
	switch m := m.Interface().(type) {
	case *durationpb.Duration:
		text := fmt.Sprintf("%d.%09d", m.GetSeconds(), max(m.GetNanos(), -m.GetNanos()))
		return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + "s"
	case *timestamppb.Timestamp:
		return m.AsTime().Format("2006-01-02T15:04:05.999999999Z07:00")
	default:
		if paths := m.ProtoReflect().Descriptor().Fields().ByName("paths"); paths != nil {
			return join(m.ProtoReflect().Get(paths).List(), protoreflect.Value.String)
		}
		return fmt.Sprint(m)
	}
}

func join(list protoreflect.List, text func(protoreflect.Value) string) string {
	words := make([]string, list.Len())
	for i := range words {
		words[i] = text(list.Get(i))
	}
	return strings.Join(words, ", ")
}

// relax turns what an empty value would break into sentences: such a value is not looked at.
func relax(n *Node) {
	var words []string
	if n.MinSize != nil && *n.MinSize > 0 {
		words = append(words, n.minSize())
		n.MinSize = nil
	}
	if n.Pattern != "" && !digits(n.Pattern) {
		words = append(words, "Matches "+n.Pattern+" .")
		n.Pattern = ""
	}
	if n.Least != nil || n.Most != nil {
		words = append(words, n.rangeWords())
		n.Least, n.Most = nil, nil
	}
	if len(n.Enum) > 0 {
		words = append(words, "One of "+strings.Join(n.Enum, ", ")+".")
		n.Enum = nil
	}
	if len(words) > 0 {
		n.Notes = append(n.Notes, "Unless left empty: "+strings.Join(words, " "))
	}
}

// digits says whether a pattern is that of a 64-bit number, which no rule made.
func digits(pattern string) bool { return pattern == "^[0-9]+$" || pattern == "^-?[0-9]+$" }
