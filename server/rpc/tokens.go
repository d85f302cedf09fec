package rpc

import (
	"context"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/server/auth"
)

var _ controlv1connect.TokenServiceHandler = (*tokenHandler)(nil)

type tokenHandler struct{ tokens *auth.Tokens }

// CreateToken makes a token.
func (h *tokenHandler) CreateToken(
	ctx context.Context, req *controlv1.CreateTokenRequest,
) (*controlv1.CreateTokenResponse, error) {
	caller, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	token, secret, err := h.tokens.Issue(ctx, caller.Workspace, req.GetName(), req.GetScope(), req.GetTtl().AsDuration())
	if err != nil {
		return nil, err
	}
	return &controlv1.CreateTokenResponse{Token: tokenProto(token), Secret: secret}, nil
}

// ListTokens lists tokens of people and programs.
func (h *tokenHandler) ListTokens(
	ctx context.Context, req *controlv1.ListTokensRequest,
) (*controlv1.ListTokensResponse, error) {
	caller, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	from, err := offset(req.GetPageToken())
	if err != nil {
		return nil, err
	}
	all := h.tokens.List(caller.Workspace)
	res := &controlv1.ListTokensResponse{}
	for i := from; i < len(all) && len(res.GetTokens()) < size(req.GetPageSize()); i++ {
		res.Tokens = append(res.Tokens, tokenProto(all[i]))
	}
	res.NextPageToken = nextOffset(from, len(res.GetTokens()), len(all))
	return res, nil
}

// RevokeToken makes a token void.
func (h *tokenHandler) RevokeToken(
	ctx context.Context, req *controlv1.RevokeTokenRequest,
) (*controlv1.RevokeTokenResponse, error) {
	caller, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	return &controlv1.RevokeTokenResponse{}, h.tokens.Revoke(ctx, caller.Workspace, req.GetTokenId())
}

var _ controlv1connect.WorkspaceServiceHandler = (*workspaceHandler)(nil)

type workspaceHandler struct{ workspaces auth.Workspaces }

// CreateWorkspace makes a workspace and a token for its owner.
func (h *workspaceHandler) CreateWorkspace(
	ctx context.Context, req *controlv1.CreateWorkspaceRequest,
) (*controlv1.CreateWorkspaceResponse, error) {
	caller, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	made, token, secret, err := h.workspaces.Create(ctx, caller, req.GetName())
	if err != nil {
		return nil, err
	}
	return &controlv1.CreateWorkspaceResponse{Workspace: workspaceProto(made), Token: tokenProto(token), Secret: secret}, nil
}

// ListWorkspaces lists the workspaces.
func (h *workspaceHandler) ListWorkspaces(
	ctx context.Context, _ *controlv1.ListWorkspacesRequest,
) (*controlv1.ListWorkspacesResponse, error) {
	caller, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	all, err := h.workspaces.List(ctx, caller)
	if err != nil {
		return nil, err
	}
	res := &controlv1.ListWorkspacesResponse{}
	for _, w := range all {
		res.Workspaces = append(res.Workspaces, workspaceProto(w))
	}
	return res, nil
}
