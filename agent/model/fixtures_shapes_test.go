package model

import (
	"encoding/json"
	"strings"
)

// shapeFixtures are further forms of answers that servers and gateways were seen to send.
func shapeFixtures() []fixture {
	tail := sse(end("tool_calls")) + done
	turn := func(calls ...Call) Turn { return Turn{Finish: FinishToolCalls, Calls: calls} }
	open := Call{ID: "t1", Name: "open", Arguments: `{"url":"u"}`}
	list := Call{ID: "t2", Name: "list", Arguments: `{}`}
	return []fixture{
		{name: "field name twice", body: strings.ReplaceAll(sse(say("Hel"), say("lo"), end("stop")), "\n\n", "\ndata:\ndata:\n\n") + "data: data: [DONE]\n\n",
			want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "field name twice in every event", body: "data: " + strings.ReplaceAll(sse(say("Hel"), say("lo"), end("stop"))+done, "\n\ndata", "\n\ndata: data"),
			want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "stream that is called a page", media: "text/html; charset=UTF-8", body: sse(say("Hello"), end("stop")) + done, want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "text that is called a page", media: "text/html", body: "upstream is down", want: Turn{CutOff: true}, err: "text/html and not a stream: upstream is down"},
		{name: "first event without a choice", body: sse(`{"choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}`, say("Hello"),
			`{"choices":[{"index":0,"content_filter_results":{"hate":{"filtered":false}},"content_filter_offsets":{"end_offset":5},"delta":{},"finish_reason":null}]}`, end("stop")) + done,
			want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "text in one choice, call in the next", body: sse(
			`{"choices":[{"index":0,"delta":{"content":"I open it."}},{"index":1,"delta":{"tool_calls":[{"index":0,"id":"t1",`+fn("open", `{"url":"u"}`)+`}]},"finish_reason":"tool_calls"}]}`) + done,
			want: Turn{Text: "I open it.", Finish: FinishToolCalls, Calls: []Call{open}}},
		{name: "whole text in one choice, call in the next", media: jsonType,
			body: `{"choices":[{"message":{"content":"I open it."},"finish_reason":"stop"},{"message":{"content":null,"tool_calls":[{"id":"t1",` + fn("open", `{"url":"u"}`) + `}]},"finish_reason":"tool_calls"}]}`,
			want: Turn{Text: "I open it.", Finish: FinishToolCalls, Calls: []Call{open}}},
		{name: "the same answer in two choices", media: jsonType,
			body: `{"choices":[{"message":{"content":"One."},"finish_reason":"stop"},{"message":{"content":"Two."},"finish_reason":"stop"}]}`,
			want: Turn{Text: "One.", Finish: FinishStop}},
		{name: "choices that are null", body: sse(`{"choices":[null]}`, say("Hello"), end("stop")) + done, want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "reasoning as a part", body: sse(delta(`"content":[{"type":"reasoning","text":"hm"},{"type":"output_text","text":"Hello"},{"type":"refusal","refusal":" no"}]`), end("stop")) + done,
			want: Turn{Text: "Hello no", Reasoning: "hm", Refused: true, Finish: FinishStop}},
		{name: "call that is not wrapped", want: turn(open, list), body: sse(
			calls(`"id":"t1","name":"open","arguments":{"url":"u"}`), calls(`"id":"t2","name":"list","arguments":{}`)) + tail},
		{name: "call that is not wrapped, in pieces", want: turn(open), body: sse(
			calls(`"index":0,"id":"t1","name":"open","arguments":""`), calls(`"index":0,"arguments":"{\"url\":"`), calls(`"index":0,"arguments":"\"u\"}"`)) + tail},
		{name: "ids of nothing", body: sse(calls(`"index":0,"id":"null",`+fn("open", `{"url":"u"}`), `"index":0,"id":"null",`+fn("open", `{"url":"v"}`)),
			calls(`"id":"None",`+fn("list", `{}`))) + tail,
			want: turn(Call{ID: "fresh1", Name: "open", Arguments: `{"url":"u"}`}, Call{ID: "fresh2", Name: "open", Arguments: `{"url":"v"}`}, Call{ID: "fresh3", Name: "list", Arguments: `{}`})},
		{name: "arguments called parameters", want: turn(open), body: sse(calls(`"index":0,"id":"t1","function":{"name":"open","parameters":{"url":"u"}}`)) + tail},
		{name: "empty object after the arguments", want: turn(open), body: sse(
			calls(`"index":0,"id":"t1",`+fn("open", `{"url":`)), calls(`"index":0,`+more(`"u"}`)), calls(`"index":0,`+more(`{}`)), calls(`"index":0,"function":{"arguments":{}}`)) + tail},
		{name: "empty object with the id and name at the end", want: turn(open), body: sse(
			calls(`"id":"t1",`+fn("open", `{"url":"u"}`)), calls(`"id":"t1","function":{"name":"open","arguments":{}}`)) + tail},
		{name: "signature in the function of a later delta", body: sse(calls(`"index":0,"id":"t1",`+fn("open", `{"url":"u"}`)), calls(`"index":0,"function":{"thought_signature":"AA"}`)) + tail,
			want: turn(Call{ID: "t1", Name: "open", Arguments: `{"url":"u"}`, Extra: json.RawMessage(`{"function":{"thought_signature":"AA"}}`)})},
		{name: "done while a call is open", body: sse(say("Ok. "), calls(`"index":0,"id":"t1",`+fn("open", `{"url":`))) + done,
			want: Turn{Text: "Ok. ", CutOff: true, Open: []Call{{ID: "t1", Name: "open", Arguments: `{"url":`}}}, err: "cut off"},
		{name: "done before the arguments of a call", body: sse(calls(`"index":0,"id":"t1",`+fn("open", ""))) + done,
			want: Turn{CutOff: true, Open: []Call{{ID: "t1", Name: "open", Arguments: `{}`}}}, err: "cut off"},
		{name: "done after a whole call", body: sse(calls(`"index":0,"id":"t1",`+fn("open", `{"url":"u"}`))) + done, want: Turn{Calls: []Call{open}}},
	}
}

