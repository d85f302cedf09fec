package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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

// acting is a world whose policy is what the commands' options say: more than 20 targets ask. Somebody can be asked.
func acting(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.reach.Store(true)
	w.answer(func(c *devicev1.CommandRequest) *devicev1.Outcome {
		return closed(c.GetAction().GetCloseTabs().GetTabIds()...)
	})
	return w
}

// tabs are so many ids of a device, of tabs that nobody listed.
func tabs(device string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s_tb1-%d", device, 100+i)
	}
	return ids
}

// act is a command of an act.
func act(name, key string, action *commandv1.Action) dispatch.Request {
	req := keyed(action)
	req.Act, req.RequestID = name, key
	return req
}

// does sends a command and says whether a person is asked.
func (w *world) does(t *testing.T, req dispatch.Request) (asked bool) {
	t.Helper()
	res, err := w.Submit(t.Context(), req)
	if err != nil || len(res.GetOutcomes()) != 1 || res.GetOutcomes()[0].GetError() != nil {
		t.Fatalf("submit: %v, %v", res, err)
	}
	synctest.Wait()
	return res.GetOutcomes()[0].GetApprovalId() != ""
}

func (w *world) acted(t *testing.T, name string) int {
	t.Helper()
	n, err := w.book.Acted(t.Context(), "w", name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What an act did counts on after a restart, and only what it did: not what a person said yes to, not what destroys nothing,
// and not what another act did.
func TestAnActCountsOnAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := acting(t)
		if w.does(t, act("turn", "1", closing(tabs("lap", 15)...))) {
			t.Fatal("15 ask")
		}
		desk := w.reborn(t)
		if !w.does(t, act("turn", "2", closing(tabs("lap", 6)...))) {
			t.Error("15 before a restart and 6 after it do not ask")
		}
		if a := w.book.only(); !strings.Contains(a.Reason, "21 targets together with 15") {
			t.Errorf("it asks because of %q", a.Reason)
		}
		decide(t, desk, owner(), yes(w.book.only()))
		if n := w.acted(t, "turn"); n != 15 {
			t.Errorf("%d count after a person said yes to 6", n)
		}
		opening := &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://a.example/"}}}
		open := act("turn", "3", opening)
		open.Devices = []string{"lap"}
		for what, req := range map[string]dispatch.Request{
			"one that destroys nothing": open, "the last 5": act("turn", "4", closing(tabs("lap", 5)...)),
			"another act": act("other", "5", closing(tabs("lap", 20)...)), "no act": act("", "6", closing(tabs("lap", 20)...)),
		} {
			if w.does(t, req) {
				t.Errorf("%s asks", what)
			}
		}
		w.reborn(t)
		if !w.does(t, act("turn", "7", closing(tabs("lap", 1)...))) || w.acted(t, "turn") != 20 || w.acted(t, "other") != 20 {
			t.Errorf("%d and %d count", w.acted(t, "turn"), w.acted(t, "other"))
		}
	})
}

// A command whose targets nobody can count is one all the same.
func TestAnActCountsWhatNobodyCanCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := acting(t)
		pattern := &commandv1.Action{Kind: &commandv1.Action_CloseTabsByUrl{CloseTabsByUrl: &commandv1.CloseTabsByUrl{Url: "*://a.example/*"}}}
		req := act("turn", "1", pattern)
		req.Devices = []string{"lap"}
		w.rule.say(allow, 1)
		w.blank.Store(true)
		w.does(t, req)
		if n := w.acted(t, "turn"); n != 1 {
			t.Errorf("%d count", n)
		}
	})
}

// Of orders that were planned side by side each sees those that were accepted before it: together they do not get past what
// asks, whether they come in one batch or in many calls at once.
func TestOrdersOfOneActAtOnce(t *testing.T) {
	t.Parallel()
	t.Run("one batch", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := acting(t)
			var asked atomic.Int32
			var orders []*dispatch.Order
			for i := range 5 {
				req := act("turn", fmt.Sprint(i), closing(tabs("lap", 6)...))
				req.Asked = func(*controlv1.Approval) { asked.Add(1) }
				orders = append(orders, &dispatch.Order{Request: req, Answer: func(*controlv1.DispatchResponse, error) {}})
			}
			w.Start(t.Context(), orders)
			synctest.Wait()
			if asked.Load() != 2 || w.acted(t, "turn") != 18 {
				t.Errorf("%d ask, %d count", asked.Load(), w.acted(t, "turn"))
			}
		})
	})
	t.Run("calls at once", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := acting(t)
			w.book.counting = func() error { // so that all are planned before the first one is accepted
				<-time.After(time.Millisecond)
				return nil
			}
			var asked atomic.Int32
			var all sync.WaitGroup
			for i := range 16 {
				all.Go(func() {
					res, err := w.Submit(t.Context(), act("turn", fmt.Sprint(i), closing(tabs("lap", 3)...)))
					if err != nil || res.GetOutcomes()[0].GetError() != nil {
						t.Errorf("submit: %v, %v", res, err)
					}
					if res.GetOutcomes()[0].GetApprovalId() != "" {
						asked.Add(1)
					}
				})
			}
			all.Wait()
			if asked.Load() != 10 || w.acted(t, "turn") != 18 {
				t.Errorf("%d ask, %d count", asked.Load(), w.acted(t, "turn"))
			}
		})
	})
}

