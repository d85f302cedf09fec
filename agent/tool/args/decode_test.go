package args_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/agent/tool/args"
	"throwbar.dev/throwbar/agent/tool/tooltest"
)

const v = "(buf.validate.field)"

const colours = `enum Color{option allow_alias=true;COLOR_UNSPECIFIED=0;COLOR_RED=1;COLOR_RUBY=1;COLOR_OLD=2[deprecated=true];}
	message In { Color color=1 [` + v + `.enum={defined_only:true,not_in:[0]}]; }`

func decode(md protoreflect.MessageDescriptor, source string, strict bool) (args.Decoded, error) {
	return args.Decode(source, dynamicpb.NewMessage(md), args.Options{Strict: strict})
}

// TestDecode: arguments and what they decode to, as JSON of protojson, or the problems, each by its beginning. Rows with
// a T are those of facts/toolschema.md.
func TestDecode(t *testing.T) {
	t.Parallel()
	ids := `message In { repeated int64 tab_ids=1 [` + v + `.repeated.min_items=1]; }`
	choice := `message In { oneof what { string url=1; int64 tab=2; google.protobuf.NullValue none=3; } }`
	tree := `message In { string name=1; repeated In kids=2; map<string,In> named=3; }`
	pause := `message In { google.protobuf.Duration pause=1 [` + v + `.duration={gt:{},lte:{seconds:60}}]; }`
	mask := `message In { google.protobuf.FieldMask fields=1; }`
	free := `message In { google.protobuf.Value data=1; repeated google.protobuf.Value more=2; google.protobuf.Struct s=3; }`
	for _, row := range []struct {
		name, proto, in, want string
		problems              []string
		repairs               int
	}{
		{name: "T1", proto: ids, in: `{"tab_ids":[9007199254740993,"9007199254740995"]}`, want: `{"tabIds":["9007199254740993","9007199254740995"]}`},
		{name: "T2 empty", proto: ids, in: `{}`, problems: []string{"/tabIds: must contain at least 1 item"}},
		{name: "T2 null", proto: ids, in: `{"tab_ids":null}`, problems: []string{"/tabIds: must contain at least 1 item"}},
		{name: "T3", proto: ids, in: `{"tab_idz":[1]}`, problems: []string{"/tab_idz: unknown key; did you mean tabIds?"}},
		{name: "T4 unknown", proto: colours, in: `{"color":"magenta"}`, problems: []string{`/color: expected one of red, got "magenta"`}},
		{name: "T4 short", proto: colours, in: `{"color":"red"}`, want: `{"color":"COLOR_RED"}`},
		{name: "T4 full", proto: colours, in: `{"color":"COLOR_RUBY"}`, want: `{"color":"COLOR_RED"}`},
		{name: "T4 any case", proto: colours, in: `{"color":"Ruby"}`, want: `{"color":"COLOR_RED"}`},
		{name: "T4 deprecated", proto: colours, in: `{"color":"old"}`, want: `{"color":"COLOR_OLD"}`},
		{name: "T4 number", proto: colours, in: `{"color":2}`, want: `{"color":"COLOR_OLD"}`},
		{name: "T4 undefined", proto: colours, in: `{"color":9}`, problems: []string{"/color: expected one of red, got 9"}},
		{name: "T4 zero", proto: colours, in: `{"color":0}`, problems: []string{"/color: "}},
		{name: "T4 absent", proto: colours, in: `{}`, problems: []string{"/color: "}},
		{name: "T7 both", proto: choice, in: `{"url":"u","tab":"1"}`, problems: []string{"/tab: url is set too; set only one of them"}},
		{name: "T7 null", proto: choice, in: `{"url":"u","tab":null}`, want: `{"url":"u"}`, repairs: 1},
		{name: "T7 zero", proto: choice, in: `{"tab":0}`, want: `{"tab":"0"}`},
		{name: "8 null member", proto: choice, in: `{"none":null}`, want: `{"none":null}`},
		{name: "T9", proto: free, in: `{"data":"42","more":["{\"a\":1}",null,[1]]}`, want: `{"data":"42","more":["{\"a\":1}",null,[1]]}`},
		{name: "value in text form", proto: free, in: `{"data":true,"s":"{\"a\":{\"b\":[null]}}"}`, want: `{"data":true,"s":{"a":{"b":[null]}}}`, repairs: 1},
		{name: "inexact value", proto: free, in: `{"data":{"n":[9007199254740993]}}`, problems: []string{"/data/n/0: \"9007199254740993\" is not exact"}},
		{name: "T10", proto: `message Part{string name=1;} message In { map<int64,string> titles=1; map<bool,Part> flags=2; }`,
			in: `{"titles":{"12":"x"},"flags":{"true":{"name":"y"}}}`, want: `{"titles":{"12":"x"},"flags":{"true":{"name":"y"}}}`},
		{name: "T10 key", proto: `message In { map<int64,string> titles=1; }`, in: `{"titles":{"1e1":"x","+1":"y"}}`,
			problems: []string{"/titles/1e1: expected a key that is a whole number", "/titles/+1: expected a key"}},
		{name: "T11", proto: tree, in: `{"kids":[{"kids":[{"named":{"a":{"kids":[{"kids":[{"name":"six"}]}]}}}]}]}`,
			want: `{"kids":[{"kids":[{"named":{"a":{"kids":[{"kids":[{"name":"six"}]}]}}}]}]}`},
		{name: "T14 iso", proto: pause, in: `{"pause":"PT5S"}`, problems: []string{`/pause: expected seconds like 5s or 1.5s, got "PT5S"; did you mean 5s?`}},
		{name: "T14 number", proto: pause, in: `{"pause":5}`, problems: []string{`/pause: expected seconds like 5s or 1.5s, got 5; did you mean 5s?`}},
		{name: "T14 digits", proto: pause, in: `{"pause":"1.0000000001s"}`, problems: []string{"/pause: expected seconds"}},
		{name: "T14 zero", proto: pause, in: `{"pause":"0s"}`, problems: []string{"/pause: "}},
		{name: "T14 good", proto: pause, in: `{"pause":"5s"}`, want: `{"pause":"5s"}`},
		{name: "T15", proto: `message In { bytes key=1 [` + v + `.bytes.len=3]; }`, in: `{"key":"_-8-"}`, want: `{"key":"/+8+"}`},
		{name: "T15 long", proto: `message In { bytes key=1 [` + v + `.bytes.len=3]; }`, in: `{"key":"AQIDBA=="}`, problems: []string{"/key: "}},
		{name: "T15 no base64", proto: `message In { bytes key=1; }`, in: `{"key":"A"}`, problems: []string{"/key: expected base64 text"}},
		{name: "T17", proto: `message In { string host=1 [` + v + `.string.prefix="a.b"]; }`, in: `{"host":"axb"}`, problems: []string{"/host: "}},
		{name: "T21", proto: `message In { repeated int64 tab_ids=1; string note=2; }`, in: `{"tab_ids":"[1,2]","note":"[1]"}`,
			want: `{"tabIds":["1","2"],"note":"[1]"}`, repairs: 1},
		{name: "one item", proto: ids, in: `{"tabIds":7}`, want: `{"tabIds":["7"]}`, repairs: 1},
		{name: "one text", proto: `message In { repeated string x=1; }`, in: `{"x":"a"}`, want: `{"x":["a"]}`, repairs: 1},
		{name: "T22 empty", proto: `message In { optional string device=1 [` + v + `.string.min_len=1]; }`, in: `{"device":""}`, want: `{}`, repairs: 1},
		{name: "T22 null", proto: `message In { optional string device=1 [` + v + `.string.min_len=1]; }`, in: `{"device":null}`, want: `{}`, repairs: 1},
		{name: "T23 nothing", proto: `message In {}`, in: ``, want: `{}`, repairs: 1},
		{name: "T23 null", proto: `message In {}`, in: ` null`, want: `{}`, repairs: 1},
		{name: "whole text", proto: `message In { string a=1; }`, in: `"{\"a\":\"b\"}"`, want: `{"a":"b"}`, repairs: 1},
		{name: "T27", proto: `message In { string url=1 [` + v + `.string.uri=true]; }`, in: `{"url":"not a url"}`, problems: []string{"/url: "}},
		{name: "T30", proto: mask, in: `{"fields":"windowId,tab.url"}`, want: `{"fields":"windowId,tab.url"}`},
		{name: "T30 snake", proto: mask, in: `{"fields":"window_id"}`, problems: []string{`/fields: expected field paths in lowerCamel with commas between, like windowId,tab.url, got "window_id"; did you mean windowId?`}},
		{name: "T30 list", proto: mask, in: `{"fields":["windowId"]}`, problems: []string{"/fields: expected field paths"}},
		{name: "T34 twice", proto: `message In { int32 n=1; }`, in: `{"n":1,"n":2}`, problems: []string{"/n: the key occurs twice"}},
		{name: "T34 both names", proto: ids, in: `{"tabIds":[1],"tab_ids":[2]}`, problems: []string{"/tab_ids: the same argument as tabIds; set one of them"}},
		{name: "2 uint64 wrapper", proto: `message In { google.protobuf.UInt64Value n=1; }`, in: `{"n":18446744073709551615}`, want: `{"n":"18446744073709551615"}`},
		{name: "whole numbers", proto: `message In { repeated int32 n=1; }`, in: `{"n":[1.0,1e3,-0,"12"]}`, want: `{"n":[1,1000,0,12]}`},
		{name: "no whole numbers", proto: `message In { repeated int32 n=1; }`, in: `{"n":[1.5,1e99999999,2147483648,"1e3","01",true]}`,
			problems: []string{"/n/0: expected a whole number from -2147483648 to 2147483647, got 1.5", "/n/1: ", "/n/2: ", `/n/3: `, "/n/4: ", "/n/5: "}},
		{name: "floats", proto: `message In { repeated double d=1; }`, in: `{"d":[1,"2.5","NaN","-Infinity"]}`, want: `{"d":[1,2.5,"NaN","-Infinity"]}`},
		{name: "no floats", proto: `message In { repeated float d=1; }`, in: `{"d":[1e39,"0x1p4","inf",""]}`, problems: []string{"/d/0: ", "/d/1: ", "/d/2: ", "/d/3: "}},
		{name: "floats that JSON does not spell", proto: `message In { repeated double d=1; }`, in: `{"d":["5.",".5","+5","05","1.e3","-"]}`,
			problems: []string{"/d/0: ", "/d/1: ", "/d/2: ", "/d/3: ", "/d/4: ", "/d/5: "}},
		{name: "negative zero", proto: `message In { uint32 n=1; map<uint64,bool> m=2; map<int64,bool> k=3; }`, in: `{"n":-0,"m":{"-0":true},"k":{"-0":true}}`,
			problems: []string{"/m/-0: expected a key"}},
		{name: "null in a list", proto: ids, in: `{"tabIds":[1,null]}`, problems: []string{"/tabIds/1: expected a whole number"}},
		{name: "any", proto: `message In { google.protobuf.Any x=1; }`, in: `{"x":{"@type":"t/a.B"}}`, problems: []string{"/x: cannot be set here"}},
		{name: "any of a type", proto: `message In { google.protobuf.Any x=1 [` + v + `.any={in:["type.googleapis.com/google.protobuf.Duration"]}]; }`,
			in: `{"x":{"@type":"type.googleapis.com/google.protobuf.Duration","value":"3s"}}`, want: `{"x":{"@type":"type.googleapis.com/google.protobuf.Duration","value":"3s"}}`},
		{name: "empty", proto: `message In { google.protobuf.Empty x=1; }`, in: `{"x":{"a":1}}`, problems: []string{"/x: "}},
		{name: "all at once", proto: `message Part{int32 n=1;} message In { repeated Part parts=1; string name=2; bool yes=3; string must=4 [` + v + `.string.min_len=1]; }`,
			in: `{"parts":[{"n":1},{"n":"x","m":2},3],"name":7,"yes":"yes","extra":1}`, problems: []string{
				`/parts/1/n: expected a whole number from -2147483648 to 2147483647, got "x"`, "/parts/1/m: unknown key; did you mean n?",
				"/parts/2: expected an object, got 3", "/name: expected text, got 7", `/yes: expected true or false, got "yes"`,
				"/extra: unknown key; expected parts, name, yes, must", "/must: "}},
		{name: "half a character", proto: `message In { string a=1; }`, in: `{"a":"\ud83d"}`, problems: []string{`the \u escape at byte 6 is half`}},
		{name: "a whole character", proto: `message In { string a=1; }`, in: `{"a":"\ud83d\ude00\\ud83d"}`, want: `{"a":"😀\\ud83d"}`},
		{name: "not UTF-8", proto: `message In { string a=1; }`, in: "{\"a\":\"\xff\"}", problems: []string{"the arguments are not valid UTF-8"}},
		{name: "cut off", proto: `message In { string a=1; }`, in: `{"a":"b`, problems: []string{"the arguments are not JSON: it ends too early"}},
		{name: "trailing", proto: `message In { string a=1; }`, in: `{"a":"b"} {}`, problems: []string{"the arguments are not JSON: something follows"}},
		{name: "comma", proto: `message In { string a=1; }`, in: `{"a":"b",}`, problems: []string{"the arguments are not JSON"}},
		{name: "list", proto: `message In { string a=1; }`, in: `[1]`, problems: []string{"expected an object with the arguments, got a list"}},
		{name: "pointer", proto: `message In { map<string,int32> m=1; }`, in: `{"m":{"a/b~c":"x"}}`, problems: []string{"/m/a~1b~0c: expected a whole number"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			md := tooltest.Message(t, row.proto)
			got, err := decode(md, row.in, false)
			if len(row.problems) > 0 {
				expectProblems(t, err, row.problems)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := dynamicpb.NewMessage(md)
			if err := protojson.Unmarshal([]byte(row.want), want); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(got.Message, want) && !strings.Contains(row.in, "NaN") {
				t.Errorf("got %v, want %v", got.Message, want)
			}
			if len(got.Repairs) != row.repairs {
				t.Errorf("repairs: %q", got.Repairs)
			}
			if _, err := decode(md, row.in, true); (err != nil) != (row.repairs > 0) {
				t.Errorf("strict: %v", err)
			}
		})
	}
}

func expectProblems(t *testing.T, err error, want []string) {
	t.Helper()
	var problems args.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("error: %v", err)
	}
	lines := problems.Lines()
	if len(lines) != len(want) {
		t.Fatalf("problems: %q", lines)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("problem %d: %q, want %q", i, line, want[i])
		}
	}
}

