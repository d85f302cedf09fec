package dispatch

import (
	"context"
	"time"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/policy"
)

// Record is a command as it is stored. Payloads are bytes: they pass through unchanged, whatever they hold.
type Record struct {
	ID, Group, Workspace, Device, Name, Principal string

	Action    []byte
	State     State
	CreatedAt time.Time
	Deadline  time.Time
	EndedAt   time.Time
	Result    []byte
	Error     []byte
	Summary   string

	Attached bool // somebody waits for it
	Private  bool // it is about a private tab: what outlives it has ids and no texts; not written down itself

	Conversation string // that it comes from; empty if none
	Request      string // what the caller calls it
	Origin       controlv1.Origin
	Approval     string        // that it waits for, or was run under; empty if nobody was asked
	TTL          time.Duration // of one that asks, from its start

	Act        string // that it counts for; empty if it destroys nothing, or somebody was asked
	ActTargets int    // on how many targets; zero without an act

	Undoes      string // command whose tabs it brings back; empty if it is no part of an undo
	UndoTargets int    // how many of that command's tabs the whole undo is to bring back
	Undone      int    // how many of them this one brought back; zero until it has ended
}

// Acceptance is a command to write down, with the tabs that the server keeps for it.
type Acceptance struct {
	Record Record
	Saved  []*commandv1.SavedTab

	// Claims are ids of kept saved tabs that the command brings back: it takes each one that no other command has.
	Claims []string
	// Narrow is the action with those ids only. It is what is written down where not all could be claimed, so that a
	// restarted server knows which tabs the command has.
	Narrow func(claimed []string) ([]byte, error)
	// Lost is set by Accept: the claims that another command has, or that are gone. A command that lost all of them is
	// not written down.
	Lost []string
	// Stale is set by BeginApproved: the command did not wait any more, or its approval does not let it start.
	Stale bool
}

// Void says that the command was not written down, because it lost all its claims.
func (a *Acceptance) Void() bool { return len(a.Claims) > 0 && len(a.Lost) == len(a.Claims) }

// Step is a step of a command that is no end.
type Step struct {
	Record Record // before it
	To     State
	At     time.Time
}

// End is how a command ended.
type End struct {
	Record   Record
	Steps    []Step   // that were not written down before
	Detail   string   // for the event
	Kept     []string // ids of saved tabs that count from now on
	Dropped  []string // ids of saved tabs that are gone: not taken away after all, or open again
	Released []string // ids of saved tabs that were claimed and are still not open: they are kept again
}

// Filter selects commands, newest first.
type Filter struct {
	Workspace, Device  string
	Principal, Request string // what a request of a principal became; nothing else is selected then
	PendingOnly        bool
	BeforeTime         time.Time // with BeforeID: only commands after this one in the order of the list
	BeforeID           string
	Limit              int
}

// Ledger writes commands down.
type Ledger interface {
	// Accept writes commands, their saved tabs and their first events in one transaction. A fault says that nothing was
	// written; after any other error none counts as written, and those that are nevertheless there are ended by Finish.
	Accept(ctx context.Context, commands []Acceptance) error
	// Advance writes steps that are no ends a moment later: it then takes what there is, which may be none.
	Advance(take func() []Step)
	// Finish writes ends and their events in one transaction. An end of a command that has ended, or is not there, is
	// left out. With the last command of an approval that could have started, the approval ends too.
	Finish(ctx context.Context, ends []End) error
	// Late notes, once for each command, a result that came after the end. Of the dropped saved tabs those go that are
	// kept and not claimed.
	Late(ctx context.Context, rec Record, detail string, dropped []string) error
	// Sweep clears payloads of commands ended before one time, and removes rows ended before another, with what was
	// kept for undo.
	Sweep(ctx context.Context, clearBefore, removeBefore time.Time) error
	// Refused notes commands that policy denied, a moment later. Nothing else is written of them.
	Refused(denials []Denial)
}

// Denial is a command that policy denied.
type Denial struct {
	Record   Record // as it would have been
	Decision policy.Decision
}

// Approvals writes down what waits for a person, and what becomes of it. What it wrote is on disk when it returns.
type Approvals interface {
	// Ask writes an approval, the commands that wait for it and their events in one transaction. A fault says that nothing
	// was written.
	Ask(ctx context.Context, a *approval.Approval, commands []Record) error
	// BeginApproved starts commands that wait: each one's call counts as used, it is accepted with its new deadline, and its saved
	// tabs and claims are written, all in one transaction.
	BeginApproved(ctx context.Context, approvalID string, at time.Time, commands []Acceptance) error
	// Replace makes an approval void and asks another one for the same commands, in one transaction. It says whether the old
	// one was in the given state.
	Replace(ctx context.Context, old *approval.Approval, from approval.State, a *approval.Approval) (bool, error)
	// Resolve ends an approval without a decision. It says whether it was in the given state.
	Resolve(ctx context.Context, a *approval.Approval, from approval.State) (bool, error)
	// Warn notes, once, that an approval is about to expire.
	Warn(ctx context.Context, a *approval.Approval) error
	// GetApproval is a fault NotFound for an id that the workspace does not have.
	GetApproval(ctx context.Context, workspace, id string) (approval.Approval, error)
}

// Saved is a saved tab as it is stored.
type Saved struct {
	Tab     *commandv1.SavedTab
	Claimed bool // a command is bringing it back
}

// Kept is a saved tab that can be brought back, and the command that took it away.
type Kept struct {
	Tab     *commandv1.SavedTab
	Command string
	Group   string
	Name    string
	State   State
}

// KeptFilter selects saved tabs that can be brought back, newest first. Of Command and Group at most one is set.
type KeptFilter struct {
	Workspace, Device, Command, Group string

	BeforeTime time.Time // with BeforeID: only those after this one in the order of the list
	BeforeID   string
	Limit      int
}

// Reader reads commands back.
type Reader interface {
	// Get is a fault NotFound for an id that the workspace does not have. An empty workspace means any.
	Get(ctx context.Context, workspace, id string) (Record, error)
	List(ctx context.Context, filter Filter) ([]Record, error)
	// Pending lists all commands that have not ended, oldest first, with the saved tabs written for each.
	Pending(ctx context.Context) ([]Acceptance, error)
	// Saved reads saved tabs by id; those that the workspace does not have, and those whose command has not ended, are
	// left out.
	Saved(ctx context.Context, workspace string, ids []string) ([]Saved, error)
	// Kept lists saved tabs whose commands are still in the history.
	Kept(ctx context.Context, filter KeptFilter) ([]Kept, error)
	// OfGroup is any command of a group. It is a fault NotFound for a group that the workspace does not have.
	OfGroup(ctx context.Context, workspace, group string) (Record, error)
}
