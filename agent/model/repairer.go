package model

import (
	"bytes"
	"slices"
)

// Repairer is [Repair] for the histories of one conversation, which mostly begin as the one before: what was looked at once is
// compared and not looked at again. The zero value is ready. It is not safe for concurrent use.
//
// That the result is the same rests on this. What [Lint] accepts after a repaired history, from where that ends, refers to
// nothing in it: its results answer its own calls, whose ids are new. So it can neither change how what is before is repaired
// nor is there anything to repair in it. That holds for a part of it too that ends where no call waits for its result. Wherever
// it does not hold, or what was repaired is another, all of it is repaired anew.
//
// What was returned once is never written to again: who goes on from a place further up does so in other memory.
type Repairer struct {
	in   []Message // the history of before, in memory of its own
	out  []Message // what it was repaired to; the same memory if it had no faults
	lint *linter   // after out; nil if there is nothing to go on from
	made bool      // out is other memory than in
	base int       // of in, how many messages were repaired together: what is after them stands in out as it is
	size int       // about, of the texts of in

	wire []byte // the first messages of out as a client has written them down, without the brackets
	ends []int  // where each of those ends in wire
	by   *Client

	tools    []Tool // of the request before
	toolWire []byte // as they are written down, the same for every client
}

// Repair returns what [Repair] returns, but for the memory that it is in: that is the Repairer's, and nobody may change it. A nil
// one remembers nothing.
func (r *Repairer) Repair(messages []Message) []Message {
	if r == nil {
		return Repair(messages)
	}
	if !r.goesOn(messages) {
		r.begin(messages)
	}
	return slices.Clip(r.out)
}

// Size is about how many bytes are kept, texts included, though others may keep those as well.
func (r *Repairer) Size() int {
	return (cap(r.in)+cap(r.out))*messageSize + r.size + cap(r.wire) + cap(r.ends)*endSize + ToolsSize(r.tools) + cap(r.toolWire)
}

const (
	// messageSize is about what a message takes beside its text.
	messageSize = 128
	// endSize is what it takes to know where a message ends.
	endSize = 8
)

// returned reports whether messages are what Repair returned last.
func (r *Repairer) returned(messages []Message) bool {
	return r != nil && len(messages) > 0 && len(messages) == len(r.out) && &messages[0] == &r.out[0]
}

// wired is how many messages of out are written down.
func (r *Repairer) wired() int { return len(r.ends) }

// callIDs are the ids of the calls of messages. Nobody may change them.
func (r *Repairer) callIDs(messages []Message) map[string]bool {
	if r.returned(messages) && r.lint != nil {
		return r.lint.ids
	}
	return callIDs(messages)
}

// goesOn takes what came since, if the history begins as the one before, or as a part of it, and nothing is wrong with that.
func (r *Repairer) goesOn(messages []Message) bool {
	if r.lint == nil {
		return false
	}
	same := 0
	for same < min(len(r.in), len(messages)) && r.in[same].Equal(&messages[same]) {
		same++
	}
	if same < len(r.in) && !r.back(same) {
		return false
	}
	more := owned(messages[len(r.in):])
	if !r.lint.accepts(more) {
		return false
	}
	r.in, r.size = append(r.in, more...), r.size+sizeOf(more)
	if r.made {
		r.out = append(r.out, more...)
	} else {
		r.out = r.in
	}
	return true
}

// back goes back to a place of the history, or to the nearest one before it at which no call waits for its result. It says
// false if that is among the messages that were repaired together, or the beginning.
func (r *Repairer) back(to int) bool {
	for to > r.base && r.in[to].Role == RoleTool { // in what was accepted, any other message comes after all results
		to--
	}
	at := to + len(r.out) - len(r.in)
	if to < r.base || at <= 0 {
		return false
	}
	r.lint.back(r.out, at)
	r.size -= sizeOf(r.in[to:])
	r.in, r.out = slices.Clip(r.in[:to]), slices.Clip(r.out[:at])
	if at < len(r.ends) {
		r.ends = slices.Clip(r.ends[:at])
		r.wire = slices.Clip(r.wire[:r.ends[at-1]])
	}
	return true
}

// begin repairs all of a history.
func (r *Repairer) begin(messages []Message) {
	*r = Repairer{
		in: owned(messages), lint: newLinter(len(messages)), size: sizeOf(messages), tools: r.tools, toolWire: r.toolWire,
	}
	if r.out = r.in; r.lint.accepts(r.in) {
		return
	}
	r.out, r.made, r.base = mended(r.in), true, len(r.in)
	if r.lint = newLinter(len(r.out)); !r.lint.accepts(r.out) {
		r.lint = nil // not reachable: what is repaired has no faults
	}
}

// owned returns a copy of messages that shares nothing with them that anybody could change.
func owned(messages []Message) []Message {
	out := slices.Clone(messages)
	for i := range out {
		m := &out[i]
		m.Images, m.Calls = slices.Clone(m.Images), slices.Clone(m.Calls)
		for j := range m.Calls {
			m.Calls[j].Extra = bytes.Clone(m.Calls[j].Extra)
		}
	}
	return out
}

// Equal reports whether two messages say the same. Texts in the same memory are not read.
func (m *Message) Equal(other *Message) bool {
	return m.Role == other.Role && m.Text == other.Text && m.CallID == other.CallID && m.Reasoning == other.Reasoning && m.Profile == other.Profile &&
		len(m.Images) == len(other.Images) && len(m.Calls) == len(other.Calls) && (len(m.Images)+len(m.Calls) == 0 ||
		slices.Equal(m.Images, other.Images) && slices.EqualFunc(m.Calls, other.Calls, func(a, b Call) bool {
			return a.ID == b.ID && a.Name == b.Name && a.Arguments == b.Arguments && bytes.Equal(a.Extra, b.Extra)
		}))
}
