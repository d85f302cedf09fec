package policy

import (
	"slices"
	"strings"
	"time"

	"throwbar.dev/throwbar/catalog"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/fault"
)

// check says what is wrong with a rule that somebody wants to add.
func (b *Book) check(workspace string, r *controlv1.PolicyRule, now time.Time) error {
	about, err := b.about(r)
	if err != nil {
		return err
	}
	switch verdict := r.GetVerdict(); {
	case verdict < controlv1.Verdict_VERDICT_ALLOW || verdict > controlv1.Verdict_VERDICT_DENY:
		return fault.New(fault.Invalid, "a rule allows, asks or denies: say which")
	case r.GetFloor() && verdict != controlv1.Verdict_VERDICT_DENY:
		return fault.New(fault.Invalid, "only a rule that denies can be a floor")
	case r.GetMaxTargets() > 0 && verdict != controlv1.Verdict_VERDICT_ALLOW:
		return fault.New(fault.Invalid, "only a rule that allows has a largest number of targets")
	case r.GetTool() != "" && about[0].Command == nil && verdict == controlv1.Verdict_VERDICT_ASK:
		what := "a query"
		if about[0].Facility != nil {
			what = "something that an agent itself does"
		}
		return fault.New(fault.Invalid, "%s is %s, which cannot wait for a person: allow or deny it", about[0].Name, what)
	case r.GetExpiresAt() != nil && !r.GetExpiresAt().AsTime().After(now):
		return fault.New(fault.Invalid, "the rule would have expired already: say a time to come")
	}
	if r.GetDeviceId() != "" {
		if err := b.cfg.Known(workspace, r.GetDeviceId()); err != nil {
			return err
		}
	}
	for _, a := range r.GetArguments() {
		if err := checkArgument(a, about); err != nil {
			return err
		}
	}
	return nil
}

// about are the commands, queries and facilities that a rule may be about.
func (b *Book) about(r *controlv1.PolicyRule) ([]*catalog.Entry, error) {
	all := slices.Concat(b.cfg.Catalogue.Commands(), b.cfg.Catalogue.Queries(), b.cfg.Catalogue.Facilities())
	if r.GetTool() != "" {
		if r.GetGroup() != "" {
			return nil, fault.New(fault.Invalid, "a rule is about a tool or a group, not both")
		}
		e, ok := b.cfg.Catalogue.Lookup(r.GetTool())
		if !ok {
			var names []string
			for _, e := range all {
				names = append(names, e.Name)
			}
			return nil, fault.New(fault.Invalid, "there is no tool %q; near it: %s", r.GetTool(), nearest(r.GetTool(), names))
		}
		return []*catalog.Entry{e}, nil
	}
	if r.GetGroup() == "" {
		return all, nil
	}
	var in []*catalog.Entry
	groups := []string{groupRead, groupReversible, groupDestructive}
	for _, e := range all {
		groups = append(groups, e.Family)
		if e.Family == r.GetGroup() || effect(e) == r.GetGroup() {
			in = append(in, e)
		}
	}
	if len(in) == 0 {
		return nil, fault.New(fault.Invalid, "there is no group %q; near it: %s", r.GetGroup(), nearest(r.GetGroup(), groups))
	}
	return in, nil
}

func checkArgument(a *controlv1.ArgumentPattern, about []*catalog.Entry) error {
	arg, err := parseArgument(a.GetPath(), a.GetPattern())
	if err != nil {
		return fault.New(fault.Invalid, "pattern for %s: %v", a.GetPath(), err)
	}
	if a.GetPath() == targetURL {
		return nil
	}
	found := false
	for _, e := range about {
		if reaches(e.In, arg.steps, arg.whole) {
			found = true
			// A rule is shown, kept and audited: no secret goes into one.
			if hides(e.In, arg.steps) && a.GetPattern() != "" && a.GetPattern() != "*" {
				return fault.New(fault.Invalid, "%s is sensitive: a rule can only ask that it is not set", a.GetPath())
			}
		}
	}
	if !found && len(about) == 1 {
		return fault.New(fault.Invalid, "%s has no argument %q; near it: %s", about[0].Name, a.GetPath(),
			nearest(a.GetPath(), paths(about[0])))
	}
	if !found {
		return fault.New(fault.Invalid, "nothing that the rule is about has an argument %q", a.GetPath())
	}
	return nil
}

// paths are the arguments of a command that a person would name.
func paths(e *catalog.Entry) []string {
	out := []string{targetURL}
	for i := range e.In.Fields().Len() {
		out = append(out, e.In.Fields().Get(i).JSONName())
	}
	return out
}

// nearest are the three names most like one, the most like first.
func nearest(name string, among []string) string {
	among = slices.Clone(among)
	slices.Sort(among)
	among = slices.Compact(among)
	slices.SortStableFunc(among, func(a, b string) int { return distance(name, a) - distance(name, b) })
	return strings.Join(among[:min(3, len(among))], ", ")
}

// distance is how many letters have to be put in, left out or changed to make one name of another, whatever their case.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
