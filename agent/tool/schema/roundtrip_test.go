package schema_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/agent/tool/args"
	"throwbar.dev/throwbar/agent/tool/result"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/tool/tooltest"
	"throwbar.dev/throwbar/catalog"
)

func profiles() []schema.Profile {
	return []schema.Profile{schema.ProfilePortable, schema.ProfileStrict, schema.ProfileGemini, schema.ProfileLocal}
}

// TestRandomMessages: a random message that meets its rules, written as a model would, is accepted by its schema in
// every profile and decodes, with repairs off, to the same message; so does what protojson writes.
func TestRandomMessages(t *testing.T) {
	t.Parallel()
	for _, sample := range tooltest.Corpus(t) {
		t.Run(sample.Name, func(t *testing.T) {
			t.Parallel()
			o, _ := schema.Of(sample.In, sample.Comment)
			var checks []*jsonschema.Schema
			for _, profile := range profiles() {
				checks = append(checks, compile(t, schema.Print(profile, o)))
			}
			random := rand.New(rand.NewPCG(uint64(len(sample.Name)), 7))
			found := 0
			for range 50 {
				m := tooltest.Random(random, sample.In)
				if m == nil {
					continue
				}
				found++
				told := advertised(m)
				for i, profile := range profiles() {
					text, plain := written(t, profile, o, told), plainly(t, m)
					accepts(t, profile, checks[i], text)
					decodesTo(t, profile, text, told)
					decodesTo(t, profile, plain, m)
				}
			}
			if found < 25 {
				t.Errorf("only %d messages", found)
			}
		})
	}
}

// advertised is a message without what the model is not told of.
func advertised(m *dynamicpb.Message) *dynamicpb.Message {
	out := proto.Clone(m).(*dynamicpb.Message) //nolint:forcetypeassert // a clone is of the same type
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if catalog.Unadvertised(fields.Get(i)) {
			out.Clear(fields.Get(i))
		}
	}
	return out
}

// plainly is a message as protojson writes it.
func plainly(t *testing.T, m *dynamicpb.Message) string {
	t.Helper()
	plain, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// written is a message as a model of a profile would write it.
func written(t *testing.T, profile schema.Profile, o *schema.Object, m *dynamicpb.Message) string {
	t.Helper()
	if profile == schema.ProfileStrict && !schema.Strictable(o) {
		profile = schema.ProfilePortable
	}
	return tooltest.Write(profile, o, result.Arguments(m).String())
}

func compile(t *testing.T, raw []byte) *jsonschema.Schema {
	t.Helper()
	// nullable is a keyword of OpenAPI; the oracle knows null as a type.
	text := strings.ReplaceAll(string(raw), `{"type":"string","nullable":true}`, `{"type":["string","null"]}`)
	text = strings.ReplaceAll(text, `,"nullable":true}`, `},{"type":"null"}`)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("tool.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := compiler.Compile("tool.json")
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return s
}

func accepts(t *testing.T, profile schema.Profile, check *jsonschema.Schema, text string) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := check.Validate(doc); err != nil {
		t.Fatalf("%s: the schema refuses %s: %v", profile, text, err)
	}
}

func decodesTo(t *testing.T, profile schema.Profile, source string, m *dynamicpb.Message) {
	t.Helper()
	got, err := args.Decode(source, dynamicpb.NewMessage(m.Descriptor()), args.Options{Strict: true, Profile: profile})
	if err != nil {
		t.Fatalf("%s: decode %s: %v", profile, source, err)
	}
	if !proto.Equal(got.Message, m) || len(got.Repairs) > 0 {
		t.Fatalf("%s: %s decodes to %v with %q, want %v", profile, source, got.Message, got.Repairs, m)
	}
}

// TestRandomDocuments: what the schema accepts decodes, but for what is said in words where it stands, and for the range
// of a number's type and the emptiness of a text, which are not worth words.
func TestRandomDocuments(t *testing.T) {
	t.Parallel()
	for _, sample := range tooltest.Corpus(t) {
		for _, profile := range profiles() {
			t.Run(sample.Name+" "+string(profile), func(t *testing.T) {
				t.Parallel()
				o, _ := schema.Of(sample.In, sample.Comment)
				raw := schema.Print(profile, o)
				check := compile(t, raw)
				var root map[string]any
				if err := json.Unmarshal(raw, &root); err != nil {
					t.Fatal(err)
				}
				documents := tooltest.NewDocuments(rand.New(rand.NewPCG(11, uint64(len(sample.Name)))), root)
				decoded := 0
				for range 50 {
					text := documents.Next()
					accepts(t, profile, check, text)
					_, err := args.Decode(text, dynamicpb.NewMessage(sample.In), args.Options{Strict: true, Profile: profile})
					if err == nil {
						decoded++
						continue
					}
					for _, problem := range err.(args.Problems) {
						if !tooltest.Said(root, o.Notes, problem.Pointer, problem.Text) {
							t.Fatalf("nothing says that %s\nin %s\nschema %s", problem, text, raw)
						}
					}
				}
				if decoded < 7 {
					t.Errorf("only %d documents decoded", decoded)
				}
			})
		}
	}
}

// The corpus, and so every command, query and facility, has no fault in any profile.
func TestNoProviderRefusesTheCorpus(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles() {
		var tools []schema.Named
		for _, sample := range tooltest.Corpus(t) {
			o, rules := schema.Of(sample.In, sample.Comment)
			for _, rule := range rules {
				if rule.Use == 0 {
					t.Errorf("%s: the rule %s on %s is not accounted for", sample.Name, rule.Name, rule.Field)
				}
			}
			raw := schema.Print(profile, o)
			if profile == schema.ProfileStrict && !schema.Strictable(o) {
				if sample.Name != "free" {
					t.Errorf("strict mode cannot say %s", sample.Name)
				}
				if !bytes.Equal(raw, schema.Portable(o)) {
					t.Errorf("%s is not printed as portable", sample.Name)
				}
				continue
			}
			tools = append(tools, schema.Named{Name: sample.Name, Parameters: raw})
		}
		if faults := schema.LintRequest(profile, tools); len(faults) > 0 {
			t.Errorf("%s: %v", profile, faults)
		}
	}
}