// What was refused does not count; what was perhaps written down counts if it was.
func TestARefusedAcceptanceDoesNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := acting(t)
		w.book.fail = fault.New(fault.Unavailable, "the server stops: nothing was sent")
		if _, err := w.Submit(t.Context(), act("turn", "1", closing(tabs("lap", 20)...))); fault.CodeOf(err) != fault.Unavailable {
			t.Fatalf("refused: %v", err)
		}
		w.wire.set("lap", 0)
		if res, err := w.Submit(t.Context(), act("turn", "2", closing(tabs("lap", 20)...))); err != nil || res.GetOutcomes()[0].GetError().GetCode() != offline {
			t.Fatalf("offline: %v, %v", res, err)
		}
		w.book.fail = nil
		w.wire.set("lap", 1)
		if w.does(t, act("turn", "3", closing(tabs("lap", 15)...))) || w.acted(t, "turn") != 15 {
			t.Errorf("%d count after what was refused", w.acted(t, "turn"))
		}
		w.book.lost = errors.New("the connection broke")
		if _, err := w.Submit(t.Context(), act("turn", "4", closing(tabs("lap", 5)...))); err == nil {
			t.Error("accepted")
		}
		synctest.Wait()
		w.book.lost = nil
		if !w.does(t, act("turn", "5", closing(tabs("lap", 1)...))) {
			t.Error("what was written down after all does not count")
		}
	})
}

// Nothing of an act is sent while it is not known what it did.
func TestAnActThatCannotBeCountedSendsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := acting(t)
		gone := errors.New("the disk is gone")
		w.book.counting = func() error { return gone }
		_, err := w.Submit(t.Context(), act("turn", "1", closing(tabs("lap", 1)...)))
		codeOf(t, err, fault.Busy)
		var f *fault.Error
		if !errors.As(err, &f) || !f.Retryable || strings.Contains(f.Message, "disk") {
			t.Errorf("it says %v", err)
		}
		if w.does(t, act("", "2", closing(tabs("lap", 1)...))) { // what counts for no act is not held up
			t.Error("asks")
		}
		reads := 0
		w.book.counting = func() error { // it is read when it is planned, and not when it is accepted
			if reads++; reads == 1 {
				return nil
			}
			return gone
		}
		_, err = w.Submit(t.Context(), act("turn", "3", closing(tabs("lap", 1)...)))
		codeOf(t, err, fault.Busy)
		w.book.counting = nil
		if w.sentTo("lap") != 1 || w.acted(t, "turn") != 0 {
			t.Errorf("sent %d times, %d count", w.sentTo("lap"), w.acted(t, "turn"))
		}
	})
}

// Whoever goes away while an earlier order of its act is accepted is not held up, and sends nothing.
func TestWhoeverGoesAwayWhileItsActIsTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := acting(t)
		written, goOn := make(chan struct{}), make(chan struct{})
		w.book.accepting = func() {
			w.book.accepting = nil
			close(written)
			<-goOn
		}
		first := w.join(t.Context(), act("turn", "1", closing(tabs("lap", 1)...)))
		<-written
		ctx, leave := context.WithCancelCause(t.Context())
		second := w.join(ctx, act("turn", "2", closing(tabs("lap", 1)...)))
		synctest.Wait()
		leave(errors.New("stopped by the user"))
		<-second.done
		if fault.CodeOf(second.err) != fault.Cancelled {
			t.Errorf("gone: %v, %v", second.res, second.err)
		}
		close(goOn)
		if out := first.only(t); out.GetResult() == nil || w.acted(t, "turn") != 1 || w.sentTo("lap") != 1 {
			t.Errorf("outcome %v, %d count", out, w.acted(t, "turn"))
		}
	})
}

// What a request did before a restart is not counted again when it is joined: neither what is followed, nor beside what is
// sent now.
func TestAJoinedCommandCountsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := acting(t)
		both := append(tabs("lap", 12), tabs("desk", 8)...)
		// The process ended before the other device had its share.
		if w.does(t, act("turn", "1", closing(both[:12]...))) {
			t.Fatal("12 ask")
		}
		w.reborn(t)
		w.wire.set("desk", 1)
		j := w.join(t.Context(), act("turn", "1", closing(both...)))
		<-j.done
		if j.err != nil || len(j.res.GetOutcomes()) != 2 || j.res.GetOutcomes()[1].GetResult().GetCloseTabs().GetClosedCount() != 8 {
			t.Fatalf("20 in all: %v, %v", j.res, j.err)
		}
		w.reborn(t)
		j = w.join(t.Context(), act("turn", "1", closing(both...)))
		<-j.done
		if j.err != nil || len(j.res.GetOutcomes()) != 2 || w.acted(t, "turn") != 20 || w.sentTo("lap") != 1 || w.sentTo("desk") != 1 {
			t.Errorf("joined again: %v, %v, %d count", j.res, j.err, w.acted(t, "turn"))
		}
		if !w.does(t, act("turn", "2", closing(tabs("lap", 1)...))) {
			t.Error("the next one does not ask")
		}
		// One more than that asks, although half of it is done.
		if w.does(t, act("more", "3", closing(both[:12]...))) {
			t.Fatal("12 ask")
		}
		w.reborn(t)
		more := w.join(t.Context(), act("more", "3", closing(append(both, "desk_tb1-99")...)))
		<-more.asked
		synctest.Wait()
		if w.sentTo("desk") != 1 || w.acted(t, "more") != 12 {
			t.Errorf("%d count", w.acted(t, "more"))
		}
		all, err := w.book.ListApprovals(t.Context(), approval.Filter{Workspace: "w", PendingOnly: true})
		if err != nil || len(all) != 2 {
			t.Errorf("%v, %v", all, err)
		}
	})
}
