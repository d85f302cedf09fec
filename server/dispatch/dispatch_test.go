package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
)

const (
	offline     = commandv1.ErrorCode_ERROR_CODE_OFFLINE
	expired     = commandv1.ErrorCode_ERROR_CODE_EXPIRED
	interrupted = commandv1.ErrorCode_ERROR_CODE_INTERRUPTED
	denied      = commandv1.ErrorCode_ERROR_CODE_DENIED
	notFound    = commandv1.ErrorCode_ERROR_CODE_NOT_FOUND
)

func TestACommandIsRecordedSentAndAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome { return closed("lap_tb1-1") })
		res, err := w.Dispatch(t.Context(), request(closing("lap_tb1-1", "lap_tb1-2")))
		if err != nil {
			t.Fatal(err)
		}
		out := res.GetOutcomes()[0]
		if out.GetResult().GetCloseTabs().GetClosedCount() != 1 || out.GetDeviceName() != "my lap" {
			t.Errorf("outcome: %v", out)
		}
		row := w.book.row(t)
		if row.State != dispatch.Succeeded || row.Name != "closeTabs" || row.Summary != "closedCount=1" {
			t.Errorf("row: %+v", row)
		}
		if !row.Deadline.Equal(row.CreatedAt.Add(30 * time.Second)) {
			t.Errorf("time to live: %v", row.Deadline.Sub(row.CreatedAt))
		}
		// Of two tabs one was closed: only that one can be restored.
		if len(out.GetSavedIds()) != 1 || len(w.book.saved) != 1 || w.book.saved[out.GetSavedIds()[0]].GetTabId() != "lap_tb1-1" {
			t.Errorf("saved ids %v, saved %v", out.GetSavedIds(), w.book.saved)
		}
		if sent := w.wire.commands("lap"); len(sent) != 1 || sent[0].GetTimeLeft().AsDuration() != 30*time.Second {
			t.Errorf("sent: %v", sent)
		}
	})
}

func TestAnOfflineDeviceIsRefusedAtOnceAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		start := time.Now()
		res, err := w.Dispatch(t.Context(), request(closing("desk_tb1-1")))
		if err != nil {
			t.Fatal(err)
		}
		if e := res.GetOutcomes()[0].GetError(); e.GetCode() != offline || res.GetOutcomes()[0].GetCommandId() != "" {
			t.Errorf("outcome: %v", res)
		}
		if len(w.book.rows) != 0 || time.Since(start) != 0 {
			t.Errorf("%d rows after %v", len(w.book.rows), time.Since(start))
		}
	})
}

func TestADeviceThatDisappearsAfterTheGateExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.wire.on = func(device string, _ *devicev1.ServerFrame) { w.wire.set(device, 0) }
		start := time.Now()
		res, err := w.Dispatch(t.Context(), request(closing("lap_tb1-1")))
		if err != nil {
			t.Fatal(err)
		}
		if e := res.GetOutcomes()[0].GetError(); e.GetCode() != expired || time.Since(start) != 30*time.Second {
			t.Errorf("after %v: %v", time.Since(start), e)
		}
		// It comes back: nothing is sent any more.
		before := len(w.wire.commands("lap"))
		w.wire.hush()
		w.wire.set("lap", 2)
		w.Attached("lap", 2, w.Reconnected("lap", nil, nil))
		synctest.Wait()
		if n := len(w.wire.commands("lap")); n != before || w.book.row(t).State != dispatch.Expired {
			t.Errorf("%d commands sent after expiry, state %s", n-before, w.book.row(t).State)
		}
	})
}

func TestWhatWasStartedAndNotAnsweredIsInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome { return nil })
		start := time.Now()
		res, err := w.Dispatch(t.Context(), request(closing("lap_tb1-1")))
		if err != nil {
			t.Fatal(err)
		}
		if e := res.GetOutcomes()[0].GetError(); e.GetCode() != interrupted {
			t.Errorf("outcome: %v", res)
		}
		if d := time.Since(start); d != 30*time.Second+dispatch.Grace || w.wire.cancels("lap") != 1 {
			t.Errorf("after %v, %d cancels", d, w.wire.cancels("lap"))
		}
		if len(res.GetOutcomes()[0].GetSavedIds()) != 1 {
			t.Error("what may have been closed cannot be restored")
		}
	})
}

func TestAResultInTheGraceCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome {
			<-time.After(32 * time.Second)
			return closed("lap_tb1-1")
		})
		res, err := w.Dispatch(t.Context(), request(closing("lap_tb1-1")))
		if err != nil || res.GetOutcomes()[0].GetResult() == nil {
			t.Errorf("outcome: %v, %v", res, err)
		}
	})
}

