package catalog

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// Defaults of the (command) option.
const (
	DefaultTTL        = 30 * time.Second
	DefaultMaxTTL     = 5 * time.Minute
	DefaultMaxTargets = 20
	CeilingMaxTargets = 500
)

// Entry is one command, query or facility: all that schemas, the command line, dispatch and policy see of it.
type Entry struct {
	Name     string   // lowerCamel, for example closeTabs
	Summary  string   // from the comment
	Family   string   // the declaring file, for example tabs
	Aliases  []string // accepted, never advertised
	In       protoreflect.MessageDescriptor
	Out      protoreflect.MessageDescriptor
	Command  *optionv1.Command             // nil unless it is a command
	Method   protoreflect.MethodDescriptor // nil unless it is a query
	Facility *optionv1.Facility            // nil unless it is something that the agent itself can do

	catalogue *Catalogue
	member    protoreflect.FieldDescriptor
	pair      protoreflect.FieldDescriptor
	consents  []string
}

// Errors of an action that is not one of the catalogue's.
var (
	ErrNoAction      = errors.New("the action is empty")
	ErrUnknownAction = errors.New("the action is not in this catalogue")
)

// New makes an empty arguments message.
func (e *Entry) New() *dynamicpb.Message { return dynamicpb.NewMessage(e.In) }

// Comment is the comment that leads a descriptor's declaration.
func (e *Entry) Comment(d protoreflect.Descriptor) string { return e.catalogue.Comment(d) }

// TTL is the default time to live.
func (e *Entry) TTL() time.Duration {
	if d := e.Command.GetTtl(); d != nil {
		return d.AsDuration()
	}
	return DefaultTTL
}

// MaxTTL is the longest time to live that a caller may ask for.
func (e *Entry) MaxTTL() time.Duration {
	if d := e.Command.GetMaxTtl(); d != nil {
		return d.AsDuration()
	}
	return DefaultMaxTTL
}

// MaxTargets is the number of targets above which a person has to agree.
func (e *Entry) MaxTargets() int {
	n := int(e.Command.GetMaxTargets())
	if n == 0 {
		n = DefaultMaxTargets
	}
	return min(n, CeilingMaxTargets)
}

// Wrap puts arguments into an action, as it goes over the wire. A member that the program was not built with lives in
// the action's unknown fields.
func (e *Entry) Wrap(args proto.Message) (*commandv1.Action, error) {
	if e.member == nil {
		return nil, fmt.Errorf("%s is a query, not a command", e.Name)
	}
	action := &commandv1.Action{}
	return action, convert(action, e.member, args)
}

// Args takes the arguments out of an action.
func (e *Entry) Args(action *commandv1.Action) (*dynamicpb.Message, error) {
	return extract(action, e.member)
}

// Body is the arguments in an action, not a copy where the program was built with them. It must not be changed.
func (e *Entry) Body(action *commandv1.Action) (protoreflect.Message, error) {
	if m := known(action.ProtoReflect(), e.member); m != nil {
		return m, nil
	}
	m, err := e.Args(action)
	return m, err
}

// ResultBody is the result message in the result union, not a copy where the program was built with it. It must not be
// changed. It is an error if another command's result is set.
func (e *Entry) ResultBody(result *commandv1.Result) (protoreflect.Message, error) {
	if m := known(result.ProtoReflect(), e.pair); m != nil {
		return m, nil
	}
	m, err := e.Unwrap(result)
	return m, err
}

// known is the member of a union as a generated message; nil if the program was not built with it or it is not set.
func known(union protoreflect.Message, member protoreflect.FieldDescriptor) protoreflect.Message {
	if member == nil {
		return nil
	}
	fd := union.Descriptor().Fields().ByNumber(member.Number())
	if fd == nil || fd.Name() != member.Name() || !union.Has(fd) {
		return nil
	}
	return union.Get(fd).Message()
}

