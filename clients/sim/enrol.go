package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	throwbar "throwbar.dev/throwbar/clients/go"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// EnrolWithOwner makes a simulated browser a device, with a pairing code that the client's owner token mints. With a
// folder it keeps the identity there, readable by its owner only, and a simulator of the same name and server is the
// same device the next time.
func EnrolWithOwner(ctx context.Context, client *throwbar.Client, name, folder string) (throwbar.Identity, error) {
	if folder == "" {
		return enrol(ctx, client, name)
	}
	path := IdentityPath(folder, client.Server(), name)
	identity, err := throwbar.LoadIdentity(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return identity, err
	}
	if identity, err = enrol(ctx, client, name); err != nil {
		return throwbar.Identity{}, err
	}
	if err := identity.Save(path); err != nil {
		return throwbar.Identity{}, fmt.Errorf("keep identity: %w", err)
	}
	return identity, nil
}

func enrol(ctx context.Context, client *throwbar.Client, name string) (throwbar.Identity, error) {
	res, err := client.Devices.CreatePairingCode(ctx, &controlv1.CreatePairingCodeRequest{})
	if err != nil {
		return throwbar.Identity{}, fmt.Errorf("make pairing code: %w", err)
	}
	return client.Pair(ctx, throwbar.Pairing{
		Code: res.GetCode(), Name: name, Kind: devicev1.Kind_KIND_BROWSER, Agent: Agent, Platform: "simulated",
	})
}

// IdentityPath is the file of a simulator's identity in a folder.
func IdentityPath(folder, server, name string) string {
	return statePath(folder, server, name, "identity.json")
}

// JournalPath is the file of a simulator's journal in a folder.
func JournalPath(folder, server, name string) string {
	return statePath(folder, server, name, "journal")
}

func statePath(folder, server, name, file string) string {
	sum := sha256.Sum256([]byte(server + "\n" + name))
	readable := slug(name)
	if len(readable) > 40 {
		readable = readable[:40]
	}
	return filepath.Join(folder, readable+"-"+hex.EncodeToString(sum[:6])+"."+file)
}
