package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/db"
)

var (
	_ dispatch.Approvals = (*Storage)(nil)
	_ approval.Store     = (*Storage)(nil)
)

// synced writes what a person decided, or is asked: it is on disk when it returns.
func (s *Storage) synced(ctx context.Context, write func(context.Context, *db.Queries) error) error {
	err := s.write(ctx, store.Synced, write)
	switch {
	case errors.Is(err, store.ErrOverloaded):
		return fault.Wrap(fault.Busy, err, "the server has too much to write: nothing was done").Retry()
	case errors.Is(err, store.ErrClosed):
		return fault.Wrap(fault.Unavailable, err, "the server stops: nothing was done").Retry()
	default:
		return err
	}
}

// Ask implements dispatch.Approvals.
func (s *Storage) Ask(ctx context.Context, a *approval.Approval, commands []dispatch.Record) error {
	return s.synced(ctx, func(ctx context.Context, q *db.Queries) error {
		for i := range commands {
			if err := accept(ctx, q, &dispatch.Acceptance{Record: commands[i]}); err != nil {
				return err
			}
		}
		return insertApproval(ctx, q, a)
	})
}

func insertApproval(ctx context.Context, q *db.Queries, a *approval.Approval) error {
	if err := q.InsertApproval(ctx, db.InsertApprovalParams{
		ID: a.ID, Workspace: a.Workspace, Principal: a.Principal, Origin: int64(a.Origin), ConversationID: a.Conversation,
		GroupID: a.Group, RequestID: a.Request, Reason: text(a.Reason), RuleID: a.Rule, PolicyVersion: int64(a.Version),
		Hash: a.Hash, CreatedAt: millis(a.CreatedAt), ExpiresAt: millis(a.ExpiresAt),
	}); err != nil {
		return fmt.Errorf("insert approval: %w", err)
	}
	for n := range a.Calls {
		c := &a.Calls[n]
		targets, err := proto.Marshal(&controlv1.Plan{Targets: c.Targets})
		if err != nil {
			return fmt.Errorf("encode targets: %w", err)
		}
		if err := q.InsertApprovalCall(ctx, db.InsertApprovalCallParams{
			ApprovalID: a.ID, N: int64(n), CommandID: c.Command, Proposed: c.Proposed, Targets: targets,
		}); err != nil {
			return fmt.Errorf("insert call of an approval: %w", err)
		}
	}
	return noteApproval(ctx, q, a, controlv1.AuditKind_AUDIT_KIND_APPROVAL_ASKED, a.CreatedAt, "")
}

// noteApproval adds the event and the audit entry of an approval that is in another state now.
func noteApproval(
	ctx context.Context, q *db.Queries, a *approval.Approval, kind controlv1.AuditKind, at time.Time, actor string,
) error {
	if err := approvalEvent(ctx, q, a, at, false); err != nil {
		return err
	}
	rec := &controlv1.AuditRecord{
		Kind: kind, Actor: actor, SubjectId: a.ID, RuleId: a.Rule, PolicyVersion: a.Version, ApprovalId: a.ID,
		ApprovalHash: a.Hash, Detail: text(a.DecisionReason), Origin: a.Origin,
	}
	if a.Bound != "" {
		rec.ApprovalHash = a.Bound
	}
	if kind == controlv1.AuditKind_AUDIT_KIND_APPROVAL_ASKED {
		rec.Actor, rec.Detail, rec.Verdict = a.Principal, text(a.Reason), controlv1.Verdict_VERDICT_ASK
	}
	if len(a.Calls) == 1 {
		rec.DeviceId, rec.Name = a.Calls[0].Device, a.Calls[0].Name
	}
	return audit(ctx, q, a.Workspace, at, rec)
}

func approvalEvent(ctx context.Context, q *db.Queries, a *approval.Approval, at time.Time, warning bool) error {
	return appendEvent(ctx, q, a.Workspace, at, &controlv1.Event{
		Kind: &controlv1.Event_Approval{Approval: &controlv1.ApprovalEvent{
			ApprovalId: a.ID, GroupId: a.Group, State: string(a.State), Warning: warning,
		}},
	})
}

// auditKind is what the audit record calls an approval's way into a state.
func auditKind(s approval.State) controlv1.AuditKind {
	switch s {
	case approval.Pending:
		return controlv1.AuditKind_AUDIT_KIND_APPROVAL_ASKED
	case approval.Approved:
		return controlv1.AuditKind_AUDIT_KIND_APPROVAL_APPROVED
	case approval.Denied:
		return controlv1.AuditKind_AUDIT_KIND_APPROVAL_DENIED
	case approval.Expired:
		return controlv1.AuditKind_AUDIT_KIND_APPROVAL_EXPIRED
	case approval.Withdrawn:
		return controlv1.AuditKind_AUDIT_KIND_APPROVAL_WITHDRAWN
	default:
		return controlv1.AuditKind_AUDIT_KIND_APPROVAL_VOID
	}
}

