package model

import (
	"encoding/json"
	"errors"
	"slices"
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
}

// chunk takes one document of the answer: a piece of a streamed completion or a whole one.
func (b *builder) chunk(doc fields) error {
	if err := embeddedError(doc); err != nil {
		return err
	}
	b.takeUsage(doc.object("usage"))
	b.takeUsage(doc.object("x_groq").object("usage"))
	choices := doc.list("choices")
	if len(choices) == 0 {
		if doc.has("choices") || doc.has("usage") {
			b.chunks++
		}
		return nil
	}
	b.chunks++
	before := b.size()
	choice := asObject(choices[0]) // one was asked for; its index is whatever the provider likes
	if delta := choice.object("delta"); len(delta) > 0 {
		if err := b.delta(delta, false); err != nil {
			return err
		}
	} else if message := choice.object("message"); message != nil {
		if err := b.message(message); err != nil {
			return err
		}
	}
	reason := choice.text("finish_reason")
	if grew := b.size() > before; grew || reason != "" {
		b.firm = !grew
	}
	return b.takeFinish(reason)
}

// message takes a whole message. In a stream it repeats at the end what the deltas said.
func (b *builder) message(message fields) error {
	if b.text.Len() > 0 || b.reasoning.Len() > 0 || len(b.calls.calls) > 0 {
		return nil
	}
	return b.delta(message, true)
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
	f := fragment{
		id:    doc.text("id"),
		name:  function.text("name"),
		args:  function["arguments"],
		extra: doc.without("index", "id", "type", "function"),
		whole: whole,
	}
	f.index, f.indexed = doc.integer("index")
	if inner := function.without("name", "arguments"); len(inner) > 0 {
		if raw, err := marshal(inner); err == nil {
			f.extra["function"] = raw
		}
	}
	return f
}

// without returns the members that have another name and a value.
func (f fields) without(names ...string) fields {
	out := make(fields)
	for name, value := range f {
		if !slices.Contains(names, name) && !isNull(value) {
			out[name] = value
		}
	}
	return out
}

// takeUsage keeps the last count: some providers send a running total with every chunk.
func (b *builder) takeUsage(doc fields) {
	usage := Usage{
		Prompt:     doc.count("prompt_tokens"),
		Completion: doc.count("completion_tokens"),
		Cached:     doc.object("prompt_tokens_details").count("cached_tokens"),
		Reasoning:  doc.object("completion_tokens_details").count("reasoning_tokens"),
	}
	if usage.Cached == 0 {
		usage.Cached = doc.count("prompt_cache_hit_tokens")
	}
	if usage != (Usage{}) {
		b.usage = usage
	}
}

func (f fields) count(name string) int64 {
	n, _ := f.integer(name)
	return max(n, 0)
}

// takeFinish keeps the first reason to stop, unless a later one says more.
func (b *builder) takeFinish(reason string) error {
	reason = canonicalFinish(reason)
	switch {
	case reason == "":
	case reason == "error":
		return &APIError{Message: "the provider ended the answer with an error", Midway: true}
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
	switch word := strings.ToLower(reason); word {
	case "stop", "end_turn", "eos", "eos_token", "stop_sequence":
		return FinishStop
	case "length", "max_tokens", "model_length":
		return FinishLength
	case "tool_calls", "tool_call", "tool_use", "function_call":
		return FinishToolCalls
	case "content_filter", "safety":
		return FinishContentFilter
	case "error":
		return word
	}
	return reason
}

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
