package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"

	"throwbar.dev/throwbar/store/db"
	"throwbar.dev/throwbar/store/storetest"
)

// changed runs a query that says how many rows it changed.
func changed(t *testing.T, s *Store, want int64, change func(context.Context, *db.Queries) (int64, error)) {
	t.Helper()
	var n int64
	do(t, s, func(ctx context.Context, q *db.Queries) (err error) {
		n, err = change(ctx, q)
		return err
	})
	if n != want {
		t.Errorf("%d rows changed, want %d", n, want)
	}
}

func getCommand(t *testing.T, s *Store, id string) db.Command {
	t.Helper()
	row, err := s.Read().GetCommand(t.Context(), db.GetCommandParams{Workspace: "default", ID: id})
	check(t, err)
	return row
}

func TestCommandAdvancesOnlyFromItsState(t *testing.T) {
	t.Parallel()
	onEach(t, testCommandAdvancesOnlyFromItsState)
}

func testCommandAdvancesOnlyFromItsState(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	do(t, s, func(ctx context.Context, q *db.Queries) error { return q.InsertCommand(ctx, command("a", 1)) })
	step := func(want int64, from, to string) {
		t.Helper()
		changed(t, s, want, func(ctx context.Context, q *db.Queries) (int64, error) {
			return q.AdvanceCommand(ctx, db.AdvanceCommandParams{ToState: to, ID: "a", FromState: from})
		})
	}
	step(0, "sent", "acknowledged")
	step(1, "accepted", "awaiting_approval")
	changed(t, s, 1, func(ctx context.Context, q *db.Queries) (int64, error) {
		return q.SetCommandDeadline(ctx, db.SetCommandDeadlineParams{
			Deadline: at + 99_000, ID: "a", State: "awaiting_approval",
		})
	})
	anyOf := func(want int64, to string, from ...string) {
		t.Helper()
		changed(t, s, want, func(ctx context.Context, q *db.Queries) (int64, error) {
			return q.AdvanceCommandFromAny(ctx, db.AdvanceCommandFromAnyParams{
				ToState: to, ID: "a", FromA: from[0], FromB: from[1], FromC: from[2],
			})
		})
	}
	anyOf(0, "acknowledged", "sent", "accepted", "sent")
	anyOf(1, "sent", "accepted", "awaiting_approval", "accepted")
	step(1, "sent", "acknowledged")
	if row := getCommand(t, s, "a"); row.State != "acknowledged" || row.Deadline != at+99_000 || row.EndedAt != 0 {
		t.Errorf("row is %+v", row)
	}
	err := s.Write(t.Context(), Fast, func(ctx context.Context, q *db.Queries) error {
		_, err := q.AdvanceCommand(ctx, db.AdvanceCommandParams{ToState: "succeeded", ID: "a", FromState: "acknowledged"})
		return err
	})
	if !errors.Is(err, ErrRefused) {
		t.Errorf("advance to a final state: error is %v, want ErrRefused", err)
	}
}

func TestCommandEndsOnce(t *testing.T) {
	t.Parallel()
	onEach(t, testCommandEndsOnce)
}

