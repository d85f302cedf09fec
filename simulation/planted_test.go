package simulation

import (
	"context"

	throwbar "throwbar.dev/throwbar/clients/go"

	"throwbar.dev/throwbar/app"
)

// bug is a planted one: nil functions change nothing.
type bug struct {
	name     string
	parts    func(s *server, parts *app.Parts)
	wrap     func(*journal) throwbar.Journal
	patience bool // handlers do not look at their contexts
}

func (b *bug) into(cfg *app.Config, s *server) {
	if b != nil && b.parts != nil {
		b.parts(s, &cfg.Parts)
	}
}

func (b *bug) journal(j *journal) throwbar.Journal {
	if b != nil && b.wrap != nil {
		return b.wrap(j)
	}
	return j
}

func (b *bug) handlerContext(ctx context.Context) context.Context {
	if b != nil && b.patience {
		return context.WithoutCancel(ctx)
	}
	return ctx
}
