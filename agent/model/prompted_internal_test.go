package model

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// spoken is a model that says a text in pieces.
type spoken struct {
	pieces []string
	finish string
	err    error
	asked  Request
}

func (s *spoken) Complete(_ context.Context, request Request, sink Sink) (Turn, error) {
	s.asked = request
	for _, piece := range s.pieces {
		sink.text(piece)
	}
	return Turn{Text: strings.Join(s.pieces, ""), Finish: s.finish, CutOff: s.err != nil}, s.err
}

// heard is what comes of a text that is said in pieces, with the ids of calls left out. It fails the test if the pieces
// given to the sink are not the turn.
func heard(tb testing.TB, inner *spoken) Turn {
	tb.Helper()
	var text, reasoning strings.Builder
	request := Request{
		Messages: []Message{{Role: RoleUser, Text: "go"}},
		Tools:    []Tool{{Name: "closeTabs"}, {Name: "listTabs"}},
	}
	turn, err := NewPrompted(inner).Complete(tb.Context(), request, Sink{
		OnText: func(s string) { text.WriteString(s) }, OnReasoning: func(s string) { reasoning.WriteString(s) },
	})
	if !errors.Is(err, inner.err) || text.String() != turn.Text || reasoning.String() != turn.Reasoning {
		tb.Errorf("sink got %q, %q, turn has %q, %q, error %v", text.String(), reasoning.String(), turn.Text, turn.Reasoning, err)
	}
	ids := make(map[string]bool)
	for _, calls := range [][]Call{turn.Calls, turn.Open} {
		for i := range calls {
			if calls[i].ID == "" || ids[calls[i].ID] {
				tb.Errorf("id %q", calls[i].ID)
			}
			ids[calls[i].ID], calls[i].ID = true, ""
		}
	}
	return turn
}

// cuts cuts a text at random places.
func cuts(text string, chance *rand.Rand, longest int) []string {
	var out []string
	for text != "" {
		n := min(1+chance.IntN(longest), len(text))
		out, text = append(out, text[:n]), text[n:]
	}
	return out
}

// said is a text and what it means.
type said struct {
	name, text string
	shown      string // the same as text if it is "="
	thought    string
	calls      []Call
}

