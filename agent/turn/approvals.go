package turn

import (
	"slices"
	"sync"

	"throwbar.dev/throwbar/agent/tool/naming"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// news is what calls that run side by side tell of the approvals that they wait for. The turn records it: nobody who
// tells something waits for that.
type news struct {
	wake  chan struct{} // has room for one signal
	clock *clock        // stands still while a call waits for a person

	mu     sync.Mutex
	events []*agentv1.Event                // guarded by mu; not recorded yet
	open   []question                      // guarded by mu; not resolved yet
	made   map[*call][]*controlv1.Approval // guarded by mu
	known  map[string]bool                 // guarded by mu; approvals whose end an earlier process has told, by id
	over   bool                            // guarded by mu; what comes now comes too late
}

// question is an approval that a call waits for.
type question struct {
	call *call
	id   string
}

func newNews(c *clock, known map[string]bool) *news {
	return &news{wake: make(chan struct{}, 1), clock: c, made: map[*call][]*controlv1.Approval{}, known: known}
}

// asked tells that a call waits for an approval.
func (n *news) asked(c *call, a *controlv1.Approval) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over || n.known[a.GetApprovalId()] {
		return
	}
	if slices.Contains(n.open, question{c, a.GetApprovalId()}) {
		return
	}
	n.open = append(n.open, question{c, a.GetApprovalId()})
	n.clock.wait()
	n.tell(&agentv1.Event{Kind: &agentv1.Event_ApprovalRequested{ApprovalRequested: &agentv1.ApprovalRequested{
		CallId: c.id, ApprovalId: a.GetApprovalId(), Name: c.name, Reason: a.GetReason(), ExpiresAt: a.GetExpiresAt(),
	}}})
}

// resolved tells how an approval ended. One that was not asked for, or has ended already, is no news.
func (n *news) resolved(c *call, a *controlv1.Approval) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return
	}
	if n.known[a.GetApprovalId()] { // what a person made of the call still belongs into its result
		same := func(b *controlv1.Approval) bool { return a.GetApprovalId() == b.GetApprovalId() }
		if !slices.ContainsFunc(n.made[c], same) {
			n.made[c] = append(n.made[c], a)
		}
		return
	}
	at := slices.Index(n.open, question{c, a.GetApprovalId()})
	if at < 0 {
		return
	}
	n.open = slices.Delete(n.open, at, at+1)
	n.clock.decided()
	n.made[c] = append(n.made[c], a)
	state, _ := naming.Short(a.GetState().Descriptor(), a.GetState().Number())
	n.tell(approvalResolved(c, a.GetApprovalId(), state, a.GetDecisionReason()))
}

func approvalResolved(c *call, id, state, reason string) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_ApprovalResolved{ApprovalResolved: &agentv1.ApprovalResolved{
		CallId: c.id, ApprovalId: id, State: state, Reason: reason,
	}}}
}

// tells adds an event.
func (n *news) tells(event *agentv1.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.over {
		n.tell(event)
	}
}

// tell adds an event. The caller holds mu.
func (n *news) tell(event *agentv1.Event) {
	n.events = append(n.events, event)
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// take takes the events that are not recorded yet.
func (n *news) take() []*agentv1.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	events := n.events
	n.events = nil
	return events
}

// end takes the last events. An approval that is still open then is one that the turn does not want any more, unless it
// only pauses.
func (n *news) end(pauses bool) []*agentv1.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
	for _, q := range n.open {
		n.clock.decided()
		if !pauses {
			n.events = append(n.events, approvalResolved(q.call, q.id, withdrawn, ""))
		}
	}
	return n.events
}

const withdrawn = "withdrawn"

// waits says whether a call waits for a person.
func (n *news) waits(c *call) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.open, func(q question) bool { return q.call == c })
}

// decisions are the approvals of a call that have ended.
func (n *news) decisions(c *call) []*controlv1.Approval {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.made[c])
}
