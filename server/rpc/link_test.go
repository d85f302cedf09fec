package rpc_test

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

func closing(tabs ...string) *controlv1.DispatchRequest {
	return &controlv1.DispatchRequest{Action: &commandv1.Action{
		Kind: &commandv1.Action_CloseTabs{CloseTabs: &commandv1.CloseTabs{TabIds: tabs}},
	}}
}

// answered is what a dispatch in the background came to.
type answered struct {
	res *controlv1.DispatchResponse
	err error
}

func dispatch(ctx context.Context, t *testing.T, s *apptest.Server, req *controlv1.DispatchRequest) <-chan answered {
	t.Helper()
	client := s.Commands(t)
	done := make(chan answered, 1)
	go func() {
		res, err := client.Dispatch(ctx, req)
		done <- answered{res, err}
	}()
	return done
}

func TestACommandTravelsOnBothRoads(t *testing.T) {
	t.Parallel()
	for name, how := range transports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, app.Config{})
			d := pair(t, s, "laptop")
			id := d.GetDeviceId()
			l, welcome := dial(t, s, d, how, nil)
			if !welcome.GetResync() || welcome.GetName() != "laptop" || welcome.GetEpoch() != 1 {
				t.Errorf("welcome: %v", welcome)
			}
			if err := l.send(snapshot(id, tab(id, "1", "https://www.youtube.com/watch?v=1", "Cats"), tab(id, "2", "https://go.dev/", "Go"))); err != nil {
				t.Fatal(err)
			}
			apptest.Eventually(t, "the search finds the tab", func() bool {
				res, err := s.Browser(t).SearchTabs(t.Context(), &controlv1.SearchTabsRequest{Query: "youtube cats"})
				return err == nil && res.GetTotal() == 1 && res.GetDevices()[0].GetFreshness().GetLive()
			})
			done := dispatch(t.Context(), t, s, closing(id+"_tb1-1"))
			c := next(t, l).GetCommand()
			if c == nil || c.GetTimeLeft().AsDuration() > 30*time.Second || c.GetTimeLeft().AsDuration() < 20*time.Second {
				t.Fatalf("command: %v", c)
			}
			if err := l.send(ack(c.GetCommandId()), outcome(closedOutcome(c.GetCommandId(), id+"_tb1-1"))); err != nil {
				t.Fatal(err)
			}
			if r := next(t, l).GetReceipt(); len(r.GetCommandIds()) != 1 || r.GetCommandIds()[0] != c.GetCommandId() {
				t.Errorf("receipt: %v", r)
			}
			a := <-done
			if a.err != nil || a.res.GetOutcomes()[0].GetResult().GetCloseTabs().GetClosedCount() != 1 {
				t.Fatalf("outcome: %v, %v", a.res, a.err)
			}
			got, err := s.Commands(t).GetCommand(t.Context(), &controlv1.GetCommandRequest{CommandId: c.GetCommandId()})
			if err != nil || got.GetCommand().GetState() != controlv1.State_STATE_SUCCEEDED || got.GetCommand().GetSummary() != "closedCount=1" {
				t.Errorf("stored: %v, %v", got, err)
			}
		})
	}
}

func TestADeviceThatIsGoneGetsNothingAfterTheTimeToLive(t *testing.T) {
	t.Parallel()
	for name, how := range transports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, app.Config{})
			d := pair(t, s, "laptop")
			l, _ := dial(t, s, d, how, nil)
			req := closing(d.GetDeviceId() + "_tb1-1")
			req.Ttl = durationpb.New(5 * time.Second) // until it is sent
			done := dispatch(t.Context(), t, s, req)
			next(t, l) // the command; it goes no further
			l.close()
			a := <-done
			if a.err != nil || a.res.GetOutcomes()[0].GetError().GetCode() != commandv1.ErrorCode_ERROR_CODE_EXPIRED {
				t.Fatalf("outcome: %v, %v", a.res, a.err)
			}
			// It comes back: the next thing it hears of is the next command.
			l, _ = dial(t, s, d, how, nil)
			later := dispatch(t.Context(), t, s, closing(d.GetDeviceId()+"_tb1-2"))
			c := next(t, l).GetCommand()
			if tabs := c.GetAction().GetCloseTabs().GetTabIds(); len(tabs) != 1 || tabs[0] != d.GetDeviceId()+"_tb1-2" {
				t.Errorf("command after the return: %v", c)
			}
			if err := l.send(outcome(closedOutcome(c.GetCommandId()))); err != nil {
				t.Fatal(err)
			}
			<-later
		})
	}
}

