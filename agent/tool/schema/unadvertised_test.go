package schema_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/agent/tool/args"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/tool/tooltest"
)

const shy = `
message Part { string name=1; optional int32 secret=2 [(throwbar.option.v1.unadvertised)=true]; }
message In {
  option (buf.validate.message).oneof = { fields: ["word", "quiet"] };
  string word=1;
  // Nobody reads this.
  optional uint32 quiet=2 [(throwbar.option.v1.unadvertised)=true, (buf.validate.field).uint32.lte=9];
  oneof what { string url=3; int32 mute=4 [(throwbar.option.v1.unadvertised)=true]; bool all=5; }
  oneof other { int32 silent=6 [(throwbar.option.v1.unadvertised)=true]; }
  repeated Part parts=7;
  map<string, Part> hush=8 [(throwbar.option.v1.unadvertised)=true];
}`

// TestUnadvertised: what the model is not told of is in no schema, in no rule about several arguments, and in no list of what
// was expected; written all the same it is taken, under its rules.
func TestUnadvertised(t *testing.T) {
	t.Parallel()
	md := shyMessage(t)
	o, _ := schema.Of(md, comment)
	if notes := strings.Join(o.Notes, " "); notes != "Set at most one of url, all." {
		t.Errorf("notes: %s", notes)
	}
	for _, profile := range profiles() {
		raw := schema.Print(profile, o)
		for _, name := range []string{"quiet", "mute", "silent", "hush", "secret", "Nobody"} {
			if strings.Contains(string(raw), name) {
				t.Errorf("%s tells of %s: %s", profile, name, raw)
			}
		}
		if faults := schema.Lint(profile, raw); len(faults) > 0 {
			t.Errorf("%s: %v", profile, faults)
		}
	}
	for source, want := range map[string]string{
		`{"quiet":9,"silent":3}`:               `{"quiet":9,"silent":3}`,
		`{"parts":[{"name":"a","secret":1}]}`:  `{"parts":[{"name":"a","secret":1}]}`,
		`{"mute":4,"hush":{"a":{"secret":2}}}`: `{"mute":4,"hush":{"a":{"secret":2}}}`,
		`{"quiet":10}`:                         "/quiet: must be less than or equal to 9",
		`{"queit":1}`:                          "/queit: unknown key; did you mean quiet?",
		`{"limit":1}`:                          "/limit: unknown key; expected word, url, all, parts",
		`{"parts":[{"zzz":1}]}`:                "/parts/0/zzz: unknown key; expected name",
		`{"url":"u","mute":1}`:                 "/mute: url is set too; set only one of them",
	} {
		got, err := args.Decode(source, dynamicpb.NewMessage(md), args.Options{Strict: true})
		if err != nil {
			if err.Error() != want {
				t.Errorf("%s: %v, want %s", source, err, want)
			}
			continue
		}
		wanted := dynamicpb.NewMessage(md)
		if err := protojson.Unmarshal([]byte(want), wanted); err != nil || !proto.Equal(got.Message, wanted) {
			t.Errorf("%s: %v, want %s (%v)", source, got.Message, want, err)
		}
	}
}

func shyMessage(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	return tooltest.Compile(t, `syntax="proto3"; package snippet; import "buf/validate/validate.proto";
import "throwbar/option/v1/option.proto";`+shy).Messages().ByName("In")
}
