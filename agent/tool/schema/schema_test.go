package schema_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/tool/tooltest"
)

// printed is the schema of a message, without faults.
func printed(t *testing.T, md protoreflect.MessageDescriptor) map[string]any {
	t.Helper()
	o, _ := schema.Of(md, comment)
	raw := schema.Portable(o)
	if faults := schema.Lint(schema.ProfilePortable, raw); len(faults) > 0 {
		t.Errorf("lint: %v\n%s", faults, raw)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return out
}

func property(t *testing.T, root map[string]any, path ...string) map[string]any {
	t.Helper()
	for _, name := range path {
		next, ok := root[name].(map[string]any)
		if !ok {
			properties, _ := root["properties"].(map[string]any)
			next, ok = properties[name].(map[string]any)
		}
		if !ok {
			t.Fatalf("no %s in %v", name, root)
		}
		root = next
	}
	return root
}

const v = "(buf.validate.field)"

// TestFieldSchemas: what one field of In, called x, becomes, as JSON. The rows with a letter T or a number are those
// of facts/toolschema.md.
func TestFieldSchemas(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, proto, want string }{
		{"T2", `message In { repeated int64 x=1 [` + v + `.repeated.min_items=1]; }`,
			`{"type":"array","minItems":1,"items":{"type":"string","pattern":"^-?[0-9]+$"}}`},
		{"T4", `enum Color{option allow_alias=true;COLOR_UNSPECIFIED=0;COLOR_RED=1;COLOR_RUBY=1;COLOR_OLD=2[deprecated=true];}
			message In { Color x=1 [` + v + `.enum={defined_only:true,not_in:[0]}]; }`,
			`{"type":"string","enum":["red"]}`},
		{"T14", `message In { google.protobuf.Duration x=1 [` + v + `.duration={gt:{},lte:{seconds:60}}]; }`,
			`{"description":"Seconds, for example 1.5s. At most 60s. More than 0s.","type":"string","pattern":"^-?[0-9]+(\\.[0-9]{1,9})?s$"}`},
		{"T15, 11", `message In { bytes x=1 [` + v + `.bytes.len=3]; }`,
			`{"description":"Base64.","type":"string","minLength":4,"maxLength":4}`},
		{"12", `message In { string x=1 [` + v + `.string.len_bytes=4]; }`, `{"type":"string","maxLength":4}`},
		{"T17, 13", `message In { string x=1 [` + v + `.string.prefix="a.b"]; }`, `{"type":"string","pattern":"^a\\.b"}`},
		{"T26", `message In { string x=1 [` + v + `.string={pattern:"^\\d+$",max_len:4000}]; }`,
			`{"type":"string","pattern":"^[0-9]+$","maxLength":4000}`},
		{"T27", `message In { string x=1 [` + v + `.string.uri=true]; }`, `{"description":"A URI.","type":"string"}`},
		{"T28", `message In { optional string x=1; }`, `{"type":"string"}`},
		{"T30", `message In { google.protobuf.FieldMask x=1; }`,
			`{"description":"Field paths in lowerCamel, with commas between.","type":"string"}`},
		{"T10", `message Part{string name=1;} message In { map<bool,Part> x=1; }`,
			`{"description":"Keys: \"true\", \"false\".","type":"object","additionalProperties":{"type":"object",
			"properties":{"name":{"type":"string"}}}}`},
		{"10", `message In { map<int64,string> x=1 [` + v + `.map={min_pairs:1,keys:{int64:{gt:0}},values:{string:{max_len:9}}}]; }`,
			`{"description":"At least 1 key. Keys are whole numbers. Keys: At least 1.","type":"object",
			"additionalProperties":{"type":"string","maxLength":9}}`},
		{"7", `message In { int64 x=1 [` + v + `.int64={gte:1,lte:100}]; }`, `{"type":"integer","minimum":1,"maximum":100}`},
		{"int64 beyond doubles", `message In { int64 x=1 [` + v + `.int64={gt:1,lte:9007199254740993}]; }`,
			`{"description":"At least 2 and at most 9007199254740993.","type":"string","pattern":"^-?[0-9]+$"}`},
		{"jstype", `message In { uint64 x=1 [jstype=JS_NUMBER]; }`, `{"type":"integer"}`},
		{"uint64 with an upper end", `message In { uint64 x=1 [` + v + `.uint64.lt=10]; }`, `{"type":"integer","maximum":9}`},
		{"int64 in", `message In { int64 x=1 [` + v + `.int64={in:[5,7]}]; }`, `{"type":"integer","enum":[5,7]}`},
		{"inverted", `message In { int32 x=1 [` + v + `.int32={gt:10,lt:5}]; }`,
			`{"description":"Not between 4 and 11.","type":"integer"}`},
		{"float", `message In { double x=1 [` + v + `.double={gt:0.5,lte:2,finite:true}]; }`,
			`{"description":"More than 0.5.","type":"number","minimum":0.5,"maximum":2}`},
		{"6", `message In { repeated string x=1 [` + v + `.repeated={unique:true,max_items:9,items:{string:{in:["a","b"]}}}]; }`,
			`{"description":"No item twice.","type":"array","maxItems":9,"items":{"type":"string","enum":["a","b"]}}`},
		{"not in, cel", `message In { string x=1 [` + v + `.string={not_in:["a"],not_contains:"b"}, ` + v + `.cel={id:"c",message:"no tabs",
			expression:"!this.contains('\\t')"}]; }`,
			`{"description":"No tabs. Does not contain \"b\". Not \"a\".","type":"string"}`},
		{"two patterns", `message In { string x=1 [` + v + `.string={prefix:"a",suffix:"z"}]; }`,
			`{"description":"Ends with \"z\".","type":"string","pattern":"^a"}`},
		{"pattern of RE2 only", `message In { string x=1 [` + v + `.string.pattern="(?i)^a\\b"]; }`,
			`{"description":"Has to match the regular expression (?i)^a\\b .","type":"string"}`},
		{"ignored when empty", `message In { string x=1 [` + v + `={ignore:IGNORE_IF_ZERO_VALUE,string:{min_len:4,max_len:9}}]; }`,
			`{"description":"Unless left empty: At least 4 characters.","type":"string","maxLength":9}`},
		{"always ignored", `message In { string x=1 [` + v + `={ignore:IGNORE_ALWAYS,string:{min_len:4}}]; }`, `{"type":"string"}`},
		{"wrapper", `message In { google.protobuf.Int32Value x=1 [` + v + `.int32.gte=3]; }`, `{"type":"integer","minimum":3}`},
		{"struct", `message In { google.protobuf.Struct x=1; }`, `{"type":"object","additionalProperties":{}}`},
		{"T9", `message In { repeated google.protobuf.Value x=1; }`,
			`{"type":"array","items":{"description":"Any JSON value."}}`},
		{"any of listed types", `message In { google.protobuf.Any x=1 [` + v + `.any={in:["t/a.B"]}]; }`,
			`{"description":"The fields of that type beside it.","type":"object","properties":{"@type":{"type":"string","enum":["t/a.B"]}},
			"required":["@type"]}`},
		{"empty", `message In { google.protobuf.Empty x=1; }`, `{"type":"object","properties":{}}`},
		{"timestamp", `message In { google.protobuf.Timestamp x=1 [` + v + `.timestamp={lt_now:true,within:{seconds:90}}]; }`,
			`{"description":"RFC 3339, for example 2026-01-31T09:00:00Z. In the past. Within 90s of now.","type":"string"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := property(t, printed(t, tooltest.Message(t, row.proto)), "x")
			var want map[string]any
			if err := json.Unmarshal([]byte(row.want), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				raw, _ := json.Marshal(got)
				t.Errorf("got  %s\nwant %s", raw, row.want)
			}
		})
	}
}

func TestRequiredIsWhatAnEmptyMessageBreaks(t *testing.T) {
	t.Parallel()
	root := printed(t, tooltest.Message(t, `message In {
		repeated string a=1 [`+v+`.repeated.min_items=1];
		string b=2 [`+v+`.string.min_len=1];
		optional string c=3 [`+v+`.string.min_len=1];
		optional bool d=4 [`+v+`.required=true];
		int32 e=5 [`+v+`.int32.gt=0];
		oneof f { option (buf.validate.oneof).required=true; string g=6; string h=7; }
		string plain=8;
	}`))
	if got := root["required"]; !reflect.DeepEqual(got, []any{"a", "b", "d", "e"}) {
		t.Errorf("required: %v", got)
	}
	root = printed(t, tooltest.Edition(t, `message In { string b=2 [`+v+`.string.min_len=1];
		string c=3 [features.field_presence=LEGACY_REQUIRED]; }`))
	if got := root["required"]; !reflect.DeepEqual(got, []any{"c"}) {
		t.Errorf("edition 2023: required: %v", got)
	}
}

// T6: a choice at the root is a sentence, not a union.
func TestOneofsAreSentences(t *testing.T) {
	t.Parallel()
	md := tooltest.Message(t, `message In {
		option (buf.validate.message).oneof={fields:["first_one","second"],required:true};
		oneof what { string url=1; int64 tab=2; }
		optional string first_one=3; optional string second=4;
	}`)
	root := printed(t, md)
	if _, ok := root["properties"].(map[string]any)["url"]; !ok {
		t.Errorf("no url at the root: %v", root)
	}
	o, _ := schema.Of(md, comment)
	want := []string{"Set at most one of url, tab.", "Set exactly one of firstOne, second."}
	if !reflect.DeepEqual(o.Notes, want) {
		t.Errorf("notes: %q", o.Notes)
	}
}

// T11: a message within itself ends, and the model is a graph.
func TestRecursionEnds(t *testing.T) {
	t.Parallel()
	md := tooltest.Message(t, `message In { string name=1; repeated In kids=2; map<string,In> named=3; }`)
	root := printed(t, md)
	third := property(t, root, "kids", "items", "kids", "items")
	last := property(t, third, "kids", "items")
	if _, ok := last["properties"]; ok || last["type"] != "object" {
		t.Errorf("the fourth level: %v", last)
	}
	if o, _ := schema.Of(md, comment); o.Properties[1].Node.Item.Object != o {
		t.Error("the model is no graph")
	}
	if raw := schema.Portable(mustOf(md)); len(raw) > 20000 {
		t.Errorf("%d bytes", len(raw))
	}
}

func mustOf(md protoreflect.MessageDescriptor) *schema.Object {
	o, _ := schema.Of(md, comment)
	return o
}

// A message that branches without end is bounded too.
func TestWideRecursionIsBounded(t *testing.T) {
	t.Parallel()
	var fields strings.Builder
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		fields.WriteString("Node " + name + "=" + string('1'+name[0]-'a') + ";")
	}
	raw := schema.Portable(mustOf(tooltest.Message(t, `message Node {`+fields.String()+`} message In { Node x=1; }`)))
	if len(raw) > 100_000 {
		t.Errorf("%d bytes", len(raw))
	}
}

// T12: both texts reach the model where one message is used twice.
func TestAMessageUsedTwiceKeepsBothTexts(t *testing.T) {
	t.Parallel()
	root := printed(t, tooltest.Message(t, `message Addr{string street=1;} message In {
		// Where it is.
		Addr home=1;
		// Where it goes.
		Addr work=2;
	}`))
	if a, b := property(t, root, "home")["description"], property(t, root, "work")["description"]; a != "Where it is." || b != "Where it goes." {
		t.Errorf("%v, %v", a, b)
	}
}

// T19: a delimited message is an object like any other.
func TestDelimitedMessagesAreObjects(t *testing.T) {
	t.Parallel()
	root := printed(t, tooltest.Edition(t, `message Part{string name=1;} message In { Part part=1 [features.message_encoding=DELIMITED]; }`))
	if property(t, root, "part")["type"] != "object" {
		t.Errorf("%v", root)
	}
}

// T23: no arguments are an object all the same.
func TestNoArgumentsAreAnObject(t *testing.T) {
	t.Parallel()
	raw := schema.Portable(mustOf(tooltest.Message(t, `message In {}`)))
	if string(raw) != `{"type":"object","properties":{}}` {
		t.Errorf("%s", raw)
	}
}

func TestATextThatRepeatsTheNameIsLeftOut(t *testing.T) {
	t.Parallel()
	root := printed(t, tooltest.Message(t, `message In {
		// Ids of the tabs.
		repeated string tab_ids=1;
		// True pins, false unpins.
		bool pinned=2;
	}`))
	if text, ok := property(t, root, "tabIds")["description"]; ok {
		t.Errorf("tabIds: %v", text)
	}
	if property(t, root, "pinned")["description"] == nil {
		t.Error("pinned has no text")
	}
}

func TestPatternsArePortableOrWords(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ in, want string }{
		{`^\d{2,4}$`, `^[0-9]{2,4}$`}, {`\w+@\s?`, `[0-9A-Z_a-z]+@[\t\n\x0c\r ]?`}, {`a|(b|c)d`, `a|([bc])d`}, {`(ab)*`, `(ab)*`},
		{`[^"/]+`, `[^"/]+`}, {`.`, `[^\n]`}, {`x{3}`, `x{3}`}, {`x{3,}`, `x{3,}`}, {`a\.b`, `a\.b`},
		{`(?i)a`, ""}, {`\bx`, ""}, {`(?m)^x`, ""}, {`x+?`, ""}, {`(?s).`, ""}, {`[`, ""}, {`😀`, ""},
	} {
		got, ok := schema.Pattern(row.in)
		if ok != (row.want != "") || ok && got != row.want {
			t.Errorf("%s: %s, %v; want %s", row.in, got, ok, row.want)
		}
	}
}

func TestLintFindsWhatProvidersRefuse(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`[]`, `{"type":"string"}`, `{"type":"object"}`, `{"type":"object","properties":{"a b":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{"type":["string","null"]}}}`, `{"type":"object","properties":{"a":{"type":"array"}}}`,
		`{"type":"object","properties":{},"oneOf":[]}`, `{"type":"object","properties":{},"required":["a"]}`,
		`{"type":"object","properties":{"a":{"type":"string","enum":[]}}}`, `{"type":"object","properties":{"a":{"format":"uri"}}}`,
	} {
		if len(schema.Lint(schema.ProfilePortable, []byte(raw))) == 0 {
			t.Errorf("no fault in %s", raw)
		}
	}
}