// BeginApproved implements dispatch.Approvals.
func (s *Storage) BeginApproved(ctx context.Context, approvalID string, at time.Time, commands []dispatch.Acceptance) error {
	return s.synced(ctx, func(ctx context.Context, q *db.Queries) error {
		for i := range commands {
			if err := begin(ctx, q, approvalID, at, &commands[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// begin may run twice: it sets what it hands out.
func begin(ctx context.Context, q *db.Queries, approvalID string, at time.Time, c *dispatch.Acceptance) error {
	rec := c.Record
	c.Stale, c.Lost = false, nil
	row, err := q.FindCommand(ctx, rec.ID)
	if err != nil {
		return fmt.Errorf("get command: %w", err)
	}
	if row.ApprovalID != approvalID || row.State != string(dispatch.AwaitingApproval) {
		c.Stale = true
		return nil
	}
	claimed, err := claim(ctx, q, c)
	if err != nil || c.Void() {
		return err
	}
	n, err := q.UseApprovalCall(ctx, db.UseApprovalCallParams{UsedAt: millis(at), ApprovalID: approvalID, CommandID: rec.ID})
	if err != nil {
		return fmt.Errorf("use approval: %w", err)
	}
	if n == 0 {
		c.Stale = true
		return unclaim(ctx, q, rec.Workspace, claimed)
	}
	if len(c.Lost) > 0 {
		if rec.Action, err = c.Narrow(claimed); err != nil {
			return fmt.Errorf("narrow action: %w", err)
		}
	}
	if n, err = q.BeginCommand(ctx, db.BeginCommandParams{
		Deadline: millis(rec.Deadline), Action: rec.Action, ID: rec.ID, ApprovalID: approvalID,
	}); err != nil {
		return fmt.Errorf("begin command: %w", err)
	}
	if n == 0 {
		return fmt.Errorf("begin command %s: it waits and cannot start", rec.ID)
	}
	if err := insertSaved(ctx, q, c); err != nil {
		return err
	}
	if err := commandEvent(ctx, q, rec, at, "", false); err != nil {
		return err
	}
	return audit(ctx, q, rec.Workspace, at, &controlv1.AuditRecord{
		Kind: controlv1.AuditKind_AUDIT_KIND_APPROVAL_USED, SubjectId: rec.ID, DeviceId: rec.Device, Name: rec.Name,
		ApprovalId: approvalID, State: rec.State.Proto(), Origin: rec.Origin,
	})
}

func unclaim(ctx context.Context, q *db.Queries, workspace string, ids []string) error {
	for _, id := range ids {
		if _, err := q.AdvanceSaved(ctx, db.AdvanceSavedParams{
			Workspace: workspace, ID: id, FromState: stateRestoring, ToState: stateKept,
		}); err != nil {
			return fmt.Errorf("give back saved tab: %w", err)
		}
	}
	return nil
}

// Replace implements dispatch.Approvals.
func (s *Storage) Replace(
	ctx context.Context, old *approval.Approval, from approval.State, a *approval.Approval,
) (won bool, err error) {
	err = s.synced(ctx, func(ctx context.Context, q *db.Queries) error {
		won = false
		if n, err := resolve(ctx, q, old, from); err != nil || n == 0 {
			return err
		}
		for i := range a.Calls {
			if _, err := q.MoveCommandApproval(ctx, db.MoveCommandApprovalParams{
				ToApproval: a.ID, Deadline: millis(a.ExpiresAt), ID: a.Calls[i].Command, FromApproval: old.ID,
			}); err != nil {
				return fmt.Errorf("move command to another approval: %w", err)
			}
		}
		won = true
		return insertApproval(ctx, q, a)
	})
	return won && err == nil, err
}

// Resolve implements dispatch.Approvals.
func (s *Storage) Resolve(ctx context.Context, a *approval.Approval, from approval.State) (won bool, err error) {
	err = s.synced(ctx, func(ctx context.Context, q *db.Queries) error {
		n, err := resolve(ctx, q, a, from)
		won = n > 0
		return err
	})
	return won && err == nil, err
}

func resolve(ctx context.Context, q *db.Queries, a *approval.Approval, from approval.State) (int64, error) {
	if !from.CanGo(a.State) {
		return 0, fmt.Errorf("an approval does not go from %s to %s", from, a.State)
	}
	n, err := q.ResolveApproval(ctx, db.ResolveApprovalParams{
		ToState: string(a.State), DecidedAt: millis(a.DecidedAt), DecisionReason: text(a.DecisionReason), ID: a.ID,
		FromState: string(from),
	})
	if err != nil {
		return 0, fmt.Errorf("resolve approval: %w", err)
	}
	if n == 0 {
		return 0, nil
	}
	return n, noteStored(ctx, q, a.ID, a.DecidedAt, "")
}

// noteStored adds the event and the audit entry of an approval as its row is now.
func noteStored(ctx context.Context, q *db.Queries, id string, at time.Time, actor string) error {
	a, err := readApproval(ctx, q, "", id)
	if err != nil {
		return err
	}
	return noteApproval(ctx, q, &a, auditKind(a.State), at, actor)
}

// Warn implements dispatch.Approvals.
func (s *Storage) Warn(ctx context.Context, a *approval.Approval) error {
	return s.synced(ctx, func(ctx context.Context, q *db.Queries) error {
		n, err := q.WarnApproval(ctx, db.WarnApprovalParams{WarnedAt: millis(a.WarnedAt), ID: a.ID})
		if err != nil || n == 0 {
			return err
		}
		stored, err := readApproval(ctx, q, "", a.ID)
		if err != nil {
			return err
		}
		return approvalEvent(ctx, q, &stored, a.WarnedAt, true)
	})
}

// DecideApprovals implements approval.Store.
func (s *Storage) DecideApprovals(ctx context.Context, changes []*approval.Change) error {
	return s.synced(ctx, func(ctx context.Context, q *db.Queries) error {
		for _, c := range changes {
			if err := decide(ctx, q, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// decide may run twice: it sets what it hands out.
func decide(ctx context.Context, q *db.Queries, c *approval.Change) error {
	a := &c.Approval
	c.Won = false
	if c.Note {
		n, err := q.NoteLateDecision(ctx, db.NoteLateDecisionParams{DecisionReason: text(a.DecisionReason), ID: a.ID})
		if err != nil || n == 0 {
			return err
		}
		c.Won = true
		return audit(ctx, q, a.Workspace, a.DecidedAt, &controlv1.AuditRecord{
			Kind: controlv1.AuditKind_AUDIT_KIND_APPROVAL_DENIED, Actor: a.DecidedBy, SubjectId: a.ID, ApprovalId: a.ID,
			Detail: text(a.DecisionReason), Origin: a.Origin,
		})
	}
	if c.Rule != nil {
		row, err := q.GetApproval(ctx, a.ID)
		if err != nil || row.State != string(approval.Pending) || row.ExpiresAt <= millis(a.DecidedAt) {
			return err
		}
		if c.Version, err = insertRule(ctx, q, a.Workspace, c.Rule, a.DecidedAt); err != nil {
			return err
		}
		a.Version = c.Version
		a.Bound = a.Sum()
	}
	n, err := q.DecideApproval(ctx, db.DecideApprovalParams{
		State: string(a.State), PolicyVersion: int64(a.Version), Bound: a.Bound, DecidedAt: millis(a.DecidedAt),
		DecidedBy: a.DecidedBy, DecisionReason: text(a.DecisionReason), RememberedRuleID: a.Remembered, ID: a.ID,
	})
	if err != nil {
		return fmt.Errorf("decide approval: %w", err)
	}
	if n == 0 {
		return nil
	}
	c.Won = true
	if a.State == approval.Approved {
		for n := range a.Calls {
			call := &a.Calls[n]
			targets, err := proto.Marshal(&controlv1.Plan{Targets: call.Targets})
			if err != nil {
				return fmt.Errorf("encode targets: %w", err)
			}
			if _, err := q.SetApprovalCall(ctx, db.SetApprovalCallParams{
				Edited: call.Edited, Effective: call.Effective, Targets: targets, ApprovalID: a.ID, N: int64(n),
			}); err != nil {
				return fmt.Errorf("write what was approved: %w", err)
			}
		}
	}
	return noteApproval(ctx, q, a, auditKind(a.State), a.DecidedAt, a.DecidedBy)
}

// drop ends the approval of a command that ended before it started, if no other one is left that could start.
func drop(ctx context.Context, q *db.Queries, command string, at time.Time, reason string) error {
	row, err := q.FindCommand(ctx, command)
	if err != nil || row.ApprovalID == "" {
		return err
	}
	_, err = q.DropApproval(ctx, db.DropApprovalParams{DecidedAt: millis(at), DecisionReason: reason, ID: row.ApprovalID})
	if noRow(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("drop approval: %w", err)
	}
	return noteStored(ctx, q, row.ApprovalID, at, "")
}

// Refused implements dispatch.Ledger.
func (s *Storage) Refused(denials []dispatch.Denial) {
	s.later("commands that policy denied", func(ctx context.Context, q *db.Queries) error {
		for i := range denials {
			rec, decision := &denials[i].Record, denials[i].Decision
			entry := &controlv1.AuditRecord{
				Kind: controlv1.AuditKind_AUDIT_KIND_COMMAND_DENIED, Actor: rec.Principal, SubjectId: rec.Group, DeviceId: rec.Device,
				Name: rec.Name, Verdict: decision.Verdict, RuleId: decision.Rule, PolicyVersion: decision.Version, Origin: rec.Origin,
			}
			auditArguments(entry, *rec)
			entry.Detail = text(decision.Reason)
			if err := audit(ctx, q, rec.Workspace, rec.CreatedAt, entry); err != nil {
				return err
			}
		}
		return nil
	}, nil)
}
