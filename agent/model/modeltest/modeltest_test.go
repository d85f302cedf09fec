package modeltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
)

// closeTabs is a tool with a schema that is right.
const closeTabs = `{"type":"function","function":{"name":"closeTabs","description":"Close tabs.","parameters":{"type":"object",
	"properties":{"tabIds":{"type":"array","items":{"type":"string"},"minItems":1}},"required":["tabIds"],"additionalProperties":false}}}`

// good is a request without faults, with history and tools.
func good() map[string]any {
	var out map[string]any
	text := `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[
		{"role":"system","content":"Be kind."},
		{"role":"user","content":"close them"},
		{"role":"assistant","content":null,"tool_calls":[
			{"id":"a","type":"function","function":{"name":"closeTabs","arguments":"{\"tabIds\":[\"1\"]}"}},
			{"id":"b","type":"function","function":{"name":"closeTabs","arguments":"{\"tabIds\":[\"2\"]}"}}]},
		{"role":"tool","tool_call_id":"b","content":"closed"},
		{"role":"tool","tool_call_id":"a","content":"closed"},
		{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},
		{"role":"assistant","content":"Done."},
		{"role":"user","content":"thanks"}],
		"tools":[` + closeTabs + `]}`
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		panic(err)
	}
	return out
}

// request is one to be sent.
type request struct {
	method, path, key, contentType, body string
}

func newRequest(doc map[string]any) request {
	body, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return request{"POST", "/v1/chat/completions", "Bearer " + modeltest.Key, "application/json", string(body)}
}

// serve gives the request to the handler and returns status and body.
func (q request) serve(h http.Handler) (int, string) {
	r := httptest.NewRequest(q.method, q.path, strings.NewReader(q.body))
	r.Header.Set("Content-Type", q.contentType)
	if q.key != "" {
		r.Header.Set("Authorization", q.key)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// at returns the object at a path of member names and indexes.
func at(doc any, path ...any) map[string]any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			doc = doc.(map[string]any)[step]
		case int:
			doc = doc.([]any)[step]
		}
	}
	return doc.(map[string]any)
}

func parse(text string) any {
	var out any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		panic(err)
	}
	return out
}

func message(text string) func(map[string]any) {
	return func(doc map[string]any) { doc["messages"] = append(doc["messages"].([]any), parse(text)) }
}

func parameters(text string) func(map[string]any) {
	return func(doc map[string]any) { at(doc, "tools", 0, "function")["parameters"] = parse(text) }
}

func set(value any, path ...any) func(map[string]any) {
	return func(doc map[string]any) { at(doc, path[:len(path)-1]...)[path[len(path)-1].(string)] = value }
}

