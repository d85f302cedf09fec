package cli_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const (
	kettlePath   = "throwbar/command/v1/kettle.proto"
	kettleNumber = 5000
	kettleSource = `
// Kettles.
syntax = "proto3";
package throwbar.command.v1;
import "buf/validate/validate.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
import "throwbar/option/v1/option.proto";

// How to brew.
enum Leaf {
  // Not stated.
  LEAF_UNSPECIFIED = 0;
  // Black.
  LEAF_BLACK_TEA = 1;
  // Green.
  LEAF_GREEN_TEA = 2;
}
// Sugar of one cup.
message Sugar {
  // Lumps.
  uint32 lumps = 1;
}
// Boil water. Loudly.
message BoilWater {
  option (throwbar.option.v1.command) = {effect: EFFECT_REVERSIBLE approval: APPROVAL_REQUIRED aliases: ["kettle.boil"]};
  // How much water, in cups.
  uint32 cups = 1 [(buf.validate.field).uint32 = {gte: 1 lte: 9}];
  // Which leaves.
  repeated Leaf leaves = 2;
  // How long to steep.
  optional google.protobuf.Duration steep = 3;
  // When to begin.
  optional google.protobuf.Timestamp at = 4;
  // Sugar, by cup.
  repeated Sugar sugar = 5;
  // How to print.
  string output = 6;
  // Secret herbs.
  bytes herbs = 7;
  // Which vessel.
  oneof vessel {
    // A cup.
    string cup = 8;
    // A pot.
    string pot = 9;
  }
  // How hot.
  double heat = 10;
  // Marks.
  map<string, string> marks = 11;

  // What came of it.
  message Result {
    // Degrees.
    int64 degrees = 1;
    // Leaves left.
    Leaf leaf = 2;
    // What happened to each cup.
    repeated Sugar cups = 3;
    // When it was ready.
    google.protobuf.Timestamp ready = 4;
    // Marks.
    map<string, string> marks = 5;
    // The first cup.
    Sugar first = 6;
  }
}`
)

// strangerImage is the program's image with a command that the program was not built with.
func strangerImage(t *testing.T) []byte {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(gen.Descriptors, set); err != nil {
		t.Fatal(err)
	}
	source := &protocompile.SourceResolver{Accessor: func(path string) (io.ReadCloser, error) {
		if path != kettlePath {
			return nil, protoregistry.NotFound
		}
		return io.NopCloser(strings.NewReader(kettleSource)), nil
	}}
	linked := protocompile.ResolverFunc(func(path string) (protocompile.SearchResult, error) {
		fd, err := protoregistry.GlobalFiles.FindFileByPath(path)
		return protocompile.SearchResult{Desc: fd}, err
	})
	compiler := protocompile.Compiler{
		Resolver: protocompile.CompositeResolver{source, linked}, SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(t.Context(), kettlePath)
	if err != nil {
		t.Fatal(err)
	}
	set.File = append(set.File, protodesc.ToFileDescriptorProto(files[0]))
	for _, f := range set.GetFile() {
		if f.GetName() == "throwbar/command/v1/command.proto" {
			f.Dependency = append(f.Dependency, kettlePath)
			addMember(f, "Action", ".throwbar.command.v1.BoilWater")
			addMember(f, "Result", ".throwbar.command.v1.BoilWater.Result")
		}
	}
	image, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func addMember(f *descriptorpb.FileDescriptorProto, union, typeName string) {
	for i, m := range f.GetMessageType() {
		if m.GetName() != union {
			continue
		}
		f.SourceCodeInfo.Location = append(f.GetSourceCodeInfo().GetLocation(), &descriptorpb.SourceCodeInfo_Location{
			Path: []int32{4, int32(i), 2, int32(len(m.GetField()))}, Span: []int32{9000, 0, 1},
			LeadingComments: proto.String(" Boil water in a kettle. Loudly.\n"),
		})
		m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{
			Name: proto.String("boil_water"), JsonName: proto.String("boilWater"), Number: proto.Int32(kettleNumber),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), OneofIndex: proto.Int32(0),
			Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), TypeName: proto.String(typeName),
		})
	}
}

