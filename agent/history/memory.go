package history

import (
	"slices"

	"throwbar.dev/throwbar/agent/model"
)

// Memory makes the histories of one conversation ready for models, and remembers what it found out about their messages: the
// next history mostly begins as the one before. What it remembers changes no result. The zero value is ready. It is not safe for
// concurrent use.
type Memory struct {
	// Sent is of what models are sent: see [model.Request].
	Sent model.Repairer

	whole, shown model.Repairer // of what is stored, and of what models are shown
	known        []known        // by place, of what was shown last
	weight       int            // of all of that, times unit

	tools       []model.Tool // that were weighed last
	toolsWeight int
}

// known is what was found out about a message.
type known struct {
	message
	weight int
	short  string // what its text is cut to; empty if that was not needed
	less   int    // its weight then
}

// Repair is [model.Repair] of what is stored. Nobody may change what it returns.
func (m *Memory) Repair(messages []model.Message) []model.Message { return m.whole.Repair(messages) }

// Tools is [Estimator.Tools]. Tools that are those of the last time are not weighed again.
func (m *Memory) Tools(e *Estimator, tools []model.Tool) int {
	if !slices.EqualFunc(m.tools, tools, model.Tool.Equal) {
		m.tools, m.toolsWeight = model.OwnTools(tools), weighTools(tools)
	}
	return e.tokens(m.toolsWeight)
}

// weigh weighs messages: those that were not at their place the last time.
func (m *Memory) weigh(messages []message) {
	m.known = m.known[:min(len(m.known), len(messages))]
	m.known = slices.Grow(m.known, len(messages)-len(m.known))
	m.weight = 0
	for i := range messages {
		switch one := &messages[i]; {
		case i == len(m.known):
			m.known = append(m.known, known{message: *one, weight: weigh(one)})
		case !m.known[i].Equal(one):
			m.known[i] = known{message: *one, weight: weigh(one)}
		}
		m.weight += m.known[i].weight
	}
}

// shorten returns messages that were weighed with the long results before a place cut, and says how many those are.
func (m *Memory) shorten(messages []message, end int) ([]message, int) {
	out, n := messages, 0
	for i := range messages[:end] {
		if messages[i].Role != model.RoleTool || len(messages[i].Text) <= longResult {
			continue
		}
		if n == 0 {
			out = slices.Clone(messages)
		}
		k := &m.known[i]
		if k.short == "" {
			k.short = Cut(k.Text, shortResult)
			k.less = k.weight - weight(k.Text) + weight(k.short)
		}
		out[i].Text = k.short
		m.weight += k.less - k.weight
		n++
	}
	return out, n
}

// size is about how many bytes are remembered. Texts count, though others may keep them as well.
func (m *Memory) size() int {
	size := m.whole.Size() + m.shown.Size() + m.Sent.Size() + cap(m.known)*knownSize + model.ToolsSize(m.tools)
	for i := range m.known {
		size += len(m.known[i].short)
	}
	return size
}

// knownSize is about what is kept of a message beside its text.
const knownSize = 160
