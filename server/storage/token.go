package storage

import (
	"context"
	"fmt"
	"time"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/device"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/db"
)

var (
	_ auth.Store          = (*Storage)(nil)
	_ auth.WorkspaceStore = (*Storage)(nil)
)

// actorOf is the token of the call that a change is made for; empty if the server makes it by itself. A transaction has
// a context of its own, so that it is asked before.
func actorOf(ctx context.Context) string {
	token, err := auth.From(ctx)
	if err != nil {
		return ""
	}
	return token.ID
}

func insertToken(ctx context.Context, q *db.Queries, t auth.Token) error {
	if err := q.InsertToken(ctx, db.InsertTokenParams{
		ID: t.ID, Workspace: t.Workspace, Name: text(t.Name), Scope: int64(t.Scope), DeviceID: t.Device, Hash: t.Hash[:],
		CreatedAt: millis(t.CreatedAt), ExpiresAt: millis(t.ExpiresAt), Replaces: t.Replaces,
	}); err != nil {
		return fmt.Errorf("insert token: %w", err)
	}
	return nil
}

// Tokens implements auth.Store.
func (s *Storage) Tokens(ctx context.Context) ([]auth.Token, error) {
	var out []auth.Token
	after := ""
	for {
		rows, err := s.store.Read().ListAllTokens(ctx, db.ListAllTokensParams{AfterID: after, PageSize: pageSize})
		if err != nil {
			return nil, fmt.Errorf("list tokens: %w", err)
		}
		for _, row := range rows {
			t := auth.Token{
				ID: row.ID, Workspace: row.Workspace, Name: row.Name, Scope: optionv1.Scope(row.Scope), Device: row.DeviceID,
				CreatedAt: fromMillis(row.CreatedAt), ExpiresAt: fromMillis(row.ExpiresAt), Replaces: row.Replaces,
				RotateBy: row.RotateBy,
			}
			copy(t.Hash[:], row.Hash)
			out = append(out, t)
			after = row.ID
		}
		if len(rows) < pageSize {
			return out, nil
		}
	}
}

func tokenRecord(kind controlv1.AuditKind, actor string, t auth.Token) *controlv1.AuditRecord {
	return &controlv1.AuditRecord{Kind: kind, Actor: actor, SubjectId: t.ID, Name: text(t.Name), Scope: t.Scope}
}

// AddToken implements auth.Store.
func (s *Storage) AddToken(ctx context.Context, t auth.Token) error {
	actor := actorOf(ctx)
	return s.write(ctx, store.Synced, func(ctx context.Context, q *db.Queries) error {
		if err := insertToken(ctx, q, t); err != nil {
			return err
		}
		return audit(ctx, q, t.Workspace, t.CreatedAt, tokenRecord(controlv1.AuditKind_AUDIT_KIND_TOKEN_CREATED, actor, t))
	})
}

// RevokeToken implements auth.Store.
func (s *Storage) RevokeToken(ctx context.Context, t auth.Token) error {
	now, actor := time.Now(), actorOf(ctx)
	return s.write(ctx, store.Synced, func(ctx context.Context, q *db.Queries) error {
		if err := revokeToken(ctx, q, t.Workspace, t.ID, now); err != nil {
			return err
		}
		return audit(ctx, q, t.Workspace, now, tokenRecord(controlv1.AuditKind_AUDIT_KIND_TOKEN_REVOKED, actor, t))
	})
}

func revokeToken(ctx context.Context, q *db.Queries, workspace, id string, at time.Time) error {
	if _, err := q.RevokeToken(ctx, db.RevokeTokenParams{Workspace: workspace, ID: id, RevokedAt: millis(at)}); err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	return nil
}

// AskRotation implements auth.Store.
func (s *Storage) AskRotation(ctx context.Context, t auth.Token) error {
	return s.write(ctx, store.Synced, func(ctx context.Context, q *db.Queries) error {
		if _, err := q.AskRotation(ctx, db.AskRotationParams{Workspace: t.Workspace, ID: t.ID, RotateBy: t.RotateBy}); err != nil {
			return fmt.Errorf("ask for a rotation: %w", err)
		}
		return nil
	})
}

