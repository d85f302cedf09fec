package model

import (
	"encoding/json"
	"strings"
)

// reportFixtures are answers as the users of other programs reported them, in our own words and with our own names.
func reportFixtures() []fixture {
	tail := sse(end("tool_calls")) + done
	turn := func(calls ...Call) Turn { return Turn{Finish: FinishToolCalls, Calls: calls} }
	weather := Call{ID: "call_1", Name: "weather", Arguments: `{"city":"Ulm"}`}
	clock := Call{ID: "call_2", Name: "clock", Arguments: `{"zone":"UTC"}`}
	return []fixture{
		{name: "library loses: type missing", want: turn(weather), body: sse(
			calls(`"index":0,"id":"call_1",`+fn("weather", `{"city":"Ulm"}`))) + tail},
		{name: "library loses: id only on the first", want: turn(weather), body: sse(
			calls(`"index":0,"id":"call_1","type":"function",`+fn("weather", "")),
			calls(`"index":0,"type":"function",`+more(`{"city":`)), calls(`"index":0,"type":"function",`+more(`"Ulm"}`))) + tail},
		{name: "library loses: last event without an empty line", body: sse(say("Hello")) + "data: " + end("stop"), want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "library loses: error event without an error", body: sse(say("Hello")) + "event: error\ndata: {\"code\":503,\"reason\":\"busy\"}\n\n",
			want: Turn{Text: "Hello", CutOff: true}, err: "broke off 503: service unavailable"},
		{name: "report: index-less parallel calls, pieces without an id", want: turn(weather, clock), body: sse(
			calls(`"id":"call_1","type":"function",`+fn("weather", "")), calls(more(`{"city":`)), calls(more(`"Ulm"}`)),
			calls(`"id":"call_2","type":"function",`+fn("clock", "")), calls(more(`{"zone":`)), calls(more(`"UTC"}`))) + tail},
		{name: "report: gateway puts parallel calls at index 0, each whole", want: turn(weather, clock), body: sse(
			calls(`"index":0,"id":"call_1",`+fn("weather", `{"city":"Ulm"}`), `"index":0,"id":"call_2",`+fn("clock", `{"zone":"UTC"}`))) + tail},
		{name: "report: one call per chunk with extras", body: sse(
			calls(`"id":"call_1","extra_content":{"google":{"thought_signature":"AA=="}},`+fn("weather", `{"city":"Ulm"}`)),
			calls(`"id":"call_2",`+fn("clock", `{"zone":"UTC"}`))) + tail,
			want: turn(Call{ID: "call_1", Name: "weather", Arguments: `{"city":"Ulm"}`, Extra: json.RawMessage(`{"extra_content":{"google":{"thought_signature":"AA=="}}}`)}, clock)},
		{name: "report: id and name on every chunk, full summary", want: turn(weather), body: sse(
			calls(`"index":0,"id":"call_1",`+fn("weather", `{"ci`)), calls(`"index":0,"id":"call_1",`+fn("weather", `ty":"Ulm"}`)),
			calls(`"index":0,"id":"call_1",`+fn("weather", `{"city":"Ulm"}`))) + tail},
		{name: "report: empty id on continuation", want: turn(weather), body: sse(
			calls(`"index":0,"id":"call_1",`+fn("weather", "")), calls(`"index":0,"id":"","function":{"name":"","arguments":"{\"city\":\"Ulm\"}"}`)) + tail},
		{name: "report: no id at all", want: turn(Call{ID: "fresh1", Name: "weather", Arguments: `{"city":"Ulm"}`}, Call{ID: "fresh2", Name: "clock", Arguments: `{"zone":"UTC"}`}), body: sse(
			calls(`"index":0,"id":null,`+fn("weather", `{"city":"Ulm"}`)), calls(`"index":1,"id":null,`+fn("clock", `{"zone":"UTC"}`))) + tail},
		{name: "report: id changes after the first chunk", want: turn(weather), body: sse(
			calls(`"index":0,"id":"call_1",`+fn("weather", "")), calls(`"index":0,"id":"chatcmpl-tool-9",`+more(`{"city":`)), calls(`"index":0,"id":"chatcmpl-tool-8",`+more(`"Ulm"}`))) + tail},
		{name: "report: index starts at 1", want: turn(weather, clock), body: sse(
			calls(`"index":1,"id":"call_1",`+fn("weather", `{"city":"Ulm"}`)), calls(`"index":2,"id":"call_2",`+fn("clock", `{"zone":"UTC"}`))) + tail},
		{name: "report: chunk id differs, error null, choice index 197", body: sse(
			`{"id":"a","error":null,"choices":[{"index":197,"delta":{"content":"Hel"},"finish_reason":null}]}`,
			`{"id":"b","error":null,"choices":[{"index":197,"delta":{"content":"lo"},"finish_reason":"stop"}]}`) + done, want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "report: finish end_turn in the chunk of the call", want: Turn{Finish: FinishStop, Calls: []Call{weather}},
			body: strings.Replace(sse(calls(`"index":0,"id":"call_1",`+fn("weather", `{"city":"Ulm"}`))), `"finish_reason":null`, `"finish_reason":"end_turn"`, 1) + done},
		{name: "report: finish on every chunk of a call", want: Turn{Finish: FinishStop, Calls: []Call{weather}},
			body: strings.ReplaceAll(sse(calls(`"index":0,"id":"call_1",`+fn("weather", "")), calls(`"index":0,`+more(`{"city":"Ulm"}`))), `"finish_reason":null`, `"finish_reason":"stop"`) + done},
		{name: "report: content null between fragments", want: turn(weather), body: sse(
			delta(`"content":null,"tool_calls":[{"index":0,"id":"call_1",`+fn("weather", `{"city"`)+`}]`), delta(`"content":null`),
			delta(`"content":null,"tool_calls":[{"index":0,`+more(`:"Ulm"}`)+`}]`)) + tail},
		{name: "report: text and calls in one chunk", body: sse(
			delta(`"content":"Let me see. ","tool_calls":[{"index":0,"id":"call_1",`+fn("weather", `{"city":"Ulm"}`)+`},{"index":1,"id":"call_2",`+fn("clock", `{"zone":"UTC"}`)+`}]`)) + tail,
			want: Turn{Text: "Let me see. ", Finish: FinishToolCalls, Calls: []Call{weather, clock}}},
		{name: "report: finish tool_calls without a call", body: sse(delta(`"role":"assistant","content":""`), end("tool_calls")) + done, want: Turn{Finish: FinishToolCalls}},
		{name: "report: end without a finish frame, in a call", body: sse(say("I look. "), calls(`"index":0,"id":"call_1",`+fn("weather", `{"city":"U`))),
			want: Turn{Text: "I look. ", CutOff: true, Open: []Call{{ID: "call_1", Name: "weather", Arguments: `{"city":"U`}}}, err: "cut off"},
		{name: "report: truncated arguments", body: sse(calls(`"index":0,"id":"call_1",`+fn("weather", `{"city":"U`))) + tail,
			want: turn(Call{ID: "call_1", Name: "weather", Arguments: `{"city":"U`})},
		{name: "report: signature on a trailing delta without an index", body: sse(
			calls(`"index":0,"id":"call_1",`+fn("weather", `{"city":"Ulm"}`)), calls(`"extra_content":{"google":{"thought_signature":"AA=="}}`)) + tail,
			want: turn(Call{ID: "call_1", Name: "weather", Arguments: `{"city":"Ulm"}`, Extra: json.RawMessage(`{"extra_content":{"google":{"thought_signature":"AA=="}}}`)})},
		{name: "report: reasoning is no text", body: sse(delta(`"reasoning_content":"secret plan"`), say("Hello"), end("stop")) + done,
			want: Turn{Text: "Hello", Reasoning: "secret plan", Finish: FinishStop}},
		{name: "usage in the last chunk with a choice", body: sse(say("Hello"),
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":5}}}`) + done,
			want: Turn{Text: "Hello", Finish: FinishStop, Usage: Usage{Prompt: 20, Completion: 7, Cached: 16, Reasoning: 5}}},
		{name: "usage that shrinks", body: sse(usage(100, 50), say("Hello"), end("stop"), usage(90, 3)) + done,
			want: Turn{Text: "Hello", Finish: FinishStop, Usage: Usage{Prompt: 90, Completion: 3}}},
	}
}
