package facility

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// undo brings back what commands took away.
func (f *Facilities) undo(ctx context.Context, call turn.FacilityCall, in *agentv1.Undo) (*agentv1.Undo_Result, error) {
	if f.config.Undoer == nil {
		return nil, refuse(commandv1.ErrorCode_ERROR_CODE_UNSUPPORTED, "nothing can be undone here")
	}
	asked := undoOf(call)
	asked.Command, asked.Device = in.GetCommandId(), in.GetDeviceId()
	res, err := f.config.Undoer.Undo(ctx, asked)
	if err != nil {
		return nil, f.explain(ctx, call, err, "it could not be undone")
	}
	return undone(res)
}

func undoOf(call turn.FacilityCall) Undo {
	return Undo{
		Workspace: call.Workspace, Principal: call.Conversation, Conversation: call.Root, Origin: call.Origin, Key: call.Key,
		Again: call.Again, Durable: call.Durable, Asked: call.Asked, Resolved: call.Resolved,
	}
}

// forbidden answers a call that may not be made. What an earlier process began of it is taken back and told: that it may not
// be is no answer to what became of that.
func (f *Facilities) forbidden(ctx context.Context, call turn.FacilityCall, err error) (proto.Message, error) {
	undoes := call.Entry.In.FullName() == (&agentv1.Undo{}).ProtoReflect().Descriptor().FullName()
	var refusal *turn.Refusal
	if !call.Again || !undoes || f.config.Undoer == nil || !errors.As(err, &refusal) {
		return nil, err
	}
	res, failed := f.config.Undoer.Withdraw(ctx, undoOf(call), refusal.Message)
	switch {
	case failed != nil:
		return nil, f.explain(ctx, call, failed, "it may not be undone any more, and what was begun of that could not be taken back")
	case res == nil:
		return nil, err
	default:
		return undone(res)
	}
}

// undone is what an undo came to.
func undone(res *controlv1.UndoResponse) (*agentv1.Undo_Result, error) {
	if err := nothing(res.GetOutcomes()); err != nil {
		return nil, err
	}
	out := &agentv1.Undo_Result{UndoneCommandIds: res.GetUndoneCommandIds()}
	for _, o := range res.GetOutcomes() {
		out.Devices = append(out.Devices, undoneOn(o))
	}
	return out, nil
}

// nothing is an error with the reason of each device, if it went well on none.
func nothing(outcomes []*controlv1.DeviceOutcome) error {
	var reasons []string
	for _, o := range outcomes {
		if o.GetError() == nil {
			return nil
		}
		name := o.GetDeviceName()
		if name == "" {
			name = o.GetDeviceId()
		}
		reasons = append(reasons, name+": "+o.GetError().GetMessage())
	}
	if len(reasons) == 0 {
		return nil
	}
	return refuse(outcomes[0].GetError().GetCode(), "%s", strings.Join(reasons, "; "))
}

// undoneOn is how an undo went on one device.
func undoneOn(o *controlv1.DeviceOutcome) *agentv1.UndoneOn {
	on := &agentv1.UndoneOn{DeviceId: o.GetDeviceId(), DeviceName: o.GetDeviceName()}
	if e := o.GetError(); e != nil {
		on.Error = e.GetMessage()
		return on
	}
	back, rest, why := items(o.GetResult().ProtoReflect())
	on.Restored = back
	if rest > 0 {
		on.Error = why
		if why == "" {
			on.Error = "not everything came back"
		}
	}
	return on
}

// items counts what a result says of each thing, whichever command it is of: what went well, what did not, and of the
// first of those why.
func items(result protoreflect.Message) (well, not uint32, why string) {
	result.Range(func(_ protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		body := v.Message()
		body.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			if !fd.IsList() || fd.Message() == nil {
				return true
			}
			for i := range v.List().Len() {
				item, ok := v.List().Get(i).Message().Interface().(*commandv1.ItemOutcome)
				switch {
				case !ok:
				case item.GetStatus() == commandv1.ItemStatus_ITEM_STATUS_OK:
					well++
				default:
					if not++; why == "" {
						why = item.GetDetail()
					}
				}
			}
			return true
		})
		return false // a union has one member
	})
	return well, not, why
}
