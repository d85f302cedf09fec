package tool_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/agent/tool/args"
	"throwbar.dev/throwbar/agent/tool/result"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/tool/tooltest"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
)

const v = "(buf.validate.field)"

// zoo has a field of every kind and most rules.
const zoo = `
enum Color { COLOR_UNSPECIFIED=0; COLOR_RED=1; COLOR_BLUE=2; COLOR_OLD=3 [deprecated=true]; }
message Part { string name=1 [` + v + `.string={min_len:1,max_len:9}]; repeated In again=2 [` + v + `.repeated.max_items=1]; int64 n=3; }
message In {
	bool b=1; int32 i=2 [` + v + `.int32={gt:-100000,lte:100000}]; optional sint64 s=3; uint64 u=4; fixed32 f=5; sfixed64 sf=6;
	float fl=7; double d=8 [` + v + `.double.finite=true]; string text=9 [` + v + `.string={max_bytes:40}];
	optional string prefixed=10 [` + v + `.string={prefix:"a.b",suffix:"z"}]; bytes raw=11 [` + v + `.bytes={max_len:7}];
	Color color=12; repeated Color colors=13 [` + v + `.repeated.unique=true]; repeated int64 ids=14 [` + v + `.repeated={min_items:1,max_items:4}];
	map<string,string> map=15; map<int64,Part> parts=16; map<bool,double> flags=17; map<uint32,Color> shades=18;
	Part part=19; repeated Part more=20; oneof which { string url=21; int64 tab=22; Part inner=23; }
	google.protobuf.Timestamp at=24; google.protobuf.Duration pause=25; google.protobuf.FieldMask mask=26; google.protobuf.Struct st=27;
	google.protobuf.Value value=28; google.protobuf.ListValue list=29; google.protobuf.Int64Value wrapped=30; google.protobuf.Empty empty=31;
	google.protobuf.Any any=32; int64 small=33 [` + v + `.int64={gte:-5,lte:500}]; uint64 js=34 [jstype=JS_NUMBER];
	optional string choice=35 [` + v + `.string={in:["x","y \"z\""]}]; google.protobuf.BoolValue truth=36; google.protobuf.UInt64Value big=37;
}`

// TestRandomMessages: a random message that meets its rules, written as a model would, is accepted by its schema and
// decodes to the same message; so does what protojson writes.
func TestRandomMessages(t *testing.T) {
	t.Parallel()
	messages := []protoreflect.MessageDescriptor{tooltest.Message(t, zoo)}
	c, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range append(c.Commands(), c.Queries()...) {
		messages = append(messages, e.In)
	}
	for _, md := range messages {
		t.Run(string(md.Name()), func(t *testing.T) {
			t.Parallel()
			o, _ := schema.Of(md, func(protoreflect.Descriptor) string { return "" })
			check := compile(t, schema.Portable(o))
			seed := uint64(len(md.FullName()))
			random := rand.New(rand.NewPCG(seed, 7))
			found := 0
			for range 300 {
				if m := tooltest.Random(random, md); m != nil {
					found++
					roundTrip(t, check, m)
				}
			}
			if found < 100 {
				t.Errorf("only %d messages", found)
			}
		})
	}
}

func compile(t *testing.T, raw []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("tool.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := compiler.Compile("tool.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func roundTrip(t *testing.T, check *jsonschema.Schema, m *dynamicpb.Message) {
	t.Helper()
	text := result.Arguments(m).String()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := check.Validate(doc); err != nil {
		t.Fatalf("schema refuses %s: %v", text, err)
	}
	raw, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{text, string(raw)} {
		got, err := args.Decode(source, dynamicpb.NewMessage(m.Descriptor()), args.Options{Strict: true})
		if err != nil {
			t.Fatalf("decode %s: %v", source, err)
		}
		if !proto.Equal(got.Message, m) {
			t.Fatalf("%s decodes to %v, want %v", source, got.Message, m)
		}
	}
}

// TestSchemaValidMeansDecodable: what the schema accepts decodes, but for rules that are words or weaker keywords.
func TestTheSchemaHidesNothing(t *testing.T) {
	t.Parallel()
	set := load(t, gen.Descriptors)
	for _, tl := range set.Tools() {
		if faults := schema.Lint(schema.ProfilePortable, schema.Portable(tl.Schema)); len(faults) > 0 {
			t.Errorf("%s: %v", tl.Name, faults)
		}
		for _, rule := range tl.Rules {
			if rule.Use == schema.Neither {
				t.Errorf("%s: the rule %s on %s is told nowhere", tl.Name, rule.Name, rule.Field)
			}
		}
	}
}
