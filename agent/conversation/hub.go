package conversation

import (
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// hub tells everybody who follows a conversation what happens in it.
type hub struct {
	mu        sync.Mutex
	told      uint64             // guarded by mu; number of the last event that was told
	feeds     map[*Feed]struct{} // guarded by mu
	text      partial            // guarded by mu; of the answer that is being written
	reasoning partial            // guarded by mu
}

// partial is the part of an answer that has come so far: who joins in the middle gets it as one piece.
type partial struct {
	first *agentv1.Event // nil while there is none
	text  strings.Builder
}

// add adds a piece.
func (p *partial) add(event *agentv1.Event, piece string) {
	if p.first == nil {
		p.first = event
	}
	p.text.WriteString(piece)
}

// publish tells stored events. What of an answer they hold is not partial any more.
func (h *hub) publish(events []*agentv1.Event) {
	if len(events) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, event := range events {
		if concludes(event) {
			h.text, h.reasoning = partial{}, partial{}
		}
	}
	h.told = events[len(events)-1].GetSequence()
	for f := range h.feeds {
		f.push(events...)
	}
}

// concludes says whether an event comes after an answer, which it holds or which failed.
func concludes(event *agentv1.Event) bool {
	switch k := event.GetKind().(type) {
	case *agentv1.Event_Message:
		return k.Message.GetRole() == agentv1.Role_ROLE_ASSISTANT
	case *agentv1.Event_ToolCall, *agentv1.Event_Error, *agentv1.Event_TurnEnded, *agentv1.Event_Usage, *agentv1.Event_TurnResumed:
		return true
	default:
		return false
	}
}

// delta tells a piece of an answer.
func (h *hub) delta(event *agentv1.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch k := event.GetKind().(type) {
	case *agentv1.Event_TextDelta:
		h.text.add(event, k.TextDelta.GetText())
	case *agentv1.Event_ReasoningDelta:
		h.reasoning.add(event, k.ReasoningDelta.GetText())
	}
	for f := range h.feeds {
		f.push(event)
	}
}

// join begins to tell: what has been told by now, and the part of an answer that is not stored yet.
func (h *hub) join() (f *Feed, told uint64, pieces []*agentv1.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f = newFeed()
	if h.feeds == nil {
		h.feeds = map[*Feed]struct{}{}
	}
	h.feeds[f] = struct{}{}
	if first := h.reasoning.first; first != nil {
		piece := proto.CloneOf(first)
		piece.GetReasoningDelta().Text = h.reasoning.text.String()
		pieces = append(pieces, piece)
	}
	if first := h.text.first; first != nil {
		piece := proto.CloneOf(first)
		piece.GetTextDelta().Text = h.text.text.String()
		pieces = append(pieces, piece)
	}
	return f, h.told, pieces
}

// leave tells one less.
func (h *hub) leave(f *Feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.feeds, f)
}

// reached says up to where events have been told, and whether anybody listens.
func (h *hub) reached() (uint64, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.told, len(h.feeds) > 0
}

// skip says up to where events are told, without telling them: nobody listens yet.
func (h *hub) skip(told uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = told
}

// cut says to everybody why nothing more comes.
func (h *hub) cut(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for f := range h.feeds {
		f.cut(why)
		delete(h.feeds, f)
	}
	h.text, h.reasoning = partial{}, partial{}
}
