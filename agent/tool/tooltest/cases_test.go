package tooltest_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/agent/tool/args"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/tool/tooltest"
	"throwbar.dev/throwbar/catalog"
)

const v = "(buf.validate.field)"

// TestCases are the cases of public bug reports, by the ids of facts/toolschema.md §7: what a field becomes in a schema and
// what arguments decode to. T25 and T32, which are about names and about more tools than a request carries, are at the end
// and in package tool.
func TestCases(t *testing.T) {
	t.Parallel()
	for _, c := range slices.Concat(numberCases(), formCases(), shapeCases(), textCases()) {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			compile := tooltest.Message
			if c.edition {
				compile = tooltest.Edition
			}
			md := compile(t, c.proto)
			for profile, want := range c.prints {
				expectSchema(t, md, profile, want)
			}
			for _, a := range c.arguments {
				expectDecode(t, md, a)
			}
		})
	}
}

// testCase is a row of the table. Each schema is a part of what a profile prints.
type testCase struct {
	id, proto string
	edition   bool
	prints    map[schema.Profile][]string
	arguments []arguments
}

// arguments decode to what protojson reads from want, after a number of repairs, or have the problems, each by its
// beginning.
type arguments struct {
	in, want string
	repairs  int
	problems []string
	strict   bool // with repairs off
}

func portable(parts ...string) map[schema.Profile][]string {
	return map[schema.Profile][]string{schema.ProfilePortable: parts}
}

func numberCases() []testCase {
	ids := `message In { repeated int64 tab_ids=1 [` + v + `.repeated.min_items=1]; }`
	return []testCase{
		{id: "T1", proto: ids, arguments: []arguments{
			{in: `{"tab_ids":[9007199254740993,"9007199254740995"]}`, want: `{"tabIds":["9007199254740993","9007199254740995"]}`},
		}},
		{id: "T2", proto: ids, prints: portable(`"minItems":1`, `"required":["tabIds"]`), arguments: []arguments{
			{in: `{}`, problems: []string{"/tabIds: must contain at least 1 item"}},
			{in: `{"tab_ids":null}`, problems: []string{"/tabIds: must contain at least 1 item"}},
		}},
		{id: "T3", proto: ids, arguments: []arguments{
			{in: `{"tab_idz":[1]}`, problems: []string{"/tab_idz: unknown key; did you mean tabIds?"}},
		}},
		{id: "T4", proto: `enum Color{option allow_alias=true;COLOR_UNSPECIFIED=0;COLOR_RED=1;COLOR_RUBY=1;COLOR_OLD=2[deprecated=true];}
			message In { Color color=1 [` + v + `.enum={defined_only:true,not_in:[0]}]; }`,
			prints: portable(`"enum":["red"]`, `"required":["color"]`), arguments: []arguments{
				{in: `{"color":"magenta"}`, problems: []string{`/color: expected one of red, got "magenta"`}},
				{in: `{"color":"red"}`, want: `{"color":1}`}, {in: `{"color":"COLOR_RUBY"}`, want: `{"color":1}`},
				{in: `{"color":9}`, problems: []string{"/color: expected one of red, got 9"}},
				{in: `{"color":0}`, problems: []string{"/color: "}}, {in: `{}`, problems: []string{"/color: "}},
			}},
		{id: "T5", edition: true, proto: `enum Op{option features.enum_type=CLOSED;OP_KEEP=1;OP_DROP=2;} message In { Op op=1; }`,
			prints: portable(`"enum":["keep","drop"]`), arguments: []arguments{
				{in: `{"op":7}`, problems: []string{"/op: expected one of keep, drop, got 7"}}, {in: `{"op":"drop"}`, want: `{"op":"OP_DROP"}`},
			}},
		{id: "T10", proto: `message Part{string name=1;} message In { map<int64,string> titles=1; map<bool,Part> flags=2; }`,
			prints: map[schema.Profile][]string{
				schema.ProfilePortable: {`"additionalProperties":{"type":"string"}`, `"additionalProperties":{"type":"object","properties":{"name":{"type":"string"}}}`},
				schema.ProfileStrict:   {`{"key":{"type":"string","pattern":"^-?[0-9]+$"},"value":{"type":"string"}}`, `"key":{"type":"string","enum":["true","false"]},"value":{"type":"object","properties":{"name":`},
			}, arguments: []arguments{
				{in: `{"titles":{"12":"x"},"flags":{"true":{"name":"y"}}}`, want: `{"titles":{"12":"x"},"flags":{"true":{"name":"y"}}}`},
				{in: `{"titles":[{"key":"12","value":"x"}],"flags":[{"key":true,"value":{"name":"y"}}]}`, want: `{"titles":{"12":"x"},"flags":{"true":{"name":"y"}}}`, repairs: 2},
				{in: `{"titles":{"1e1":"x"}}`, problems: []string{"/titles/1e1: expected a key that is a whole number"}},
				{in: `{"titles":[{"key":"1"},{"value":"x"},{"key":"2","value":"x","extra":1},{"key":"2","value":"y"}]}`, problems: []string{
					"/titles/0/value: is required", "/titles/1/key: is required", "/titles/2/extra: unknown key", "/titles/3/key: the same key"}},
			}},
		{id: "T15", proto: `message In { bytes key=1 [` + v + `.bytes.len=3]; }`, prints: portable(`"minLength":4,"maxLength":4`), arguments: []arguments{
			{in: `{"key":"AQID"}`, want: `{"key":"AQID"}`}, {in: `{"key":"_-8-"}`, want: `{"key":"/+8+"}`}, {in: `{"key":"AQIDBA=="}`, problems: []string{"/key: "}},
		}},
		{id: "2", proto: `message In { google.protobuf.UInt64Value n=1; }`, arguments: []arguments{
			{in: `{"n":18446744073709551615}`, want: `{"n":"18446744073709551615"}`},
		}},
		{id: "7", proto: `message In { int64 n=1 [` + v + `.int64={gte:1,lte:100}]; }`, prints: portable(`"n":{"type":"integer","minimum":1,"maximum":100}`)},
	}
}

