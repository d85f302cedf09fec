package model

import (
	"encoding/json"
	"strings"
)

// callReader reads the text of an answer while it arrives: what is text it passes on, and what may turn out to be a call
// it holds back until that is certain. However the text is cut into pieces, the same comes out.
type callReader struct {
	sink  Sink
	known map[string]bool // names of tools

	text      strings.Builder // passed on
	reasoning strings.Builder // passed on
	space     string          // not passed on yet, because it may be what stands before a call
	rest      string          // not read yet
	more      strings.Builder // of rest, not joined yet
	begun     bool            // something other than space was read
	indent    int             // spaces with which the line that rest is in began, -1 if it has more than those
	fence     string          // of the block of code that rest is in the middle of
	thinking  bool            // rest is in the middle of a thought
	thought   bool            // one has ended, and no text has come since
	cut       bool            // the answer ended before the model did
	over      bool            // what follows a call is made up
	calls     []Call
	open      []Call // begun when the answer ended
}

// smallRest is how much may be held back and read again with every piece. More is read again only when it has grown by a
// part of itself, so that the time that a long answer takes does not grow with its square.
const smallRest = 4 << 10

// think passes on reasoning.
func (r *callReader) think(piece string) {
	r.reasoning.WriteString(piece)
	r.sink.reasoning(piece)
}

// feed takes the next piece of the answer.
func (r *callReader) feed(piece string) {
	r.more.WriteString(piece)
	if len(r.rest) > smallRest && r.more.Len() < len(r.rest)/4 {
		return
	}
	r.join()
	for r.step(false) {
	}
}

func (r *callReader) join() {
	r.rest += r.more.String()
	r.more.Reset()
}

// end takes the end of the answer, which may have come before the model's.
func (r *callReader) end(cut bool) {
	r.cut = cut
	r.join()
	for r.step(true) {
	}
	if len(r.calls) == 0 && len(r.open) == 0 {
		r.pass(r.space)
	}
}

// step reads on, and says whether there may be more to read.
func (r *callReader) step(final bool) bool {
	switch {
	case r.rest == "":
		return false
	case r.over:
		r.rest = ""
		return false
	case r.thinking:
		return r.thoughts(final)
	case r.fence != "":
		return r.code(final)
	}
	at, kind := r.opening(final)
	if at > 0 {
		r.say(r.take(at))
		return true
	}
	switch kind {
	case opensThought:
		r.thinking, r.space = true, ""
		r.take(len(thoughtBegin))
		return true
	case opensValue:
		return r.value(final)
	case opensTag:
		return r.tagged(final)
	case opensFence:
		return r.fenced(final)
	case opensNothing:
	}
	return false
}

// take removes what was read.
func (r *callReader) take(n int) string {
	out := r.rest[:n]
	r.rest = r.rest[n:]
	line := out
	if at := strings.LastIndexByte(out, '\n'); at >= 0 {
		line, r.indent = out[at+1:], 0
	}
	switch {
	case strings.Trim(line, " ") != "":
		r.indent = -1
	case r.indent >= 0:
		r.indent += len(line)
	}
	r.begun = r.begun || strings.Trim(out, jsonSpace) != ""
	return out
}

// say passes on text, but for space at its end. After a call only space is no text.
func (r *callReader) say(text string) {
	if len(r.calls)+len(r.open) > 0 {
		r.over = r.over || strings.Trim(text, jsonSpace) != ""
		return
	}
	if r.thought {
		if text = strings.TrimLeft(text, jsonSpace); text == "" {
			return
		}
		r.thought = false
	}
	text = r.space + text
	shown := strings.TrimRight(text, jsonSpace)
	r.space = text[len(shown):]
	r.pass(shown)
}

func (r *callReader) pass(text string) {
	r.text.WriteString(text)
	r.sink.text(text)
}

