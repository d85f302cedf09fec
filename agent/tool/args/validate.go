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

// broken are the rules that a message at a place breaks, but for those about values that are a problem already.
func (d *decoder) broken(m *dynamicpb.Message, place string) Problems {
	err := protovalidate.Validate(m)
	if err == nil {
		return nil
	}
	var invalid *protovalidate.ValidationError
	if !errors.As(err, &invalid) {
		return Problems{{Pointer: place, Text: fmt.Sprintf("the rules cannot be checked: %v", err)}}
	}
	var out Problems
	for _, v := range invalid.Violations {
		at := d.pointer(place, m.Descriptor(), v.Proto.GetField().GetElements())
		if d.known(at) {
			continue
		}
		out = append(out, Problem{Pointer: at, Text: says(v)})
	}
	return out
}

// known says whether a problem at a place, around it, or in it was found before the rules were checked.
func (d *decoder) known(at string) bool {
	d.places.add(d.problems, d.meant)
	if d.places.above[at] {
		return true
	}
	for ; at != ""; at = parent(at) {
		if d.places.at[at] {
			return true
		}
	}
	return false
}

// places are where the problems are, for a quick answer: a model can make a hundred thousand of them.
type places struct {
	at, above       map[string]bool // pointers of problems, and of what they are in
	problems, meant int             // how many of each are in
}

// add adds the problems that are new, and the pointers that misspelt keys were meant to be.
func (p *places) add(problems Problems, meant []string) {
	if p.at == nil {
		p.at, p.above = map[string]bool{}, map[string]bool{}
	}
	for _, problem := range problems[p.problems:] {
		p.at[problem.Pointer] = true
		for up := parent(problem.Pointer); up != "" && !p.above[up]; up = parent(up) {
			p.above[up] = true
		}
	}
	for _, pointer := range meant[p.meant:] {
		p.at[pointer] = true
	}
	p.problems, p.meant = len(problems), len(meant)
}

// parent is the pointer of what a pointer is in; empty for the arguments as a whole.
func parent(at string) string { return at[:max(0, strings.LastIndexByte(at, '/'))] }

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

// pointer is the JSON pointer of a path of the contract that begins at a place, spelled as in the arguments.
func (d *decoder) pointer(at string, md protoreflect.MessageDescriptor, path []*validate.FieldPathElement) string {
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
