package app

import (
	"context"

	"throwbar.dev/throwbar/server/auth"
)

// stillValid is nil while the token is valid that the work of a context was begun with. A turn of the agent goes on when
// its caller has gone, but not when the caller's token is void.
func stillValid(ctx context.Context, tokens *auth.Tokens) error {
	token, err := auth.From(ctx)
	if err != nil {
		return err
	}
	return tokens.Check(token)
}
