package cli_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
)

var _ controlv1connect.PolicyServiceHandler = (*fakePolicy)(nil)

// fakePolicy is the policy of a fake server: it keeps rules and decides nothing.
type fakePolicy struct {
	mu        sync.Mutex
	rules     []*controlv1.PolicyRule           // guarded by mu
	settings  *controlv1.PolicySettings         // guarded by mu
	explained []*controlv1.ExplainPolicyRequest // guarded by mu
}

func (f *fakePolicy) GetPolicy(context.Context, *controlv1.GetPolicyRequest) (*controlv1.GetPolicyResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	settings := f.settings
	if settings == nil {
		settings = &controlv1.PolicySettings{
			ApprovalWithin: durationpb.New(72 * time.Hour), Interactive: controlv1.Unreachable_UNREACHABLE_WAIT,
			Background: controlv1.Unreachable_UNREACHABLE_REFUSE,
		}
	}
	return &controlv1.GetPolicyResponse{Version: uint64(len(f.rules)), Rules: f.rules, Settings: settings}, nil
}

func (f *fakePolicy) AddRule(_ context.Context, req *controlv1.AddRuleRequest) (*controlv1.AddRuleResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if req.GetRule().GetTool() == "noSuchTool" {
		return nil, connect.NewError(connect.CodeInvalidArgument, `there is no tool "noSuchTool"; near it: openTab`)
	}
	rule := proto.CloneOf(req.GetRule())
	rule.RuleId, rule.CreatedAt = "rule-1", timestamppb.New(now())
	f.rules = append(f.rules, rule)
	return &controlv1.AddRuleResponse{Rule: rule, Version: uint64(len(f.rules))}, nil
}

func (f *fakePolicy) RemoveRule(_ context.Context, req *controlv1.RemoveRuleRequest) (*controlv1.RemoveRuleResponse, error) {
	if req.GetRuleId() != "rule-1" {
		return nil, connect.NewError(connect.CodeNotFound, "there is no such rule")
	}
	return &controlv1.RemoveRuleResponse{Version: 9}, nil
}

func (f *fakePolicy) SetPolicySettings(
	_ context.Context, req *controlv1.SetPolicySettingsRequest,
) (*controlv1.SetPolicySettingsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settings = req.GetSettings()
	return &controlv1.SetPolicySettingsResponse{Settings: f.settings, Version: 10}, nil
}

func (f *fakePolicy) ExplainPolicy(
	_ context.Context, req *controlv1.ExplainPolicyRequest,
) (*controlv1.ExplainPolicyResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.explained = append(f.explained, req)
	return &controlv1.ExplainPolicyResponse{Version: 4, Devices: []*controlv1.PolicyExplanation{{
		DeviceId: laptop, DeviceName: "laptop", Verdict: controlv1.Verdict_VERDICT_DENY, RuleId: "rule-1", Targets: 2,
		Reason: "closeTabs is denied by a rule of the workspace: not the bank",
		Steps: []*controlv1.PolicyStep{
			{Layer: controlv1.Layer_LAYER_OPTION, Verdict: controlv1.Verdict_VERDICT_ALLOW, Matched: true, Why: "closeTabs runs without asking"},
			{Layer: controlv1.Layer_LAYER_WORKSPACE, RuleId: "rule-2", Verdict: controlv1.Verdict_VERDICT_ASK, Why: "it is about another device"},
			{Layer: controlv1.Layer_LAYER_WORKSPACE, RuleId: "rule-1", Verdict: controlv1.Verdict_VERDICT_DENY, Matched: true, Why: "it is about closeTabs and target.url"},
		},
	}}}, nil
}

