package model

import (
	"encoding/json"
	"strings"
)

func callFixtures() []fixture {
	one := func(args string) Turn {
		return Turn{Calls: []Call{{ID: "a", Name: "f", Arguments: args}}, Finish: FinishToolCalls}
	}
	two := Turn{Finish: FinishToolCalls, Calls: []Call{
		{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "g", Arguments: `{"y":2}`},
	}}
	tail := sse(end("tool_calls")) + done
	return []fixture{
		{name: "one call", want: one(`{"x":1}`), body: sse(
			calls(`"index":0,"id":"a","type":"function",`+fn("f", "")), calls(`"index":0,`+more(`{"x"`)), calls(`"index":0,`+more(`:1}`))) + tail},
		{name: "text and call in one chunk", body: sse(delta(`"content":"ok","tool_calls":[{"index":0,"id":"a",`+fn("f", `{"x":1}`)+`}]`)) + tail,
			want: Turn{Text: "ok", Calls: []Call{{ID: "a", Name: "f", Arguments: `{"x":1}`}}, Finish: FinishToolCalls}},
		{name: "two calls interleaved", want: two, body: sse(
			calls(`"index":0,"id":"a",`+fn("f", "")), calls(`"index":1,"id":"b",`+fn("g", "")), calls(`"index":1,`+more(`{"y"`)),
			calls(`"index":0,`+more(`{"x":1}`)), calls(`"index":1,`+more(`:2}`))) + tail},
		{name: "two calls in one chunk", want: two, body: sse(
			calls(`"index":0,"id":"a",`+fn("f", `{"x":1}`), `"index":1,"id":"b",`+fn("g", `{"y":2}`))) + tail},
		{name: "no index", want: two, body: sse(
			calls(`"id":"a",`+fn("f", `{"x"`)), calls(more(`:1}`)), calls(`"id":"b",`+fn("g", `{"y"`)), calls(more(`:2}`))) + tail},
		{name: "no index, one call per chunk, extras", body: sse(
			calls(`"id":"a","extra_content":{"google":{"thought_signature":"s1"}},`+fn("f", `{"x":1}`)), calls(`"id":"b",`+fn("f", `{"x":1}`))) + tail,
			want: Turn{Finish: FinishToolCalls, Calls: []Call{
				{ID: "a", Name: "f", Arguments: `{"x":1}`, Extra: json.RawMessage(`{"extra_content":{"google":{"thought_signature":"s1"}}}`)},
				{ID: "b", Name: "f", Arguments: `{"x":1}`},
			}}},
		{name: "no index, interleaved by id", want: two, body: sse(
			calls(`"id":"a",`+fn("f", `{"x"`)), calls(`"id":"b",`+fn("g", `{"y"`)), calls(`"id":"a",`+more(`:1}`)), calls(`"id":"b",`+more(`:2}`))) + tail},
		{name: "all at index 0", want: two, body: sse(
			calls(`"index":0,"id":"a",`+fn("f", `{"x":1}`)), calls(`"index":0,"id":"b",`+fn("g", "")), calls(`"index":0,`+more(`{"y":2}`))) + tail},
		{name: "all at index 0, no arguments", body: sse(
			calls(`"index":0,"id":"a",`+fn("f", "")), calls(`"index":0,"id":"b",`+fn("g", ""))) + tail,
			want: Turn{Finish: FinishToolCalls, Calls: []Call{{ID: "a", Name: "f", Arguments: "{}"}, {ID: "b", Name: "g", Arguments: "{}"}}}},
		{name: "all at index 0, same tool", body: sse(
			calls(`"index":0,"id":"a",`+fn("f", `{"x":1}`)), calls(`"index":0,"id":"b",`+fn("f", `{"x":1}`))) + tail,
			want: Turn{Finish: FinishToolCalls, Calls: []Call{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "f", Arguments: `{"x":1}`}}}},
		{name: "index starts at 1", want: one(`{"x":1}`), body: sse(calls(`"index":1,"id":"a",`+fn("f", `{"x":1}`))) + tail},
		{name: "placeholder at index 0", want: one(`{"x":1}`), body: sse(calls(`"index":0,"function":{}`, `"index":1,"id":"a",`+fn("f", `{"x":1}`))) + tail},
		{name: "index -1", want: one(`{"x":1}`), body: sse(calls(`"index":-1,"id":"a",`+fn("f", `{"x"`)), calls(`"index":-1,`+more(`:1}`))) + tail},
		{name: "index of two billion", want: one(`{"x":1}`), body: sse(calls(`"index":2000000000,"id":"a",`+fn("f", `{"x"`)), calls(`"index":2000000000,`+more(`:1}`))) + tail},
		{name: "index in quotes", want: two, body: sse(
			calls(`"index":"0","id":"a",`+fn("f", `{"x":1}`), `"index":1.0,"id":"b",`+fn("g", `{"y"`)), calls(`"index":"1",`+more(`:2}`))) + tail},
		{name: "trailing extras", body: sse(calls(`"index":0,"id":"a",`+fn("f", `{"x":1}`)), calls(`"extra_content":{"n":12345678901234567890}`)) + tail,
			want: Turn{Finish: FinishToolCalls, Calls: []Call{{ID: "a", Name: "f", Arguments: `{"x":1}`, Extra: json.RawMessage(`{"extra_content":{"n":12345678901234567890}}`)}}}},
		{name: "extras in the function", body: sse(calls(`"index":0,"id":"a","function":{"name":"f","arguments":"{}","signature":"<s>"}`)) + tail,
			want: Turn{Finish: FinishToolCalls, Calls: []Call{{ID: "a", Name: "f", Arguments: `{}`, Extra: json.RawMessage(`{"function":{"signature":"<s>"}}`)}}}},
		{name: "reason stop with call", body: sse(calls(`"index":0,"id":"a",`+fn("f", `{}`)), end("stop")) + done,
			want: Turn{Calls: []Call{{ID: "a", Name: "f", Arguments: `{}`}}, Finish: FinishStop}},
		{name: "reason in the chunk of the call", want: one(`{"x":1}`),
			body: strings.Replace(sse(calls(`"index":0,"id":"a",`+fn("f", `{"x":1}`))), `"finish_reason":null`, `"finish_reason":"tool_calls"`, 1) + done},
		{name: "form before tool_calls", body: sse(delta(`"function_call":{"name":"f","arguments":"{\"x\""}`), delta(`"function_call":{"arguments":":1}"}`), end("function_call")) + done,
			want: Turn{Finish: FinishToolCalls, Calls: []Call{{ID: "fresh1", Name: "f", Arguments: `{"x":1}`}}}},
	}
}

