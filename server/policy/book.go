package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/catalog"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/fault"
)

const (
	// MaxRules is how many rules a workspace may have.
	MaxRules = 1000
	// DefaultWithin is how long a person has to decide where the settings do not say.
	DefaultWithin = 72 * time.Hour
)

// TooMany is the fault of a rule that has no room.
func TooMany() error {
	return fault.New(fault.Invalid, "there are %d rules, which is the most: remove some first", MaxRules)
}

// Config is what a Book is made of.
type Config struct {
	Store     Store
	Catalogue *catalog.Catalogue
	// Known is a fault NotFound for a device that the workspace does not have.
	Known func(workspace, device string) error
	Now   func() time.Time
	NewID func() string
}

// Book has the rules and settings of all workspaces. It is read from the store once and then kept in step with it.
type Book struct {
	cfg Config

	changing sync.Mutex // held while something is written, so that the book changes in the store's order

	mu     sync.RWMutex
	spaces map[string]*space // guarded by mu; what it points at never changes
}

// space is the policy of a workspace.
type space struct {
	version  uint64
	settings *controlv1.PolicySettings // with defaults
	rules    []*rule                   // in the order in which they were made
	about    map[string][]*rule        // by the tool or group that they are about, "" for any, in the order of before
}

// New reads the stored policies.
func New(ctx context.Context, cfg Config) (*Book, error) {
	b := &Book{cfg: cfg}
	return b, b.read(ctx)
}

func (b *Book) read(ctx context.Context) error {
	stored, err := b.cfg.Store.Policies(ctx)
	if err != nil {
		return err
	}
	spaces := make(map[string]*space, len(stored))
	for _, state := range stored {
		var rules []*rule
		for n, r := range state.Rules {
			compiled, err := compile(r, uint64(n)) // they are in order; what is added later has a higher version
			if err != nil {
				return fmt.Errorf("read rule %s: %w", r.GetRuleId(), err)
			}
			rules = append(rules, compiled)
		}
		spaces[state.Workspace] = newSpace(state.Version, filled(state.Settings), rules)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spaces = spaces
	return nil
}

func newSpace(version uint64, settings *controlv1.PolicySettings, rules []*rule) *space {
	s := &space{version: version, settings: settings, rules: rules, about: map[string][]*rule{}}
	for _, r := range rules {
		key := r.GetTool()
		if key == "" {
			key = groupKey(r.GetGroup())
		}
		s.about[key] = append(s.about[key], r)
	}
	for _, list := range s.about {
		sortRules(list)
	}
	return s
}

// groupKey keeps the groups apart from the tools, which may be called the same.
func groupKey(group string) string {
	if group == "" {
		return ""
	}
	return "/" + group
}

// filled are settings with defaults.
func filled(s *controlv1.PolicySettings) *controlv1.PolicySettings {
	out := &controlv1.PolicySettings{}
	proto.Merge(out, s)
	if out.GetApprovalWithin() == nil {
		out.ApprovalWithin = durationpb.New(DefaultWithin)
	}
	if out.GetInteractive() == controlv1.Unreachable_UNREACHABLE_UNSPECIFIED {
		out.Interactive = controlv1.Unreachable_UNREACHABLE_WAIT
	}
	if out.GetBackground() == controlv1.Unreachable_UNREACHABLE_UNSPECIFIED {
		out.Background = controlv1.Unreachable_UNREACHABLE_REFUSE
	}
	return out
}

// space is the policy of a workspace; nil if it never had one.
func (b *Book) space(workspace string) *space {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.spaces[workspace]
}

// Get is the whole policy of a workspace.
func (b *Book) Get(workspace string) *controlv1.GetPolicyResponse {
	s := b.space(workspace)
	if s == nil {
		return &controlv1.GetPolicyResponse{Settings: filled(nil)}
	}
	out := &controlv1.GetPolicyResponse{Version: s.version, Settings: proto.CloneOf(s.settings)}
	for _, r := range s.rules {
		out.Rules = append(out.Rules, proto.CloneOf(r.PolicyRule))
	}
	return out
}

// Settings are the settings of a workspace's approvals, with defaults.
func (b *Book) Settings(workspace string) *controlv1.PolicySettings {
	if s := b.space(workspace); s != nil {
		return proto.CloneOf(s.settings)
	}
	return filled(nil)
}

// Version is the version of a workspace's policy; zero before its first change.
func (b *Book) Version(workspace string) uint64 {
	if s := b.space(workspace); s != nil {
		return s.version
	}
	return 0
}

// Add checks a rule, adds it and gives it as it is now. It counts from the next command on.
func (b *Book) Add(ctx context.Context, workspace, actor string, asked *controlv1.PolicyRule) (*controlv1.PolicyRule, uint64, error) {
	now := b.cfg.Now()
	r := proto.CloneOf(asked)
	if e, ok := b.cfg.Catalogue.Lookup(r.GetTool()); ok {
		r.Tool = e.Name // for an older name
	}
	if err := b.check(workspace, r, now); err != nil {
		return nil, 0, err
	}
	r.RuleId, r.CreatedAt, r.CreatedBy, r.ApprovalId = b.cfg.NewID(), timestamppb.New(now), actor, ""
	b.changing.Lock()
	defer b.changing.Unlock()
	version, err := b.cfg.Store.AddRule(ctx, Change{Workspace: workspace, Actor: actor, At: now}, r)
	if err != nil {
		return nil, 0, b.afterFault(ctx, err)
	}
	return proto.CloneOf(r), version, b.learn(workspace, r, version)
}

// Learned takes a rule that somebody else's transaction has stored, with the version that it made.
func (b *Book) Learned(workspace string, r *controlv1.PolicyRule, version uint64) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	return b.learn(workspace, proto.CloneOf(r), version)
}