// kettle is a server whose device boils water.
func kettle(t *testing.T) (*fake, *catalog.Entry) {
	t.Helper()
	image := strangerImage(t)
	c, err := catalog.New(image)
	if err != nil {
		t.Fatal(err)
	}
	e, ok := c.Lookup("boilWater")
	if !ok {
		t.Fatal("the catalogue has no boilWater")
	}
	return newFake(t, func(f *fake) {
		f.image = image
		f.onDispatch = func(*controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
			out := dynamicpb.NewMessage(e.Out)
			fields := e.Out.Fields()
			out.Set(fields.ByName("degrees"), protoreflect.ValueOfInt64(100))
			out.Set(fields.ByName("leaf"), protoreflect.ValueOfEnum(2))
			sugar := out.Mutable(fields.ByName("cups")).List()
			cup := sugar.NewElement()
			cup.Message().Set(fields.ByName("cups").Message().Fields().ByName("lumps"), protoreflect.ValueOfUint32(2))
			sugar.Append(cup)
			out.Set(fields.ByName("first"), cup)
			for _, k := range []string{"b", "a"} {
				out.Mutable(fields.ByName("marks")).Map().Set(
					protoreflect.ValueOfString(k).MapKey(), protoreflect.ValueOfString("x"+k))
			}
			result, err := e.WrapResult(out)
			return &controlv1.DispatchResponse{Outcomes: []*controlv1.DeviceOutcome{{
				DeviceId: laptop, DeviceName: "laptop", Outcome: &controlv1.DeviceOutcome_Result{Result: result},
			}}}, err
		}
	}), e
}

