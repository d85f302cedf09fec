package policy_test

import (
	"strings"
	"testing"
	"time"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/policy"
)

// remembering is a bench where everything asks, with a rule that remembers one call.
func remembering(t *testing.T, tool, text string, targets int, want *controlv1.Remember, urls ...string) (*bench, *controlv1.PolicyRule) {
	t.Helper()
	b := newBench(t)
	b.add(&controlv1.PolicyRule{Verdict: ask})
	r, err := b.Remembered(policy.Memory{Call: b.call(tool, text, targets, urls...), Decider: "owner", Approval: "ap", Ask: want})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Learned("w", r, 2); err != nil {
		t.Fatal(err)
	}
	return b, r
}

// TestRememberedCoversExactlyTheCall: what is remembered of one thing is never good for another.
func TestRememberedCoversExactlyTheCall(t *testing.T) {
	t.Parallel()
	b, r := remembering(t, "navigateTab", `{"tabId":"service-nginx","url":"https://a/*\\"}`, 1, nil)
	if r.GetApprovalId() != "ap" || r.GetCreatedBy() != "owner" || r.GetPrincipal() != "token" || r.GetDeviceId() != "laptop" ||
		!r.GetExpiresAt().AsTime().Equal(b.now.Add(30*24*time.Hour)) || r.GetMaxTargets() != 1 || b.Version("w") != 2 {
		t.Errorf("rule: %v", r)
	}
	for text, want := range map[string]controlv1.Verdict{
		`{"tabId":"service-nginx","url":"https://a/*\\"}`:    allow,
		`{"tabId":"service-sshd","url":"https://a/*\\"}`:     ask,
		`{"tabId":"service-nginx","url":"https://a/evil\\"}`: ask, // the star was the value's, not a pattern
		`{"tabId":"service-nginx","url":"https://a/*"}`:      ask,
		`{"tabId":"service-nginx2","url":"https://a/*\\"}`:   ask,
		`{"tabId":"service-nginx"}`:                          ask,
	} {
		if d := b.decide(b.call("navigateTab", text, 1)); d.Verdict != want {
			t.Errorf("%s: %+v", text, d)
		}
	}
	same := b.call("navigateTab", `{"tabId":"service-nginx","url":"https://a/*\\"}`, 1)
	for name, change := range map[string]func(*policy.Call){
		"device":    func(c *policy.Call) { c.Device = "work" },
		"principal": func(c *policy.Call) { c.Principal = "other" },
		"targets":   func(c *policy.Call) { c.Targets = 2 },
		"workspace": func(c *policy.Call) { c.Workspace = "other" },
	} {
		c := same
		change(&c)
		if d := b.decide(c); d.Rule == r.GetRuleId() {
			t.Errorf("another %s: %+v", name, d)
		}
	}
	b.now = b.now.Add(30 * 24 * time.Hour)
	if d := b.decide(same); d.Verdict != ask {
		t.Errorf("after 30 days: %+v", d)
	}
}

func TestRememberedKnowsListsAndWhatIsNotSet(t *testing.T) {
	t.Parallel()
	b, _ := remembering(t, "reloadTabs", `{"tabIds":["a","b"]}`, 2, nil)
	for text, want := range map[string]controlv1.Verdict{
		`{"tabIds":["a","b"]}`:                     allow,
		`{"tabIds":["a"]}`:                         ask,
		`{"tabIds":["a","c"]}`:                     ask,
		`{"tabIds":["a\",\"b"]}`:                   ask,
		`{"tabIds":["a","b"],"bypassCache":true}`:  ask,
		`{"tabIds":["a","b"],"bypassCache":false}`: ask,
		`{}`: ask,
	} {
		if d := b.decide(b.call("reloadTabs", text, 2)); d.Verdict != want {
			t.Errorf("%s: %+v", text, d)
		}
	}
}

func TestPatternsTakeThePlaceOfExactArguments(t *testing.T) {
	t.Parallel()
	b, r := remembering(t, "closeTabs", `{"tabIds":["a","b"]}`, 2, &controlv1.Remember{
		Arguments: args("target.url", "https://docs.example/*"), AnyDevice: true, ConversationOnly: true,
	}, "https://docs.example/1", "https://docs.example/2")
	if r.GetDeviceId() != "" || r.GetConversationId() != "chat" {
		t.Errorf("rule: %v", r)
	}
	c := b.call("closeTabs", `{"tabIds":["x"]}`, 1, "https://docs.example/3")
	c.Device = "work"
	if d := b.decide(c); d.Verdict != allow {
		t.Errorf("another tab of the same place: %+v", d)
	}
	c.Conversation = "other"
	if d := b.decide(c); d.Verdict != ask {
		t.Errorf("another conversation: %+v", d)
	}
	if d := b.decide(b.call("closeTabs", `{"tabIds":["x"]}`, 1, "https://bank.example/")); d.Verdict != ask {
		t.Errorf("a tab of another place: %+v", d)
	}
}

func TestWhatCannotBeRemembered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	long := `["` + strings.Repeat("x", 9000) + `"]`
	for want, m := range map[string]policy.Memory{
		"would not cover this very command": {
			Call: b.call("openTab", `{"url":"https://a/"}`, 0), Ask: &controlv1.Remember{Arguments: args("url", "https://b/*")},
		},
		"no argument": {
			Call: b.call("openTab", `{"url":"https://a/"}`, 0), Ask: &controlv1.Remember{Arguments: args("urll", "*")},
		},
		"too long": {Call: b.call("closeTabs", `{"tabIds":`+long+`}`, 1)},
	} {
		if _, err := b.Remembered(m); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
