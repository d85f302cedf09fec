package dispatch

import (
	"slices"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// State is where a command is in its life. The names are those of the stored rows and of the diagram in docs.
type State string

// The states.
const (
	Accepted         State = "accepted"
	AwaitingApproval State = "awaiting_approval"
	Sent             State = "sent"
	Acknowledged     State = "acknowledged"
	Succeeded        State = "succeeded"
	Failed           State = "failed"
	Expired          State = "expired"
	Cancelled        State = "cancelled"
	Interrupted      State = "interrupted"
)

// next is the one table of a command's life: from each state, where it may go.
//
// A device that took a command over before the server was restarted may answer while the row still says accepted, so
// every state that is not an end may go to every end.
func (s State) next() []State {
	switch s {
	case Accepted:
		return []State{AwaitingApproval, Sent, Succeeded, Failed, Expired, Cancelled, Interrupted}
	case AwaitingApproval:
		return []State{Accepted, Failed, Expired, Cancelled}
	case Sent:
		return []State{Acknowledged, Succeeded, Failed, Expired, Cancelled, Interrupted}
	case Acknowledged:
		return []State{Succeeded, Failed, Expired, Cancelled, Interrupted}
	case Succeeded, Failed, Expired, Cancelled, Interrupted:
		return nil
	default:
		return nil
	}
}

// Transitions is the table of all states.
func Transitions() map[State][]State {
	table := map[State][]State{}
	for _, s := range []State{
		Accepted, AwaitingApproval, Sent, Acknowledged, Succeeded, Failed, Expired, Cancelled, Interrupted,
	} {
		table[s] = s.next()
	}
	return table
}

// CanGo says whether the table has the step.
func (s State) CanGo(to State) bool { return slices.Contains(s.next(), to) }

// Ended says whether it is an end.
func (s State) Ended() bool { return len(s.next()) == 0 }

// Proto is the state in the contract.
func (s State) Proto() controlv1.State {
	switch s {
	case Accepted:
		return controlv1.State_STATE_ACCEPTED
	case AwaitingApproval:
		return controlv1.State_STATE_AWAITING_APPROVAL
	case Sent:
		return controlv1.State_STATE_SENT
	case Acknowledged:
		return controlv1.State_STATE_ACKNOWLEDGED
	case Succeeded:
		return controlv1.State_STATE_SUCCEEDED
	case Failed:
		return controlv1.State_STATE_FAILED
	case Expired:
		return controlv1.State_STATE_EXPIRED
	case Cancelled:
		return controlv1.State_STATE_CANCELLED
	case Interrupted:
		return controlv1.State_STATE_INTERRUPTED
	default:
		return controlv1.State_STATE_UNSPECIFIED
	}
}
