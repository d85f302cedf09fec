//go:build sqlite_fts5

package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/clients/sim"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// These tests run simulators against the real server, on both roads.

// rig is a server with a simulator that is online.
type rig struct {
	server   *apptest.Server
	client   *throwbar.Client
	identity throwbar.Identity
	sim      *sim.Sim
	ended    chan error
	stop     func() // ends the simulator that was started last
}

func start(t *testing.T, transport throwbar.Transport) *rig {
	t.Helper()
	r := &rig{server: apptest.Start(t, app.Config{}), ended: make(chan error, 1)}
	var err error
	if r.client, err = throwbar.New(throwbar.Config{Server: r.server.URL, Token: r.server.Owner}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.client.CloseIdle)
	if r.identity, err = sim.EnrolWithOwner(t.Context(), r.client, "laptop", ""); err != nil {
		t.Fatal(err)
	}
	r.sim, r.ended = r.run(t, transport)
	return r
}

// run starts a simulator with the rig's identity and waits until the server knows its state.
func (r *rig) run(t *testing.T, transport throwbar.Transport) (*sim.Sim, chan error) {
	t.Helper()
	s, err := sim.New(sim.Config{
		Device:   throwbar.DeviceConfig{Identity: r.identity, Transport: transport},
		Contents: sim.Contents{Windows: 2, Tabs: 30, Popups: 1, Seed: 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended, waited := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(waited)
		ended <- s.Run(ctx)
	}()
	r.stop = func() {
		stop()
		<-waited
	}
	t.Cleanup(r.stop)
	apptest.Eventually(t, "the server knows the tabs", func() bool { return r.live(t) && same(r.tabs(t), s.Browser().Look().Tabs) })
	return s, ended
}

func (r *rig) live(t *testing.T) bool {
	t.Helper()
	res, err := r.client.Devices.ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
	return err == nil && len(res.GetDevices()) == 1 && res.GetDevices()[0].GetOnline() && res.GetDevices()[0].GetFreshness().GetLive()
}

func (r *rig) tabs(t *testing.T) []*commandv1.Tab {
	t.Helper()
	res, err := r.client.Browser.ListTabs(t.Context(), &controlv1.ListTabsRequest{PageSize: proto.Uint32(1000)})
	if err != nil {
		t.Fatal(err)
	}
	return res.GetTabs()
}

func same(a, b []*commandv1.Tab) bool {
	byID := func(x, y *commandv1.Tab) int { return strings.Compare(x.GetTabId(), y.GetTabId()) }
	a, b = slices.SortedFunc(slices.Values(a), byID), slices.SortedFunc(slices.Values(b), byID)
	return slices.EqualFunc(a, b, func(x, y *commandv1.Tab) bool { return proto.Equal(x, y) })
}

func both(t *testing.T, test func(*testing.T, throwbar.Transport)) {
	t.Helper()
	for name, transport := range map[string]throwbar.Transport{"bidi": throwbar.Bidi, "watch": throwbar.WatchReport} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, transport)
		})
	}
}

func TestServerSeesWhatACommandDidWithItsOutcome(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, transport throwbar.Transport) {
		r := start(t, transport)
		open, err := throwbar.Call(t.Context(), r.client, r.identity.DeviceID, &commandv1.OpenTab{Url: "zebra.example/crossing"})
		if err != nil {
			t.Fatal(err)
		}
		found, err := r.client.Browser.SearchTabs(t.Context(), &controlv1.SearchTabsRequest{Query: "zebra crossing"})
		if err != nil || found.GetTotal() != 1 || found.GetTabs()[0].GetTabId() != open.GetTabId() {
			t.Fatalf("search = %v, %v", found, err)
		}
		closing, err := throwbar.Wrap(&commandv1.CloseTabs{TabIds: []string{open.GetTabId()}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := r.client.Commands.Dispatch(t.Context(), &controlv1.DispatchRequest{Action: closing})
		if err != nil || res.GetOutcomes()[0].GetResult().GetCloseTabs().GetClosedCount() != 1 || len(res.GetOutcomes()[0].GetSavedIds()) != 1 {
			t.Fatalf("close = %v, %v", res, err)
		}
		undo, err := throwbar.Call(t.Context(), r.client, "", &commandv1.RestoreTabs{SavedIds: res.GetOutcomes()[0].GetSavedIds()})
		if err != nil || undo.GetRestoredCount() != 1 || undo.GetItems()[0].GetNewId() == open.GetTabId() {
			t.Fatalf("restore = %v, %v", undo, err)
		}
		if !same(r.tabs(t), r.sim.Browser().Look().Tabs) {
			t.Error("the server does not know what the browser shows")
		}
		_, err = throwbar.Call(t.Context(), r.client, r.identity.DeviceID, &commandv1.OpenTab{Url: "javascript:alert(1)"})
		if throwbar.CodeOf(err) != throwbar.CodeRefused {
			t.Errorf("refused address: %v", err)
		}
	})
}

