package app_test

import (
	"strings"
	"testing"
	"time"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// A turn that goes on without its caller does nothing more once the caller's token is revoked: neither asks nor acts.
func TestATurnEndsItsDoingsWithItsToken(t *testing.T) {
	t.Parallel()
	revoke := make(chan func(), 1)
	results := make(chan string, 2)
	s, _ := withModel(t, app.Config{},
		modeltest.Func(func(*modeltest.Received) modeltest.Reply {
			(<-revoke)()
			return modeltest.Use("listDevices", map[string]any{})
		}),
		modeltest.Func(func(r *modeltest.Received) modeltest.Reply {
			results <- r.LastResult()
			return modeltest.Use("openTab", map[string]any{"deviceId": "k3v9x2mqta", "url": "https://a.test/"})
		}),
		modeltest.Func(func(r *modeltest.Received) modeltest.Reply {
			results <- r.LastResult()
			return modeltest.Text("Nothing was done.")
		}),
	)
	tokens := controlv1connect.NewTokenServiceClient(s.Client(t, s.Owner, nil))
	made, err := tokens.CreateToken(t.Context(), &controlv1.CreateTokenRequest{Name: "p", Scope: optionv1.Scope_SCOPE_OPERATOR})
	if err != nil {
		t.Fatal(err)
	}
	revoke <- func() {
		if _, err := tokens.RevokeToken(t.Context(), &controlv1.RevokeTokenRequest{TokenId: made.GetToken().GetTokenId()}); err != nil {
			t.Error(err)
		}
	}
	chat, err := agentv1connect.NewAgentServiceClient(s.Client(t, made.GetSecret(), nil)).Chat(
		t.Context(), &agentv1.ChatRequest{Message: "what is there?", Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = chat.Close() }()
	for range 2 {
		select {
		case got := <-results:
			if !strings.Contains(got, "revoked") {
				t.Errorf("a tool after the revocation: %s", got)
			}
		case <-time.After(time.Minute):
			t.Fatal("the turn does not go on")
		}
	}
}
