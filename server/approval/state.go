package approval

import (
	"slices"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// State is where an approval is in its life. The names are those of the stored rows and of the diagram in docs.
type State string

// The states.
const (
	Pending   State = "pending"
	Approved  State = "approved"
	Denied    State = "denied"
	Expired   State = "expired"
	Withdrawn State = "withdrawn"
	Void      State = "void"
)

// next is the one table of an approval's life: from each state, where it may go.
func (s State) next() []State {
	switch s {
	case Pending:
		return []State{Approved, Denied, Expired, Withdrawn, Void}
	case Approved:
		return []State{Void}
	case Denied, Expired, Withdrawn, Void:
		return nil
	default:
		return nil
	}
}

// Transitions is the table of all states.
func Transitions() map[State][]State {
	table := map[State][]State{}
	for _, s := range []State{Pending, Approved, Denied, Expired, Withdrawn, Void} {
		table[s] = s.next()
	}
	return table
}

// CanGo says whether the table has the step.
func (s State) CanGo(to State) bool { return slices.Contains(s.next(), to) }

// Proto is the state in the contract.
func (s State) Proto() controlv1.ApprovalState {
	switch s {
	case Pending:
		return controlv1.ApprovalState_APPROVAL_STATE_PENDING
	case Approved:
		return controlv1.ApprovalState_APPROVAL_STATE_APPROVED
	case Denied:
		return controlv1.ApprovalState_APPROVAL_STATE_DENIED
	case Expired:
		return controlv1.ApprovalState_APPROVAL_STATE_EXPIRED
	case Withdrawn:
		return controlv1.ApprovalState_APPROVAL_STATE_WITHDRAWN
	case Void:
		return controlv1.ApprovalState_APPROVAL_STATE_VOID
	default:
		return controlv1.ApprovalState_APPROVAL_STATE_UNSPECIFIED
	}
}
