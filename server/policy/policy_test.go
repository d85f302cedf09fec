package policy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/policy"
)

func TestLayersAndExactness(t *testing.T) {
	t.Parallel()
	openTab := `{"url":"https://a.example/x"}`
	for name, row := range map[string]struct {
		rules []*controlv1.PolicyRule
		want  controlv1.Verdict
	}{
		"none":                        {nil, allow},
		"workspace over option":       {[]*controlv1.PolicyRule{{Verdict: deny}}, deny},
		"conversation over workspace": {[]*controlv1.PolicyRule{{Verdict: deny, Tool: "openTab"}, {Verdict: allow, ConversationId: "chat"}}, allow},
		"another conversation":        {[]*controlv1.PolicyRule{{Verdict: deny, ConversationId: "other"}}, allow},
		"origin over conversation":    {[]*controlv1.PolicyRule{{Verdict: deny, ConversationId: "chat", Tool: "openTab"}, {Verdict: ask, Origin: interactive}}, ask},
		"another origin":              {[]*controlv1.PolicyRule{{Verdict: deny, Origin: background}}, allow},
		"floor over all":              {[]*controlv1.PolicyRule{{Verdict: deny, Floor: true}, {Verdict: allow, Origin: interactive, ConversationId: "chat", Tool: "openTab", DeviceId: "laptop", Arguments: args("url", "*")}}, deny},
		"tool over group":             {[]*controlv1.PolicyRule{{Verdict: allow, Tool: "openTab"}, {Verdict: deny, Group: "tabs"}}, allow},
		"group over anything":         {[]*controlv1.PolicyRule{{Verdict: allow, Group: "reversible"}, {Verdict: deny}}, allow},
		"device over tool":            {[]*controlv1.PolicyRule{{Verdict: allow, DeviceId: "laptop"}, {Verdict: deny, Tool: "openTab"}}, allow},
		"another device":              {[]*controlv1.PolicyRule{{Verdict: deny, DeviceId: "work"}}, allow},
		"principal over tool":         {[]*controlv1.PolicyRule{{Verdict: allow, Principal: "token"}, {Verdict: deny, Tool: "openTab"}}, allow},
		"conversation as principal":   {[]*controlv1.PolicyRule{{Verdict: deny, Principal: "chat"}}, deny},
		"another principal":           {[]*controlv1.PolicyRule{{Verdict: deny, Principal: "other"}}, allow},
		"arguments over device, tool": {[]*controlv1.PolicyRule{{Verdict: allow, Arguments: args("url", "https://a.example/*")}, {Verdict: deny, Tool: "openTab", DeviceId: "laptop", Principal: "token"}}, allow},
		"of two alike the stricter":   {[]*controlv1.PolicyRule{{Verdict: deny, Tool: "openTab"}, {Verdict: ask, Tool: "openTab"}, {Verdict: allow, Tool: "openTab"}}, deny},
		"ask is stricter than allow":  {[]*controlv1.PolicyRule{{Verdict: ask, Group: "tabs"}, {Verdict: allow, Group: "reversible"}}, ask},
		"one pattern does not hold":   {[]*controlv1.PolicyRule{{Verdict: deny, Arguments: args("url", "https://a.example/*", "windowId", "w*")}}, allow},
		"empty pattern: not set":      {[]*controlv1.PolicyRule{{Verdict: deny, Arguments: args("windowId", "")}}, deny},
		"empty pattern: set":          {[]*controlv1.PolicyRule{{Verdict: deny, Arguments: args("url", "")}}, allow},
		"an argument of another tool": {[]*controlv1.PolicyRule{{Verdict: deny, Group: "tabs", Arguments: args("tabIds", "*")}}, allow},
		"a tool of another name":      {[]*controlv1.PolicyRule{{Verdict: deny, Tool: "closeTabs"}}, allow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for _, r := range row.rules {
				b.add(r)
			}
			if d := b.decide(b.call("openTab", openTab, 0)); d.Verdict != row.want {
				t.Errorf("%+v, want %v", d, row.want)
			}
			b.restart() // the same from the store
			if d := b.decide(b.call("openTab", openTab, 0)); d.Verdict != row.want || d.Version != uint64(len(row.rules)) {
				t.Errorf("after a restart %+v, want %v", d, row.want)
			}
		})
	}
}

