package catalog

import (
	"errors"
	"fmt"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Rules are the protovalidate rules of a field; nil if it has none.
func Rules(fd protoreflect.FieldDescriptor) *validate.FieldRules {
	rules, err := protovalidate.ResolveFieldRules(fd)
	if err != nil {
		return nil
	}
	return rules
}

// Required says whether a caller has to set a field, because an empty message breaks one of the field's rules.
func Required(fd protoreflect.FieldDescriptor) bool {
	return RequiredFields(fd.ContainingMessage())[fd.Number()]
}

// advertised says what is wrong if the model would not be told of a field that it has to set, here or further down.
func advertised(md protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) error {
	if seen[md.FullName()] {
		return nil
	}
	seen[md.FullName()] = true
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if Unadvertised(fd) {
			if Required(fd) {
				return fmt.Errorf("%s: what has to be set cannot be unadvertised", fd.FullName())
			}
			continue // nothing in it is told of
		}
		value := fd
		if fd.IsMap() {
			value = fd.MapValue()
		}
		if value.Message() != nil {
			if err := advertised(value.Message(), seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// RequiredFields are all fields of a message that are Required.
func RequiredFields(md protoreflect.MessageDescriptor) map[protoreflect.FieldNumber]bool {
	out := map[protoreflect.FieldNumber]bool{}
	for i := range md.RequiredNumbers().Len() {
		out[md.RequiredNumbers().Get(i)] = true
	}
	var invalid *protovalidate.ValidationError
	if !errors.As(protovalidate.Validate(dynamicpb.NewMessage(md)), &invalid) {
		return out
	}
	for _, v := range invalid.Violations {
		if path := v.Proto.GetField().GetElements(); len(path) > 0 {
			out[protoreflect.FieldNumber(path[0].GetFieldNumber())] = true
		}
	}
	return out
}