func formCases() []testCase {
	return []testCase{
		{id: "T9", proto: `message In { google.protobuf.Value data=1; repeated google.protobuf.Value more=2; }`, arguments: []arguments{
			{in: `{"data":"42","more":["{\"a\":1}",null]}`, want: `{"data":"42","more":["{\"a\":1}",null]}`},
			{in: `{"data":"true"}`, want: `{"data":"true"}`},
		}},
		{id: "T14", proto: `message In { google.protobuf.Duration pause=1 [` + v + `.duration={gt:{},lte:{seconds:60}}]; }`,
			prints: portable("At most 60s. More than 0s.", `"pattern":"^-?[0-9]+(\\.[0-9]{1,9})?s$"`), arguments: []arguments{
				{in: `{"pause":"PT5S"}`, problems: []string{`/pause: expected seconds like 5s or 1.5s, got "PT5S"; did you mean 5s?`}},
				{in: `{"pause":5}`, problems: []string{`/pause: expected seconds like 5s or 1.5s, got 5; did you mean 5s?`}},
				{in: `{"pause":"1.0000000001s"}`, problems: []string{"/pause: "}}, {in: `{"pause":"0s"}`, problems: []string{"/pause: "}},
				{in: `{"pause":"5s"}`, want: `{"pause":"5s"}`},
			}},
		{id: "T17", proto: `message In { string host=1 [` + v + `.string.prefix="a.b"]; }`, prints: portable(`"pattern":"^a\\.b"`), arguments: []arguments{
			{in: `{"host":"axb"}`, problems: []string{"/host: "}},
		}},
		{id: "T26", proto: `message In { string id=1 [` + v + `.string={pattern:"^\\d+$",max_len:4000}]; }`, prints: map[schema.Profile][]string{
			schema.ProfileLocal: {`{"description":"At most 4000 characters.","type":"string","pattern":"^[0-9]+$"}`},
		}},
		{id: "T27", proto: `message In { string url=1 [` + v + `.string.uri=true]; }`, prints: map[schema.Profile][]string{
			schema.ProfilePortable: {`{"description":"A URI.","type":"string"}`}, schema.ProfileStrict: {`"description":"A URI."`},
			schema.ProfileLocal: {`{"description":"A URI.","type":"string"}`},
		}, arguments: []arguments{{in: `{"url":"not a url"}`, problems: []string{"/url: "}}}},
		{id: "T28", proto: `message In { optional int32 n=1; optional string s=2; }`, prints: map[schema.Profile][]string{
			schema.ProfileGemini: {`{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}}}`},
			schema.ProfileLocal:  {`{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}}}`},
			schema.ProfileStrict: {`"n":{"type":["integer","null"]}`, `"required":["n","s"],"additionalProperties":false`},
		}},
		{id: "T30", proto: `message In { google.protobuf.FieldMask fields=1; }`, arguments: []arguments{
			{in: `{"fields":"windowId,tab.url"}`, want: `{"fields":"windowId,tab.url"}`},
			{in: `{"fields":"window_id"}`, problems: []string{"/fields: expected field paths in lowerCamel with commas between, like windowId,tab.url, got \"window_id\"; did you mean windowId?"}},
			{in: `{"fields":["windowId"]}`, problems: []string{"/fields: expected field paths"}},
		}},
		{id: "12", proto: `message In { string x=1 [` + v + `.string.len_bytes=4]; }`, prints: portable(`{"type":"string","maxLength":4}`)},
		{id: "10", proto: `message In { map<bool,string> a=1; map<int64,string> b=2; }`,
			prints: map[schema.Profile][]string{schema.ProfileStrict: {`"key":{"type":"string","enum":["true","false"]}`}}},
		{id: "18", edition: true, proto: `message In { string x=1 [features.field_presence=LEGACY_REQUIRED]; }`, prints: portable(`"required":["x"]`),
			arguments: []arguments{{in: `{}`, problems: []string{"/x: is required"}}, {in: `{"x":""}`, want: `{"x":""}`}}},
	}
}

