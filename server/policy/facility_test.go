package policy_test

import (
	"fmt"
	"strings"
	"testing"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/fault"
)

// What an agent itself does is held against the rules like a command, but that nobody can be asked about it.
func TestRulesAboutWhatAnAgentItselfDoes(t *testing.T) {
	t.Parallel()
	send, read := `{"conversationId":"3f9a","message":"hello"}`, `{"conversationId":"3f9a"}`
	floor := &controlv1.PolicyRule{Verdict: deny, Tool: "sendToConversation", Floor: true}
	for name, row := range map[string]struct {
		rules            []*controlv1.PolicyRule
		send, read, undo controlv1.Verdict
	}{
		"none":                    {nil, allow, allow, allow},
		"by its name":             {[]*controlv1.PolicyRule{{Verdict: deny, Tool: "sendToConversation"}}, deny, allow, allow},
		"by an older name":        {[]*controlv1.PolicyRule{{Verdict: deny, Tool: "send_to_tab"}}, deny, allow, allow},
		"by its family":           {[]*controlv1.PolicyRule{{Verdict: deny, Group: "facility"}}, deny, deny, deny},
		"by its effect":           {[]*controlv1.PolicyRule{{Verdict: deny, Group: "reversible"}}, deny, allow, deny},
		"those that read":         {[]*controlv1.PolicyRule{{Verdict: deny, Group: "read"}}, allow, deny, allow},
		"another effect":          {[]*controlv1.PolicyRule{{Verdict: deny, Group: "destructive"}}, allow, allow, allow},
		"anything":                {[]*controlv1.PolicyRule{{Verdict: deny}}, deny, deny, deny},
		"by an argument":          {[]*controlv1.PolicyRule{{Verdict: deny, Tool: "sendToConversation", Arguments: args("message", "*ell*")}}, deny, allow, allow},
		"by another argument":     {[]*controlv1.PolicyRule{{Verdict: deny, Tool: "sendToConversation", Arguments: args("message", "bye")}}, allow, allow, allow},
		"of this conversation":    {[]*controlv1.PolicyRule{{Verdict: deny, ConversationId: "chat"}, {Verdict: allow, ConversationId: "chat", Tool: "undo"}}, deny, deny, allow},
		"of another conversation": {[]*controlv1.PolicyRule{{Verdict: deny, ConversationId: "other"}}, allow, allow, allow},
		"a floor":                 {[]*controlv1.PolicyRule{floor, {Verdict: allow, Tool: "sendToConversation", ConversationId: "chat", Origin: interactive}}, deny, allow, allow},
		"from elsewhere":          {[]*controlv1.PolicyRule{{Verdict: deny, Origin: background, Group: "facility"}}, allow, allow, allow},
		// What changes something is not let through where a person wanted to be asked; what reads is, like a query.
		"anything asks":           {[]*controlv1.PolicyRule{{Verdict: ask}}, ask, allow, ask},
		"a group asks":            {[]*controlv1.PolicyRule{{Verdict: ask, Group: "reversible"}}, ask, allow, ask},
		"those that read ask":     {[]*controlv1.PolicyRule{{Verdict: ask, Group: "read"}}, allow, allow, allow},
		"it asks, and is allowed": {[]*controlv1.PolicyRule{{Verdict: ask}, {Verdict: allow, Tool: "undo"}}, ask, allow, allow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for _, r := range row.rules {
				b.add(r)
			}
			for _, call := range []struct {
				tool, args string
				want       controlv1.Verdict
			}{{"sendToConversation", send, row.send}, {"readConversation", read, row.read}, {"undo", `{}`, row.undo}} {
				c := b.call(call.tool, call.args, 0)
				d := b.decide(c)
				if d.Verdict != call.want || d.Reason == "" || strings.Contains(d.Reason, "hello") {
					t.Errorf("%s: %+v, want %v", call.tool, d, call.want)
				}
				explained, steps := b.Explain(c)
				if explained != d || len(steps) == 0 {
					t.Errorf("%s: explained as %+v by %v", call.tool, explained, steps)
				}
			}
		})
	}
}

func TestAnUndoIsAboutItsDevice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(&controlv1.PolicyRule{Verdict: deny, Tool: "undo", Arguments: args("deviceId", "laptop")})
	if d := b.decide(b.call("undo", `{"deviceId":"laptop"}`, 0)); d.Verdict != deny {
		t.Errorf("%+v", d)
	}
	if d := b.decide(b.call("undo", `{"deviceId":"work"}`, 0)); d.Verdict != allow {
		t.Errorf("%+v", d)
	}
}

func TestNobodyCanBeAskedAboutWhatAnAgentItselfDoes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for text, r := range map[string]*controlv1.PolicyRule{
		"undo is something that an agent itself does, which cannot wait for a person": {Verdict: ask, Tool: "undo"},
		"near it: sendToConversation": {Verdict: deny, Tool: "sendToConversatio"},
		"near it: facility":           {Verdict: deny, Group: "facilities"},
		`no argument "text"`:          {Verdict: deny, Tool: "sendToConversation", Arguments: args("text", "x")},
	} {
		if _, _, err := b.Add(t.Context(), "w", "owner", r); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v, want %q", r, err, text)
		}
	}
}

// What agents do because of one message of a person counts together: by the command's own threshold and by a rule's.
func TestWhatWasDoneBeforeCounts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.call("closeTabs", `{"tabIds":["laptop_tb-1"]}`, 1)
	for before, want := range map[int]controlv1.Verdict{0: allow, 19: allow, 20: ask, 400: ask} {
		c.Before = before
		if d := b.decide(c); d.Verdict != want || want == ask &&
			!strings.Contains(d.Reason, fmt.Sprintf("acts on %d targets together with %d that agents have acted on before because of the same message", before+1, before)) {
			t.Errorf("after %d: %+v", before, d)
		}
	}
	b.add(&controlv1.PolicyRule{Verdict: allow, Tool: "closeTabs", MaxTargets: 30})
	for before, want := range map[int]controlv1.Verdict{20: allow, 29: allow, 30: ask} {
		c.Before = before
		if d := b.decide(c); d.Verdict != want {
			t.Errorf("with a rule, after %d: %+v", before, d)
		}
	}
}
