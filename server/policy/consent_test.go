package policy_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/catalog/catalogtest"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/policy"
)

// TestWhatRequiresApprovalAsks: an argument that a person has to agree to asks on its own, and only a rule that names it
// allows it.
func TestWhatRequiresApprovalAsks(t *testing.T) {
	t.Parallel()
	const forced, unset, off = `{"tabIds":["a"],"force":true}`, `{"tabIds":["a"]}`, `{"tabIds":["a"],"force":false}`
	general := &controlv1.PolicyRule{Verdict: allow, Tool: "closeTabs"}
	for name, row := range map[string]struct {
		rules []*controlv1.PolicyRule
		args  string
		want  controlv1.Verdict
	}{
		"the option":                       {nil, forced, ask},
		"not set":                          {nil, unset, allow},
		"set to false":                     {nil, off, allow},
		"always allow the tool":            {[]*controlv1.PolicyRule{general}, forced, ask},
		"the same, not set":                {[]*controlv1.PolicyRule{general}, unset, allow},
		"allow anything from here":         {[]*controlv1.PolicyRule{{Verdict: allow, DeviceId: "laptop", Principal: "token", Origin: interactive, MaxTargets: 500}}, forced, ask},
		"allow other arguments":            {[]*controlv1.PolicyRule{{Verdict: allow, Tool: "closeTabs", Arguments: args("tabIds", "*")}}, forced, ask},
		"allow all ids as they are":        {[]*controlv1.PolicyRule{{Verdict: allow, Tool: "closeTabs", Arguments: args("tabIds[]", `["a"]`)}}, forced, ask},
		"allow where it is not set":        {[]*controlv1.PolicyRule{{Verdict: allow, Tool: "closeTabs", Arguments: args("force", "")}}, forced, ask},
		"allow where it is false":          {[]*controlv1.PolicyRule{{Verdict: allow, Tool: "closeTabs", Arguments: args("force", "false")}}, forced, ask},
		"allow it by name":                 {[]*controlv1.PolicyRule{{Verdict: allow, Tool: "closeTabs", Arguments: args("force", "true")}}, forced, allow},
		"allow it by name, whatever it is": {[]*controlv1.PolicyRule{{Verdict: allow, Tool: "closeTabs", Arguments: args("force", "*")}}, forced, allow},
		"a general allow that is better":   {[]*controlv1.PolicyRule{{Verdict: allow, Tool: "closeTabs", Arguments: args("force", "true")}, {Verdict: allow, Origin: interactive}}, forced, allow},
		"an ask above an allow by name":    {[]*controlv1.PolicyRule{{Verdict: allow, Tool: "closeTabs", Arguments: args("force", "true")}, {Verdict: ask, Origin: interactive}}, forced, ask},
		"deny":                             {[]*controlv1.PolicyRule{general, {Verdict: deny, Tool: "closeTabs", Arguments: args("force", "true")}}, forced, deny},
		"floor":                            {[]*controlv1.PolicyRule{{Verdict: allow, Tool: "closeTabs", Arguments: args("force", "true")}, {Verdict: deny, Floor: true, Group: "destructive"}}, forced, deny},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for _, r := range row.rules {
				b.add(r)
			}
			if d := b.decide(b.call("closeTabs", row.args, 1)); d.Verdict != row.want {
				t.Errorf("%+v, want %v", d, row.want)
			}
		})
	}
}

// TestExplainSaysThatAnArgumentAsks: whoever is asked, and whoever asks why, is told which argument it is.
func TestExplainSaysThatAnArgumentAsks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.add(&controlv1.PolicyRule{Verdict: allow, Tool: "closeTabs", MaxTargets: 100})
	d, steps := b.Explain(b.call("closeTabs", `{"tabIds":["a"],"force":true}`, 1))
	if d.Reason != "closeTabs asks a person whenever force is set" || len(steps) != 2 || steps[1].GetRuleId() != id || steps[1].GetMatched() ||
		steps[1].GetWhy() != "a person is asked whenever force is set, unless a pattern of the rule is for it" {
		t.Errorf("%+v, %v", d, steps)
	}
	if d := b.decide(b.call("closeTabs", `{"tabIds":["a"],"force":true}`, 21)); !strings.HasSuffix(d.Reason, "more than 20 at once; it has force set") {
		t.Errorf("many: %+v", d)
	}
	b.add(&controlv1.PolicyRule{Verdict: ask, Tool: "closeTabs", DeviceId: "laptop", Note: "mine"})
	if d := b.decide(b.call("closeTabs", `{"tabIds":["a"],"force":true}`, 1)); d.Reason != "closeTabs asks a person by a rule of the workspace: mine; it has force set" {
		t.Errorf("a rule: %+v", d)
	}
}

// TestARememberedDecisionKnowsWhatRequiresApproval: a decision about a call without it is none about one with it, and the
// other way round.
func TestARememberedDecisionKnowsWhatRequiresApproval(t *testing.T) {
	t.Parallel()
	const forced, plain = `{"tabIds":["a"],"force":true}`, `{"tabIds":["a"]}`
	b, _ := remembering(t, "closeTabs", plain, 1, nil)
	if d := b.decide(b.call("closeTabs", forced, 1)); d.Verdict != ask {
		t.Errorf("remembered without it: %+v", d)
	}
	b, _ = remembering(t, "closeTabs", plain, 1, &controlv1.Remember{Arguments: args("target.url", "*")}, "https://a/")
	if d := b.decide(b.call("closeTabs", forced, 1, "https://a/")); d.Verdict != ask {
		t.Errorf("remembered for all addresses: %+v", d)
	}
	b, _ = remembering(t, "closeTabs", forced, 1, nil)
	if d := b.decide(b.call("closeTabs", forced, 1)); d.Verdict != allow {
		t.Errorf("remembered with it: %+v", d)
	}
	if d := b.decide(b.call("closeTabs", plain, 1)); d.Verdict != ask {
		t.Errorf("remembered with it, asked without: %+v", d)
	}
}