func TestAllowCoversOnlySoManyTargets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e, _ := b.known.Lookup("closeTabs")
	most := e.MaxTargets()
	check := func(targets int, want controlv1.Verdict) {
		t.Helper()
		if d := b.decide(b.call("closeTabs", `{}`, targets)); d.Verdict != want {
			t.Errorf("%d targets: %+v, want %v", targets, d, want)
		}
	}
	check(most, allow)
	check(most+1, ask)
	b.add(&controlv1.PolicyRule{Verdict: allow, Tool: "closeTabs"})
	check(most, allow)
	check(most+1, ask) // a rule without a number does not lift the threshold
	b.add(&controlv1.PolicyRule{Verdict: allow, Tool: "closeTabs", DeviceId: "laptop", MaxTargets: 100})
	check(100, allow)
	check(101, ask)
	b.add(&controlv1.PolicyRule{Verdict: deny, Tool: "closeTabs", DeviceId: "laptop", Principal: "token"})
	check(1, deny)
}

func TestPatternsOverLists(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		verdict       controlv1.Verdict
		path, pattern string
		tabs          string
		urls          []string
		matches       bool
	}{
		{deny, "tabIds", "a*", `["a1","b1"]`, nil, true},
		{deny, "tabIds", "c*", `["a1","b1"]`, nil, false},
		{allow, "tabIds", "a*", `["a1","b1"]`, nil, false},
		{allow, "tabIds", "a*", `["a1","a2"]`, nil, true},
		{allow, "tabIds", "a*", `[]`, nil, false}, // of nothing no pattern holds
		{allow, "tabIds", "", `[]`, nil, true},
		{allow, "tabIds[]", `["a1","b1"]`, `["a1","b1"]`, nil, true},
		{allow, "tabIds[]", `["a1"]`, `["a1","b1"]`, nil, false},
		{allow, "target.url", "https://a/*", `["a1","a2"]`, []string{"https://a/1", "https://a/2"}, true},
		{allow, "target.url", "https://a/*", `["a1","a2"]`, []string{"https://a/1", "https://b/2"}, false},
		{allow, "target.url", "https://a/*", `["a1","a2"]`, []string{"https://a/1"}, false}, // one is not known
		{allow, "target.url", "https://a/*", `[]`, nil, false},
		{deny, "target.url", "https://b/*", `["a1","a2"]`, []string{"https://a/1", "https://b/2"}, true},
		{deny, "target.url", "https://c/*", `["a1","a2"]`, []string{"https://a/1", "https://b/2"}, false},
	} {
		b := newBench(t)
		if row.verdict == allow {
			b.add(&controlv1.PolicyRule{Verdict: deny, Tool: "closeTabs"})
		}
		b.add(&controlv1.PolicyRule{Verdict: row.verdict, Tool: "closeTabs", Arguments: args(row.path, row.pattern)})
		c := b.call("closeTabs", `{"tabIds":`+row.tabs+`}`, strings.Count(row.tabs, `"`)/2, row.urls...)
		if d := b.decide(c); (d.Verdict == row.verdict) != row.matches {
			t.Errorf("%v %s=%s on %s, %v: %+v", row.verdict, row.path, row.pattern, row.tabs, row.urls, d)
		}
	}
}

func TestExpiredRulesDoNotCount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(&controlv1.PolicyRule{Verdict: deny, ExpiresAt: timestamppb.New(b.now.Add(time.Hour))})
	c := b.call("openTab", `{"url":"https://a/"}`, 0)
	if d := b.decide(c); d.Verdict != deny {
		t.Errorf("before: %+v", d)
	}
	b.now = b.now.Add(time.Hour)
	if d := b.decide(c); d.Verdict != allow {
		t.Errorf("after: %+v", d)
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.call("listTabs", `{}`, 0)
	if d := b.decide(c); d.Verdict != allow {
		t.Errorf("without rules: %+v", d)
	}
	b.add(&controlv1.PolicyRule{Verdict: ask, Group: "read"}) // a query cannot wait for a person
	if d := b.decide(c); d.Verdict != allow {
		t.Errorf("ask: %+v", d)
	}
	b.add(&controlv1.PolicyRule{Verdict: deny, Tool: "listTabs", ConversationId: "chat"})
	if d := b.decide(c); d.Verdict != deny {
		t.Errorf("deny: %+v", d)
	}
}

func TestRulesThatAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for text, r := range map[string]*controlv1.PolicyRule{
		"near it: closeTabs":            {Verdict: deny, Tool: "closeTabz"},
		"near it: tabs":                 {Verdict: deny, Group: "tab"},
		"a tool or a group, not both":   {Verdict: deny, Tool: "openTab", Group: "tabs"},
		`no argument "uri"; near it: u`: {Verdict: deny, Tool: "openTab", Arguments: args("uri", "x")},
		"nothing that the rule":         {Verdict: deny, Group: "tabs", Arguments: args("no.such", "x")},
		"no argument \"url[]\"":         {Verdict: deny, Tool: "openTab", Arguments: args("url[]", "x")},
		"only a rule that denies":       {Verdict: ask, Floor: true},
		"only a rule that allows":       {Verdict: deny, MaxTargets: 3},
		"cannot wait for a person":      {Verdict: ask, Tool: "listTabs"},
		"expired already":               {Verdict: deny, ExpiresAt: timestamppb.New(b.now)},
		"no device foreign":             {Verdict: deny, DeviceId: "foreign"},
		`stands before * or another \`:  {Verdict: deny, Tool: "openTab", Arguments: args("url", `a\b`)},
		"say which":                     {},
	} {
		_, _, err := b.Add(t.Context(), "w", "owner", r)
		want := fault.Invalid
		if r.GetDeviceId() != "" {
			want = fault.NotFound
		}
		if fault.CodeOf(err) != want || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v, want %q", r, err, text)
		}
	}
	if got := b.Get("w"); got.GetVersion() != 0 || len(got.GetRules()) != 0 {
		t.Errorf("kept %v", got)
	}
}

func TestWhatTheCallerClaimsOfARuleDoesNotCount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	out, _, err := b.Add(t.Context(), "w", "owner", &controlv1.PolicyRule{
		RuleId: "mine", CreatedBy: "somebody", ApprovalId: "a", CreatedAt: timestamppb.New(time.Unix(1, 0)), Verdict: deny, Tool: "tabClose",
	})
	if err != nil || out.GetRuleId() == "mine" || out.GetCreatedBy() != "owner" || out.GetApprovalId() != "" ||
		!out.GetCreatedAt().AsTime().Equal(b.now) || out.GetTool() != "closeTabs" {
		t.Errorf("%v, %v", out, err)
	}
}

func TestAWriteThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.call("openTab", `{"url":"https://a/"}`, 0)
	b.store.fail = errDisk
	if _, _, err := b.Add(t.Context(), "w", "owner", &controlv1.PolicyRule{Verdict: deny}); !errors.Is(err, errDisk) {
		t.Error(err)
	}
	if d := b.decide(c); d.Verdict != allow || d.Version != 0 {
		t.Errorf("after a failed write: %+v", d)
	}
	// Nobody knows whether it is there: the store is asked.
	b.store.fail, b.store.unknown = fault.New(fault.Interrupted, "not known"), true
	if _, _, err := b.Add(t.Context(), "w", "owner", &controlv1.PolicyRule{Verdict: deny}); fault.CodeOf(err) != fault.Interrupted {
		t.Error(err)
	}
	if d := b.decide(c); d.Verdict != deny || d.Version != 1 {
		t.Errorf("after an unknown write that happened: %+v", d)
	}
}

func TestSettingsAndRemoval(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.Settings("w")
	if s.GetApprovalWithin().AsDuration() != 72*time.Hour || s.GetInteractive() != controlv1.Unreachable_UNREACHABLE_WAIT ||
		s.GetBackground() != controlv1.Unreachable_UNREACHABLE_REFUSE {
		t.Errorf("defaults: %v", s)
	}
	if _, _, err := b.Set(t.Context(), "w", "owner", &controlv1.PolicySettings{ApprovalWithin: durationpb.New(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	id := b.add(&controlv1.PolicyRule{Verdict: deny})
	b.restart()
	if s = b.Settings("w"); s.GetApprovalWithin().AsDuration() != time.Minute || s.GetBackground() != controlv1.Unreachable_UNREACHABLE_REFUSE {
		t.Errorf("after a restart: %v", s)
	}
	if _, err := b.Remove(t.Context(), "other", "owner", id); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("from another workspace: %v", err)
	}
	if v, err := b.Remove(t.Context(), "w", "owner", id); err != nil || v != 3 || len(b.Get("w").GetRules()) != 0 {
		t.Errorf("removed: %d, %v", v, err)
	}
	if _, err := b.Remove(t.Context(), "w", "owner", id); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("again: %v", err)
	}
}

// TestNoValueOfAnArgumentIsTold: reasons and steps go to whoever asks, and may not tell what somebody else has sent.
func TestNoValueOfAnArgumentIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(&controlv1.PolicyRule{Verdict: ask, Tool: "openTab", Arguments: args("url", "*canary*")})
	b.add(&controlv1.PolicyRule{Verdict: ask, Tool: "openTab", Arguments: args("url", "else")})
	d, steps := b.Explain(b.call("openTab", `{"url":"https://canary.example/"}`, 0))
	if all := fmt.Sprint(d, steps); d.Verdict != ask || strings.Contains(all, "canary") {
		t.Error(all)
	}
}

// TestRandomRules holds for any rules: Explain agrees with Decide, a floor never loosens anything, and a call that a
// removed allow rule did not decide is decided as before.
func TestRandomRules(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		b := newBench(t)
		var allows []string
		for range r.IntN(12) {
			rule := randomRule(r)
			if id := b.add(rule); rule.GetVerdict() == allow {
				allows = append(allows, id)
			}
		}
		calls := []policy.Call{
			b.call("openTab", `{"url":"https://a/"}`, r.IntN(2)), b.call("openTab", `{"url":"https://b/"}`, 1),
			b.call("closeTabs", `{"tabIds":["a","b"]}`, r.IntN(120), "https://a/", "https://b/"), b.call("listTabs", `{}`, 0),
		}
		calls[1].Origin, calls[1].Device, calls[1].Conversation = background, "work", ""
		before := make([]policy.Decision, len(calls))
		for n, c := range calls {
			before[n] = b.decide(c)
		}
		removed := ""
		if len(allows) > 0 {
			removed = allows[r.IntN(len(allows))]
			if _, err := b.Remove(t.Context(), "w", "owner", removed); err != nil {
				t.Fatal(err)
			}
		}
		for n, c := range calls {
			if d := b.decide(c); before[n].Rule != removed && d.Verdict != before[n].Verdict {
				t.Fatalf("without %s: %+v became %+v", removed, before[n], d)
			}
			before[n] = b.decide(c)
		}
		floor := randomRule(r)
		floor.Verdict, floor.Floor, floor.MaxTargets = deny, true, 0
		id := b.add(floor)
		for n, c := range calls {
			if d := b.decide(c); d.Verdict != before[n].Verdict && (d.Verdict != deny || d.Rule != id) {
				t.Fatalf("with a floor %+v became %+v", before[n], d)
			}
		}
	}
}

func randomRule(r *rand.Rand) *controlv1.PolicyRule {
	one := func(among ...string) string { return among[r.IntN(len(among))] }
	rule := &controlv1.PolicyRule{
		Verdict: controlv1.Verdict(1 + r.IntN(3)), Origin: controlv1.Origin(r.IntN(3)), ConversationId: one("", "", "chat", "other"),
		DeviceId: one("", "", "laptop", "work"), Principal: one("", "", "token", "other"),
	}
	switch r.IntN(4) {
	case 0:
		rule.Tool = one("openTab", "closeTabs")
	case 1:
		rule.Group = one("tabs", "reversible", "destructive", "read")
	case 2:
		rule.Tool = "openTab"
		rule.Arguments = args("url", one("https://a/", "https://*", "x*"))
	default:
	}
	if rule.GetVerdict() == allow {
		rule.MaxTargets = uint32(r.IntN(150))
	}
	return rule
}

func TestTheWorkspacesAreApart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(&controlv1.PolicyRule{Verdict: deny, Floor: true})
	c := b.call("openTab", `{"url":"https://a/"}`, 0)
	c.Workspace = "other"
	if d := b.decide(c); d.Verdict != allow || b.Version("other") != 0 || !proto.Equal(b.Settings("other"), b.Settings("third")) {
		t.Errorf("%+v", d)
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, rules := range []int{0, 10, 1000} {
		b.Run(fmt.Sprint(rules, "Rules"), func(tb *testing.B) {
			s := newBench(tb)
			for n := range rules {
				s.add(&controlv1.PolicyRule{Verdict: deny, Tool: "closeTabs", Arguments: args("tabIds", fmt.Sprint("x*", n))})
			}
			c := s.call("closeTabs", `{"tabIds":["a","b","c"]}`, 3)
			tb.ReportAllocs()
			for tb.Loop() {
				s.Decide(c)
			}
		})
	}
}
