package args_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"throwbar.dev/throwbar/agent/tool/args"
	"throwbar.dev/throwbar/agent/tool/tooltest"
)

// TestAnyIsReadLikeEveryMessage has messages within an Any: what is refused elsewhere, because another reader of the same bytes
// would do something else, is refused there, with its place; and what is mended elsewhere is mended.
func TestAnyIsReadLikeEveryMessage(t *testing.T) {
	t.Parallel()
	md := tooltest.Edition(t, `
		enum Op { option features.enum_type=CLOSED; OP_KEEP=1; OP_DROP=2; }
		message Part { Op op=1; int64 id=2; repeated int64 tab_ids=3; string name=4 [`+v+`.string.max_len=3]; oneof w { string url=5; int64 tab=6; } google.protobuf.Any more=7 [`+v+`.any={in:["x/snippet.Part"]}]; }
		message In { google.protobuf.Any x=1 [`+v+`.any={in:["x/snippet.Part","x/google.protobuf.Duration","x/no.Such"]}]; }`)
	files := &protoregistry.Files{}
	for _, file := range []protoreflect.FileDescriptor{md.ParentFile(), durationpb.File_google_protobuf_duration_proto} {
		if err := files.RegisterFile(file); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		in, want string // in is what stands in the Any of type Part; want too
		repairs  int
		problems []string
	}{
		{in: `"op":"drop","id":9007199254740993,"name":"abc","tab":"0"`, want: `"op":"OP_DROP","id":"9007199254740993","name":"abc","tab":"0"`},
		{in: `"tab_ids":"[1,2]","name":null`, want: `"tabIds":["1","2"]`, repairs: 2},
		{in: `"more":{"@type":"x/snippet.Part","op":2}`, want: `"more":{"@type":"x/snippet.Part","op":2}`},
		{in: `"op":7`, problems: []string{"/x/op: expected one of keep, drop, got 7"}},
		{in: `"op":"OP_OTHER","idd":1`, problems: []string{"/x/op: expected one of keep, drop", "/x/idd: unknown key; did you mean id?"}},
		{in: `"id":1,"id":2`, problems: []string{"/x/id: the key occurs twice"}},
		{in: `"tabIds":[1],"tab_ids":[2]`, problems: []string{"/x/tab_ids: the same argument as tabIds"}},
		{in: `"url":"u","tab":1`, problems: []string{"/x/tab: url is set too"}},
		{in: `"name":"long"`, problems: []string{"/x/name: "}},
		{in: `"more":{"@type":"x/snippet.Part","op":7,"name":"long"}`, problems: []string{"/x/more/op: expected one of keep, drop, got 7", "/x/more/name: "}},
	} {
		got, err := args.Decode(`{"x":{"@type":"x/snippet.Part",`+row.in+`}}`, dynamicpb.NewMessage(md), args.Options{Files: files})
		var problems args.Problems
		errors.As(err, &problems)
		lines := problems.Lines()
		if len(lines) != len(row.problems) || len(got.Repairs) != row.repairs {
			t.Errorf("%s: problems %q, repairs %q", row.in, lines, got.Repairs)
			continue
		}
		for i, line := range lines {
			if !strings.HasPrefix(line, row.problems[i]) {
				t.Errorf("%s: %q, want %q", row.in, line, row.problems[i])
			}
		}
		if len(row.problems) > 0 {
			continue
		}
		want := dynamicpb.NewMessage(md)
		if err := (protojson.UnmarshalOptions{Resolver: dynamicpb.NewTypes(files)}).Unmarshal([]byte(`{"x":{"@type":"x/snippet.Part",`+row.want+`}}`), want); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got.Message, want) {
			t.Errorf("%s: %v, want %v", row.in, got.Message, want)
		}
	}
	for in, problem := range map[string]string{
		`{"@type":"x/google.protobuf.Duration","value":"3s"}`: "", `{"@type":"x/google.protobuf.Duration","value":3}`: "/x: expected an object with @type",
		`{"@type":"x/no.Such"}`: "/x: expected an object with @type",
	} {
		_, err := args.Decode(`{"x":`+in+`}`, dynamicpb.NewMessage(md), args.Options{Files: files})
		if (err == nil) != (problem == "") || err != nil && !strings.HasPrefix(err.Error(), problem) {
			t.Errorf("%s: %v", in, err)
		}
	}
}
