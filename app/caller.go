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

// authority names the tokens on whose behalf agents work, so that their work goes on after a restart and ends with the
// token.
type authority struct{ tokens *auth.Tokens }

// Of is the id of the caller's token.
func (authority) Of(ctx context.Context) string {
	token, err := auth.From(ctx)
	if err != nil {
		return ""
	}
	return token.ID
}

// As gives a context of a token by its id. One that was revoked is none: whatever asks whether it is still valid hears
// that it is not.
func (a authority) As(ctx context.Context, workspace, id string) context.Context {
	for _, token := range a.tokens.List(workspace) {
		if token.ID == id {
			return auth.With(ctx, token)
		}
	}
	return auth.With(ctx, auth.Token{ID: id, Workspace: workspace})
}
