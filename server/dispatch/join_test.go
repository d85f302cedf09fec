package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
)

var errStops = errors.New("the server stops")

// keyed is a request as a turn makes it that goes on after a restart.
func keyed(action *commandv1.Action, devices ...string) dispatch.Request {
	req := request(action, devices...)
	req.RequestID, req.Conversation, req.Detached = "key", "talk", true
	req.Stays = func(cause error) bool { return errors.Is(cause, errStops) }
	return req
}

// joining is a join under way.
type joining struct {
	asked chan *controlv1.Approval
	done  chan struct{}
	res   *controlv1.DispatchResponse
	err   error
}

func (w *world) join(ctx context.Context, req dispatch.Request) *joining {
	j := &joining{asked: make(chan *controlv1.Approval, 8), done: make(chan struct{})}
	req.Asked = func(a *controlv1.Approval) { j.asked <- a }
	go func() {
		defer close(j.done)
		j.res, j.err = w.Join(ctx, req)
	}()
	return j
}

func (j *joining) only(t *testing.T) *controlv1.DeviceOutcome {
	t.Helper()
	<-j.done
	if j.err != nil || len(j.res.GetOutcomes()) != 1 {
		t.Fatalf("join: %v, %v", j.res, j.err)
	}
	return j.res.GetOutcomes()[0]
}

// reborn is a world after a kill: a new dispatcher that has taken up what the old one left.
func (w *world) reborn(t *testing.T) *approval.Desk {
	t.Helper()
	w.restart(w.Catalogue)
	if err := w.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.running(t)
	return w.desk()
}

func (w *world) sentTo(device string) int { return len(w.wire.commands(device)) }

func TestManyJoinsSendOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer(func(c *devicev1.CommandRequest) *devicev1.Outcome {
			return closed(c.GetAction().GetCloseTabs().GetTabIds()...)
		})
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				out := w.join(t.Context(), keyed(closing("lap_tb1-1"))).only(t)
				if out.GetResult().GetCloseTabs().GetClosedCount() != 1 || len(out.GetSavedIds()) != 1 {
					t.Errorf("outcome: %v", out)
				}
			})
		}
		all.Wait()
		other := keyed(closing("lap_tb1-2"))
		other.Principal = "another"
		w.join(t.Context(), other).only(t)
		if w.sentTo("lap") != 2 || len(w.book.all()) != 2 {
			t.Errorf("sent %d, rows %d: one for each principal", w.sentTo("lap"), len(w.book.all()))
		}
		if _, err := w.Join(t.Context(), request(closing("lap_tb1-1"))); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("without an id: %v", err)
		}
	})
}

// A command that was sent before the kill is answered after it, and joined.
func TestWhatWasSentIsJoined(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, stop := context.WithCancelCause(t.Context())
		first := w.join(ctx, keyed(closing("lap_tb1-1")))
		synctest.Wait()
		stop(errStops)
		<-first.done
		row := w.book.row(t)
		if fault.CodeOf(first.err) != fault.Cancelled || row.State.Ended() || w.sentTo("lap") != 1 || row.Attached {
			t.Fatalf("after the stop of the server: %v, %+v", first.err, row)
		}
		w.reborn(t)
		again := w.join(t.Context(), keyed(closing("lap_tb1-1")))
		synctest.Wait()
		o := closed("lap_tb1-1")
		o.CommandId = row.ID
		w.Outcome("lap", o)
		if out := again.only(t); out.GetResult().GetCloseTabs().GetClosedCount() != 1 || out.GetCommandId() != row.ID {
			t.Errorf("outcome: %v", out)
		}
		if w.sentTo("lap") != 1 {
			t.Errorf("sent %d times", w.sentTo("lap"))
		}
	})
}

// What has ended is told from its row: with the result while that is kept, and in words after that.
func TestWhatHasEndedIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer(func(c *devicev1.CommandRequest) *devicev1.Outcome {
			return closed(c.GetAction().GetCloseTabs().GetTabIds()...)
		})
		w.join(t.Context(), keyed(closing("lap_tb1-1"))).only(t)
		w.reborn(t)
		if out := w.join(t.Context(), keyed(closing("lap_tb1-1"))).only(t); out.GetResult().GetCloseTabs().GetClosedCount() != 1 || len(out.GetSavedIds()) != 1 {
			t.Errorf("from the row: %v", out)
		}
		for name, row := range map[string]struct {
			state   dispatch.State
			summary string
			code    commandv1.ErrorCode
			says    string
		}{
			"succeeded": {dispatch.Succeeded, "closedCount=1", commandv1.ErrorCode_ERROR_CODE_NOT_FOUND, "was done (closedCount=1)"},
			"plain":     {dispatch.Succeeded, "", commandv1.ErrorCode_ERROR_CODE_NOT_FOUND, "do not do it again"},
			"denied":    {dispatch.Failed, "DENIED", denied, "ended as failed"},
			"late":      {dispatch.Expired, "EXPIRED, late result", commandv1.ErrorCode_ERROR_CODE_EXPIRED, "ended as expired"},
			"odd":       {dispatch.Failed, "?", commandv1.ErrorCode_ERROR_CODE_FAILED, "not kept"},
		} {
			w.book.mu.Lock()
			for id, rec := range w.book.rows {
				rec.State, rec.Summary, rec.Action, rec.Result, rec.Error = row.state, row.summary, nil, nil, nil
				w.book.rows[id] = rec
			}
			w.book.mu.Unlock()
			out := w.join(t.Context(), keyed(closing("lap_tb1-1"))).only(t)
			if out.GetError().GetCode() != row.code || !strings.Contains(out.GetError().GetMessage(), row.says) {
				t.Errorf("%s: %v", name, out)
			}
		}
		if w.sentTo("lap") != 1 {
			t.Errorf("sent %d times", w.sentTo("lap"))
		}
	})
}

