package device

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/ident"
	"throwbar.dev/throwbar/server/auth"
)

// PairStore writes a new device and its token in one transaction.
type PairStore interface {
	Pair(ctx context.Context, d Device, token auth.Token) error
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
}

// Enrolment is what a new device gets.
type Enrolment struct {
	Device    Device
	Secret    string
	CheckWord string
}

// Pair redeems a code. The origin is that of the extension which asks; empty for others.
func (e *Enroller) Pair(ctx context.Context, req *devicev1.PairRequest, origin string) (Enrolment, error) {
	if err := e.Directory.Room(); err != nil {
		return Enrolment{}, err
	}
	workspace, word, err := e.Pairing.Redeem(req.GetCode())
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
		ID: id, Workspace: workspace, Name: strings.TrimSpace(req.GetName()), Kind: req.GetKind(), Agent: req.GetAgent(),
		Platform: req.GetPlatform(), Origin: origin, PairedAt: now, LastSeen: now,
	}
	token := auth.Token{
		ID: e.NewID(), Workspace: workspace, Name: dev.Name, Scope: optionv1.Scope_SCOPE_DEVICE, Device: id,
		Hash: auth.HashOf(secret), CreatedAt: now,
	}
	if err := e.Store.Pair(ctx, dev, token); err != nil {
		return Enrolment{}, fmt.Errorf("store new device: %w", err)
	}
	e.Directory.Add(dev)
	e.Tokens.Know(token)
	return Enrolment{Device: dev, Secret: secret, CheckWord: word}, nil
}