// RotateToken implements auth.Store. The record names whoever asked for it, or the device's own token.
func (s *Storage) RotateToken(ctx context.Context, next, t auth.Token) error {
	actor := t.RotateBy
	if actor == "" {
		actor = t.ID
	}
	return s.write(ctx, store.Synced, func(ctx context.Context, q *db.Queries) error {
		if _, err := q.RevokeUnusedTokens(ctx, db.RevokeUnusedTokensParams{
			Workspace: next.Workspace, DeviceID: next.Device, RevokedAt: millis(next.CreatedAt),
		}); err != nil {
			return fmt.Errorf("revoke unused tokens of a device: %w", err)
		}
		if err := insertToken(ctx, q, next); err != nil {
			return err
		}
		return audit(ctx, q, next.Workspace, next.CreatedAt, rotationRecord(next, actor, "made"))
	})
}

// UseToken implements auth.Store.
func (s *Storage) UseToken(ctx context.Context, next auth.Token) error {
	now := time.Now()
	return s.write(ctx, store.Synced, func(ctx context.Context, q *db.Queries) error {
		if err := revokeToken(ctx, q, next.Workspace, next.Replaces, now); err != nil {
			return err
		}
		if _, err := q.UseToken(ctx, db.UseTokenParams{Workspace: next.Workspace, ID: next.ID}); err != nil {
			return fmt.Errorf("use token: %w", err)
		}
		row, err := q.GetDevice(ctx, db.GetDeviceParams{Workspace: next.Workspace, ID: next.Device})
		if err != nil {
			return fmt.Errorf("get device: %w", err)
		}
		d := device.Device{ID: row.ID, Workspace: row.Workspace, Name: row.Name}
		if err := deviceEvent(ctx, q, d, now, controlv1.DeviceChange_DEVICE_CHANGE_ROTATED); err != nil {
			return err
		}
		return audit(ctx, q, next.Workspace, now, rotationRecord(next, next.ID, "in use"))
	})
}

// rotationRecord is about a device's new token: when it was made, and when it came into use and the old one was void.
func rotationRecord(next auth.Token, actor, detail string) *controlv1.AuditRecord {
	r := tokenRecord(controlv1.AuditKind_AUDIT_KIND_DEVICE_ROTATED, actor, next)
	r.DeviceId, r.Detail = next.Device, detail
	return r
}

// Workspaces implements auth.WorkspaceStore.
func (s *Storage) Workspaces(ctx context.Context) ([]auth.Workspace, error) {
	var out []auth.Workspace
	after := ""
	for {
		rows, err := s.store.Read().ListWorkspaces(ctx, db.ListWorkspacesParams{AfterName: after, PageSize: pageSize})
		if err != nil {
			return nil, fmt.Errorf("list workspaces: %w", err)
		}
		for _, row := range rows {
			out = append(out, auth.Workspace{Name: row.Name, CreatedAt: fromMillis(row.CreatedAt)})
			after = row.Name
		}
		if len(rows) < pageSize {
			return out, nil
		}
	}
}

// AddWorkspace implements auth.WorkspaceStore. It is recorded in the workspace of whoever makes it and in its own.
func (s *Storage) AddWorkspace(ctx context.Context, w auth.Workspace, owner auth.Token) error {
	caller, _ := auth.From(ctx) // the server makes the first one by itself
	made := &controlv1.AuditRecord{
		Kind: controlv1.AuditKind_AUDIT_KIND_WORKSPACE_CREATED, Actor: caller.ID, SubjectId: w.Name, Name: w.Name,
	}
	return s.write(ctx, store.Synced, func(ctx context.Context, q *db.Queries) error {
		if _, err := q.GetWorkspace(ctx, w.Name); err == nil {
			return fault.New(fault.Conflict, "there is a workspace %q already", w.Name)
		} else if !noRow(err) {
			return fmt.Errorf("look for a workspace: %w", err)
		}
		if err := q.InsertWorkspace(ctx, db.InsertWorkspaceParams{Name: w.Name, CreatedAt: millis(w.CreatedAt)}); err != nil {
			return fmt.Errorf("insert workspace: %w", err)
		}
		if caller.Workspace != "" {
			if err := audit(ctx, q, caller.Workspace, w.CreatedAt, made); err != nil {
				return err
			}
		}
		if owner.ID == "" {
			return nil
		}
		if err := insertToken(ctx, q, owner); err != nil {
			return err
		}
		return audit(ctx, q, w.Name, w.CreatedAt,
			tokenRecord(controlv1.AuditKind_AUDIT_KIND_TOKEN_CREATED, caller.ID, owner))
	})
}
