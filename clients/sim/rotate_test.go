//go:build sqlite_fts5

package sim_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"throwbar.dev/throwbar/app/apptest"
	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/clients/sim"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// A device takes another token against the real server: it is in its file, the file's is the one that works, and the old
// one is refused. A program that has only the old one is out.
func TestADeviceTakesAnotherToken(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, transport throwbar.Transport) {
		r := start(t, transport)
		path := filepath.Join(t.TempDir(), "identity.json")
		old := r.identity
		kept := func() throwbar.Identity {
			i, err := throwbar.LoadIdentity(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			return i
		}
		s, err := sim.New(sim.Config{
			Device: throwbar.DeviceConfig{
				Identity: old, Transport: transport, Keep: func(i throwbar.Identity) error { return i.Save(path) },
			},
			Contents: sim.Contents{Windows: 1, Tabs: 3, Seed: 4},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Errorf("the device ended with %v", err)
			}
		})
		if err := <-r.ended; !errors.Is(err, throwbar.ErrReplaced) { // the rig's own
			t.Fatal(err)
		}
		if _, err := r.client.Devices.RotateDevice(t.Context(), &controlv1.RotateDeviceRequest{DeviceId: old.DeviceID}); err != nil {
			t.Fatal(err)
		}
		apptest.Eventually(t, "the new token is in use", func() bool {
			i := kept()
			return i.Token != "" && i.Token != old.Token && i.Previous == "" && r.live(t)
		})
		if _, err := throwbar.Call(t.Context(), r.client, old.DeviceID, &commandv1.OpenTab{Url: "a.example"}); err != nil {
			t.Errorf("a command after the rotation: %v", err)
		}
		thief, err := sim.New(sim.Config{Device: throwbar.DeviceConfig{Identity: old, Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		if err := thief.Run(t.Context()); throwbar.CodeOf(err) != throwbar.CodeUnauthenticated {
			t.Errorf("with the old token: %v", err)
		}
		if !r.live(t) {
			t.Error("the old token has displaced the device")
		}
	})
}
