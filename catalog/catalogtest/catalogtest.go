// Package catalogtest makes descriptor images with commands that exist in tests only: product code is built without them,
// and meets them in the descriptors.
package catalogtest

import (
	"context"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"throwbar.dev/throwbar/gen"
	_ "throwbar.dev/throwbar/gen/go/throwbar/command/v1" // what a command may import
	_ "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// Command is a command of a test.
type Command struct {
	Name   string // of its message in throwbar.command.v1, for example BrewDrink
	Member string // its name in the unions, for example brew_drink
	Number int32  // in the unions
	Source string // the file that declares it
}

// Image is the contract with one more command.
func Image(t testing.TB, c Command) []byte {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(gen.Descriptors, set); err != nil {
		t.Fatal(err)
	}
	path := "throwbar/command/v1/" + c.Member + ".proto"
	set.File = append(set.File, compile(t, path, c.Source))
	for _, f := range set.GetFile() {
		if f.GetName() == "throwbar/command/v1/command.proto" {
			f.Dependency = append(f.Dependency, path)
			c.join(f, "Action", ".throwbar.command.v1."+c.Name)
			c.join(f, "Result", ".throwbar.command.v1."+c.Name+".Result")
		}
	}
	image, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func compile(t testing.TB, path, source string) *descriptorpb.FileDescriptorProto {
	t.Helper()
	compiler := protocompile.Compiler{
		SourceInfoMode: protocompile.SourceInfoStandard,
		Resolver: protocompile.CompositeResolver{
			protocompile.ResolverFunc(func(name string) (protocompile.SearchResult, error) {
				if name == path {
					return protocompile.SearchResult{}, protoregistry.NotFound
				}
				fd, err := protoregistry.GlobalFiles.FindFileByPath(name)
				if err != nil {
					return protocompile.SearchResult{}, err
				}
				return protocompile.SearchResult{Proto: protodesc.ToFileDescriptorProto(fd)}, nil
			}),
			protocompile.WithStandardImports(&protocompile.SourceResolver{
				Accessor: protocompile.SourceAccessorFromMap(map[string]string{path: source}),
			}),
		},
	}
	files, err := compiler.Compile(context.WithoutCancel(t.Context()), path)
	if err != nil {
		t.Fatal(err)
	}
	// Marshalled and read again, so that its options are typed.
	raw, err := proto.Marshal(protodesc.ToFileDescriptorProto(files[0]))
	if err != nil {
		t.Fatal(err)
	}
	compiled := &descriptorpb.FileDescriptorProto{}
	if err := proto.Unmarshal(raw, compiled); err != nil {
		t.Fatal(err)
	}
	return compiled
}

// join makes the command a member of a union.
func (c Command) join(f *descriptorpb.FileDescriptorProto, union, typeName string) {
	for _, m := range f.GetMessageType() {
		if m.GetName() == union {
			m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{
				Name: &c.Member, JsonName: proto.String(c.jsonName()), Number: &c.Number,
				Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
				Type:  descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), TypeName: &typeName, OneofIndex: proto.Int32(0),
			})
		}
	}
}

func (c Command) jsonName() string { return strings.ToLower(c.Name[:1]) + c.Name[1:] }
