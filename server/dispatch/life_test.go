package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
)

var errDisk = errors.New("disk is full")

// receipts are the ids that a device got a receipt for.
func (w *wire) receipts(device string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []string
	for _, f := range w.frames[device] {
		ids = append(ids, f.GetReceipt().GetCommandIds()...)
	}
	return ids
}

func (w *world) stop(t *testing.T) *dispatch.Dispatcher {
	t.Helper()
	old := w.Dispatcher
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := old.Run(stopped); err != nil {
		t.Fatal(err)
	}
	return old
}

func TestAShortFaultOfTheLedgerIsNotSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.book.hold(errDisk)
		w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome { return closed("lap_tb1-1") })
		time.AfterFunc(time.Second, func() { w.book.hold(nil) })
		res, err := w.Dispatch(t.Context(), request(closing("lap_tb1-1")))
		if err != nil || res.GetOutcomes()[0].GetResult() == nil {
			t.Errorf("outcome: %v, %v", res, err)
		}
		time.Sleep(time.Second) // receipts wait a moment for each other
		synctest.Wait()
		if row := w.book.row(t); row.State != dispatch.Succeeded || w.book.ends[row.ID] != 1 || len(w.wire.receipts("lap")) != 1 {
			t.Errorf("row %+v, receipts %v", row, w.wire.receipts("lap"))
		}
	})
}

func TestAnEndThatIsNotWrittenIsUnknownUntilItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.book.hold(errDisk)
		w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome { return closed("lap_tb1-1") })
		res, err := w.Dispatch(t.Context(), request(closing("lap_tb1-1")))
		if err != nil || res.GetOutcomes()[0].GetError().GetCode() != interrupted {
			t.Errorf("outcome: %v, %v", res, err)
		}
		// The device says it again: no receipt, for nothing is written down.
		id := w.book.row(t).ID
		again := closed("lap_tb1-1")
		again.CommandId = id
		w.Outcome("lap", again)
		synctest.Wait()
		if row := w.book.row(t); row.State.Ended() || len(w.wire.receipts("lap")) != 0 {
			t.Errorf("state %s, receipts %v", row.State, w.wire.receipts("lap"))
		}
		w.book.hold(nil)
		<-time.After(10 * time.Second)
		synctest.Wait()
		// What is written is what the device did.
		if row := w.book.row(t); row.State != dispatch.Succeeded || w.book.ends[id] != 1 || !slices.Contains(w.wire.receipts("lap"), id) {
			t.Errorf("state %s, %d ends, receipts %v", row.State, w.book.ends[id], w.wire.receipts("lap"))
		}
	})
}

func TestAStopWhileNothingCanBeWrittenKeepsTheOutcomeForTheNextStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.book.hold(errDisk)
		w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome { return closed("lap_tb1-1") })
		done := make(chan *controlv1.DispatchResponse, 1)
		go func() {
			res, _ := w.Dispatch(t.Context(), request(closing("lap_tb1-1")))
			done <- res
		}()
		synctest.Wait()
		old := w.stop(t)
		if res := <-done; res.GetOutcomes()[0].GetError().GetCode() != interrupted {
			t.Errorf("outcome: %v", res)
		}
		w.book.hold(nil)
		w.restart(old.Catalogue)
		if err := w.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wire.set("lap", 2)
		kept := closed("lap_tb1-1")
		kept.CommandId = w.book.row(t).ID
		w.Attached("lap", 2, w.Reconnected("lap", nil, []*devicev1.Outcome{kept}))
		synctest.Wait()
		if row := w.book.row(t); row.State != dispatch.Succeeded || w.book.ends[row.ID] != 1 {
			t.Errorf("state %s, %d ends", row.State, w.book.ends[row.ID])
		}
	})
}

func TestWhatIsPerhapsWrittenIsNotSentAndEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.book.lost = errors.New("the connection broke during the commit")
		if _, err := w.Dispatch(t.Context(), request(closing("lap_tb1-1"))); !errors.Is(err, w.book.lost) {
			t.Errorf("error: %v", err)
		}
		synctest.Wait()
		if row := w.book.row(t); row.State != dispatch.Failed || len(w.wire.commands("lap")) != 0 {
			t.Errorf("state %s, %d sent", row.State, len(w.wire.commands("lap")))
		}
	})
}

func TestStepsAreWrittenOnceAndInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, slow := range []time.Duration{0, time.Second} { // with the end, and before it
			w.book.steps = nil
			w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome {
				<-time.After(slow)
				return closed("lap_tb1-1")
			})
			res, err := w.Dispatch(t.Context(), request(closing("lap_tb1-1")))
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second)
			synctest.Wait()
			id := res.GetOutcomes()[0].GetCommandId()
			if want := []string{id + " sent", id + " acknowledged"}; !slices.Equal(w.book.steps, want) {
				t.Errorf("after %v: %v", slow, w.book.steps)
			}
		}
	})
}

func TestTheWallClockDecidesNothingThatRuns(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"forward": 24 * time.Hour, "back": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome {
					<-time.After(20 * time.Second)
					return closed("lap_tb1-1")
				})
				time.AfterFunc(time.Second, func() { w.skew.Store(int64(skew)) })
				if res, err := w.Dispatch(t.Context(), request(closing("lap_tb1-1"))); err != nil || res.GetOutcomes()[0].GetResult() == nil {
					t.Errorf("outcome: %v, %v", res, err)
				}
				w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome { return nil })
				start := time.Now()
				time.AfterFunc(time.Second, func() { w.skew.Store(0) })
				res, err := w.Dispatch(t.Context(), request(closing("lap_tb1-1")))
				if took := time.Since(start); err != nil || took != 30*time.Second+dispatch.Grace || res.GetOutcomes()[0].GetError() == nil {
					t.Errorf("after %v: %v, %v", took, res, err)
				}
			})
		})
	}
}

func TestNothingIsSentAfterASleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.Submit(t.Context(), request(closing("lap_tb1-1"))); err != nil {
			t.Fatal(err)
		}
		w.wire.set("lap", 0)
		// The machine sleeps for an hour: the monotonic clock stands still, the wall clock does not.
		w.skew.Store(int64(time.Hour))
		w.wire.set("lap", 2)
		before := len(w.wire.commands("lap"))
		w.Attached("lap", 2, w.Reconnected("lap", nil, nil))
		synctest.Wait()
		if row := w.book.row(t); row.State != dispatch.Expired || len(w.wire.commands("lap")) != before {
			t.Errorf("state %s, %d sent", row.State, len(w.wire.commands("lap"))-before)
		}
	})
}

func TestAClockSetBackDuringARestartDoesNotLengthenALife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.Submit(t.Context(), request(closing("lap_tb1-1"))); err != nil {
			t.Fatal(err)
		}
		w.wire.set("lap", 0)
		old := w.stop(t)
		w.skew.Store(int64(-time.Hour))
		w.restart(old.Catalogue)
		if err := w.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(31 * time.Second)
		synctest.Wait()
		if row := w.book.row(t); !row.State.Ended() {
			t.Errorf("state %s", row.State)
		}
	})
}

func TestAGroupIsCancelledAsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.wire.set("desk", 1)
		res, err := w.Submit(t.Context(), request(closing("lap_tb1-1", "desk_tb1-1")))
		if err != nil {
			t.Fatal(err)
		}
		first, err := w.Get(t.Context(), "w", res.GetOutcomes()[0].GetCommandId())
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Cancel(t.Context(), "other", first.GetGroupId())
		codeOf(t, err, fault.NotFound)
		if _, err := w.Cancel(t.Context(), "w", first.GetGroupId()); err != nil {
			t.Fatal(err)
		}
		for id, row := range w.book.all() {
			if row.State != dispatch.Cancelled {
				t.Errorf("%s is %s", id, row.State)
			}
		}
		if w.wire.cancels("lap") != 1 || w.wire.cancels("desk") != 1 {
			t.Errorf("%d and %d cancels", w.wire.cancels("lap"), w.wire.cancels("desk"))
		}
	})
}

