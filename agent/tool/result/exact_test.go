package result_test

import (
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/agent/tool/args"
	"throwbar.dev/throwbar/agent/tool/result"
	"throwbar.dev/throwbar/agent/tool/tooltest"
)

// A result is in the same form as arguments: 64-bit numbers are text only where a reader that keeps numbers as doubles would
// change them, enums are short names, and what says nothing is left out.
func TestResultsOfEveryKind(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, proto, in, want string }{
		{"small and large numbers", `message In { repeated int64 a=1; repeated uint64 b=2; google.protobuf.Int64Value c=3; google.protobuf.UInt64Value d=4; }`,
			`{"a":["0","-9007199254740991","9007199254740991","9007199254740992","-9007199254740992"],"b":["7","18446744073709551615"],"c":"5","d":"9007199254740993"}`,
			`{"a":[0,-9007199254740991,9007199254740991,"9007199254740992","-9007199254740992"],"b":[7,"18446744073709551615"],"c":5,"d":"9007199254740993"}`},
		{"a bounded number that is beyond all the same", `message In { int64 a=1 [(buf.validate.field).int64={gte:1,lte:9}]; }`, `{"a":"9007199254740993"}`, `{"a":"9007199254740993"}`},
		{"an unbounded number that is small", `message In { message Row { int64 a=1; } repeated Row rows=1; }`, `{"rows":[{"a":"5"},{}]}`, `{"rows":[{"a":5},{}]}`},
		{"zero counts at the top only", `message In { uint32 n=1; bool b=2; string s=3; optional int32 o=4; message Row { uint32 n=1; } Row row=5; repeated Row none=6; map<string,int32> empty=7; }`,
			`{"row":{}}`, `{"n":0,"b":false,"row":{}}`},
		{"what is set to nothing", `message In { optional int32 o=1; optional string s=2; oneof w { string a=3; int32 b=4; } }`, `{"o":0,"s":"","b":0}`, `{"o":0,"s":"","b":0}`},
		{"enums", `enum Colour{COLOUR_UNSPECIFIED=0;COLOUR_DARK_RED=1;COLOUR_OLD=2[deprecated=true];} message In { repeated Colour c=1; Colour d=2; map<string,Colour> e=3; }`,
			`{"c":[1,2,0,7],"e":{"a":1}}`, `{"c":["dark_red","old","unspecified",7],"e":{"a":"dark_red"}}`},
		{"numbers that are none", `message In { repeated double d=1; repeated float f=2; }`, `{"d":["NaN","Infinity","-Infinity",1.5],"f":[0.1]}`, `{"d":["NaN","Infinity","-Infinity",1.5],"f":[0.1]}`},
		{"forms of their own", `message In { google.protobuf.Timestamp at=1; google.protobuf.Duration d=2; google.protobuf.FieldMask m=3; google.protobuf.Value v=4; google.protobuf.Struct s=5;
			google.protobuf.ListValue l=6; bytes b=7; google.protobuf.Empty e=8; map<int64,bool> k=9; google.protobuf.NullValue n=10; }`,
			`{"at":"2026-01-31T09:00:00.123Z","d":"1.500s","m":"aB,c","v":{"x":[null]},"s":{"k":1},"l":["a"],"b":"_-8","e":{},"k":{"10":true,"9":false}}`,
			`{"at":"2026-01-31T09:00:00Z","d":"1.500s","m":"aB,c","v":{"x":[null]},"s":{"k":1},"l":["a"],"b":"/+8=","e":{},"k":{"10":true,"9":false}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := dynamicpb.NewMessage(tooltest.Message(t, row.proto))
			if err := protojson.Unmarshal([]byte(row.in), m); err != nil {
				t.Fatal(err)
			}
			if got := result.Of(m).String(); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// Nothing is lost or changed on the way to the model but fractions of seconds: what it reads of a random message is that
// message, read as arguments.
func TestResultsLoseNothing(t *testing.T) {
	t.Parallel()
	for _, sample := range tooltest.Corpus(t)[:4] {
		t.Run(sample.Name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(5, uint64(len(sample.Name))))
			found := 0
			for range 50 {
				m := tooltest.Random(random, sample.In)
				if m == nil {
					continue
				}
				found++
				wholeSeconds(m)
				text := result.Of(m).String()
				got, err := args.Decode(text, dynamicpb.NewMessage(sample.In), args.Options{Strict: true})
				if err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				if !proto.Equal(got.Message, m) {
					t.Fatalf("%s\nis %v\nnot %v", text, got.Message, m)
				}
			}
			if found < 25 {
				t.Errorf("only %d messages", found)
			}
		})
	}
}

// wholeSeconds cuts all times in a message to seconds.
func wholeSeconds(m protoreflect.Message) {
	if m.Descriptor().FullName() == "google.protobuf.Timestamp" {
		m.Clear(m.Descriptor().Fields().ByName("nanos"))
		return
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap() && fd.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				wholeSeconds(v.Message())
				return true
			})
		case fd.IsList() && fd.Message() != nil:
			for i := range v.List().Len() {
				wholeSeconds(v.List().Get(i).Message())
			}
		case fd.Message() != nil && !fd.IsMap() && !fd.IsList():
			wholeSeconds(v.Message())
		}
		return true
	})
}
