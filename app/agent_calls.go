package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/turn"
	"throwbar.dev/throwbar/catalog"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/event"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/policy"
	"throwbar.dev/throwbar/server/rpc"
)

// commander lets the agent send commands by the same road as everybody else, and wait for people on it.
type commander struct {
	dispatcher *dispatch.Dispatcher
	approvals  *approval.Desk
	feed       *event.Feed
	tokens     *auth.Tokens
	log        *slog.Logger
}

// Command runs a command and waits for its end on every device. For one who may not any more it runs nothing, and what an
// earlier process began is taken back: nobody is to let happen what the turn has been told did not.
func (c commander) Command(ctx context.Context, call turn.Call) (*controlv1.DispatchResponse, error) {
	if err := stillValid(ctx, c.tokens); err != nil {
		if call.Again {
			if res, failed := c.Withdraw(ctx, call, fault.Command(err).GetMessage()); res != nil || failed != nil {
				return res, failed
			}
		}
		return nil, refusal(ctx, c.log, err)
	}
	send := c.dispatcher.Dispatch
	if call.Again {
		send = c.dispatcher.Join
	}
	return c.follow(ctx, call, send)
}

// Withdraw takes back what a call still waits for, and says how all of it ended.
func (c commander) Withdraw(ctx context.Context, call turn.Call, why string) (*controlv1.DispatchResponse, error) {
	return c.follow(ctx, call, func(ctx context.Context, req dispatch.Request) (*controlv1.DispatchResponse, error) {
		res, _, err := c.dispatcher.Withdraw(ctx, req, why)
		return res, err
	})
}

// follow sends or joins a command, and tells meanwhile of the approvals that it waits for.
func (c commander) follow(
	ctx context.Context, call turn.Call, send func(context.Context, dispatch.Request) (*controlv1.DispatchResponse, error),
) (*controlv1.DispatchResponse, error) {
	asked := &asked{commander: c, call: call}
	watchCtx, stop := context.WithCancel(ctx)
	res, err := send(ctx, dispatch.Request{
		Workspace: call.Workspace, Principal: call.Principal, Conversation: call.Conversation, Origin: call.Origin,
		Devices: call.DeviceIDs, Action: call.Action, Act: call.Act, RequestID: call.Key, Detached: call.Durable,
		Asked: func(a *controlv1.Approval) { asked.watch(watchCtx, a) },
		Stays: func(cause error) bool { return call.Durable && errors.Is(cause, turn.ErrShutdown) },
	})
	asked.settle(ctx)
	stop()
	asked.watches.Wait()
	if err != nil {
		return nil, refusal(ctx, c.log, err)
	}
	return res, nil
}

// asked is the approvals that one command waits for.
type asked struct {
	commander

	call    turn.Call
	watches sync.WaitGroup

	mu  sync.Mutex
	ids []string // guarded by mu
}

// watch tells of an approval, and of its end as soon as there is one.
func (a *asked) watch(ctx context.Context, view *controlv1.Approval) {
	a.mu.Lock()
	a.ids = append(a.ids, view.GetApprovalId())
	a.mu.Unlock()
	a.call.Asked(view)
	a.watches.Go(func() {
		watcher := event.Watcher{Workspace: a.call.Workspace, Principal: a.call.Principal}
		err := a.feed.Watch(ctx, watcher, func(e *controlv1.Event, _ bool) error {
			if e != nil && e.GetApproval().GetApprovalId() != view.GetApprovalId() {
				return nil
			}
			return a.look(ctx, view.GetApprovalId()) // also at each sign of life: its end may have come before the first
		})
		if !errors.Is(err, errDecided) && ctx.Err() == nil { // the end of the command tells it all the same
			a.log.WarnContext(ctx, "an approval cannot be followed", slog.String("approval_id", view.GetApprovalId()), slog.Any("error", err))
		}
	})
}

var errDecided = errors.New("the approval has ended")

// look tells of the end of an approval. It is errDecided if there is one.
func (a *asked) look(ctx context.Context, id string) error {
	view, err := a.approvals.Get(ctx, a.call.Workspace, id)
	if err != nil {
		return err
	}
	if view.GetState() == controlv1.ApprovalState_APPROVAL_STATE_PENDING {
		return nil
	}
	a.call.Resolved(view)
	return errDecided
}

// settle tells of the end of every approval of a command that has ended. The turn knows those that it was told of.
func (a *asked) settle(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range a.ids {
		if err := a.look(ctx, id); err != nil && !errors.Is(err, errDecided) && ctx.Err() == nil {
			a.log.ErrorContext(ctx, "the end of an approval cannot be read", slog.String("approval_id", id), slog.Any("error", err))
		}
	}
}

// querier lets the agent ask what everybody else may ask, as one who may read, unless a rule forbids it.
type querier struct {
	edge      *rpc.Server
	catalogue *catalog.Catalogue
	policy    dispatch.Policy
	tokens    *auth.Tokens
	log       *slog.Logger
}

// Query calls a method that has no effect.
func (q querier) Query(ctx context.Context, query turn.Query) (proto.Message, error) {
	if err := stillValid(ctx, q.tokens); err != nil {
		return nil, refusal(ctx, q.log, err)
	}
	if err := q.allowed(query); err != nil {
		return nil, refusal(ctx, q.log, err)
	}
	reader := auth.Token{ID: query.Principal, Workspace: query.Workspace, Scope: optionv1.Scope_SCOPE_VIEWER}
	res, err := q.edge.Query(ctx, reader, query.Method, query.Request)
	if err != nil {
		return nil, refusal(ctx, q.log, err)
	}
	return res, nil
}

// allowed is a fault Denied where a rule does not let a query through. A query runs at once or not at all: one that a
// rule asks a person about is denied too.
func (q querier) allowed(query turn.Query) error {
	for _, e := range q.catalogue.Queries() {
		if e.Method.FullName() != query.Method {
			continue
		}
		args := query.Request.ProtoReflect()
		d := q.policy.Decide(policy.Call{
			Workspace: query.Workspace, Conversation: query.Conversation, Principal: query.Principal, Origin: query.Origin,
			Device: deviceOf(args.Interface()), Entry: e, Args: args,
		})
		switch {
		case d.Rule == "" || d.Verdict == controlv1.Verdict_VERDICT_ALLOW:
			return nil
		case d.Verdict == controlv1.Verdict_VERDICT_ASK:
			return fault.New(fault.Denied, "%s, and nobody is asked about a query: have the rule allow it", d.Reason)
		default:
			return fault.New(fault.Denied, "%s", d.Reason)
		}
	}
	return fault.New(fault.Denied, "there is no query %s", query.Method)
}

// deviceOf is the one device that a query is about; empty if it is about all.
func deviceOf(m proto.Message) string {
	for _, ref := range catalog.Targets(m.ProtoReflect()) {
		if ref.Kind == optionv1.Target_TARGET_DEVICE {
			return ref.ID
		}
	}
	return ""
}
