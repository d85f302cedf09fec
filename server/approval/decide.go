package approval

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/policy"
)

// Decide takes decisions, all in one transaction, each with its own outcome. The first decision on an approval wins; a
// later one is told what became of it.
func (d *Desk) Decide(
	ctx context.Context, who Decider, decisions []*controlv1.Decision,
) ([]*controlv1.DecisionOutcome, error) {
	changes := make([]*Change, len(decisions))
	errs := make([]error, len(decisions))
	seen := map[string]bool{}
	for i, decision := range decisions {
		if id := decision.GetApprovalId(); seen[id] {
			errs[i] = fault.New(fault.Invalid, "there is a decision on %s before this one", id)
			continue
		}
		seen[decision.GetApprovalId()] = true
		changes[i], errs[i] = d.change(ctx, who, decision)
		if errs[i] != nil && fault.CodeOf(errs[i]) == fault.Internal {
			return nil, errs[i]
		}
	}
	write := slices.DeleteFunc(slices.Clone(changes), func(c *Change) bool { return c == nil })
	if len(write) > 0 {
		err := d.Store.DecideApprovals(ctx, write)
		for _, c := range write {
			if c.Won && c.Rule != nil && err == nil {
				err = d.Rules.Learned(c.Approval.Workspace, c.Rule, c.Version)
			}
			d.Gate.Decided(c.Approval.ID) // also after an error: it may be written
		}
		if err != nil {
			return nil, err
		}
	}
	outcomes := make([]*controlv1.DecisionOutcome, len(decisions))
	for i, decision := range decisions {
		var err error
		if outcomes[i], err = d.outcome(ctx, who, decision, changes[i], errs[i]); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// outcome says what became of a decision.
func (d *Desk) outcome(
	ctx context.Context, who Decider, decision *controlv1.Decision, change *Change, refused error,
) (*controlv1.DecisionOutcome, error) {
	out := &controlv1.DecisionOutcome{}
	a, err := d.Store.GetApproval(ctx, who.Workspace, decision.GetApprovalId())
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		out.Error = fault.Command(err)
		return out, nil
	case err != nil:
		return nil, err
	}
	out.Approval = a.View(d.Catalogue, d.Device)
	switch {
	case refused != nil:
		out.Error = fault.Command(refused)
	case change.Note:
		out.Error = fault.Command(fault.New(fault.Refused, "it expired at %s, before anybody decided, and did not run. What you said is noted",
			a.DecidedAt.Format(time.RFC3339)))
	case !change.Won:
		out.Error = fault.Command(settled(&a, d.Now()))
	case change.Approval.State == Void:
		out.Error = fault.Command(fault.New(fault.Denied, "%s", change.Approval.DecisionReason))
	}
	return out, nil
}

// settled says why an approval cannot be decided any more.
func settled(a *Approval, now time.Time) error {
	when := a.DecidedAt.Format(time.RFC3339)
	switch a.State {
	case Pending:
		if !now.Before(a.ExpiresAt) {
			return fault.New(fault.Refused, "it expired at %s: ask again if it is still wanted", a.ExpiresAt.Format(time.RFC3339))
		}
		return fault.New(fault.Busy, "somebody else decides it just now: look again").Retry()
	case Approved:
		return fault.New(fault.Refused, "it was approved at %s by %s", when, a.DecidedBy)
	case Denied:
		return fault.New(fault.Refused, "it was denied at %s by %s", when, a.DecidedBy)
	case Expired:
		return fault.New(fault.Refused, "it expired at %s: ask again if it is still wanted", when)
	case Withdrawn:
		return fault.New(fault.Refused, "it was withdrawn at %s: nobody wants it any more", when)
	case Void:
		return fault.New(fault.Refused, "it does not count any more since %s: %s", when, a.DecisionReason)
	default:
		return fault.New(fault.Refused, "it is %s", a.State)
	}
}

// change is what a decision would make of its approval. An error is a fault that says why it does not count.
func (d *Desk) change(ctx context.Context, who Decider, decision *controlv1.Decision) (*Change, error) {
	a, err := d.Store.GetApproval(ctx, who.Workspace, decision.GetApprovalId())
	if err != nil {
		return nil, err
	}
	now := d.Now()
	a.DecidedBy, a.DecidedAt = who.Token, now
	deny, approve := decision.GetDeny(), decision.GetApprove()
	if deny != nil && a.State == Expired {
		return &Change{Approval: noted(a, deny.GetReason()), Note: true}, nil
	}
	if a.State != Pending || !now.Before(a.ExpiresAt) {
		stored, err := d.Store.GetApproval(ctx, who.Workspace, a.ID)
		if err != nil {
			return nil, err
		}
		return nil, settled(&stored, now)
	}
	if deny != nil {
		a.State, a.DecisionReason = Denied, deny.GetReason()
		return &Change{Approval: a}, nil
	}
	if a.Sum() != a.Hash { // whoever decides has seen something else, or would
		a.State, a.DecisionReason = Void, "what is written down is not what was asked"
		return &Change{Approval: a}, nil
	}
	if approve.GetHash() != a.Hash {
		return nil, fault.New(fault.Invalid, "the hash is not that of this approval as it is: look at it again before you approve it")
	}
	if !who.may(a.Principal) {
		return nil, fault.New(fault.Denied, "you asked for this yourself: an owner or another operator has to approve it")
	}
	return d.approve(ctx, a, approve)
}

func noted(a Approval, reason string) Approval {
	a.DecisionReason = "too late: no"
	if reason != "" {
		a.DecisionReason += ", " + reason
	}
	return a
}

// approve binds what whoever decides has seen, with their edits.
func (d *Desk) approve(ctx context.Context, a Approval, yes *controlv1.Approve) (*Change, error) {
	a.State, a.DecisionReason = Approved, yes.GetReason()
	edits := make(map[string]*commandv1.Action, len(yes.GetEdits()))
	for _, e := range yes.GetEdits() {
		if edits[e.GetCommandId()] != nil {
			return nil, fault.New(fault.Invalid, "there are two edits of %s", e.GetCommandId())
		}
		edits[e.GetCommandId()] = e.GetAction()
	}
	version, first := uint64(0), true
	var last Review
	for i := range a.Calls {
		c := &a.Calls[i]
		edit := edits[c.Command]
		delete(edits, c.Command)
		reviewed, err := d.review(ctx, &a, c, edit)
		if edit == nil && fault.CodeOf(err) == fault.Denied {
			a.State, a.DecisionReason = Void, "policy denies it now: "+fault.Command(err).GetMessage()
			return &Change{Approval: a}, nil
		}
		if err != nil && (edit != nil || fault.CodeOf(err) == fault.Internal) {
			return nil, err
		}
		last = reviewed
		if v := reviewed.Decision.Version; first || v < version {
			version, first = v, false
		}
	}
	for id := range edits {
		return nil, fault.New(fault.Invalid, "%s is no command of this approval", id)
	}
	change := &Change{Approval: a}
	change.Approval.Version = version
	if want := yes.GetRemember(); want != nil {
		if err := d.remember(change, last, want); err != nil {
			return nil, err
		}
	}
	change.Approval.Bound = change.Approval.Sum()
	return change, nil
}

// review settles what a call is to run, and holds it against what is now. What stops a call that was not edited, but for
// policy, is found when it is to start.
func (d *Desk) review(ctx context.Context, a *Approval, c *Call, edit *commandv1.Action) (Review, error) {
	if edit == nil {
		c.Effective = c.Proposed
		return d.Gate.Review(ctx, a, c, c.Proposed)
	}
	raw, err := edited(d.Catalogue, c.Proposed, edit)
	if err != nil {
		return Review{}, err
	}
	reviewed, err := d.Gate.Review(ctx, a, c, raw)
	switch {
	case fault.CodeOf(err) == fault.Internal && err != nil:
		return Review{}, err
	case err != nil:
		return Review{}, fault.New(fault.CodeOf(err), "the edit of %s cannot run: %s", c.Command, fault.Command(err).GetMessage())
	}
	c.Edited, c.Effective, c.Targets = reviewed.Action, reviewed.Action, reviewed.Targets
	return reviewed, nil
}

// edited is an edit, encoded, with the sensitive fields of what was proposed: nobody was shown those.
func edited(cat *catalog.Catalogue, proposed []byte, edit *commandv1.Action) ([]byte, error) {
	was := &commandv1.Action{}
	if err := proto.Unmarshal(proposed, was); err != nil {
		return nil, fault.Wrap(fault.Failed, err, "what was proposed cannot be read")
	}
	entry, err := cat.ByAction(was)
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, err, "this server does not know the command any more")
	}
	if other, err := cat.ByAction(edit); err != nil || other != entry {
		return nil, fault.New(fault.Invalid, "an edit is the same command with other arguments: %s", entry.Name)
	}
	from, err := entry.Body(was)
	if err != nil {
		return nil, fault.Wrap(fault.Failed, err, "what was proposed cannot be read")
	}
	to, err := entry.Body(edit)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the arguments of the edit cannot be read")
	}
	to = proto.Clone(to.Interface()).ProtoReflect()
	keepHidden(to, from)
	action, err := entry.Wrap(to.Interface())
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the arguments of the edit cannot be encoded")
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(action)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the edit cannot be encoded")
	}
	return raw, nil
}

// remember makes the rule of a decision.
func (d *Desk) remember(change *Change, reviewed Review, want *controlv1.Remember) error {
	a := &change.Approval
	switch {
	case d.Rules == nil:
		return fault.New(fault.Unsupported, "this server cannot remember decisions")
	case len(a.Calls) != 1:
		return fault.New(fault.Invalid, "only a decision on one call can be remembered: this approval has %d", len(a.Calls))
	}
	if reviewed.Call.Entry == nil {
		return fault.New(fault.Refused, "this call cannot run now, so it cannot be remembered")
	}
	rule, err := d.Rules.Remembered(policy.Memory{Call: reviewed.Call, Decider: a.DecidedBy, Approval: a.ID, Ask: want})
	if err != nil {
		return err
	}
	change.Rule, a.Remembered = rule, rule.GetRuleId()
	return nil
}
