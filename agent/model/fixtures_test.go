package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// fixture is an answer on the wire and the turn it stands for. Fresh ids are fresh1, fresh2, …
type fixture struct {
	name  string
	media string // text/event-stream unless set
	body  string
	want  Turn
	// err is part of the error's text, empty if there is none.
	err string
}

const (
	done     = "data: [DONE]\n\n"
	jsonType = "application/json; charset=utf-8"
)

// sse makes a stream of the chunks.
func sse(chunks ...string) string {
	var out strings.Builder
	for _, chunk := range chunks {
		out.WriteString("data: " + chunk + "\n\n")
	}
	return out.String()
}

// delta is a chunk with the members of a delta.
func delta(members string) string {
	return `{"id":"x1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{` + members + `},"finish_reason":null}]}`
}

// say is a chunk of text.
func say(text string) string { return delta(`"content":` + quote(text)) }

// calls is a chunk with fragments of calls, each the members of its object.
func calls(fragments ...string) string {
	return delta(`"tool_calls":[{` + strings.Join(fragments, "},{") + `}]`)
}

// fn is the function member of a fragment.
func fn(name, args string) string {
	return fmt.Sprintf(`"function":{"name":%s,"arguments":%s}`, quote(name), quote(args))
}

// more is a fragment's function member that brings only arguments.
func more(args string) string { return `"function":{"arguments":` + quote(args) + `}` }

func end(reason string) string {
	return `{"id":"x1","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func usage(prompt, completion int) string {
	return fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, prompt, completion)
}

func quote(s string) string {
	out, _ := json.Marshal(s)
	return string(out)
}

func fixtures() []fixture {
	var all []fixture
	for _, group := range [][]fixture{
		textFixtures(), endFixtures(), wholeFixtures(), callFixtures(), oddCallFixtures(), argumentFixtures(), reportFixtures(),
		shapeFixtures(), troubleFixtures(),
	} {
		all = append(all, group...)
	}
	return all
}

func textFixtures() []fixture {
	hello := Turn{Text: "Hello, world", Finish: FinishStop}
	plain := sse(delta(`"role":"assistant","content":""`), say("Hello, "), say("world"), end("stop")) + done
	return []fixture{
		{name: "text", body: plain, want: hello},
		{name: "crlf", body: strings.ReplaceAll(plain, "\n", "\r\n"), want: hello},
		{name: "lone cr", body: strings.ReplaceAll(plain, "\n", "\r"), want: hello},
		{name: "byte order mark", body: "\uFEFF" + plain, want: hello},
		{name: "comments and other fields", body: ": OPENROUTER PROCESSING\n\nid: 1\nretry: 5\n\n" +
			strings.ReplaceAll(plain, "data: {", "event: message\nid: 7\ndata: {"), want: hello},
		{name: "no space after data", body: strings.ReplaceAll(plain, "data: ", "data:"), want: hello},
		{name: "no empty lines", body: strings.ReplaceAll(plain, "\n\n", "\n"), want: hello},
		{name: "document over several data lines", body: strings.ReplaceAll(plain, `"choices":`, "\ndata: \"choices\":\ndata: "), want: hello},
		{name: "documents without field names", body: ":\n\n" + strings.ReplaceAll(plain, "data: {", "{"), want: hello},
		{name: "tail without line end", body: strings.TrimRight(strings.TrimSuffix(plain, done), "\n"), want: hello},
		{name: "no done", body: strings.TrimSuffix(plain, done), want: hello},
		{name: "done in quotes", body: strings.Replace(plain, "[DONE]", `"[DONE]"`, 1), want: hello},
		{name: "wrong content type", media: "text/plain", body: plain, want: hello},
		{name: "no content type", media: "-", body: plain, want: hello},
		{name: "chunk ids differ", body: sse(say("Hello, "), strings.Replace(say("world"), "x1", "x2", 1), end("stop")) + done, want: hello},
		{name: "choice index 197", body: strings.ReplaceAll(plain, `"index":0`, `"index":197`), want: hello},
		{name: "error null", body: strings.ReplaceAll(plain, `{"id"`, `{"error":null,"id"`), want: hello},
		{name: "empty error object", body: strings.ReplaceAll(plain, `{"id"`, `{"error":{},"id"`), want: hello},
		{name: "content null", body: sse(say("Hello, "), delta(`"content":null`), say("world"), end("stop")) + done, want: hello},
		{
			name: "content parts",
			body: sse(delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]`),
				delta(`"content":[{"type":"text","text":"Hello, "},{"type":"text","text":"wor"}]`), delta(`"content":"ld"`), end("stop")) + done,
			want: Turn{Text: "Hello, world", Reasoning: "hm", Finish: FinishStop},
		},
		{
			name: "reasoning_content",
			body: sse(delta(`"content":null,"reasoning_content":"let me "`), delta(`"reasoning_content":"see"`), say("Hello, world"), end("stop")) + done,
			want: Turn{Text: "Hello, world", Reasoning: "let me see", Finish: FinishStop},
		},
		{
			name: "reasoning under both names",
			body: sse(delta(`"reasoning":"let me ","reasoning_content":"let me "`), delta(`"reasoning":"see","reasoning_details":[{}]`), end("stop")) + done,
			want: Turn{Reasoning: "let me see", Finish: FinishStop},
		},
		{
			name: "refusal",
			body: sse(delta(`"refusal":"I can"`), delta(`"refusal":"not"`), end("stop")) + done,
			want: Turn{Text: "I cannot", Refused: true, Finish: FinishStop},
		},
		{
			name: "surrogate pair in two deltas",
			body: sse(delta(`"content":"a\ud83d"`), delta(`"content":""`), delta(`"content":"\ude00b"`), end("stop")) + done,
			want: Turn{Text: "a😀b", Finish: FinishStop},
		},
		{
			name: "lone surrogates",
			body: sse(delta(`"content":"a\ud83d"`), delta(`"content":"b\ude00c\\ud83d"`), delta(`"content":"\ud83d"`), end("stop")) + done,
			want: Turn{Text: "a\uFFFDb\uFFFDc\\ud83d\uFFFD", Finish: FinishStop},
		},
		{
			name: "invalid utf-8 and nul",
			body: sse("{\"choices\":[{\"delta\":{\"content\":\"a\xff\xfeb\\u0000c\"}}]}", end("stop")) + done,
			want: Turn{Text: "a\uFFFDbc", Finish: FinishStop},
		},
		{
			name: "members of odd types",
			body: sse(`{"choices":{"delta":{"content":"Hello, ","tool_calls":null}},"usage":[]}`, `[]`, `7`, `{"choices":null}`,
				`{"choices":[{"delta":{"content":7,"tool_calls":"x","reasoning":3}}]}`, `{"type":"ping"}`, say("world"), end("stop")) + done,
			want: hello,
		},
	}
}

