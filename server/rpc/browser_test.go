package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/browser"
	"throwbar.dev/throwbar/server/device"
)

type noDevices struct{ device.Store }

func (noDevices) Devices(context.Context) ([]device.Device, error) { return nil, nil }

type noCopies struct{ browser.Store }

func (noCopies) Copies(context.Context, string) ([]browser.Copy, error) { return nil, nil }

// many makes a handler that knows so many devices of ten tabs each; every tenth of them is not live.
func many(tb testing.TB, devices int) (*browserHandler, context.Context) {
	tb.Helper()
	log := slog.New(slog.DiscardHandler)
	directory, err := device.NewDirectory(tb.Context(), noDevices{}, time.Now, log)
	if err != nil {
		tb.Fatal(err)
	}
	state, err := browser.New(tb.Context(), noCopies{}, time.Now, log)
	if err != nil {
		tb.Fatal(err)
	}
	for n := range devices {
		id := fmt.Sprintf("d%06d", n)
		directory.Add(device.Device{ID: id, Workspace: "w", Name: fmt.Sprintf("device %06d", n)})
		state.Attach(id, "b", 1)
		snapshot := &devicev1.Snapshot{Last: true, Windows: []*commandv1.Window{{WindowId: id + "_wb-1"}}}
		for t := range 10 {
			snapshot.Tabs = append(snapshot.Tabs, &commandv1.Tab{
				TabId: fmt.Sprintf("%s_tb-%d", id, t), Url: fmt.Sprintf("https://host%d.example/", n), Title: fmt.Sprintf("tab no%d.", t),
			})
		}
		if _, err := state.Snapshot(id, 1, snapshot); err != nil {
			tb.Fatal(err)
		}
		if n%10 == 0 {
			state.Detach(id, 1)
		}
	}
	h := &browserHandler{cfg: Config{Directory: directory, Browser: state}}
	return h, auth.With(tb.Context(), auth.Token{Workspace: "w"})
}

// TestAnswersSayHowFreshTheirRowsAre also where the devices are too many to name them all.
func TestAnswersSayHowFreshTheirRowsAre(t *testing.T) {
	t.Parallel()
	for _, devices := range []int{1, maxStates, maxStates + 1, 2500} {
		h, ctx := many(t, devices)
		res, err := h.SearchTabs(ctx, &controlv1.SearchTabsRequest{Query: "tab no7.", PageSize: proto.Uint32(50)})
		if err != nil || int(res.GetTotal()) != devices {
			t.Fatalf("%d devices: %d found, %v", devices, res.GetTotal(), err)
		}
		live, order := map[string]bool{}, []string{}
		for _, d := range res.GetDevices() {
			live[d.GetDeviceId()] = d.GetFreshness().GetLive()
			order = append(order, d.GetName())
		}
		for _, tab := range res.GetTabs() {
			id, _, _ := strings.Cut(tab.GetTabId(), "_")
			if got, named := live[id]; !named || got == strings.HasSuffix(id, "0") {
				t.Errorf("%d devices: the answer does not say how fresh %s is", devices, tab.GetTabId())
			}
		}
		if len(live) > maxStates || devices <= maxStates && len(live) != devices || !slices.IsSorted(order) {
			t.Errorf("%d devices: the answer names %d", devices, len(live))
		}
		none, err := h.SearchTabs(ctx, &controlv1.SearchTabsRequest{Query: "nowhere"})
		if err != nil || len(none.GetDevices()) == 0 || none.GetDevices()[0].GetFreshness().GetLive() {
			t.Errorf("%d devices: an empty answer says %v, %v", devices, none, err)
		}
		windows, err := h.ListWindows(ctx, &controlv1.ListWindowsRequest{})
		if err != nil || len(windows.GetWindows()) != min(devices, 100) || len(windows.GetDevices()) < min(devices, 100) {
			t.Errorf("%d devices: %d windows, %v", devices, len(windows.GetWindows()), err)
		}
	}
}

// BenchmarkSearchTabs is what the method costs around the search itself: 10,000 devices of ten tabs, which is not much
// to search, with the answer encoded.
func BenchmarkSearchTabs(b *testing.B) {
	h, ctx := many(b, 10_000)
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		res, err := h.SearchTabs(ctx, &controlv1.SearchTabsRequest{Query: "host77 tab"})
		if err != nil {
			b.Fatal(err)
		}
		body, err := proto.Marshal(res)
		if err != nil {
			b.Fatal(err)
		}
		size = len(body)
	}
	b.ReportMetric(float64(size), "answer-B")
}
