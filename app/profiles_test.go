package app_test

import (
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
)

// TestEveryProfileIsTaken offers all tools in every form, each to a double of the provider that is the strictest about it.
func TestEveryProfileIsTaken(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		profile schema.Profile
		config  modeltest.Config
		strict  bool
	}{
		{schema.ProfilePortable, modeltest.Config{}, false},
		{schema.ProfileStrict, modeltest.Config{}, true},
		{schema.ProfileGemini, modeltest.Config{Gemini: true}, false},
		{schema.ProfileLocal, modeltest.Config{NoKey: true, RefuseField: "stream_options"}, false},
	} {
		t.Run(string(tt.profile), func(t *testing.T) {
			t.Parallel()
			scripted := modeltest.NewServerWith(t, tt.config, modeltest.Func(func(r *modeltest.Received) modeltest.Reply {
				for _, tool := range r.Tools {
					if tool.Strict != tt.strict {
						t.Errorf("strict of %s is %v", tool.Name, tool.Strict)
					}
				}
				return modeltest.Reply{Calls: []modeltest.Call{modeltest.NewCall("listDevices", map[string]any{})}, Unchecked: true}
			}), modeltest.Text("None."))
			m := app.ModelConfig{Name: "m", BaseURL: scripted.URL, Profile: tt.profile}
			if !tt.config.NoKey {
				m.Key = modeltest.Key
			}
			if tt.config.RefuseField != "" {
				m.Switches.StreamOptions = model.Off
			}
			s := apptest.Start(t, app.Config{
				Models: []app.ModelConfig{m}, AgentLimits: &configv1.AgentLimits{ToolTokens: 1_000_000}, // all of them
			})
			code, out, errs := throwbarCLI(t, s, "chat", "which devices are there?")
			if code != 0 || !strings.Contains(out, "None.") {
				t.Errorf("chat: %d\n%s%s", code, out, errs)
			}
			if n := len(scripted.Requests()[0].Tools); n < 13 {
				t.Errorf("%d tools", n)
			}
		})
	}
}
