package args_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/agent/tool/args"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/tool/tooltest"
)

// FuzzDecode: nothing makes the decoder panic, and what it takes without a repair is what protojson takes, to the same
// message. There are no enums here, whose short names protojson does not know.
func FuzzDecode(f *testing.F) {
	md := tooltest.Message(f, `message Part { string name=1; repeated int64 ids=2; double d=3; bytes b=4; In again=5; }
		message In {
			repeated Part parts=1; map<string,Part> named=2; map<uint32,bool> flags=3; oneof o { string url=4; sint32 n=5; }
			google.protobuf.Value v=6; google.protobuf.Duration pause=7; google.protobuf.Timestamp at=8;
			google.protobuf.Int64Value w=9; google.protobuf.FieldMask mask=10; optional bool yes=11; google.protobuf.ListValue l=12;
		}`)
	for _, seed := range []string{
		`{}`, ``, `null`, `{"parts":[{"name":"a","ids":[1,"2"],"d":1.5,"b":"AQ=="}],"named":{"x":{"again":{"url":"u"}}}}`,
		`{"flags":{"1":true},"n":-5,"v":{"a":[1,null,"x"]},"pause":"1.5s","at":"2026-01-31T09:00:00Z","w":"9","mask":"a,b.c"}`,
		`{"parts":"[{\"name\":\"a\"}]","yes":null,"l":[1]}`, `{"parts":{"name":"a"},"d":"\ud83d\ude00"}`, `{"n":1e3,"w":1.0}`, `{"parts":[{"b":"="}]}`,
		`{"named":[{"key":"x","value":{"name":"a"}}],"flags":[{"key":1,"value":true},{"key":"1","value":false}],"n":null}`,
		`{"flags":{"-0":true}}`, `{"parts":[{"d":"5."},{"d":"+5"},{"d":"05"}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		for _, profile := range []schema.Profile{schema.ProfileStrict, schema.ProfileGemini} { // they may take more, and break nothing
			got, err := args.Decode(source, dynamicpb.NewMessage(md), args.Options{Profile: profile})
			if err == nil {
				_, err = proto.Marshal(got.Message)
			}
			if err != nil && err.Error() == "" {
				t.Errorf("%s: an error without words", profile)
			}
		}
		got, err := args.Decode(source, dynamicpb.NewMessage(md), args.Options{})
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		if _, err := proto.Marshal(got.Message); err != nil {
			t.Fatalf("decoded %v, which has no wire form: %v", got.Message, err)
		}
		if plain := strings.TrimSpace(source); len(got.Repairs) > 0 || plain == "" || plain == "null" {
			return
		}
		want := dynamicpb.NewMessage(md)
		if err := protojson.Unmarshal([]byte(source), want); err != nil {
			t.Fatalf("decoded %v, which protojson refuses: %v", got.Message, err)
		}
		if !proto.Equal(got.Message, want) {
			t.Errorf("got %v, want %v", got.Message, want)
		}
	})
}
