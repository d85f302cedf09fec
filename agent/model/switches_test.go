package model_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/model/modeltest"
)

// TestEffort says what is sent for each word.
func TestEffort(t *testing.T) {
	t.Parallel()
	const dotted, top = "reasoning.effort", "effort"
	for _, tt := range []struct{ field, word, want string }{
		{"", "", ""}, {"", "none", `"reasoning_effort":"none"`}, {"", "low", `"reasoning_effort":"low"`},
		{"", "medium", `"reasoning_effort":"medium"`}, {"", "high", `"reasoning_effort":"high"`}, {"", "max", `"reasoning_effort":"high"`},
		{"", "extreme", ""}, {"-", "high", ""}, {"-", "none", ""},
		{dotted, "max", `"reasoning":{"effort":"xhigh"}`}, {dotted, "low", `"reasoning":{"effort":"low"}`}, {dotted, "", ""},
		{top, "high", `"effort":"high"`},
	} {
		t.Run(tt.field+" "+tt.word, func(t *testing.T) {
			t.Parallel()
			tr := &transport{answers: []func(*http.Request) (*http.Response, error){answered}}
			client := newClient(t, model.Config{BaseURL: "http://model.test/v1", HTTPClient: &http.Client{Transport: tr}, Switches: model.Switches{EffortField: tt.field}})
			request := ask("a")
			request.Effort = tt.word
			if _, err := client.Complete(t.Context(), request, model.Sink{}); err != nil {
				t.Fatal(err)
			}
			if body := tr.bodies[0]; !json.Valid([]byte(body)) || !strings.Contains(body, tt.want) || (tt.want == "") == strings.Contains(body, "effort") {
				t.Errorf("sent %s", body)
			}
		})
	}
	tr := &transport{answers: []func(*http.Request) (*http.Response, error){answered}}
	request := ask("a")
	request.Effort = "max"
	if _, err := newClient(t, model.Config{HTTPClient: &http.Client{Transport: tr}}).Complete(t.Context(), request, model.Sink{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(tr.bodies[0], `"reasoning_effort":"xhigh"`) {
		t.Errorf("sent %s to the default provider", tr.bodies[0])
	}
}

func TestSwitchesAreChecked(t *testing.T) {
	t.Parallel()
	for _, switches := range []model.Switches{
		{EffortField: "messages"}, {EffortField: "model.effort"}, {ReasoningField: "content"}, {ReasoningField: "a.b"},
		{EffortField: ".effort"}, {EffortField: "reasoning."}, {EffortField: "a..b"},
	} {
		if _, err := model.New(model.Config{Switches: switches}); err == nil {
			t.Errorf("%+v is taken", switches)
		}
	}
}

// TestStrictTools has schemas that a provider enforces, which it cannot do in several calls at once.
func TestStrictTools(t *testing.T) {
	t.Parallel()
	strict := model.Tool{Name: "f", Strict: true, Parameters: json.RawMessage(
		`{"type":"object","properties":{"x":{"type":["string","null"]}},"required":["x"],"additionalProperties":false}`)}
	server := modeltest.NewServer(t, modeltest.Use("f", `{"x":null}`), modeltest.Use("f", `{}`))
	client := newClient(t, model.Config{BaseURL: server.URL})
	if turn, err := client.Complete(t.Context(), withTool(ask("a"), strict), model.Sink{}); err != nil || len(turn.Calls) != 1 {
		t.Errorf("%+v, %v", turn, err)
	}
	if body := string(server.Last().Body); !strings.Contains(body, `"strict":true`) || !strings.Contains(body, `"parallel_tool_calls":false`) {
		t.Errorf("sent %s", body)
	}
	strict.Strict = false
	strict.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	if _, err := client.Complete(t.Context(), withTool(ask("a"), strict), model.Sink{}); err != nil || strings.Contains(string(server.Last().Body), "parallel") {
		t.Errorf("%v, sent %s", err, server.Last().Body)
	}
}

// TestReasoningIsWanted has a provider that refuses a history whose calls come without the reasoning that led to them.
func TestReasoningIsWanted(t *testing.T) {
	t.Parallel()
	server := modeltest.NewServerWith(t, modeltest.Config{NeedsReasoning: true},
		modeltest.Reply{Reasoning: "look first", Calls: []modeltest.Call{modeltest.NewCall("searchTabs", "{}")}}, modeltest.Text("ok"))
	for _, echo := range []model.Echo{model.EchoToolTurns, model.EchoNone} {
		client := newClient(t, model.Config{BaseURL: server.URL, Switches: model.Switches{ReasoningEcho: echo}})
		request := withTool(ask("a"), tool("searchTabs"))
		if echo == model.EchoToolTurns {
			turn, err := client.Complete(t.Context(), request, model.Sink{})
			if err != nil || turn.Text != "" {
				t.Fatalf("%+v, %v", turn, err)
			}
			request.Messages = append(request.Messages, turn.Message(), model.Message{Role: model.RoleTool, CallID: turn.Calls[0].ID, Text: "x"})
		} else {
			request.Messages = append(request.Messages, model.Message{Role: model.RoleAssistant, Reasoning: "hm", Calls: []model.Call{{ID: "a", Name: "searchTabs", Arguments: "{}"}}})
		}
		var api *model.APIError
		_, err := client.Complete(t.Context(), request, model.Sink{})
		if echo == model.EchoToolTurns && err != nil || echo == model.EchoNone && (!errors.As(err, &api) || api.Status != 400) {
			t.Errorf("echo %d: %v", echo, err)
		}
	}
	server.TakeViolations()
}

// TestExtrasGoHome has a call whose further fields one provider wants back, and another does not know.
func TestExtrasGoHome(t *testing.T) {
	t.Parallel()
	call := modeltest.NewCall("searchTabs", "{}")
	call.Extra = json.RawMessage(`{"extra_content":{"google":{"thought_signature":"AA=="}}}`)
	home := modeltest.NewServer(t, modeltest.Reply{Calls: []modeltest.Call{call}}, modeltest.Text("ok"))
	other := modeltest.NewServer(t, modeltest.Text("ok")) // refuses fields that it did not send
	request := withTool(ask("a"), tool("searchTabs"))
	turn, err := newClient(t, model.Config{BaseURL: home.URL}).Complete(t.Context(), request, model.Sink{})
	if err != nil || len(turn.Calls) != 1 {
		t.Fatalf("%+v, %v", turn, err)
	}
	request.Messages = append(request.Messages, turn.Message(), model.Message{Role: model.RoleTool, CallID: turn.Calls[0].ID, Text: "x"})
	for _, server := range []*modeltest.Server{other, home} {
		if _, err := newClient(t, model.Config{BaseURL: server.URL}).Complete(t.Context(), request, model.Sink{}); err != nil {
			t.Error(err)
		}
		if strings.Contains(string(server.Last().Body), "throwbar_from") {
			t.Errorf("sent %s", server.Last().Body)
		}
	}
}

// TestForeignIDs goes on with a history whose calls another provider made: their ids go out as ids that all take, and as they
// were to the provider that made them.
func TestForeignIDs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("i", 39)
	calls := []modeltest.Call{
		{ID: "functions.searchTabs:0", Name: "searchTabs", Arguments: "{}"}, {ID: long, Name: "searchTabs", Arguments: "{}"},
		{ID: "Ab3dEf6hI", Name: "searchTabs", Arguments: "{}"},
	}
	home := modeltest.NewServer(t, modeltest.Reply{Calls: calls}, modeltest.Text("ok"))
	picky := modeltest.NewServerWith(t, modeltest.Config{ShortIDs: true}, modeltest.Text("ok"), modeltest.Text("ok"))
	request := withTool(ask("a"), tool("searchTabs"))
	turn, err := newClient(t, model.Config{BaseURL: home.URL}).Complete(t.Context(), request, model.Sink{})
	if err != nil || len(turn.Calls) != len(calls) {
		t.Fatalf("%+v, %v", turn, err)
	}
	request.Messages = append(request.Messages, turn.Message())
	for _, call := range turn.Calls {
		request.Messages = append(request.Messages, model.Message{Role: model.RoleTool, CallID: call.ID, Text: "x"})
	}
	var sent []string
	for _, server := range []*modeltest.Server{picky, picky, home} {
		if _, err := newClient(t, model.Config{BaseURL: server.URL}).Complete(t.Context(), request, model.Sink{}); err != nil {
			t.Error(err)
		}
		if strings.Contains(string(server.Last().Body), "throwbar_from") {
			t.Errorf("sent %s", server.Last().Body)
		}
		var ids []string
		for _, call := range server.Last().Messages[1].Calls {
			ids = append(ids, call.ID)
		}
		sent = append(sent, strings.Join(ids, " "))
	}
	if sent[0] != sent[1] || !strings.HasSuffix(sent[0], " Ab3dEf6hI") {
		t.Errorf("the picky one got %q, then %q", sent[0], sent[1]) // different ones would cost its cache
	}
	if sent[2] != "functions.searchTabs:0 "+long+" Ab3dEf6hI" {
		t.Errorf("home got %q", sent[2])
	}
}

// TestCompressedAnswers has servers that answer in a form that nobody asked for.
func TestCompressedAnswers(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 400} {
		tr := &transport{answers: []func(*http.Request) (*http.Response, error){respond(status, "text/event-stream", "\x1b\x00\x80", "Content-Encoding", "br")}}
		turn, err := newClient(t, model.Config{BaseURL: "http://model.test/v1", HTTPClient: &http.Client{Transport: tr}}).Complete(t.Context(), ask("a"), model.Sink{})
		var api *model.APIError
		if !errors.As(err, &api) || api.Status != status || !strings.Contains(api.Message, "compressed with br") || !turn.Empty() || len(tr.at) != 1 {
			t.Errorf("%+v, %v", turn, err)
		}
	}
	tr := &transport{answers: []func(*http.Request) (*http.Response, error){respond(200, "text/event-stream", hello, "Content-Encoding", "identity")}}
	if turn, err := newClient(t, model.Config{BaseURL: "http://model.test/v1", HTTPClient: &http.Client{Transport: tr}}).Complete(t.Context(), ask("a"), model.Sink{}); err != nil || turn.Text != "Hello" {
		t.Errorf("%+v, %v", turn, err)
	}
}