// TestServerMirrorsTheBrowser runs random commands and acts of the person: in the end both know the same.
func TestServerMirrorsTheBrowser(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, transport throwbar.Transport) {
		r := start(t, transport)
		random := rand.New(rand.NewPCG(1, 2))
		slept := 0
		for range 60 {
			tabs := r.sim.Browser().Look().Tabs
			ids := []string{tabs[random.IntN(len(tabs))].GetTabId(), tabs[random.IntN(len(tabs))].GetTabId()}
			slept += r.sleep(t, ids[0])
			for _, args := range []proto.Message{
				&commandv1.MoveTabs{TabIds: ids, Index: proto.Uint32(random.Uint32N(20))},
				&commandv1.PinTabs{TabIds: ids[:1], Pinned: proto.Bool(random.IntN(2) == 0)},
				&commandv1.GroupTabs{TabIds: ids[:1], Title: proto.String("Trip")},
				&commandv1.OpenTab{Url: fmt.Sprintf("n%d.example", random.IntN(99))},
				&commandv1.CloseTabs{TabIds: ids[1:]},
			} {
				action, err := throwbar.Wrap(args)
				if err != nil {
					t.Fatal(err)
				}
				req := &controlv1.DispatchRequest{Action: action, DeviceIds: []string{r.identity.DeviceID}}
				res, err := r.client.Commands.Dispatch(t.Context(), req)
				if err != nil {
					t.Fatalf("%v: %v", action, err)
				}
				if ce := res.GetOutcomes()[0].GetError(); ce != nil {
					t.Fatalf("%v: %v", action, ce)
				}
				r.sim.Browser().Act()
			}
		}
		apptest.Eventually(t, "both know the same", func() bool { return same(r.tabs(t), r.sim.Browser().Look().Tabs) })
		if slept < 10 {
			t.Errorf("only %d tabs were put to sleep", slept)
		}
	})
}

// sleep puts a tab to sleep, which gives it another id, and waits until the server follows: a dry run by the id that it had
// finds the tab. It says how many were put to sleep.
func (r *rig) sleep(t *testing.T, id string) int {
	t.Helper()
	now := r.sim.Browser().Sleep(id)
	if now == id {
		return 0
	}
	apptest.Eventually(t, "the server knows the other id", func() bool {
		return slices.ContainsFunc(r.tabs(t), func(tab *commandv1.Tab) bool { return tab.GetTabId() == now })
	})
	action, err := throwbar.Wrap(&commandv1.CloseTabs{TabIds: []string{id, now}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.client.Commands.Dispatch(t.Context(), &controlv1.DispatchRequest{Action: action, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if targets := res.GetOutcomes()[0].GetPlan().GetTargets(); len(targets) != 1 || targets[0].GetId() != id || !targets[0].GetUndoable() {
		t.Errorf("%s is %s now, and this is planned: %v", id, now, targets)
	}
	return 1
}

func TestServerEndsLinksForGood(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, transport throwbar.Transport) {
		r := start(t, transport)
		_, newer := r.run(t, transport)
		if err := <-r.ended; !errors.Is(err, throwbar.ErrReplaced) {
			t.Errorf("the older link ended with %v", err)
		}
		if _, err := r.client.Devices.RevokeDevice(t.Context(), &controlv1.RevokeDeviceRequest{DeviceId: r.identity.DeviceID}); err != nil {
			t.Fatal(err)
		}
		if err := <-newer; !errors.Is(err, throwbar.ErrRevoked) {
			t.Errorf("the link of a revoked device ended with %v", err)
		}
		s, err := sim.New(sim.Config{Device: throwbar.DeviceConfig{Identity: r.identity, Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Run(ctx); throwbar.CodeOf(err) != throwbar.CodeUnauthenticated {
			t.Errorf("a revoked token: %v", err)
		}
	})
}

func TestServerLearnsThatADeviceStops(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, transport throwbar.Transport) {
		r := start(t, transport)
		s, err := sim.New(sim.Config{Device: throwbar.DeviceConfig{Identity: r.identity, Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		<-r.ended // replaced
		apptest.Eventually(t, "the new one is there", func() bool { return r.live(t) })
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
		_, err = throwbar.Call(t.Context(), r.client, r.identity.DeviceID, &commandv1.GetActiveTab{})
		if throwbar.CodeOf(err) != throwbar.CodeOffline { // at once, not after the lease
			t.Errorf("a command after the goodbye: %v", err)
		}
	})
}
