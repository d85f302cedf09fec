//go:build sqlite_fts5

package sim_test

import (
	"slices"
	"testing"

	"throwbar.dev/throwbar/app/apptest"
	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// TestEveryoneSeesThatADeviceIsPaused: the device refuses by itself, others go on, and lists and followers of events know.
func TestEveryoneSeesThatADeviceIsPaused(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, transport throwbar.Transport) {
		r := start(t, transport)
		open := func() error {
			_, err := throwbar.Call(t.Context(), r.client, r.identity.DeviceID, &commandv1.OpenTab{Url: "a.example"})
			return err
		}
		shown := func(paused bool) {
			t.Helper()
			apptest.Eventually(t, "the list of devices says it", func() bool {
				res, err := r.client.Devices.ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
				d := res.GetDevices()
				return err == nil && len(d) == 1 && d[0].GetPaused() == paused && d[0].GetFreshness().GetLive() && d[0].GetOnline()
			})
		}
		r.sim.SetPaused(true)
		if err := open(); throwbar.CodeOf(err) != throwbar.CodeRefused {
			t.Errorf("while it is paused: %v", err)
		}
		shown(true)
		r.sim.Browser().Act()
		apptest.Eventually(t, "what it shows is still known", func() bool { return same(r.tabs(t), r.sim.Browser().Look().Tabs) })
		r.sim.SetPaused(false)
		if err := open(); err != nil {
			t.Errorf("after the pause: %v", err)
		}
		shown(false)
		zero := uint64(0)
		stream, err := r.client.Commands.WatchEvents(t.Context(), &controlv1.WatchEventsRequest{Cursor: &zero})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = stream.Close() }()
		var changes []controlv1.DeviceChange
		for !slices.Contains(changes, controlv1.DeviceChange_DEVICE_CHANGE_RESUMED) {
			frame, err := stream.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if d := frame.GetEvent().GetDevice(); d != nil {
				changes = append(changes, d.GetChange())
			}
		}
		if want := []controlv1.DeviceChange{
			controlv1.DeviceChange_DEVICE_CHANGE_PAIRED, controlv1.DeviceChange_DEVICE_CHANGE_ONLINE,
			controlv1.DeviceChange_DEVICE_CHANGE_PAUSED, controlv1.DeviceChange_DEVICE_CHANGE_RESUMED,
		}; !slices.Equal(changes, want) {
			t.Errorf("events %v, want %v", changes, want)
		}
	})
}
