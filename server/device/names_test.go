package device_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"throwbar.dev/throwbar/server/device"
)

// kept is a store that takes everything.
type kept struct{ device.Store }

func (kept) Devices(context.Context) ([]device.Device, error) { return nil, nil }
func (kept) Rename(context.Context, device.Device) error      { return nil }
func (kept) Revoke(context.Context, device.Device) error      { return nil }

func TestNamesAreInOrderAfterEveryChange(t *testing.T) {
	t.Parallel()
	d, err := device.NewDirectory(t.Context(), kept{}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	same := func(want ...string) {
		t.Helper()
		var got []string
		for i, n := range d.Names("w") {
			got = append(got, n.ID)
			if dev := d.List("w")[i]; dev.ID != n.ID || dev.Name != n.Name {
				t.Errorf("%v is not %s of the list", n, dev.ID)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("names of %v, want %v", got, want)
		}
	}
	same()
	d.Add(device.Device{ID: "a", Workspace: "w", Name: "zoo"})
	same("a")
	d.Add(device.Device{ID: "b", Workspace: "w", Name: "home"})
	d.Add(device.Device{ID: "c", Workspace: "other", Name: "home"})
	same("b", "a")
	if _, err := d.Rename(t.Context(), "w", "a", "attic"); err != nil {
		t.Fatal(err)
	}
	same("a", "b")
	if err := d.Revoke(t.Context(), "w", "a"); err != nil {
		t.Fatal(err)
	}
	same("b")
}