func endFixtures() []fixture {
	partial := Turn{Text: "Hello", CutOff: true}
	return []fixture{
		{name: "end without reason", body: sse(say("Hello")), want: partial, err: "cut off"},
		{name: "end within a line", body: sse(say("Hello")) + `data: {"choices":[{"del`, want: partial, err: "cut off"},
		{name: "done without reason", body: sse(say("Hello")) + done, want: Turn{Text: "Hello"}},
		{name: "error midway", body: sse(say("Hello"), `{"error":{"message":"overloaded","code":502}}`), want: partial, err: "broke off 502: overloaded"},
		{name: "error text midway", body: sse(say("Hello"), `{"error":"out of memory"}`), want: partial, err: "out of memory"},
		{name: "error object of vllm", body: sse(say("Hello"), `{"object":"error","message":"engine died","code":500}`), want: partial, err: "500: engine died"},
		{name: "error event", body: sse(say("Hello")) + "event: error\ndata: {\"message\":\"too bad\"}\n\n", want: partial, err: "too bad"},
		{name: "error event of plain text", body: sse(say("Hello")) + "event: error\ndata: too bad\n\n", want: partial, err: "too bad"},
		{name: "error event of nothing", body: sse(say("Hello")) + "event: error\n\n", want: partial, err: "no reason given"},
		{name: "error as reason", body: sse(say("Hello"), end("error")) + done, want: partial, err: "with an error"},
		{name: "broken chunk", body: sse(say("Hello"), `{"choices":[}`, say("x"), end("stop")) + done, want: partial, err: "not JSON"},
		{name: "reason on every chunk", body: strings.ReplaceAll(sse(say("Hel"), say("lo"))+done, `"finish_reason":null`, `"finish_reason":"stop"`),
			want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "reason on every chunk, no done", body: strings.ReplaceAll(sse(say("Hel"), say("lo")), `"finish_reason":null`, `"finish_reason":"stop"`),
			want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "later reason is null", body: sse(say("Hello"), end("length"), delta(``)) + done, want: Turn{Text: "Hello", Finish: FinishLength}},
		{name: "later reason says more", body: sse(say("Hello"), end("stop"), end("content_filter"), end("stop")) + done, want: Turn{Text: "Hello", Finish: FinishContentFilter}},
		{name: "words of other wires", body: sse(say("Hello"), end("MAX_TOKENS")) + done, want: Turn{Text: "Hello", Finish: FinishLength}},
		{name: "unknown reason", body: sse(say("Hello"), end("recitation")) + done, want: Turn{Text: "Hello", Finish: "recitation"}},
		{name: "usage at the end", body: sse(say("Hello"), end("stop"), `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1}}}`) + done,
			want: Turn{Text: "Hello", Finish: FinishStop, Usage: Usage{Prompt: 9, Completion: 2, Cached: 4, Reasoning: 1}}},
		{name: "usage on every chunk", body: sse(usage(9, 1), say("Hello"), usage(9, 2), end("stop"), usage(9, 3), `{"choices":[],"usage":null}`) + done,
			want: Turn{Text: "Hello", Finish: FinishStop, Usage: Usage{Prompt: 9, Completion: 3}}},
		{name: "usage of odd numbers", body: sse(say("Hello"), end("stop"), `{"choices":[],"usage":{"prompt_tokens":9.0,"completion_tokens":"3","prompt_cache_hit_tokens":5}}`) + done,
			want: Turn{Text: "Hello", Finish: FinishStop, Usage: Usage{Prompt: 9, Completion: 3, Cached: 5}}},
		{name: "usage of groq", body: sse(say("Hello"), `{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":9,"completion_tokens":2}}}`) + done,
			want: Turn{Text: "Hello", Finish: FinishStop, Usage: Usage{Prompt: 9, Completion: 2}}},
		{name: "words after done", body: sse(say("Hello"), end("stop")) + done + sse(say(" again")), want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "whole message at the end", body: sse(say("Hello"), `{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}`) + done, want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "whole message only", body: sse(`{"choices":[{"delta":{},"message":{"content":"Hello"},"finish_reason":"stop"}]}`) + done, want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "tools announced, none called", body: sse(say("Hello"), end("tool_calls")) + done, want: Turn{Text: "Hello", Finish: FinishToolCalls}},
	}
}

