package device_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/device"
	"throwbar.dev/throwbar/server/fault"
)

func TestACodeLivesFiveMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := device.NewPairing(rand.Reader, time.Now)
		code, err := p.Make("w", "t")
		if err != nil {
			t.Fatal(err)
		}
		// Fifty random bits, in a form that can be read out.
		if plain := strings.ReplaceAll(code.Code, "-", ""); len(plain) != 10 || strings.ToUpper(plain) != plain {
			t.Errorf("code %q", code.Code)
		}
		<-time.After(device.CodeLife - time.Second)
		typed := " " + strings.ToLower(strings.ReplaceAll(code.Code, "-", " "))
		if got, err := p.Redeem(typed); err != nil || got.CheckWord != code.CheckWord {
			t.Errorf("redeem %q: %+v, %v", typed, got, err)
		}
		late, err := p.Make("w", "t")
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(device.CodeLife)
		if _, err := p.Redeem(late.Code); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("after five minutes: %v", err)
		}
	})
}

func TestGuessesAreThrottledAndBurnTheCode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := device.NewPairing(rand.Reader, time.Now)
		code, err := p.Make("w", "t")
		if err != nil {
			t.Fatal(err)
		}
		counts := map[fault.Code]int{}
		var mu sync.Mutex
		var guessers sync.WaitGroup
		for range 10_000 {
			guessers.Go(func() {
				_, err := p.Redeem("AAAAA-AAAAA")
				mu.Lock()
				defer mu.Unlock()
				counts[fault.CodeOf(err)]++
			})
		}
		guessers.Wait()
		if counts[fault.Busy] < 9_900 || counts[fault.Busy]+counts[fault.Forbidden] != 10_000 {
			t.Errorf("answers: %v", counts)
		}
		<-time.After(10 * time.Second)
		if _, err := p.Redeem(code.Code); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("the code after the attack: %v", err)
		}
		fresh, err := p.Make("w", "t")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Redeem(fresh.Code); err != nil {
			t.Errorf("a new code after the attack: %v", err)
		}
	})
}

func TestCodesThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	p := device.NewPairing(rand.Reader, time.Now)
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		_, err = p.Make("w", "t")
	}
	if fault.CodeOf(err) != fault.Busy || n != 17 {
		t.Errorf("after %d codes: %v", n, err)
	}
}

// card is a store of devices in memory.
type card struct {
	away bool

	mu      sync.Mutex
	changes []controlv1.DeviceChange
}

func (c *card) Devices(context.Context) ([]device.Device, error) {
	return []device.Device{{ID: "lap", Workspace: "w", Name: "laptop", Epoch: 4, Away: c.away}}, nil
}

func (c *card) Begin(context.Context, uint64) error { return nil }

func (c *card) Seen(_ device.Device, change controlv1.DeviceChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes = append(c.changes, change)
}
func (c *card) Rename(context.Context, device.Device) error { return nil }
func (c *card) Revoke(context.Context, device.Device) error { return nil }

