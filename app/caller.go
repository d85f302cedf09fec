package app

import (
	"context"
	"strings"

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

// authority says on whose behalf the agent works, also after a restart: the token of whoever wrote the message.
type authority struct{ tokens *auth.Tokens }

// Of names whoever calls.
func (authority) Of(ctx context.Context) string {
	token, err := auth.From(ctx)
	if err != nil {
		return ""
	}
	return token.ID + "@" + token.Device
}

// As gives a context in which that caller asks. If it may not any more, everything that it asks is refused.
func (a authority) As(ctx context.Context, workspace, name string) context.Context {
	id, device, _ := strings.Cut(name, "@")
	token, ok := a.tokens.Named(workspace, id, device)
	if !ok {
		token = auth.Token{ID: id, Workspace: workspace, Device: device}
	}
	return auth.With(ctx, token)
}
