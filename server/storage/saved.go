package storage

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/rpc"
	"throwbar.dev/throwbar/store/db"
)

var _ rpc.SavedReader = (*Storage)(nil)

func savedTabs(rows []db.Saved) ([]*commandv1.SavedTab, error) {
	out := make([]*commandv1.SavedTab, 0, len(rows))
	for _, row := range rows {
		tab := &commandv1.SavedTab{}
		if err := proto.Unmarshal(row.Body, tab); err != nil {
			return nil, fmt.Errorf("decode saved tab %s: %w", row.ID, err)
		}
		out = append(out, tab)
	}
	return out, nil
}

// Saved implements dispatch.Reader.
func (s *Storage) Saved(ctx context.Context, workspace string, ids []string) ([]dispatch.Saved, error) {
	out := make([]dispatch.Saved, 0, len(ids))
	for _, id := range ids {
		row, err := s.store.Read().GetSaved(ctx, db.GetSavedParams{Workspace: workspace, ID: id})
		switch {
		case noRow(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("get saved tab: %w", err)
		case row.State == statePending:
			continue
		}
		tabs, err := savedTabs([]db.Saved{row})
		if err != nil {
			return nil, err
		}
		out = append(out, dispatch.Saved{Tab: tabs[0], Claimed: row.State == stateRestoring})
	}
	return out, nil
}

// Kept implements dispatch.Reader.
func (s *Storage) Kept(ctx context.Context, f dispatch.KeptFilter) ([]dispatch.Kept, error) {
	if f.Command != "" {
		return s.keptOfCommand(ctx, f)
	}
	rows, err := s.store.Read().ListKept(ctx, db.ListKeptParams{
		Workspace: f.Workspace, BeforeTime: before(f.BeforeTime), BeforeID: f.BeforeID, DeviceID: f.Device, GroupID: f.Group,
		PageSize: int32(f.Limit),
	})
	if err != nil && !noRow(err) {
		return nil, fmt.Errorf("list kept tabs: %w", err)
	}
	out := make([]dispatch.Kept, 0, len(rows))
	for _, row := range rows {
		tab := &commandv1.SavedTab{}
		if err := proto.Unmarshal(row.Body, tab); err != nil {
			return nil, fmt.Errorf("decode saved tab %s: %w", row.ID, err)
		}
		out = append(out, dispatch.Kept{
			Tab: tab, Command: row.CommandID, Group: row.GroupID, Name: row.Name, State: dispatch.State(row.CommandState),
		})
	}
	return out, nil
}

// keptOfCommand reads all that one command has kept; it is never more than its targets.
func (s *Storage) keptOfCommand(ctx context.Context, f dispatch.KeptFilter) ([]dispatch.Kept, error) {
	if !f.BeforeTime.IsZero() {
		return nil, nil
	}
	rec, err := s.Get(ctx, f.Workspace, f.Command)
	if err != nil {
		return nil, err
	}
	rows, err := s.store.Read().ListSavedOfCommand(ctx, f.Command)
	if err != nil {
		return nil, fmt.Errorf("list saved tabs of a command: %w", err)
	}
	var kept []db.Saved
	for _, row := range rows {
		if row.State == stateKept && (f.Device == "" || row.DeviceID == f.Device) {
			kept = append(kept, row)
		}
	}
	tabs, err := savedTabs(kept)
	if err != nil {
		return nil, err
	}
	out := make([]dispatch.Kept, 0, len(tabs))
	for _, tab := range tabs {
		out = append(out, dispatch.Kept{Tab: tab, Command: rec.ID, Group: rec.Group, Name: rec.Name, State: rec.State})
	}
	return out, nil
}

// OfGroup implements dispatch.Reader.
func (s *Storage) OfGroup(ctx context.Context, workspace, group string) (dispatch.Record, error) {
	row, err := s.store.Read().GetCommandOfGroup(ctx, db.GetCommandOfGroupParams{Workspace: workspace, GroupID: group})
	if noRow(err) {
		return dispatch.Record{}, fault.New(fault.NotFound, "there is no dispatch %q", group)
	}
	if err != nil {
		return dispatch.Record{}, fmt.Errorf("get a command of a dispatch: %w", err)
	}
	return record(row), nil
}

// ListSaved implements rpc.SavedReader.
func (s *Storage) ListSaved(ctx context.Context, f rpc.SavedFilter) ([]*commandv1.SavedTab, error) {
	kind := kindSaved
	if f.Closed {
		kind = ""
	}
	rows, err := s.store.Read().ListSaved(ctx, db.ListSavedParams{
		Workspace: f.Workspace, DeviceID: f.Device, Kind: kind, BeforeTime: before(f.Before.Time), BeforeID: f.Before.ID,
		PageSize: int32(f.Limit),
	})
	if err != nil && !noRow(err) {
		return nil, fmt.Errorf("list saved tabs: %w", err)
	}
	return savedTabs(rows)
}
