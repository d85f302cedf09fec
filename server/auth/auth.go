// Package auth knows bearer tokens: who a secret belongs to and what its bearer may do. Secrets are kept as hashes.
package auth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
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
}

// Store keeps tokens.
type Store interface {
	Tokens(ctx context.Context) ([]Token, error)
	AddToken(ctx context.Context, t Token) error
	RevokeToken(ctx context.Context, t Token) error
}

// Tokens knows all valid tokens. It is read from the store once and then kept in step with it.
type Tokens struct {
	store  Store
	random io.Reader
	now    func() time.Time
	newID  func() string

	mu     sync.RWMutex
	byHash map[[sha256.Size]byte]Token // guarded by mu
}

// New reads the stored tokens.
func New(ctx context.Context, store Store, random io.Reader, now func() time.Time, newID func() string) (*Tokens, error) {
	stored, err := store.Tokens(ctx)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	t := &Tokens{store: store, random: random, now: now, newID: newID, byHash: map[[sha256.Size]byte]Token{}}
	for _, token := range stored {
		t.byHash[token.Hash] = token
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

// Issue makes a token of a person or program and returns its secret.
func (t *Tokens) Issue(ctx context.Context, workspace, name string, scope optionv1.Scope) (Token, string, error) {
	secret, err := t.Secret()
	if err != nil {
		return Token{}, "", err
	}
	token, err := t.Adopt(ctx, workspace, name, scope, secret)
	return token, secret, err
}

// Adopt makes a token with a given secret.
func (t *Tokens) Adopt(ctx context.Context, workspace, name string, scope optionv1.Scope, secret string) (Token, error) {
	token := Token{
		ID: t.newID(), Workspace: workspace, Name: name, Scope: scope, Hash: HashOf(secret), CreatedAt: t.now(),
	}
	if err := t.store.AddToken(ctx, token); err != nil {
		return Token{}, fmt.Errorf("store token: %w", err)
	}
	t.Know(token)
	return token, nil
}

// Know makes a stored token valid.
func (t *Tokens) Know(token Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byHash[token.Hash] = token
}

// Authenticate finds the token of a secret.
func (t *Tokens) Authenticate(secret string) (Token, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	token, ok := t.byHash[HashOf(secret)]
	if !ok {
		return Token{}, fault.New(fault.Unauthenticated, "the token is not valid: it was revoked or belongs to another server")
	}
	return token, nil
}

// Check is nil while a token that was authenticated before is valid. Streams ask it as they go on.
func (t *Tokens) Check(token Token) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if known, ok := t.byHash[token.Hash]; !ok || known.ID != token.ID {
		return fault.New(fault.Unauthenticated, "the token was revoked")
	}
	return nil
}

// List are the tokens of a workspace that belong to no device, oldest first.
func (t *Tokens) List(workspace string) []Token {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []Token
	for _, token := range t.byHash {
		if token.Workspace == workspace && token.Device == "" {
			out = append(out, token)
		}
	}
	sortTokens(out)
	return out
}

// Revoke makes a token of a workspace void.
func (t *Tokens) Revoke(ctx context.Context, workspace, id string) error {
	for _, token := range t.List(workspace) {
		if token.ID != id {
			continue
		}
		if err := t.store.RevokeToken(ctx, token); err != nil {
			return fmt.Errorf("revoke token %s: %w", id, err)
		}
		t.forget(func(other Token) bool { return other.ID == id })
		return nil
	}
	return fault.New(fault.NotFound, "there is no token %q", id)
}

// ForgetDevice makes the tokens of a revoked device void.
func (t *Tokens) ForgetDevice(device string) {
	t.forget(func(token Token) bool { return token.Device == device })
}

func (t *Tokens) forget(which func(Token) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for hash, token := range t.byHash {
		if which(token) {
			delete(t.byHash, hash)
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
