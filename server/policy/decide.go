package policy

import (
	"fmt"
	"strings"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// lists are the rules that may be about a call: by tool, family and effect, and those about anything.
func (s *space) lists(c *Call) [4][]*rule {
	if s == nil || len(s.rules) == 0 {
		return [4][]*rule{}
	}
	return [4][]*rule{
		s.about[""], s.about[groupKey(effect(c.Entry))], s.about[groupKey(c.Entry.Family)], s.about[c.Entry.Name],
	}
}

// Decide says whether a call may run.
func (b *Book) Decide(c Call) Decision {
	s := b.space(c.Workspace)
	var best *rule
	l := lookup{Call: &c}
	for _, list := range s.lists(&c) {
		if len(list) > 0 && l.now.IsZero() {
			l.now = b.cfg.Now()
		}
		for i := len(list) - 1; i >= 0; i-- { // the first that covers the call is the best of its list
			if best != nil && list[i].before(best) < 0 {
				break
			}
			if ok, _ := list[i].covers(&l); ok {
				best = list[i]
				break
			}
		}
	}
	return s.decision(&c, best)
}

func (s *space) decision(c *Call, best *rule) Decision {
	d := Option(*c)
	if best != nil {
		d = Decision{Verdict: best.GetVerdict(), Rule: best.GetRuleId(), Reason: best.reason(c)}
	}
	if s != nil {
		d.Version = s.version
	}
	return d
}

// reason says what a rule makes of a call, in words.
func (r *rule) reason(c *Call) string {
	does := " is denied by "
	switch r.GetVerdict() {
	case controlv1.Verdict_VERDICT_ALLOW:
		does = " is allowed by "
	case controlv1.Verdict_VERDICT_ASK:
		does = " asks a person by "
	default:
	}
	out := c.Entry.Name + does + placed(layer(r.PolicyRule))
	if r.GetNote() != "" {
		out += ": " + r.GetNote()
	}
	if r.GetVerdict() == controlv1.Verdict_VERDICT_ASK {
		out += alsoSet(c.Entry.ConsentsIn(c.Args))
	}
	return out
}

func placed(l controlv1.Layer) string {
	switch l {
	case controlv1.Layer_LAYER_FLOOR:
		return "a floor, which no other rule lifts"
	case controlv1.Layer_LAYER_ORIGIN:
		return "a rule for where it comes from"
	case controlv1.Layer_LAYER_CONVERSATION:
		return "a rule of this conversation"
	default:
		return "a rule of the workspace"
	}
}

// Explain is Decide with what was looked at, in order: the last step that matched is the one that decided.
func (b *Book) Explain(c Call) (Decision, []*controlv1.PolicyStep) {
	s := b.space(c.Workspace)
	option := Option(c)
	steps := []*controlv1.PolicyStep{{
		Layer: controlv1.Layer_LAYER_OPTION, Verdict: option.Verdict, Matched: true, Why: option.Reason,
	}}
	var all []*rule
	for _, list := range s.lists(&c) {
		all = append(all, list...)
	}
	sortRules(all)
	l := lookup{Call: &c, now: b.cfg.Now()}
	var best *rule
	for _, r := range all {
		ok, not := r.covers(&l)
		step := &controlv1.PolicyStep{
			Layer: layer(r.PolicyRule), RuleId: r.GetRuleId(), Verdict: r.GetVerdict(), Matched: ok, Why: not.words(&c),
		}
		if ok {
			best = r
			step.Why = "it is about " + r.subject()
		}
		steps = append(steps, step)
	}
	return s.decision(&c, best), steps
}

func (m mismatch) words(c *Call) string {
	switch {
	case m.most > 0:
		return fmt.Sprintf("it covers %d targets, and this is about %d", m.most, c.count())
	case m.path != "":
		return "its pattern for " + m.path + " does not cover this command"
	default:
		return m.what
	}
}

// subject is what a rule is about, in words, without its patterns.
func (r *rule) subject() string {
	var parts []string
	switch {
	case r.GetTool() != "":
		parts = append(parts, r.GetTool())
	case r.GetGroup() != "":
		parts = append(parts, "the group "+r.GetGroup())
	default:
		parts = append(parts, "anything")
	}
	for _, a := range r.args {
		parts = append(parts, a.path)
	}
	if r.GetDeviceId() != "" {
		parts = append(parts, "this device")
	}
	if r.GetPrincipal() != "" {
		parts = append(parts, "this caller")
	}
	if r.GetConversationId() != "" {
		parts = append(parts, "this conversation")
	}
	if r.GetOrigin() != controlv1.Origin_ORIGIN_UNSPECIFIED {
		parts = append(parts, "where it comes from")
	}
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return parts[0]
}