func wholeFixtures() []fixture {
	whole := `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","reasoning_content":"hm",
		"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},
		{"id":"b","type":"function","function":{"name":"f","arguments":{"a":2}}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`
	turn := Turn{
		Text: "Hi", Reasoning: "hm", Finish: FinishToolCalls, Usage: Usage{Prompt: 3, Completion: 4},
		Calls: []Call{{ID: "a", Name: "f", Arguments: `{"a":1}`}, {ID: "b", Name: "f", Arguments: `{"a":2}`}},
	}
	return []fixture{
		{name: "whole completion", media: jsonType, body: whole, want: turn},
		{name: "whole completion as stream", body: whole, want: turn},
		{name: "whole completion and more", media: jsonType, body: whole + "\n\n<!-- -->", want: turn},
		{name: "whole completion without reason", media: jsonType, body: `{"choices":[{"message":{"content":"Hi"},"finish_reason":null}]}`, want: Turn{Text: "Hi"}},
		{name: "whole completion cut", media: jsonType, body: whole[:len(whole)/2], want: Turn{CutOff: true}, err: "cut off"},
		{name: "lines of chunks", media: "application/x-ndjson", body: say("Hel") + "\n" + say("lo") + "\n" + end("stop") + "\n", want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "lines of chunks with done", body: say("Hello") + "\n" + end("stop") + "\n" + done, want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "lines of chunks cut", media: "application/x-ndjson", body: say("Hel") + "\n", want: Turn{Text: "Hel", CutOff: true}, err: "cut off"},
		{name: "json error", media: jsonType, body: `{"error":{"message":"no such model","code":"model_not_found"}}`, want: Turn{CutOff: true}, err: "(model_not_found): no such model"},
		{name: "json error as array", media: jsonType, body: `[{"error":{"code":400,"message":"bad key","status":"INVALID_ARGUMENT"}}]`, want: Turn{CutOff: true}, err: "(INVALID_ARGUMENT): bad key"},
		{name: "json of something else", media: jsonType, body: `{"detail":"Not Found"}`, want: Turn{CutOff: true}, err: "Not Found"},
		{name: "broken json", media: jsonType, body: `{"choices":]`, want: Turn{CutOff: true}, err: "not JSON"},
		{name: "html", media: "text/html", body: "<html><head><title>Sign in</title><style>b{}</style></head><body>to the <b>Wi-Fi</b></body></html>", want: Turn{CutOff: true}, err: "Sign in to the Wi-Fi"},
		{name: "html as stream", body: " <!doctype html><p>Gateway", want: Turn{CutOff: true}, err: "Gateway"},
		{name: "plain text", media: "text/plain", body: "upstream is down\n", want: Turn{CutOff: true}, err: "text/plain and not a stream: upstream is down"},
		{name: "empty", body: "", want: Turn{CutOff: true}, err: "empty"},
		{name: "only space", body: "\n\n", want: Turn{CutOff: true}, err: "empty"},
		{name: "only done", body: done, want: Turn{}},
	}
}