func TestACommandIsSentAgainAfterAReconnect(t *testing.T) {
	t.Parallel()
	for name, how := range transports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, app.Config{})
			d := pair(t, s, "laptop")
			l, _ := dial(t, s, d, how, nil)
			done := dispatch(t.Context(), t, s, closing(d.GetDeviceId()+"_tb1-1"))
			first := next(t, l).GetCommand()
			l.close()
			l, welcome := dial(t, s, d, how, nil)
			again := next(t, l).GetCommand()
			if welcome.GetEpoch() != 2 || again.GetCommandId() != first.GetCommandId() || again.GetAttempt() != 2 {
				t.Errorf("epoch %d, again %v", welcome.GetEpoch(), again)
			}
			if err := l.send(ack(again.GetCommandId())); err != nil {
				t.Fatal(err)
			}
			l.close()
			// The worker was killed after running it: the result comes with the next Hello.
			dial(t, s, d, how, &devicev1.Hello{Outcomes: []*devicev1.Outcome{closedOutcome(first.GetCommandId(), d.GetDeviceId()+"_tb1-1")}})
			if a := <-done; a.err != nil || a.res.GetOutcomes()[0].GetResult().GetCloseTabs().GetClosedCount() != 1 {
				t.Errorf("outcome: %v, %v", a.res, a.err)
			}
		})
	}
}

func TestTheNewestLinkWins(t *testing.T) {
	t.Parallel()
	for name, how := range transports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, app.Config{})
			d := pair(t, s, "laptop")
			old, _ := dial(t, s, d, how, nil)
			fresh, _ := dial(t, s, d, how, nil)
			if end := next(t, old).GetEnd(); end.GetReason() != devicev1.EndReason_END_REASON_REPLACED {
				t.Errorf("the old link was told %v", end)
			}
			if err := old.send(snapshot(d.GetDeviceId())); name == "Watch+Report" && err == nil {
				t.Error("the old link can still report")
			}
			done := dispatch(t.Context(), t, s, closing(d.GetDeviceId()+"_tb1-1"))
			c := next(t, fresh).GetCommand()
			if err := fresh.send(outcome(closedOutcome(c.GetCommandId()))); err != nil {
				t.Fatal(err)
			}
			if a := <-done; a.err != nil || a.res.GetOutcomes()[0].GetResult() == nil {
				t.Errorf("outcome: %v, %v", a.res, a.err)
			}
		})
	}
}

func TestARevokedDeviceIsOutAtOnce(t *testing.T) {
	t.Parallel()
	for name, how := range transports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, app.Config{})
			d := pair(t, s, "laptop")
			l, _ := dial(t, s, d, how, nil)
			if _, err := s.Devices(t).RevokeDevice(t.Context(), &controlv1.RevokeDeviceRequest{DeviceId: d.GetDeviceId()}); err != nil {
				t.Fatal(err)
			}
			if end := next(t, l).GetEnd(); end.GetReason() != devicev1.EndReason_END_REASON_REVOKED {
				t.Errorf("the device was told %v", end)
			}
			_, err := s.Device(t, d.GetToken()).Report(t.Context(), &devicev1.ReportRequest{
				LinkId: "x", Sequence: 1, Frames: []*devicev1.DeviceFrame{ack("x")},
			})
			if connect.CodeOf(err) != connect.CodeUnauthenticated {
				t.Errorf("its token: %v", err)
			}
		})
	}
}

func TestACallerThatDisconnectsLeavesNoPendingCommand(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	d := pair(t, s, "laptop")
	l, _ := dial(t, s, d, dialConnect, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := dispatch(ctx, t, s, closing(d.GetDeviceId()+"_tb1-1"))
	c := next(t, l).GetCommand()
	cancel()
	if a := <-done; a.err == nil {
		t.Errorf("outcome: %v", a.res)
	}
	if stop := next(t, l).GetCancel(); stop.GetCommandId() != c.GetCommandId() {
		t.Errorf("the device was told %v", stop)
	}
	apptest.Eventually(t, "nothing is pending", func() bool {
		pending := true
		list, err := s.Commands(t).ListCommands(t.Context(), &controlv1.ListCommandsRequest{PendingOnly: &pending})
		return err == nil && len(list.GetCommands()) == 0
	})
	got, err := s.Commands(t).GetCommand(t.Context(), &controlv1.GetCommandRequest{CommandId: c.GetCommandId()})
	if err != nil || got.GetCommand().GetState() != controlv1.State_STATE_CANCELLED {
		t.Errorf("stored: %v, %v", got, err)
	}
}

func TestARestartKeepsDevicesTokensAndTheLastKnownTabs(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	d := pair(t, s, "laptop")
	id := d.GetDeviceId()
	l, before := dial(t, s, d, dialConnect, nil)
	if err := l.send(snapshot(id, tab(id, "1", "https://a.example/", "A"))); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the tab is known", func() bool {
		res, err := s.Browser(t).ListTabs(t.Context(), &controlv1.ListTabsRequest{})
		return err == nil && res.GetTotal() == 1
	})
	s.Stop()
	if end := next(t, l).GetEnd(); end.GetReason() != devicev1.EndReason_END_REASON_GOING_AWAY || end.GetRetryAfter() == nil {
		t.Errorf("the device was told %v", end)
	}
	again := apptest.Start(t, app.Config{DataDir: s.Dir})
	if again.Owner != s.Owner {
		t.Error("the owner has another token")
	}
	res, err := again.Browser(t).ListTabs(t.Context(), &controlv1.ListTabsRequest{})
	if err != nil || res.GetTotal() != 1 || res.GetDevices()[0].GetFreshness().GetLive() || res.GetDevices()[0].GetFreshness().GetAsOf() == nil {
		t.Errorf("tabs of an offline device: %v, %v", res, err)
	}
	if _, welcome := dial(t, again, d, dialConnect, nil); welcome.GetEpoch() <= before.GetEpoch() {
		t.Errorf("welcome after the restart: %v", welcome)
	}
}

