package storage_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/google/uuid"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/device"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/storage"
)

func tokens(t *testing.T, s *storage.Storage, now func() time.Time) *auth.Tokens {
	t.Helper()
	made, err := auth.New(t.Context(), s, rand.Reader, now, uuid.NewString)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// A device's tokens are the same to a server that starts again, at every step of a rotation.
func TestARotationOutlivesTheServer(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		ctx := t.Context()
		d := device.Device{ID: "k3v9x2mqta", Workspace: "w", Name: "laptop", Kind: devicev1.Kind_KIND_BROWSER, PairedAt: at(1)}
		first := auth.Token{
			ID: "t1", Workspace: "w", Name: "laptop", Scope: optionv1.Scope_SCOPE_DEVICE, Device: d.ID,
			Hash: auth.HashOf("first"), CreatedAt: at(1),
		}
		if err := s.Pair(ctx, d, first, "o"); err != nil {
			t.Fatal(err)
		}
		now := func() time.Time { return at(10) }
		known := tokens(t, s, now)
		if err := known.AskRotation(ctx, "other", d.ID, "o"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("asked from another workspace: %v", err)
		}
		if err := known.AskRotation(ctx, "w", d.ID, "o"); err != nil {
			t.Fatal(err)
		}
		known = tokens(t, s, now)
		if !known.ShouldRotate(first) {
			t.Error("what was asked for is forgotten")
		}
		lost, err := known.Rotate(ctx, first)
		if err != nil {
			t.Fatal(err)
		}
		second, err := known.Rotate(ctx, first)
		if err != nil {
			t.Fatal(err)
		}
		known = tokens(t, s, now)
		valid(t, known, map[string]bool{"first": true, lost: false, second: true})
		token, err := known.Authenticate(second)
		if err != nil {
			t.Fatal(err)
		}
		if err := known.Use(ctx, token); err != nil {
			t.Fatal(err)
		}
		valid(t, known, map[string]bool{"first": false, lost: false, second: true})
		known = tokens(t, s, now)
		valid(t, known, map[string]bool{"first": false, lost: false, second: true})
		if known.ShouldRotate(token) {
			t.Error("it is asked for again")
		}
		events, err := s.After(ctx, "w", d.ID, 0, 100)
		if err != nil || events[len(events)-1].GetDevice().GetChange() != controlv1.DeviceChange_DEVICE_CHANGE_ROTATED {
			t.Errorf("events: %v, %v", events, err)
		}
		if err := s.Revoke(ctx, d); err != nil {
			t.Fatal(err)
		}
		valid(t, tokens(t, s, now), map[string]bool{"first": false, second: false})
	})
}

func valid(t *testing.T, known *auth.Tokens, want map[string]bool) {
	t.Helper()
	for secret, ok := range want {
		if _, err := known.Authenticate(secret); (err == nil) != ok {
			t.Errorf("%q: %v, want valid %v", secret, err, ok)
		}
	}
}

func TestTokensThatExpireAreReadBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		clock := at(0)
		now := func() time.Time { return clock }
		token, secret, err := tokens(t, s, now).Issue(t.Context(), "w", "hooks", optionv1.Scope_SCOPE_HOOK, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		known := tokens(t, s, now)
		if got, err := known.Authenticate(secret); err != nil || got.Scope != optionv1.Scope_SCOPE_HOOK || !got.ExpiresAt.Equal(token.ExpiresAt) {
			t.Errorf("%+v, %v", got, err)
		}
		clock = at(60_000)
		if _, err := known.Authenticate(secret); fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("when it has expired: %v", err)
		}
		if err := known.Check(token); fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("on a stream: %v", err)
		}
	})
}

func TestWorkspacesHaveOneNameEach(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		ctx := t.Context()
		known := tokens(t, s, time.Now)
		all := auth.Workspaces{Store: s, Tokens: known}
		for range 2 { // the second start finds it
			if err := all.Begin(ctx); err != nil {
				t.Fatal(err)
			}
		}
		owner := auth.Token{ID: "o", Workspace: auth.DefaultWorkspace, Scope: optionv1.Scope_SCOPE_OWNER}
		ctx = auth.With(ctx, owner)
		made, token, secret, err := all.Create(ctx, owner, "home")
		if err != nil || made.Name != "home" || token.Workspace != "home" || token.Scope != optionv1.Scope_SCOPE_OWNER {
			t.Fatalf("%+v, %+v, %v", made, token, err)
		}
		if _, _, _, err := all.Create(ctx, owner, "home"); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("the same name again: %v", err)
		}
		if got, err := tokens(t, s, time.Now).Authenticate(secret); err != nil || got.Workspace != "home" {
			t.Errorf("the owner's token: %+v, %v", got, err)
		}
		if _, err := all.List(ctx, token); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("listed by another workspace's owner: %v", err)
		}
		list, err := all.List(ctx, owner)
		if err != nil || len(list) != 2 || list[0].Name != "default" || list[1].Name != "home" {
			t.Errorf("%+v, %v", list, err)
		}
	})
}