// nested has arguments that ask in every place that a message may have.
const nested = `syntax = "proto3";
package throwbar.command.v1;
import "throwbar/option/v1/option.proto";
message BrewDrink {
  option (throwbar.option.v1.command) = { effect: EFFECT_REVERSIBLE approval: APPROVAL_AUTO };
  string name = 1;
  Risk one = 2;
  repeated Risk many = 3;
  map<string, Risk> named = 4;
  repeated bool flags = 5 [(throwbar.option.v1.requires_approval) = true];
  message Risk { bool hot = 1 [(throwbar.option.v1.requires_approval) = true]; Risk deeper = 2; string word = 3; }
  message Result {}
}`

func nestedBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	known, err := catalog.New(catalogtest.Image(t, catalogtest.Command{Name: "BrewDrink", Member: "brew_drink", Number: 900, Source: nested}))
	if err != nil {
		t.Fatal(err)
	}
	b.known = known
	b.restart()
	return b
}

func TestWhatRequiresApprovalAsksAtAnyDepth(t *testing.T) {
	t.Parallel()
	for text, path := range map[string]string{
		`{"one":{"hot":true}}`:                          "one.hot",
		`{"one":{"deeper":{"deeper":{"hot":true}}}}`:    "one.deeper.deeper.hot",
		`{"many":[{"word":"x"},{"hot":true}]}`:          "many.hot",
		`{"many":[{"deeper":{"hot":true}}]}`:            "many.deeper.hot",
		`{"flags":[false,true]}`:                        "flags",
		`{"named":{"a":{"word":"x"},"b":{"hot":true}}}`: "named.hot",
	} {
		b := nestedBench(t)
		b.add(&controlv1.PolicyRule{Verdict: allow, Tool: "brewDrink", Arguments: args("name", "*"), MaxTargets: 500})
		c := b.call("brewDrink", text, 1)
		if d := b.decide(c); d.Verdict != ask || !strings.Contains(d.Reason, path) {
			t.Errorf("%s: %+v", text, d)
		}
		r, err := b.Remembered(policy.Memory{Call: c, Decider: "owner", Approval: "ap"})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := b.Learned("w", r, 2); err != nil {
			t.Fatal(err)
		}
		if d := b.decide(c); d.Verdict != allow || d.Rule != r.GetRuleId() {
			t.Errorf("%s is remembered exactly: %+v", text, d)
		}
		if strings.HasPrefix(path, "named") { // no path leads into a map
			continue
		}
		b = nestedBench(t)
		b.add(&controlv1.PolicyRule{Verdict: allow, Tool: "brewDrink", Arguments: args(path, "*")})
		if d := b.decide(c); d.Verdict != allow {
			t.Errorf("%s by name: %+v", text, d)
		}
	}
	for _, text := range []string{`{}`, `{"one":{"hot":false,"deeper":{}}}`, `{"many":[{}],"flags":[false],"named":{"a":{}}}`} {
		b := nestedBench(t)
		if d := b.decide(b.call("brewDrink", text, 1)); d.Verdict != allow {
			t.Errorf("%s: %+v", text, d)
		}
	}
	b := nestedBench(t) // a shape for the whole list is no name
	b.add(&controlv1.PolicyRule{Verdict: allow, Tool: "brewDrink", Arguments: args("many[]", "*")})
	if d := b.decide(b.call("brewDrink", `{"many":[{"hot":true}]}`, 1)); d.Verdict != ask {
		t.Errorf("a star for the list: %+v", d)
	}
}

// TestRandomRulesNeverAllowWhatTheyDoNotName holds for any rules: where such an argument is set, only a rule that names it
// allows the call, and without rules of that kind what denies and asks is as it is without the argument.
func TestRandomRulesNeverAllowWhatTheyDoNotName(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	known := newBench(t).known // reading it takes longer than the rest
	for range 500 {
		b := &bench{store: &memory{states: map[string]*policy.State{}}, known: known, now: time.UnixMilli(1_700_000_000_000), tb: t}
		b.restart()
		rules := map[string]*controlv1.PolicyRule{}
		for range r.IntN(12) {
			rule := randomRule(r)
			if path := []string{"", "", "force", "tabIds"}[r.IntN(4)]; path != "" {
				rule.Tool, rule.Group = "closeTabs", ""
				rule.Arguments = args(path, []string{"true", "*", "", "false", "t*", "a"}[r.IntN(6)])
			}
			rules[b.add(rule)] = rule
		}
		n := 1 + r.IntN(60)
		forced := b.decide(b.call("closeTabs", `{"tabIds":["a"],"force":true}`, n))
		plain := b.decide(b.call("closeTabs", `{"tabIds":["a"]}`, n))
		named := func(rule *controlv1.PolicyRule) bool {
			return slices.ContainsFunc(rule.GetArguments(), func(a *controlv1.ArgumentPattern) bool { return a.GetPath() == "force" })
		}
		if forced.Verdict == allow && (forced.Rule == "" || !named(rules[forced.Rule])) {
			t.Fatalf("%+v by %v", forced, rules[forced.Rule])
		}
		if plain.Rule != "" && plain.Verdict == deny && !named(rules[plain.Rule]) && forced.Verdict == ask && !named(rules[forced.Rule]) {
			t.Fatalf("the argument lifts a denial: %+v became %+v", plain, forced)
		}
	}
}