func testCommandEndsOnce(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	do(t, s, func(ctx context.Context, q *db.Queries) error { return q.InsertCommand(ctx, command("a", 1)) })
	end := func(ctx context.Context, q *db.Queries) (int64, error) { return q.FinishCommand(ctx, finish("a", 1)) }
	from := func(state string) func(ctx context.Context, q *db.Queries) (int64, error) {
		return func(ctx context.Context, q *db.Queries) (int64, error) {
			return q.FinishCommandFrom(ctx, db.FinishCommandFromParams{
				State: "cancelled", EndedAt: at + 5, Error: []byte("e"), ID: "a", FromState: state,
			})
		}
	}
	changed(t, s, 0, from("sent"))
	changed(t, s, 1, end)
	changed(t, s, 0, end)
	changed(t, s, 0, from("succeeded"))
	changed(t, s, 0, from("accepted"))
	row := getCommand(t, s, "a")
	if row.State != "succeeded" || row.EndedAt != at+11 || string(row.Result) != "\x0a\x08a result" || row.Error != nil {
		t.Errorf("row is %+v", row)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	onEach(t, testSweep)
}

func testSweep(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	do(t, s, func(ctx context.Context, q *db.Queries) error {
		for n, id := range []string{"a", "b", "c", "d", "pending"} {
			if err := q.InsertCommand(ctx, command(id, int64(n))); err != nil {
				return err
			}
			if id == "pending" {
				continue
			}
			if _, err := q.FinishCommand(ctx, finish(id, int64(n))); err != nil { // ends at 10, 11, 12, 13
				return err
			}
		}
		return nil
	})
	clearUp := func(ctx context.Context, q *db.Queries) (int64, error) {
		return q.ClearCommands(ctx, db.ClearCommandsParams{EndedBefore: at + 13, PageSize: 2})
	}
	changed(t, s, 2, clearUp)
	changed(t, s, 1, clearUp)
	changed(t, s, 0, clearUp)
	row := getCommand(t, s, "a")
	if row.Action == nil || len(row.Action) != 0 || row.Result == nil || len(row.Result) != 0 || row.Error != nil {
		t.Errorf("cleared row is %+v", row)
	}
	if row.Summary != "closedCount=4" || row.State != "succeeded" {
		t.Errorf("cleared row is %+v", row)
	}
	for _, id := range []string{"d", "pending"} {
		if row := getCommand(t, s, id); len(row.Action) == 0 {
			t.Errorf("%s was cleared", id)
		}
	}
	remove := func(ctx context.Context, q *db.Queries) (int64, error) {
		return q.DeleteCommands(ctx, db.DeleteCommandsParams{Workspace: "default", EndedBefore: at + 12, PageSize: 1})
	}
	changed(t, s, 1, remove)
	changed(t, s, 1, remove)
	changed(t, s, 0, remove)
	left, err := s.Read().ListCommands(t.Context(), listCommands("default"))
	check(t, err)
	if len(left) != 3 {
		t.Errorf("%d rows are left", len(left))
	}
}

// TestEventNumbersGrowForEver: no number is given twice, even after all but the last event are deleted.
func TestEventNumbersGrowForEver(t *testing.T) {
	t.Parallel()
	onEach(t, testEventNumbersGrowForEver)
}

func testEventNumbersGrowForEver(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	if _, err := s.Read().GetEventRange(t.Context()); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("range of no events: error is %v", err)
	}
	add := func(want int64, n int64) {
		t.Helper()
		do(t, s, func(ctx context.Context, q *db.Queries) error {
			seq, err := q.InsertEvent(ctx, event("e", n))
			if seq != want {
				t.Errorf("number is %d, want %d", seq, want)
			}
			return err
		})
	}
	between := func(first, last int64) {
		t.Helper()
		row, err := s.Read().GetEventRange(t.Context())
		check(t, err)
		if row.First != first || row.Last != last {
			t.Errorf("range is %+v, want %d to %d", row, first, last)
		}
	}
	for n, offset := range []int64{1, 2, 9, 3, 4} { // the clock went back after the third
		add(int64(n+1), offset)
	}
	remove := func(before int64) func(ctx context.Context, q *db.Queries) (int64, error) {
		return func(ctx context.Context, q *db.Queries) (int64, error) {
			return q.DeleteEvents(ctx, db.DeleteEventsParams{Before: at + before, PageSize: 1})
		}
	}
	changed(t, s, 1, remove(5))
	changed(t, s, 1, remove(5))
	changed(t, s, 0, remove(5)) // the fourth is old, but the third is not: no hole
	between(3, 5)
	add(6, 5)
	for range 3 {
		changed(t, s, 1, remove(1000))
	}
	changed(t, s, 0, remove(1000))
	between(6, 6)
	add(7, 6)
	between(6, 7)
}

func TestSavedLife(t *testing.T) {
	t.Parallel()
	onEach(t, testSavedLife)
}

func testSavedLife(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	do(t, s, func(ctx context.Context, q *db.Queries) error {
		for n, tab := range []string{"tab1", "tab2", "tab3"} {
			if err := q.InsertSaved(ctx, db.InsertSavedParams{
				ID: "s-" + tab, Workspace: "default", DeviceID: "d", CommandID: "c", TabID: tab, Kind: "closed", State: "pending",
				SavedAt: at + int64(n), Body: []byte(tab),
			}); err != nil {
				return err
			}
		}
		return nil
	})
	keep := func(tab string) func(context.Context, *db.Queries) (int64, error) {
		return func(ctx context.Context, q *db.Queries) (int64, error) {
			return q.KeepSaved(ctx, db.KeepSavedParams{CommandID: "c", TabID: tab})
		}
	}
	changed(t, s, 1, keep("tab1"))
	changed(t, s, 0, keep("tab1"))
	changed(t, s, 0, keep("unknown"))
	changed(t, s, 1, keep("tab2"))
	changed(t, s, 1, func(ctx context.Context, q *db.Queries) (int64, error) { return q.DeletePendingSaved(ctx, "c") })
	ids, err := s.Read().ListSavedIDs(t.Context(), "c")
	check(t, err)
	if !slices.Equal(ids, []string{"s-tab1", "s-tab2"}) {
		t.Errorf("ids are %v", ids)
	}
	advance := func(workspace, from, to string) func(context.Context, *db.Queries) (int64, error) {
		return func(ctx context.Context, q *db.Queries) (int64, error) {
			return q.AdvanceSaved(ctx, db.AdvanceSavedParams{ToState: to, Workspace: workspace, ID: "s-tab1", FromState: from})
		}
	}
	changed(t, s, 0, advance("other", "kept", "restoring"))
	changed(t, s, 1, advance("default", "kept", "restoring"))
	changed(t, s, 0, advance("default", "kept", "restoring"))
	row, err := s.Read().GetSaved(t.Context(), db.GetSavedParams{Workspace: "default", ID: "s-tab1"})
	check(t, err)
	if row.State != "restoring" || string(row.Body) != "tab1" {
		t.Errorf("row is %+v", row)
	}
	if _, err := s.Read().GetSaved(t.Context(), db.GetSavedParams{Workspace: "other", ID: "s-tab1"}); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("a foreign saved tab was found: %v", err)
	}
	changed(t, s, 1, func(ctx context.Context, q *db.Queries) (int64, error) {
		return q.DeleteSaved(ctx, db.DeleteSavedParams{Workspace: "default", ID: "s-tab1"})
	})
}

