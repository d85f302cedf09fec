package modeltest

import (
	"fmt"
	"regexp"
)

// Rule says how the model acts on what a person wrote.
type Rule struct {
	// Match is a regular expression for the last thing that the person wrote; empty matches all.
	Match string
	// Steps are taken one after the other until the person writes again; the last one is repeated.
	Steps []Step
}

// Rules is a step that follows the first rule that matches. It keeps no state: which step of a rule is next is seen
// from the history, so that one server serves many conversations and survives restarts of the product.
func Rules(rules ...Rule) (Step, error) {
	type compiled struct {
		match *regexp.Regexp
		steps []Step
	}
	var all []compiled
	for _, rule := range rules {
		match, err := regexp.Compile(rule.Match)
		if err != nil {
			return nil, fmt.Errorf("compile rule: %w", err)
		}
		if len(rule.Steps) == 0 {
			return nil, fmt.Errorf("rule %q has no steps", rule.Match)
		}
		all = append(all, compiled{match: match, steps: rule.Steps})
	}
	return Func(func(r *Received) Reply {
		for _, rule := range all {
			if rule.match.MatchString(r.LastUser()) {
				return rule.steps[min(r.Round(), len(rule.steps)-1)].reply(r)
			}
		}
		return Text("I have no rule for this: " + r.LastUser())
	}), nil
}

// MustRules is Rules for rules that are written down in a test.
func MustRules(rules ...Rule) Step {
	step, err := Rules(rules...)
	if err != nil {
		panic(err)
	}
	return step
}
