package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/db"
)

var (
	_ dispatch.Ledger = (*Storage)(nil)
	_ dispatch.Reader = (*Storage)(nil)
	_ dispatch.Acts   = (*Storage)(nil)
)

const (
	kindSaved      = "saved"
	kindClosed     = "closed"
	statePending   = "pending"
	stateKept      = "kept"
	stateRestoring = "restoring"
)

// Accept writes commands, their saved tabs and their first events in one transaction. A command that lives for
// seconds and destroys nothing has to survive a kill of the process, not a power cut.
func (s *Storage) Accept(ctx context.Context, commands []dispatch.Acceptance) error {
	err := s.write(ctx, s.levelOf(commands), func(ctx context.Context, q *db.Queries) error {
		for i := range commands {
			if err := accept(ctx, q, &commands[i]); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, store.ErrOverloaded):
		return fault.Wrap(fault.Busy, err, "the server has too much to write: nothing was sent").Retry()
	case errors.Is(err, store.ErrClosed):
		return fault.Wrap(fault.Unavailable, err, "the server stops: nothing was sent").Retry()
	default:
		return err
	}
}

// accept may run twice: it sets what it hands out.
func accept(ctx context.Context, q *db.Queries, c *dispatch.Acceptance) error {
	rec := c.Record
	claimed, err := claim(ctx, q, c)
	if err != nil || c.Void() {
		return err
	}
	if len(c.Lost) > 0 {
		if rec.Action, err = c.Narrow(claimed); err != nil {
			return fmt.Errorf("narrow action: %w", err)
		}
	}
	if err := q.InsertCommand(ctx, db.InsertCommandParams{
		ID: rec.ID, GroupID: rec.Group, Workspace: rec.Workspace, DeviceID: rec.Device, Name: rec.Name,
		Principal: rec.Principal, Action: rec.Action, State: string(rec.State), CreatedAt: millis(rec.CreatedAt),
		Deadline: millis(rec.Deadline), Attached: rec.Attached, Ttl: rec.TTL.Milliseconds(), ApprovalID: rec.Approval,
		Origin: int64(rec.Origin), ConversationID: rec.Conversation, RequestID: text(rec.Request),
		Act: rec.Act, ActTargets: int64(rec.ActTargets), Undoes: rec.Undoes, UndoTargets: int64(rec.UndoTargets),
	}); err != nil {
		return fmt.Errorf("insert command: %w", err)
	}
	if err := insertSaved(ctx, q, c); err != nil {
		return err
	}
	if err := auditAccepted(ctx, q, rec); err != nil {
		return err
	}
	return commandEvent(ctx, q, rec, rec.CreatedAt, "", false)
}

// insertSaved writes the tabs that the server keeps for a command.
func insertSaved(ctx context.Context, q *db.Queries, c *dispatch.Acceptance) error {
	rec := c.Record
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
	return nil
}

func commandEvent(ctx context.Context, q *db.Queries, rec dispatch.Record, at time.Time, detail string, late bool) error {
	return appendEvent(ctx, q, rec.Workspace, at, &controlv1.Event{
		DeviceId: rec.Device,
		Kind: &controlv1.Event_Command{Command: &controlv1.CommandEvent{
			CommandId: rec.ID, Name: rec.Name, State: rec.State.Proto(), Detail: detail, Late: late,
		}},
	})
}

// claim takes the saved tabs that a command brings back, as far as no other command has them.
func claim(ctx context.Context, q *db.Queries, c *dispatch.Acceptance) (claimed []string, err error) {
	c.Lost = nil
	for _, id := range c.Claims {
		n, err := q.AdvanceSaved(ctx, db.AdvanceSavedParams{
			Workspace: c.Record.Workspace, ID: id, FromState: stateKept, ToState: stateRestoring,
		})
		if err != nil {
			return nil, fmt.Errorf("claim saved tab: %w", err)
		}
		if n == 0 {
			c.Lost = append(c.Lost, id)
		} else {
			claimed = append(claimed, id)
		}
	}
	return claimed, nil
}

// Advance notes steps that are no ends. They are taken once, when the writer comes to them: by then an end may have
// taken them along, which saves writing the row again.
func (s *Storage) Advance(take func() []dispatch.Step) {
	steps := sync.OnceValue(take) // the op may run twice
	s.later("commands' steps", func(ctx context.Context, q *db.Queries) error {
		for _, step := range steps() {
			n, err := q.AdvanceCommand(ctx, db.AdvanceCommandParams{
				ID: step.Record.ID, FromState: string(step.Record.State), ToState: string(step.To),
			})
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			if err := stepEvent(ctx, q, step); err != nil {
				return err
			}
		}
		return nil
	}, func() {
		for _, step := range steps() {
			s.gaps.add(step.Record.ID)
		}
	})
}

// gaps are the commands that lack a step which could not be written: the steps after it are left out too, for events
// follow the table of a command's life.
type gaps struct {
	mu  sync.Mutex
	ids map[string]bool // guarded by mu
}

func (g *gaps) add(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ids == nil {
		g.ids = map[string]bool{}
	}
	g.ids[id] = true
}

func (g *gaps) has(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ids[id]
}

func (g *gaps) forget(ends []dispatch.End) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range ends {
		delete(g.ids, ends[i].Record.ID)
	}
}

