package rpc

import (
	"context"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/event"
	"throwbar.dev/throwbar/server/fault"
)

var _ controlv1connect.ApprovalServiceHandler = (*approvalHandler)(nil)

type approvalHandler struct{ cfg Config }

// ListApprovals lists approvals, newest first.
func (h *approvalHandler) ListApprovals(
	ctx context.Context, req *controlv1.ListApprovalsRequest,
) (*controlv1.ListApprovalsResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	filter := approval.Filter{Workspace: token.Workspace, PendingOnly: req.GetPendingOnly(), Limit: size(req.GetPageSize())}
	if filter.BeforeTime, filter.BeforeID, err = keyset(req.GetPageToken()); err != nil {
		return nil, err
	}
	approvals, more, err := h.cfg.Approvals.List(ctx, filter)
	if err != nil {
		return nil, err
	}
	res := &controlv1.ListApprovalsResponse{Approvals: approvals}
	if more {
		last := approvals[len(approvals)-1]
		res.NextPageToken = nextKeyset(last.GetCreatedAt().AsTime(), last.GetApprovalId())
	}
	return res, nil
}

// GetApproval gets one approval.
func (h *approvalHandler) GetApproval(
	ctx context.Context, req *controlv1.GetApprovalRequest,
) (*controlv1.GetApprovalResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	a, err := h.cfg.Approvals.Get(ctx, token.Workspace, req.GetApprovalId())
	if err != nil {
		return nil, err
	}
	return &controlv1.GetApprovalResponse{Approval: a}, nil
}

// Decide takes decisions.
func (h *approvalHandler) Decide(ctx context.Context, req *controlv1.DecideRequest) (*controlv1.DecideResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	outcomes, err := h.cfg.Approvals.Decide(ctx, decider(token), req.GetDecisions())
	if err != nil {
		return nil, err
	}
	return &controlv1.DecideResponse{Outcomes: outcomes}, nil
}

func decider(token auth.Token) approval.Decider {
	return approval.Decider{Workspace: token.Workspace, Token: token.ID, Scope: token.Scope}
}

// WatchApprovals follows approvals. The event log says which ones changed; what is sent is how they are now.
func (h *approvalHandler) WatchApprovals(
	ctx context.Context, req *controlv1.WatchApprovalsRequest, stream controlv1connect.ApprovalServiceWatchApprovalsServerStream,
) error {
	token, err := auth.From(ctx)
	if err != nil {
		return err
	}
	leave := h.cfg.Approvals.Reach.Join(decider(token))
	defer leave()
	w := &approvalWatch{approvalHandler: h, token: token, pending: req.Cursor == nil, send: func(res *controlv1.WatchApprovalsResponse) error {
		return sendWatched(ctx, func() error { return stream.Send(res) })
	}}
	watcher := event.Watcher{Workspace: token.Workspace, Principal: token.ID, Cursor: req.Cursor}
	return h.cfg.Events.Watch(ctx, watcher, func(e *controlv1.Event, reset bool) error { return w.next(ctx, e, reset) })
}

// approvalWatch is one stream of approvals.
type approvalWatch struct {
	*approvalHandler

	token   auth.Token
	pending bool // all that are pending are still to be sent
	send    func(*controlv1.WatchApprovalsResponse) error
}

// next sends what an event is about; nil is a sign of life.
func (w *approvalWatch) next(ctx context.Context, e *controlv1.Event, reset bool) error {
	if err := w.cfg.Tokens.Check(w.token); err != nil {
		return err
	}
	change := e.GetApproval()
	switch {
	case e == nil:
		if err := w.send(&controlv1.WatchApprovalsResponse{Reset_: reset}); err != nil {
			return err
		}
		return w.sendPending(ctx)
	case change == nil:
		return nil
	}
	a, err := w.cfg.Approvals.Get(ctx, w.token.Workspace, change.GetApprovalId())
	switch {
	case fault.CodeOf(err) == fault.NotFound: // its history is over
		return nil
	case err != nil:
		return err
	}
	return w.send(&controlv1.WatchApprovalsResponse{Approval: a, Cursor: e.GetCursor(), Warning: change.GetWarning()})
}

// sendPending sends all that is pending, once. What changes meanwhile comes again after it.
func (w *approvalWatch) sendPending(ctx context.Context) error {
	if !w.pending {
		return nil
	}
	w.pending = false
	filter := approval.Filter{Workspace: w.token.Workspace, PendingOnly: true, Limit: defaultPage}
	for {
		approvals, more, err := w.cfg.Approvals.List(ctx, filter)
		if err != nil {
			return err
		}
		for _, a := range approvals {
			if err := w.send(&controlv1.WatchApprovalsResponse{Approval: a}); err != nil {
				return err
			}
			filter.BeforeTime, filter.BeforeID = a.GetCreatedAt().AsTime(), a.GetApprovalId()
		}
		if !more {
			return nil
		}
	}
}
