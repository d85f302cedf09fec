package storage

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/rpc"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/db"
)

var (
	_ dispatch.Ledger = (*Storage)(nil)
	_ dispatch.Reader = (*Storage)(nil)
	_ rpc.SavedReader = (*Storage)(nil)
)

const (
	kindSaved    = "saved"
	kindClosed   = "closed"
	statePending = "pending"
	stateKept    = "kept"
)

// Accept writes commands, their saved tabs and their first events in one transaction. A command that lives for
// seconds has to survive a kill of the process, not a power cut.
func (s *Storage) Accept(ctx context.Context, commands []dispatch.Acceptance) error {
	return s.write(ctx, store.Fast, func(ctx context.Context, q *db.Queries) error {
		for _, c := range commands {
			if err := accept(ctx, q, c); err != nil {
				return err
			}
		}
		return nil
	})
}

func accept(ctx context.Context, q *db.Queries, c dispatch.Acceptance) error {
	rec := c.Record
	if err := q.InsertCommand(ctx, db.InsertCommandParams{
		ID: rec.ID, GroupID: rec.Group, Workspace: rec.Workspace, DeviceID: rec.Device, Name: rec.Name,
		Principal: rec.Principal, Action: rec.Action, State: string(rec.State), CreatedAt: millis(rec.CreatedAt),
		Deadline: millis(rec.Deadline),
	}); err != nil {
		return fmt.Errorf("insert command: %w", err)
	}
	for _, tab := range c.Saved {
		body, err := proto.Marshal(tab)
		if err != nil {
			return fmt.Errorf("encode saved tab: %w", err)
		}
		kind := kindSaved
		if tab.GetClosed() {
			kind = kindClosed
		}
		if err := q.InsertSaved(ctx, db.InsertSavedParams{
			ID: tab.GetSavedId(), Workspace: rec.Workspace, DeviceID: rec.Device, CommandID: rec.ID, TabID: tab.GetTabId(),
			Kind: kind, State: statePending, SavedAt: millis(tab.GetSavedAt().AsTime()), Body: body,
		}); err != nil {
			return fmt.Errorf("insert saved tab: %w", err)
		}
	}
	return commandEvent(ctx, q, rec, rec.CreatedAt, "", false)
}

func commandEvent(ctx context.Context, q *db.Queries, rec dispatch.Record, at time.Time, detail string, late bool) error {
	return appendEvent(ctx, q, rec.Workspace, at, &controlv1.Event{
		DeviceId: rec.Device,
		Kind: &controlv1.Event_Command{Command: &controlv1.CommandEvent{
			CommandId: rec.ID, Name: rec.Name, State: rec.State.Proto(), Detail: detail, Late: late,
		}},
	})
}

// Advance notes a step that is no end.
func (s *Storage) Advance(rec dispatch.Record, to dispatch.State) {
	at := time.Now()
	s.later("a command's step", func(ctx context.Context, q *db.Queries) error {
		n, err := q.AdvanceCommand(ctx, db.AdvanceCommandParams{ID: rec.ID, FromState: string(rec.State), ToState: string(to)})
		if err != nil || n == 0 {
			return err
		}
		rec.State = to
		return commandEvent(ctx, q, rec, at, "", false)
	})
}

// Finish writes an end and its event, and what becomes of the saved tabs.
func (s *Storage) Finish(ctx context.Context, end dispatch.End) (bool, error) {
	rec := end.Record
	done := false
	err := s.write(ctx, store.Fast, func(ctx context.Context, q *db.Queries) error {
		n, err := q.FinishCommand(ctx, db.FinishCommandParams{
			ID: rec.ID, State: string(rec.State), EndedAt: millis(rec.EndedAt), Result: rec.Result, Error: rec.Error,
			Summary: text(rec.Summary),
		})
		if err != nil {
			return fmt.Errorf("finish command: %w", err)
		}
		done = n == 1
		if !done {
			return nil
		}
		for _, id := range end.Kept {
			if _, err := q.AdvanceSaved(ctx, db.AdvanceSavedParams{
				Workspace: rec.Workspace, ID: id, FromState: statePending, ToState: stateKept,
			}); err != nil {
				return fmt.Errorf("keep saved tab: %w", err)
			}
		}
		for _, id := range end.Dropped {
			if _, err := q.DeleteSaved(ctx, db.DeleteSavedParams{Workspace: rec.Workspace, ID: id}); err != nil {
				return fmt.Errorf("drop saved tab: %w", err)
			}
		}
		return commandEvent(ctx, q, rec, rec.EndedAt, end.Detail, false)
	})
	return done, err
}

// Late notes a result that came after the end.
func (s *Storage) Late(ctx context.Context, rec dispatch.Record, detail string) error {
	at := time.Now()
	return s.write(ctx, store.Fast, func(ctx context.Context, q *db.Queries) error {
		return commandEvent(ctx, q, rec, at, detail, true)
	})
}

