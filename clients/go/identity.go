package throwbar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// Identity makes a program a device. Its token is a secret, good for this device's link only.
type Identity struct {
	Server    string `json:"server"`
	DeviceID  string `json:"device_id"`
	Token     string `json:"token"`
	Previous  string `json:"previous_token,omitempty"` // good until Token is first used; empty once the server has taken Token
	ServerKey string `json:"server_key,omitempty"`     // fingerprint of the server's key; without it the system's rules hold
	Plaintext bool   `json:"plaintext,omitempty"`      // the token may go to another machine over http
	CheckWord string `json:"check_word,omitempty"`     // shown once on both sides, for the person to compare
}

// String is the identity without its token.
func (i Identity) String() string { return "device " + i.DeviceID + " of " + i.Server }

// GoString is the identity without its token.
func (i Identity) GoString() string { return i.String() }

// LogValue is the identity without its token.
func (i Identity) LogValue() slog.Value { return slog.StringValue(i.String()) }

// Pairing is what a device says of itself when it pairs.
type Pairing struct {
	Code       string // as the person was shown it
	Name       string
	Kind       devicev1.Kind
	Agent      string     // browser or program and its version
	Platform   string     // operating system
	ServerKey  string     // fingerprint of the server's key, as in Config
	Plaintext  bool       // as in Config
	HTTPClient HTTPClient // one of its own if left out
}

// Pair exchanges a pairing code for the identity of a device. The code is used up, also when the caller loses the
// identity.
func Pair(ctx context.Context, server string, p Pairing) (Identity, error) {
	address, err := serverURL(server)
	if err != nil {
		return Identity{}, err
	}
	way, err := newWire(address, p.ServerKey, p.Plaintext, p.HTTPClient)
	if err != nil {
		return Identity{}, err
	}
	client := p.HTTPClient
	if client == nil {
		client = newCallerHTTP(way)
		defer closeIdle(client)
	}
	identity, err := redeem(ctx, client, address, p)
	if err != nil {
		return Identity{}, err
	}
	identity.ServerKey, identity.Plaintext = p.ServerKey, p.Plaintext
	return identity, nil
}

// redeem is the call of Pair.
func redeem(ctx context.Context, client HTTPClient, address string, p Pairing) (Identity, error) {
	res, err := devicev1connect.NewDeviceServiceClient(newRPC(client, address, "")).Pair(ctx, &devicev1.PairRequest{
		Code: p.Code, Name: p.Name, Kind: p.Kind, Agent: p.Agent, Platform: p.Platform,
	})
	if err != nil {
		return Identity{}, fmt.Errorf("pair: %w", err)
	}
	return Identity{
		Server: address, DeviceID: res.GetDeviceId(), Token: res.GetToken(), CheckWord: res.GetCheckWord(),
	}, nil
}

// LoadIdentity reads an identity that Save has written. It is fs.ErrNotExist where there is none.
func LoadIdentity(path string) (Identity, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Identity{}, fmt.Errorf("read identity: %w", err)
	}
	var i Identity
	if err := json.Unmarshal(raw, &i); err != nil {
		return Identity{}, fmt.Errorf("read identity %s: %w", path, err)
	}
	if i.Server == "" || i.DeviceID == "" || i.Token == "" {
		return Identity{}, fmt.Errorf("read identity %s: server, device_id and token have to be there", path)
	}
	return i, nil
}

// Save writes the identity to a file that only its owner can read, whole or not at all.
func (i Identity) Save(path string) error {
	raw, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make folder for identity: %w", err)
	}
	return replaceFile(path, append(raw, '\n'))
}

// replaceFile writes a file of mode 0600 beside the old one and then puts it in its place.
func replaceFile(path string, raw []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("put %s in its place: %w", path, err)
	}
	return nil
}
