package rpc

import (
	"context"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/event"
)

var _ controlv1connect.CommandServiceHandler = (*commandHandler)(nil)

type commandHandler struct{ cfg Config }

// Dispatch sends a command and waits for its outcome.
func (h *commandHandler) Dispatch(ctx context.Context, req *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	return h.cfg.Dispatcher.Dispatch(ctx, dispatchRequest(token, req))
}

// Submit sends a command and returns at once.
func (h *commandHandler) Submit(ctx context.Context, req *controlv1.SubmitRequest) (*controlv1.SubmitResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	return h.cfg.Dispatcher.Submit(ctx, submitRequest(token, req))
}

// GetCommand gets one command.
func (h *commandHandler) GetCommand(
	ctx context.Context, req *controlv1.GetCommandRequest,
) (*controlv1.GetCommandResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	command, err := h.cfg.Dispatcher.Get(ctx, token.Workspace, req.GetCommandId())
	if err != nil {
		return nil, err
	}
	return &controlv1.GetCommandResponse{Command: h.shown(command)}, nil
}

// ListCommands lists commands, newest first.
func (h *commandHandler) ListCommands(
	ctx context.Context, req *controlv1.ListCommandsRequest,
) (*controlv1.ListCommandsResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	filter := dispatch.Filter{
		Workspace: token.Workspace, Device: req.GetDeviceId(), PendingOnly: req.GetPendingOnly(), Limit: size(req.GetPageSize()),
	}
	if filter.BeforeTime, filter.BeforeID, err = keyset(req.GetPageToken()); err != nil {
		return nil, err
	}
	commands, more, err := h.cfg.Dispatcher.List(ctx, filter)
	if err != nil {
		return nil, err
	}
	res := &controlv1.ListCommandsResponse{}
	for _, c := range commands {
		res.Commands = append(res.Commands, h.shown(c))
	}
	if more {
		last := commands[len(commands)-1]
		res.NextPageToken = nextKeyset(last.GetCreatedAt().AsTime(), last.GetCommandId())
	}
	return res, nil
}

// WatchEvents follows what happens.
func (h *commandHandler) WatchEvents(
	ctx context.Context, req *controlv1.WatchEventsRequest, stream controlv1connect.CommandServiceWatchEventsServerStream,
) error {
	token, err := auth.From(ctx)
	if err != nil {
		return err
	}
	watcher := event.Watcher{
		Workspace: token.Workspace, Principal: token.ID, Device: req.GetDeviceId(), Cursor: req.Cursor,
	}
	return h.cfg.Events.Watch(ctx, watcher, func(e *controlv1.Event, reset bool) error {
		return sendWatched(ctx, func() error {
			return stream.Send(&controlv1.WatchEventsResponse{Event: e, Reset_: reset})
		})
	})
}

// CancelCommand cancels a command.
func (h *commandHandler) CancelCommand(
	ctx context.Context, req *controlv1.CancelCommandRequest,
) (*controlv1.CancelCommandResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	command, err := h.cfg.Dispatcher.Cancel(ctx, token.Workspace, req.GetCommandId())
	if err != nil {
		return nil, err
	}
	return &controlv1.CancelCommandResponse{Command: h.shown(command)}, nil
}

var _ controlv1connect.CatalogueServiceHandler = (*catalogueHandler)(nil)

type catalogueHandler struct{ cfg Config }

// GetCatalogue gets the descriptors.
func (h *catalogueHandler) GetCatalogue(
	_ context.Context, req *controlv1.GetCatalogueRequest,
) (*controlv1.GetCatalogueResponse, error) {
	res := &controlv1.GetCatalogueResponse{Digest: h.cfg.Catalogue.Digest(), ServerVersion: h.cfg.Version}
	if req.GetDigest() != res.GetDigest() {
		res.Descriptors = h.cfg.Catalogue.Image()
	}
	return res, nil
}

// Undo brings back what a command took away.
func (h *commandHandler) Undo(ctx context.Context, req *controlv1.UndoRequest) (*controlv1.UndoResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	return h.cfg.Dispatcher.Undo(ctx, dispatch.UndoRequest{
		Workspace: token.Workspace, Principal: token.ID, Command: req.GetCommandId(), Device: req.GetDeviceId(),
		DryRun: req.GetDryRun(),
	})
}