// Sweep clears and removes what is old, a batch at a time so that commands are not held up.
func (s *Storage) Sweep(ctx context.Context, clearBefore, removeBefore time.Time) error {
	steps := []func(context.Context, *db.Queries) (int64, error){
		func(ctx context.Context, q *db.Queries) (int64, error) {
			return q.ClearCommands(ctx, db.ClearCommandsParams{EndedBefore: millis(clearBefore), PageSize: pageSize})
		},
		func(ctx context.Context, q *db.Queries) (int64, error) {
			return q.DeleteCommands(ctx, db.DeleteCommandsParams{
				Workspace: auth.DefaultWorkspace, EndedBefore: millis(removeBefore), PageSize: pageSize,
			})
		},
		func(ctx context.Context, q *db.Queries) (int64, error) {
			return q.DeleteEvents(ctx, db.DeleteEventsParams{Before: millis(clearBefore.Add(-keepEvents)), PageSize: pageSize})
		},
	}
	for _, step := range steps {
		for n := int64(pageSize); n == pageSize; {
			if err := s.store.Write(ctx, store.Fast, func(ctx context.Context, q *db.Queries) (err error) {
				n, err = step(ctx, q)
				return err
			}); err != nil {
				return fmt.Errorf("sweep: %w", err)
			}
		}
	}
	return nil
}

// Get implements dispatch.Reader.
func (s *Storage) Get(ctx context.Context, workspace, id string) (dispatch.Record, error) {
	row, err := s.store.Read().FindCommand(ctx, id)
	if noRow(err) || (err == nil && workspace != "" && row.Workspace != workspace) {
		return dispatch.Record{}, fault.New(fault.NotFound, "there is no command %q", id)
	}
	if err != nil {
		return dispatch.Record{}, fmt.Errorf("get command: %w", err)
	}
	return record(row), nil
}

func record(row db.Command) dispatch.Record {
	return dispatch.Record{
		ID: row.ID, Group: row.GroupID, Workspace: row.Workspace, Device: row.DeviceID, Name: row.Name,
		Principal: row.Principal, Action: row.Action, State: dispatch.State(row.State), CreatedAt: fromMillis(row.CreatedAt),
		Deadline: fromMillis(row.Deadline), EndedAt: fromMillis(row.EndedAt), Result: row.Result, Error: row.Error,
		Summary: row.Summary,
	}
}

// List implements dispatch.Reader.
func (s *Storage) List(ctx context.Context, f dispatch.Filter) ([]dispatch.Record, error) {
	var rows []db.Command
	var err error
	limit := int32(f.Limit)
	switch {
	case f.PendingOnly:
		rows, err = s.store.Read().ListPendingCommands(ctx, db.ListPendingCommandsParams{
			Workspace: f.Workspace, DeviceID: f.Device, BeforeTime: before(f.BeforeTime), BeforeID: f.BeforeID, PageSize: limit,
		})
	case f.Device != "":
		rows, err = s.store.Read().ListDeviceCommands(ctx, db.ListDeviceCommandsParams{
			Workspace: f.Workspace, DeviceID: f.Device, BeforeTime: before(f.BeforeTime), BeforeID: f.BeforeID, PageSize: limit,
		})
	default:
		rows, err = s.store.Read().ListCommands(ctx, db.ListCommandsParams{
			Workspace: f.Workspace, BeforeTime: before(f.BeforeTime), BeforeID: f.BeforeID, PageSize: limit,
		})
	}
	if err != nil && !noRow(err) {
		return nil, fmt.Errorf("list commands: %w", err)
	}
	out := make([]dispatch.Record, 0, len(rows))
	for _, row := range rows {
		out = append(out, record(row))
	}
	return out, nil
}

// Pending implements dispatch.Reader.
func (s *Storage) Pending(ctx context.Context) ([]dispatch.Acceptance, error) {
	var out []dispatch.Acceptance
	var afterTime int64
	var afterID string
	for {
		rows, err := s.store.Read().ListUnfinishedCommands(ctx, db.ListUnfinishedCommandsParams{
			AfterTime: afterTime, AfterID: afterID, PageSize: pageSize,
		})
		if err != nil {
			return nil, fmt.Errorf("list unfinished commands: %w", err)
		}
		for _, row := range rows {
			saved, err := s.store.Read().ListSavedOfCommand(ctx, row.ID)
			if err != nil {
				return nil, fmt.Errorf("list saved tabs of a command: %w", err)
			}
			tabs, err := savedTabs(saved)
			if err != nil {
				return nil, err
			}
			out = append(out, dispatch.Acceptance{Record: record(row), Saved: tabs})
			afterTime, afterID = row.CreatedAt, row.ID
		}
		if len(rows) < pageSize {
			return out, nil
		}
	}
}

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
func (s *Storage) Saved(ctx context.Context, workspace string, ids []string) ([]*commandv1.SavedTab, error) {
	rows := make([]db.Saved, 0, len(ids))
	for _, id := range ids {
		row, err := s.store.Read().GetSaved(ctx, db.GetSavedParams{Workspace: workspace, ID: id})
		switch {
		case noRow(err):
		case err != nil:
			return nil, fmt.Errorf("get saved tab: %w", err)
		case row.State == stateKept:
			rows = append(rows, row)
		}
	}
	return savedTabs(rows)
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
