package main

import (
	"context"
	"flag"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const (
	optionProto = `syntax = "proto3";
package throwbar.option.v1;
import "google/protobuf/descriptor.proto";
message Command { string effect = 1; }
extend google.protobuf.MessageOptions { Command command = 51001; }
`
	lampProto = `syntax = "proto3";
package x.v1;
import "option.proto";
// Light a lamp.
//
// It stays lit.
message LightLamp {
  option (throwbar.option.v1.command) = { effect: "reversible" };
  message Result {}
}
message DimLamp {
  option (throwbar.option.v1.command) = {};
  message Result {}
}
`
	// A file of two words is a family of two words.
	kettleProto = `syntax = "proto3";
package x.v1;
import "option.proto";
message Boil {
  option (throwbar.option.v1.command) = { effect: "destructive" };
  message Result {}
}
message Bare { message Result {} }
`
	unions = `syntax = "proto3";
package x.v1;
import "lamp.proto";
import "big_kettle.proto";
message Action { oneof kind { LightLamp light_lamp = 1; Boil boil = 2; DimLamp dim_lamp = 3; } }
message Result { oneof kind { LightLamp.Result light_lamp = 1; Boil.Result boil = 2; DimLamp.Result dim_lamp = 3; } }
`
)

// run compiles the sources and returns what the plugin writes for union.proto.
func run(t *testing.T, union string) (map[string]string, error) {
	t.Helper()
	sources := map[string]string{
		"option.proto": optionProto, "lamp.proto": lampProto, "big_kettle.proto": kettleProto, "union.proto": union,
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			Accessor: protocompile.SourceAccessorFromMap(sources),
		}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), "union.proto")
	if err != nil {
		t.Fatal(err)
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: []string{"union.proto"}}
	seen := map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		imports := file.Imports()
		for i := range imports.Len() {
			add(imports.Get(i).FileDescriptor)
		}
		p := proto.CloneOf(protoutil.ProtoFromFileDescriptor(file))
		if p.Options == nil {
			p.Options = &descriptorpb.FileOptions{}
		}
		if p.GetOptions().GetGoPackage() == "" {
			p.Options.GoPackage = proto.String("example.org/gen/" + strings.ReplaceAll(p.GetPackage(), ".", "/"))
		}
		request.ProtoFile = append(request.ProtoFile, p)
	}
	add(files[0])
	raw, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	plain := new(pluginpb.CodeGeneratorRequest)
	if err := proto.Unmarshal(raw, plain); err != nil { // options as a real request carries them
		t.Fatal(err)
	}
	plugin, err := protogen.Options{}.New(plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := generate(plugin); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, f := range plugin.Response().GetFile() {
		out[filepath.Base(f.GetName())] = f.GetContent()
	}
	return out, nil
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	out, err := run(t, unions)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := out["union.throwbar.go"]
	if !ok || len(out) != 1 {
		t.Fatalf("wrote %v, want only union.throwbar.go", out)
	}
	if _, err := parser.ParseFile(token.NewFileSet(), "union.throwbar.go", got, 0); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "union.throwbar.go.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s (go test -update rewrites it):\n%s", golden, got)
	}
}

func TestNoUnionsNoOutput(t *testing.T) {
	t.Parallel()
	out, err := run(t, `syntax = "proto3"; package x.v1; message Other { oneof kind { string a = 1; } }`)
	if err != nil || len(out) != 0 {
		t.Errorf("got %v, %v; want nothing", out, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	const head = `syntax = "proto3"; package x.v1; import "lamp.proto"; import "big_kettle.proto"; `
	for name, c := range map[string]struct{ union, want string }{
		"only one union": {
			head + `message Action { oneof kind { Boil boil = 1; } }`,
			"Action and Result must both be here",
		},
		"numbers differ": {
			head + `message Action { oneof kind { Boil boil = 1; } } message Result { oneof kind { Boil.Result boil = 2; } }`,
			"Action.boil (1) has no result of the same number\nResult.boil (2) has no action of the same number",
		},
		"names differ": {
			head + `message Action { oneof kind { Boil boil = 1; } } message Result { oneof kind { Boil.Result boiled = 1; } }`,
			"Action.boil (1) is not paired with Result.boiled (1)",
		},
		"result of another command": {
			head + `message Action { oneof kind { Boil boil = 1; } } message Result { oneof kind { DimLamp.Result boil = 1; } }`,
			"Result.boil (1) must be of type x.v1.Boil.Result, not x.v1.DimLamp.Result",
		},
		"member not named after its message": {
			head + `message Action { oneof kind { Boil cook = 1; } } message Result { oneof kind { Boil.Result cook = 1; } }`,
			"Action.cook (1): a member bears its message's name",
		},
		"scalar member": {
			head + `message Action { oneof kind { string boil = 1; } } message Result { oneof kind { Boil.Result boil = 1; } }`,
			"Action.boil (1): members are messages",
		},
		"no option": {
			head + `message Action { oneof kind { Bare bare = 1; } } message Result { oneof kind { Bare.Result bare = 1; } }`,
			"Action.bare (1): x.v1.Bare lacks the option (throwbar.option.v1.command)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, c.union)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want an error with %q", out, err, c.want)
			}
		})
	}
}
