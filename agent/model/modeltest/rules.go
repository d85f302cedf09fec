package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Rule says how the model acts on what it is told. The regular expressions are all demanded; an empty one matches all.
type Rule struct {
	// Match is for the last thing that the person wrote.
	Match string
	// System is for the system messages, by which a test tells conversations and agents apart.
	System string
	// Last is for the last message, whoever it is from: also the result of a tool.
	Last string
	// Result is for the last result of a tool since the person wrote. There has to be one.
	Result string
	// Model is the name of the model that is asked.
	Model string
	// Needs is a tool that has to be offered, and Lacks one that must not be.
	Needs, Lacks string
	// Steps are taken one after the other until the person writes again; the last one is repeated. In the text and the
	// arguments of a Reply "{{user.1}}" is what the first group of Match matched, and {{system.1}}, {{last.1}} and
	// {{result.1}} are those of the others.
	Steps []Step
}

// Rules is a step that follows the first rule that matches. It keeps no state: which step of a rule is next is seen
// from the history, so that one server serves many conversations and survives restarts of the product.
func Rules(rules ...Rule) (Step, error) {
	var all []compiledRule
	for _, rule := range rules {
		c := compiledRule{Rule: rule, patterns: make(map[string]*regexp.Regexp)}
		for name, pattern := range map[string]string{
			"user": rule.Match, "system": rule.System, "last": rule.Last, "result": rule.Result,
		} {
			compiled, err := regexp.Compile(pattern)
			if err != nil {
				return nil, fmt.Errorf("compile rule: %w", err)
			}
			c.patterns[name] = compiled
		}
		if len(rule.Steps) == 0 {
			return nil, fmt.Errorf("rule %q has no steps", rule.Match)
		}
		all = append(all, c)
	}
	return Func(func(r *Received) Reply {
		for _, rule := range all {
			if groups, ok := rule.match(r); ok {
				return rule.Steps[min(r.Round(), len(rule.Steps)-1)].reply(r).insert(groups)
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

// compiledRule is a rule whose patterns are known by what they are for.
type compiledRule struct {
	Rule
	patterns map[string]*regexp.Regexp
}

// match says whether the rule is for a request, and what the groups of its patterns matched.
func (c compiledRule) match(r *Received) (map[string][]string, bool) {
	if c.Model != "" && c.Model != r.Model {
		return nil, false
	}
	if _, offered := r.Tool(c.Needs); c.Needs != "" && !offered {
		return nil, false
	}
	if _, offered := r.Tool(c.Lacks); c.Lacks != "" && offered {
		return nil, false
	}
	last, result := r.last(), r.resultSince()
	if c.Result != "" && result == nil {
		return nil, false
	}
	texts := map[string]string{"user": r.LastUser(), "system": r.System(), "last": last.Text}
	if result != nil {
		texts["result"] = result.Text
	}
	groups := make(map[string][]string)
	for name, pattern := range c.patterns {
		groups[name] = pattern.FindStringSubmatch(texts[name])
		if groups[name] == nil {
			return nil, false
		}
	}
	return groups, true
}

// last returns the last message.
func (r *Received) last() Message {
	if len(r.Messages) == 0 {
		return Message{}
	}
	return r.Messages[len(r.Messages)-1]
}

// resultSince returns the last result of a tool since the person wrote, nil if there is none.
func (r *Received) resultSince() *Message {
	for i := len(r.Messages) - 1; i > r.lastUser(); i-- {
		if r.Messages[i].Role == "tool" {
			return &r.Messages[i]
		}
	}
	return nil
}

// group is the placeholder of a group.
func group() *regexp.Regexp { return regexp.MustCompile(`\{\{(user|system|last|result)\.(\d+)\}\}`) }

// insert replaces the placeholders of groups in the text and the arguments.
func (r Reply) insert(groups map[string][]string) Reply {
	replace := func(text string, quote func(string) string) string {
		if !strings.Contains(text, "{{") {
			return text
		}
		return group().ReplaceAllStringFunc(text, func(found string) string {
			parts := group().FindStringSubmatch(found)
			n, err := strconv.Atoi(parts[2])
			if values := groups[parts[1]]; err == nil && n < len(values) {
				return quote(values[n])
			}
			return found
		})
	}
	r.Text = replace(r.Text, func(s string) string { return s })
	calls := make([]Call, len(r.Calls))
	for i, call := range r.Calls {
		call.Arguments = replace(call.Arguments, func(s string) string {
			quoted, _ := json.Marshal(s) // a string
			return string(quoted[1 : len(quoted)-1])
		})
		calls[i] = call
	}
	r.Calls = calls
	return r
}
