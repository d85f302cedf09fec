package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

func (f *fake) CreateWorkspace(
	_ context.Context, req *controlv1.CreateWorkspaceRequest,
) (*controlv1.CreateWorkspaceResponse, error) {
	return &controlv1.CreateWorkspaceResponse{
		Workspace: &controlv1.Workspace{Name: req.GetName(), CreatedAt: ago(0)},
		Token:     &controlv1.Token{TokenId: "tok-2", Name: "owner", Scope: 4, CreatedAt: ago(0)}, Secret: "new-secret",
	}, nil
}

func (f *fake) ListWorkspaces(context.Context, *controlv1.ListWorkspacesRequest) (*controlv1.ListWorkspacesResponse, error) {
	return &controlv1.ListWorkspacesResponse{Workspaces: []*controlv1.Workspace{
		{Name: "default", CreatedAt: ago(time.Hour)}, {Name: "home", CreatedAt: ago(time.Minute)},
	}}, nil
}

func (f *fake) RotateDevice(_ context.Context, req *controlv1.RotateDeviceRequest) (*controlv1.RotateDeviceResponse, error) {
	if req.GetDeviceId() != work {
		return nil, connect.NewError(connect.CodeNotFound, "there is no such device")
	}
	return &controlv1.RotateDeviceResponse{}, nil
}

// The secret of a new workspace goes to a file of its own; where it cannot, it is shown: nothing else opens it.
func TestTheSecretOfAWorkspaceIsNotLost(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	path := filepath.Join(t.TempDir(), "secret")
	e := f.run(t, "workspace", "create", "home", "--file", path)
	e.check(t, 0)
	if raw, err := os.ReadFile(path); err != nil || string(raw) != "new-secret\n" || strings.Contains(e.out+e.err, "new-secret") {
		t.Errorf("file %q, %v, shown %q", raw, err, e.out)
	}
	if e = f.run(t, "workspace", "create", "home", "--file", path); !strings.Contains(e.out, "new-secret") {
		t.Errorf("the secret is lost: %q, %q", e.out, e.err)
	}
}