// T5: Go would take the number, a device in JavaScript would read the first value.
func TestAClosedEnumTakesNoOtherNumber(t *testing.T) {
	t.Parallel()
	md := tooltest.Edition(t, `enum Op{option features.enum_type=CLOSED;OP_KEEP=1;OP_DROP=2;} message In { Op op=1; }`)
	if _, err := decode(md, `{"op":7}`, false); err == nil {
		t.Error("no error")
	}
	if got, err := decode(md, `{"op":"drop"}`, false); err != nil || got.Message.Get(md.Fields().Get(0)).Enum() != 2 {
		t.Errorf("%v, %v", got, err)
	}
}

// T19: delimited messages go over the wire and back.
func TestDelimitedMessages(t *testing.T) {
	t.Parallel()
	md := tooltest.Edition(t, `message Part{string name=1;} message In { Part part=1 [features.message_encoding=DELIMITED]; }`)
	got, err := decode(md, `{"part":{"name":"x"}}`, false)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Marshal(got.Message)
	if err != nil {
		t.Fatal(err)
	}
	back := dynamicpb.NewMessage(md)
	if err := proto.Unmarshal(raw, back); err != nil || !proto.Equal(back, got.Message) {
		t.Errorf("%v, %v", back, err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	md := tooltest.Message(t, `message In { google.protobuf.Value v=1; string s=2; }`)
	deep := func(n int) string { return `{"v":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}" }
	if _, err := decode(md, deep(args.MaxDepth-1), false); err != nil {
		t.Error(err)
	}
	if _, err := decode(md, deep(args.MaxDepth), false); err == nil || !strings.Contains(err.Error(), "deeper than 32 levels") {
		t.Errorf("deep: %v", err)
	}
	if _, err := decode(md, `{"s":"`+strings.Repeat("x", args.MaxBytes)+`"}`, false); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("long: %v", err)
	}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf(`"k%d":1`, i))
	}
	_, err := decode(md, "{"+strings.Join(many, ",")+"}", false)
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 21 || lines[20] != "and 80 more" {
		t.Errorf("%d lines: %q", len(lines), lines[len(lines)-1])
	}
}

func TestFurtherKeys(t *testing.T) {
	t.Parallel()
	md := tooltest.Message(t, `message In { string a=1; }`)
	decode := func(source string) (string, error) {
		var device string
		_, err := args.Decode(source, dynamicpb.NewMessage(md), args.Options{
			Extra: map[string]*string{"deviceId": &device, "device_id": &device}, Required: []string{"deviceId"},
		})
		return device, err
	}
	if device, err := decode(`{"device_id":"d1","a":"x"}`); err != nil || device != "d1" {
		t.Errorf("%q, %v", device, err)
	}
	for source, want := range map[string][]string{
		`{"a":"x"}`:                          {"/deviceId: is required"},
		`{"deviceId":""}`:                    {`/deviceId: expected text, got ""`},
		`{"deviceId":7}`:                     {"/deviceId: expected text, got 7"},
		`{"devceId":"d1"}`:                   {"/devceId: unknown key; did you mean deviceId?", "/deviceId: is required"},
		`{"deviceId":"d1","device_id":"d2"}`: {"/device_id: the same argument as deviceId"},
	} {
		_, err := decode(source)
		expectProblems(t, err, want)
	}
}

// T22 for a further key: where it may be left out, empty text means that.
func TestAnEmptyFurtherKey(t *testing.T) {
	t.Parallel()
	md := tooltest.Message(t, `message In { string a=1; }`)
	for _, strict := range []bool{false, true} {
		device := ""
		got, err := args.Decode(`{"device_id":"","a":"x"}`, dynamicpb.NewMessage(md), args.Options{
			Strict: strict, Extra: map[string]*string{"deviceId": &device, "device_id": &device},
		})
		switch {
		case strict:
			expectProblems(t, err, []string{`/device_id: expected text, got ""`})
		case err != nil || device != "" || len(got.Repairs) != 1 || got.Repairs[0] != "/device_id: empty text was taken as left out":
			t.Errorf("%q, %v, %v", device, got.Repairs, err)
		}
	}
}

// TestHundredThousandProblems: a model that goes astray cannot keep the server busy. Where each broken rule was compared with
// each problem, these arguments took many minutes, more than a test run has; now it is about a second.
func TestHundredThousandProblems(t *testing.T) {
	t.Parallel()
	md := tooltest.Message(t, `message In { repeated string ids=1 [(buf.validate.field).repeated.items.string.min_len=1]; }`)
	const n = 50_000
	var unknown strings.Builder
	for i := range n {
		fmt.Fprintf(&unknown, `,"k%d":1`, i)
	}
	for name, source := range map[string]string{
		"unknown keys and broken rules": `{"ids":[""` + strings.Repeat(`,""`, n) + `]` + unknown.String() + `}`,
		"wrong items and broken rules":  `{"ids":["",1` + strings.Repeat(`,"",1`, n) + `]}`,
		"a key of half a megabyte":      `{"` + strings.Repeat("k", args.MaxBytes/2) + `":[1` + strings.Repeat(`,1`, 4*n) + `]}`,
	} {
		_, err := decode(md, source, false)
		if lines := strings.Split(fmt.Sprint(err), "\n"); err == nil || len(lines) > 21 || len(err.Error()) > 5000 {
			t.Errorf("%s: %d lines, %d bytes", name, len(lines), len(fmt.Sprint(err)))
		}
	}
}