func TestGoodRequest(t *testing.T) {
	t.Parallel()
	h := modeltest.NewHandler(modeltest.Config{}, modeltest.Text("ok"))
	status, body := newRequest(good()).serve(h)
	if status != http.StatusOK || !strings.Contains(body, "[DONE]") || len(h.Violations()) > 0 {
		t.Errorf("status %d, %s, %v", status, body, h.Violations())
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	call := func(name string) []any { return []any{"messages", 2, "tool_calls", 0, name} }
	function := func(name string) []any { return []any{"messages", 2, "tool_calls", 0, "function", name} }
	tests := []struct {
		name   string
		change func(map[string]any)
		status int
		text   string
	}{
		{"unknown field", set(1, "top_k"), 400, "Unrecognized request argument supplied: top_k"},
		{"no model", set("", "model"), 400, "model parameter"},
		{"two limits", func(d map[string]any) { d["max_tokens"], d["max_completion_tokens"] = 1, 1 }, 400, "at the same time"},
		{"negative limit", set(-1, "max_tokens"), 400, "positive"},
		{"stream options without stream", set(false, "stream"), 400, "only allowed when 'stream'"},
		{"odd effort", set("extreme", "reasoning_effort"), 400, "Invalid value"},
		{"choice without tools", func(d map[string]any) { delete(d, "tools"); d["tool_choice"] = "auto" }, 400, "only allowed when 'tools'"},
		{"choice of a tool not offered", set(parse(`{"type":"function","function":{"name":"x"}}`), "tool_choice"), 400, "not found in 'tools'"},
		{"no messages", set([]any{}, "messages"), 400, "empty array"},
		{"odd role", message(`{"role":"function","content":"x"}`), 400, "Invalid value: 'function'"},
		{"late system", message(`{"role":"system","content":"x"}`), 400, "must come first"},
		{"assistant last", message(`{"role":"assistant","content":"x"}`), 400, "Expected last role"},
		{"assistant first", func(d map[string]any) {
			d["messages"] = parse(`[{"role":"assistant","content":"x"},{"role":"user","content":"y"}]`)
		}, 400, "must begin with user"},
		{"empty user", message(`{"role":"user","content":" "}`), 400, "non-whitespace"},
		{"user null", message(`{"role":"user","content":null}`), 400, "string or array"},
		{"empty assistant", message(`{"role":"assistant","content":null}`), 400, "got null"},
		{"empty calls", message(`{"role":"assistant","content":"x","tool_calls":[]}`), 400, "empty array"},
		{"orphan result", message(`{"role":"tool","tool_call_id":"z","content":"x"}`), 400, "preceeding message"},
		{"second result", message(`{"role":"tool","tool_call_id":"a","content":"x"}`), 400, "Duplicate value for 'tool_call_id'"},
		{"result without id", message(`{"role":"tool","content":"x"}`), 400, "Missing parameter 'tool_call_id'"},
		{"missing result", func(d map[string]any) { m := d["messages"].([]any); d["messages"] = append(m[:4:4], m[5:]...) }, 400, "did not have response messages: a"},
		{"result out of place", func(d map[string]any) { m := d["messages"].([]any); m[4], m[5] = m[5], m[4] }, 400, "did not have response messages: a"},
		{"image in result", set(parse(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]`), "messages", 3, "content"), 400, "only allowed for messages with role 'user'"},
		{"field of a message", set("x", "messages", 1, "name_of_mine"), 400, "Additional properties"},
		{"reasoning", set("x", "messages", 6, "reasoning_content"), 400, "Additional properties"},
		{"call id twice", func(d map[string]any) {
			at(d, call("")[:4]...)["id"] = "b"
			at(d, "messages", 4)["tool_call_id"] = "b"
		}, 400, "Duplicate tool call id"},
		{"call without id", set("", call("id")...), 400, "invalid 'messages[2].tool_calls[0].id'"},
		{"call without type", set(nil, call("type")...), 400, "type"},
		{"call name", set("close tabs", function("name")...), 400, "does not match pattern"},
		{"call arguments", set("{", function("arguments")...), 400, "not a JSON object"},
		{"call arguments array", set("[]", function("arguments")...), 400, "not a JSON object"},
		{"call arguments empty", set("", function("arguments")...), 400, "not a JSON object"},
		{"call arguments half a pair", set(`{"x":"\ud83d"}`, function("arguments")...), 400, "not a JSON object"},
		{"call extras", set(1, call("extra_content")...), 400, "Additional properties"},
		{"no tools", set([]any{}, "tools"), 400, "empty array"},
		{"129 tools", func(d map[string]any) { d["tools"] = make([]any, 129) }, 400, "array too long"},
		{"tool twice", func(d map[string]any) { d["tools"] = []any{parse(closeTabs), parse(closeTabs)} }, 400, "Duplicate tool name"},
		{"tool name", set("close.tabs", "tools", 0, "function", "name"), 400, "does not match pattern"},
		{"tool name too long", set(strings.Repeat("x", 65), "tools", 0, "function", "name"), 400, "does not match pattern"},
		{"tool name begins with digit", set("1x", "tools", 0, "function", "name"), 400, "does not match pattern"},
		{"tool field", set(1, "tools", 0, "function", "outputSchema"), 400, "unknown parameter"},
		{"parameters string", parameters(`"x"`), 400, "type: \"object\""},
		{"parameters no type", parameters(`{"properties":{}}`), 400, "type: \"object\""},
		{"parameters no properties", parameters(`{"type":"object"}`), 400, "missing properties"},
		{"parameters oneOf", parameters(`{"type":"object","properties":{},"oneOf":[{}]}`), 400, "not have 'oneOf'"},
		{"parameters anyOf", parameters(`{"type":"object","properties":{},"anyOf":[{}]}`), 400, "not have 'anyOf'"},
		{"parameters allOf", parameters(`{"type":"object","properties":{},"allOf":[{}]}`), 400, "not have 'allOf'"},
		{"array without items", parameters(`{"type":"object","properties":{"x":{"anyOf":[{"type":["array","null"]}]}}}`), 400, "array schema missing items"},
		{"schema that does not compile", parameters(`{"type":"object","properties":{"x":{"type":"strin"}}}`), 400, "compile schema"},
		{"schema with dangling reference", parameters(`{"type":"object","properties":{"x":{"$ref":"#/$defs/y"}}}`), 400, "compile schema"},
		{"strict without required", func(d map[string]any) {
			parameters(`{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false}`)(d)
			at(d, "tools", 0, "function")["strict"] = true
		}, 400, "Missing 'x'"},
		{"secret", message(`{"role":"user","content":"my password is hunter2"}`), 400, "secret"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc := good()
			tt.change(doc)
			checkRefusal(t, newRequest(doc), tt.status, tt.text)
		})
	}
}

func TestRefusedEnvelopes(t *testing.T) {
	t.Parallel()
	plain := newRequest(good())
	tests := []struct {
		name   string
		change func(*request)
		status int
		text   string
	}{
		{"path", func(q *request) { q.path = "/chat/completions" }, 404, "Invalid URL"},
		{"query", func(q *request) { q.path += "?key=1" }, 400, "query"},
		{"method", func(q *request) { q.method = "PUT" }, 405, "PUT"},
		{"no key", func(q *request) { q.key = "" }, 401, "didn't provide"},
		{"wrong key", func(q *request) { q.key = "Bearer sk-other" }, 401, "Incorrect"},
		{"content type", func(q *request) { q.contentType = "text/plain" }, 415, "Unsupported content type"},
		{"no json", func(q *request) { q.body = "{" }, 400, "could not parse"},
		{"two documents", func(q *request) { q.body += "{}" }, 400, "after the document"},
		{"member twice", func(q *request) { q.body = strings.Replace(q.body, "{", `{"model":"n",`, 1) }, 400, "occurs twice"},
		{"invalid utf-8", func(q *request) { q.body = strings.Replace(q.body, "thanks", "tha\xffnks", 1) }, 400, "UTF-8"},
		{"half a pair", func(q *request) { q.body = strings.Replace(q.body, "thanks", `\uD83D \uDE00`, 1) }, 400, "surrogate"},
		{"low half", func(q *request) { q.body = strings.Replace(q.body, "thanks", `x\uDE00`, 1) }, 400, "surrogate"},
		{"nul", func(q *request) { q.body = strings.Replace(q.body, "thanks", `x\u0000`, 1) }, 400, "NUL"},
		{"the key in the text", func(q *request) { q.body = strings.Replace(q.body, "thanks", modeltest.Key, 1) }, 400, "secret"},
		{"too large", func(q *request) { q.body = strings.Replace(q.body, "thanks", strings.Repeat("x", 9<<20), 1) }, 413, "too large"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := plain
			tt.change(&q)
			checkRefusal(t, q, tt.status, tt.text)
		})
	}
}

func checkRefusal(t *testing.T, q request, status int, text string) {
	t.Helper()
	h := modeltest.NewHandler(modeltest.Config{Secrets: []string{"hunter2"}}, modeltest.Text("ok"))
	gotStatus, body := q.serve(h)
	var doc struct {
		Error struct{ Message, Type string }
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil || doc.Error.Type != "invalid_request_error" {
		t.Errorf("body %s: %v", body, err)
	}
	if gotStatus != status || !strings.Contains(doc.Error.Message, text) {
		t.Errorf("got %d %q, want %d with %q", gotStatus, doc.Error.Message, status, text)
	}
	if v := h.TakeViolations(); len(v) != 1 || v[0].Text != doc.Error.Message || len(h.Violations()) != 0 {
		t.Errorf("violations %v", v)
	}
	if h.Remaining() != 1 || h.Last().Refused != doc.Error.Message {
		t.Errorf("%d steps left, refused %q", h.Remaining(), h.Last().Refused)
	}
}

func TestWholePairsPass(t *testing.T) {
	t.Parallel()
	h := modeltest.NewHandler(modeltest.Config{}, modeltest.Text("ok"))
	q := newRequest(good())
	q.body = strings.Replace(q.body, "thanks", `\uD83D\uDE00\ud83d\ude00 \\ud83d \\u0000`, 1)
	if status, body := q.serve(h); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	h := modeltest.NewHandler(modeltest.Config{},
		modeltest.Use("closeTabs", `{"tabIds":"{{closeTabs.id}}"}`),
		modeltest.Func(func(r *modeltest.Received) modeltest.Reply {
			return modeltest.Text(strings.Join(modeltest.Collect(r.LastResult(), "id"), "+"))
		}),
		modeltest.Use("openTab", map[string]string{"url": "https://example.com"}),
		modeltest.Use("closeTabs", `{"tabIds":[]}`),
		modeltest.Use("closeTabs", `{"tabIds":["{{closeTabs.nothing[0]}}"]}`),
		modeltest.Reply{Calls: []modeltest.Call{{Name: "no tool", Arguments: "{"}}, Unchecked: true},
	)
	doc := good()
	at(doc, "messages", 4)["content"] = `<<mark>> {"tabs":[{"id":"t1","x":1},{"id":"t2"}],"n":{"id":["t3"]}} <<mark>>`
	q := newRequest(doc)
	for i, want := range []string{
		`\"t2\",\"t3`, `"content":"t1+t2+t3"`, "openTab, which is not offered", "minItems", "no value for", `"no tool"`, "used up",
	} {
		if _, body := q.serve(h); !strings.Contains(body, want) {
			t.Errorf("reply %d is %s, want %s", i, body, want)
		}
	}
	if v := h.Violations(); len(v) != 4 {
		t.Errorf("violations %v", v)
	}
}

func TestExtrasMustComeBack(t *testing.T) {
	t.Parallel()
	call := modeltest.NewCall("closeTabs", `{"tabIds":["1"]}`)
	call.ID, call.Extra = "a", json.RawMessage(`{"extra_content":{"sig":12345678901234567890},"function":{"more":1}}`)
	h := modeltest.NewHandler(modeltest.Config{},
		modeltest.Reply{Calls: []modeltest.Call{call}}, modeltest.Text("ok"), modeltest.Text("ok"))
	first := good()
	first["messages"] = first["messages"].([]any)[:2]
	if _, body := newRequest(first).serve(h); !strings.Contains(body, "12345678901234567890") {
		t.Errorf("extras not sent: %s", body)
	}
	if status, body := newRequest(good()).serve(h); status != 400 || !strings.Contains(body, "missing what came with it") {
		t.Errorf("%d %s", status, body)
	}
	doc := good()
	at(doc, "messages", 2, "tool_calls", 0)["extra_content"] = parse(`{"sig":12345678901234567890}`)
	at(doc, "messages", 2, "tool_calls", 0, "function")["more"] = 1
	if status, body := newRequest(doc).serve(h); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	h := modeltest.NewHandler(modeltest.Config{Rule: modeltest.MustRules(
		modeltest.Rule{Match: "^close", Steps: []modeltest.Step{modeltest.Use("closeTabs", `{"tabIds":["1"]}`), modeltest.Text("all closed")}},
		modeltest.Rule{Match: "thanks", Steps: []modeltest.Step{modeltest.Text("welcome")}},
	)})
	messages := good()["messages"].([]any)
	for n, want := range map[int]string{2: "closeTabs", 5: "all closed", 6: "all closed", 8: "welcome"} {
		doc := good()
		doc["messages"] = messages[:n]
		doc["stream"] = false
		delete(doc, "stream_options")
		if _, body := newRequest(doc).serve(h); !strings.Contains(body, want) {
			t.Errorf("%d messages: %s, want %s", n, body, want)
		}
	}
	if _, err := modeltest.Rules(modeltest.Rule{Match: "("}); err == nil {
		t.Error("bad expression taken")
	}
}

func TestContextBytes(t *testing.T) {
	t.Parallel()
	h := modeltest.NewHandler(modeltest.Config{ContextBytes: 100}, modeltest.Text("ok"))
	status, body := newRequest(good()).serve(h)
	if status != 400 || !strings.Contains(body, "context_length_exceeded") || len(h.Violations()) > 0 || h.Last().Refused == "" {
		t.Errorf("%d %s %v", status, body, h.Violations())
	}
}

func TestStreamForms(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{}, 1)
	hold <- struct{}{}
	for name, tt := range map[string]struct {
		reply modeltest.Reply
		want  []string
		not   string
	}{
		"plain":  {modeltest.Text("Hello, world"), []string{`"role":"assistant"`, `"content":"Hello, w"`, `"content":"orld"`, `"finish_reason":"stop"`, `"choices":[]`, `"usage"`, "[DONE]"}, ""},
		"bare":   {modeltest.Reply{Text: "Hello", NoDone: true, NoUsage: true}, []string{"Hello"}, "[DONE]"},
		"split":  {modeltest.Reply{Text: "Hello", Split: 3, Hold: hold, HoldAfter: 1, PaceMillis: 1}, []string{"Hello", "[DONE]"}, ""},
		"whole":  {modeltest.Reply{Text: "Hello", Reasoning: "hm", Refusal: "no", Whole: true}, []string{`"chat.completion"`, `"message"`}, "data:"},
		"chunks": {modeltest.Reply{Chunks: []string{`{"x":1}`}}, []string{"data: {\"x\":1}\n\n", "[DONE]"}, "choices"},
		"body":   {modeltest.Reply{Body: "<html>", Status: 502, ContentType: "text/html"}, []string{"<html>"}, "data:"},
		"error":  {modeltest.Fail(503, "busy"), []string{`"message":"busy"`}, "data:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, body := newRequest(good()).serve(modeltest.NewHandler(modeltest.Config{}, tt.reply))
			for _, want := range tt.want {
				if !strings.Contains(body, want) {
					t.Errorf("no %s in %s", want, body)
				}
			}
			if tt.not != "" && strings.Contains(body, tt.not) {
				t.Errorf("%s in %s", tt.not, body)
			}
		})
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(modeltest.NewHandler(modeltest.Config{}, modeltest.Reply{Text: "Hello, world", CutAfter: 2}))
	defer server.Close()
	q := newRequest(good())
	r, err := http.NewRequestWithContext(t.Context(), q.method, server.URL+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", q.contentType)
	r.Header.Set("Authorization", q.key)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(string(body), "Hello, w") || strings.Contains(string(body), "orld") {
		t.Errorf("%s, %v", body, err)
	}
}

func TestAwait(t *testing.T) {
	t.Parallel()
	h := modeltest.NewHandler(modeltest.Config{}, modeltest.Text("ok"))
	got := make(chan *modeltest.Received)
	go func() {
		r, _ := h.Await(t.Context(), 1)
		got <- r
	}()
	newRequest(good()).serve(h)
	if r := <-got; r.LastUser() != "thanks" || r.System() != "Be kind." || r.Result("closeTabs") != "closed" {
		t.Errorf("got %+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Await(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// recorder is a test that only takes notes.
type recorder struct {
	errors  []string
	cleanup []func()
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Cleanup(f func()) { r.cleanup = append(r.cleanup, f) }

func TestServerReports(t *testing.T) {
	t.Parallel()
	var notes recorder
	server := modeltest.NewServer(&notes, modeltest.Text("never asked for"))
	request{method: "POST", path: "/nowhere"}.serve(server.Handler)
	for _, f := range notes.cleanup {
		f()
	}
	if len(notes.errors) != 2 || !strings.Contains(notes.errors[0], "Invalid URL") || !strings.Contains(notes.errors[1], "1 steps") {
		t.Errorf("errors %q", notes.errors)
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	h := modeltest.NewHandler(modeltest.Config{NoKey: true, Model: "m"})
	control := h.Control()
	post := func(path, body string) (int, string) {
		return request{method: "POST", path: path, body: body}.serve(control)
	}
	get := func(path string) string {
		_, body := request{method: "GET", path: path}.serve(control)
		return body
	}
	ask := newRequest(good())
	ask.key = ""
	if status, text := post("/script", `[{"text":"first"}]`); status != http.StatusNoContent {
		t.Fatalf("%d %s", status, text)
	}
	if status, _ := post("/script", `[{"txt":"first"}]`); status != http.StatusBadRequest {
		t.Error("unknown member taken")
	}
	if status, text := post("/rules", `[{"match":"","replies":[{"text":"rule"}]}]`); status != http.StatusNoContent {
		t.Fatalf("%d %s", status, text)
	}
	if status, _ := post("/rules", `[{"match":"(","replies":[{}]}]`); status != http.StatusBadRequest {
		t.Error("bad rule taken")
	}
	for _, want := range []string{"first", "rule", "rule"} {
		if _, body := ask.serve(h); !strings.Contains(body, want) {
			t.Errorf("got %s, want %s", body, want)
		}
	}
	ask.key = "Bearer x"
	ask.serve(h)
	var violations []modeltest.Violation
	if err := json.Unmarshal([]byte(get("/violations")), &violations); err != nil ||
		!reflect.DeepEqual(violations, []modeltest.Violation{{Request: 4, Text: "a key was sent to a server that wants none"}}) {
		t.Errorf("violations %v, %v", violations, err)
	}
	if body := get("/requests"); strings.Count(body, `"number"`) != 4 {
		t.Errorf("requests %s", body)
	}
	if status, _ := post("/reset", ""); status != http.StatusNoContent || get("/requests") != "[]\n" || get("/violations") != "[]\n" {
		t.Error("not reset")
	}
	models := request{method: "GET", path: "/v1/models"}
	if status, body := models.serve(h); status != http.StatusOK || !strings.Contains(body, `"id":"m"`) {
		t.Errorf("models %d %s", status, body)
	}
}