// TestStranger drives a command that exists only here from the list to its result.
func TestStranger(t *testing.T) {
	t.Parallel()
	f, entry := kettle(t)
	f.run(t, "commands").check(t, 0, "boilWater", "reversible", "always", "Boil water in a kettle")
	f.run(t, "call").check(t, 0, "boilWater", "Boil water in a kettle")
	help := do(t, run{
		server: f.url, args: []string{"call", "boilWater", "--help"}, env: map[string]string{"THROWBAR_TOKEN_FILE": tokenFile(t)},
	})
	help.check(t, 0)
	golden(t, "stranger_help", hideFile(help.out), f.url)

	words := []string{
		"call", "boilWater", "--device", "laptop", "--cups", "2", "--leaves", "green-tea,LEAF_BLACK_TEA", "--steep", "1m30s",
		"--at", "2026-11-28T09:30:00.5Z", "--arg-output", "loud", "--herbs", "AP8_", "--pot", "blue", "--heat", "99.5",
		"--json", `{"sugar":[{"lumps":1}],"marks":{"k":"v"}}`,
	}
	e := f.run(t, words...)
	e.check(t, 0)
	golden(t, "stranger_result", e.out, "")
	action := f.dispatched()[0].GetAction()
	if action.GetKind() != nil || len(action.ProtoReflect().GetUnknown()) == 0 {
		t.Fatalf("the action is not an unknown field: %v", action)
	}
	if number, _, _ := protowire.ConsumeTag(action.ProtoReflect().GetUnknown()); number != kettleNumber {
		t.Errorf("the action is member %d", number)
	}
	args, err := entry.Args(action)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"cups":2,"leaves":["LEAF_GREEN_TEA","LEAF_BLACK_TEA"],"steep":"90s","at":"2026-11-28T09:30:00.500Z",` +
		`"sugar":[{"lumps":1}],"output":"loud","herbs":"AP8/","pot":"blue","heat":99.5,"marks":{"k":"v"}}`
	if got := compactJSON(t, args); got != want {
		t.Errorf("arguments\n%s\nwant\n%s", got, want)
	}

	asJSON := f.run(t, append(words, "-o", "json")...)
	asJSON.check(t, 0)
	golden(t, "stranger_json", asJSON.out, "")
	if !json.Valid([]byte(asJSON.out)) {
		t.Error("no JSON")
	}
	f.run(t, "call", "kettle.boil", "--device", "laptop", "--cups", "1").check(t, 0)
}

func TestStrangerIsChecked(t *testing.T) {
	t.Parallel()
	f, _ := kettle(t)
	for words, says := range map[string]string{
		"call boilWate --cups 1":                          "did you mean boilWater?",
		"call boilWater --device laptop":                  "--cups is missing",
		"call boilWater --device laptop --cups 10":        "--cups: must be greater than or equal to 1 and less than or equal to 9",
		"call boilWater --device laptop --cups two":       "is no number",
		"call boilWater --cups 1 --cup a --pot b":         "only one of --cup and --pot can be given",
		"call boilWater --cups 1 --leaves mint":           "is none of black_tea, green_tea",
		"call boilWater --cups 1 --herbs $":               "is no base64",
		"call boilWater --cups 1 --steep soon":            "is no duration such as 10s",
		"call boilWater --cups 1 --at noon":               "is no time such as",
		"call boilWater --cups 1 --sugar 2":               "has no flag --sugar",
		"call boilWater --cups 1 --json {\"sugar\":[1]}":  "--json: ",
		"call boilWater --cups 1 --json {\"leaves\":[7]}": "--device",
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			f.run(t, strings.Fields(words)...).check(t, 2, says)
		})
	}
}

// TestHistoryShowsAStranger has a command in the history that only the server knows.
func TestHistoryShowsAStranger(t *testing.T) {
	t.Parallel()
	f, e := kettle(t)
	args := e.New()
	args.Set(e.In.Fields().ByName("cups"), protoreflect.ValueOfUint32(3))
	action, err := e.Wrap(args)
	if err != nil {
		t.Fatal(err)
	}
	f.history = []*controlv1.Command{{
		CommandId: "cmd-9", Name: "boilWater", DeviceId: laptop, DeviceName: "laptop", State: controlv1.State_STATE_SENT,
		CreatedAt: ago(0), Deadline: ago(-30e9), Action: action, Error: &commandv1.CommandError{},
	}}
	f.run(t, "history", "-o", "json").check(t, 0, `"boilWater": {`, `"cups": 3`)
	f.run(t, "history", "show", "cmd-9").check(t, 0, "  cups  3\n", "expires  in 30 s")
}

func TestCatalogueIsKept(t *testing.T) {
	t.Parallel()
	f, _ := kettle(t)
	home := t.TempDir()
	fetched := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.catalogue
	}
	again := func(server string, words ...string) ended {
		return do(t, run{server: server, args: words, env: map[string]string{"XDG_CACHE_HOME": home}})
	}
	for range 3 {
		again(f.url, "commands").check(t, 0, "boilWater")
	}
	if n := fetched(); n != 1 {
		t.Errorf("the descriptors were sent %d times", n)
	}
	paths, err := filepath.Glob(filepath.Join(home, "throwbar", "catalogue", "*"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("cache: %v, %v", paths, err)
	}
	info, err := os.Stat(paths[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("cache: %v, %v", info.Mode(), err)
	}
	// What is broken in the cache is fetched again, and a server that is away is helped out from it.
	if err := os.WriteFile(paths[0], []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	again(f.url, "commands").check(t, 0, "boilWater")
	if n := fetched(); n != 2 {
		t.Errorf("the descriptors were sent %d times", n)
	}
	f.fail = nil
	do(t, run{server: f.url, args: []string{"call", "boilWater", "--help"}, env: map[string]string{
		"XDG_CACHE_HOME": home, "THROWBAR_TOKEN_FILE": filepath.Join(home, "none"),
	}}).check(t, 0, "How much water")
	// A server with the program's own catalogue leaves nothing behind.
	own, plain := newFake(t), t.TempDir()
	do(t, run{server: own.url, args: []string{"commands"}, env: map[string]string{"XDG_CACHE_HOME": plain}}).check(t, 0)
	if left, _ := os.ReadDir(plain); len(left) != 0 {
		t.Errorf("cache: %v", left)
	}
}

func TestCatalogueThatCannotBeRead(t *testing.T) {
	t.Parallel()
	bad := newFake(t, func(f *fake) { f.rawImage = []byte("\xff\xff") })
	bad.run(t, "commands").check(t, 0, "warning: this is not the server's own list: read the server's catalogue", "closeTabs")
}
