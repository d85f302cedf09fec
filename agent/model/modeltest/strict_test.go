package modeltest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
)

// TestStrictRefusals has schemas that are marked strict and are not, and what Gemini and others do not take.
func TestStrictRefusals(t *testing.T) {
	t.Parallel()
	strict := func(property string) func(map[string]any) {
		return func(d map[string]any) {
			parameters(`{"type":"object","properties":{"x":` + property + `},"required":["x"],"additionalProperties":false}`)(d)
			at(d, "tools", 0, "function")["strict"] = true
			d["parallel_tool_calls"] = false
		}
	}
	plain := func(property string) func(map[string]any) {
		return parameters(`{"type":"object","properties":{"x":` + property + `}}`)
	}
	gemini, noTools := modeltest.Config{Gemini: true}, modeltest.Config{NoTools: true}
	deep := strings.Repeat(`{"type":"array","items":`, 10) + `{"type":"string"}` + strings.Repeat("}", 10)
	many := strings.TrimSuffix(strings.Repeat(`"v",`, 1001), ",")
	tests := []struct {
		name   string
		config modeltest.Config
		change func(map[string]any)
		text   string // empty if the request is taken
	}{
		{"strict", modeltest.Config{}, strict(`{"type":["string","null"]}`), ""},
		{"strict anyOf", modeltest.Config{}, strict(`{"anyOf":[{"type":"string"},{"type":"null"}]}`), ""},
		{"strict and parallel", modeltest.Config{}, func(d map[string]any) { strict(`{"type":"string"}`)(d); delete(d, "parallel_tool_calls") }, "parallel_tool_calls"},
		{"strict oneOf", modeltest.Config{}, strict(`{"oneOf":[{"type":"string"}]}`), "'oneOf' is not permitted"},
		{"strict uniqueItems", modeltest.Config{}, strict(`{"type":"array","items":{"type":"string"},"uniqueItems":true}`), "'uniqueItems' is not permitted"},
		{"strict map", modeltest.Config{}, strict(`{"type":"object","properties":{},"patternProperties":{}}`), "'patternProperties' is not permitted"},
		{"strict uri", modeltest.Config{}, strict(`{"type":"string","format":"uri"}`), "'uri' is not a valid format"},
		{"strict open object", modeltest.Config{}, strict(`{"type":"object","properties":{}}`), "'additionalProperties' is required"},
		{"strict beside a reference", modeltest.Config{}, strict(`{"$ref":"#","description":"y"}`), "$ref cannot have keywords"},
		{"strict depth", modeltest.Config{}, strict(deep), "nested deeper than 10"},
		{"strict values", modeltest.Config{}, strict(`{"type":"string","enum":[` + many + `]}`), "1001 enum values"},
		{"not strict", modeltest.Config{}, plain(`{"oneOf":[{"type":"string","format":"uri"}]}`), ""},
		{"gemini", gemini, func(d map[string]any) { plain(`{"type":"string","enum":["a"],"minLength":1}`)(d) }, ""},
		{"gemini type list", gemini, plain(`{"type":["string","null"]}`), "cannot start list"},
		{"gemini closed object", gemini, plain(`{"type":"object","properties":{},"additionalProperties":false}`), "Unknown name \\\"additionalProperties"},
		{"gemini reference", gemini, plain(`{"$ref":"#"}`), "Unknown name \\\"$ref"},
		{"gemini exclusive", gemini, plain(`{"type":"integer","exclusiveMinimum":0}`), "Unknown name \\\"exclusiveMinimum"},
		{"gemini enum of numbers", gemini, plain(`{"type":"integer","enum":[1]}`), "only allowed for STRING"},
		{"gemini enum with nothing", gemini, plain(`{"type":"string","enum":[""]}`), "TYPE_STRING"},
		{"gemini beside anyOf", gemini, plain(`{"anyOf":[{"type":"string"}],"description":"y"}`), "it must be the only field"},
		{"no tools", noTools, func(map[string]any) {}, "does not support tools"},
		{"no calls in the history", noTools, func(d map[string]any) { delete(d, "tools") }, "does not support tools"},
		{"nothing of tools", noTools, func(d map[string]any) {
			delete(d, "tools")
			d["messages"] = parse(`[{"role":"user","content":"x"}]`)
		}, ""},
		{"reasoning is missing", modeltest.Config{NeedsReasoning: true}, func(map[string]any) {}, "Missing `reasoning_content`"},
		{"reasoning is there", modeltest.Config{NeedsReasoning: true}, set("hm", "messages", 2, "reasoning_content"), ""},
		{"field that is not known", modeltest.Config{RefuseField: "stream_options"}, func(map[string]any) {}, "supplied: stream_options"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc := good()
			if tt.config.Gemini {
				parameters(`{"type":"object","properties":{}}`)(doc)
			}
			tt.change(doc)
			h := modeltest.NewHandler(tt.config, modeltest.Text("ok"))
			status, body := newRequest(doc).serve(h)
			want := http.StatusOK
			if tt.text != "" {
				want = http.StatusBadRequest
			}
			if status != want || !strings.Contains(body, tt.text) || len(h.Violations()) > 0 != (tt.text != "") {
				t.Errorf("status %d, %s, %v", status, body, h.Violations())
			}
		})
	}
}

