package throwbar

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// vault keeps identities as a file would.
type vault struct {
	mu   sync.Mutex
	kept []Identity
	fail error
}

func (v *vault) keep(i Identity) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fail != nil {
		return v.fail
	}
	v.kept = append(v.kept, i)
	return nil
}

func (v *vault) last() Identity {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.kept) == 0 {
		return Identity{}
	}
	return v.kept[len(v.kept)-1]
}

func (l *memLink) rotate() {
	l.down <- &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Rotate{Rotate: &devicev1.RotateRequest{}}}
}

// rotating is a rig whose server gives out a token.
func rotating(t *testing.T, v *vault, give func() (string, error)) *rig {
	t.Helper()
	r := start(t, func(c *DeviceConfig) { c.Keep = v.keep })
	r.device.getToken = func(context.Context) (string, error) { return give() }
	return r
}

func TestANewTokenIsKeptBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &vault{}
		r := rotating(t, v, func() (string, error) { return "second", nil })
		l := r.welcomed()
		if got := v.last(); got.Token != "" {
			t.Errorf("kept %+v before anything was asked", got)
		}
		l.rotate()
		again := r.link() // at once, and with the new token
		if token := r.device.keeper.token(); token != "second" {
			t.Errorf("dialled with %q", token)
		}
		if got := v.last(); got.Token != "second" || got.Previous != "secret" {
			t.Errorf("kept %q before %q, want both tokens", got.Token, got.Previous)
		}
		if waited := again.at.Sub(l.at); waited > time.Second {
			t.Errorf("away for %v", waited)
		}
		again.welcome()
		synctest.Wait()
		if got := v.last(); got.Token != "second" || got.Previous != "" || got.DeviceID != "d" {
			t.Errorf("kept after the proof: %q, %q", got.Token, got.Previous)
		}
		r.end()
	})
}

// The token that the server did not take in the end is given up for the one before.
func TestTheOldTokenIsFallenBackTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &vault{}
		var d *Device
		var used []string
		server := newMemServer()
		server.refuse = func(*devicev1.Hello) error {
			used = append(used, d.keeper.token())
			if d.keeper.token() == "lost" {
				return &Error{Code: CodeUnauthenticated, remote: true}
			}
			return nil
		}
		d, err := NewDevice(DeviceConfig{
			Identity: Identity{Server: "http://h", DeviceID: "d", Token: "lost", Previous: "good"}, Handler: &testHandler{},
			Catalogue: catalogue(), HTTPClient: noHTTP{}, Keep: v.keep,
		})
		if err != nil {
			t.Fatal(err)
		}
		d.dialer = server
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		(<-server.links).welcome()
		synctest.Wait()
		if got := v.last(); got.Token != "good" || got.Previous != "" || len(used) != 2 {
			t.Errorf("kept %q, %q after dials with %v", got.Token, got.Previous, used)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestATokenThatCannotBeKeptIsNotUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &vault{fail: errors.New("the disk is full")}
		var gave atomic.Int32
		r := rotating(t, v, func() (string, error) { gave.Add(1); return "second", nil })
		l := r.welcomed()
		l.rotate()
		for range 4 { // heartbeats, for the link to stand
			time.Sleep(10 * time.Second)
			l.heartbeat(1)
			synctest.Wait()
		}
		if token := r.device.keeper.token(); token != "secret" || gave.Load() < 2 || len(r.server.links) != 0 {
			t.Errorf("token %q after %d tries, %d links more", token, gave.Load(), len(r.server.links))
		}
		v.mu.Lock()
		v.fail = nil
		v.mu.Unlock()
		for len(r.server.links) == 0 {
			time.Sleep(10 * time.Second)
			l.heartbeat(1)
			synctest.Wait()
		}
		if got := v.last(); got.Token != "second" {
			t.Errorf("kept %q when it could be", got.Token)
		}
		r.end()
	})
}

func TestADeviceThatKeepsNothingDoesNotRotate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.device.getToken = func(context.Context) (string, error) { t.Error("it rotated"); return "", errStopped }
		r.welcomed().rotate()
		synctest.Wait()
		r.end()
	})
}

func TestDialsRiseAcrossRestartsAndClocks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var last uint64
	for _, shift := range []time.Duration{0, -365 * 24 * time.Hour, time.Hour, 0} {
		j, err := OpenJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		j.now = func() time.Time { return now.Add(shift) }
		for range 3 {
			n, err := j.Dial()
			if err != nil || n <= last {
				t.Errorf("dial %d after %d with the clock off by %v: %v", n, last, shift, err)
			}
			last = n
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheHelloHasTheNumberOfTheDial(t *testing.T) {
	t.Parallel()
	journal, err := OpenJournal(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(c *DeviceConfig) { c.Journal = journal })
		first := r.welcomed()
		close(first.down)
		if second := r.welcomed(); second.hello.GetDial() <= first.hello.GetDial() || first.hello.GetDial() == 0 {
			t.Errorf("dials %d, %d", first.hello.GetDial(), second.hello.GetDial())
		}
		r.end()
	})
}
