package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
)

// restored answers a restoreTabs: every saved tab that came along is open again, but for those that are refused.
func restored(c *devicev1.CommandRequest, refused ...string) *devicev1.Outcome {
	r := &commandv1.RestoreTabs_Result{}
	for _, id := range c.GetAction().GetRestoreTabs().GetSavedIds() {
		item := &commandv1.ItemOutcome{Id: id, Status: commandv1.ItemStatus_ITEM_STATUS_NOT_FOUND}
		for _, s := range c.GetSaved() {
			if s.GetSavedId() == id && !slices.Contains(refused, s.GetTabId()) {
				item.Status = commandv1.ItemStatus_ITEM_STATUS_OK
				r.RestoredCount++
			}
		}
		r.Items = append(r.Items, item)
	}
	return &devicev1.Outcome{Outcome: &devicev1.Outcome_Result{
		Result: &commandv1.Result{Kind: &commandv1.Result_RestoreTabs{RestoreTabs: r}},
	}}
}

// browsers answer closes with what is closed and restores with what is open again.
func (w *world) browsers(refused ...string) {
	w.answer(func(c *devicev1.CommandRequest) *devicev1.Outcome {
		if c.GetAction().GetRestoreTabs() != nil {
			return restored(c, refused...)
		}
		return closed(c.GetAction().GetCloseTabs().GetTabIds()...)
	})
}

// closeSome closes tabs, and returns the command's or dispatch's id.
func (w *world) closeSome(t *testing.T, tabs ...string) *controlv1.Command {
	t.Helper()
	res, err := w.Dispatch(t.Context(), request(closing(tabs...)))
	if err != nil || res.GetOutcomes()[0].GetResult() == nil {
		t.Fatalf("close: %v, %v", res, err)
	}
	c, err := w.Get(t.Context(), "w", res.GetOutcomes()[0].GetCommandId())
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Second) // the next one is newer
	return c
}

func undo(command string) dispatch.UndoRequest {
	return dispatch.UndoRequest{Workspace: "w", Principal: "p", Command: command}
}

func TestUndoBringsBackWhatACommandTookAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.browsers()
		first := w.closeSome(t, "lap_tb1-1")
		second := w.closeSome(t, "lap_tb1-2", "lap_tb1-3")
		dry := undo("")
		dry.DryRun = true
		plan, err := w.Undo(t.Context(), dry)
		if err != nil {
			t.Fatal(err)
		}
		if ts := plan.GetOutcomes()[0].GetPlan().GetTargets(); len(ts) != 2 || ts[0].GetUrl() != "https://example.org/lap_tb1-2" ||
			!slices.Equal(plan.GetUndoneCommandIds(), []string{second.GetCommandId()}) {
			t.Errorf("plan: %v", plan)
		}
		// Without an id the newest first, then the one before it, then nothing.
		for _, want := range []*controlv1.Command{second, first} {
			res, err := w.Undo(t.Context(), undo(""))
			if err != nil || !slices.Equal(res.GetUndoneCommandIds(), []string{want.GetCommandId()}) {
				t.Errorf("undo: %v, %v", res, err)
			}
		}
		_, err = w.Undo(t.Context(), undo(""))
		codeOf(t, err, fault.NotFound)
		_, err = w.Undo(t.Context(), undo(first.GetCommandId()))
		codeOf(t, err, fault.NotFound)
		_, err = w.Undo(t.Context(), undo("none"))
		codeOf(t, err, fault.NotFound)
		if len(w.book.saved) != 0 {
			t.Errorf("left: %v", w.book.saved)
		}
	})
}

