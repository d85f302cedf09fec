package approval

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// View is an approval as callers see it: without sensitive fields. Name is the name of a device; empty if it has none any
// more. Arguments that cannot be read are left out.
func (a *Approval) View(cat *catalog.Catalogue, name func(workspace, device string) string) *controlv1.Approval {
	out := &controlv1.Approval{
		ApprovalId: a.ID, State: a.State.Proto(), Principal: a.Principal, Origin: a.Origin, ConversationId: a.Conversation,
		GroupId: a.Group, RequestId: a.Request, Reason: a.Reason, RuleId: a.Rule, PolicyVersion: a.Version, Hash: a.Hash,
		CreatedAt: stamp(a.CreatedAt), ExpiresAt: stamp(a.ExpiresAt), DecidedAt: stamp(a.DecidedAt), DecidedBy: a.DecidedBy,
		DecisionReason: a.DecisionReason, RememberedRuleId: a.Remembered,
	}
	for i := range a.Calls {
		c := &a.Calls[i]
		call := &controlv1.ApprovalCall{
			CommandId: c.Command, DeviceId: c.Device, DeviceName: name(a.Workspace, c.Device), Name: c.Name,
			Targets: c.Targets, StartedAt: stamp(c.UsedAt),
		}
		for _, f := range []struct {
			raw []byte
			to  **commandv1.Action
		}{{c.Proposed, &call.Proposed}, {c.Edited, &call.Edited}, {c.Effective, &call.Effective}} {
			if len(f.raw) == 0 {
				continue
			}
			if action, err := Shown(cat, f.raw); err == nil { // damage to one must not hide all others
				*f.to = action
			}
		}
		out.Calls = append(out.Calls, call)
	}
	return out
}

func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// Shown is an encoded action without its sensitive fields.
func Shown(cat *catalog.Catalogue, raw []byte) (*commandv1.Action, error) {
	action := &commandv1.Action{}
	if err := proto.Unmarshal(raw, action); err != nil {
		return nil, fmt.Errorf("decode action: %w", err)
	}
	shown, ok := cat.Redact(action).(*commandv1.Action)
	if !ok {
		return nil, errNoAction
	}
	return shown, nil
}

var errNoAction = errors.New("what is left of the action is none")

// hide clears the sensitive fields of a message and of those in it. What this program does not know goes too: nobody can say
// what it is.
func hide(m protoreflect.Message) {
	m.SetUnknown(nil)
	each(m, func(fd protoreflect.FieldDescriptor) {
		if catalog.Sensitive(fd) {
			m.Clear(fd)
		}
	}, hide)
}

// each calls field for the set fields of a message, and then message for the messages in those that are left.
func each(m protoreflect.Message, field func(protoreflect.FieldDescriptor), message func(protoreflect.Message)) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if !m.Has(fd) {
			continue
		}
		field(fd)
		if !m.Has(fd) || fd.Message() == nil {
			continue
		}
		switch v := m.Get(fd); {
		case fd.IsMap():
			if fd.MapValue().Message() == nil {
				continue
			}
			v.Map().Range(func(_ protoreflect.MapKey, value protoreflect.Value) bool {
				message(value.Message())
				return true
			})
		case fd.IsList():
			for j := range v.List().Len() {
				message(v.List().Get(j).Message())
			}
		default:
			message(v.Message())
		}
	}
}

// keepHidden makes the sensitive fields of an edited message those of the one that was proposed: nobody was shown them, so
// nobody can change them. Where an edit has another list of messages than was proposed, those that are new have none.
func keepHidden(to, from protoreflect.Message) {
	fields := to.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		switch {
		case catalog.Sensitive(fd):
			if from.Has(fd) {
				to.Set(fd, from.Get(fd))
			} else {
				to.Clear(fd)
			}
		case fd.Message() == nil || fd.IsMap() || !to.Has(fd):
		case fd.IsList():
			list, was := to.Get(fd).List(), from.Get(fd).List()
			for j := range list.Len() {
				if j < was.Len() {
					keepHidden(list.Get(j).Message(), was.Get(j).Message())
				} else {
					hide(list.Get(j).Message())
				}
			}
		case from.Has(fd):
			keepHidden(to.Mutable(fd).Message(), from.Get(fd).Message())
		default:
			hide(to.Mutable(fd).Message())
		}
	}
}
