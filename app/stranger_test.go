package app_test

import (
	"context"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"throwbar.dev/throwbar/gen"
)

const strangerProto = `syntax = "proto3";
package throwbar.command.v1;
import "buf/validate/validate.proto";
import "throwbar/option/v1/option.proto";

// Brew a drink.
message BrewDrink {
  option (throwbar.option.v1.command) = { effect: EFFECT_REVERSIBLE approval: APPROVAL_AUTO };
  // What to brew.
  string drink = 1 [(buf.validate.field).string.min_len = 1];
  // How many cups.
  uint32 cups = 2 [(buf.validate.field).uint32 = {gte: 1, lte: 12}];
  // What brewing came to.
  message Result {
    // How many cups were brewed.
    uint32 brewed_count = 1;
  }
}
`

const strangerNumber = 5000

// strangerImage is the contract with one more command family, which exists only in this test: product code is built
// without it, and meets it in the descriptors.
func strangerImage(t *testing.T) []byte {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(gen.Descriptors, set); err != nil {
		t.Fatal(err)
	}
	const path = "throwbar/command/v1/drinks.proto"
	compiler := protocompile.Compiler{
		SourceInfoMode: protocompile.SourceInfoStandard,
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			Accessor: protocompile.SourceAccessorFromMap(map[string]string{path: strangerProto}),
		}),
	}
	compiler.Resolver = protocompile.CompositeResolver{
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
		compiler.Resolver,
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
	drinks := &descriptorpb.FileDescriptorProto{}
	if err := proto.Unmarshal(raw, drinks); err != nil {
		t.Fatal(err)
	}
	set.File = append(set.File, drinks)
	for _, f := range set.GetFile() {
		if f.GetName() == "throwbar/command/v1/command.proto" {
			f.Dependency = append(f.Dependency, path)
			addMember(f, "Action", ".throwbar.command.v1.BrewDrink")
			addMember(f, "Result", ".throwbar.command.v1.BrewDrink.Result")
		}
	}
	image, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func addMember(f *descriptorpb.FileDescriptorProto, union, typeName string) {
	for _, m := range f.GetMessageType() {
		if m.GetName() == union {
			m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{
				Name: proto.String("brew_drink"), JsonName: proto.String("brewDrink"), Number: proto.Int32(strangerNumber),
				Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
				Type:  descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), TypeName: &typeName, OneofIndex: proto.Int32(0),
			})
		}
	}
}

// strangerBody is the member of a union that this program was not built with.
func strangerBody(t *testing.T, m protoreflect.Message) []byte {
	t.Helper()
	raw := m.GetUnknown()
	number, _, n := protowire.ConsumeTag(raw)
	if n < 0 || number != strangerNumber {
		t.Fatalf("unknown fields %x", raw)
	}
	body, size := protowire.ConsumeBytes(raw[n:])
	if size < 0 {
		t.Fatalf("unknown fields %x", raw)
	}
	return body
}
