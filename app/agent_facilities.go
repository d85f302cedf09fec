package app

import (
	"context"
	"errors"
	"log/slog"

	"throwbar.dev/throwbar/agent/facility"
	"throwbar.dev/throwbar/agent/turn"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/policy"
)

// permits asks policy about what the agent itself does.
type permits struct {
	policy dispatch.Policy
	tokens *auth.Tokens
	log    *slog.Logger
}

// Permit is an error that the model may read where a rule does not let a facility through, or where whoever asked for the
// work may not any more. A facility runs at once or not at all: one that a rule asks a person about is denied too.
func (p permits) Permit(ctx context.Context, call turn.FacilityCall) error {
	if err := stillValid(ctx, p.tokens); err != nil {
		return refusal(ctx, p.log, err)
	}
	args := call.Request.ProtoReflect()
	d := p.policy.Decide(policy.Call{
		Workspace: call.Workspace, Conversation: call.Root, Principal: call.Conversation, Origin: call.Origin,
		Device: deviceOf(args.Interface()), Entry: call.Entry, Args: args,
	})
	switch d.Verdict {
	case controlv1.Verdict_VERDICT_ALLOW:
		return nil
	case controlv1.Verdict_VERDICT_ASK:
		return refusal(ctx, p.log, fault.New(fault.Denied, "%s, and nobody is asked about what an agent itself does: have the rule allow it", d.Reason))
	default:
		return refusal(ctx, p.log, fault.New(fault.Denied, "%s", d.Reason))
	}
}

// undoer lets the agent undo by the same road as everybody else, and wait for people on it.
type undoer struct{ commander }

// Undo brings back what commands took away. One that an earlier process began is followed, and begun only if it had not
// come so far that anything was written down: the newest act is another one after that.
func (u undoer) Undo(ctx context.Context, undo facility.Undo) (*controlv1.UndoResponse, error) {
	if err := stillValid(ctx, u.tokens); err != nil {
		return nil, refusal(ctx, u.log, err)
	}
	asked := &asked{commander: u.commander, call: turn.Call{
		Workspace: undo.Workspace, Principal: undo.Principal, Asked: undo.Asked, Resolved: undo.Resolved,
	}}
	watchCtx, stop := context.WithCancel(ctx)
	res, err := u.undo(ctx, undo, func(a *controlv1.Approval) { asked.watch(watchCtx, a) })
	asked.settle(ctx)
	stop()
	asked.watches.Wait()
	if err != nil {
		return nil, refusal(ctx, u.log, err)
	}
	return res, nil
}

// Withdraw takes back what an undo of an earlier process still waits for, and says how all of it ended. It is nil if nothing
// was begun.
func (u undoer) Withdraw(ctx context.Context, undo facility.Undo, why string) (*controlv1.UndoResponse, error) {
	begun, err := u.commander.Withdraw(ctx, turn.Call{
		Workspace: undo.Workspace, Principal: undo.Principal, Conversation: undo.Conversation, Origin: undo.Origin,
		Key: undo.Key, Durable: undo.Durable, Asked: undo.Asked, Resolved: undo.Resolved,
	}, why)
	if begun == nil || err != nil {
		return nil, err
	}
	undo.Again = true // what was begun is only read
	res, err := u.undo(ctx, undo, nil)
	if err != nil {
		return nil, refusal(ctx, u.log, err)
	}
	return res, nil
}

func (u undoer) undo(ctx context.Context, undo facility.Undo, asked func(*controlv1.Approval)) (*controlv1.UndoResponse, error) {
	return u.dispatcher.Undo(ctx, dispatch.UndoRequest{
		Workspace: undo.Workspace, Principal: undo.Principal, Conversation: undo.Conversation, Origin: undo.Origin,
		RequestID: undo.Key, Again: undo.Again, Detached: undo.Durable, Command: undo.Command, Device: undo.Device, Asked: asked,
		Stays: func(cause error) bool { return undo.Durable && errors.Is(cause, turn.ErrShutdown) },
	})
}
