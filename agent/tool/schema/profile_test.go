package schema_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/tool/tooltest"
)

// TestLintKnowsEachLimit: what each provider refuses, by a part of the fault. Rows are for the profiles named; the others
// take it.
func TestLintKnowsEachLimit(t *testing.T) {
	t.Parallel()
	const p, s, g, l = schema.ProfilePortable, schema.ProfileStrict, schema.ProfileGemini, schema.ProfileLocal
	open := func(x string) string { return `{"type":"object","properties":{"x":` + x + `}}` }
	closed := func(x string) string {
		return `{"type":"object","properties":{"x":` + x + `},"required":["x"],"additionalProperties":false}`
	}
	long := strings.Repeat("n", 65)
	for _, row := range []struct {
		raw, fault string
		in         []schema.Profile
	}{
		{`[]`, "the root is no object", profiles()},
		{`{"type":"object"}`, "the root has no properties", profiles()},
		{`{"type":"object","properties":{"a":{"type":"string"},"a":{"type":"string"}}}`, "the key a occurs twice", profiles()},
		{open(`{"type":"string"}`), "the object is not closed", []schema.Profile{s}},
		{open(`{"type":"string"}`), "not every property is required", []schema.Profile{s}},
		{closed(`{"type":"string"}`), "the keyword additionalProperties", []schema.Profile{g, l}},
		{open(`{"type":["string","null"]}`), "a type that is not one word", []schema.Profile{p, g, l}},
		{open(`{"type":["string","integer"]}`), "a type that is not one word", profiles()},
		{open(`{"type":7}`), "a type that is no word", profiles()},
		{open(`{"description":"x"}`), "no type", []schema.Profile{s, g}},
		{open(`{"type":"array"}`), "a list without items", profiles()},
		{open(`{"type":"array","items":true}`), "no schema, but true", profiles()},
		{open(`{"type":"string","enum":[]}`), "an empty enum", profiles()},
		{open(`{"type":"integer","enum":[1]}`), "an enum of something else than text", []schema.Profile{g}},
		{closed(`{"type":["string","null"],"enum":["a"]}`), "null is in the type or in the enum", profiles()},
		{open(`{"type":"string","maxLength":2000}`), "the keyword maxLength", []schema.Profile{s, l}},
		{open(`{"type":"string","pattern":"^(a|b)$"}`), "is not anchored, or has a group", []schema.Profile{l}},
		{open(`{"type":"string","pattern":"a"}`), "is not anchored, or has a group", []schema.Profile{l}},
		{open(`{"type":"string","pattern":"^\\d$"}`), `has \d`, profiles()},
		{open(`{"type":"array","items":{"type":"string"},"minItems":1}`), "the keyword minItems", []schema.Profile{l}},
		{open(`{"type":"array","items":{"type":"string"},"uniqueItems":true}`), "the keyword uniqueItems", profiles()},
		{open(`{"type":"string","format":"uri"}`), "the keyword format", profiles()},
		{open(`{"type":"object","properties":{},"patternProperties":{}}`), "the keyword patternProperties", profiles()},
		{open(`{"type":"object","properties":{},"propertyNames":{}}`), "the keyword propertyNames", profiles()},
		{open(`{"type":"integer","exclusiveMinimum":1}`), "the keyword exclusiveMinimum", []schema.Profile{p, g, l}},
		{open(`{"allOf":[]}`), "the keyword allOf", profiles()},
		{`{"type":"object","properties":{},"anyOf":[{"type":"object"}]}`, "anyOf at the root", profiles()},
		{open(`{"description":"x","anyOf":[{"type":"string"}]}`), "with keywords beside it", []schema.Profile{g}},
		{closed(`{"$ref":"#","description":"x"}`), "keywords beside $ref", profiles()},
		{closed(`{"$ref":"#/$defs/No"}`), "which is not there", profiles()},
		{`{"type":"object","properties":{},"required":[],"additionalProperties":false,"$defs":{"A":{"type":"string"}}}`, "nothing refers to it", profiles()},
		{`{"type":"object","properties":{},"required":["a"]}`, "a is required and not there", profiles()},
		{`{"type":"object","properties":{"` + long + `":{"type":"string"}}}`, "a key that not every provider takes", profiles()},
		{open(strings.Repeat(`{"type":"array","items":`, 10) + `{"type":"string"}` + strings.Repeat("}", 10)), "deeper than 10 levels", profiles()},
		{open(`{"type":"string","enum":["` + strings.Join(many(1001), `","`) + `"]}`), "1001 values of enums; at most 1000", profiles()},
		{open(`{"type":"string","enum":["` + strings.Join(many(251), strings.Repeat("x", 60)+`","`) + `"]}`), "an enum of 251 values", profiles()},
		{`{"type":"object","properties":{"` + strings.Join(many(5001), `":{"type":"string"},"`) + `":{"type":"string"}}}`, "5001 properties; at most 5000", profiles()},
		{open(`{"type":"string","enum":["` + strings.Repeat("x", 120_001) + `"]}`), "characters of names and enums", profiles()},
	} {
		for _, profile := range profiles() {
			faults := strings.Join(schema.Lint(profile, []byte(row.raw)), "\n")
			want := false
			for _, in := range row.in {
				want = want || in == profile
			}
			if strings.Contains(faults, row.fault) != want {
				t.Errorf("%s: %.200s\nfaults %q, %q among them should be %v", profile, row.raw, faults, row.fault, want)
			}
		}
	}
}

func many(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint("n", i)
	}
	return out
}