// troubleFixtures are answers that do not end well, in the forms of several servers.
func troubleFixtures() []fixture {
	partial := Turn{Text: "Hello", CutOff: true}
	gaveUp := func(reason string) string { return sse(say("Hello"), end(reason)) + done }
	return []fixture{
		{name: "error in a choice", body: sse(say("Hello"), `{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"upstream idle"}}]}`) + done,
			want: partial, err: "broke off 502: upstream idle"},
		{name: "reason abort", body: gaveUp("abort"), want: partial, err: "broke off (abort)"},
		{name: "reason of a server that is out of resources", body: gaveUp("insufficient_system_resource"), want: partial, err: "(insufficient_system_resource)"},
		{name: "reason of a broken network", body: gaveUp("network_error"), want: partial, err: "(network_error)"},
		{name: "whole call, then a reason that gives up", body: sse(calls(`"index":0,"id":"t1",`+fn("open", `{}`)), end("abort")) + done,
			want: Turn{CutOff: true, Open: []Call{{ID: "t1", Name: "open", Arguments: `{}`}}}, err: "(abort)"},
		{name: "reason with a word behind it", body: sse(say("Hello"), end("content_filter: SAFETY")) + done, want: Turn{Text: "Hello", Finish: FinishContentFilter}},
		{name: "reason sensitive", body: sse(say("Hello"), end("sensitive")) + done, want: Turn{Text: "Hello", Finish: FinishContentFilter}},
		{name: "reason of a full context", body: sse(say("Hello"), end("model_context_window_exceeded")) + done, want: Turn{Text: "Hello", Finish: FinishLength}},
		{name: "reason of great length", body: sse(say("Hello"), end(strings.Repeat("x", 1000))) + done, want: Turn{Text: "Hello", Finish: strings.Repeat("x", maxFinish) + "…"}},
		{name: "empty reason", body: sse(strings.Replace(say("Hello"), `"finish_reason":null`, `"finish_reason":""`, 1)), want: partial, err: "cut off"},
		{name: "error with empty members", body: sse(strings.Replace(say("Hello"), `{"id"`, `{"error":{"message":"","code":null},"id"`, 1), end("stop")) + done,
			want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "error in a form of its own, then the end", body: sse(say("Hello"), `{"code":"Throttling","message":"too busy","request_id":"r"}`), want: partial, err: "broke off (Throttling): too busy"},
		{name: "error in a form of its own, then done", body: sse(`{"detail":"worker lost"}`) + done, want: Turn{CutOff: true}, err: "answered: worker lost"},
		{name: "error in a form of its own and words, then done", body: sse(say("Hello"), `{"code":"Throttling","message":"too busy"}`) + done, want: partial, err: "too busy"},
		{name: "report of the state, then an answer", body: sse(`{"object":"status","message":"loading the model"}`, say("Hello"), `{"message":"still here"}`, end("stop")) + done,
			want: Turn{Text: "Hello", Finish: FinishStop}},
		{name: "stream of another interface", body: "event: response.created\ndata: {\"type\":\"response.created\"}\n\nevent: response.output_text.delta\ndata: {\"delta\":\"Hello\",\"type\":\"response.output_text.delta\"}\n\n",
			want: Turn{CutOff: true}, err: `no part of an answer: {"delta":"Hello"`},
		{name: "stream of another interface, then done", body: sse(`{"response":"Hello","p":"ab"}`) + done, want: Turn{CutOff: true}, err: `no part of an answer: {"p":"ab","response":"Hello"}`},
		{name: "sign of life, then cut off", body: sse(say("Hello"), `{"type":"ping"}`), want: partial, err: "cut off"},
		{name: "usage in the choice", body: sse(say("Hello"), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"cached_tokens":4}}]}`) + done,
			want: Turn{Text: "Hello", Finish: FinishStop, Usage: Usage{Prompt: 9, Completion: 2, Cached: 4}}},
		{name: "usage in the words of another interface", body: sse(say("Hello"), end("stop"), `{"usage":{"input_tokens":9,"output_tokens":2,"reasoning_tokens":1}}`) + done,
			want: Turn{Text: "Hello", Finish: FinishStop, Usage: Usage{Prompt: 9, Completion: 2, Reasoning: 1}}},
		{name: "usage beyond reason", body: sse(say("Hello"), end("stop"), `{"choices":[],"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":-4}}`) + done,
			want: Turn{Text: "Hello", Finish: FinishStop}},
	}
}
