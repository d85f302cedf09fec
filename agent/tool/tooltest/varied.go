package tooltest

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"throwbar.dev/throwbar/gen"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// inFamily is how many commands of Varied are declared in one file.
const inFamily = 20

// Varied returns the descriptor image with a number of further commands in both unions: twenty to a family, each with a
// comment and three commented fields of its own, every third of which reads. Their names are verb, thing and number, for
// example archive_letters7 in the family letters.
func Varied(t testing.TB, n int) []byte {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(gen.Descriptors, set); err != nil {
		t.Fatal(err)
	}
	verbs := []string{"archive", "print", "rename", "share", "copy", "inspect", "lock", "publish", "translate", "weigh"}
	things := []string{"letters", "invoices", "photos", "songs", "rooms", "lamps", "tickets", "recipes", "parcels", "robots"}
	var union *descriptorpb.FileDescriptorProto
	for _, file := range set.GetFile() {
		if file.GetName() == "throwbar/command/v1/command.proto" {
			union = file
		}
	}
	for at := 0; at < n; at += inFamily {
		thing := things[at/inFamily%len(things)]
		family := thing
		if round := at / inFamily / len(things); round > 0 {
			family = fmt.Sprintf("%s%d", thing, round)
		}
		file := &descriptorpb.FileDescriptorProto{
			Name: proto.String("varied/" + family + ".proto"), Package: proto.String("varied." + family), Syntax: proto.String("proto3"),
			Dependency: []string{"throwbar/option/v1/option.proto"}, SourceCodeInfo: &descriptorpb.SourceCodeInfo{},
		}
		for i := at; i < min(n, at+inFamily); i++ {
			verb := verbs[i%len(verbs)]
			member, message := fmt.Sprintf("%s_%s%d", verb, thing, i), fmt.Sprintf("M%d", i)
			comment := fmt.Sprintf("%s%s %s that the user has chosen.", strings.ToUpper(verb[:1]), verb[1:], thing)
			declare(file, message, thing, i%3 == 0)
			extend(union, 0, int32(strangerNumber+i), member, "."+file.GetPackage()+"."+message, comment)
			extend(union, 1, int32(strangerNumber+i), member, "."+file.GetPackage()+"."+message+".Result", "What it did.")
		}
		union.Dependency = append(union.Dependency, file.GetName())
		set.File = append(set.File, file)
	}
	raw, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// declare adds a command's message with three fields.
func declare(file *descriptorpb.FileDescriptorProto, name, thing string, reads bool) {
	option := &optionv1.Command{Effect: optionv1.Effect_EFFECT_DESTRUCTIVE, Approval: optionv1.Approval_APPROVAL_REQUIRED}
	if reads {
		option = &optionv1.Command{Effect: optionv1.Effect_EFFECT_READ, Approval: optionv1.Approval_APPROVAL_AUTO}
	}
	options := &descriptorpb.MessageOptions{}
	proto.SetExtension(options, optionv1.E_Command, option)
	m := &descriptorpb.DescriptorProto{
		Name: proto.String(name), Options: options, NestedType: []*descriptorpb.DescriptorProto{{Name: proto.String("Result")}},
	}
	at := int32(len(file.GetMessageType()))
	for i, field := range []struct{ name, text string }{
		{strings.TrimSuffix(thing, "s") + "_name", "Name of what is meant, as the list of " + thing + " shows it."},
		{"folder", "Folder in which it is looked for; everywhere if left out."},
		{"reason", "Why, for the record that its owner reads."},
	} {
		m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{
			Name: proto.String(field.name), JsonName: proto.String(jsonName(field.name)), Number: proto.Int32(int32(i + 1)),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
		})
		file.SourceCodeInfo.Location = append(file.SourceCodeInfo.Location, &descriptorpb.SourceCodeInfo_Location{
			Path: []int32{4, at, 2, int32(i)}, Span: []int32{0, 0, 0}, LeadingComments: proto.String(" " + field.text + "\n"),
		})
	}
	file.MessageType = append(file.MessageType, m)
}
