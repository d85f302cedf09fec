package turn

import (
	"strings"

	"throwbar.dev/throwbar/agent/model"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// maxRestarts is how often in a row a turn may be taken up again without coming any further. Each time the model is asked
// anew, which costs, and a server that ends whenever this turn runs would never do anything else.
const maxRestarts = 20

// past is what earlier processes have told of a turn. It is read from its events, not from its history: what was made
// shorter there is still here.
type past struct {
	answers  []pastAnswer
	asked    map[string]*agentv1.ToolCall // every call of every answer, by its id
	decided  map[string]bool              // approvals whose end was told, by their ids
	choice   string                       // that was fallen back to last; empty if none was
	restarts int                          // since it last came any further
}

// pastAnswer is the calls of one answer of the model.
type pastAnswer struct {
	calls   []*agentv1.ToolCall
	results map[string]*agentv1.ToolResult // by the call's id
	heard   bool                           // somebody said something after it
}

// whole says whether all calls have their results.
func (a *pastAnswer) whole() bool { return len(a.results) == len(a.calls) }

func readPast(events []*agentv1.Event) *past {
	p := &past{asked: map[string]*agentv1.ToolCall{}, decided: map[string]bool{}}
	for _, event := range events {
		if event.GetTurnResumed() != nil {
			p.restarts++
			continue
		}
		p.restarts = 0
		switch kind := event.GetKind().(type) {
		case *agentv1.Event_ModelChanged:
			p.choice = kind.ModelChanged.GetTo()
		case *agentv1.Event_Message:
			if n := len(p.answers); n > 0 && kind.Message.GetRole() == agentv1.Role_ROLE_USER {
				p.answers[n-1].heard = true
			}
		case *agentv1.Event_ApprovalResolved:
			p.decided[kind.ApprovalResolved.GetApprovalId()] = true
		case *agentv1.Event_ToolCall:
			p.call(kind.ToolCall)
		case *agentv1.Event_ToolResult:
			if n := len(p.answers); n > 0 {
				p.answers[n-1].results[kind.ToolResult.GetCallId()] = kind.ToolResult
			}
		}
	}
	return p
}

// call adds a call to the answer that it belongs to: those of one answer are told together, before any of their results.
func (p *past) call(c *agentv1.ToolCall) {
	p.asked[c.GetCallId()] = c
	if n := len(p.answers); n == 0 || len(p.answers[n-1].results) > 0 {
		p.answers = append(p.answers, pastAnswer{results: map[string]*agentv1.ToolResult{}})
	}
	last := &p.answers[len(p.answers)-1]
	last.calls = append(last.calls, c)
}

// recall counts what earlier processes did as if this one had done it, so that no guard begins anew with a restart.
func (s *session) recall() {
	s.answers = s.past.choice
	raw := s.written()
	for i := range s.past.answers {
		a := &s.past.answers[i]
		for _, c := range a.calls {
			result := a.results[c.GetCallId()]
			if result == nil || s.guard.notice != nil { // it is made again, or was not made any more
				continue
			}
			key := s.pastKey(c, raw)
			if !s.guard.before(key) {
				continue
			}
			t, known := s.config.Tools.Lookup(c.GetName())
			s.guard.after(c.GetName(), key, result.GetOutcome() == agentv1.Outcome_OUTCOME_SUCCEEDED, !known || t.Reads())
		}
		if a.whole() {
			s.guard.rest()
			if a.heard {
				s.guard.heard()
			}
		}
	}
}

// heard says whether somebody has said something since the calls that are made again.
func (p *past) heard() bool {
	n := len(p.answers)
	return n > 0 && p.answers[n-1].heard
}

// written is what the model itself wrote for the calls that the history still has, by their ids.
func (s *session) written() map[string]model.Message {
	out := map[string]model.Message{}
	for _, m := range s.history {
		for _, c := range m.Calls {
			out[c.ID] = model.Message{Profile: m.Profile, Calls: []model.Call{c}}
		}
	}
	return out
}

// pastKey is the key that a call had when it was made.
func (s *session) pastKey(c *agentv1.ToolCall, raw map[string]model.Message) string {
	if shownWhole(c.GetArguments()) {
		return shownKey(c.GetName(), c.GetArguments())
	}
	m, ok := raw[c.GetCallId()]
	if !ok { // the history was made shorter: it is not taken for equal to any other, of which nobody knows
		return c.GetName() + "\x00\x00\x00" + c.GetCallId()
	}
	return s.exactKey(m.Calls[0], m.Profile)
}

// shownKey is the key of a call whose arguments are shown as they are.
func shownKey(name, shown string) string { return name + "\x00" + shown }

// shownWhole says whether two calls that are shown alike are alike: nothing in them is hidden or cut.
func shownWhole(shown string) bool {
	return !strings.Contains(shown, `"(hidden)"`) && !strings.Contains(shown, `"@type"`) && !strings.HasSuffix(shown, " more bytes)")
}