func TestACallerThatGoesAwayLeavesNothingPending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := w.Dispatch(ctx, request(closing("lap_tb1-1")))
			done <- err
		}()
		synctest.Wait()
		cancel()
		codeOf(t, <-done, fault.Cancelled)
		if row := w.book.row(t); row.State != dispatch.Cancelled || w.wire.cancels("lap") != 1 {
			t.Errorf("state %s, %d cancels", row.State, w.wire.cancels("lap"))
		}
		// The device answers after all: that is noted, and changes nothing.
		o := closed("lap_tb1-1")
		o.CommandId = w.book.row(t).ID
		w.Outcome("lap", o)
		synctest.Wait()
		if row := w.book.row(t); row.State != dispatch.Cancelled || len(w.book.lates) != 1 {
			t.Errorf("state %s, late results %v", row.State, w.book.lates)
		}
	})
}

// Found by the simulator: the device kept such an outcome until its next link, and the event was missing until then.
func TestALateOutcomeIsNotedWhenTheDiskWorksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = w.Run(ctx) }()
		defer stop()
		asked, cancel := context.WithCancel(t.Context())
		go func() { synctest.Wait(); cancel() }()
		_, err := w.Dispatch(asked, request(closing("lap_tb1-1")))
		codeOf(t, err, fault.Cancelled)
		w.book.refuseLates(errors.New("disk full"))
		o := closed("lap_tb1-1")
		o.CommandId = w.book.row(t).ID
		w.Outcome("lap", o)
		time.Sleep(time.Second)
		synctest.Wait()
		if len(w.wire.receipts("lap")) != 0 {
			t.Error("the device may forget what is not written down")
		}
		w.book.refuseLates(nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(w.book.lates) != 1 || len(w.wire.receipts("lap")) != 1 {
			t.Errorf("late results %v, %d receipts", w.book.lates, len(w.wire.receipts("lap")))
		}
	})
}

func TestADetachedCommandOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome {
			<-time.After(time.Second)
			return closed("lap_tb1-1")
		})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		req := request(closing("lap_tb1-1"))
		req.Detached = true
		_, err := w.Dispatch(ctx, req)
		codeOf(t, err, fault.Cancelled)
		<-time.After(2 * time.Second)
		synctest.Wait()
		if row := w.book.row(t); row.State != dispatch.Succeeded {
			t.Errorf("state %s", row.State)
		}
	})
}

func TestRedeliveryIsInOrderUnderTheSameIDs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var ids []string
		for _, tab := range []string{"lap_tb1-1", "lap_tb1-2", "lap_tb1-3"} {
			res, err := w.Submit(t.Context(), request(closing(tab)))
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, res.GetOutcomes()[0].GetCommandId())
		}
		w.wire.set("lap", 2)
		// The device has the second one in its journal, and its result for the third was never acknowledged.
		third := closed("lap_tb1-3")
		third.CommandId = ids[2]
		keep := w.Reconnected("lap", []string{ids[1], "unknown"}, []*devicev1.Outcome{third})
		if !slices.Equal(keep, []string{ids[1]}) {
			t.Errorf("keep %v, want %v", keep, ids[1])
		}
		w.Attached("lap", 2, keep)
		synctest.Wait()
		sent := w.wire.commands("lap")
		if len(sent) != 4 || sent[3].GetCommandId() != ids[0] || sent[3].GetAttempt() != 2 {
			t.Errorf("sent: %v", sent)
		}
		if w.book.ends[ids[2]] != 1 {
			t.Error("the result from the handshake was not taken")
		}
	})
}

func TestARestartedServerSendsAgainWithinTheTimeToLive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		res, err := w.Submit(t.Context(), request(closing("lap_tb1-1")))
		if err != nil {
			t.Fatal(err)
		}
		id := res.GetOutcomes()[0].GetCommandId()
		w.wire.set("lap", 0)
		<-time.After(10 * time.Second)
		old := w.Dispatcher
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		if err := old.Run(stopped); err != nil {
			t.Fatal(err)
		}
		w.restart(old.Catalogue)
		if err := w.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wire.set("lap", 2)
		w.Attached("lap", 2, w.Reconnected("lap", nil, nil))
		sent := w.wire.commands("lap")
		if len(sent) != 2 || sent[1].GetCommandId() != id || sent[1].GetTimeLeft().AsDuration() != 20*time.Second {
			t.Errorf("sent: %v", sent)
		}
		w.Outcome("lap", &devicev1.Outcome{CommandId: id, Outcome: closed("lap_tb1-1").GetOutcome()})
		synctest.Wait()
		if row := w.book.row(t); row.State != dispatch.Succeeded {
			t.Errorf("state %s", row.State)
		}
	})
}