func saidTexts() []said {
	call := func(args string) []Call { return []Call{{Name: "closeTabs", Arguments: args}} }
	ids := call(`{"tabIds":["1"]}`)
	const object = `{"tool": "closeTabs", "arguments": {"tabIds":["1"]}}`
	return []said{
		{name: "plain", text: "Hello, world.\n\nIt is `late`.\n", shown: "="},
		{name: "nothing", text: "", shown: "="},
		{name: "space", text: " \n\n ", shown: "="},
		{name: "call", text: "```tool\n" + object + "\n```", calls: ids},
		{name: "call after text", text: "I close it.\n\n```tool\n" + object + "\n```\n", shown: "I close it.", calls: ids},
		{name: "result made up", text: "Ok.\n```tool\n" + object + "\n```\n\n[Result of the tool closeTabs]\nclosed\n```tool\n" + object + "\n```", shown: "Ok.", calls: ids},
		{name: "two calls", text: "```tool\n" + object + "\n```\n\n```tool\n" + object + "\n```", calls: append(call(`{"tabIds":["1"]}`), ids...)},
		{name: "no end of the block", text: "Ok.\n```tool\n" + object, shown: "Ok.", calls: ids},
		{name: "json block", text: "```json\n" + object + "\n```", calls: ids},
		{name: "block without a word", text: "```\n" + object + "\n```", calls: ids},
		{name: "tildes and indent", text: "  ~~~~ tool_call\r\n" + object + "\r\n  ~~~~\r\n", calls: ids},
		{name: "bare object", text: " " + object + "\n", calls: ids},
		{name: "bare object and text", text: object + " Done!", calls: ids},
		{name: "tag", text: "Ok. <tool_call>\n{\"name\":\"closeTabs\",\"arguments\":{\"tabIds\":[\"1\"]}}\n</tool_call>", shown: "Ok.", calls: ids},
		{name: "tag without end", text: "<tool_call>{\"name\":\"closeTabs\",\"arguments\":{\"tabIds\":[\"1\"]}}", calls: ids},
		{name: "mistral", text: "[TOOL_CALLS][{\"name\":\"closeTabs\",\"arguments\":{\"tabIds\":[\"1\"]}}]", calls: ids},
		{name: "wire form", text: `{"tool_calls":[{"id":"x","type":"function","function":{"name":"closeTabs","arguments":"{\"tabIds\":[\"1\"]}"}}]}`, calls: ids},
		{name: "list", text: "```json\n[" + object + "]\n```", calls: ids},
		{name: "args", text: "```tool\n{\"name\":\"closeTabs\",\"args\":{\"tabIds\":[\"1\"]}}\n```", calls: ids},
		{name: "beside the name", text: "```tool\n{\"tool\":\"closeTabs\",\"tabIds\":[\"1\"]}\n```", calls: ids},
		{name: "no arguments", text: "```tool\n{\"tool\":\"listTabs\"}\n```", calls: []Call{{Name: "listTabs", Arguments: "{}"}}},
		{name: "null arguments", text: "```tool\n{\"tool\":\"listTabs\",\"arguments\":null}\n```", calls: []Call{{Name: "listTabs", Arguments: "{}"}}},
		{name: "arguments of no object", text: "```tool\n{\"tool\":\"closeTabs\",\"arguments\":[1]}\n```", calls: call(`[1]`)},
		{name: "big numbers", text: "```tool\n{\"tool\":\"closeTabs\",\"arguments\":{\"tabIds\":[9007199254740993]}}\n```", calls: call(`{"tabIds":[9007199254740993]}`)},
		{name: "a member twice beside the name", text: "```tool\n{\"tool\":\"closeTabs\",\"tabIds\":[\"1\"],\"tabIds\":[\"2\"]}\n```", calls: call(`{"tool":"closeTabs","tabIds":["1"],"tabIds":["2"]}`)},
		{name: "arguments twice", text: "```tool\n{\"tool\":\"closeTabs\",\"arguments\":{\"tabIds\":[\"1\"]},\"arguments\":{\"tabIds\":[\"2\"]}}\n```",
			calls: call(`{"tool":"closeTabs","arguments":{"tabIds":["1"]},"arguments":{"tabIds":["2"]}}`)},
		{name: "arguments twice in the wire form", text: `{"function":{"name":"closeTabs","arguments":{},"arguments":{"tabIds":["2"]}}}`,
			calls: call(`{"function":{"name":"closeTabs","arguments":{},"arguments":{"tabIds":["2"]}}}`)},
		{name: "a member twice in the arguments", text: "```tool\n{\"tool\":\"closeTabs\",\"arguments\":{\"tabIds\":[\"1\"],\"tabIds\":[\"2\"]}}\n```",
			calls: call(`{"tabIds":["1"],"tabIds":["2"]}`)},
		{name: "unknown tool", text: "```tool\n{\"tool\":\"openDoor\",\"arguments\":{}}\n```", calls: []Call{{Name: "openDoor", Arguments: "{}"}}},
		{name: "unknown tool in json", text: "```json\n{\"tool\":\"openDoor\",\"arguments\":{}}\n```", calls: []Call{{Name: "openDoor", Arguments: "{}"}}},
		{name: "malformed", text: "```tool\n{\"tool\": \"closeTabs\", \"arguments\": {\n```\nSorry.", shown: "="},
		{name: "malformed bare", text: `{"tool": "closeTabs", "arguments": `, shown: "="},
		{name: "json that was asked for", text: "Here it is:\n```json\n{\"name\":\"Bob\",\"args\":{\"x\":1}}\n```\nGood?", shown: "="},
		{name: "bare json that was asked for", text: `{"name":"Bob","arguments":{"x":1}}`, shown: "="},
		{name: "bare list", text: `[1, 2]`, shown: "="},
		{name: "footnote", text: "[1] says so. {x}", shown: "="},
		{name: "code", text: "Run:\n```go\nfunc main() {}\n// <tool_call>\n```\nThat is it.\n", shown: "="},
		{name: "code in code", text: "````md\n```tool\n" + object + "\n```\n````\n", shown: "="},
		{name: "code without end", text: "```sh\nls\n", shown: "="},
		{name: "code in a line", text: "```x``` is code\n", shown: "="},
		{name: "fence in a line", text: "as in ```tool\n" + object + "\n```", shown: "="},
		{name: "mention of a tag", text: "Write <tool> or <tool_ca and [TOOL.", shown: "="},
		{name: "thought", text: "<think>\nmaybe ```tool\n" + object + "\n``` or </thin\n</think>\n\nHello", shown: "Hello", thought: "\nmaybe ```tool\n" + object + "\n``` or </thin\n"},
		{name: "thought and call", text: "\n<think>hm</think>\n" + object, thought: "hm", calls: ids},
		{name: "thought without end", text: "<think>hm</thi", thought: "hm</thi"},
	}
}

