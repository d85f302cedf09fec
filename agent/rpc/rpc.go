// Package rpc is the agent's edge: thin handlers over the conversations. Who may call what, and whether a message meets
// its rules, is decided by the interceptors in front of it.
package rpc

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect/v2"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
)

// Config is what the handlers stand in front of.
type Config struct {
	Book   *conversation.Book
	Tools  *tool.Set
	Models []turn.Choice // the default first
	Model  string        // name of the model; empty if none is set
	Hint   string        // what to set if there is none
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

// Chat says something, tells what became of it, and sends the events until the turn that took it ends.
func (h *handler) Chat(ctx context.Context, req *agentv1.ChatRequest, stream agentv1connect.AgentServiceChatServerStream) error {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return err
	}
	talk, err := h.config.Book.Chat(ctx, chatDelivery(workspace, req))
	if err != nil {
		return coded(err)
	}
	defer talk.Close()
	if err := stream.Send(&agentv1.ChatResponse{Accepted: sendResponse(talk.Delivered)}); err != nil {
		return err
	}
	for {
		event, err := talk.Next(ctx)
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

// Send says something and returns at once.
func (h *handler) Send(ctx context.Context, req *agentv1.SendRequest) (*agentv1.SendResponse, error) {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	told, err := h.config.Book.Deliver(ctx, sendDelivery(workspace, req))
	if err != nil {
		return nil, coded(err)
	}
	return sendResponse(told), nil
}

// WatchConversation follows a conversation.
func (h *handler) WatchConversation(
	ctx context.Context, req *agentv1.WatchConversationRequest, stream agentv1connect.AgentServiceWatchConversationServerStream,
) error {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return err
	}
	watch, err := h.config.Book.Watch(ctx, workspace, req.GetConversationId(), req.GetAfter(), req.GetUntilIdle())
	if err != nil {
		return coded(err)
	}
	defer watch.Close()
	for {
		res, err := watch.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return coded(err)
		}
		if err := stream.Send(res); err != nil {
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

// GetToolOutput gives a piece of the whole text of a tool's answer.
func (h *handler) GetToolOutput(ctx context.Context, req *agentv1.GetToolOutputRequest) (*agentv1.GetToolOutputResponse, error) {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	text, whole, next, err := h.config.Book.Output(ctx, workspace, req.GetConversationId(), req.GetCallId(), req.GetOffset())
	if err != nil {
		return nil, coded(err)
	}
	return &agentv1.GetToolOutputResponse{Text: text, WholeBytes: whole, NextOffset: next}, nil
}