func stepEvent(ctx context.Context, q *db.Queries, step dispatch.Step) error {
	rec := step.Record
	rec.State = step.To
	return commandEvent(ctx, q, rec, step.At, "", false)
}

// Finish writes ends and their events, and what becomes of the saved tabs.
func (s *Storage) Finish(ctx context.Context, ends []dispatch.End) error {
	err := s.write(ctx, s.levelOfEnds(), func(ctx context.Context, q *db.Queries) error {
		for i := range ends {
			if err := finish(ctx, q, &ends[i], s.gaps.has(ends[i].Record.ID)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.gaps.forget(ends)
	}
	return err
}

// finish writes one end, without the steps before it if one was lost.
func finish(ctx context.Context, q *db.Queries, end *dispatch.End, gap bool) error {
	rec := end.Record
	n, err := q.FinishCommand(ctx, db.FinishCommandParams{
		ID: rec.ID, State: string(rec.State), EndedAt: millis(rec.EndedAt), Result: rec.Result, Error: rec.Error,
		Summary: text(rec.Summary), Undone: int64(rec.Undone),
	})
	if err != nil {
		return fmt.Errorf("finish command: %w", err)
	}
	if n == 0 {
		return nil
	}
	for _, step := range end.Steps {
		if gap {
			break
		}
		if err := stepEvent(ctx, q, step); err != nil {
			return err
		}
	}
	for _, move := range []struct {
		ids      []string
		from, to string
	}{{end.Kept, statePending, stateKept}, {end.Released, stateRestoring, stateKept}} {
		for _, id := range move.ids {
			if _, err := q.AdvanceSaved(ctx, db.AdvanceSavedParams{
				Workspace: rec.Workspace, ID: id, FromState: move.from, ToState: move.to,
			}); err != nil {
				return fmt.Errorf("keep saved tab: %w", err)
			}
		}
	}
	for _, id := range end.Dropped {
		if _, err := q.DeleteSaved(ctx, db.DeleteSavedParams{Workspace: rec.Workspace, ID: id}); err != nil {
			return fmt.Errorf("drop saved tab: %w", err)
		}
	}
	if rec.Approval != "" {
		if err := drop(ctx, q, rec.ID, rec.EndedAt, end.Detail); err != nil {
			return err
		}
	}
	if err := auditEnded(ctx, q, rec); err != nil {
		return err
	}
	return commandEvent(ctx, q, rec, rec.EndedAt, end.Detail, false)
}

// lateNote is what the summary of a command ends with whose result came after its end.
const lateNote = ", late result"

// Late notes a result that came after the end.
func (s *Storage) Late(ctx context.Context, rec dispatch.Record, detail string, dropped []string) error {
	at := time.Now()
	summary := strings.TrimSuffix(rec.Summary, lateNote) + lateNote
	return s.write(ctx, store.Fast, func(ctx context.Context, q *db.Queries) error {
		n, err := q.NoteLate(ctx, db.NoteLateParams{ID: rec.ID, Summary: summary})
		if err != nil || n == 0 {
			return err
		}
		for _, id := range dropped {
			if _, err := q.DeleteKeptSaved(ctx, db.DeleteKeptSavedParams{Workspace: rec.Workspace, ID: id}); err != nil {
				return fmt.Errorf("drop saved tab: %w", err)
			}
		}
		if err := auditLate(ctx, q, rec, at, detail); err != nil {
			return err
		}
		return commandEvent(ctx, q, rec, at, detail, true)
	})
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
		Summary: row.Summary, Attached: row.Attached, Conversation: row.ConversationID, Request: row.RequestID,
		Origin: controlv1.Origin(row.Origin), Approval: row.ApprovalID, TTL: time.Duration(row.Ttl) * time.Millisecond,
		Act: row.Act, ActTargets: int(row.ActTargets), Undoes: row.Undoes, UndoTargets: int(row.UndoTargets), Undone: int(row.Undone),
	}
}

// List implements dispatch.Reader.
func (s *Storage) List(ctx context.Context, f dispatch.Filter) ([]dispatch.Record, error) {
	var rows []db.Command
	var err error
	limit := int32(f.Limit)
	switch {
	case f.Request != "":
		rows, err = s.store.Read().ListRequestedCommands(ctx, db.ListRequestedCommandsParams{
			Workspace: f.Workspace, Principal: f.Principal, RequestID: f.Request, BeforeTime: before(f.BeforeTime),
			BeforeID: f.BeforeID, PageSize: limit,
		})
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

// Acted implements dispatch.Acts.
func (s *Storage) Acted(ctx context.Context, workspace, act string) (int, error) {
	n, err := s.store.Read().SumAct(ctx, db.SumActParams{Workspace: workspace, Act: act})
	if err != nil && !noRow(err) {
		return 0, fmt.Errorf("sum what an act did: %w", err)
	}
	return int(n), nil
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
