package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
)

// maxTurn bounds the text, reasoning and arguments of one turn.
const maxTurn = 16 << 20

var errLongTurn = errors.New("the answer is too long")

// builder makes a turn from chunks of an answer.
type builder struct {
	sink      Sink
	text      strings.Builder
	reasoning strings.Builder
	textJoin  joiner
	thinkJoin joiner
	calls     assembler
	usage     Usage
	refused   bool
	finish    string
	// firm is set while the last reason to stop came after all content. One that shares its chunk with content says
	// little: some providers put it on every chunk.
	firm bool
	// chunks counts the documents that were part of a completion.
	chunks int
	// stranger is what the last document says that was no part of one, if none has come since.
	stranger *APIError
}

// chunk takes one document of the answer: a piece of a streamed completion or a whole one.
func (b *builder) chunk(doc fields) error {
	if err := embeddedError(doc); err != nil {
		return err
	}
	b.takeUsage(doc.object("usage"))
	b.takeUsage(doc.object("x_groq").object("usage"))
	choices := doc.list("choices")
	switch {
	case len(choices) > 0, doc.has("choices"), doc.has("usage"):
		b.chunks++
		b.stranger = nil
	default:
		b.meet(doc)
		return nil
	}
	before, begun, reasons := b.size(), b.begun(), []string(nil)
	for _, choice := range merged(choices) {
		if err := embeddedError(choice); err != nil {
			return err
		}
		b.takeUsage(choice.object("usage"))
		if err := b.choice(choice, begun); err != nil {
			return err
		}
		reasons = append(reasons, choice.text("finish_reason"))
	}
	if grew := b.size() > before; grew || strings.Join(reasons, "") != "" {
		b.firm = !grew
	}
	for _, reason := range reasons {
		if err := b.takeFinish(reason); err != nil {
			return err
		}
	}
	return nil
}

// merged are the choices of a document that belong to the answer. One was asked for, and its index is whatever the provider
// likes; but some gateways put the text into the first and the calls into the next. What is said twice counts once.
func merged(choices []json.RawMessage) []fields {
	if len(choices) == 1 {
		return []fields{asObject(choices[0])}
	}
	var out []fields
	var said, called bool
	for _, raw := range choices {
		choice := asObject(raw)
		for _, name := range []string{"delta", "message"} {
			part := choice.object(name)
			if part == nil {
				continue
			}
			if said {
				part = part.without("content", "refusal", "reasoning", "reasoning_content")
			}
			if called {
				part = part.without("tool_calls", "function_call")
			}
			said = said || !isNothing(part["content"]) || !isNothing(part["refusal"])
			called = called || !isNothing(part["tool_calls"]) || !isNothing(part["function_call"])
			if len(out) > 0 {
				choice[name], _ = marshal(part) // decoded before
			}
		}
		out = append(out, choice)
	}
	return out
}

// choice takes one choice of a document: a delta, or a whole message. In a stream that has begun, a message repeats at the
// end what the deltas said.
func (b *builder) choice(choice fields, begun bool) error {
	if delta := choice.object("delta"); len(delta) > 0 {
		return b.delta(delta, false)
	}
	if message := choice.object("message"); message != nil && !begun {
		return b.delta(message, true)
	}
	return nil
}

// begun reports whether some of the answer has come.
func (b *builder) begun() bool {
	return b.text.Len() > 0 || b.reasoning.Len() > 0 || len(b.calls.calls) > 0
}

// meet remembers a document that is no part of an answer. It matters if no answer comes after it: gateways report errors
// in forms of their own.
func (b *builder) meet(doc fields) {
	raw, err := marshal(doc)
	if err != nil || isNothing(raw) {
		return
	}
	e := &APIError{Midway: b.size() > 0}
	if e.Message, e.Code = errorText(raw, 0); e.Message == "" {
		if b.chunks > 0 {
			return // a sign of life
		}
		e.Message = "no part of an answer: " + string(raw[:min(len(raw), maxErrorText)])
	}
	e.tidy()
	b.stranger = e
}

func (b *builder) delta(delta fields, whole bool) error {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if b.think(delta[name]) {
			break // both, if both are there, say the same
		}
	}
	b.content(delta["content"])
	if kind(delta["refusal"]) == '"' {
		b.refused = b.say(delta["refusal"]) || b.refused
	}
	for _, raw := range delta.list("tool_calls") {
		if err := b.calls.add(newFragment(asObject(raw), whole)); err != nil {
			return err
		}
	}
	if old := delta.object("function_call"); old != nil { // the form before tool_calls
		if err := b.calls.add(newFragment(fields{"function": delta["function_call"]}, whole)); err != nil {
			return err
		}
	}
	if b.size() > maxTurn {
		return errLongTurn
	}
	return nil
}

func (b *builder) size() int { return b.text.Len() + b.reasoning.Len() + b.calls.size }

// content takes the visible part of a delta: text, or a list of parts.
func (b *builder) content(raw json.RawMessage) {
	if kind(raw) == '"' {
		b.say(raw)
		return
	}
	for _, part := range asList(raw) {
		if kind(part) == '"' {
			b.say(part)
			continue
		}
		doc := asObject(part)
		switch {
		case doc.has("thinking"):
			b.think(doc["thinking"])
		case strings.HasPrefix(doc.text("type"), "reasoning"):
			b.think(doc["text"])
		case kind(doc["refusal"]) == '"':
			b.refused = b.say(doc["refusal"]) || b.refused
		case kind(doc["text"]) == '"':
			b.say(doc["text"])
		}
	}
}

