package main

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

const (
	actionName   = "Action"
	resultName   = "Result"
	unionName    = "kind"
	commandOpt   = protoreflect.FullName("throwbar.option.v1.command")
	familySuffix = ".proto"
)

// pair is one command: its member in Action and the member of the same number and name in Result.
type pair struct {
	action, result *protogen.Field
	family         string // Go name of the file that declares the action's message
}

// readPairs returns the commands in union order, nothing when the file does not hold both unions, and every fault at once.
func readPairs(plugin *protogen.Plugin, file *protogen.File) ([]pair, error) {
	actions, results := union(file, actionName), union(file, resultName)
	if actions == nil && results == nil {
		return nil, nil
	}
	if actions == nil || results == nil {
		return nil, fmt.Errorf("%s: %s and %s must both be here, each with a oneof %s", file.Desc.Path(), actionName, resultName, unionName)
	}
	options, err := optionTypes(plugin)
	if err != nil {
		return nil, err
	}
	byNumber := map[protoreflect.FieldNumber]*protogen.Field{}
	for _, result := range results.Fields {
		byNumber[result.Desc.Number()] = result
	}
	var pairs []pair
	var faults []error
	for _, action := range actions.Fields {
		result := byNumber[action.Desc.Number()]
		delete(byNumber, action.Desc.Number())
		if err := checkPair(file, action, result, options); err != nil {
			faults = append(faults, err)
			continue
		}
		pairs = append(pairs, pair{action, result, family(action.Message)})
	}
	for _, result := range results.Fields {
		if byNumber[result.Desc.Number()] != nil {
			faults = append(faults, fmt.Errorf("%s has no action of the same number", member(result)))
		}
	}
	return pairs, errors.Join(faults...)
}

func checkPair(file *protogen.File, action, result *protogen.Field, options *protoregistry.Types) error {
	switch {
	case result == nil:
		return fmt.Errorf("%s has no result of the same number", member(action))
	case action.Desc.Name() != result.Desc.Name():
		return fmt.Errorf("%s is not paired with %s: the names differ", member(action), member(result))
	case action.Message == nil || result.Message == nil:
		return fmt.Errorf("%s: members are messages, on both sides", member(action))
	case action.GoName != action.Message.GoIdent.GoName:
		return fmt.Errorf("%s: a member bears its message's name, %s does not", member(action), action.Message.Desc.FullName())
	case result.Message.Desc.FullName() != action.Message.Desc.FullName().Append(resultName):
		return fmt.Errorf("%s must be of type %s.%s, not %s", member(result), action.Message.Desc.FullName(), resultName, result.Message.Desc.FullName())
	case action.Message.GoIdent.GoImportPath != file.GoImportPath:
		return fmt.Errorf("%s: %s is of another package", member(action), action.Message.Desc.FullName())
	}
	has, err := hasCommand(action.Message, options)
	if err != nil {
		return err
	}
	if !has {
		return fmt.Errorf("%s: %s lacks the option (%s)", member(action), action.Message.Desc.FullName(), commandOpt)
	}
	return nil
}

// union returns the oneof called kind of a top-level message of that name.
func union(file *protogen.File, message string) *protogen.Oneof {
	for _, m := range file.Messages {
		if string(m.Desc.Name()) != message {
			continue
		}
		for _, o := range m.Oneofs {
			if string(o.Desc.Name()) == unionName && !o.Desc.IsSynthetic() {
				return o
			}
		}
	}
	return nil
}

// optionTypes makes the request's own extensions readable: the plugin is built before their Go code exists.
func optionTypes(plugin *protogen.Plugin) (*protoregistry.Types, error) {
	types := new(protoregistry.Types)
	for _, file := range plugin.Files {
		for _, ext := range file.Extensions {
			if err := types.RegisterExtension(dynamicpb.NewExtensionType(ext.Desc)); err != nil {
				return nil, err
			}
		}
	}
	return types, nil
}

func hasCommand(message *protogen.Message, options *protoregistry.Types) (bool, error) {
	raw, err := proto.Marshal(message.Desc.Options())
	if err != nil {
		return false, err
	}
	typed := new(descriptorpb.MessageOptions)
	if err := (proto.UnmarshalOptions{Resolver: options}).Unmarshal(raw, typed); err != nil {
		return false, err
	}
	// By name: HasExtension compares the containing descriptors, and the request brings its own copy of MessageOptions.
	found := false
	typed.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		found = found || f.FullName() == commandOpt
		return !found
	})
	return found, nil
}

// family turns proto/throwbar/command/v1/tabs.proto into Tabs.
func family(message *protogen.Message) string {
	name := strings.TrimSuffix(path.Base(message.Desc.ParentFile().Path()), familySuffix)
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func member(f *protogen.Field) string {
	return fmt.Sprintf("%s.%s (%d)", f.Parent.Desc.Name(), f.Desc.Name(), f.Desc.Number())
}