// learn adds a stored rule. Changing is held.
func (b *Book) learn(workspace string, r *controlv1.PolicyRule, version uint64) error {
	compiled, err := compile(r, version)
	if err != nil {
		return fmt.Errorf("take up rule %s: %w", r.GetRuleId(), err)
	}
	b.change(workspace, version, func(settings *controlv1.PolicySettings, rules []*rule) (*controlv1.PolicySettings, []*rule) {
		if slices.ContainsFunc(rules, func(other *rule) bool { return other.GetRuleId() == r.GetRuleId() }) {
			return settings, rules // it was read from the store meanwhile
		}
		return settings, append(slices.Clip(rules), compiled)
	})
	return nil
}

// change puts a new policy in the place of a workspace's.
func (b *Book) change(
	workspace string, version uint64,
	to func(*controlv1.PolicySettings, []*rule) (*controlv1.PolicySettings, []*rule),
) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.spaces[workspace]
	if old == nil {
		old = &space{settings: filled(nil)}
	}
	settings, rules := to(old.settings, old.rules)
	b.spaces[workspace] = newSpace(max(version, old.version), settings, rules)
}

// Remove removes a rule.
func (b *Book) Remove(ctx context.Context, workspace, actor, id string) (uint64, error) {
	b.changing.Lock()
	defer b.changing.Unlock()
	is := func(r *rule) bool { return r.GetRuleId() == id }
	s := b.space(workspace)
	if s == nil || !slices.ContainsFunc(s.rules, is) {
		return 0, fault.New(fault.NotFound, "there is no rule %q: list the policy to see those there are", id)
	}
	r := s.rules[slices.IndexFunc(s.rules, is)]
	version, err := b.cfg.Store.RemoveRule(ctx, Change{Workspace: workspace, Actor: actor, At: b.cfg.Now()}, r.PolicyRule)
	if err != nil {
		return 0, b.afterFault(ctx, err)
	}
	b.change(workspace, version, func(settings *controlv1.PolicySettings, rules []*rule) (*controlv1.PolicySettings, []*rule) {
		return settings, slices.DeleteFunc(slices.Clone(rules), is)
	})
	return version, nil
}

// Set changes the settings, all of them, and gives them with defaults.
func (b *Book) Set(
	ctx context.Context, workspace, actor string, settings *controlv1.PolicySettings,
) (*controlv1.PolicySettings, uint64, error) {
	b.changing.Lock()
	defer b.changing.Unlock()
	version, err := b.cfg.Store.SetSettings(ctx, Change{Workspace: workspace, Actor: actor, At: b.cfg.Now()}, settings)
	if err != nil {
		return nil, 0, b.afterFault(ctx, err)
	}
	full := filled(settings)
	b.change(workspace, version, func(_ *controlv1.PolicySettings, rules []*rule) (*controlv1.PolicySettings, []*rule) {
		return full, rules
	})
	return proto.CloneOf(full), version, nil
}

// afterFault reads the store again after a write of which nobody knows whether it is there.
func (b *Book) afterFault(ctx context.Context, err error) error {
	if fault.CodeOf(err) != fault.Interrupted {
		return err
	}
	return errors.Join(err, b.read(ctx))
}
