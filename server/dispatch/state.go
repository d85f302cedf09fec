package dispatch

import controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"

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

// Transitions is the one table of a command's life: from each state, where it may go.
//
// A device that took a command over before the server was restarted may answer while the row still says accepted, so
// every state that is not an end may go to every end.
func Transitions() map[State][]State {
	ends := []State{Succeeded, Failed, Expired, Cancelled, Interrupted}
	return map[State][]State{
		Accepted:         append([]State{AwaitingApproval, Sent}, ends...),
		AwaitingApproval: {Accepted, Failed, Expired, Cancelled},
		Sent:             append([]State{Acknowledged}, ends...),
		Acknowledged:     ends,
		Succeeded:        nil,
		Failed:           nil,
		Expired:          nil,
		Cancelled:        nil,
		Interrupted:      nil,
	}
}

// CanGo says whether the table has the step.
func (s State) CanGo(to State) bool {
	for _, t := range Transitions()[s] {
		if t == to {
			return true
		}
	}
	return false
}

// Ended says whether it is an end.
func (s State) Ended() bool { return len(Transitions()[s]) == 0 }

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
