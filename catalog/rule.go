package catalog

import (
	"errors"

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
	if fd.Cardinality() == protoreflect.Required {
		return true
	}
	var invalid *protovalidate.ValidationError
	if !errors.As(protovalidate.Validate(dynamicpb.NewMessage(fd.ContainingMessage())), &invalid) {
		return false
	}
	for _, v := range invalid.Violations {
		path := v.Proto.GetField().GetElements()
		if len(path) > 0 && path[0].GetFieldNumber() == int32(fd.Number()) {
			return true
		}
	}
	return false
}
