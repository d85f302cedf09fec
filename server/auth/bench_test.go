package auth_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/auth"
)

// kept are the tokens of a store that keeps nothing.
type kept struct {
	auth.Store

	tokens []auth.Token
}

func (k kept) Tokens(context.Context) ([]auth.Token, error) { return k.tokens, nil }

// BenchmarkAdmit is what identity adds to each call: a header is read, its secret hashed and looked up among ten thousand
// tokens, and the scope compared.
func BenchmarkAdmit(b *testing.B) {
	store := kept{}
	for n := range 10_000 {
		secret := fmt.Sprint("secret", n)
		store.tokens = append(store.tokens, auth.Token{
			ID: secret, Workspace: auth.DefaultWorkspace, Scope: optionv1.Scope_SCOPE_OPERATOR, Hash: auth.HashOf(secret), CreatedAt: time.Now(),
		})
	}
	tokens, err := auth.New(b.Context(), store, rand.Reader, time.Now, func() string { return "id" })
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		secret, err := auth.Bearer("Bearer secret4711")
		if err != nil {
			b.Fatal(err)
		}
		token, err := tokens.Authenticate(secret)
		if err != nil {
			b.Fatal(err)
		}
		if err := auth.Allowed(token.Scope, optionv1.Scope_SCOPE_OPERATOR); err != nil {
			b.Fatal(err)
		}
	}
}
