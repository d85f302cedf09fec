package auth

import (
	"context"
	"slices"
	"strings"

	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/fault"
)

// Allowed is nil if a token of one scope may call a method that wants another. A method that wants none is refused.
func Allowed(have, want optionv1.Scope) error {
	switch want {
	case optionv1.Scope_SCOPE_PUBLIC:
		return nil
	case optionv1.Scope_SCOPE_DEVICE:
		if have == optionv1.Scope_SCOPE_DEVICE {
			return nil
		}
	case optionv1.Scope_SCOPE_VIEWER, optionv1.Scope_SCOPE_OPERATOR, optionv1.Scope_SCOPE_OWNER:
		if have >= want && have <= optionv1.Scope_SCOPE_OWNER { // device and hook are above, and include nothing
			return nil
		}
	case optionv1.Scope_SCOPE_HOOK: // what takes hooks is no method of the contract
		return fault.New(fault.Forbidden, "this method is for webhooks only")
	default:
		return fault.New(fault.Forbidden, "this method is not offered to anybody")
	}
	return fault.New(fault.Forbidden, "this call needs a token of scope %s; this one has %s", scopeName(want), scopeName(have))
}

func scopeName(s optionv1.Scope) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "SCOPE_"))
}

type tokenKey struct{}

// With puts the caller's token into the context of a call.
func With(ctx context.Context, token Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

// From is the token of the call. A call without one is a bug of the interceptor, and refused.
func From(ctx context.Context) (Token, error) {
	token, ok := ctx.Value(tokenKey{}).(Token)
	if !ok {
		return Token{}, fault.New(fault.Unauthenticated, "this call needs a token")
	}
	return token, nil
}

func sortTokens(tokens []Token) {
	slices.SortFunc(tokens, func(a, b Token) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
}
