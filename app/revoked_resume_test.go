package app_test

import (
	"fmt"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// waitsForAnother is a server that was stopped while what an agent was asked to do by somebody with a token of their own
// waited for a person. That token is revoked.
func waitsForAnother(t *testing.T, cfg app.Config, prepare func(*apptest.Server), script ...modeltest.Step) (app.Config, string) {
	t.Helper()
	cfg.DataDir = t.TempDir()
	scripted := modeltest.NewServer(t, script...)
	cfg.Model = app.ModelConfig{Name: "scripted", BaseURL: scripted.URL, Key: modeltest.Key}
	s := apptest.Start(t, cfg)
	prepare(s)
	made, err := tokens(t, s).CreateToken(t.Context(), &controlv1.CreateTokenRequest{Name: "p", Scope: optionv1.Scope_SCOPE_OPERATOR})
	if err != nil {
		t.Fatal(err)
	}
	res, err := agentv1connect.NewAgentServiceClient(s.Client(t, made.GetSecret(), nil)).Send(t.Context(), &agentv1.SendRequest{Message: "do it"})
	if err != nil {
		t.Fatal(err)
	}
	pendingOf(t, s)
	if _, err := tokens(t, s).RevokeToken(t.Context(), &controlv1.RevokeTokenRequest{TokenId: made.GetToken().GetTokenId()}); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	return cfg, res.GetConversationId()
}

// tookBack holds a turn that went on against what it must be: it was told that it may not, and what had waited for a person
// waits no more, so that nobody lets happen what the turn says did not.
func tookBack(t *testing.T, s *apptest.Server, conversation, name, says string) {
	t.Helper()
	got := endedTurn(t, s, conversation)
	var last *agentv1.ToolResult
	for _, r := range got.results() {
		if r.GetName() == name {
			last = r
		}
	}
	if last.GetOutcome() == agentv1.Outcome_OUTCOME_SUCCEEDED || !strings.Contains(last.GetContent(), says) {
		t.Errorf("the result: %v", last)
	}
	list, err := approvals(t, s).ListApprovals(t.Context(), &controlv1.ListApprovalsRequest{})
	if err != nil || len(list.GetApprovals()) != 1 || list.GetApprovals()[0].GetState() != controlv1.ApprovalState_APPROVAL_STATE_WITHDRAWN {
		t.Errorf("the approval: %v, %v", list, err)
	}
}

// A turn that goes on after a restart, and whose author may not ask for anything any more, takes back what waits for a
// person.
func TestWhatWaitsForOneWhoMayNotAnyMoreIsTakenBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		cfg.Image = strangerImage(t)
		var k *kettle
		cfg, conversation := waitsForAnother(t, cfg, func(s *apptest.Server) {
			k = startKettle(t, s)
			asks(t, s.Client(t, s.Owner, nil))
		}, modeltest.Func(func(*modeltest.Received) modeltest.Reply {
			return modeltest.Reply{Unchecked: true, Calls: []modeltest.Call{
				modeltest.NewCall("brewDrink", fmt.Sprintf(`{"deviceId":%q,"drink":"tea","cups":3}`, k.id)),
			}}
		}), modeltest.Text("that is how it ended"))
		s := apptest.Start(t, cfg)
		tookBack(t, s, conversation, "brewDrink", "revoked")
		if len(k.brewed) != 0 {
			t.Errorf("it was brewed: %q", k.brewed)
		}
	})
}

// An undo is no other: also where policy, which lets it through no more, is asked before it.
func TestAnUndoThatMayNotBeAnyMoreIsTakenBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		cfg, conversation := waitsForAnother(t, cfg, func(s *apptest.Server) {
			startSim(t, s, "laptop")
			waits(t, s)
			rule(t, s, &controlv1.PolicyRule{Tool: "restoreTabs", Verdict: controlv1.Verdict_VERDICT_ASK})
		},
			modeltest.Use("listTabs", map[string]any{"pageSize": 3}),
			modeltest.Use("closeTabs", `{"tabIds":"{{listTabs.tabId}}"}`),
			modeltest.Use("undo", map[string]any{}), modeltest.Text("that is how it ended"),
		)
		s := apptest.Start(t, cfg)
		tookBack(t, s, conversation, "undo", "revoked")
	})
}