// R15: one request to many devices of which some are dead is answered for the others at once, and for all in the end.
func TestAFanOutIsAnsweredForEveryDevice(t *testing.T) {
	t.Parallel()
	const total, each = 2000, 500 // the contract lets one dispatch name 500
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.more = map[string]bool{}
		var ids []string
		for n := range total {
			id := fmt.Sprintf("device%d", n)
			ids = append(ids, id)
			w.more[id] = true
			w.wire.set(id, 1)
		}
		dead := func(id string) bool {
			return strings.HasSuffix(id, "7") && strings.ContainsAny(id[len(id)-2:len(id)-1], "13579")
		}
		var answeredAt []time.Time
		w.wire.on = func(device string, frame *devicev1.ServerFrame) {
			if c := frame.GetCommand(); c != nil && !dead(device) {
				w.Outcome(device, &devicev1.Outcome{CommandId: c.GetCommandId(), Outcome: &devicev1.Outcome_Result{
					Result: &commandv1.Result{Kind: &commandv1.Result_OpenTab{OpenTab: &commandv1.OpenTab_Result{TabId: device + "_tb1-1"}}},
				}})
			}
		}
		start := time.Now()
		open := &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://a.example"}}}
		results := make(chan *controlv1.DispatchResponse, total/each)
		for part := range slices.Chunk(ids, each) {
			go func() {
				res, err := w.Dispatch(t.Context(), request(open, part...))
				if err != nil {
					t.Error(err)
				}
				for i, out := range res.GetOutcomes() {
					if out.GetDeviceId() != part[i] {
						t.Errorf("outcome %d is of %s, not of %s", i, out.GetDeviceId(), part[i])
					}
				}
				results <- res
			}()
		}
		synctest.Wait() // no time has passed: all that are alive have ended
		for id, row := range w.book.all() {
			if row.State == dispatch.Succeeded {
				answeredAt = append(answeredAt, row.EndedAt)
			} else if !dead(row.Device) {
				t.Errorf("%s on %s is %s", id, row.Device, row.State)
			}
		}
		if n := len(answeredAt); n != total*95/100 || !slices.MaxFunc(answeredAt, time.Time.Compare).Equal(start) {
			t.Errorf("%d of %d answered at once", n, total)
		}
		late := 0
		for range total / each {
			for _, out := range (<-results).GetOutcomes() {
				if out.GetError().GetCode() == expired {
					late++
				}
			}
		}
		if late != total*5/100 || time.Since(start) != 30*time.Second+dispatch.Grace {
			t.Errorf("%d expired after %v", late, time.Since(start))
		}
	})
}

func TestALateResultIsNotedOnceAndFreesWhatIsOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := w.Dispatch(ctx, request(closing("lap_tb1-1", "lap_tb1-2")))
			done <- err
		}()
		synctest.Wait()
		cancel()
		<-done
		if len(w.book.kept) != 2 {
			t.Errorf("kept after the cancel: %v", w.book.kept)
		}
		for range 3 {
			o := closed("lap_tb1-1") // it closed one of two before it stopped
			o.CommandId = w.book.row(t).ID
			w.Outcome("lap", o)
			synctest.Wait()
		}
		if len(w.book.lates) != 1 || len(w.book.kept) != 1 {
			t.Errorf("late results %v, kept %v", w.book.lates, w.book.kept)
		}
	})
}

func TestWhatACopiedProfileTookThePlaceOfIsNotSentAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer(func(*devicev1.CommandRequest) *devicev1.Outcome { return nil })
		done := make(chan *controlv1.DispatchResponse, 2)
		for _, id := range []string{"lap_tb1-1", "lap_tb1-2"} {
			go func() {
				res, err := w.Dispatch(t.Context(), request(closing(id)))
				if err != nil {
					t.Error(err)
				}
				done <- res
			}()
			synctest.Wait()
		}
		sent := w.wire.commands("lap")
		if len(sent) != 2 {
			t.Fatalf("%d commands sent", len(sent))
		}
		// The newcomer has the first one in its journal, and knows nothing of the second.
		keep := w.Reconnected("lap", []string{sent[0].GetCommandId()}, nil)
		w.wire.set("lap", 2)
		w.Displaced("lap", keep)
		w.Attached("lap", 2, keep)
		if e := (<-done).GetOutcomes()[0].GetError(); e.GetCode() != interrupted {
			t.Errorf("error %v", e)
		}
		if n := len(w.wire.commands("lap")); n != 2 {
			t.Errorf("%d commands sent", n)
		}
		w.Outcome("lap", &devicev1.Outcome{CommandId: sent[0].GetCommandId(), Outcome: closed("lap_tb1-1").GetOutcome()})
		if res := <-done; res.GetOutcomes()[0].GetResult() == nil {
			t.Errorf("outcome %v", res)
		}
	})
}