// What a person decided while the server was down, or nobody did in time, comes back as it was decided.
func TestWhatWasDecidedWhileDownIsJoined(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		decide func(*testing.T, *world, *approval.Desk, approval.Approval) // without the dispatcher
		code   commandv1.ErrorCode
		sent   int
		state  controlv1.ApprovalState
	}{
		"approved": {
			func(t *testing.T, _ *world, desk *approval.Desk, a approval.Approval) {
				decide(t, desk, owner(), yes(a))
			}, 0, 1,
			controlv1.ApprovalState_APPROVAL_STATE_APPROVED,
		},
		"denied": {
			func(t *testing.T, _ *world, desk *approval.Desk, a approval.Approval) {
				decide(t, desk, owner(), no(a, "mine"))
			}, denied, 0,
			controlv1.ApprovalState_APPROVAL_STATE_DENIED,
		},
		"expired": {
			func(_ *testing.T, w *world, _ *approval.Desk, _ approval.Approval) {
				w.skew.Store(int64(100 * time.Hour))
			}, timedOut, 0,
			controlv1.ApprovalState_APPROVAL_STATE_PENDING,
		},
		"approved after the start": {nil, 0, 1, controlv1.ApprovalState_APPROVAL_STATE_PENDING},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testDecidedWhileDown(t, row.decide, row.code, row.sent, row.state) })
		})
	}
}

func testDecidedWhileDown(
	t *testing.T, act func(*testing.T, *world, *approval.Desk, approval.Approval), code commandv1.ErrorCode, sent int, state controlv1.ApprovalState,
) {
	w, _ := asking(t)
	ctx, stop := context.WithCancelCause(t.Context())
	first := w.join(ctx, keyed(closing("lap_tb1-1")))
	synctest.Wait()
	if (<-first.asked).GetApprovalId() != w.book.only().ID {
		t.Fatal("not told of the approval")
	}
	stop(errStops)
	<-first.done
	a := w.book.only()
	if a.State != approval.Pending {
		t.Fatalf("after the stop of the server: %+v", a)
	}
	w.restart(w.Catalogue) // one that takes nothing up: nobody acts on the decision
	if act != nil {
		act(t, w, w.desk(), a)
	}
	desk := w.reborn(t)
	again := w.join(t.Context(), keyed(closing("lap_tb1-1")))
	if act == nil {
		synctest.Wait()
		decide(t, desk, owner(), yes(a))
	}
	out := again.only(t)
	if out.GetError().GetCode() != code || (code == 0) != (out.GetResult().GetCloseTabs().GetClosedCount() == 1) || out.GetApprovalId() != a.ID {
		t.Errorf("outcome: %v", out)
	}
	if told := <-again.asked; told.GetApprovalId() != a.ID {
		t.Errorf("told of %v", told)
	}
	if w.sentTo("lap") != sent || len(w.book.all()) != 1 {
		t.Errorf("sent %d times, %d rows", w.sentTo("lap"), len(w.book.all()))
	}
}

// Somebody's stop cancels what is joined; the server's own does not.
func TestAStopCancelsWhatIsJoined(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := asking(t)
		first, stop := context.WithCancelCause(t.Context())
		one := w.join(first, keyed(closing("lap_tb1-1")))
		synctest.Wait()
		second, halt := context.WithCancelCause(t.Context())
		two := w.join(second, keyed(closing("lap_tb1-1")))
		synctest.Wait()
		halt(errStops)
		<-two.done
		if a := w.book.only(); a.State != approval.Pending {
			t.Fatalf("after the server's stop: %v", a.State)
		}
		stop(errors.New("stopped by the user"))
		<-one.done
		if a := w.book.only(); a.State != approval.Withdrawn || w.book.row(t).State != dispatch.Cancelled {
			t.Errorf("after the user's stop: %v, %v", a.State, w.book.row(t).State)
		}
		third, end := context.WithCancelCause(t.Context())
		req := keyed(closing("lap_tb1-2"))
		req.RequestID = "other"
		w.join(t.Context(), req)
		synctest.Wait()
		joined := w.join(third, req)
		synctest.Wait()
		end(errors.New("stopped by the user"))
		<-joined.done
		for _, rec := range w.book.all() {
			if rec.State != dispatch.Cancelled {
				t.Errorf("%s is %s", rec.ID, rec.State)
			}
		}
	})
}

