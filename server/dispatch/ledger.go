package dispatch

import (
	"context"
	"time"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
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
	Workspace, Device string
	PendingOnly       bool
	BeforeTime        time.Time // with BeforeID: only commands after this one in the order of the list
	BeforeID          string
	Limit             int
}

// Ledger writes commands down.
type Ledger interface {
	// Accept writes commands, their saved tabs and their first events in one transaction. A fault says that nothing was
	// written; after any other error none counts as written, and those that are nevertheless there are ended by Finish.
	Accept(ctx context.Context, commands []Acceptance) error
	// Advance writes steps that are no ends a moment later: it then takes what there is, which may be none.
	Advance(take func() []Step)
	// Finish writes ends and their events in one transaction. An end of a command that has ended, or is not there, is
	// left out.
	Finish(ctx context.Context, ends []End) error
	// Late notes, once for each command, a result that came after the end. Of the dropped saved tabs those go that are
	// kept and not claimed.
	Late(ctx context.Context, rec Record, detail string, dropped []string) error
	// Sweep clears payloads of commands ended before one time, and removes rows ended before another, with what was
	// kept for undo.
	Sweep(ctx context.Context, clearBefore, removeBefore time.Time) error
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
