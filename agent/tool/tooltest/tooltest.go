// Package tooltest compiles snippets of proto for tests: messages with rules, and commands that exist only in a test.
package tooltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	_ "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate" // imported by the snippets
	"throwbar.dev/throwbar/gen"
	_ "throwbar.dev/throwbar/gen/go/throwbar/agent/v1" // files of the image that snippets import
	_ "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	_ "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	_ "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

const path = "snippet.proto"

// header makes a snippet of declarations a file.
const header = `syntax = "proto3";
package snippet;
import "buf/validate/validate.proto";
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/empty.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
`

// Message compiles proto3 declarations and returns the message In.
func Message(t testing.TB, declarations string) protoreflect.MessageDescriptor {
	t.Helper()
	return find(t, Compile(t, header+declarations))
}

// Edition compiles declarations of edition 2023 and returns the message In.
func Edition(t testing.TB, declarations string) protoreflect.MessageDescriptor {
	t.Helper()
	source := strings.Replace(header, `syntax = "proto3";`, `edition = "2023";`, 1) + declarations
	return find(t, Compile(t, source))
}

func find(t testing.TB, file protoreflect.FileDescriptor) protoreflect.MessageDescriptor {
	t.Helper()
	in := file.Messages().ByName("In")
	if in == nil {
		t.Fatal("the snippet has no message In")
	}
	return in
}

// Compile compiles the source of one file, whose comments stay with it.
func Compile(t testing.TB, source string) protoreflect.FileDescriptor {
	t.Helper()
	file, err := protodesc.NewFile(compile(t, source), protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func compile(t testing.TB, source string) *descriptorpb.FileDescriptorProto {
	t.Helper()
	own := func(name string) (io.ReadCloser, error) {
		if name != path {
			return nil, errors.New("not a snippet")
		}
		return io.NopCloser(strings.NewReader(source)), nil
	}
	linked := func(name string) (protocompile.SearchResult, error) {
		fd, err := protoregistry.GlobalFiles.FindFileByPath(name)
		return protocompile.SearchResult{Desc: fd}, err
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.CompositeResolver{&protocompile.SourceResolver{Accessor: own}, protocompile.ResolverFunc(linked)},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	// Written and read again, so that the options become those that the program is linked with.
	raw, err := proto.Marshal(protodesc.ToFileDescriptorProto(files[0]))
	if err != nil {
		t.Fatal(err)
	}
	out := &descriptorpb.FileDescriptorProto{}
	if err := proto.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Image returns the descriptor image with one more command in both unions: member of a type that source declares in
// the package snippet, with number 5000 and the given comment.
func Image(t testing.TB, source, member, message, comment string) []byte {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(gen.Descriptors, set); err != nil {
		t.Fatal(err)
	}
	for _, file := range set.GetFile() {
		if file.GetName() != "throwbar/command/v1/command.proto" {
			continue
		}
		file.Dependency = append(file.Dependency, path)
		extend(file, 0, strangerNumber, member, ".snippet."+message, comment)
		extend(file, 1, strangerNumber, member, ".snippet."+message+".Result", "What "+member+" did.")
	}
	set.File = append(set.File, compile(t, `syntax = "proto3"; package snippet;
import "buf/validate/validate.proto";
import "throwbar/option/v1/option.proto";
`+source))
	raw, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

const strangerNumber = 5000

// Many returns the descriptor image with a number of further commands in both unions.
func Many(t testing.TB, n int) []byte {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(gen.Descriptors, set); err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	source.WriteString(`syntax = "proto3"; package snippet; import "throwbar/option/v1/option.proto";`)
	for i := range n {
		fmt.Fprintf(&source, `message M%d { option (throwbar.option.v1.command) = {effect: EFFECT_READ approval: APPROVAL_AUTO}; message Result {} }`, i)
	}
	for _, file := range set.GetFile() {
		if file.GetName() != "throwbar/command/v1/command.proto" {
			continue
		}
		file.Dependency = append(file.Dependency, path)
		for i := range n {
			number, member, message := int32(strangerNumber+i), fmt.Sprintf("m%d", i), fmt.Sprintf(".snippet.M%d", i)
			extend(file, 0, number, member, message, "One of many.")
			extend(file, 1, number, member, message+".Result", "What it did.")
		}
	}
	set.File = append(set.File, compile(t, source.String()))
	raw, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// extend adds a member to the union at an index of a file's messages.
func extend(file *descriptorpb.FileDescriptorProto, union, number int32, member, typeName, comment string) {
	message := file.GetMessageType()[union]
	at := int32(len(message.GetField()))
	message.Field = append(message.Field, &descriptorpb.FieldDescriptorProto{
		Name: proto.String(member), Number: proto.Int32(number), TypeName: proto.String(typeName),
		Label:      descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		Type:       descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(),
		OneofIndex: proto.Int32(0), JsonName: proto.String(jsonName(member)),
	})
	file.SourceCodeInfo.Location = append(file.SourceCodeInfo.Location, &descriptorpb.SourceCodeInfo_Location{
		Path: []int32{4, union, 2, at}, Span: []int32{0, 0, 0}, LeadingComments: proto.String(" " + comment + "\n"),
	})
}

func jsonName(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		words[i+1] = fmt.Sprintf("%s%s", strings.ToUpper(w[:1]), w[1:])
	}
	return strings.Join(words, "")
}
