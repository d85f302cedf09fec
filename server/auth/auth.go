// Package auth knows bearer tokens: who a secret belongs to and what its bearer may do. Secrets are kept as hashes.
package auth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/fault"
)

const (
	// DefaultWorkspace is the workspace of a server that has only one.
	DefaultWorkspace = "default"

	prefix      = "thb_"
	secretBytes = 32
)

// Token is a token without its secret.
type Token struct {
	ID, Workspace, Name string

	Scope     optionv1.Scope
	Device    string // of a device's token
	Hash      [sha256.Size]byte
	CreatedAt time.Time
	ExpiresAt time.Time // zero if it works until it is revoked

	// Replaces is the id of the device's token that becomes void when this one is first used; empty once it was.
	Replaces string
	// RotateBy is the id of the token whose owner asked the device to take another one; empty if nobody did.
	RotateBy string
}

// Store keeps tokens.
type Store interface {
	Tokens(ctx context.Context) ([]Token, error)
	AddToken(ctx context.Context, t Token) error
	RevokeToken(ctx context.Context, t Token) error
	// AskRotation notes who asked for another token of t's device.
	AskRotation(ctx context.Context, t Token) error
	// RotateToken adds a token that replaces t once it is used, in place of one that was to replace it before.
	RotateToken(ctx context.Context, next, t Token) error
	// UseToken makes next its device's only token.
	UseToken(ctx context.Context, next Token) error
}

// entry is one valid token. Its context ends, and says why, when the token is not valid any more.
type entry struct {
	Token

	ctx context.Context //nolint:containedctx // the calls that are under way with the token end with it
	end context.CancelCauseFunc
}

// Tokens knows all valid tokens. It is read from the store once and then kept in step with it.
type Tokens struct {
	store  Store
	random io.Reader
	now    func() time.Time
	newID  func() string

	change sync.Mutex // held while tokens are revoked, rotated or used for the first time: one after the other

	mu       sync.RWMutex                 // never held while anything waits
	byHash   map[[sha256.Size]byte]*entry // guarded by mu
	byDevice map[string][]*entry          // guarded by mu; a device has two at most
}

// New reads the stored tokens.
func New(ctx context.Context, store Store, random io.Reader, now func() time.Time, newID func() string) (*Tokens, error) {
	stored, err := store.Tokens(ctx)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	t := &Tokens{
		store: store, random: random, now: now, newID: newID,
		byHash: map[[sha256.Size]byte]*entry{}, byDevice: map[string][]*entry{},
	}
	for _, token := range stored {
		t.Know(token)
	}
	return t, nil
}

// Secret makes a new secret.
func (t *Tokens) Secret() (string, error) {
	raw := make([]byte, secretBytes)
	if _, err := io.ReadFull(t.random, raw); err != nil {
		return "", fmt.Errorf("read randomness: %w", err)
	}
	return prefix + base64.RawURLEncoding.EncodeToString(raw), nil
}