// Strict mode has limits that no provider tells of before it refuses: what is beyond them is offered without it, in a form
// that has no fault.
func TestStrictModeEndsAtItsLimits(t *testing.T) {
	t.Parallel()
	chain := func(n int) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, "message M%d { M%d next=1; string s=2; } ", i, i+1)
		}
		fmt.Fprintf(&out, "message M%d { string s=1; } message In { M0 first=1; }", n)
		return out.String()
	}
	enum := func(n int, name string) string {
		var out strings.Builder
		out.WriteString("enum E { E_UNSPECIFIED=0;")
		for i := range n {
			fmt.Fprintf(&out, "E_%s%d=%d;", name, i, i+1)
		}
		return out.String() + "} message In { E e=1; }"
	}
	fields := func(n int) string {
		var out strings.Builder
		out.WriteString("message In {")
		for i := range n {
			fmt.Fprintf(&out, "string f%d=%d;", i, i+1)
		}
		return out.String() + "}"
	}
	for _, row := range []struct {
		name, proto string
		want        bool
	}{
		{"nested within the limit", chain(8), true},
		{"nested too deep", chain(9), false},
		{"lists count as levels", `message A { repeated B b=1; } message B { repeated C c=1; } message C { repeated D d=1; } message D { repeated E e=1; }
			message E { string s=1; } message In { repeated A a=1; }`, false},
		{"many values", enum(900, "V"), true}, {"too many values", enum(1001, "V"), false},
		{"a long enum of long names", enum(251, strings.Repeat("LONG", 20)), false},
		{"many fields", fields(5000), true}, {"too many fields", fields(5001), false},
		{"any JSON value", `message In { google.protobuf.Value v=1; }`, false},
		{"a struct", `message In { google.protobuf.Struct v=1; }`, false},
		{"a choice of null", `message In { google.protobuf.NullValue v=1; }`, false},
		{"a message of a listed type", `message In { google.protobuf.Any v=1 [` + v + `.any={in:["t/a.B"]}]; }`, false},
		{"free inside a map", `message A { google.protobuf.Value v=1; } message In { map<string,A> m=1; }`, false},
		{"in itself", `message In { In next=1; map<string,In> m=2; }`, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			o, _ := schema.Of(tooltest.Message(t, row.proto), comment)
			if got := schema.Strictable(o); got != row.want {
				t.Errorf("strictable: %v", got)
			}
			raw := schema.Print(schema.ProfileStrict, o)
			if !row.want {
				if !bytes.Equal(raw, schema.Portable(o)) {
					t.Error("not printed as portable")
				}
				return
			}
			if faults := schema.Lint(schema.ProfileStrict, raw); len(faults) > 0 {
				t.Errorf("%q", faults)
			}
		})
	}
	for _, proto := range []string{chain(20), chain(9)} { // written out, it ends within the levels that providers take
		o, _ := schema.Of(tooltest.Message(t, proto), comment)
		for _, profile := range profiles() {
			lint := profile
			if profile == schema.ProfileStrict {
				lint = schema.ProfilePortable
			}
			if faults := schema.Lint(lint, schema.Print(profile, o)); len(faults) > 0 {
				t.Errorf("%s: %q", profile, faults)
			}
		}
	}
}

// Whatever a profile drops is said in words.
func TestWhatAProfileDropsIsSaid(t *testing.T) {
	t.Parallel()
	o, _ := schema.Of(tooltest.Message(t, `message In {
		repeated string a=1 [`+v+`.repeated={min_items:2,max_items:9,unique:true}]; optional int32 b=2 [`+v+`.int32={gt:3,lt:8}];
		optional double c=3 [`+v+`.double={gt:0.5}]; optional string d=4 [`+v+`.string={min_len:2,max_len:2500,suffix:"z"}];
		optional int32 e=5 [`+v+`.int32={in:[5,7]}]; map<int32,string> f=6 [`+v+`.map={min_pairs:1}]; optional bool g=7 [`+v+`.bool.const=true];
	}`), comment)
	for profile, want := range map[schema.Profile][]string{
		schema.ProfilePortable: {`"a":{"description":"No item twice.","type":"array","minItems":2,"maxItems":9`, `"minimum":4,"maximum":7`,
			`"description":"More than 0.5.","type":"number","minimum":0.5`, `"pattern":"z$","minLength":2,"maxLength":2500`, `"enum":[5,7]`, `"description":"At least 1 key. Keys are whole numbers."`, `"enum":[true]`},
		schema.ProfileStrict: {`"description":"No item twice.","type":"array","minItems":2,"maxItems":9`, `"exclusiveMinimum":0.5`, `"description":"At least 2 characters. At most 2500 characters.","type":["string","null"],"pattern":"z$"`,
			`"enum":[5,7,null]`, `"f":{"description":"No key twice.","type":"array","minItems":1`, `"g":{"type":["boolean","null"],"enum":[true,null]}`},
		schema.ProfileGemini: {`"e":{"description":"One of 5, 7.","type":"integer"}`, `"g":{"description":"Only true.","type":"boolean"}`, `"f":{"description":"No key twice.","type":"array","minItems":1`},
		schema.ProfileLocal: {`"description":"No item twice. At least 2 items. At most 9 items."`, `"description":"At least 4 and at most 7."`, `"description":"More than 0.5."`,
			`"d":{"description":"Matches z$ . At least 2 characters. At most 2500 characters.","type":"string"}`, `"description":"At least 1 key. No key twice."`},
	} {
		raw := string(schema.Print(profile, o))
		for _, part := range want {
			if !strings.Contains(raw, part) {
				t.Errorf("%s: %s\nhas no %s", profile, raw, part)
			}
		}
	}
}