func TestPolicyRules(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.run(t, "policy", "show").check(t, 0, "No rules", "72h0m0s", "version")
	added := f.run(t, "policy", "allow", "--tool", "closeTabs", "--arg", "target.url=https://a.example/*", "--arg", "windowId=",
		"--device", "laptop", "--origin", "background", "--conversation", "chat-1", "--principal", "token-1", "--max-targets", "50",
		"--expires", "2d", "--note", "docs only")
	added.check(t, 0)
	golden(t, "policy_allow", added.out, added.err)
	f.run(t, "policy", "deny", "--group", "destructive", "--floor").check(t, 0, "deny, floor", "group destructive")
	f.run(t, "policy", "ask").check(t, 0, "anything")
	shown := f.run(t, "policy", "show")
	shown.check(t, 0)
	golden(t, "policy_show", shown.out, "")
	f.run(t, "policy", "show", "-o", "json").check(t, 0, `"verdict": "VERDICT_ALLOW"`, `"maxTargets": 50`)
	f.run(t, "policy", "remove", "rule-1").check(t, 0, "rule-1 is removed.")
	f.run(t, "policy", "remove", "nothing").check(t, 1, "there is no such rule")
	f.run(t, "policy", "deny", "--tool", "noSuchTool").check(t, 2, "near it: openTab")
	f.run(t, "policy", "deny", "--arg", "url").check(t, 2, "has to be path=pattern")
	f.run(t, "policy", "deny", "--origin", "mars").check(t, 2, "interactive, background")
	f.run(t, "policy", "deny", "--expires", "soon").check(t, 2, "is no time")
	f.run(t, "policy", "deny", "--device", "nowhere").check(t, 2, "no device is called")
	f.run(t, "policy", "ask", "--floor").check(t, 2, "--floor")
	f.policy.mu.Lock()
	defer f.policy.mu.Unlock()
	if r := f.policy.rules[0]; r.GetDeviceId() != laptop || !r.GetExpiresAt().AsTime().Equal(now().Add(48*time.Hour)) ||
		r.GetOrigin() != controlv1.Origin_ORIGIN_BACKGROUND || len(r.GetArguments()) != 2 || r.GetArguments()[1].GetPattern() != "" {
		t.Errorf("added %v", r)
	}
}

func TestPolicySettings(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.run(t, "policy", "settings").check(t, 0, "72h0m0s", "interactive: wait, background: refuse")
	f.run(t, "policy", "settings", "--within", "2d", "--background", "wait").check(t, 0, "48h0m0s", "background: wait")
	f.run(t, "policy", "settings", "--within", "default").check(t, 0)
	f.run(t, "policy", "settings", "--interactive", "maybe").check(t, 2, "wait, refuse or default")
	f.run(t, "policy", "settings", "--within", "soon").check(t, 2, "is no time")
	f.policy.mu.Lock()
	defer f.policy.mu.Unlock()
	if s := f.policy.settings; s.GetApprovalWithin() != nil || s.GetBackground() != controlv1.Unreachable_UNREACHABLE_WAIT {
		t.Errorf("set %v", s)
	}
}

func TestPolicyExplain(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	shown := f.run(t, "policy", "explain", "closeTabs", "--tab-ids", laptop+"_t1-1,"+laptop+"_t1-2", "--origin", "background",
		"--conversation", "chat-1", "--principal", "token-1")
	shown.check(t, 0)
	golden(t, "policy_explain", shown.out, "")
	f.run(t, "policy", "explain", "closeTabs", "--tab-ids", laptop+"_t1-1", "-o", "json").check(t, 0, `"verdict": "VERDICT_DENY"`, `"steps": [`)
	f.run(t, "policy", "explain", "openTab", "--url", "https://a.example/").check(t, 2, "needs a device")
	f.run(t, "policy", "explain", "openTab").check(t, 2, "url")
	f.run(t, "policy", "explain", "noSuchTool").check(t, 2, "noSuchTool")
	help := f.run(t, "policy", "explain", "openTab", "--help")
	help.check(t, 0, "--conversation", "--origin", "--url")
	if strings.Contains(help.out, "--ttl") {
		t.Error("explain takes a time to live, and sends nothing")
	}
	f.policy.mu.Lock()
	defer f.policy.mu.Unlock()
	if req := f.policy.explained[0]; req.GetConversationId() != "chat-1" || req.GetPrincipal() != "token-1" ||
		req.GetOrigin() != controlv1.Origin_ORIGIN_BACKGROUND || len(req.GetAction().GetCloseTabs().GetTabIds()) != 2 {
		t.Errorf("asked %v", req)
	}
	if len(f.dispatched()) != 0 {
		t.Error("something was sent")
	}
}
