package auth

import (
	"context"
	"fmt"
	"time"

	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/fault"
)

// RotateAfter is how old a device's token may get until the device is asked to take another one.
const RotateAfter = 30 * 24 * time.Hour

// AskRotation notes that a device of a workspace is to take another token. By is the token of whoever asks.
func (t *Tokens) AskRotation(ctx context.Context, workspace, device, by string) error {
	t.change.Lock()
	defer t.change.Unlock()
	token, ok := t.ofDevice(device, false)
	if !ok || token.Workspace != workspace {
		return fault.New(fault.NotFound, "there is no device %q: list devices to get their ids", device)
	}
	token.RotateBy = by
	if err := t.store.AskRotation(ctx, token); err != nil {
		return fmt.Errorf("ask device %s for a rotation: %w", device, err)
	}
	t.put(token)
	return nil
}

// ShouldRotate says whether the device of a token should take another one.
func (t *Tokens) ShouldRotate(token Token) bool {
	known, _, err := t.find(token)
	return err == nil && (known.RotateBy != "" || t.now().Sub(known.CreatedAt) > RotateAfter)
}

// Rotate makes another token for the device of a token. The present one works until the new one is first used, so that
// an answer that is lost locks nobody out; a new one that was never used gives way to the newest.
func (t *Tokens) Rotate(ctx context.Context, token Token) (string, error) {
	t.change.Lock()
	defer t.change.Unlock()
	current, _, err := t.find(token)
	if err != nil {
		return "", err
	}
	secret, err := t.Secret()
	if err != nil {
		return "", err
	}
	next := Token{
		ID: t.newID(), Workspace: token.Workspace, Name: token.Name, Scope: optionv1.Scope_SCOPE_DEVICE, Device: token.Device,
		Hash: HashOf(secret), CreatedAt: t.now(), Replaces: token.ID,
	}
	if err := t.store.RotateToken(ctx, next, current); err != nil {
		return "", fmt.Errorf("rotate the token of %s: %w", token.Device, err)
	}
	if unused, ok := t.ofDevice(token.Device, true); ok {
		t.forget(unused)
	}
	t.Know(next)
	return secret, nil
}

// Use notes that a token is used. The first use of one that replaces another makes that one void.
func (t *Tokens) Use(ctx context.Context, token Token) error {
	if token.Replaces == "" {
		return nil
	}
	t.change.Lock()
	defer t.change.Unlock()
	next, _, err := t.find(token)
	if err != nil || next.Replaces == "" { // a newer one took its place, or it is in use
		return err
	}
	if err := t.store.UseToken(ctx, next); err != nil {
		return fmt.Errorf("use the new token of %s: %w", token.Device, err)
	}
	next.Replaces = ""
	t.put(next)
	if old, ok := t.other(next); ok {
		t.forget(old)
	}
	return nil
}

// other is the other token of the same device.
func (t *Tokens) other(token Token) (Token, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, e := range t.byDevice[token.Device] {
		if e.ID != token.ID {
			return e.Token, true
		}
	}
	return Token{}, false
}

// ofDevice is the token that a device uses, or the one that it was given and has not used yet.
func (t *Tokens) ofDevice(device string, unused bool) (Token, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, e := range t.byDevice[device] {
		if (e.Replaces != "") == unused {
			return e.Token, true
		}
	}
	return Token{}, false
}

// put changes what is known of a valid token.
func (t *Tokens) put(token Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byHash[token.Hash]; e != nil && e.ID == token.ID {
		e.Token = token
	}
}