// TestPromptedTexts reads every text whole, cut at every place, byte by byte, and in random pieces.
func TestPromptedTexts(t *testing.T) {
	t.Parallel()
	for i, tt := range saidTexts() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := Turn{Text: tt.shown, Reasoning: tt.thought, Calls: tt.calls, Finish: FinishStop}
			if tt.shown == "=" {
				want.Text = tt.text
			}
			if len(want.Calls) > 0 {
				want.Finish = FinishToolCalls
			}
			check := func(pieces []string) {
				t.Helper()
				if got := heard(t, &spoken{pieces: pieces, finish: FinishStop}); !reflect.DeepEqual(got, want) {
					t.Fatalf("pieces %q:\n got %+v\nwant %+v", pieces, got, want)
				}
			}
			check([]string{tt.text})
			check(strings.Split(tt.text, ""))
			for at := range tt.text {
				check([]string{tt.text[:at], tt.text[at:]})
			}
			for seed := range 20 {
				check(cuts(tt.text, rand.New(rand.NewPCG(uint64(i), uint64(seed))), 9))
			}
		})
	}
}

// TestPromptedCutOff ends every text that has a call at every place: nothing is run, and nothing of the call is shown.
func TestPromptedCutOff(t *testing.T) {
	t.Parallel()
	for _, tt := range saidTexts() {
		if len(tt.calls) == 0 || tt.shown == "=" {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for at := range tt.text {
				got := heard(t, &spoken{pieces: []string{tt.text[:at]}, err: ErrCutOff})
				if len(got.Calls) > 0 || !got.CutOff {
					t.Fatalf("cut at %d: %+v", at, got)
				}
				if strings.Contains(got.Text, "closeTabs") {
					t.Errorf("cut at %d shows %q", at, got.Text)
				}
			}
		})
	}
	got := heard(t, &spoken{pieces: []string{"Ok.\n```tool\n{\"tool\": \"closeTabs\", \"argu"}, finish: FinishLength})
	if got.Text != "Ok." || len(got.Open) != 1 || got.Open[0].Name != "closeTabs" || got.Finish != FinishLength {
		t.Errorf("cut by length: %+v", got)
	}
}

// TestPromptedStreams has text come as soon as it is certain.
func TestPromptedStreams(t *testing.T) {
	t.Parallel()
	shown := ""
	r := &callReader{sink: Sink{OnText: func(s string) { shown += s }}}
	for _, step := range []struct{ piece, shown string }{
		{"Hello, wor", "Hello, wor"}, {"ld", "Hello, world"}, {" and\n", "Hello, world and"}, {"``", "Hello, world and"},
		{"`go\nx := 1", "Hello, world and\n```go"}, {"\ny", "Hello, world and\n```go\nx := 1"},
	} {
		r.feed(step.piece)
		if shown != step.shown {
			t.Errorf("after %q: %q", step.piece, shown)
		}
	}
}

// TestPromptedIsFast reads texts that could take the time of their square. It looks at no clock: what takes that time does
// not come to an end within the time of any test.
func TestPromptedIsFast(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"backticks in one line": strings.Repeat("x`", 1<<20), "tildes behind spaces": strings.Repeat("    ~", 1<<20),
		"blocks in one piece": strings.Repeat("```\n{\n", 1<<19), "brackets": strings.Repeat("<[", 1<<19),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if turn := heard(t, &spoken{pieces: []string{text}, finish: FinishStop}); turn.Text != text {
				t.Errorf("%d bytes became %d", len(text), len(turn.Text))
			}
		})
	}
	long := strings.Repeat("x ", 100_000)
	for name, text := range map[string]string{
		"text": long, "call": "```tool\n{\"tool\":\"closeTabs\",\"arguments\":{\"x\":\"" + long + "\"}}\n```", "code": "```\n" + long,
		"object": `{"x":"` + long, "tag": "<tool_call>" + long, "lines": strings.Repeat("```\n{\n", 20_000), "backticks": strings.Repeat("`", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heard(t, &spoken{pieces: cuts(text, rand.New(rand.NewPCG(1, 1)), 8), finish: FinishStop})
		})
	}
}

func FuzzPrompted(f *testing.F) {
	for _, tt := range saidTexts() {
		f.Add(tt.text, uint64(len(tt.text)))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		whole := heard(t, &spoken{pieces: []string{text}, finish: FinishStop})
		pieces := heard(t, &spoken{pieces: cuts(text, rand.New(rand.NewPCG(seed, 0)), 9), finish: FinishStop})
		if !reflect.DeepEqual(whole, pieces) {
			t.Errorf("whole %+v\npieces %+v", whole, pieces)
		}
		if len(whole.Calls) == 0 && !strings.Contains(text, thoughtBegin) && whole.Text != text {
			t.Errorf("text %q became %q", text, whole.Text)
		}
		if !strings.HasPrefix(text, whole.Text) && !strings.Contains(text, thoughtBegin) {
			t.Errorf("text %q is no beginning of %q", whole.Text, text)
		}
	})
}
