package approval

import (
	"context"
	"time"

	"throwbar.dev/throwbar/catalog"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/policy"
)

// Change is what a decision makes of an approval.
type Change struct {
	Approval Approval              // as it becomes
	Rule     *controlv1.PolicyRule // that remembers the decision; nil if none does
	Note     bool                  // it has expired: only what was said is kept
	Won      bool                  // set by the store: this decision was the first and in time
	Version  uint64                // set by the store: of the policy with the rule
}

// Store keeps approvals.
type Store interface {
	// GetApproval is a fault NotFound for an id that the workspace does not have.
	GetApproval(ctx context.Context, workspace, id string) (Approval, error)
	ListApprovals(ctx context.Context, filter Filter) ([]Approval, error)
	// DecideApprovals writes decisions, their events, audit entries and rules in one transaction that is on disk when it
	// returns. A decision counts only on an approval that is pending and has not expired. One with a rule is bound to the
	// version of the policy that has it.
	DecideApprovals(ctx context.Context, changes []*Change) error
}

// Review is what holds of a call now.
type Review struct {
	Action   []byte // encoded, the same for the same arguments
	Targets  []*controlv1.PlannedTarget
	Call     policy.Call
	Decision policy.Decision
}

// Gate is where calls run.
type Gate interface {
	// Review holds an action that would take the place of a call's against the rules, the device and policy. It is a fault
	// Denied if policy denies it.
	Review(ctx context.Context, a *Approval, c *Call, action []byte) (Review, error)
	// Decided says that an approval may have been decided. It returns at once.
	Decided(id string)
}

// Rules makes rules of decisions.
type Rules interface {
	// Remembered makes the rule; it counts from Learned on.
	Remembered(m policy.Memory) (*controlv1.PolicyRule, error)
	// Learned takes in a rule that was written down, with the version that it made.
	Learned(workspace string, rule *controlv1.PolicyRule, version uint64) error
}

// Config is what a Desk is made of.
type Config struct {
	Catalogue *catalog.Catalogue
	Store     Store
	Gate      Gate
	Rules     Rules // nil if nothing can be remembered
	Device    func(workspace, id string) (name string)
	Now       func() time.Time
}

// Desk is where approvals are shown and decided.
type Desk struct {
	Config

	Reach Reach
}

// New makes a desk.
func New(cfg Config) *Desk { return &Desk{Config: cfg} }

// Get is one approval of a workspace.
func (d *Desk) Get(ctx context.Context, workspace, id string) (*controlv1.Approval, error) {
	a, err := d.Store.GetApproval(ctx, workspace, id)
	if err != nil {
		return nil, err
	}
	return a.View(d.Catalogue, d.Device), nil
}

// List is a page of approvals, newest first, and whether there are more.
func (d *Desk) List(ctx context.Context, filter Filter) ([]*controlv1.Approval, bool, error) {
	limit := filter.Limit
	filter.Limit++
	rows, err := d.Store.ListApprovals(ctx, filter)
	if err != nil {
		return nil, false, err
	}
	more := len(rows) > limit
	if more {
		rows = rows[:limit]
	}
	out := make([]*controlv1.Approval, 0, len(rows))
	for i := range rows {
		out = append(out, rows[i].View(d.Catalogue, d.Device))
	}
	return out, more, nil
}