func shapeCases() []testCase {
	choice := `message In { oneof what { string url=1; int64 tab=2; google.protobuf.NullValue none=3; } }`
	return []testCase{
		{id: "T6", proto: `message In { oneof what { string url=1; int64 tab=2; } }`, prints: map[schema.Profile][]string{
			schema.ProfilePortable: {`{"type":"object","properties":{"url":{"type":"string"},"tab":{"type":"string",`},
			schema.ProfileStrict:   {`{"type":"object","properties":{"url":{"type":["string","null"]},"tab":{"type":["string","null"],`},
		}},
		{id: "T7", proto: choice, arguments: []arguments{
			{in: `{"url":"u","tab":"1"}`, problems: []string{"/tab: url is set too; set only one of them"}},
			{in: `{"url":"u","tab":null}`, want: `{"url":"u"}`, repairs: 1}, {in: `{"tab":0}`, want: `{"tab":"0"}`},
		}},
		{id: "8", proto: choice, arguments: []arguments{{in: `{"none":null}`, want: `{"none":null}`}}},
		{id: "T11", proto: `message In { string name=1; repeated In kids=2; map<string,In> named=3; }`, prints: map[schema.Profile][]string{
			schema.ProfileStrict: {`"kids":{"type":["array","null"],"items":{"$ref":"#"}}`},
			schema.ProfileLocal:  {`The form of In.`},
		}, arguments: []arguments{{
			in:   `{"kids":[{"kids":[{"named":{"a":{"kids":[{"kids":[{"name":"six"}]}]}}}]}]}`,
			want: `{"kids":[{"kids":[{"named":{"a":{"kids":[{"kids":[{"name":"six"}]}]}}}]}]}`,
		}}},
		{id: "T12", proto: "message Addr{string street=1;} message In {\n// Where it is.\nAddr home=1;\n// Where it goes.\nAddr work=2; }", prints: map[schema.Profile][]string{
			schema.ProfilePortable: {`"description":"Where it is."`, `"description":"Where it goes."`},
			schema.ProfileStrict:   {`{"description":"Where it is.","anyOf":[{"$ref":"#/$defs/Addr"},{"type":"null"}]}`, `{"description":"Where it goes.","anyOf":`},
		}},
		{id: "T13", proto: `message Leaf{string a=1;} message Addr{Leaf l=1;Leaf r=2;} message In { Addr home=1; Addr work=2; }`, prints: map[schema.Profile][]string{
			schema.ProfileStrict: {
				`"Addr":{"type":"object","properties":{"l":{"anyOf":[{"$ref":"#/$defs/Leaf"},{"type":"null"}]},"r":{"anyOf":[{"$ref":"#/$defs/Leaf"},{"type":"null"}]}},"required":["l","r"],"additionalProperties":false}`,
				`"Leaf":{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}`,
			},
		}},
		{id: "T19", edition: true, proto: `message Part{string name=1;} message In { Part part=1 [features.message_encoding=DELIMITED]; }`,
			prints: portable(`"part":{"type":"object","properties":{"name":`), arguments: []arguments{{in: `{"part":{"name":"x"}}`, want: `{"part":{"name":"x"}}`}}},
		{id: "T19 file", edition: true, proto: `option features.message_encoding=DELIMITED; message Part{string name=1;} message In { Part part=1; map<string,Part> parts=2; }`,
			arguments: []arguments{{in: `{"part":{"name":"x"},"parts":{"a":{"name":"y"}}}`, want: `{"part":{"name":"x"},"parts":{"a":{"name":"y"}}}`}}},
	}
}

