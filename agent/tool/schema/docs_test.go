package schema_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/tool/tooltest"
)

const page = "../../../docs/tool-schemas.md"

// TestThePageSaysWhatTheCodeDoes: the tables of docs/tool-schemas.md are made here: what each profile takes, and for every
// rule of protovalidate how each profile tells it.
func TestThePageSaysWhatTheCodeDoes(t *testing.T) {
	t.Parallel()
	saved, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := block(t, string(saved), "limits", limitsTable())
	text = block(t, text, "rules", rulesTable(t))
	compareGolden(t, page, text)
}

// block puts a text between the marks of a name.
func block(t *testing.T, text, name, content string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, "<!-- "+name+" -->\n")
	_, after, end := strings.Cut(rest, "<!-- end of "+name+" -->")
	if !ok || !end {
		t.Fatalf("%s has no marks for %s", page, name)
	}
	return before + "<!-- " + name + " -->\n" + content + "<!-- end of " + name + " -->" + after
}

func limitsTable() string {
	var out strings.Builder
	out.WriteString("| |")
	for _, profile := range profiles() {
		fmt.Fprintf(&out, " %s |", profile)
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(profiles())) + "\n")
	yes := map[bool]string{true: "yes", false: "no"}
	row := func(name string, value func(l schema.Limits) string) {
		fmt.Fprintf(&out, "| %s |", name)
		for _, profile := range profiles() {
			fmt.Fprintf(&out, " %s |", value(schema.LimitsOf(profile)))
		}
		out.WriteString("\n")
	}
	row("Tools in one request", func(l schema.Limits) string { return fmt.Sprint(l.Tools) })
	row("Levels of objects and lists", func(l schema.Limits) string { return fmt.Sprint(l.Nesting) })
	row("Properties; values of enums", func(l schema.Limits) string { return fmt.Sprintf("%d; %d", l.Properties, l.Enums) })
	row("Objects are closed", func(l schema.Limits) string { return yes[l.Closed] })
	row("Every property is required, optional ones take null", func(l schema.Limits) string { return yes[l.Required] })
	row("Messages that occur twice, or in themselves", func(l schema.Limits) string {
		if l.Definitions {
			return "`$defs`"
		}
		return fmt.Sprintf("written out, at most %d times in themselves", l.Again)
	})
	row("Maps", func(l schema.Limits) string {
		if l.Pairs {
			return "lists of `{key, value}`"
		}
		return "objects"
	})
	var all []string
	for _, profile := range profiles() {
		for _, keyword := range schema.LimitsOf(profile).Keywords {
			if !slices.Contains(all, keyword) {
				all = append(all, keyword)
			}
		}
	}
	for _, keyword := range all {
		row("`"+keyword+"`", func(l schema.Limits) string { return yes[slices.Contains(l.Keywords, keyword)] })
	}
	return out.String()
}

// told is a rule and how it is told: in the model, and in each profile.
type told struct {
	kinds []string
	rule  string
	cells string
}

func rulesTable(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	out.WriteString("| Rule | Told | portable | openai-strict | gemini | local |\n|---|---|---|---|---|---|\n")
	members := (&validate.FieldRules{}).ProtoReflect().Descriptor().Oneofs().ByName("type").Fields()
	var rows []told
	for i := range members.Len() {
		member := members.Get(i)
		for j := range member.Message().Fields().Len() {
			rule := member.Message().Fields().Get(j)
			rules := &validate.FieldRules{}
			m := rules.ProtoReflect().Mutable(member).Message()
			set(m, rule)
			rows = add(rows, told{[]string{string(member.Name())}, string(rule.Name()), cells(t, string(member.Name()), string(rule.Name()), rules)})
		}
	}
	common := func(name string, rules *validate.FieldRules) {
		rows = add(rows, told{[]string{"any field"}, name, cells(t, "string", name, rules)})
	}
	common("required", validate.FieldRules_builder{Required: proto.Bool(true)}.Build())
	common("cel", validate.FieldRules_builder{Cel: []*validate.Rule{validate.Rule_builder{
		Id: proto.String("c"), Message: proto.String("no spaces"), Expression: proto.String("!this.contains(' ')"),
	}.Build()}}.Build())
	common("cel_expression", validate.FieldRules_builder{CelExpression: []string{"!this.contains(' ')"}}.Build())
	for _, row := range rows {
		name := row.rule
		if row.kinds[0] != "any field" {
			name = strings.Join(row.kinds, ", ") + ": " + row.rule
		}
		fmt.Fprintf(&out, "| %s | %s |\n", name, row.cells)
	}
	out.WriteString("| message: oneof, cel, cel_expression; oneof: required | sentence, in the description of the message or tool | words | words | words | words |\n" +
		"| any field: ignore | turns what an empty value would break into words | words | words | words | words |\n")
	return out.String()
}

// add adds a row, to one that says the same of another kind if there is one.
func add(rows []told, row told) []told {
	for i, other := range rows {
		if other.rule == row.rule && other.cells == row.cells {
			rows[i].kinds = append(rows[i].kinds, row.kinds...)
			return rows
		}
	}
	return append(rows, row)
}

