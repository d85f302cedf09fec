package rpc_test

import (
	"testing"

	"connectrpc.com/connect/v2"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

const (
	allowed = controlv1.Verdict_VERDICT_ALLOW
	asks    = controlv1.Verdict_VERDICT_ASK
	denied  = controlv1.Verdict_VERDICT_DENY
)

func policyOf(t *testing.T, s *apptest.Server) controlv1connect.PolicyServiceClient {
	t.Helper()
	return controlv1connect.NewPolicyServiceClient(s.Client(t, s.Owner, nil))
}

func addRule(t *testing.T, s *apptest.Server, r *controlv1.PolicyRule) *controlv1.PolicyRule {
	t.Helper()
	res, err := policyOf(t, s).AddRule(t.Context(), &controlv1.AddRuleRequest{Rule: r})
	if err != nil {
		t.Fatal(err)
	}
	return res.GetRule()
}

// TestPolicyIsExplainedAsACommandWouldBeDecided goes through the whole server: devices and addresses come from what the
// server knows, each change counts at once, and all is there after a restart.
func TestPolicyIsExplainedAsACommandWouldBeDecided(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	d := pair(t, s, "laptop")
	id := d.GetDeviceId()
	l, _ := dial(t, s, d, dialConnect, nil)
	if err := l.send(snapshot(id, tab(id, "1", "https://docs.example/", "A"), tab(id, "2", "https://bank.example/", "B"))); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the tabs are known", func() bool {
		res, err := s.Browser(t).ListTabs(t.Context(), &controlv1.ListTabsRequest{})
		return err == nil && res.GetTotal() == 2
	})
	explain := func(s *apptest.Server, want controlv1.Verdict, rule string, ids ...string) *controlv1.PolicyExplanation {
		t.Helper()
		res, err := policyOf(t, s).ExplainPolicy(t.Context(), &controlv1.ExplainPolicyRequest{
			Action: &commandv1.Action{Kind: &commandv1.Action_CloseTabs{CloseTabs: &commandv1.CloseTabs{TabIds: ids}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		got := res.GetDevices()[0]
		if got.GetVerdict() != want || got.GetRuleId() != rule || got.GetDeviceName() != "laptop" || int(got.GetTargets()) != len(ids) ||
			len(got.GetSteps()) == 0 {
			t.Errorf("explained %v, want %v by %q", got, want, rule)
		}
		return got
	}
	docs, bank := id+"_tb1-1", id+"_tb1-2"
	explain(s, allowed, "", docs, bank)
	r := addRule(t, s, &controlv1.PolicyRule{
		Verdict: denied, Tool: "closeTabs", DeviceId: id,
		Arguments: []*controlv1.ArgumentPattern{{Path: "target.url", Pattern: "https://bank.example/*"}},
	})
	explain(s, denied, r.GetRuleId(), docs, bank)
	explain(s, allowed, "", docs)
	asking := addRule(t, s, &controlv1.PolicyRule{Verdict: asks, Origin: controlv1.Origin_ORIGIN_INTERACTIVE})
	explain(s, asks, asking.GetRuleId(), docs)
	l.close()
	s.Stop()
	again := apptest.Start(t, app.Config{DataDir: s.Dir})
	dial(t, again, d, dialConnect, &devicev1.Hello{BootTag: "b1"})
	explain(again, asks, asking.GetRuleId(), docs)
	if _, err := policyOf(t, again).RemoveRule(t.Context(), &controlv1.RemoveRuleRequest{RuleId: asking.GetRuleId()}); err != nil {
		t.Fatal(err)
	}
	got, err := policyOf(t, again).GetPolicy(t.Context(), &controlv1.GetPolicyRequest{})
	if err != nil || got.GetVersion() != 3 || len(got.GetRules()) != 1 || got.GetSettings().GetApprovalWithin().GetSeconds() != 72*3600 {
		t.Errorf("policy: %v, %v", got, err)
	}
}

func TestPolicyRefusesWhatIsNotTheCallers(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	client := policyOf(t, s)
	_, err := client.AddRule(t.Context(), &controlv1.AddRuleRequest{Rule: &controlv1.PolicyRule{Verdict: denied, DeviceId: "k3v9x2mqta"}})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a rule for an unknown device: %v", err)
	}
	_, err = client.AddRule(t.Context(), &controlv1.AddRuleRequest{Rule: &controlv1.PolicyRule{Verdict: denied, Tool: "noSuchTool"}})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a rule for an unknown tool: %v", err)
	}
	_, err = client.ExplainPolicy(t.Context(), &controlv1.ExplainPolicyRequest{
		DeviceIds: []string{"k3v9x2mqta"},
		Action:    &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://a.example/"}}},
	})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("explain on an unknown device: %v", err)
	}
	_, err = client.RemoveRule(t.Context(), &controlv1.RemoveRuleRequest{RuleId: "nothing"})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("remove an unknown rule: %v", err)
	}
}
