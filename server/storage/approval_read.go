package storage

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/store/db"
)

// GetApproval implements approval.Store and dispatch.Approvals.
func (s *Storage) GetApproval(ctx context.Context, workspace, id string) (a approval.Approval, err error) {
	err = s.store.ReadTx(ctx, func(q *db.Queries) error {
		a, err = readApproval(ctx, q, workspace, id)
		return err
	})
	return a, err
}

// readApproval reads an approval with its calls; of any workspace if that is empty.
func readApproval(ctx context.Context, q *db.Queries, workspace, id string) (approval.Approval, error) {
	row, err := q.GetApproval(ctx, id)
	if noRow(err) || (err == nil && workspace != "" && row.Workspace != workspace) {
		return approval.Approval{}, fault.New(fault.NotFound, "there is no approval %q", id)
	}
	if err != nil {
		return approval.Approval{}, fmt.Errorf("get approval: %w", err)
	}
	return withCalls(ctx, q, row)
}

func withCalls(ctx context.Context, q *db.Queries, row db.Approval) (approval.Approval, error) {
	a := approval.Approval{
		Caller: approval.Caller{
			Workspace: row.Workspace, Principal: row.Principal, Conversation: row.ConversationID, Group: row.GroupID,
			Request: row.RequestID, Origin: controlv1.Origin(row.Origin),
		},
		ID: row.ID, State: approval.State(row.State), Reason: row.Reason, Rule: row.RuleID, Version: uint64(row.PolicyVersion),
		Hash: row.Hash, Bound: row.Bound, CreatedAt: fromMillis(row.CreatedAt), ExpiresAt: fromMillis(row.ExpiresAt),
		WarnedAt: fromMillis(row.WarnedAt), DecidedAt: fromMillis(row.DecidedAt), DecidedBy: row.DecidedBy,
		DecisionReason: row.DecisionReason, Remembered: row.RememberedRuleID,
	}
	calls, err := q.ListApprovalCalls(ctx, row.ID)
	if err != nil {
		return approval.Approval{}, fmt.Errorf("list calls of an approval: %w", err)
	}
	for _, c := range calls {
		plan := &controlv1.Plan{}
		if proto.Unmarshal(c.Targets, plan) != nil { // it has to end all the same
			plan, a.Damaged = &controlv1.Plan{}, true
		}
		a.Calls = append(a.Calls, approval.Call{
			Caller: approval.Caller{
				Workspace: c.Workspace, Principal: c.Principal, Conversation: c.ConversationID, Group: c.GroupID,
				Request: c.RequestID, Origin: controlv1.Origin(c.Origin),
			},
			Command: c.CommandID, Device: c.DeviceID, Name: c.Name, TTL: time.Duration(c.Ttl) * time.Millisecond,
			Proposed: c.Proposed, Edited: c.Edited, Effective: c.Effective, Targets: plan.GetTargets(), UsedAt: fromMillis(c.UsedAt),
		})
	}
	return a, nil
}

// ListApprovals implements approval.Store.
func (s *Storage) ListApprovals(ctx context.Context, f approval.Filter) ([]approval.Approval, error) {
	var out []approval.Approval
	err := s.store.ReadTx(ctx, func(q *db.Queries) (err error) {
		var rows []db.Approval
		if f.PendingOnly {
			rows, err = q.ListPendingApprovals(ctx, db.ListPendingApprovalsParams{
				Workspace: f.Workspace, BeforeTime: before(f.BeforeTime), BeforeID: f.BeforeID, PageSize: int32(f.Limit),
			})
		} else {
			rows, err = q.ListApprovals(ctx, db.ListApprovalsParams{
				Workspace: f.Workspace, BeforeTime: before(f.BeforeTime), BeforeID: f.BeforeID, PageSize: int32(f.Limit),
			})
		}
		if err != nil && !noRow(err) {
			return fmt.Errorf("list approvals: %w", err)
		}
		out = make([]approval.Approval, 0, len(rows))
		for _, row := range rows {
			a, err := withCalls(ctx, q, row)
			if err != nil {
				return err
			}
			out = append(out, a)
		}
		return nil
	})
	return out, err
}