func oddCallFixtures() []fixture {
	tail := sse(end("tool_calls")) + done
	turn := func(calls ...Call) Turn { return Turn{Finish: FinishToolCalls, Calls: calls} }
	whole := Call{ID: "a", Name: "f", Arguments: `{"x":1}`}
	return []fixture{
		{name: "empty ids on continuation", want: turn(whole), body: sse(
			calls(`"index":0,"id":"a",`+fn("f", "")), calls(`"index":0,"id":"",`+more(`{"x"`)), calls(`"index":0,"id":"",`+more(`:1}`))) + tail},
		{name: "id changes", want: turn(whole), body: sse(
			calls(`"index":0,"id":"a",`+fn("f", "")), calls(`"index":0,"id":"b",`+more(`{"x"`)), calls(`"index":0,"id":"c",`+more(`:1}`))) + tail},
		{name: "id changes with the name repeated", want: turn(whole), body: sse(
			calls(`"index":0,"id":"a",`+fn("f", "")), calls(`"index":0,"id":"b",`+fn("f", `{"x"`)), calls(`"index":0,"id":"c",`+fn("f", `:1}`))) + tail},
		{name: "id and name on every chunk, summary at the end", want: turn(whole), body: sse(
			calls(`"index":0,"id":"a",`+fn("f", "")), calls(`"index":0,"id":"a",`+fn("f", `{"x"`)), calls(`"index":0,"id":"a",`+fn("f", `:1}`)),
			calls(`"index":0,"id":"a",`+fn("f", `{"x":1}`))) + tail},
		{name: "the same without index", want: turn(Call{ID: "a", Name: "f", Arguments: `{"x": 1}`}), body: sse(
			calls(`"id":"a",`+fn("f", "")), calls(`"id":"a",`+fn("f", `{"x"`)), calls(`"id":"a",`+fn("f", `:1}`)),
			calls(`"id":"a",`+fn("f", `{"x": 1}`))) + tail},
		{name: "no ids", want: turn(Call{ID: "fresh1", Name: "f", Arguments: `{"x":1}`}, Call{ID: "fresh2", Name: "g", Arguments: `{}`}), body: sse(
			calls(`"index":0,`+fn("f", `{"x"`)), calls(`"index":0,`+more(`:1}`)), calls(`"index":1,`+fn("g", ``))) + tail},
		{name: "no ids, no index", want: turn(Call{ID: "fresh1", Name: "f", Arguments: `{"x":1}`}, Call{ID: "fresh2", Name: "g", Arguments: `{}`}, Call{ID: "fresh3", Name: "g", Arguments: `{"y":2}`}), body: sse(
			calls(fn("f", `{"x"`)), calls(more(`:1}`)), calls(fn("g", `{}`)), calls(fn("g", `{"y":2}`))) + tail},
		{name: "one id for two calls", want: turn(whole, Call{ID: "fresh1", Name: "g", Arguments: `{"y":2}`}), body: sse(
			calls(`"index":0,"id":"a",`+fn("f", `{"x":1}`)), calls(`"index":1,"id":"a",`+fn("g", `{"y":2}`))) + tail},
		{name: "one id for two calls, no index", want: turn(whole, Call{ID: "fresh1", Name: "f", Arguments: `{"x":2}`}), body: sse(
			calls(`"id":"a",`+fn("f", `{"x":1}`)), calls(`"id":"a",`+fn("f", `{"x":2}`))) + tail},
		{name: "id of an earlier turn", want: turn(Call{ID: "fresh1", Name: "f", Arguments: `{}`}), body: sse(calls(`"index":0,"id":"call_0",`+fn("f", `{}`))) + tail},
		{name: "name in pieces", want: turn(Call{ID: "a", Name: "get_weather", Arguments: `{}`}), body: sse(
			calls(`"index":0,"id":"a","function":{"name":"get_"}`), calls(`"index":0,"function":{"name":"weather"}`), calls(`"index":0,`+more(`{}`))) + tail},
		{name: "name grows", want: turn(Call{ID: "a", Name: "get_weather", Arguments: `{}`}), body: sse(
			calls(`"index":0,"id":"a","function":{"name":"get_"}`), calls(`"index":0,"function":{"name":"get_weather"}`), calls(`"index":0,`+more(`{}`))) + tail},
		{name: "name after id", want: turn(whole), body: sse(
			calls(`"index":0,"id":"a"`), calls(`"index":0,"function":{"name":"f"}`), calls(`"index":0,`+more(`{"x":1}`))) + tail},
		{name: "id at the wrong index", want: turn(whole, Call{ID: "b", Name: "g", Arguments: `{"y":2}`}), body: sse(
			calls(`"index":0,"id":"a",`+fn("f", `{"x":1}`)), calls(`"index":1,"id":"b",`+fn("g", ``)), calls(`"index":0,"id":"b",`+more(`{"y":2}`))) + tail},
		{name: "call without a name", want: turn(Call{ID: "a", Arguments: `{"x":1}`}), body: sse(calls(`"index":0,"id":"a",`+more(`{"x":1}`))) + tail},
		{name: "numeric id", want: turn(Call{ID: "12", Name: "f", Arguments: "{}"}), body: sse(calls(`"index":0,"id":12,`+fn("f", "{}"))) + tail},
	}
}

