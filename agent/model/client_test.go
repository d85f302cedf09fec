package model_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/model/modeltest"
)

var _ modeltest.TB = (testing.TB)(nil)

func newClient(tb testing.TB, config model.Config) *model.Client {
	tb.Helper()
	if config.Key == "" {
		config.Key = modeltest.Key
	}
	if config.Model == "" {
		config.Model = "test-model"
	}
	client, err := model.New(config)
	if err != nil {
		tb.Fatal(err)
	}
	return client
}

func user(text string) model.Message { return model.Message{Role: model.RoleUser, Text: text} }

// ask is a request with one message.
func ask(text string) model.Request { return model.Request{Messages: []model.Message{user(text)}} }

// tool is one that takes a list of tab ids.
func tool(name string) model.Tool {
	return model.Tool{Name: name, Description: "For <tests> & more.", Parameters: json.RawMessage(
		`{"type":"object","properties":{"tabIds":{"type":"array","items":{"type":"string"}}}}`)}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	for _, slash := range []string{"", "/", "/chat/completions"} {
		server := modeltest.NewServer(t, modeltest.Reply{Text: "Hello, 世界 😀", Reasoning: "let me see", Prompt: 7, Completion: 3, Split: 3})
		client := newClient(t, model.Config{BaseURL: server.URL + slash})
		var text, reasoning strings.Builder
		turn, err := client.Complete(t.Context(), ask("hi"), model.Sink{
			OnText:      func(s string) { text.WriteString(s) },
			OnReasoning: func(s string) { reasoning.WriteString(s) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if turn.Text != "Hello, 世界 😀" || turn.Reasoning != "let me see" || turn.Finish != model.FinishStop || turn.CutOff {
			t.Errorf("turn %+v", turn)
		}
		if turn.Usage != (model.Usage{Prompt: 7, Completion: 3}) {
			t.Errorf("usage %+v", turn.Usage)
		}
		if text.String() != turn.Text || reasoning.String() != turn.Reasoning {
			t.Errorf("sink got %q, %q", text.String(), reasoning.String())
		}
	}
}

// TestToolRound goes twice through the loop, with what a provider wants back, against the strict server.
func TestToolRound(t *testing.T) {
	t.Parallel()
	search := modeltest.NewCall("searchTabs", `{}`)
	search.Extra = json.RawMessage(`{"extra_content":{"google":{"thought_signature":"<sig>","n":12345678901234567890}},"function":{"note":"x"}}`)
	server := modeltest.NewServer(t,
		modeltest.Reply{Text: "Looking.", Calls: []modeltest.Call{search, modeltest.NewCall("listDevices", `{}`)}},
		modeltest.Use("closeTabs", `{"tabIds":"{{searchTabs.id}}"}`),
		modeltest.Text("Closed both."),
	)
	client := newClient(t, model.Config{BaseURL: server.URL})
	request := model.Request{
		Messages: []model.Message{{Role: model.RoleSystem, Text: "Be kind."}, user("close the news")},
		Tools:    []model.Tool{tool("searchTabs"), tool("closeTabs"), {Name: "listDevices"}},
	}
	results := map[string]string{
		"searchTabs": `{"tabs":[{"id":"t1"},{"id":"t2"}]}`, "listDevices": "", "closeTabs": `{"closed":2}`,
	}
	var turn model.Turn
	for range 3 {
		var err error
		if turn, err = client.Complete(t.Context(), request, model.Sink{}); err != nil {
			t.Fatal(err)
		}
		request.Messages = append(request.Messages, turn.Message())
		for _, call := range turn.Calls {
			request.Messages = append(request.Messages, model.Message{Role: model.RoleTool, CallID: call.ID, Text: results[call.Name]})
		}
	}
	if turn.Text != "Closed both." {
		t.Errorf("turn %+v", turn)
	}
	last := server.Last()
	if got := last.Messages[len(last.Messages)-2].Calls[0].Arguments; got != `{"tabIds":["t1","t2"]}` {
		t.Errorf("closed %s", got)
	}
	if !bytes.Contains(last.Body, []byte("For <tests> & more.")) {
		t.Error("the description was escaped")
	}
}

// TestAnyHistoryIsAccepted sends what aborts, crashes and bad models leave behind.
func TestAnyHistoryIsAccepted(t *testing.T) {
	t.Parallel()
	call := model.Call{ID: "call_0", Name: "searchTabs", Arguments: "{}"}
	bad := model.Call{ID: "call_0", Name: "no such\xff tool", Arguments: `{"x":"\ud83d`}
	for name, history := range map[string][]model.Message{
		"abort in a tool":       {user("a"), {Role: model.RoleAssistant, Calls: []model.Call{call}}, user("go on")},
		"crash with one done":   {user("a"), {Role: model.RoleAssistant, Calls: []model.Call{call, bad}}, {Role: model.RoleTool, CallID: "call_0", Text: "x"}},
		"late result":           {user("a"), {Role: model.RoleAssistant, Calls: []model.Call{call}}, user("b"), {Role: model.RoleTool, CallID: "call_0", Text: "x"}},
		"orphan":                {user("a"), {Role: model.RoleTool, CallID: "z", Text: "x"}},
		"repeated id":           {user("a"), {Role: model.RoleAssistant, Calls: []model.Call{bad}}, user("b"), {Role: model.RoleAssistant, Calls: []model.Call{call}}},
		"compacted":             {{Role: model.RoleAssistant, Text: "so far"}, {Role: model.RoleSystem, Text: "s"}, user("b\x00\xff")},
		"images":                {user("a"), {Role: model.RoleAssistant, Calls: []model.Call{call}}, {Role: model.RoleTool, CallID: "call_0", Images: []string{"data:image/png;base64,AA=="}}},
		"nothing in the middle": {user("a"), {Role: model.RoleAssistant}, user(" "), user("b")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := modeltest.NewServer(t, modeltest.Text("ok"), modeltest.Text("ok"))
			for _, switches := range []model.Switches{{}, {NoImages: true, DeveloperRole: true, StreamOptions: model.Off}} {
				client := newClient(t, model.Config{BaseURL: server.URL, Switches: switches})
				turn, err := client.Complete(t.Context(), model.Request{Messages: history, Tools: []model.Tool{tool("searchTabs")}}, model.Sink{})
				if err != nil || turn.Text != "ok" {
					t.Errorf("%+v, %v", turn, err)
				}
			}
		})
	}
}

func TestNothingToAnswer(t *testing.T) {
	t.Parallel()
	server := modeltest.NewServer(t)
	client := newClient(t, model.Config{BaseURL: server.URL})
	for _, history := range [][]model.Message{nil, {{Role: model.RoleSystem, Text: "s"}}, {user("a"), {Role: model.RoleAssistant, Text: "b"}}} {
		if _, err := client.Complete(t.Context(), model.Request{Messages: history}, model.Sink{}); !errors.Is(err, model.ErrNothingToAnswer) {
			t.Errorf("%+v: error %v", history, err)
		}
	}
}

// TestCallIDsAreFresh has a provider that calls every call call_0.
func TestCallIDsAreFresh(t *testing.T) {
	t.Parallel()
	call := modeltest.Call{ID: "call_0", Name: "searchTabs", Arguments: "{}"}
	server := modeltest.NewServer(t, modeltest.Reply{Calls: []modeltest.Call{call}}, modeltest.Reply{Calls: []modeltest.Call{call}})
	client := newClient(t, model.Config{BaseURL: server.URL})
	request := ask("a")
	request.Tools = []model.Tool{tool("searchTabs")}
	ids := make(map[string]bool)
	for range 2 {
		turn, err := client.Complete(t.Context(), request, model.Sink{})
		if err != nil {
			t.Fatal(err)
		}
		ids[turn.Calls[0].ID] = true
		request.Messages = append(request.Messages, turn.Message())
	}
	if len(ids) != 2 {
		t.Errorf("ids %v", ids)
	}
}

func TestRequestFields(t *testing.T) {
	t.Parallel()
	half := 0.5
	history := []model.Message{{Role: model.RoleSystem, Text: "s"}, user("a"),
		{Role: model.RoleAssistant, Text: "b", Reasoning: "hm"}, user("c"),
		{Role: model.RoleAssistant, Reasoning: "call it", Calls: []model.Call{{ID: "1", Name: "f", Arguments: "{}"}}}}
	tests := []struct {
		name     string
		request  model.Request
		switches model.Switches
		has, not []string
	}{
		{"plain", ask("a"), model.Switches{},
			[]string{`"model":"test-model"`, `"stream":true`, `"stream_options":{"include_usage":true}`},
			[]string{"tool", "parallel", "max_", "temperature", "effort"}},
		{"everything", model.Request{Model: "other", Messages: history[:2], Tools: []model.Tool{{Name: "f", Strict: false}}, ToolChoice: "f", MaxTokens: 9, Temperature: &half, Effort: "high"},
			model.Switches{ParallelToolCalls: model.Off, StreamOptions: model.Off, DeveloperRole: true},
			[]string{`"model":"other"`, `"tool_choice":{"function":{"name":"f"},"type":"function"}`, `"parallel_tool_calls":false`, `"max_tokens":9`, `"temperature":0.5`,
				`"reasoning_effort":"high"`, `"role":"developer"`, `"parameters":{"type":"object","properties":{}}`}, []string{"stream_options", `"strict"`}},
		{"choice", model.Request{Messages: history[:2], Tools: []model.Tool{tool("f")}, ToolChoice: "none", MaxTokens: 9, Effort: "extreme"},
			model.Switches{ParallelToolCalls: model.On, MaxTokensField: "max_completion_tokens"},
			[]string{`"tool_choice":"none"`, `"parallel_tool_calls":true`, `"max_completion_tokens":9`}, []string{"max_tokens", "effort"}},
		{"nothing of tools without tools", model.Request{Messages: history[:2], ToolChoice: "auto"}, model.Switches{ParallelToolCalls: model.On}, nil, []string{"tool_choice", "parallel"}},
		{"no echo", model.Request{Messages: history}, model.Switches{}, []string{`"content":null`}, []string{"reasoning", "hm"}},
		{"echo of tool turns", model.Request{Messages: history}, model.Switches{ReasoningEcho: model.EchoToolTurns}, []string{`"reasoning_content":"call it"`}, []string{"hm"}},
		{"echo", model.Request{Messages: history}, model.Switches{ReasoningEcho: model.EchoAlways, ReasoningField: "reasoning"}, []string{`"reasoning":"call it"`, `"reasoning":"hm"`}, []string{"reasoning_content"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := modeltest.NewServerWith(t, modeltest.Config{Reasoning: true}, modeltest.Text("ok"))
			client := newClient(t, model.Config{BaseURL: server.URL, Switches: tt.switches})
			if _, err := client.Complete(t.Context(), tt.request, model.Sink{}); err != nil {
				t.Fatal(err)
			}
			body := string(server.Last().Body)
			for _, part := range tt.has {
				if !strings.Contains(body, part) {
					t.Errorf("no %s in %s", part, body)
				}
			}
			for _, part := range tt.not {
				if strings.Contains(body, part) {
					t.Errorf("%s in %s", part, body)
				}
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	client, err := model.New(model.Config{BaseURL: "http://127.0.0.1:1/v1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Complete(t.Context(), ask("a"), model.Sink{}); err == nil || !strings.Contains(err.Error(), "no model is named") {
		t.Errorf("error %v", err)
	}
	request := ask("a")
	request.Model, request.Tools = "m", []model.Tool{{Name: "f", Parameters: json.RawMessage("{")}}
	if _, err := client.Complete(t.Context(), request, model.Sink{}); err == nil || !strings.Contains(err.Error(), `tool "f" are not JSON`) {
		t.Errorf("error %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, config := range []model.Config{
		{BaseURL: "api.example.com/v1"}, {BaseURL: "ftp://example.com"}, {BaseURL: "https://"}, {BaseURL: "https://user:" + secret + "@example.com/v1"},
		{BaseURL: "https://example.com/v1?key=" + secret}, {BaseURL: "https://example.com/v1#" + secret}, {BaseURL: "https://" + secret + "%zz/v1"},
		{Key: secret + "\nX: y"}, {Key: secret + " é"},
	} {
		if _, err := model.New(config); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("error %v", err)
		}
	}
}

// TestEnvironmentIsNotRead is not parallel: it sets the environment.
func TestEnvironmentIsNotRead(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request went to the environment's server")
	}))
	defer elsewhere.Close()
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "sk-environment", "OPENAI_ADMIN_KEY": "sk-environment-admin", "OPENAI_BASE_URL": elsewhere.URL,
		"OPENAI_ORG_ID": "org-environment", "OPENAI_PROJECT_ID": "project-environment", "OPENAI_WEBHOOK_SECRET": "whsec-environment",
		"OPENAI_CUSTOM_HEADERS": "X-From: environment",
	} {
		t.Setenv(name, value)
	}
	for _, config := range []modeltest.Config{{}, {NoKey: true}} {
		server := modeltest.NewServerWith(t, config, modeltest.Text("ok"))
		key := modeltest.Key
		if config.NoKey {
			key = ""
		}
		client, err := model.New(model.Config{BaseURL: server.URL, Key: key, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Complete(t.Context(), ask("a"), model.Sink{}); err != nil {
			t.Fatal(err)
		}
		sent := fmt.Sprint(server.Last().Header, string(server.Last().Body))
		for _, part := range []string{"environment", "X-From", "Openai-", "Stainless"} {
			if strings.Contains(sent, part) {
				t.Errorf("%q in %s", part, sent)
			}
		}
	}
}

// TestKeyIsNotTold looks for the key wherever it could leak.
func TestKeyIsNotTold(t *testing.T) {
	t.Parallel()
	echo := "Incorrect API key provided: " + modeltest.Key
	server := modeltest.NewServer(t,
		modeltest.Fail(http.StatusUnauthorized, echo),
		modeltest.Reply{Status: 400, Body: echo},
		modeltest.Reply{Chunks: []string{`{"error":{"message":"` + echo + `","code":"` + modeltest.Key + `"}}`}},
		modeltest.Reply{Body: "<p>" + echo},
		modeltest.Reply{Body: echo},
		// Cut in the middle of the key.
		modeltest.Reply{Status: 400, Body: strings.Repeat("x", 2000-len(modeltest.Key)+5) + modeltest.Key},
		modeltest.Reply{Body: strings.Repeat("x", 200-len(modeltest.Key)+5) + modeltest.Key},
		modeltest.Reply{Status: 400, Body: `{"error":{"message":"no","code":"` + strings.Repeat("x", 85) + modeltest.Key + `"}}`},
	)
	config := model.Config{BaseURL: server.URL, Key: " " + modeltest.Key + "\n", Model: "m"}
	client := newClient(t, config)
	var told bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&told, nil))
	for range 8 {
		_, err := client.Complete(t.Context(), ask("a"), model.Sink{})
		if err == nil || !strings.Contains(err.Error(), "(key)") {
			t.Errorf("error %v", err)
		}
		_, _ = fmt.Fprintf(&told, "%v %+v %#v %q\n", err, err, err, err)
		logger.InfoContext(t.Context(), "error", "error", err)
	}
	_, err := newClient(t, model.Config{BaseURL: "http://127.0.0.1:1/v1"}).Complete(canceled(t), ask("a"), model.Sink{})
	asJSON, _ := json.Marshal(config)
	_, _ = fmt.Fprintf(&told, "%v %+v %#v %s %d %v %+v %#v %s %v %s\n", config, config, config, config, config, client, client, client, client, err, asJSON)
	_, _ = fmt.Fprintf(&told, "%v %+v\n", &config, []any{config, client})
	logger.InfoContext(t.Context(), "started", "client", client, "config", config)
	if strings.Contains(told.String(), modeltest.Key[:len("sk-modeltest-")]) {
		t.Errorf("the key or some of it is in %s", told.String())
	}
	if !strings.Contains(told.String(), server.URL) {
		t.Errorf("the address is not in %s", told.String())
	}
}

func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// TestRedirects follows one within the origin and refuses one to another.
func TestRedirects(t *testing.T) {
	t.Parallel()
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the stranger got a request")
	}))
	defer stranger.Close()
	handler := modeltest.NewHandler(modeltest.Config{}, modeltest.Text("ok"))
	mux := http.NewServeMux()
	mux.Handle("/v1/", handler)
	mux.Handle("/away/", http.RedirectHandler(stranger.URL+"/v1/chat/completions", http.StatusTemporaryRedirect))
	mux.Handle("/lost/", http.RedirectHandler("/v1/chat/completions", http.StatusFound))
	mux.HandleFunc("/round/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path, http.StatusPermanentRedirect)
	})
	mux.Handle("/near/", http.RedirectHandler("/v1/chat/completions", http.StatusTemporaryRedirect))
	server := httptest.NewServer(mux)
	defer server.Close()
	if turn, err := newClient(t, model.Config{BaseURL: server.URL + "/near"}).Complete(t.Context(), ask("a"), model.Sink{}); err != nil || turn.Text != "ok" {
		t.Errorf("%+v, %v", turn, err)
	}
	if _, err := newClient(t, model.Config{BaseURL: server.URL + "/away"}).Complete(t.Context(), ask("a"), model.Sink{}); err == nil || !strings.Contains(err.Error(), "origin") {
		t.Errorf("error %v", err)
	}
	for path, want := range map[string]string{
		"/away": "redirects to another origin (" + stranger.URL + ")", "/lost": "loses the request", "/round": "more than 10 times",
	} {
		turn, err := newClient(t, model.Config{BaseURL: server.URL + path}).Complete(t.Context(), ask("a"), model.Sink{})
		if err == nil || !strings.Contains(err.Error(), want) || !turn.Empty() || !model.Another(err) {
			t.Errorf("%s: %+v, %v", path, turn, err)
		}
	}
	if v := handler.Violations(); len(v) > 0 {
		t.Error(v)
	}
}