// TestKeyInErrorsOfTheTransport has a peer that speaks no HTTP and tells what it was sent.
func TestKeyInErrorsOfTheTransport(t *testing.T) {
	t.Parallel()
	tr := &transport{answers: []func(*http.Request) (*http.Response, error){
		func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Request: r, Body: io.NopCloser(io.MultiReader(
				strings.NewReader("data: "), iotest.ErrReader(errors.New("malformed chunk: "+r.Header.Get("Authorization")))))}, nil
		},
		func(r *http.Request) (*http.Response, error) {
			return refuse(307, "Location", "http://elsewhere.test/?"+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))(r)
		},
	}}
	client := newClient(t, model.Config{BaseURL: "http://model.test/v1", HTTPClient: &http.Client{Transport: tr}})
	for range 2 {
		_, err := client.Complete(t.Context(), ask("a"), model.Sink{})
		if err == nil || strings.Contains(err.Error(), modeltest.Key) {
			t.Errorf("error %v", err)
		}
		for ; err != nil; err = errors.Unwrap(err) {
			if strings.Contains(err.Error(), modeltest.Key) {
				t.Errorf("inner error %v", err)
			}
		}
	}
}

// TestErrorBodies sees the provider's own words through the client, whatever the form of the body.
func TestErrorBodies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status     int
		media      string
		body, want string
	}{
		{400, "application/json", `{"error":{"message":"tools is too long","type":"invalid_request_error","param":"tools","code":null}}`, "400 (invalid_request_error): tools is too long"},
		{404, "application/json", `{"error":"model \"x\" not found, try pulling it first"}`, `404: model "x" not found, try pulling it first`},
		{400, "application/json", `[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]`, "400 (INVALID_ARGUMENT): API key not valid"},
		{422, "application/json", `{"detail":[{"loc":["body","tools"],"msg":"field required","type":"missing"}]}`, "422 (missing): field required"},
		{404, "application/json", `{"detail":"Not Found"}`, "404: Not Found"},
		{403, "text/html", "<html><title>403 Forbidden</title><body>cloud gate</body></html>", "403: 403 Forbidden cloud gate"},
		{400, "text/plain", "bad\r\nluck", "400: bad luck"},
		{401, "application/json", "", "401: unauthorized"},
		{418, "application/json", `{"code":7}`, "418: i'm a teapot"},
		{400, "application/json", `{"error":{"message":"` + strings.Repeat("x", 1<<20) + `"}}`, "xxxxxxxx"},
	} {
		t.Run(tt.want[:min(len(tt.want), 30)], func(t *testing.T) {
			t.Parallel()
			tr := &transport{answers: []func(*http.Request) (*http.Response, error){respond(tt.status, tt.media, tt.body)}}
			turn, err := newClient(t, model.Config{BaseURL: "http://model.test/v1", HTTPClient: &http.Client{Transport: tr}}).Complete(t.Context(), ask("a"), model.Sink{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 3000 || !turn.Empty() {
				t.Errorf("%+v, %.200v", turn, err)
			}
		})
	}
}

// TestReset resets the connection at every byte of an answer with a call: what came is kept, nothing is run, nothing is
// asked again.
func TestReset(t *testing.T) {
	t.Parallel()
	const first = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi. \"}}]}\n\n"
	const body = first +
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"searchTabs\",\"arguments\":\"{}\"}}]}}]}\n\n"
	server := modeltest.NewServer(t)
	client := newClient(t, model.Config{BaseURL: server.URL})
	for n := len(first) + 1; n <= len(body); n += 7 {
		read := make(chan struct{}) // a reset may take with it what was sent before, and not read
		reply := modeltest.Replay(body)
		reply.CutAtByte, reply.Reset, reply.Seed, reply.HoldAtByte, reply.Hold = n, n%2 == 0, uint64(n), len(first), read
		server.Add(reply)
		sink := model.Sink{OnText: func(string) { close(read) }}
		turn, err := client.Complete(t.Context(), withTool(ask("a"), tool("searchTabs")), sink)
		if !errors.Is(err, model.ErrCutOff) || !turn.CutOff || len(turn.Calls) > 0 || turn.Text != "Hi. " {
			t.Errorf("cut at %d: %+v, %v", n, turn, err)
		}
	}
}