func TestUndoOfADispatchIsSplitAndAnOfflineDeviceKeepsItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.wire.set("desk", 1)
		w.browsers()
		c := w.closeSome(t, "lap_tb1-1", "desk_tb1-1")
		w.wire.set("desk", 0)
		res, err := w.Undo(t.Context(), undo(c.GetGroupId()))
		if err != nil || len(res.GetOutcomes()) != 2 || len(res.GetUndoneCommandIds()) != 1 {
			t.Fatalf("undo: %v, %v", res, err)
		}
		for _, out := range res.GetOutcomes() {
			if (out.GetDeviceId() == "desk") != (out.GetError().GetCode() == offline) {
				t.Errorf("outcome: %v", out)
			}
		}
		w.wire.set("desk", 2)
		onlyLap := undo(c.GetGroupId())
		onlyLap.Device = "lap"
		_, err = w.Undo(t.Context(), onlyLap)
		codeOf(t, err, fault.NotFound)
		if res, err := w.Undo(t.Context(), undo("")); err != nil || res.GetOutcomes()[0].GetDeviceId() != "desk" || len(res.GetUndoneCommandIds()) != 1 {
			t.Errorf("undo of the rest: %v, %v", res, err)
		}
	})
}

func TestWhatDoesNotComeBackStaysKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.browsers("lap_tb1-2")
		c := w.closeSome(t, "lap_tb1-1", "lap_tb1-2")
		res, err := w.Undo(t.Context(), undo(c.GetCommandId()))
		if err != nil || res.GetOutcomes()[0].GetResult().GetRestoreTabs().GetRestoredCount() != 1 || len(res.GetUndoneCommandIds()) != 0 {
			t.Errorf("undo: %v, %v", res, err) // it is not undone: one is not back
		}
		w.browsers()
		res, err = w.Undo(t.Context(), undo(c.GetCommandId()))
		if err != nil || res.GetOutcomes()[0].GetResult().GetRestoreTabs().GetRestoredCount() != 1 || len(res.GetUndoneCommandIds()) != 1 {
			t.Errorf("undo of the rest: %v, %v", res, err)
		}
	})
}

func TestTwoUndosAtATimeOpenNothingTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.browsers()
		c := w.closeSome(t, "lap_tb1-1", "lap_tb1-2")
		restores := 0
		w.answer(func(c *devicev1.CommandRequest) *devicev1.Outcome {
			restores += len(c.GetSaved())
			<-time.After(time.Second)
			return restored(c)
		})
		type got struct {
			res *controlv1.UndoResponse
			err error
		}
		results := make(chan got, 3)
		for range 3 {
			go func() {
				res, err := w.Undo(t.Context(), undo(c.GetCommandId()))
				results <- got{res, err}
			}()
		}
		won := 0
		for range 3 {
			g := <-results
			switch {
			case fault.CodeOf(g.err) == fault.NotFound:
			case g.err != nil:
				t.Error(g.err)
			case g.res.GetOutcomes()[0].GetError().GetCode() == commandv1.ErrorCode_ERROR_CODE_BUSY:
			case g.res.GetOutcomes()[0].GetResult().GetRestoreTabs().GetRestoredCount() == 2:
				won++
			default:
				t.Errorf("outcome: %v", g.res)
			}
		}
		if won != 1 || restores != 2 {
			t.Errorf("%d undos brought the tabs back, %d tabs were opened", won, restores)
		}
	})
}

// "The newest" is another act once it is undone: an undo that is made again undoes no further one.
func TestAnUndoThatIsMadeAgainIsFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.browsers()
		first := w.closeSome(t, "lap_tb1-1")
		w.closeSome(t, "lap_tb1-2")
		req := undo("")
		req.RequestID, req.Conversation, req.Origin = "turn/call", "root", controlv1.Origin_ORIGIN_BACKGROUND
		res, err := w.Undo(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		row, err := w.book.Get(t.Context(), "w", res.GetOutcomes()[0].GetCommandId())
		if err != nil || row.Request != "turn/call" || row.Conversation != "root" || row.Origin != controlv1.Origin_ORIGIN_BACKGROUND {
			t.Errorf("written down as %+v, %v", row, err)
		}
		sent := len(w.wire.commands("lap"))
		req.Again = true
		again, err := w.Undo(t.Context(), req)
		if err != nil || !proto.Equal(again, res) || len(res.GetUndoneCommandIds()) != 1 {
			t.Errorf("again: %v, %v", again, err)
		}
		if n := len(w.wire.commands("lap")); n != sent {
			t.Errorf("%d commands instead of %d", n, sent)
		}
		req.RequestID = "turn/other" // nothing was written down under it: it is begun now
		res, err = w.Undo(t.Context(), req)
		if err != nil || !slices.Equal(res.GetUndoneCommandIds(), []string{first.GetCommandId()}) {
			t.Errorf("begun only now: %v, %v", res, err)
		}
	})
}

