package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent"
	"throwbar.dev/throwbar/agent/model"
	agentstorage "throwbar.dev/throwbar/agent/storage"
	"throwbar.dev/throwbar/agent/turn"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/rpc"
)

// composeAgent puts the agent behind the same edge as everything else. Without a model it says what to set.
func (s *Server) composeAgent() error {
	cfg := agent.Config{
		Catalogue: s.catalogue, ModelName: s.cfg.Model.Name, Hint: s.cfg.Model.Hint,
		Commander: commander{s.dispatcher, s.tokens, s.cfg.Log}, Querier: querier{s.edge, s.tokens, s.cfg.Log},
		Store: agentstorage.New(s.store), Workspace: workspaceOf,
		Random: s.cfg.Random, Now: s.cfg.Now, Log: s.cfg.Log,
	}
	if s.cfg.Model.Name == "" && cfg.Hint == "" {
		cfg.Hint = noModel
	}
	if s.cfg.Model.Name != "" && s.cfg.Model.Hint == "" {
		client, err := model.New(model.Config{
			BaseURL: s.cfg.Model.BaseURL, Key: s.cfg.Model.Key, Model: s.cfg.Model.Name,
		})
		if err != nil {
			return fmt.Errorf("set up the model: %w", err)
		}
		cfg.Model = client
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

// commander lets the agent send commands by the same road as everybody else.
type commander struct {
	dispatcher *dispatch.Dispatcher
	tokens     *auth.Tokens
	log        *slog.Logger
}

// Command runs a command and waits for its end on every device.
func (c commander) Command(ctx context.Context, call turn.Call) (*controlv1.DispatchResponse, error) {
	if err := stillValid(ctx, c.tokens); err != nil {
		return nil, refusal(ctx, c.log, err)
	}
	res, err := c.dispatcher.Dispatch(ctx, dispatch.Request{
		Workspace: call.Workspace, Principal: call.Principal, Devices: call.DeviceIDs, Action: call.Action,
	})
	if err != nil {
		return nil, refusal(ctx, c.log, err)
	}
	return res, nil
}

// querier lets the agent ask what everybody else may ask, as one who may read.
type querier struct {
	edge   *rpc.Server
	tokens *auth.Tokens
	log    *slog.Logger
}

// Query calls a method that has no effect.
func (q querier) Query(ctx context.Context, query turn.Query) (proto.Message, error) {
	if err := stillValid(ctx, q.tokens); err != nil {
		return nil, refusal(ctx, q.log, err)
	}
	reader := auth.Token{ID: query.Principal, Workspace: query.Workspace, Scope: optionv1.Scope_SCOPE_VIEWER}
	res, err := q.edge.Query(ctx, reader, query.Method, query.Request)
	if err != nil {
		return nil, refusal(ctx, q.log, err)
	}
	return res, nil
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
