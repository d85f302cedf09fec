package app

import (
	"context"

	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/fault"
)

// stillValid is nil while the token is valid that the work of a context was begun with. A turn of the agent goes on when
// its caller has gone, but not when the caller's token is void.
func stillValid(ctx context.Context, tokens *auth.Tokens) error {
	token, err := auth.From(ctx)
	if err != nil {
		return err
	}
	if err := tokens.Check(token); err != nil {
		return fault.Wrap(fault.Denied, err, "whoever asked for this may not any more: the token was revoked or has expired")
	}
	return nil
}