// WrapResult puts a result message into the result union.
func (e *Entry) WrapResult(out proto.Message) (*commandv1.Result, error) {
	result := &commandv1.Result{}
	return result, convert(result, e.pair, out)
}

// Unwrap takes the result message out of the result union. It is an error if another command's result is set.
func (e *Entry) Unwrap(result *commandv1.Result) (*dynamicpb.Message, error) {
	return extract(result, e.pair)
}

// convert writes body as the given member of a union.
func convert(union proto.Message, member protoreflect.FieldDescriptor, body proto.Message) error {
	// Deterministic, so that the same arguments are the same bytes in a plan's hash.
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode %s: %w", member.Name(), err)
	}
	wire := protowire.AppendTag(nil, member.Number(), protowire.BytesType)
	wire = protowire.AppendBytes(wire, raw)
	if err := proto.Unmarshal(wire, union); err != nil {
		return fmt.Errorf("wrap %s: %w", member.Name(), err)
	}
	return nil
}

// extract reads the given member of a union.
func extract(union proto.Message, member protoreflect.FieldDescriptor) (*dynamicpb.Message, error) {
	if member == nil {
		return nil, ErrUnknownAction
	}
	raw, err := proto.Marshal(union)
	if err != nil {
		return nil, fmt.Errorf("encode union: %w", err)
	}
	number, body, err := lastMember(raw)
	if err != nil {
		return nil, err
	}
	if number != member.Number() {
		return nil, fmt.Errorf("member %d is set where %s (%d) is expected", number, member.Name(), member.Number())
	}
	m := dynamicpb.NewMessage(member.Message())
	if err := proto.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("decode %s: %w", member.Name(), err)
	}
	return m, nil
}

// lastMember finds the member of an encoded union. A oneof has one; of several on the wire the last one counts.
func lastMember(raw []byte) (protoreflect.FieldNumber, []byte, error) {
	var number protoreflect.FieldNumber
	var body []byte
	for len(raw) > 0 {
		num, typ, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return 0, nil, fmt.Errorf("read union: %w", protowire.ParseError(n))
		}
		raw = raw[n:]
		size := protowire.ConsumeFieldValue(num, typ, raw)
		if size < 0 {
			return 0, nil, fmt.Errorf("read union: %w", protowire.ParseError(size))
		}
		if typ == protowire.BytesType {
			number = num
			body, _ = protowire.ConsumeBytes(raw)
		}
		raw = raw[size:]
	}
	return number, body, nil
}

// ByAction finds the entry of an action. It is ErrNoAction if nothing is set and ErrUnknownAction if the catalogue
// has no such member.
func (c *Catalogue) ByAction(action *commandv1.Action) (*Entry, error) {
	if fd := action.ProtoReflect().WhichOneof(action.ProtoReflect().Descriptor().Oneofs().Get(0)); fd != nil {
		if len(action.ProtoReflect().GetUnknown()) > 0 {
			return nil, fmt.Errorf("%w: it has fields besides %s", ErrUnknownAction, fd.JSONName())
		}
		if e, ok := c.byNumber[fd.Number()]; ok {
			return e, nil
		}
		return nil, fmt.Errorf("%w: %s", ErrUnknownAction, fd.JSONName())
	}
	unknown := action.ProtoReflect().GetUnknown()
	if len(unknown) == 0 {
		return nil, ErrNoAction
	}
	number, _, err := lastMember(unknown)
	if err != nil {
		return nil, err
	}
	if e, ok := c.byNumber[number]; ok {
		return e, nil
	}
	return nil, fmt.Errorf("%w: number %d", ErrUnknownAction, number)
}

// Name is the name of an action for logs and events, for example closeTabs or, if unknown, action 77.
func (c *Catalogue) Name(action *commandv1.Action) string {
	e, err := c.ByAction(action)
	if err == nil {
		return e.Name
	}
	if number, _, nerr := lastMember(action.ProtoReflect().GetUnknown()); nerr == nil && number != 0 {
		return fmt.Sprintf("action %d", number)
	}
	return "action"
}
