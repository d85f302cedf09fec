package turn_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// deeds is a server that outlives the processes in front of it: it writes down what was asked for under its key, asks
// people, and counts what was really done.
type deeds struct {
	t      *testing.T
	tick   func()                      // something happens
	decide func(url string) verdictNow // what a person does about a command that asks, when it asks

	mu    sync.Mutex
	deeds map[string]*deed // by key
	runs  map[string]int   // by what was done
	asks  int
}

type verdictNow int

const (
	later verdictNow = iota
	never
	yesNow
	noNow
)

// deed is a command under a key.
type deed struct {
	url      string
	approval *controlv1.Approval
	out      *controlv1.DeviceOutcome // set before ended is closed
	ended    chan struct{}
}

func newDeeds(t *testing.T) *deeds {
	return &deeds{
		t: t, tick: func() {}, decide: func(string) verdictNow { return yesNow }, deeds: map[string]*deed{}, runs: map[string]int{},
	}
}

// end ends a deed; done says that it took effect.
func (d *deeds) end(e *deed, done bool, code commandv1.ErrorCode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.out != nil {
		return
	}
	e.out = &controlv1.DeviceOutcome{DeviceId: "lap", DeviceName: "Work Laptop"}
	if done {
		d.runs[e.url]++
		e.out.Outcome = &controlv1.DeviceOutcome_Result{Result: &commandv1.Result{Kind: &commandv1.Result_OpenTab{OpenTab: &commandv1.OpenTab_Result{
			TabId: "lap_tb-1", Url: e.url,
		}}}}
	} else {
		e.out.Outcome = &controlv1.DeviceOutcome_Error{Error: &commandv1.CommandError{Code: code, Message: "not run"}}
	}
	close(e.ended)
}

// answer is a person's decision about a deed that waits.
func (d *deeds) answer(e *deed, yes bool) {
	d.mu.Lock()
	if e.approval.GetState() != pending {
		d.mu.Unlock()
		return
	}
	e.approval = proto.CloneOf(e.approval)
	e.approval.State = denied
	if yes {
		e.approval.State = approved
	}
	d.mu.Unlock()
	d.end(e, yes, commandv1.ErrorCode_ERROR_CODE_DENIED)
}

// open are the deeds that wait for a person.
func (d *deeds) open() []*deed {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []*deed
	for _, e := range d.deeds {
		if e.approval.GetState() == pending && e.out == nil {
			out = append(out, e)
		}
	}
	return out
}

// begin finds or makes the deed of a call. Who has gone away makes none.
func (d *deeds) begin(ctx context.Context, call turn.Call) (e *deed, fresh bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(call.Key) == 0 || len(call.Key) > 64 {
		d.t.Errorf("key %q", call.Key)
	}
	if e := d.deeds[call.Key]; e != nil {
		if !call.Again {
			d.t.Errorf("the key of %s was used before", e.url)
		}
		return e, false
	}
	if ctx.Err() != nil {
		return nil, false
	}
	e = &deed{url: call.Action.GetOpenTab().GetUrl(), ended: make(chan struct{})}
	d.deeds[call.Key] = e
	if strings.Contains(e.url, "ask") {
		d.asks++
		e.approval = &controlv1.Approval{ApprovalId: fmt.Sprint("ap-", d.asks), State: pending, Reason: "it asks"}
	}
	return e, true
}

// Command is at most once for a key.
func (d *deeds) Command(ctx context.Context, call turn.Call) (*controlv1.DispatchResponse, error) {
	d.tick()
	e, fresh := d.begin(ctx, call)
	if e == nil {
		return nil, context.Cause(ctx)
	}
	d.mu.Lock()
	view := e.approval
	d.mu.Unlock()
	if view != nil {
		call.Asked(proto.CloneOf(view))
		d.tick()
	}
	if fresh {
		d.proceed(e)
	}
	select {
	case <-e.ended:
	case <-ctx.Done():
		if !call.Durable || !errors.Is(context.Cause(ctx), turn.ErrShutdown) {
			d.cancel(e)
		}
		return nil, context.Cause(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.approval != nil {
		call.Resolved(proto.CloneOf(e.approval))
	}
	return &controlv1.DispatchResponse{Outcomes: []*controlv1.DeviceOutcome{e.out}}, nil
}

// proceed lets a new deed take its course.
func (d *deeds) proceed(e *deed) {
	switch {
	case strings.Contains(e.url, "panic"):
		d.cancel(e)
		panic("boom")
	case strings.Contains(e.url, "refuse"):
		d.end(e, false, commandv1.ErrorCode_ERROR_CODE_REFUSED)
	case e.approval == nil && strings.Contains(e.url, "slow"):
		time.AfterFunc(time.Millisecond, func() { d.end(e, true, 0) })
	case e.approval == nil:
		d.end(e, true, 0)
	default:
		switch d.decide(e.url) {
		case yesNow:
			d.answer(e, true)
		case noNow:
			d.answer(e, false)
		default:
		}
	}
}

func (d *deeds) cancel(e *deed) {
	d.mu.Lock()
	if e.approval.GetState() == pending && e.approval != nil {
		e.approval = proto.CloneOf(e.approval)
		e.approval.State = controlv1.ApprovalState_APPROVAL_STATE_WITHDRAWN
	}
	d.mu.Unlock()
	d.end(e, false, commandv1.ErrorCode_ERROR_CODE_CANCELLED)
}

// Withdraw cancels what waits.
func (d *deeds) Withdraw(_ context.Context, call turn.Call, _ string) (*controlv1.DispatchResponse, error) {
	d.mu.Lock()
	e := d.deeds[call.Key]
	d.mu.Unlock()
	if e == nil {
		return nil, nil //nolint:nilnil // nothing was written down
	}
	if e.approval != nil {
		call.Asked(proto.CloneOf(e.approval))
		d.cancel(e)
		call.Resolved(proto.CloneOf(e.approval))
	}
	<-e.ended
	return &controlv1.DispatchResponse{Outcomes: []*controlv1.DeviceOutcome{e.out}}, nil
}

// Query has no effect.
func (d *deeds) Query(_ context.Context, query turn.Query) (proto.Message, error) {
	d.tick()
	if query.Method.Name() == "ListDevices" {
		return &controlv1.ListDevicesResponse{Devices: []*controlv1.Device{{DeviceId: "lap", Name: "Work Laptop", Online: true}}}, nil
	}
	return nil, &turn.Refusal{Code: commandv1.ErrorCode_ERROR_CODE_UNSUPPORTED, Message: "not here"}
}

// Call does what it does once for a key.
func (d *deeds) Call(_ context.Context, call turn.FacilityCall) (proto.Message, error) {
	d.tick()
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.deeds[call.Key]
	if e != nil && !call.Again {
		d.t.Errorf("the key of %s was used before", e.url)
	}
	if e == nil {
		name := "facility " + call.CallID
		d.deeds[call.Key] = &deed{url: name, ended: make(chan struct{}), out: &controlv1.DeviceOutcome{}}
		d.runs[name]++
	}
	return &agentv1.Undo_Result{UndoneCommandIds: []string{"c"}}, nil
}

// done are how often each thing was done.
func (d *deeds) done() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.runs)
}

// times is how often one thing was done.
func (d *deeds) times(url string) int { return d.done()[url] }