func textCases() []testCase {
	device := `message In { optional string device=1 [` + v + `.string.min_len=1]; }`
	return []testCase{
		{id: "T21", proto: `message In { repeated int64 tab_ids=1; string note=2; }`, arguments: []arguments{
			{in: `{"tab_ids":"[1,2]","note":"[1]"}`, want: `{"tabIds":["1","2"],"note":"[1]"}`, repairs: 1},
			{in: `{"tab_ids":"[1,2]","note":"[1]"}`, strict: true, problems: []string{"/tab_ids: expected a list, got text"}},
		}},
		{id: "T22", proto: device, arguments: []arguments{
			{in: `{"device":""}`, strict: true, problems: []string{"/device: "}}, {in: `{"device":""}`, want: `{}`, repairs: 1},
			{in: `{"device":null}`, want: `{}`, repairs: 1},
		}},
		{id: "T23", proto: `message In {}`, prints: map[schema.Profile][]string{
			schema.ProfilePortable: {`{"type":"object","properties":{}}`}, schema.ProfileGemini: {`{"type":"object","properties":{}}`},
			schema.ProfileStrict: {`{"type":"object","properties":{},"required":[],"additionalProperties":false}`},
		}, arguments: []arguments{{in: ``, want: `{}`, repairs: 1}, {in: `null`, want: `{}`, repairs: 1}, {in: `{}`, want: `{}`}}},
		{id: "T34", proto: `message In { int32 n=1; repeated int64 tab_ids=2; }`, arguments: []arguments{
			{in: `{"n":1,"n":2}`, problems: []string{"/n: the key occurs twice"}},
			{in: `{"tabIds":[1],"tab_ids":[2]}`, problems: []string{"/tab_ids: the same argument as tabIds; set one of them"}},
		}},
	}
}

