package rpc

import (
	"context"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/tool"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// CreateConversation begins a conversation without saying anything in it yet.
func (h *handler) CreateConversation(
	ctx context.Context, req *agentv1.CreateConversationRequest,
) (*agentv1.CreateConversationResponse, error) {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	row, err := h.config.Book.Create(ctx, workspace, req.GetTitle(), req.GetSettings(), req.GetAgent())
	if err != nil {
		return nil, coded(err)
	}
	return &agentv1.CreateConversationResponse{Conversation: row.Message()}, nil
}

// GetConversation gets one conversation.
func (h *handler) GetConversation(ctx context.Context, req *agentv1.GetConversationRequest) (*agentv1.GetConversationResponse, error) {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	row, err := h.config.Book.Get(ctx, workspace, req.GetConversationId())
	if err != nil {
		return nil, coded(err)
	}
	return &agentv1.GetConversationResponse{Conversation: row.Message()}, nil
}

// UpdateConversation changes the title or the settings of a conversation.
func (h *handler) UpdateConversation(
	ctx context.Context, req *agentv1.UpdateConversationRequest,
) (*agentv1.UpdateConversationResponse, error) {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	row, err := h.config.Book.Update(ctx, workspace, req.GetConversationId(), conversation.Patch{
		Title: req.Title, Prompt: req.Prompt, Model: req.GetModel(), Grants: req.GetGrants(), WorkingDirectory: req.WorkingDirectory, Wakes: req.GetWakes(),
	})
	if err != nil {
		return nil, coded(err)
	}
	return &agentv1.UpdateConversationResponse{Conversation: row.Message()}, nil
}

// ArchiveConversation archives a conversation.
func (h *handler) ArchiveConversation(
	ctx context.Context, req *agentv1.ArchiveConversationRequest,
) (*agentv1.ArchiveConversationResponse, error) {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	row, err := h.config.Book.Archive(ctx, workspace, req.GetConversationId())
	if err != nil {
		return nil, coded(err)
	}
	return &agentv1.ArchiveConversationResponse{Conversation: row.Message()}, nil
}

// ReopenConversation opens an archived conversation again.
func (h *handler) ReopenConversation(
	ctx context.Context, req *agentv1.ReopenConversationRequest,
) (*agentv1.ReopenConversationResponse, error) {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	row, err := h.config.Book.Reopen(ctx, workspace, req.GetConversationId())
	if err != nil {
		return nil, coded(err)
	}
	return &agentv1.ReopenConversationResponse{Conversation: row.Message()}, nil
}

// ResolveConversation says which open conversation a handle means.
func (h *handler) ResolveConversation(
	ctx context.Context, req *agentv1.ResolveConversationRequest,
) (*agentv1.ResolveConversationResponse, error) {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	rows, resolved, err := h.config.Book.Matches(ctx, workspace, req.GetReference())
	if err != nil {
		return nil, coded(err)
	}
	return &agentv1.ResolveConversationResponse{Conversations: messages(rows), Resolved: resolved}, nil
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
	rows, err := h.config.Book.List(ctx, workspace, req.GetFilter(), after, limit+1)
	if err != nil {
		return nil, coded(err)
	}
	return conversationsPage(rows, limit), nil
}

// ListQueue lists the messages that wait in a conversation.
func (h *handler) ListQueue(ctx context.Context, req *agentv1.ListQueueRequest) (*agentv1.ListQueueResponse, error) {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	after, err := number(req.GetPageToken())
	if err != nil {
		return nil, coded(err)
	}
	limit := pageSize(req.GetPageSize())
	letters, err := h.config.Book.Waiting(ctx, workspace, req.GetConversationId(), after, limit+1)
	if err != nil {
		return nil, coded(err)
	}
	return queuePage(letters, limit), nil
}

// EditQueued changes the text of a message of a person that waits.
func (h *handler) EditQueued(ctx context.Context, req *agentv1.EditQueuedRequest) (*agentv1.EditQueuedResponse, error) {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	letter, err := h.config.Book.Edit(ctx, workspace, req.GetConversationId(), req.GetMessageId(), req.GetMessage())
	if err != nil {
		return nil, coded(err)
	}
	return &agentv1.EditQueuedResponse{Message: letter.Message()}, nil
}

// RemoveQueued takes back a message that waits.
func (h *handler) RemoveQueued(ctx context.Context, req *agentv1.RemoveQueuedRequest) (*agentv1.RemoveQueuedResponse, error) {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.config.Book.Remove(ctx, workspace, req.GetConversationId(), req.GetMessageId()); err != nil {
		return nil, coded(err)
	}
	return &agentv1.RemoveQueuedResponse{}, nil
}

// ListTools lists what a conversation can be granted.
func (h *handler) ListTools(ctx context.Context, req *agentv1.ListToolsRequest) (*agentv1.ListToolsResponse, error) {
	workspace, err := h.config.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	var access tool.Access
	if req.ConversationId != nil {
		if access, err = h.config.Book.Access(ctx, workspace, req.GetConversationId()); err != nil {
			return nil, coded(err)
		}
	}
	return toolsOf(h.config.Tools, access), nil
}

// ListModels lists the models that are configured.
func (h *handler) ListModels(context.Context, *agentv1.ListModelsRequest) (*agentv1.ListModelsResponse, error) {
	return modelsOf(h.config.Models), nil
}

// ListAgents lists the agents that are defined.
func (h *handler) ListAgents(context.Context, *agentv1.ListAgentsRequest) (*agentv1.ListAgentsResponse, error) {
	return agentsOf(h.config.Tools, h.config.Book.Definitions()), nil
}

// GetModel says whether a model is set.
func (h *handler) GetModel(context.Context, *agentv1.GetModelRequest) (*agentv1.GetModelResponse, error) {
	return &agentv1.GetModelResponse{Model: h.config.Model, Hint: h.config.Hint}, nil
}