// Whoever is gone before it joins cancels what there is, and sends nothing.
func TestAJoinAfterAStopCancels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := asking(t)
		ctx, stop := context.WithCancelCause(t.Context())
		stop(errors.New("stopped by the user"))
		if _, err := w.Join(ctx, keyed(closing("lap_tb1-1"))); fault.CodeOf(err) != fault.Cancelled || len(w.book.all()) != 0 {
			t.Fatalf("nothing there: %v", err)
		}
		w.join(t.Context(), keyed(closing("lap_tb1-1")))
		synctest.Wait()
		w.reborn(t)
		if _, err := w.Join(ctx, keyed(closing("lap_tb1-1"))); fault.CodeOf(err) != fault.Cancelled || w.book.only().State != approval.Withdrawn {
			t.Errorf("%v, %v", err, w.book.only().State)
		}
	})
}

// A process that ended between two devices has sent one of them: the other one gets it with the join.
func TestAJoinSendsWhatWasNotWrittenDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer(func(c *devicev1.CommandRequest) *devicev1.Outcome {
			return closed(c.GetAction().GetCloseTabs().GetTabIds()...)
		})
		if out := w.join(t.Context(), keyed(closing("lap_tb1-1"))).only(t); out.GetResult() == nil {
			t.Fatal(out)
		}
		w.reborn(t)
		w.wire.set("desk", 1)
		j := w.join(t.Context(), keyed(closing("lap_tb1-1", "desk_tb1-1")))
		<-j.done
		var devices []string
		for _, out := range j.res.GetOutcomes() {
			if out.GetResult().GetCloseTabs().GetClosedCount() != 1 {
				t.Errorf("outcome: %v", out)
			}
			devices = append(devices, out.GetDeviceId())
		}
		if !slices.Equal(devices, []string{"lap", "desk"}) || w.sentTo("lap") != 1 || w.sentTo("desk") != 1 {
			t.Errorf("devices %q, sent %d and %d", devices, w.sentTo("lap"), w.sentTo("desk"))
		}
	})
}

func TestWithdraw(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := asking(t)
		if _, found, err := w.Withdraw(t.Context(), keyed(closing("lap_tb1-1")), "gone"); found || err != nil {
			t.Fatalf("nothing there: %v, %v", found, err)
		}
		if _, found, err := w.Joined(t.Context(), keyed(closing("lap_tb1-1"))); found || err != nil || len(w.book.all()) != 0 {
			t.Fatalf("nothing there: %v, %v", found, err)
		}
		w.join(t.Context(), keyed(closing("lap_tb1-1")))
		synctest.Wait()
		w.reborn(t)
		res, found, err := w.Withdraw(t.Context(), keyed(nil), "the tool is gone")
		if err != nil || !found || res.GetOutcomes()[0].GetError().GetCode() != cancelled || !strings.Contains(res.GetOutcomes()[0].GetError().GetMessage(), "the tool is gone") {
			t.Errorf("withdrawn: %v, %v, %v", res, found, err)
		}
		if w.book.only().State != approval.Withdrawn || w.sentTo("lap") != 0 {
			t.Errorf("approval %v", w.book.only().State)
		}
	})
}

// Whoever waits is told when a person is asked anew.
func TestAskingAgainIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, desk := asking(t)
		first := w.join(t.Context(), keyed(closing("lap_tb1-1")))
		synctest.Wait()
		second := w.join(t.Context(), keyed(closing("lap_tb1-1")))
		synctest.Wait()
		a := w.book.only()
		w.book.before = func() { w.rule.say(ask, 2) } // between the decision and the start
		decide(t, desk, owner(), yes(a))
		w.book.before = nil
		for _, j := range []*joining{first, second} {
			if <-j.asked; (<-j.asked).GetApprovalId() == a.ID {
				t.Error("not told of the new approval")
			}
		}
		all, err := w.book.ListApprovals(t.Context(), approval.Filter{Workspace: "w", PendingOnly: true})
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		decide(t, desk, owner(), yes(all[0]))
		for _, j := range []*joining{first, second} {
			if out := j.only(t); out.GetResult() == nil {
				t.Errorf("outcome: %v", out)
			}
		}
		if w.sentTo("lap") != 1 {
			t.Errorf("sent %d times", w.sentTo("lap"))
		}
	})
}