// An undo that is followed says of every command what the first answer said: whether all came back, whatever else did not,
// after a restart too, and when the results are not kept any more.
func TestAFollowedUndoSaysWhatIsUndone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.wire.set("desk", 1)
		for name, row := range map[string]struct {
			refused string // tab that does not come back
			offline string
			undone  int
			part    int // of the outcomes how many are of devices that had it
		}{
			"all back":           {"", "", 2, 2},
			"one tab is not":     {"lap_tb1-2", "", 1, 2},
			"one device is away": {"", "desk", 1, 1},
			"both":               {"lap_tb1-1", "desk", 0, 1},
		} {
			w.browsers(row.refused)
			c := w.closeSome(t, "lap_tb1-1", "lap_tb1-2", "desk_tb1-1")
			if row.offline != "" {
				w.wire.set(row.offline, 0)
			}
			req := undo(c.GetGroupId())
			req.RequestID, req.Detached = name, true
			first, err := w.Undo(t.Context(), req)
			if err != nil || len(first.GetUndoneCommandIds()) != row.undone {
				t.Fatalf("%s: %v, %v", name, first, err)
			}
			for _, when := range []string{"at once", "after a restart", "without the results"} {
				switch when {
				case "after a restart":
					w.stop(t)
					w.restart(w.Catalogue)
				case "without the results":
					w.book.clear()
				}
				req.Again = true
				again, err := w.Undo(t.Context(), req)
				if err != nil || !slices.Equal(again.GetUndoneCommandIds(), first.GetUndoneCommandIds()) || len(again.GetOutcomes()) != row.part {
					t.Errorf("%s, %s: %v, %v instead of %v", name, when, again, err, first)
				}
			}
			if row.offline != "" {
				w.wire.set(row.offline, 2)
			}
			w.browsers()
			if _, err := w.Undo(t.Context(), undo(c.GetGroupId())); (err == nil) != (row.undone < 2) {
				t.Errorf("%s: the rest: %v", name, err)
			}
		}
	})
}

// One that waits for a person over a restart is about the same commands after it.
func TestAnUndoThatWaitedOverARestartSaysWhatIsUndone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.reach.Store(true)
		w.browsers()
		c := w.closeSome(t, "lap_tb1-1", "lap_tb1-2")
		w.rule.say(ask, 1)
		ctx, stop := context.WithCancelCause(t.Context())
		req := undo("")
		req.RequestID, req.Detached, req.Stays = "key", true, func(cause error) bool { return errors.Is(cause, errStops) }
		first := make(chan error)
		go func() {
			_, err := w.Undo(ctx, req)
			first <- err
		}()
		synctest.Wait()
		stop(errStops)
		codeOf(t, <-first, fault.Cancelled)
		desk := w.reborn(t)
		req.Again = true
		again := make(chan *controlv1.UndoResponse)
		go func() {
			res, err := w.Undo(t.Context(), req)
			if err != nil {
				t.Error(err)
			}
			again <- res
		}()
		synctest.Wait()
		decide(t, desk, owner(), yes(w.book.only()))
		if res := <-again; !slices.Equal(res.GetUndoneCommandIds(), []string{c.GetCommandId()}) {
			t.Errorf("undone: %v", res)
		}
	})
}

func TestAnUndoThatDoesNotEndWellLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.browsers()
		c := w.closeSome(t, "lap_tb1-1")
		w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome { return nil }) // acknowledged, and then silence
		res, err := w.Undo(t.Context(), undo(c.GetCommandId()))
		if err != nil || res.GetOutcomes()[0].GetError().GetCode() != interrupted || len(res.GetUndoneCommandIds()) != 0 {
			t.Errorf("undo: %v, %v", res, err)
		}
		// It had opened the tab after all, and says so later: a further undo does not open it again.
		sent := w.wire.commands("lap")
		last := sent[len(sent)-1]
		late := restored(last)
		late.CommandId = last.GetCommandId()
		w.Outcome("lap", late)
		synctest.Wait()
		_, err = w.Undo(t.Context(), undo(c.GetCommandId()))
		codeOf(t, err, fault.NotFound)
	})
}

func TestARestoreThatARestartFindsUnderWayKeepsItsClaims(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.browsers()
		c := w.closeSome(t, "lap_tb1-1", "lap_tb1-2")
		w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome { return nil })
		ids := make([]string, 0, len(w.book.saved))
		for id := range w.book.saved {
			ids = append(ids, id)
		}
		restore := &commandv1.Action{Kind: &commandv1.Action_RestoreTabs{RestoreTabs: &commandv1.RestoreTabs{SavedIds: ids}}}
		if _, err := w.Submit(t.Context(), request(restore)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		old := w.stop(t)
		w.restart(old.Catalogue)
		if err := w.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.browsers()
		_, err := w.Undo(t.Context(), undo(c.GetCommandId()))
		codeOf(t, err, fault.NotFound)
		w.wire.set("lap", 2)
		w.Attached("lap", 2, w.Reconnected("lap", nil, nil))
		synctest.Wait()
		sent := w.wire.commands("lap")
		if last := sent[len(sent)-1]; len(last.GetSaved()) != 2 || last.GetAttempt() != 1 || len(w.book.saved) != 0 {
			t.Errorf("sent again: %v; left: %v", last, w.book.saved)
		}
	})
}

func TestWhatCannotBeUndoneIsSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer(func(c *devicev1.CommandRequest) *devicev1.Outcome {
			return &devicev1.Outcome{Outcome: &devicev1.Outcome_Error{Error: &commandv1.CommandError{Code: denied}}}
		})
		pinned := true
		for _, action := range []*commandv1.Action{
			{Kind: &commandv1.Action_PinTabs{PinTabs: &commandv1.PinTabs{TabIds: []string{"lap_tb1-1"}, Pinned: &pinned}}},
			{Kind: &commandv1.Action_ActivateTab{ActivateTab: &commandv1.ActivateTab{TabId: "lap_tb1-1"}}},
		} {
			res, err := w.Dispatch(t.Context(), request(action))
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.Undo(t.Context(), undo(res.GetOutcomes()[0].GetCommandId()))
			codeOf(t, err, fault.Unsupported)
			var f *fault.Error
			if !errors.As(err, &f) || !strings.Contains(f.Message, "cannot be undone") {
				t.Errorf("it says %v", err)
			}
		}
	})
}

// A device sees what is kept of tabs that it is to save, and so whether that is still where they are; of tabs that it is to
// close, it does not need it.
func TestWhatIsKeptOfTabsToBeSavedTravelsWithTheCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome { return nil })
		saving := &commandv1.Action{Kind: &commandv1.Action_SaveTabs{SaveTabs: &commandv1.SaveTabs{TabIds: []string{"lap_tb1-1", "lap_tb1-2"}}}}
		for _, action := range []*commandv1.Action{saving, closing("lap_tb1-1")} {
			if _, err := w.Submit(t.Context(), request(action)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		sent := w.wire.commands("lap")
		for i, tab := range sent[0].GetSaved() {
			if known := w.Describe(tab.GetTabId()); tab.GetTabId() != saving.GetSaveTabs().GetTabIds()[i] || tab.GetUrl() != known.GetUrl() || tab.GetSavedId() == "" {
				t.Errorf("tab %d: %v, known as %v", i, tab, known)
			}
		}
		if len(sent) != 2 || len(sent[0].GetSaved()) != 2 || len(sent[1].GetSaved()) != 0 {
			t.Errorf("sent: %v", sent)
		}
	})
}
