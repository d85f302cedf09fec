package throwbar

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// callGrace is how much longer than a command may live a call waits for its answer.
const callGrace = 5 * time.Second

// Command is the arguments of a command, and what its result is. Every action of the contract is one.
type Command[R proto.Message] interface {
	proto.Message
	// EmptyResult ties the result's type to the arguments'.
	EmptyResult() R
}

// Call sends one command to one device, waits for its end, and returns the typed result. The device may be empty
// where the ids in the arguments say which. A command that ends without a result is an *Error with its code. Without
// a deadline in the context the call ends five seconds after the command's own time to live. It travels like Dispatch:
// many calls at a time share one stream.
func Call[C Command[R], R proto.Message](ctx context.Context, client *Client, device string, args C) (R, error) {
	none := *new(R)
	action, err := Wrap(args)
	if err != nil {
		return none, err
	}
	req := &controlv1.DispatchRequest{Action: action}
	if device != "" {
		req.DeviceIds = []string{device}
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeToLive(args)+callGrace)
		defer cancel()
	}
	res, err := client.Dispatch(ctx, req)
	if err != nil {
		return none, fmt.Errorf("dispatch: %w", err)
	}
	if len(res.GetOutcomes()) != 1 {
		return none, Errorf(CodeInvalid, "the ids belong to %d devices: use Client.Dispatch for several", len(res.GetOutcomes()))
	}
	outcome := res.GetOutcomes()[0]
	if err := FromCommand(outcome.GetError()); err != nil {
		return none, err
	}
	return unwrap[C, R](args, outcome.GetResult())
}

// Wrap puts the arguments of a command into the union that travels.
func Wrap(args proto.Message) (*commandv1.Action, error) {
	action := &commandv1.Action{}
	fields := action.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if fields.Get(i).Message().FullName() == args.ProtoReflect().Descriptor().FullName() {
			action.ProtoReflect().Set(fields.Get(i), protoreflect.ValueOfMessage(args.ProtoReflect()))
			return action, nil
		}
	}
	return nil, Errorf(CodeUnsupported, "%s is no command", args.ProtoReflect().Descriptor().FullName())
}

// unwrap takes the result of a command out of the union.
func unwrap[C Command[R], R proto.Message](args C, result *commandv1.Result) (R, error) {
	m := result.ProtoReflect()
	if fd := m.WhichOneof(m.Descriptor().Oneofs().Get(0)); fd != nil {
		if out, ok := m.Get(fd).Message().Interface().(R); ok {
			return out, nil
		}
	}
	return *new(R), Errorf(CodeInternal, "the result is not one of %s", args.ProtoReflect().Descriptor().Name())
}

// timeToLive is the time to live of a command when its caller gives none.
func timeToLive(args proto.Message) time.Duration {
	option, _ := proto.GetExtension(args.ProtoReflect().Descriptor().Options(), optionv1.E_Command).(*optionv1.Command)
	if d := option.GetTtl(); d != nil {
		return d.AsDuration()
	}
	return catalog.DefaultTTL
}
