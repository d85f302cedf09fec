package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/db"
)

// Sweep clears and removes what is old in every workspace, a batch at a time so that commands are not held up. What was
// kept for undo goes with the history; what a person saved stays until it is restored.
func (s *Storage) Sweep(ctx context.Context, clearBefore, removeBefore time.Time) error {
	if err := s.sweep(ctx, func(ctx context.Context, q *db.Queries) (int64, error) {
		return q.ClearCommands(ctx, db.ClearCommandsParams{EndedBefore: millis(clearBefore), PageSize: pageSize})
	}); err != nil {
		return err
	}
	if err := s.eachWorkspace(ctx, s.store.Read().NextSavedWorkspace, func(workspace string) error {
		return s.sweep(ctx, func(ctx context.Context, q *db.Queries) (int64, error) {
			return q.DeleteClosed(ctx, db.DeleteClosedParams{
				Workspace: workspace, SavedBefore: millis(removeBefore), PageSize: pageSize,
			})
		})
	}); err != nil {
		return err
	}
	if err := s.eachWorkspace(ctx, s.store.Read().NextCommandWorkspace, func(workspace string) error {
		return s.sweep(ctx, func(ctx context.Context, q *db.Queries) (int64, error) {
			return q.DeleteCommands(ctx, db.DeleteCommandsParams{
				Workspace: workspace, EndedBefore: millis(removeBefore), PageSize: pageSize,
			})
		})
	}); err != nil {
		return err
	}
	if err := s.eachWorkspace(ctx, s.store.Read().NextApprovalWorkspace, func(workspace string) error {
		return s.sweepApprovals(ctx, workspace, clearBefore, removeBefore)
	}); err != nil {
		return err
	}
	return s.sweep(ctx, func(ctx context.Context, q *db.Queries) (int64, error) {
		return q.DeleteEvents(ctx, db.DeleteEventsParams{Before: millis(clearBefore.Add(-keepEvents)), PageSize: pageSize})
	})
}

// sweepApprovals clears the arguments of approvals of a workspace whose commands have none any more, and removes the
// approvals that were resolved before a time.
func (s *Storage) sweepApprovals(ctx context.Context, workspace string, clearBefore, removeBefore time.Time) error {
	if err := s.sweep(ctx, func(ctx context.Context, q *db.Queries) (int64, error) {
		return q.ClearApprovalCalls(ctx, db.ClearApprovalCallsParams{
			Workspace: workspace, Before: millis(clearBefore), PageSize: pageSize,
		})
	}); err != nil {
		return err
	}
	if err := s.sweep(ctx, func(ctx context.Context, q *db.Queries) (int64, error) {
		return q.DeleteApprovalCalls(ctx, db.DeleteApprovalCallsParams{
			Workspace: workspace, DecidedBefore: millis(removeBefore), PageSize: pageSize,
		})
	}); err != nil {
		return err
	}
	return s.sweep(ctx, func(ctx context.Context, q *db.Queries) (int64, error) {
		return q.DeleteApprovals(ctx, db.DeleteApprovalsParams{
			Workspace: workspace, DecidedBefore: millis(removeBefore), PageSize: pageSize,
		})
	})
}

// sweep repeats a step until it finds less than a batch.
func (s *Storage) sweep(ctx context.Context, step func(context.Context, *db.Queries) (int64, error)) error {
	for n := int64(pageSize); n == pageSize; {
		if err := s.store.Write(ctx, store.Fast, func(ctx context.Context, q *db.Queries) (err error) {
			n, err = step(ctx, q)
			return err
		}); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
	}
	return nil
}

// eachWorkspace goes through the workspaces that next finds, by name.
func (s *Storage) eachWorkspace(
	ctx context.Context, next func(context.Context, string) (string, error), visit func(workspace string) error,
) error {
	for workspace := ""; ; {
		var err error
		workspace, err = next(ctx, workspace)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("find the next workspace: %w", err)
		}
		if err := visit(workspace); err != nil {
			return err
		}
	}
}