func TestTheDirectoryFollowsLinks(t *testing.T) {
	t.Parallel()
	store := &card{}
	d, err := device.NewDirectory(t.Context(), store, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	name, first, err := d.Online(t.Context(), "lap", &devicev1.Hello{BootTag: "b1", Actions: []string{"openTab"}})
	if err != nil || name != "laptop" || first != 5 {
		t.Fatalf("online: %q, %d, %v", name, first, err)
	}
	_, second, err := d.Online(t.Context(), "lap", &devicev1.Hello{BootTag: "b2"})
	if err != nil || second != 6 {
		t.Fatalf("online again: %d, %v", second, err)
	}
	d.Offline("lap", first) // the end of the older link
	if dev, _ := d.Get("w", "lap"); !dev.Online || dev.Boot != "b2" {
		t.Errorf("after the end of the older link: %+v", dev)
	}
	d.Offline("lap", second)
	if dev, _ := d.Get("w", "lap"); dev.Online {
		t.Error("online after the end of the last link")
	}
	if _, err := d.Get("other", "lap"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("another workspace's device: %v", err)
	}
	if dev, err := d.Rename(t.Context(), "w", "lap", "work laptop"); err != nil || dev.Name != "work laptop" {
		t.Errorf("rename: %+v, %v", dev, err)
	}
	if err := d.Revoke(t.Context(), "w", "lap"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Online(t.Context(), "lap", &devicev1.Hello{}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a revoked device: %v", err)
	}
	want := []controlv1.DeviceChange{controlv1.DeviceChange_DEVICE_CHANGE_ONLINE, controlv1.DeviceChange_DEVICE_CHANGE_UNSPECIFIED, controlv1.DeviceChange_DEVICE_CHANGE_OFFLINE}
	if len(store.changes) != 3 || store.changes[0] != want[0] || store.changes[1] != want[1] || store.changes[2] != want[2] {
		t.Errorf("changes: %v", store.changes)
	}
}

// TestAPauseIsKnownWhileTheDeviceIsHere: it comes with the Hello or later, is told once, and goes with the link.
func TestAPauseIsKnownWhileTheDeviceIsHere(t *testing.T) {
	t.Parallel()
	const (
		online, offline = controlv1.DeviceChange_DEVICE_CHANGE_ONLINE, controlv1.DeviceChange_DEVICE_CHANGE_OFFLINE
		paused, resumed = controlv1.DeviceChange_DEVICE_CHANGE_PAUSED, controlv1.DeviceChange_DEVICE_CHANGE_RESUMED
		nothing         = controlv1.DeviceChange_DEVICE_CHANGE_UNSPECIFIED
	)
	store := &card{}
	d, err := device.NewDirectory(t.Context(), store, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	is := func(what string, want bool) {
		t.Helper()
		if dev, err := d.Get("w", "lap"); err != nil || dev.Paused != want {
			t.Errorf("%s: %+v, %v", what, dev, err)
		}
	}
	link := func(paused bool) uint64 {
		t.Helper()
		_, epoch, err := d.Online(t.Context(), "lap", &devicev1.Hello{Paused: paused})
		if err != nil {
			t.Fatal(err)
		}
		return epoch
	}
	on, off := &devicev1.Condition{Paused: true}, &devicev1.Condition{}
	first := link(false)
	d.Condition("lap", first, on)
	d.Condition("lap", first, on) // said again
	is("paused", true)
	d.Condition("none", first, off)
	second := link(true)           // a link in the place of the first one says the same
	d.Condition("lap", first, off) // and the first one's word does not count any more
	is("with another link", true)
	d.Condition("lap", second, off)
	is("resumed", false)
	d.Condition("lap", second, on)
	third := link(false) // resumed between two links
	is("resumed meanwhile", false)
	d.Condition("lap", third, on)
	d.Offline("lap", third)
	is("offline", false)
	d.Condition("lap", third, on)
	is("a word that comes late", false)
	d.Away("lap", link(true))
	is("away", false)
	link(true) // it was not gone: that it is paused is told all the same
	is("back", true)
	want := []controlv1.DeviceChange{
		online, paused, nothing, resumed, paused, resumed, paused, offline, online, paused, nothing, paused,
	}
	if !slices.Equal(store.changes, want) {
		t.Errorf("changes %v, want %v", store.changes, want)
	}
}

// R13: what was online when the server stopped is away until the grace is over. It comes back without an event, or is
// called offline once.
func TestADeviceIsAwayForAGrace(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]bool{"comes back": true, "stays away": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &card{away: true}
				d, err := device.NewDirectory(t.Context(), store, time.Now, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				if err := d.Begin(t.Context()); err != nil {
					t.Fatal(err)
				}
				ran := make(chan error)
				go func() { ran <- d.Run(t.Context(), 45*time.Second) }()
				if found, err := d.Find("w", "lap"); err != nil || !found.Away {
					t.Errorf("at first: %+v, %v", found, err)
				}
				if dev, _ := d.Get("w", "lap"); dev.Online {
					t.Error("what is away is shown as online")
				}
				<-time.After(44 * time.Second)
				if back {
					if _, epoch, err := d.Online(t.Context(), "lap", &devicev1.Hello{}); err != nil || epoch < 1<<20 {
						t.Errorf("epoch %d, %v", epoch, err)
					}
				}
				if err := <-ran; err != nil {
					t.Fatal(err)
				}
				want := controlv1.DeviceChange_DEVICE_CHANGE_OFFLINE
				if back {
					want = controlv1.DeviceChange_DEVICE_CHANGE_UNSPECIFIED
				}
				if len(store.changes) != 1 || store.changes[0] != want {
					t.Errorf("changes %v, want %v", store.changes, want)
				}
				if found, _ := d.Find("w", "lap"); found.Away {
					t.Error("it is away for ever")
				}
			})
		})
	}
}

func TestACodeWorksOnce(t *testing.T) {
	t.Parallel()
	p := device.NewPairing(rand.Reader, time.Now)
	code, err := p.Make("w", "t")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Redeem(code.Code); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Redeem(code.Code); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("the second time: %v", err)
	}
}