// say takes a literal of visible text and reports whether there was any.
func (b *builder) say(literal json.RawMessage) bool {
	piece := b.textJoin.decode(literal)
	b.text.WriteString(piece)
	b.sink.text(piece)
	return piece != ""
}

// think takes reasoning, a literal or a list of parts with text, and reports whether there was any.
func (b *builder) think(raw json.RawMessage) bool {
	if kind(raw) != '"' {
		some := false
		for _, part := range asList(raw) {
			if text := asObject(part)["text"]; kind(text) == '"' {
				some = b.think(text) || some
			}
		}
		return some
	}
	piece := b.thinkJoin.decode(raw)
	b.reasoning.WriteString(piece)
	b.sink.reasoning(piece)
	return piece != ""
}

// newFragment reads one element of tool_calls.
func newFragment(doc fields, whole bool) fragment {
	function := doc.object("function")
	if function == nil && (doc.has("name") || doc.has("arguments")) { // not wrapped
		function, doc = doc.only("name", "arguments"), doc.without("name", "arguments")
	}
	if !function.has("arguments") && kind(function["parameters"]) == '{' { // what models of one family call them
		function["arguments"] = function["parameters"]
		delete(function, "parameters")
	}
	f := fragment{
		id:    doc.text("id"),
		name:  function.text("name"),
		args:  function["arguments"],
		extra: doc.without("index", "id", "type", "function"),
		whole: whole,
	}
	if f.id == "null" || f.id == "None" { // the name of nothing in the server's language
		f.id = ""
	}
	f.index, f.indexed = doc.integer("index")
	if inner := function.without("name", "arguments"); len(inner) > 0 {
		if raw, err := marshal(inner); err == nil {
			f.extra["function"] = raw
		}
	}
	return f
}

// takeUsage keeps the last count: some providers send a running total with every chunk.
func (b *builder) takeUsage(doc fields) {
	input, output := doc.object("prompt_tokens_details"), doc.object("completion_tokens_details")
	usage := Usage{
		Prompt:     cmp.Or(doc.count("prompt_tokens"), doc.count("input_tokens")),
		Completion: cmp.Or(doc.count("completion_tokens"), doc.count("output_tokens")),
		Cached:     cmp.Or(input.count("cached_tokens"), doc.count("prompt_cache_hit_tokens"), doc.count("cached_tokens")),
		Reasoning:  cmp.Or(output.count("reasoning_tokens"), doc.count("reasoning_tokens")),
	}
	if usage != (Usage{}) {
		b.usage = usage
	}
}

// count returns a member that is a number of tokens. More than any answer has is a mistake, and would spoil sums.
func (f fields) count(name string) int64 {
	n, _ := f.integer(name)
	if n < 0 || n > maxTokens {
		return 0
	}
	return n
}

// maxTokens is more than any request or answer has.
const maxTokens = 1 << 40

// takeFinish keeps the first reason to stop, unless a later one says more.
func (b *builder) takeFinish(reason string) error {
	said := reason
	if reason = canonicalFinish(reason); strings.EqualFold(said, reason) {
		said = ""
	}
	switch {
	case reason == "":
	case reason == finishError:
		e := &APIError{Message: "the provider ended the answer with an error", Code: said, Midway: true}
		e.tidy()
		return e
	case b.finish == "", telling(reason) && !telling(b.finish):
		b.finish = reason
	}
	return nil
}

func telling(reason string) bool {
	return reason == FinishLength || reason == FinishContentFilter || reason == FinishToolCalls
}

// canonicalFinish translates the words of other wires that leak through gateways.
func canonicalFinish(reason string) string {
	// Some put the provider's own word behind it: content_filter: SAFETY.
	word, _, _ := strings.Cut(strings.ToLower(reason), ":")
	switch word {
	case "stop", "end_turn", "eos", "eos_token", "stop_sequence", "complete":
		return FinishStop
	case "length", "max_tokens", "model_length", "max_output_tokens", "model_context_window_exceeded":
		return FinishLength
	case "tool_calls", "tool_call", "tool_use", "function_call":
		return FinishToolCalls
	case "content_filter", "safety", "sensitive", "prohibited_content", "blocklist":
		return FinishContentFilter
	case "error", "abort", "aborted", "cancelled", "insufficient_system_resource", "network_error":
		return finishError // the server gave up: whatever has come is not what the model meant to say
	}
	return cut(reason, maxFinish)
}

const (
	// finishError stands for all words that say that the provider did not bring the answer to its end.
	finishError = "error"
	// maxFinish bounds a word that nobody knows.
	maxFinish = 100
)

// flush says what still waits for its other half.
func (b *builder) flush() {
	if half := b.thinkJoin.rest(); half != "" {
		b.reasoning.WriteString(half)
		b.sink.reasoning(half)
	}
	if half := b.textJoin.rest(); half != "" {
		b.text.WriteString(half)
		b.sink.text(half)
	}
}

// turn returns what came of the answer. Calls that are not whole are left open if the answer was cut off, by whatever.
func (b *builder) turn(cutOff bool, taken map[string]bool, fresh func() string) Turn {
	b.flush()
	out := Turn{
		Text:      b.text.String(),
		Reasoning: b.reasoning.String(),
		Finish:    b.finish,
		Refused:   b.refused,
		Usage:     b.usage,
		CutOff:    cutOff,
	}
	short := b.finish == FinishLength || b.finish == FinishContentFilter
	calls, done := b.calls.finish(taken, fresh)
	for i, call := range calls {
		if cutOff || short && !done[i] {
			out.Open = append(out.Open, call)
		} else {
			out.Calls = append(out.Calls, call)
		}
	}
	return out
}
