package app

import (
	"context"
	"errors"
	"log/slog"

	"throwbar.dev/throwbar/agent"
	agentstorage "throwbar.dev/throwbar/agent/storage"
	"throwbar.dev/throwbar/agent/turn"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/fault"
)

// composeAgent puts the agent behind the same edge as everything else. Without a model it says what to set.
func (s *Server) composeAgent() error {
	commander := commander{s.dispatcher, s.approvals, s.storage.Feed(), s.tokens, s.cfg.Log}
	cfg := agent.Config{
		Catalogue: s.catalogue, Hint: s.cfg.Model.Hint,
		Commander: commander, Undoer: undoer{commander}, Permit: permits{s.book, s.tokens, s.cfg.Log}.Permit, Authority: authority{s.tokens},
		Querier: querier{s.edge, s.catalogue, s.book, s.tokens, s.cfg.Log},
		Store:   agentstorage.New(s.store), Workspace: workspaceOf,
		Definitions: s.cfg.Definitions, Limits: s.cfg.AgentLimits, Rounds: int(s.cfg.AgentLimits.GetRounds()),
		Random: s.cfg.Random, Now: s.cfg.Now, Log: s.cfg.Log,
	}
	if s.cfg.Model.Name == "" && cfg.Hint == "" {
		cfg.Hint = noModel
	}
	var err error
	if cfg.Models, err = s.cfg.choices(); err != nil {
		return err
	}
	a, err := agent.New(cfg)
	if err != nil {
		return err
	}
	a.Register(s.edge.Connect())
	s.agent = a
	return nil
}

func workspaceOf(ctx context.Context) (string, error) {
	token, err := auth.From(ctx)
	return token.Workspace, err
}

// refusal makes an error that the model may read. The text of anything but a fault is for the log only.
func refusal(ctx context.Context, log *slog.Logger, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var known *fault.Error
	if !errors.As(err, &known) {
		log.ErrorContext(ctx, "tool of the agent failed", slog.Any("error", err))
	}
	e := fault.Command(err)
	return &turn.Refusal{Code: e.GetCode(), Message: e.GetMessage()}
}
