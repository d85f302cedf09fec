package apptest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
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

// Enrol writes n devices into the store of a server that does not run, by what the server itself would write them
// with. Pairing codes are throttled over all callers, so that ten thousand of them would take a quarter of an hour.
func Enrol(ctx context.Context, cfg store.Config, server string, n int) (_ []throwbar.Identity, err error) {
	s, err := store.Open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	runCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var writer errgroup.Group
	writer.Go(func() error { return s.Run(runCtx) })
	defer func() {
		stop()
		err = errors.Join(err, writer.Wait(), s.Close())
	}()
	keep := storage.New(s, slog.New(slog.DiscardHandler))
	tokens, err := auth.New(ctx, keep, rand.Reader, time.Now, uuid.NewString)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	var mu sync.Mutex
	var all []throwbar.Identity
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(256) // as many as share a transaction
	for i := range n {
		group.Go(func() error {
			identity, err := enrolOne(groupCtx, keep, tokens, "device "+strconv.Itoa(i))
			if err != nil {
				return err
			}
			identity.Server = server
			mu.Lock()
			defer mu.Unlock()
			all = append(all, identity)
			return nil
		})
	}
	err = group.Wait()
	return all, err
}

func enrolOne(ctx context.Context, keep *storage.Storage, tokens *auth.Tokens, name string) (throwbar.Identity, error) {
	id, err := ident.NewDeviceID(rand.Reader)
	if err != nil {
		return throwbar.Identity{}, fmt.Errorf("make device id: %w", err)
	}
	secret, err := tokens.Secret()
	if err != nil {
		return throwbar.Identity{}, fmt.Errorf("make token: %w", err)
	}
	now := time.Now()
	err = keep.Pair(ctx, device.Device{
		ID: id, Workspace: auth.DefaultWorkspace, Name: name, Kind: devicev1.Kind_KIND_SERVER, PairedAt: now, LastSeen: now,
	}, auth.Token{
		ID: uuid.NewString(), Workspace: auth.DefaultWorkspace, Name: name, Scope: optionv1.Scope_SCOPE_DEVICE, Device: id,
		Hash: auth.HashOf(secret), CreatedAt: now,
	}, "")
	if err != nil {
		return throwbar.Identity{}, fmt.Errorf("write device: %w", err)
	}
	return throwbar.Identity{DeviceID: id, Token: secret}, nil
}
