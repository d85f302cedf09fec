package auth

import (
	"context"
	"fmt"
	"slices"
	"time"

	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/fault"
)

// maxWorkspaces is how many workspaces a server may have.
const maxWorkspaces = 1000

// Workspace is one workspace. What belongs to one is not found from another.
type Workspace struct {
	Name      string
	CreatedAt time.Time
}

// WorkspaceStore keeps workspaces.
type WorkspaceStore interface {
	// Workspaces reads all of them, by name.
	Workspaces(ctx context.Context) ([]Workspace, error)
	// AddWorkspace adds one, with a token for its owner if that has an id. It is a fault if there is one of that name.
	AddWorkspace(ctx context.Context, w Workspace, owner Token) error
}

// Workspaces makes and lists workspaces.
type Workspaces struct {
	Store  WorkspaceStore
	Tokens *Tokens
}

// Begin makes sure that the server's first workspace is there.
func (w Workspaces) Begin(ctx context.Context) error {
	all, err := w.Store.Workspaces(ctx)
	if err != nil {
		return fmt.Errorf("read workspaces: %w", err)
	}
	if slices.ContainsFunc(all, func(w Workspace) bool { return w.Name == DefaultWorkspace }) {
		return nil
	}
	if err := w.Store.AddWorkspace(ctx, Workspace{Name: DefaultWorkspace, CreatedAt: w.Tokens.now()}, Token{}); err != nil {
		return fmt.Errorf("make the first workspace: %w", err)
	}
	return nil
}

// Create makes a workspace and a token for its owner, and returns its secret. Only an owner of the first workspace may.
func (w Workspaces) Create(ctx context.Context, caller Token, name string) (Workspace, Token, string, error) {
	all, err := w.List(ctx, caller)
	switch {
	case err != nil:
		return Workspace{}, Token{}, "", err
	case len(all) >= maxWorkspaces:
		return Workspace{}, Token{}, "", fault.New(fault.Busy, "this server has %d workspaces, which is the most it can have", len(all))
	}
	token, secret, err := w.Tokens.make(name, "owner", optionv1.Scope_SCOPE_OWNER, 0)
	if err != nil {
		return Workspace{}, Token{}, "", err
	}
	made := Workspace{Name: name, CreatedAt: token.CreatedAt}
	if err := w.Store.AddWorkspace(ctx, made, token); err != nil {
		return Workspace{}, Token{}, "", fmt.Errorf("store workspace: %w", err)
	}
	w.Tokens.Know(token)
	return made, token, secret, nil
}

// List lists the workspaces by name. Only an owner of the first workspace may.
func (w Workspaces) List(ctx context.Context, caller Token) ([]Workspace, error) {
	if caller.Workspace != DefaultWorkspace {
		return nil, fault.New(fault.Forbidden, "only an owner of the workspace %s may list and make workspaces", DefaultWorkspace)
	}
	return w.Store.Workspaces(ctx)
}