// TestStop stops in the middle of an answer: what has come is kept, and the next request is sound.
func TestStop(t *testing.T) {
	t.Parallel()
	server := modeltest.NewServer(t,
		modeltest.Reply{Text: "one two three", Calls: []modeltest.Call{modeltest.NewCall("searchTabs", "{}")}, Hold: make(chan struct{}), HoldAfter: 4},
		modeltest.Text("ok"))
	client := newClient(t, model.Config{BaseURL: server.URL})
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	because := errors.New("the person pressed stop")
	request := ask("a")
	request.Tools = []model.Tool{tool("searchTabs")}
	turn, err := client.Complete(ctx, request, model.Sink{OnText: func(s string) {
		if strings.HasSuffix(s, "ree") {
			stop(because)
		}
	}})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, because) || !errors.Is(err, model.ErrCutOff) {
		t.Errorf("error %v", err)
	}
	if !turn.CutOff || turn.Text != "one two three" || len(turn.Calls) > 0 {
		t.Errorf("turn %+v", turn)
	}
	request.Messages = append(request.Messages, turn.Message(), user("go on"))
	if turn, err := client.Complete(t.Context(), request, model.Sink{}); err != nil || turn.Text != "ok" {
		t.Errorf("%+v, %v", turn, err)
	}
}

func TestBrokenConnection(t *testing.T) {
	t.Parallel()
	server := modeltest.NewServer(t, modeltest.Reply{Text: "one two three", CutAfter: 2})
	turn, err := newClient(t, model.Config{BaseURL: server.URL}).Complete(t.Context(), ask("a"), model.Sink{})
	if !errors.Is(err, model.ErrCutOff) || !turn.CutOff || turn.Text != "one two " {
		t.Errorf("%+v, %v", turn, err)
	}
}