func TestRevocation(t *testing.T) {
	t.Parallel()
	onEach(t, testRevocation)
}

func testRevocation(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	hash := bytes.Repeat([]byte{0xff}, 32)
	do(t, s, func(ctx context.Context, q *db.Queries) error {
		if err := q.InsertDevice(ctx, db.InsertDeviceParams{
			ID: "d", Workspace: "default", Name: "laptop", Kind: 1, PairedAt: at, Actions: "[]",
		}); err != nil {
			return err
		}
		return q.InsertToken(ctx, db.InsertTokenParams{
			ID: "t", Workspace: "default", Scope: 5, DeviceID: "d", Hash: hash, CreatedAt: at,
		})
	})
	rename := func(ctx context.Context, q *db.Queries) (int64, error) {
		return q.RenameDevice(ctx, db.RenameDeviceParams{Name: "desk", Workspace: "default", ID: "d"})
	}
	changed(t, s, 1, rename)
	changed(t, s, 0, func(ctx context.Context, q *db.Queries) (int64, error) {
		return q.RevokeDevice(ctx, db.RevokeDeviceParams{RevokedAt: at + 1, Workspace: "other", ID: "d"})
	})
	for want := range []int64{1, 0} {
		changed(t, s, int64(1-want), func(ctx context.Context, q *db.Queries) (int64, error) {
			return q.RevokeDevice(ctx, db.RevokeDeviceParams{RevokedAt: at + 1, Workspace: "default", ID: "d"})
		})
		changed(t, s, int64(1-want), func(ctx context.Context, q *db.Queries) (int64, error) {
			return q.RevokeDeviceTokens(ctx, db.RevokeDeviceTokensParams{RevokedAt: at + 1, Workspace: "default", DeviceID: "d"})
		})
	}
	changed(t, s, 0, rename)
	changed(t, s, 0, func(ctx context.Context, q *db.Queries) (int64, error) {
		return q.TouchDevice(ctx, db.TouchDeviceParams{LastSeen: at + 2, ID: "d"})
	})
	token, err := s.Read().GetTokenByHash(t.Context(), hash)
	check(t, err)
	device, err := s.Read().GetDevice(t.Context(), db.GetDeviceParams{Workspace: "default", ID: "d"})
	check(t, err)
	if token.RevokedAt != at+1 || device.RevokedAt != at+1 || device.Name != "desk" || device.LastSeen != 0 {
		t.Errorf("rows are %+v, %+v", token, device)
	}
}

func TestConversation(t *testing.T) {
	t.Parallel()
	onEach(t, testConversation)
}

func testConversation(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	do(t, s, func(ctx context.Context, q *db.Queries) error {
		return q.InsertConversation(ctx, db.InsertConversationParams{
			ID: "v", Workspace: "default", Open: true, CreatedAt: at, UpdatedAt: at, Settings: []byte{},
		})
	})
	if _, err := s.Read().GetLastMessage(t.Context(), "v"); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("last message of none: error is %v", err)
	}
	do(t, s, func(ctx context.Context, q *db.Queries) error {
		return errors.Join(
			q.InsertMessage(ctx, db.InsertMessageParams{ConversationID: "v", N: 1, Body: []byte("one")}),
			q.InsertMessage(ctx, db.InsertMessageParams{ConversationID: "v", N: 2, Body: []byte("two")}),
			q.InsertConversationEvent(ctx, db.InsertConversationEventParams{ConversationID: "v", Seq: 7, Time: at, Body: []byte{}}),
		)
	})
	changed(t, s, 1, func(ctx context.Context, q *db.Queries) (int64, error) {
		return q.UpdateMessage(ctx, db.UpdateMessageParams{Body: []byte("2"), ConversationID: "v", N: 2})
	})
	changed(t, s, 1, func(ctx context.Context, q *db.Queries) (int64, error) {
		return q.UpdateConversation(ctx, db.UpdateConversationParams{
			Title: "tabs", UpdatedAt: at + 2, Settings: []byte{}, Workspace: "default", ID: "v",
		})
	})
	n, err := s.Read().GetLastMessage(t.Context(), "v")
	check(t, err)
	seq, err := s.Read().GetLastConversationEvent(t.Context(), "v")
	check(t, err)
	row, err := s.Read().GetConversation(t.Context(), db.GetConversationParams{Workspace: "default", ID: "v"})
	check(t, err)
	if n != 2 || seq != 7 || row.Open || row.Title != "tabs" || row.UpdatedAt != at+2 {
		t.Errorf("last message %d, last event %d, row %+v", n, seq, row)
	}
}