// say gives a history to the server and returns the message that it answers.
func say(t *testing.T, h http.Handler, history ...map[string]any) map[string]any {
	t.Helper()
	doc := map[string]any{"model": "m", "messages": history, "tools": []any{parse(closeTabs)}}
	status, body := newRequest(doc).serve(h)
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	return at(parse(body), "choices", 0, "message")
}

func from(role, text string) map[string]any { return map[string]any{"role": role, "content": text} }

// TestRulesByAnything has two agents on one server that write to each other.
func TestRulesByAnything(t *testing.T) {
	t.Parallel()
	h := modeltest.NewHandler(modeltest.Config{Rule: modeltest.MustRules(
		modeltest.Rule{Model: "other", Steps: []modeltest.Step{modeltest.Text("never")}},
		modeltest.Rule{Needs: "openTab", Steps: []modeltest.Step{modeltest.Text("never")}},
		modeltest.Rule{Lacks: "closeTabs", Steps: []modeltest.Step{modeltest.Text("never")}},
		modeltest.Rule{Result: `closed "?(\w+)`, Steps: []modeltest.Step{modeltest.Text("never"), modeltest.Text("closed {{result.1}} for {{system.1}}")}},
		modeltest.Rule{System: `You are (\w+)`, Match: `close (.*)`, Steps: []modeltest.Step{modeltest.Use("closeTabs", `{"tabIds":["{{user.1}}"]}`)}},
		modeltest.Rule{Last: `^ping (\d+)`, Steps: []modeltest.Step{modeltest.Text("pong {{last.1}} {{last.2}}")}},
	)})
	first := say(t, h, from("system", "You are A."), from("user", `close a"b`))
	calls := first["tool_calls"].([]any)
	if got := at(first, "tool_calls", 0, "function")["arguments"]; got != `{"tabIds":["a\"b"]}` {
		t.Errorf("arguments %v", got)
	}
	result := from("tool", `closed "one`)
	result["tool_call_id"] = calls[0].(map[string]any)["id"]
	call := map[string]any{"role": "assistant", "content": nil, "tool_calls": calls}
	if got := say(t, h, from("system", "You are A."), from("user", "close one"), call, result)["content"]; got != "closed one for {{system.1}}" {
		t.Errorf("answer %v", got) // the rule has no pattern for the system messages
	}
	if got := say(t, h, from("user", "ping 7"))["content"]; got != "pong 7 {{last.2}}" {
		t.Errorf("answer %v", got)
	}
}

// TestPolicyIsTheSame runs conversations with a policy, side by side and again: each goes as before, ends, and uses the
// ids that results brought.
func TestPolicyIsTheSame(t *testing.T) {
	t.Parallel()
	used := 0
	talk := func(h http.Handler, what, prefix string) string {
		history := []map[string]any{from("user", what)}
		var shape strings.Builder
		for range 10 {
			answer := say(t, h, history...)
			calls, _ := answer["tool_calls"].([]any)
			fmt.Fprintf(&shape, "%d calls, %v;", len(calls), answer["content"])
			if len(calls) == 0 {
				return shape.String()
			}
			if answer["content"] == "" {
				answer["content"] = nil
			}
			delete(answer, "refusal")
			history = append(history, answer)
			for _, call := range calls {
				text := at(call, "function")["arguments"].(string)
				var args struct{ TabIDs []string }
				if json.Unmarshal([]byte(text), &args) != nil || len(args.TabIDs) == 0 {
					t.Fatalf("arguments %s", text)
				}
				if strings.Contains(text, prefix) {
					used++
				}
				result := from("tool", `{"tabs":[{"id":"`+prefix+`1"},{"id":"`+prefix+`2"}]}`)
				result["tool_call_id"] = at(call)["id"]
				history = append(history, result)
			}
		}
		t.Fatalf("it does not end: %s", shape.String())
		return ""
	}
	shapes := map[string]bool{}
	h := modeltest.NewHandler(modeltest.Config{Rule: modeltest.Policy{Seed: 7, Rounds: 5}})
	for n := range 20 {
		what := fmt.Sprint("talk ", n)
		one, two := talk(h, what, "x"), talk(h, what, "other-")
		if one != two {
			t.Errorf("%s went as\n%s and as\n%s", what, one, two)
		}
		shapes[one] = true
	}
	if len(shapes) < 10 || used == 0 || len(h.Violations()) > 0 {
		t.Errorf("%d ways to go, ids used %d times, %v", len(shapes), used, h.Violations())
	}
}

// TestWildPolicy makes calls that no schema allows, and only then.
func TestWildPolicy(t *testing.T) {
	t.Parallel()
	h := modeltest.NewHandler(modeltest.Config{Rule: modeltest.Policy{Wild: true, Calls: 4}})
	unknown, broken := 0, 0
	for n := range 60 {
		calls, _ := say(t, h, from("user", fmt.Sprint("talk ", n)))["tool_calls"].([]any)
		for _, call := range calls {
			function := at(call, "function")
			if function["name"] == "no_such_tool" {
				unknown++
			}
			if !json.Valid([]byte(function["arguments"].(string))) {
				broken++
			}
		}
	}
	if unknown == 0 || broken == 0 || len(h.Violations()) > 0 {
		t.Errorf("%d unknown, %d broken, %v", unknown, broken, h.Violations())
	}
}