// HashOf is what is stored of a secret. Secrets have 256 random bits, so that a plain hash keeps them.
func HashOf(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// Issue makes a token of a person or program and returns its secret. It works for the given time, or until it is
// revoked if that is zero.
func (t *Tokens) Issue(
	ctx context.Context, workspace, name string, scope optionv1.Scope, ttl time.Duration,
) (Token, string, error) {
	token, secret, err := t.make(workspace, name, scope, ttl)
	if err != nil {
		return Token{}, "", err
	}
	if err := t.store.AddToken(ctx, token); err != nil {
		return Token{}, "", fmt.Errorf("store token: %w", err)
	}
	t.Know(token)
	return token, secret, nil
}

func (t *Tokens) make(workspace, name string, scope optionv1.Scope, ttl time.Duration) (Token, string, error) {
	if strings.TrimSpace(name) == "" {
		return Token{}, "", fault.New(fault.Invalid, "a token needs a name: say what it is for")
	}
	secret, err := t.Secret()
	if err != nil {
		return Token{}, "", err
	}
	now := t.now()
	token := Token{ID: t.newID(), Workspace: workspace, Name: name, Scope: scope, Hash: HashOf(secret), CreatedAt: now}
	if ttl > 0 {
		token.ExpiresAt = now.Add(ttl)
	}
	return token, secret, nil
}

// Know makes a stored token valid.
func (t *Tokens) Know(token Token) {
	e := &entry{Token: token}
	e.ctx, e.end = context.WithCancelCause(context.Background())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byHash[token.Hash] = e
	if token.Device != "" {
		t.byDevice[token.Device] = append(t.byDevice[token.Device], e)
	}
}

// Authenticate finds the token of a secret.
func (t *Tokens) Authenticate(secret string) (Token, error) {
	t.mu.RLock()
	e, ok := t.byHash[HashOf(secret)]
	var token Token
	if ok {
		token = e.Token
	}
	t.mu.RUnlock()
	if !ok {
		return Token{}, fault.New(fault.Unauthenticated, "the token is not valid: it was revoked or belongs to another server")
	}
	if t.expired(token) {
		return Token{}, errExpired()
	}
	return token, nil
}

func (t *Tokens) expired(token Token) bool {
	return !token.ExpiresAt.IsZero() && !t.now().Before(token.ExpiresAt)
}

func errExpired() error {
	return fault.New(fault.Unauthenticated, "the token has expired: ask an owner of this server for another one")
}

func errRevoked() error { return fault.New(fault.Unauthenticated, "the token was revoked") }

// Check is nil while a token that was authenticated before is valid. Streams ask it as they go on.
func (t *Tokens) Check(token Token) error {
	known, _, err := t.find(token)
	if err == nil && t.expired(known) {
		return errExpired()
	}
	return err
}

// find is what is known of a token that was authenticated before, and the context that ends with it.
func (t *Tokens) find(token Token) (Token, context.Context, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e := t.byHash[token.Hash]; e != nil && e.ID == token.ID {
		return e.Token, e.ctx, nil
	}
	return Token{}, nil, errRevoked()
}

// Named is the valid token of a workspace with an id; if it was a device's that has taken another one since, that one.
func (t *Tokens) Named(workspace, id, device string) (Token, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, e := range t.byHash {
		if e.ID == id && e.Workspace == workspace && !t.expired(e.Token) {
			return e.Token, true
		}
	}
	if device != "" {
		for _, e := range t.byDevice[device] {
			if e.Workspace == workspace && !t.expired(e.Token) {
				return e.Token, true
			}
		}
	}
	return Token{}, false
}

// List are the tokens of a workspace that belong to no device, oldest first. Those that have expired are among them
// until somebody revokes them.
func (t *Tokens) List(workspace string) []Token {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []Token
	for _, e := range t.byHash {
		if e.Workspace == workspace && e.Device == "" {
			out = append(out, e.Token)
		}
	}
	sortTokens(out)
	return out
}

// Revoke makes a token of a workspace void. The last owner's token that does not expire stays: without one nobody could
// make another.
func (t *Tokens) Revoke(ctx context.Context, workspace, id string) error {
	t.change.Lock()
	defer t.change.Unlock()
	var found Token
	owners := 0
	for _, token := range t.List(workspace) {
		if token.ID == id {
			found = token
		} else if lastingOwner(token) {
			owners++
		}
	}
	switch {
	case found.ID == "":
		return fault.New(fault.NotFound, "there is no token %q", id)
	case lastingOwner(found) && owners == 0:
		return fault.New(fault.Refused, "this is the last owner's token of the workspace that does not expire: make another "+
			"one first")
	}
	if err := t.store.RevokeToken(ctx, found); err != nil {
		return fmt.Errorf("revoke token %s: %w", id, err)
	}
	t.forget(found)
	return nil
}

func lastingOwner(t Token) bool { return t.Scope == optionv1.Scope_SCOPE_OWNER && t.ExpiresAt.IsZero() }

// ForgetDevice makes the tokens of a revoked device void.
func (t *Tokens) ForgetDevice(device string) {
	t.mu.RLock()
	var of []Token
	for _, e := range t.byDevice[device] {
		of = append(of, e.Token)
	}
	t.mu.RUnlock()
	t.forget(of...)
}

// forget makes tokens void, and ends the calls that are under way with them.
func (t *Tokens) forget(tokens ...Token) {
	for _, token := range tokens {
		t.mu.Lock()
		e := t.byHash[token.Hash]
		delete(t.byHash, token.Hash)
		if left := slices.DeleteFunc(t.byDevice[token.Device], func(other *entry) bool { return other == e }); len(left) > 0 {
			t.byDevice[token.Device] = left
		} else {
			delete(t.byDevice, token.Device)
		}
		t.mu.Unlock()
		if e != nil {
			e.end(errRevoked())
		}
	}
}

// Bearer takes the secret out of an Authorization header.
func Bearer(header string) (string, error) {
	scheme, secret, ok := strings.Cut(header, " ")
	if header == "" {
		return "", fault.New(fault.Unauthenticated, "this call needs a token: send it as Authorization: Bearer …")
	}
	if !ok || !strings.EqualFold(scheme, "bearer") || strings.TrimSpace(secret) == "" {
		return "", fault.New(fault.Unauthenticated, "the Authorization header has to be: Bearer, a space, the token")
	}
	return strings.TrimSpace(secret), nil
}
