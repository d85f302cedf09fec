package rpc_test

import (
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

func TestUndoAMonthLaterAfterRestartsOfBothSides(t *testing.T) {
	t.Parallel()
	for name, how := range transports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, app.Config{})
			d := pair(t, s, "laptop")
			id := d.GetDeviceId()
			l, _ := dial(t, s, d, how, nil)
			open := tab(id, "1", "https://a.example/", "A")
			open.Index, open.Pinned, open.Muted, open.GroupId = 3, true, true, id+"_gb1-5"
			state := snapshot(id, open)
			state.GetSnapshot().Groups = []*commandv1.TabGroup{{
				GroupId: id + "_gb1-5", WindowId: id + "_wb1-1", Title: "reading", Colour: commandv1.Colour_COLOUR_BLUE,
			}}
			if err := l.send(state); err != nil {
				t.Fatal(err)
			}
			apptest.Eventually(t, "the tab is known", func() bool {
				res, err := s.Browser(t).ListTabs(t.Context(), &controlv1.ListTabsRequest{})
				return err == nil && res.GetTotal() == 1
			})
			done := dispatch(t.Context(), t, s, closing(id+"_tb1-1"))
			c := next(t, l).GetCommand()
			if err := l.send(outcome(closedOutcome(c.GetCommandId(), id+"_tb1-1"))); err != nil {
				t.Fatal(err)
			}
			if a := <-done; a.err != nil || len(a.res.GetOutcomes()[0].GetSavedIds()) != 1 {
				t.Fatalf("close: %v, %v", a.res, a.err)
			}
			l.close()
			apptest.Eventually(t, "the device is known to be gone", func() bool {
				res, err := s.Devices(t).ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
				return err == nil && !res.GetDevices()[0].GetOnline()
			})
			s.Stop()

			// A month later the server has been restarted, and the browser too: its ids are of another start.
			again := apptest.Start(t, app.Config{
				DataDir: s.Dir, Now: func() time.Time { return time.Now().Add(30 * 24 * time.Hour) },
			})
			undo := &controlv1.UndoRequest{CommandId: &c.CommandId}
			res, err := again.Commands(t).Undo(t.Context(), undo)
			if err != nil || res.GetOutcomes()[0].GetError().GetCode() != commandv1.ErrorCode_ERROR_CODE_OFFLINE {
				t.Fatalf("undo while the device is away: %v, %v", res, err)
			}
			l, _ = dial(t, again, d, how, &devicev1.Hello{BootTag: "b2"})
			undone := make(chan *controlv1.UndoResponse, 1)
			client := again.Commands(t)
			go func() {
				res, err := client.Undo(t.Context(), undo)
				if err != nil {
					t.Error(err)
				}
				undone <- res
			}()
			r := next(t, l).GetCommand()
			if len(r.GetSaved()) != 1 {
				t.Fatalf("command: %v", r)
			}
			kept := r.GetSaved()[0]
			if kept.GetUrl() != "https://a.example/" || kept.GetTitle() != "A" || kept.GetWindowId() != id+"_wb1-1" || kept.GetIndex() != 3 ||
				!kept.GetPinned() || !kept.GetMuted() || kept.GetGroupTitle() != "reading" ||
				kept.GetGroupColour() != commandv1.Colour_COLOUR_BLUE || kept.GetGroupId() != id+"_gb1-5" || !kept.GetClosed() {
				t.Errorf("kept: %v", kept)
			}
			if ids := r.GetAction().GetRestoreTabs().GetSavedIds(); !slices.Equal(ids, []string{kept.GetSavedId()}) {
				t.Errorf("restored: %v", ids)
			}
			if err := l.send(outcome(&devicev1.Outcome{CommandId: r.GetCommandId(), Outcome: &devicev1.Outcome_Result{Result: &commandv1.Result{
				Kind: &commandv1.Result_RestoreTabs{RestoreTabs: &commandv1.RestoreTabs_Result{
					RestoredCount: 1, Items: []*commandv1.ItemOutcome{{
						Id: kept.GetSavedId(), Status: commandv1.ItemStatus_ITEM_STATUS_OK, NewId: id + "_tb2-1",
					}},
				}},
			}}})); err != nil {
				t.Fatal(err)
			}
			if res := <-undone; !slices.Equal(res.GetUndoneCommandIds(), []string{c.GetCommandId()}) {
				t.Errorf("undone: %v", res)
			}
			if _, err := again.Commands(t).Undo(t.Context(), &controlv1.UndoRequest{}); connect.CodeOf(err) != connect.CodeNotFound {
				t.Errorf("a second undo: %v", err)
			}
		})
	}
}