func TestOfARecoveredCommandWhoseDeviceStaysAwayNobodyKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.Submit(t.Context(), request(closing("lap_tb1-1"))); err != nil {
			t.Fatal(err)
		}
		old := w.Dispatcher
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		if err := old.Run(stopped); err != nil {
			t.Fatal(err)
		}
		w.wire.set("lap", 0)
		w.restart(old.Catalogue)
		if err := w.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if row := w.book.row(t); row.State != dispatch.Interrupted {
			t.Errorf("state %s", row.State)
		}
	})
}

func TestWhatADeviceHasInItsJournalIsNotToldExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		res, err := w.Submit(t.Context(), request(closing("lap_tb1-1")))
		if err != nil {
			t.Fatal(err)
		}
		w.wire.set("lap", 2) // the acknowledgement was lost with the old link
		w.Attached("lap", 2, w.Reconnected("lap", []string{res.GetOutcomes()[0].GetCommandId()}, nil))
		w.wire.set("lap", 0)
		<-time.After(time.Minute)
		synctest.Wait()
		if row := w.book.row(t); row.State != dispatch.Interrupted {
			t.Errorf("state %s", row.State)
		}
	})
}

func TestTheSweepComesEveryMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		start := time.Now()
		<-time.After(2*time.Minute + time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(w.book.sweeps) != 2 {
			t.Fatalf("%d sweeps in two minutes", len(w.book.sweeps))
		}
		first := w.book.sweeps[0]
		if at := start.Add(time.Minute); !first[0].Equal(at.Add(-5*time.Minute)) || !first[1].Equal(at.Add(-90*24*time.Hour)) {
			t.Errorf("the sweep after a minute clears what ended before %v and removes what ended before %v", first[0], first[1])
		}
	})
}

func TestTheFirstEndWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		res, err := w.Submit(t.Context(), request(closing("lap_tb1-1")))
		if err != nil {
			t.Fatal(err)
		}
		id := res.GetOutcomes()[0].GetCommandId()
		for range 3 {
			o := closed("lap_tb1-1")
			o.CommandId = id
			go w.Outcome("lap", o)
			go func() { _, _ = w.Cancel(t.Context(), "w", id) }()
		}
		synctest.Wait()
		if n := w.book.ends[id]; n != 1 {
			t.Errorf("%d ends", n)
		}
	})
}

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	future := &commandv1.Action{}
	if err := proto.Unmarshal(protowire.AppendBytes(protowire.AppendTag(nil, 77, protowire.BytesType), nil), future); err != nil {
		t.Fatal(err)
	}
	open := func(u string) *commandv1.Action {
		return &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: u}}}
	}
	custom := &commandv1.Action{Kind: &commandv1.Action_Custom{Custom: &commandv1.Custom{Method: "m", DescriptorDigest: "d"}}}
	restore := &commandv1.Action{Kind: &commandv1.Action_RestoreTabs{RestoreTabs: &commandv1.RestoreTabs{SavedIds: []string{"x"}}}}
	for name, row := range map[string]struct {
		req  dispatch.Request
		want fault.Code
	}{
		"empty":                  {request(&commandv1.Action{}, "lap"), fault.Invalid},
		"of the future":          {request(future, "lap"), fault.Unsupported},
		"custom":                 {request(custom, "lap"), fault.Unsupported},
		"no device":              {request(open("https://a.example")), fault.Invalid},
		"breaks a rule":          {request(open(""), "lap"), fault.Invalid},
		"no id":                  {request(closing("seven"), "lap"), fault.Invalid},
		"a window for a tab":     {request(closing("lap_wb1-1")), fault.Invalid},
		"another device":         {request(closing("lap_tb1-1"), "desk"), fault.Invalid},
		"unknown saved tab":      {request(restore), fault.NotFound},
		"a plan that is no plan": {dispatch.Request{Workspace: "w", Action: closing("lap_tb1-1"), PlanHash: "abc"}, fault.Invalid},
		"too long a life":        {dispatch.Request{Workspace: "w", Action: closing("lap_tb1-1"), TTL: time.Hour}, fault.Invalid},
	} {
		_, err := w.Dispatch(t.Context(), row.req)
		if fault.CodeOf(err) != row.want {
			t.Errorf("%s: %v, want code %d", name, err, row.want)
		}
	}
	if len(w.book.rows) != 0 {
		t.Errorf("%d rows written", len(w.book.rows))
	}
}

func TestPartsAreRefusedOneByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	many := make([]string, 21)
	for i := range many {
		many[i] = "lap_tb1-" + string(rune('1'+i%9)) + "0"
	}
	unasked := request(closing(many...))
	unasked.Detached = true
	for name, row := range map[string]struct {
		req  dispatch.Request
		want commandv1.ErrorCode
	}{
		"foreign device":                    {request(closing("else_tb1-1")), notFound},
		"another start":                     {request(closing("lap_told-1")), notFound},
		"too many, and nobody can be asked": {unasked, denied},
	} {
		res, err := w.Dispatch(t.Context(), row.req)
		if err != nil || res.GetOutcomes()[0].GetError().GetCode() != row.want {
			t.Errorf("%s: %v, %v, want %v", name, res, err, row.want)
		}
	}
	foreign := request(closing("lap_tb1-1"))
	foreign.Workspace = "other"
	if res, err := w.Dispatch(t.Context(), foreign); err != nil || res.GetOutcomes()[0].GetError().GetCode() != notFound {
		t.Errorf("another workspace's device: %v, %v", res, err)
	}
	if len(w.book.rows) != 0 {
		t.Errorf("%d rows written", len(w.book.rows))
	}
}