func argumentFixtures() []fixture {
	tail := sse(end("tool_calls")) + done
	// call streams the values of the member arguments, in JSON, as one call.
	call := func(values ...string) string {
		chunks := []string{calls(`"index":0,"id":"a","function":{"name":"f"}`)}
		for _, value := range values {
			chunks = append(chunks, calls(`"index":0,"function":{"arguments":`+value+`}`))
		}
		return sse(chunks...)
	}
	turn := func(args string) Turn {
		return Turn{Calls: []Call{{ID: "a", Name: "f", Arguments: args}}, Finish: FinishToolCalls}
	}
	open := func(args, finish string, cutOff bool) Turn {
		return Turn{Open: []Call{{ID: "a", Name: "f", Arguments: args}}, Finish: finish, CutOff: cutOff}
	}
	return []fixture{
		{name: "arguments absent", body: call() + tail, want: turn("{}")},
		{name: "arguments null", body: call(`null`) + tail, want: turn("{}")},
		{name: "arguments null as text", body: call(`"null"`) + tail, want: turn("{}")},
		{name: "arguments empty", body: call(`""`, `" "`) + tail, want: turn("{}")},
		{name: "arguments as object", body: call(`{"x":"<1>","n":9007199254740993}`) + tail, want: turn(`{"x":"<1>","n":9007199254740993}`)},
		{name: "arguments repeated whole", body: call(`"{\"x\":1}"`, `"{\"x\":1}"`) + tail, want: turn(`{"x":1}`)},
		{name: "arguments repeated in pieces", body: call(`"{\"x\""`, `":1}"`, `"{\"x\""`, `":1}"`) + tail, want: turn(`{"x":1}`)},
		{name: "arguments in snapshots", body: call(`"{\"x"`, `"{\"x\":"`, `"{\"x\":[1"`, `"{\"x\":[1,2"`, `"{\"x\":[1,2]"`, `"{\"x\":[1,2]}"`) + tail, want: turn(`{"x":[1,2]}`)},
		{name: "arguments in two snapshots", body: call(`"{\"x"`, `"{\"x\":1}"`) + tail, want: turn(`{"x":1}`)},
		{name: "arguments that look like snapshots", body: call(`"{\"a\":"`, `"{\"a\":1}"`, `"}"`) + tail, want: turn(`{"a":{"a":1}}`)},
		{name: "arguments after a placeholder", body: call(`"{}"`, `"{\"x\""`, `":1}"`) + tail, want: turn(`{"x":1}`)},
		{name: "arguments with noise after", body: call(`"{\"x\":1}"`, `"}"`, `"\n"`) + tail, want: turn(`{"x":1}`)},
		{name: "arguments in a string", body: call(`"\"{\\\"x\\\":1}\""`) + tail, want: turn(`{"x":1}`)},
		{name: "arguments with braces in text", body: call(`"{\"x\":\"}"`, `"{\\\"\""`, `"}"`) + tail, want: turn(`{"x":"}{\""}`)},
		{name: "arguments with a split surrogate pair", body: call(`"{\"x\":\"\ud83d"`, `"\ude00\"}"`) + tail, want: turn(`{"x":"😀"}`)},
		{name: "arguments invalid", body: call(`"{\"x\":"`, `"oops"`) + tail, want: turn(`{"x":oops`)},
		{name: "two objects in one piece", body: call(`"{\"x\":1}{\"x\":2}"`) + tail, want: turn(`{"x":1}{"x":2}`)},
		{name: "two objects in two pieces", body: call(`"{\"x\":1}"`, `"{\"x\":2}"`) + tail, want: turn(`{"x":1}{"x":2}`)},
		{name: "two objects in many pieces", body: call(`"{\"x\""`, `":1}"`, `"{"`, `"\"x\":2"`, `"}"`) + tail, want: turn(`{"x":1}{"x":2}`)},
		{name: "three objects, two of them the same", body: call(`"{\"x\":1}"`, `"{\"x\":1}{\"x\":2}"`, `"{\"x\":2}"`) + tail, want: turn(`{"x":1}{"x":2}{"x":2}`)},
		{name: "two objects with a comma", body: call(`"{\"x\":1}"`, `",{\"x\":2}"`) + tail, want: turn(`{"x":1},{"x":2}`)},
		{name: "two objects, the second is cut", body: call(`"{\"x\":1}"`, `"{\"x\":"`) + tail, want: turn(`{"x":1}{"x":`)},
		{name: "a repeat that is cut", body: call(`"{\"x\":1}"`, `"{\"x\":"`) + done, want: open(`{"x":1}{"x":`, "", true), err: "cut off"},
		{name: "further members after the end", body: call(`"{\"x\":1}"`, `", \"y\":2}"`) + tail, want: turn(`{"x":1}, "y":2}`)},
		{name: "further members after the end, in one piece", body: call(`"{\"x\":1}, \"y\":2}"`) + tail, want: turn(`{"x":1}, "y":2}`)},
		{name: "arguments repeated in one piece", body: call(`"{\"x\":1}\n{\"x\": 1}"`) + tail, want: turn(`{"x": 1}`)},
		{name: "arguments repeated in another order", body: call(`"{\"x\":1,\"y\":\"\\u00e9\"}"`, `"{\"y\":\"\u00e9\",\"x\":1}"`) + tail, want: turn(`{"y":"é","x":1}`)},
		{name: "a placeholder in pieces, arguments, a placeholder", body: call(`"{"`, `"}"`, `"{\"x\":1}"`, `"{"`, `"}"`) + tail, want: turn(`{"x":1}`)},
		{name: "noise in several pieces", body: call(`"{\"x\":1}"`, `"\n</tool"`, `"_call>"`, `" }"`) + tail, want: turn(`{"x":1}`)},
		{name: "one id, index and name for two calls", want: turn(`{"x":1}{"x":2}`), body: sse(
			calls(`"index":0,"id":"a",`+fn("f", `{"x":1}`)), calls(`"index":0,"id":"a",`+fn("f", `{"x":2}`))) + tail},
		{name: "content null between pieces", body: strings.ReplaceAll(call(`"{\"x\""`, `":1}"`), `"tool_calls"`, `"content":null,"tool_calls"`) + tail, want: turn(`{"x":1}`)},
		{name: "reason on every chunk of a call", want: turn(`{"x":1}`),
			body: strings.ReplaceAll(call(`"{\"x\""`, `":1}"`)+done, `"finish_reason":null`, `"finish_reason":"tool_calls"`)},
		{name: "reason on every chunk, call cut", want: open(`{"x"`, FinishToolCalls, true), err: "cut off",
			body: strings.ReplaceAll(call(`"{\"x\""`), `"finish_reason":null`, `"finish_reason":"tool_calls"`)},
		{name: "call cut before its arguments", want: open(`{}`, FinishToolCalls, true), err: "cut off",
			body: strings.ReplaceAll(call(), `"finish_reason":null`, `"finish_reason":"tool_calls"`)},
		{name: "call cut off", body: call(`"{\"x\":1"`), want: open(`{"x":1`, "", true), err: "cut off"},
		{name: "whole call cut off", body: call(`"{\"x\":1}"`), want: open(`{"x":1}`, "", true), err: "cut off"},
		{name: "call cut by error", body: call(`"{\"x\":1}"`) + sse(`{"error":{"message":"down"}}`), want: open(`{"x":1}`, "", true), err: "down"},
		{name: "call cut by length", body: call(`"{\"x\":1"`) + sse(end("length")) + done, want: open(`{"x":1`, FinishLength, false)},
		{name: "call cut by length before its arguments", body: call() + sse(end("length")) + done, want: open(`{}`, FinishLength, false)},
	}
}
