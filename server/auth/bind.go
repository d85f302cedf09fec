package auth

import (
	"context"
	"time"
)

// lookAgain is how often a call that goes on looks at the wall clock, which may be set, whether its token has expired.
const lookAgain = 30 * time.Second

// Bind makes the context of a call end when the token that it was made with is not valid any more: it was revoked,
// another one took its place, or it has expired. The cause of the end says so. Release has to be called after the call.
func (t *Tokens) Bind(ctx context.Context, token Token) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	_, valid, err := t.find(token)
	if err != nil {
		cancel(err)
		return ctx, func() {}
	}
	stop := context.AfterFunc(valid, func() { cancel(context.Cause(valid)) })
	if token.ExpiresAt.IsZero() {
		return ctx, func() {
			stop()
			cancel(nil)
		}
	}
	over := make(chan struct{})
	go func() { // it ends when the call does, or ends it
		defer close(over)
		t.expire(ctx, token, cancel)
	}()
	return ctx, func() {
		stop()
		cancel(nil)
		<-over
	}
}

// expire ends a call when its token expires.
func (t *Tokens) expire(ctx context.Context, token Token, cancel context.CancelCauseFunc) {
	for {
		timer := time.NewTimer(min(max(token.ExpiresAt.Sub(t.now()), time.Millisecond), lookAgain))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if t.expired(token) {
			cancel(errExpired())
			return
		}
	}
}