func TestAGapInTheDeltasAsksForASnapshot(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	d := pair(t, s, "laptop")
	id := d.GetDeviceId()
	l, _ := dial(t, s, d, dialConnect, nil)
	delta := func(n uint64, tabs ...*commandv1.Tab) *devicev1.DeviceFrame {
		return &devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Delta{Delta: &devicev1.Delta{Sequence: n, Tabs: tabs}}}
	}
	if err := l.send(
		snapshot(id, tab(id, "1", "https://a.example/", "A")),
		delta(2, tab(id, "2", "https://b.example/", "B")),
		delta(4, tab(id, "4", "https://d.example/", "D")),
	); err != nil {
		t.Fatal(err)
	}
	if r := next(t, l).GetResync(); r == nil {
		t.Fatal("no resync after a gap")
	}
	res, err := s.Browser(t).ListTabs(t.Context(), &controlv1.ListTabsRequest{})
	if err != nil || res.GetTotal() != 2 || res.GetDevices()[0].GetFreshness().GetLive() {
		t.Errorf("after the gap: %v, %v", res, err)
	}
}

func TestADeviceCannotSpeakForAnother(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	a, b := pair(t, s, "a"), pair(t, s, "b")
	l := dialConnect(t, s, a.GetToken(), &devicev1.Hello{DeviceId: b.GetDeviceId()})
	if _, err := l.receive(); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("another device's id: %v", err)
	}
	own, _ := dial(t, s, a, dialConnect, nil)
	if err := own.send(snapshot(b.GetDeviceId(), tab(b.GetDeviceId(), "1", "https://x.example/", "X"))); err != nil {
		t.Fatal(err)
	}
	if _, err := own.receive(); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("another device's tabs: %v", err)
	}
}

func TestEventsCanBeFollowedByCursor(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	d := pair(t, s, "laptop")
	zero := uint64(0)
	stream, err := s.Commands(t).WatchEvents(t.Context(), &controlv1.WatchEventsRequest{Cursor: &zero})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	nextEvent := func() *controlv1.Event {
		for {
			msg, err := stream.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if msg.GetEvent() != nil {
				return msg.GetEvent()
			}
		}
	}
	if e := nextEvent(); e.GetDevice().GetChange() != controlv1.DeviceChange_DEVICE_CHANGE_PAIRED || e.GetCursor() != 1 {
		t.Errorf("first event: %v", e)
	}
	l, _ := dial(t, s, d, dialConnect, nil)
	if e := nextEvent(); e.GetDevice().GetChange() != controlv1.DeviceChange_DEVICE_CHANGE_ONLINE {
		t.Errorf("second event: %v", e)
	}
	done := dispatch(t.Context(), t, s, closing(d.GetDeviceId()+"_tb1-1"))
	c := next(t, l).GetCommand()
	if err := l.send(ack(c.GetCommandId()), outcome(closedOutcome(c.GetCommandId()))); err != nil {
		t.Fatal(err)
	}
	<-done
	for _, want := range []controlv1.State{
		controlv1.State_STATE_ACCEPTED, controlv1.State_STATE_SENT, controlv1.State_STATE_ACKNOWLEDGED, controlv1.State_STATE_SUCCEEDED,
	} {
		if e := nextEvent(); e.GetCommand().GetState() != want || e.GetCommand().GetName() != "closeTabs" {
			t.Errorf("event %v, want %v", e, want)
		}
	}
}
