package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/policy"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/db"
)

var _ policy.Store = (*Storage)(nil)

// Policies implements policy.Store.
func (s *Storage) Policies(ctx context.Context) ([]policy.State, error) {
	var out []policy.State
	err := s.store.ReadTx(ctx, func(q *db.Queries) error {
		rules, err := allRules(ctx, q)
		if err != nil {
			return err
		}
		out, err = allPolicies(ctx, q, rules)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	return out, nil
}

func allPolicies(ctx context.Context, q *db.Queries, rules map[string][]db.Rule) ([]policy.State, error) {
	var out []policy.State
	after := ""
	for {
		rows, err := q.ListAllPolicies(ctx, db.ListAllPoliciesParams{AfterWorkspace: after, PageSize: pageSize})
		if err != nil {
			return nil, fmt.Errorf("list policies: %w", err)
		}
		for _, row := range rows {
			state := policy.State{
				Workspace: row.Workspace, Version: uint64(row.Version), Settings: &controlv1.PolicySettings{},
			}
			if err := proto.Unmarshal(row.Settings, state.Settings); err != nil {
				return nil, fmt.Errorf("decode settings of %s: %w", row.Workspace, err)
			}
			if state.Rules, err = inOrder(rules[row.Workspace]); err != nil {
				return nil, err
			}
			out = append(out, state)
			after = row.Workspace
		}
		if len(rows) < pageSize {
			return out, nil
		}
	}
}

// inOrder decodes the rules of one workspace, in the order in which they were made.
func inOrder(rows []db.Rule) ([]*controlv1.PolicyRule, error) {
	slices.SortFunc(rows, func(a, b db.Rule) int { return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.ID, b.ID)) })
	out := make([]*controlv1.PolicyRule, 0, len(rows))
	for _, row := range rows {
		rule := &controlv1.PolicyRule{}
		if err := proto.Unmarshal(row.Body, rule); err != nil {
			return nil, fmt.Errorf("decode rule %s: %w", row.ID, err)
		}
		out = append(out, rule)
	}
	return out, nil
}

func allRules(ctx context.Context, q *db.Queries) (map[string][]db.Rule, error) {
	out := map[string][]db.Rule{}
	after := ""
	for {
		rows, err := q.ListAllRules(ctx, db.ListAllRulesParams{AfterID: after, PageSize: pageSize})
		if err != nil {
			return nil, fmt.Errorf("list rules: %w", err)
		}
		for _, row := range rows {
			out[row.Workspace] = append(out[row.Workspace], row)
			after = row.ID
		}
		if len(rows) < pageSize {
			return out, nil
		}
	}
}

// AddRule implements policy.Store.
func (s *Storage) AddRule(ctx context.Context, by policy.Change, rule *controlv1.PolicyRule) (uint64, error) {
	var version uint64
	err := s.write(ctx, store.Synced, func(ctx context.Context, q *db.Queries) error {
		var err error
		version, err = insertRule(ctx, q, by.Workspace, rule, by.At)
		return err
	})
	return version, err
}

// insertRule adds a rule in the transaction of what it comes from, and gives the version that the policy has with it.
// Once the transaction is committed, policy.Book has to be told by Learned. Whoever made the rule is its created_by.
func insertRule(ctx context.Context, q *db.Queries, workspace string, rule *controlv1.PolicyRule, at time.Time) (uint64, error) {
	count, err := q.CountRules(ctx, workspace)
	if err != nil {
		return 0, fmt.Errorf("count rules: %w", err)
	}
	if count >= policy.MaxRules {
		return 0, policy.TooMany()
	}
	version, err := raise(ctx, q, workspace)
	if err != nil {
		return 0, err
	}
	body, err := proto.Marshal(rule)
	if err != nil {
		return 0, fmt.Errorf("encode rule: %w", err)
	}
	if err := q.InsertRule(ctx, db.InsertRuleParams{
		ID: rule.GetRuleId(), Workspace: workspace, Version: version, Body: body,
	}); err != nil {
		return 0, fmt.Errorf("insert rule: %w", err)
	}
	return uint64(version), audit(ctx, q, workspace, at, &controlv1.AuditRecord{
		Kind: controlv1.AuditKind_AUDIT_KIND_RULE_ADDED, Actor: rule.GetCreatedBy(), SubjectId: rule.GetRuleId(),
		DeviceId: rule.GetDeviceId(), Name: rule.GetTool(), ApprovalId: rule.GetApprovalId(), PolicyVersion: uint64(version),
		Rule: rule,
	})
}

// raise gives the policy of a workspace its next version.
func raise(ctx context.Context, q *db.Queries, workspace string) (int64, error) {
	version, err := q.RaisePolicy(ctx, db.RaisePolicyParams{Workspace: workspace, Settings: []byte{}})
	if err != nil {
		return 0, fmt.Errorf("raise version of policy: %w", err)
	}
	return version, nil
}

// RemoveRule implements policy.Store.
func (s *Storage) RemoveRule(ctx context.Context, by policy.Change, rule *controlv1.PolicyRule) (uint64, error) {
	var version int64
	err := s.write(ctx, store.Synced, func(ctx context.Context, q *db.Queries) error {
		n, err := q.DeleteRule(ctx, db.DeleteRuleParams{Workspace: by.Workspace, ID: rule.GetRuleId()})
		if err != nil {
			return fmt.Errorf("delete rule: %w", err)
		}
		if n == 0 {
			return fault.New(fault.NotFound, "there is no rule %q: list the policy to see those there are", rule.GetRuleId())
		}
		if version, err = raise(ctx, q, by.Workspace); err != nil {
			return err
		}
		return audit(ctx, q, by.Workspace, by.At, &controlv1.AuditRecord{
			Kind: controlv1.AuditKind_AUDIT_KIND_RULE_REMOVED, Actor: by.Actor, SubjectId: rule.GetRuleId(),
			DeviceId: rule.GetDeviceId(), Name: rule.GetTool(), PolicyVersion: uint64(version), Rule: rule,
		})
	})
	return uint64(version), err
}

// SetSettings implements policy.Store.
func (s *Storage) SetSettings(ctx context.Context, by policy.Change, settings *controlv1.PolicySettings) (uint64, error) {
	body, err := proto.Marshal(settings)
	if err != nil {
		return 0, fmt.Errorf("encode settings: %w", err)
	}
	var version int64
	err = s.write(ctx, store.Synced, func(ctx context.Context, q *db.Queries) error {
		if version, err = raise(ctx, q, by.Workspace); err != nil {
			return err
		}
		if _, err := q.UpdatePolicySettings(ctx, db.UpdatePolicySettingsParams{
			Workspace: by.Workspace, Settings: body,
		}); err != nil {
			return fmt.Errorf("update settings of policy: %w", err)
		}
		return audit(ctx, q, by.Workspace, by.At, &controlv1.AuditRecord{
			Kind: controlv1.AuditKind_AUDIT_KIND_SETTINGS_CHANGED, Actor: by.Actor, PolicyVersion: uint64(version),
			Settings: settings,
		})
	})
	return uint64(version), err
}
