package rpc

import (
	"cmp"
	"context"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/policy"
)

var _ controlv1connect.PolicyServiceHandler = (*policyHandler)(nil)

// resolver says what policy would be asked about a request.
type resolver interface {
	Resolve(ctx context.Context, req dispatch.Request) ([]dispatch.Explained, error)
}

type policyHandler struct {
	book     *policy.Book
	resolver resolver
}

// GetPolicy gets the rules and settings.
func (h *policyHandler) GetPolicy(ctx context.Context, _ *controlv1.GetPolicyRequest) (*controlv1.GetPolicyResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	return h.book.Get(token.Workspace), nil
}

// AddRule adds a rule.
func (h *policyHandler) AddRule(ctx context.Context, req *controlv1.AddRuleRequest) (*controlv1.AddRuleResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	rule, version, err := h.book.Add(ctx, token.Workspace, token.ID, req.GetRule())
	if err != nil {
		return nil, err
	}
	return &controlv1.AddRuleResponse{Rule: rule, Version: version}, nil
}

// RemoveRule removes a rule.
func (h *policyHandler) RemoveRule(
	ctx context.Context, req *controlv1.RemoveRuleRequest,
) (*controlv1.RemoveRuleResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	version, err := h.book.Remove(ctx, token.Workspace, token.ID, req.GetRuleId())
	if err != nil {
		return nil, err
	}
	return &controlv1.RemoveRuleResponse{Version: version}, nil
}

// SetPolicySettings changes the settings of approvals.
func (h *policyHandler) SetPolicySettings(
	ctx context.Context, req *controlv1.SetPolicySettingsRequest,
) (*controlv1.SetPolicySettingsResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	settings, version, err := h.book.Set(ctx, token.Workspace, token.ID, req.GetSettings())
	if err != nil {
		return nil, err
	}
	return &controlv1.SetPolicySettingsResponse{Settings: settings, Version: version}, nil
}

// ExplainPolicy says what policy would decide about a command.
func (h *policyHandler) ExplainPolicy(
	ctx context.Context, req *controlv1.ExplainPolicyRequest,
) (*controlv1.ExplainPolicyResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	parts, err := h.resolver.Resolve(ctx, dispatch.Request{
		Workspace: token.Workspace, Principal: cmp.Or(req.GetPrincipal(), token.ID), Devices: req.GetDeviceIds(), Action: req.GetAction(),
	})
	if err != nil {
		return nil, err
	}
	res := &controlv1.ExplainPolicyResponse{Version: h.book.Version(token.Workspace)}
	for _, p := range parts {
		if p.Err != nil {
			return nil, p.Err
		}
		p.Call.Conversation = req.GetConversationId()
		p.Call.Origin = cmp.Or(req.GetOrigin(), controlv1.Origin_ORIGIN_INTERACTIVE)
		decision, steps := h.book.Explain(p.Call)
		res.Version = decision.Version
		res.Devices = append(res.Devices, &controlv1.PolicyExplanation{
			DeviceId: p.Call.Device, DeviceName: p.Name, Verdict: decision.Verdict, RuleId: decision.Rule,
			Reason: decision.Reason, Targets: uint32(p.Call.Targets), Steps: steps,
		})
	}
	return res, nil
}
