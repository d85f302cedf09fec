package apptest

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	throwbar "throwbar.dev/throwbar/clients/go"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/ident"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/device"
	"throwbar.dev/throwbar/server/storage"
	"throwbar.dev/throwbar/store"
)

// Seed writes paired devices into a folder that no server uses yet. Pairing them one by one by code is throttled, as
// it should be. The identities still need the server's address.
func Seed(t testing.TB, dir string, n int) []throwbar.Identity {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	st := storage.New(s, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var writer errgroup.Group
	writer.Go(func() error { return s.Run(ctx) })
	identities := make([]throwbar.Identity, n)
	var pairs errgroup.Group
	pairs.SetLimit(256)
	for i := range n {
		pairs.Go(func() (err error) {
			identities[i], err = seed(t.Context(), st, fmt.Sprintf("device %d", i))
			return err
		})
	}
	err = pairs.Wait()
	stop()
	if werr := writer.Wait(); err != nil || werr != nil {
		t.Fatal(err, werr)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return identities
}

func seed(ctx context.Context, st *storage.Storage, name string) (throwbar.Identity, error) {
	id, err := ident.NewDeviceID(rand.Reader)
	if err != nil {
		return throwbar.Identity{}, err
	}
	secret := "thb_" + rand.Text()
	now := time.Now()
	d := device.Device{
		ID: id, Workspace: auth.DefaultWorkspace, Name: name, Kind: devicev1.Kind_KIND_SERVER, PairedAt: now, LastSeen: now,
	}
	return throwbar.Identity{DeviceID: id, Token: secret}, st.Pair(ctx, d, auth.Token{
		ID: uuid.NewString(), Workspace: d.Workspace, Name: name, Scope: optionv1.Scope_SCOPE_DEVICE, Device: id,
		Hash: auth.HashOf(secret), CreatedAt: now,
	})
}
