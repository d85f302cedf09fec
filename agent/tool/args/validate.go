package args

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// broken are the rules that a message breaks, but for those about values that are a problem already.
func (d *decoder) broken(m *dynamicpb.Message) Problems {
	err := protovalidate.Validate(m)
	if err == nil {
		return nil
	}
	var invalid *protovalidate.ValidationError
	if !errors.As(err, &invalid) {
		return Problems{{Text: fmt.Sprintf("the rules cannot be checked: %v", err)}}
	}
	var out Problems
	for _, v := range invalid.Violations {
		at := d.pointer(m.Descriptor(), v.Proto.GetField().GetElements())
		if d.known(at) {
			continue
		}
		out = append(out, Problem{Pointer: at, Text: says(v)})
	}
	return out
}

// known says whether a problem at a place, around it, or in it was found before the rules were checked.
func (d *decoder) known(at string) bool {
	for _, p := range d.problems {
		if p.Pointer != "" && (within(p.Pointer, at) || within(at, p.Pointer)) {
			return true
		}
	}
	for _, meant := range d.meant {
		if within(at, meant) {
			return true
		}
	}
	return false
}

// within says whether a pointer is at or below another.
func within(at, place string) bool {
	return at == place || place != "" && strings.HasPrefix(at, place+"/")
}

func says(v *protovalidate.Violation) string {
	switch {
	case v.Proto.GetRuleId() == "required":
		return "is required"
	case v.Proto.GetRuleId() == "string.min_len" && v.RuleValue.IsValid() && v.RuleValue.Uint() == 1:
		return "is required and may not be empty"
	case v.Proto.GetMessage() != "":
		return v.Proto.GetMessage()
	default:
		return "breaks the rule " + v.Proto.GetRuleId()
	}
}

// pointer is the JSON pointer of a path of the contract, spelled as in the arguments.
func (d *decoder) pointer(md protoreflect.MessageDescriptor, path []*validate.FieldPathElement) string {
	at := ""
	for _, element := range path {
		if md == nil {
			return at
		}
		fd := md.Fields().ByNumber(protoreflect.FieldNumber(element.GetFieldNumber()))
		if fd == nil { // a oneof: it is about the message
			return at
		}
		at = d.written(below(at, fd.JSONName()))
		switch element.WhichSubscript() {
		case validate.FieldPathElement_Index_case:
			at = item(at, int(element.GetIndex()))
		case validate.FieldPathElement_BoolKey_case:
			at = below(at, strconv.FormatBool(element.GetBoolKey()))
		case validate.FieldPathElement_IntKey_case:
			at = below(at, strconv.FormatInt(element.GetIntKey(), 10))
		case validate.FieldPathElement_UintKey_case:
			at = below(at, strconv.FormatUint(element.GetUintKey(), 10))
		case validate.FieldPathElement_StringKey_case:
			at = below(at, element.GetStringKey())
		default:
		}
		at = d.written(at)
		md = fd.Message()
		if fd.IsMap() {
			md = fd.MapValue().Message()
		}
	}
	return at
}

// written is a pointer as it was spelled.
func (d *decoder) written(at string) string {
	if spelled, ok := d.spelled[at]; ok {
		return spelled
	}
	return at
}
