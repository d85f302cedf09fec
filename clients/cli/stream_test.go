package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

type sendEvent = func(*controlv1.WatchEventsResponse) error

func commandEvent(cursor uint64, state controlv1.State, detail string) *controlv1.WatchEventsResponse {
	return &controlv1.WatchEventsResponse{Event: &controlv1.Event{
		Cursor: cursor, Time: ago(0), DeviceId: laptop, Kind: &controlv1.Event_Command{Command: &controlv1.CommandEvent{
			CommandId: "cmd-3", Name: "closeTabs", State: state, Detail: detail, Late: cursor == 9,
		}},
	}}
}

func deviceEvent(cursor uint64, change controlv1.DeviceChange) *controlv1.WatchEventsResponse {
	return &controlv1.WatchEventsResponse{Event: &controlv1.Event{
		Cursor: cursor, Time: ago(0), DeviceId: laptop,
		Kind: &controlv1.Event_Device{Device: &controlv1.DeviceEvent{Change: change, Name: "lap\u202etop"}},
	}}
}

// events sends frames, waits for the interrupt, and ends.
func events(frames ...*controlv1.WatchEventsResponse) func(context.Context, *controlv1.WatchEventsRequest, sendEvent) error {
	return func(ctx context.Context, _ *controlv1.WatchEventsRequest, send sendEvent) error {
		for _, frame := range frames {
			if err := send(frame); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	}
}

// until runs the program and interrupts it when it has written a text.
func until(t *testing.T, r run, text string) ended {
	t.Helper()
	return untilTimes(t, r, text, 1)
}

// untilTimes runs the program and interrupts it when it has written a text so many times.
func untilTimes(t *testing.T, r run, text string, times int) ended {
	t.Helper()
	r.signals = make(chan os.Signal, 1)
	out, errOut := &buffer{}, &buffer{}
	seen := out.holds(text, times)
	go func() {
		<-seen
		r.signals <- os.Interrupt
	}()
	code := start(t, r, out, errOut)
	return ended{code: code, out: out.String(), err: errOut.String()}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) {
		f.watch = events(
			&controlv1.WatchEventsResponse{}, // alive
			&controlv1.WatchEventsResponse{Reset_: true},
			deviceEvent(6, controlv1.DeviceChange_DEVICE_CHANGE_ONLINE),
			deviceEvent(6, controlv1.DeviceChange_DEVICE_CHANGE_PAUSED),
			deviceEvent(6, controlv1.DeviceChange_DEVICE_CHANGE_RESUMED),
			commandEvent(7, controlv1.State_STATE_ACCEPTED, ""),
			commandEvent(8, controlv1.State_STATE_FAILED, "no \x07tab"),
			commandEvent(9, controlv1.State_STATE_SUCCEEDED, ""),
			&controlv1.WatchEventsResponse{Event: &controlv1.Event{Cursor: 10, Time: ago(0), DeviceId: laptop}},
		)
	})
	e := until(t, run{server: f.url, args: []string{"watch", "--device", "laptop", "--cursor", "5"}}, "something else")
	e.check(t, 130)
	clock := now().Local().Format(time.TimeOnly)
	golden(t, "watch", strings.ReplaceAll(e.out, clock, "12:00:00")+"---\n"+e.err, f.url)

	e = until(t, run{server: f.url, args: []string{"watch", "-o", "json"}}, `"cursor":"10"`)
	e.check(t, 130)
	lines := strings.Split(strings.TrimSpace(e.out), "\n")
	if len(lines) != 8 {
		t.Errorf("%d lines: %s", len(lines), e.out)
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

// TestWatchGoesOn has a stream that breaks: it is opened again after the last event.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	f := newFake(t, func(f *fake) {
		f.watch = func(ctx context.Context, req *controlv1.WatchEventsRequest, send sendEvent) error {
			if opened.Add(1) == 1 {
				if req.Cursor != nil {
					t.Errorf("cursor of the first stream: %d", req.GetCursor())
				}
				if err := send(commandEvent(7, controlv1.State_STATE_SENT, "")); err != nil {
					return err
				}
				return connect.NewError(connect.CodeUnavailable, "draining")
			}
			if req.GetCursor() != 7 {
				t.Errorf("cursor of the second stream: %d", req.GetCursor())
			}
			return events(commandEvent(8, controlv1.State_STATE_SUCCEEDED, ""))(ctx, req, send)
		}
	})
	e := until(t, run{server: f.url, args: []string{"watch"}}, "succeeded")
	e.check(t, 130, "sent", "succeeded")
}

func TestPair(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) {
		f.watch = events(
			deviceEvent(1, controlv1.DeviceChange_DEVICE_CHANGE_ONLINE), deviceEvent(2, controlv1.DeviceChange_DEVICE_CHANGE_PAIRED),
		)
	})
	e := f.run(t, "pair")
	e.check(t, 0)
	golden(t, "pair", e.out, f.url)
	asJSON := f.run(t, "pair", "-o", "json")
	asJSON.check(t, 0, `"code":"K7QP-M2XW"`, `"change":"DEVICE_CHANGE_PAIRED"`)

	quiet := newFake(t, func(f *fake) { f.expires = -time.Second })
	quiet.run(t, "pair").check(t, 4, "the pairing code has expired: run `throwbar pair` again")

	waits := newFake(t)
	until(t, run{server: waits.url, args: []string{"pair"}}, "maple").check(t, 130)
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for words, want := range map[string]string{
		"call closeT":                          "closeTabs\tClose tabs",
		"call groupTabs --colour ":             "purple",
		"call pinTabs --pinned=":               "true",
		"call openTab --device ":               "laptop\tk3v9x2mqta",
		"query listTabs --device-id ":          "work\tp4w7h2nnbc",
		"tabs --device ":                       "work\tp4w7h2nnbc",
		"devices revoke ":                      "work\tp4w7h2nnbc",
		"call closeTabs --tab":                 "--tab-ids\tIds of the tabs to close",
		"token create --scope ":                "operator",
		"call --server http://127.0.0.1:1 clo": "closeTabs\t",
		"":                                     "call\t",
		"devices -o ":                          "json",
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			f.run(t, append([]string{"__complete"}, strings.Split(words, " ")...)...).check(t, 0, want)
		})
	}
	e := f.run(t, "__complete", "call", "tab")
	if strings.Contains(e.out, "tabClose") {
		t.Errorf("an alias is offered: %s", e.out)
	}
	f.run(t, "completion", "bash").check(t, 0, "__start_throwbar")
}