func TestAListThatSpansDevicesIsSplit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.wire.set("desk", 1)
		w.answer(func(c *devicev1.CommandRequest) *devicev1.Outcome {
			return closed(c.GetAction().GetCloseTabs().GetTabIds()...)
		})
		res, err := w.Dispatch(t.Context(), request(closing("lap_tb1-1", "desk_tb1-1", "lap_tb1-2")))
		if err != nil || len(res.GetOutcomes()) != 2 {
			t.Fatalf("%v, %v", res, err)
		}
		lap, desk := res.GetOutcomes()[0], res.GetOutcomes()[1]
		if lap.GetResult().GetCloseTabs().GetClosedCount() != 2 || desk.GetResult().GetCloseTabs().GetClosedCount() != 1 {
			t.Errorf("outcomes: %v", res)
		}
	})
}

func TestADeviceSpeaksOnlyForItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome {
			return &devicev1.Outcome{Outcome: &devicev1.Outcome_Result{Result: &commandv1.Result{
				Kind: &commandv1.Result_OpenTab{OpenTab: &commandv1.OpenTab_Result{TabId: "desk_tb1-1"}},
			}}}
		})
		open := &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://a.example"}}}
		res, err := w.Dispatch(t.Context(), request(open, "lap"))
		if err != nil || res.GetOutcomes()[0].GetError().GetCode() != commandv1.ErrorCode_ERROR_CODE_FAILED {
			t.Errorf("a tab of another device: %v, %v", res, err)
		}
		// An outcome for another device's command changes nothing.
		w.wire.hush()
		sub, err := w.Submit(t.Context(), request(open, "lap"))
		if err != nil {
			t.Fatal(err)
		}
		id := sub.GetOutcomes()[0].GetCommandId()
		w.Outcome("desk", &devicev1.Outcome{CommandId: id, Outcome: closed().GetOutcome()})
		synctest.Wait()
		if got, err := w.Get(t.Context(), "w", id); err != nil || got.GetEndedAt() != nil {
			t.Errorf("after another device's outcome: %v, %v", got, err)
		}
	})
}

func TestADryRunSendsNothingAndItsPlanRunsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome { return closed("lap_tb1-1") })
		req := request(closing("lap_tb1-1", "lap_tb1-9"))
		req.DryRun = true
		res, err := w.Dispatch(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		plan := res.GetOutcomes()[0].GetPlan()
		if ts := plan.GetTargets(); len(ts) != 2 || ts[0].GetId() != "lap_tb1-1" || ts[0].GetUrl() == "" || !ts[0].GetUndoable() ||
			ts[0].GetStatus() != commandv1.ItemStatus_ITEM_STATUS_OK || ts[1].GetUndoable() ||
			ts[1].GetStatus() != commandv1.ItemStatus_ITEM_STATUS_NOT_FOUND || len(w.book.rows) != 0 || res.GetPlanHash() == "" {
			t.Errorf("plan: %v, %d rows", res, len(w.book.rows))
		}
		run := request(closing("lap_tb1-1", "lap_tb1-9"))
		run.PlanHash = res.GetPlanHash()
		if _, err := w.Dispatch(t.Context(), run); err != nil {
			t.Errorf("run the plan: %v", err)
		}
		_, err = w.Dispatch(t.Context(), run)
		codeOf(t, err, fault.Invalid)
	})
}

func TestALedgerThatFailsSendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book.fail = errors.New("disk full")
	if _, err := w.Dispatch(t.Context(), request(closing("lap_tb1-1"))); err == nil || len(w.wire.commands("lap")) != 0 {
		t.Errorf("error %v, %d sent", err, len(w.wire.commands("lap")))
	}
}

func TestStatesHaveEndsAndNames(t *testing.T) {
	t.Parallel()
	for from, to := range dispatch.Transitions() {
		if from.Proto() == 0 {
			t.Errorf("%s is not in the contract", from)
		}
		if from.Ended() != (len(to) == 0) {
			t.Errorf("%s: ended %v", from, from.Ended())
		}
	}
	if dispatch.Succeeded.CanGo(dispatch.Failed) || !dispatch.Accepted.CanGo(dispatch.Sent) {
		t.Error("the table is not the one of the design")
	}
}