// thoughts passes on what the model thinks before it answers.
func (r *callReader) thoughts(final bool) bool {
	if end := strings.Index(r.rest, thoughtEnd); end >= 0 {
		r.think(r.take(end))
		r.take(len(thoughtEnd))
		r.thinking, r.thought, r.begun, r.indent = false, true, false, 0
		return true
	}
	sure := len(r.rest)
	for n := min(len(thoughtEnd)-1, sure); n > 0 && !final; n-- {
		if strings.HasSuffix(r.rest, thoughtEnd[:n]) {
			sure -= n
			break
		}
	}
	r.think(r.take(sure))
	return false
}

// code passes on a block of code that is no call, up to its end.
func (r *callReader) code(final bool) bool {
	if end, after := fenceEnd(r.rest, r.fence, final); end >= 0 {
		r.say(r.take(after))
		r.fence = ""
		return true
	}
	sure := strings.LastIndexByte(r.rest, '\n') + 1 // the line that has not ended may be the fence
	if final {
		sure = len(r.rest)
	}
	r.say(r.take(sure))
	return false
}

// fenced reads a block between fences.
func (r *callReader) fenced(final bool) bool {
	fence := fenceOf(r.rest)
	info, body, whole := strings.Cut(r.rest[len(fence):], "\n")
	head := len(r.rest) - len(body)
	info = strings.ToLower(info)
	switch {
	case !whole && !final:
		return false
	case strings.ContainsAny(info, "`{"): // code within a line
		r.say(r.take(head))
		return true
	case !mayBeValue(body):
		r.fence = fence
		r.say(r.take(head))
		return true
	}
	end, after := fenceEnd(body, fence, final)
	closed := end >= 0
	switch {
	case !closed && !final:
		return false
	case !closed:
		end, after = len(body), len(body)
	}
	marked := strings.Contains(info, "tool") || strings.Contains(info, "function")
	return r.decide(body[:end], head+after, marked, closed)
}

// tagged reads what stands after a tag.
func (r *callReader) tagged(final bool) bool {
	for tag, closing := range callTags() {
		body, found := strings.CutPrefix(r.rest, tag)
		if !found {
			continue
		}
		end, after, closed := len(body), len(body), false
		if at := strings.Index(body, closing); closing != "" && at >= 0 {
			end, after, closed = at, at+len(closing), true
		} else if !final {
			return false
		}
		return r.decide(body[:end], len(tag)+after, true, closed)
	}
	return false
}

// value reads an answer that begins with a JSON value, once it is whole.
func (r *callReader) value(final bool) bool {
	if !mayBeValue(r.rest) {
		r.say(r.take(1))
		return true
	}
	if !final {
		return false
	}
	dec := json.NewDecoder(strings.NewReader(r.rest))
	var raw json.RawMessage
	if dec.Decode(&raw) != nil {
		return r.decide(r.rest, len(r.rest), false, false)
	}
	return r.decide(string(raw), int(dec.InputOffset()), false, true)
}

// decide takes n bytes, which are a call if body is one, and text if it is not.
func (r *callReader) decide(body string, n int, marked, closed bool) bool {
	switch calls := r.callsOf(body, marked); {
	case len(calls) > 0:
		r.calls = append(r.calls, calls...)
		r.take(n)
	case r.cut && !closed && r.begins(body, marked):
		r.take(n)
	default:
		r.say(r.take(n))
	}
	return true
}

// turn is the answer with its calls.
func (r *callReader) turn(answer Turn, taken map[string]bool) Turn {
	answer.Text, answer.Reasoning = r.text.String(), r.reasoning.String()
	for _, calls := range [][]Call{r.calls, r.open} {
		for i := range calls {
			for calls[i].ID == "" || taken[calls[i].ID] {
				calls[i].ID = freshID()
			}
			taken[calls[i].ID] = true
		}
	}
	answer.Calls, answer.Open = r.calls, r.open
	if answer.CutOff {
		answer.Calls, answer.Open = nil, append(r.calls, r.open...)
	}
	if len(answer.Calls) > 0 && (answer.Finish == FinishStop || answer.Finish == "") {
		answer.Finish = FinishToolCalls
	}
	return answer
}
