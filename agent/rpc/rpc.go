// Package rpc is the agent's edge: thin handlers over the conversations. Who may call what, and whether a message meets
// its rules, is decided by the interceptors in front of it.
package rpc

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect/v2"

	"throwbar.dev/throwbar/agent/conversation"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
)

// Config is what the handlers stand in front of.
type Config struct {
	Book  *conversation.Book
	Model string // name of the model; empty if none is set
	Hint  string // what to set if there is none
	// Workspace is the caller's.
	Workspace func(context.Context) (string, error)
}

// Register registers the agent's service.
func Register(server *connect.Server, config Config) {
	agentv1connect.RegisterAgentServiceHandler(server, &handler{config: config})
}

var _ agentv1connect.AgentServiceHandler = (*handler)(nil)

type handler struct {
	agentv1connect.UnimplementedAgentServiceHandler

	config Config
}

// Chat begins a turn and sends its events until it ends or the caller goes away.
func (h *handler) Chat(ctx context.Context, req *agentv1.ChatRequest, stream agentv1connect.AgentServiceChatServerStream) error {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return err
	}
	feed, err := h.config.Book.Chat(ctx, chatRequest(workspace, req))
	if err != nil {
		return coded(err)
	}
	for {
		event, err := feed.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return coded(err)
		}
		if err := stream.Send(&agentv1.ChatResponse{Event: event}); err != nil {
			return err
		}
	}
}

// StopTurn stops the turn that runs in a conversation.
func (h *handler) StopTurn(ctx context.Context, req *agentv1.StopTurnRequest) (*agentv1.StopTurnResponse, error) {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	stopped, err := h.config.Book.Stop(ctx, workspace, req.GetConversationId())
	if err != nil {
		return nil, coded(err)
	}
	return &agentv1.StopTurnResponse{Stopped: stopped}, nil
}

// ListConversations lists conversations, the last used first.
func (h *handler) ListConversations(
	ctx context.Context, req *agentv1.ListConversationsRequest,
) (*agentv1.ListConversationsResponse, error) {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	after, err := place(req.GetPageToken())
	if err != nil {
		return nil, coded(err)
	}
	limit := pageSize(req.GetPageSize())
	rows, err := h.config.Book.List(ctx, workspace, after, limit+1)
	if err != nil {
		return nil, coded(err)
	}
	return conversationsPage(rows, limit), nil
}

// ListEvents lists the stored events of a conversation, oldest first.
func (h *handler) ListEvents(ctx context.Context, req *agentv1.ListEventsRequest) (*agentv1.ListEventsResponse, error) {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	after, err := number(req.GetPageToken())
	if err != nil {
		return nil, coded(err)
	}
	limit := pageSize(req.GetPageSize())
	events, err := h.config.Book.Events(ctx, workspace, req.GetConversationId(), after, limit+1)
	if err != nil {
		return nil, coded(err)
	}
	return eventsPage(events, limit), nil
}

// GetModel says whether a model is set.
func (h *handler) GetModel(context.Context, *agentv1.GetModelRequest) (*agentv1.GetModelResponse, error) {
	return &agentv1.GetModelResponse{Model: h.config.Model, Hint: h.config.Hint}, nil
}
