package device

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/ident"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/fault"
)

// PairStore writes down what becomes of pairing codes. By is the token that made the code.
type PairStore interface {
	CodeMade(ctx context.Context, workspace, by string, at time.Time) error
	// Pair writes a new device and its token in one transaction.
	Pair(ctx context.Context, d Device, token auth.Token, by string) error
}

// Meter counts attempts to pair. Its methods must not wait.
type Meter interface {
	// PairingTried is one attempt: paired, wrong or throttled.
	PairingTried(result string)
}

// Enroller turns pairing codes into devices.
type Enroller struct {
	Pairing   *Pairing
	Directory *Directory
	Tokens    *auth.Tokens
	Store     PairStore
	NewID     func() string
	Random    io.Reader
	Now       func() time.Time
	Meter     Meter // may be nil
	Log       *slog.Logger
}

// Enrolment is what a new device gets.
type Enrolment struct {
	Device    Device
	Secret    string
	CheckWord string
}

// Code makes a pairing code for a workspace, and writes down that the token's bearer has made it.
func (e *Enroller) Code(ctx context.Context, caller auth.Token) (Code, error) {
	if err := e.Store.CodeMade(ctx, caller.Workspace, caller.ID, e.Now()); err != nil {
		return Code{}, fmt.Errorf("write down that a code is made: %w", err)
	}
	return e.Pairing.Make(caller.Workspace, caller.ID)
}

// redeem uses a code up, and counts and logs what was tried. Wrong guesses are throttled, so that they cannot flood the
// log; what the throttle refuses is only counted.
func (e *Enroller) redeem(ctx context.Context, guess, peer string) (Code, error) {
	code, err := e.Pairing.Redeem(guess)
	result := "paired"
	switch {
	case fault.CodeOf(err) == fault.Busy:
		result = "throttled"
	case err != nil:
		result = "wrong"
		e.Log.WarnContext(ctx, "wrong pairing code", slog.String("peer", peer))
	}
	if e.Meter != nil {
		e.Meter.PairingTried(result)
	}
	return code, err
}

// Pair redeems a code. The origin is that of the extension which asks, empty for others; the peer is the address that
// the connection comes from, for the log.
func (e *Enroller) Pair(ctx context.Context, req *devicev1.PairRequest, origin, peer string) (Enrolment, error) {
	if err := e.Directory.Room(); err != nil {
		return Enrolment{}, err
	}
	name, err := deviceName(req.GetName())
	if err != nil { // before the code is used up
		return Enrolment{}, err
	}
	code, err := e.redeem(ctx, req.GetCode(), peer)
	if err != nil {
		return Enrolment{}, err
	}
	id, err := ident.NewDeviceID(e.Random)
	if err != nil {
		return Enrolment{}, err
	}
	secret, err := e.Tokens.Secret()
	if err != nil {
		return Enrolment{}, err
	}
	now := e.Now()
	dev := Device{
		ID: id, Workspace: code.workspace, Name: name, Kind: req.GetKind(), Agent: req.GetAgent(),
		Platform: req.GetPlatform(), Origin: origin, PairedAt: now, LastSeen: now,
	}
	token := auth.Token{
		ID: e.NewID(), Workspace: code.workspace, Name: dev.Name, Scope: optionv1.Scope_SCOPE_DEVICE, Device: id,
		Hash: auth.HashOf(secret), CreatedAt: now,
	}
	if err := e.Store.Pair(ctx, dev, token, code.maker); err != nil {
		return Enrolment{}, fmt.Errorf("store new device: %w", err)
	}
	e.Directory.Add(dev)
	e.Tokens.Know(token)
	return Enrolment{Device: dev, Secret: secret, CheckWord: code.CheckWord}, nil
}

// deviceName is a name without what surrounds it. A name of nothing but blanks is refused.
func deviceName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return "", fault.New(fault.Invalid, "a device needs a name that is more than blanks")
	}
	return name, nil
}
