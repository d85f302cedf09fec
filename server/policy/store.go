package policy

import (
	"context"
	"time"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// State is the policy of one workspace as it is kept.
type State struct {
	Workspace string
	Version   uint64
	Settings  *controlv1.PolicySettings // without defaults
	Rules     []*controlv1.PolicyRule   // in the order in which they were made
}

// Change is who changes the policy of which workspace, and when.
type Change struct {
	Workspace, Actor string

	At time.Time
}

// Store keeps policies. Each change is one synced transaction that raises the workspace's version, gives the version
// that it made, and leaves its entry in the audit record.
type Store interface {
	Policies(ctx context.Context) ([]State, error)
	AddRule(ctx context.Context, by Change, rule *controlv1.PolicyRule) (version uint64, err error)
	// RemoveRule is a fault NotFound where there is no such rule.
	RemoveRule(ctx context.Context, by Change, rule *controlv1.PolicyRule) (version uint64, err error)
	SetSettings(ctx context.Context, by Change, settings *controlv1.PolicySettings) (version uint64, err error)
}