func expectSchema(t *testing.T, md protoreflect.MessageDescriptor, profile schema.Profile, want []string) {
	t.Helper()
	o, _ := schema.Of(md, tooltest.Comment)
	raw := string(schema.Print(profile, o))
	for _, part := range want {
		if !strings.Contains(raw, part) {
			t.Errorf("%s: %s\nhas no %s", profile, raw, part)
		}
	}
	if faults := schema.Lint(profile, []byte(raw)); len(faults) > 0 {
		t.Errorf("%s: %v", profile, faults)
	}
}

func expectDecode(t *testing.T, md protoreflect.MessageDescriptor, a arguments) {
	t.Helper()
	got, err := args.Decode(a.in, dynamicpb.NewMessage(md), args.Options{Strict: a.strict})
	if len(a.problems) > 0 {
		var problems args.Problems
		errors.As(err, &problems)
		lines := problems.Lines()
		if len(lines) != len(a.problems) {
			t.Errorf("%s: problems %q, want %q", a.in, lines, a.problems)
			return
		}
		for i, line := range lines {
			if !strings.HasPrefix(line, a.problems[i]) {
				t.Errorf("%s: %q, want %q", a.in, line, a.problems[i])
			}
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", a.in, err)
		return
	}
	want, back := dynamicpb.NewMessage(md), dynamicpb.NewMessage(md)
	if err := protojson.Unmarshal([]byte(a.want), want); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got.Message, want) || len(got.Repairs) != a.repairs {
		t.Errorf("%s: got %v after %q, want %v", a.in, got.Message, got.Repairs, want)
	}
	raw, err := proto.Marshal(got.Message)
	if err != nil || proto.Unmarshal(raw, back) != nil || !proto.Equal(back, want) {
		t.Errorf("%s: not the same after the wire: %v, %v", a.in, back, err)
	}
}

// T25: a name that a provider refuses is a fault before it is sent. Names are those of members of unions and of methods,
// with no package or prefix in front, so they stay what the contract says; the catalogue refuses one that occurs twice.
func TestT25(t *testing.T) {
	t.Parallel()
	for name, legal := range map[string]bool{
		"closeTabs": true, "_a-9": true, strings.Repeat("n", 64): true, strings.Repeat("n", 65): false, "9lives": false,
		"tabs.v1.closeTabs": false, "close tabs": false, "öffnen": false, "": false, "-a": false,
	} {
		for _, profile := range []schema.Profile{schema.ProfilePortable, schema.ProfileStrict, schema.ProfileGemini, schema.ProfileLocal} {
			tools := []schema.Named{{Name: name, Parameters: []byte(schema.Print(profile, &schema.Object{}))}}
			if faults := schema.LintRequest(profile, tools); (len(faults) == 0) != legal {
				t.Errorf("%s: %q: %q", profile, name, faults)
			}
		}
	}
	image := tooltest.Image(t, `message Odd { option (throwbar.option.v1.command) = { effect: EFFECT_READ approval: APPROVAL_AUTO }; message Result {} }`,
		"list_tabs", "Odd", "A member with the name of a query.")
	if _, err := catalog.New(image); err == nil || !strings.Contains(err.Error(), "listTabs") {
		t.Errorf("one name twice: %v", err)
	}
}

// T32: a request with more tools than it carries is a fault before it is sent.
func TestT32(t *testing.T) {
	t.Parallel()
	tools := make([]schema.Named, 130)
	for i := range tools {
		raw, _ := json.Marshal(i)
		tools[i] = schema.Named{Name: "t" + string(raw), Parameters: []byte(`{"type":"object","properties":{}}`)}
	}
	if faults := schema.LintRequest(schema.ProfilePortable, tools); len(faults) != 1 || faults[0] != "130 tools; a request carries at most 128" {
		t.Errorf("%q", faults)
	}
	if faults := schema.LintRequest(schema.ProfilePortable, append(tools[:3], tools[0])); len(faults) != 1 || faults[0] != `two tools have the name "t0"` {
		t.Errorf("%q", faults)
	}
}