// cells are how a rule is told, for a field of a kind.
func cells(t *testing.T, kind, rule string, rules *validate.FieldRules) string {
	t.Helper()
	plain := &validate.FieldRules{}
	if kind == "any" { // is not offered without a list of types
		plain.SetAny(validate.AnyRules_builder{In: []string{"t/a.B"}}.Build())
		rules.GetAny().SetIn([]string{"t/a.B"})
	}
	o, used := schema.Of(ruled(t, kind, rules), tooltest.Comment)
	without, _ := schema.Of(ruled(t, kind, plain), tooltest.Comment)
	if kind == "any" && rule == "in" {
		return "keyword | " + strings.Repeat("enum of `@type` | ", 3) + "enum of `@type`"
	}
	use := schema.Use(0)
	for _, r := range used {
		if _, name, _ := strings.Cut(r.Name, "."); name == rule || r.Name == rule {
			use = r.Use
		}
	}
	words := map[schema.Use]string{
		schema.Keyword: "keyword", schema.Weaker: "weaker keyword", schema.Sentence: "sentence", schema.Neither: "neither",
	}[use]
	if words == "" {
		t.Errorf("%s.%s is not accounted for", kind, rule)
	}
	parts := []string{words}
	for _, profile := range profiles() {
		parts = append(parts, difference(t, schema.Print(profile, o), schema.Print(profile, without)))
	}
	return strings.Join(parts, " | ")
}

// difference is which keywords a schema has that another has not, and whether it has more words.
func difference(t *testing.T, with, without []byte) string {
	t.Helper()
	count := func(raw []byte) (map[string]int, string) {
		var root any
		if err := json.Unmarshal(raw, &root); err != nil {
			t.Fatal(err)
		}
		keywords, words := map[string]int{}, ""
		var visit func(v any)
		visit = func(v any) {
			if list, ok := v.([]any); ok {
				for _, next := range list {
					visit(next)
				}
			}
			o, _ := v.(map[string]any)
			for name, next := range o {
				if name == "description" {
					words += fmt.Sprint(next)
				} else if keywords[name]++; name == "required" {
					keywords[name] += len(next.([]any))
				} else if name == "enum" {
					keywords[name] += 100 - len(next.([]any)) // fewer values say more
				}
				visit(next)
			}
		}
		visit(root)
		return keywords, words
	}
	some, words := count(with)
	others, before := count(without)
	var out []string
	for name, n := range some {
		if n > others[name] {
			out = append(out, "`"+name+"`")
		}
	}
	slices.Sort(out)
	if words != before {
		out = append(out, "words")
	}
	if len(out) == 0 {
		return "–"
	}
	return strings.Join(out, ", ")
}

// ruled is a message with one field of a kind under rules.
func ruled(t *testing.T, kind string, rules *validate.FieldRules) protoreflect.MessageDescriptor {
	t.Helper()
	declared := map[string]string{
		"enum": "Colour x=1;", "repeated": "repeated string x=1;", "map": "map<string,string> x=1;", "any": "google.protobuf.Any x=1;",
		"duration": "google.protobuf.Duration x=1;", "timestamp": "google.protobuf.Timestamp x=1;", "field_mask": "google.protobuf.FieldMask x=1;",
	}[kind]
	if declared == "" {
		declared = "optional " + kind + " x=1;"
	}
	md := tooltest.Message(t, "enum Colour { COLOUR_UNSPECIFIED=0; COLOUR_RED=1; COLOUR_BLUE=2; } message In { "+declared+" }")
	file := protodesc.ToFileDescriptorProto(md.ParentFile())
	options := &descriptorpb.FieldOptions{}
	proto.SetExtension(options, validate.E_Field, rules)
	for _, m := range file.GetMessageType() {
		if m.GetName() == "In" {
			m.GetField()[0].Options = options
		}
	}
	out, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	return out.Messages().ByName("In")
}

// set sets a rule to a value that it can have.
func set(m protoreflect.Message, fd protoreflect.FieldDescriptor) {
	value := func() protoreflect.Value {
		switch fd.Kind() {
		case protoreflect.BoolKind:
			return protoreflect.ValueOfBool(true)
		case protoreflect.StringKind:
			if fd.Name() == "pattern" {
				return protoreflect.ValueOfString("^[a-z]+$")
			}
			return protoreflect.ValueOfString("a")
		case protoreflect.BytesKind:
			return protoreflect.ValueOfBytes([]byte("a"))
		case protoreflect.EnumKind:
			return protoreflect.ValueOfEnum(1)
		case protoreflect.FloatKind:
			return protoreflect.ValueOfFloat32(2)
		case protoreflect.DoubleKind:
			return protoreflect.ValueOfFloat64(2)
		case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
			return protoreflect.ValueOfInt32(2)
		case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
			return protoreflect.ValueOfInt64(2)
		case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
			return protoreflect.ValueOfUint32(2)
		default:
			return protoreflect.ValueOfUint64(8)
		}
	}
	items := validate.FieldRules_builder{String: validate.StringRules_builder{MaxLen: proto.Uint64(5)}.Build()}.Build()
	switch {
	case fd.IsList() && fd.Message() != nil:
		m.Mutable(fd).List().AppendMutable()
	case fd.IsList():
		m.Mutable(fd).List().Append(value())
	case fd.Message() != nil && fd.Message().Name() == "FieldRules":
		m.Set(fd, protoreflect.ValueOfMessage(items.ProtoReflect()))
	case fd.Message() != nil:
		m.Mutable(fd)
	case fd.Kind() == protoreflect.EnumKind && fd.Name() != "well_known_regex":
		m.Set(fd, protoreflect.ValueOfEnum(1))
	default:
		m.Set(fd, value())
	}
}
