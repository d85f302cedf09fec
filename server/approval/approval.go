// Package approval is the life of an approval: a question to a person about exact calls, what a decision binds, who may
// decide, and what a decision does. It knows neither the store nor a device; whether a call may run now is asked of whoever
// runs it.
package approval

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// Caller is who asks, and for what.
type Caller struct {
	Workspace, Principal, Conversation string

	Group   string // the dispatch
	Request string // what the caller calls it
	Origin  controlv1.Origin
}

// Approval is one question to a person, about calls that belong together.
type Approval struct {
	Caller

	ID      string
	State   State
	Reason  string // why a person is asked
	Rule    string // that asks; empty where the command's own option does
	Version uint64 // of the policy that asked, and from a decision on of the one that it was made under
	Hash    string // over what a decision binds, as it was asked
	Bound   string // over what the decision bound; empty until it is approved

	CreatedAt time.Time
	ExpiresAt time.Time
	WarnedAt  time.Time // zero until it was said that it is about to expire
	DecidedAt time.Time // zero while it is pending

	DecidedBy      string // empty where nobody decided
	DecisionReason string
	Remembered     string // the rule that remembers the decision

	Calls []Call
	// Damaged says that some of what is written down of it cannot be read: it is not what was asked.
	Damaged bool
}

// Call is one call of an approval.
type Call struct {
	Caller // as the command itself says

	Command, Device, Name string

	TTL       time.Duration // of the command, from its start
	Proposed  []byte        // the encoded action that was asked for
	Edited    []byte        // what whoever decided made of it; nil if nothing
	Effective []byte        // what runs; nil until it is approved
	Targets   []*controlv1.PlannedTarget
	UsedAt    time.Time // zero until it starts
}

// Filter selects approvals, newest first.
type Filter struct {
	Workspace   string
	PendingOnly bool
	BeforeTime  time.Time // with BeforeID: only those after this one in the order of the list
	BeforeID    string
	Limit       int
}

// Sum is a hash over everything that a decision binds, as it is now, what was shown of the targets too. It is another one when
// any of it differs, and empty, which no approval's hash is, if it cannot be read.
func (a *Approval) Sum() string {
	if a.Damaged {
		return ""
	}
	e := encoding{bytes: []byte("throwbar approval 1\n")}
	e.text(a.ID)
	e.caller(a.Caller)
	e.number(a.Version)
	e.number(uint64(a.ExpiresAt.UnixMilli()))
	e.number(uint64(len(a.Calls)))
	for i := range a.Calls {
		c := &a.Calls[i]
		e.caller(c.Caller)
		e.text(c.Command)
		e.text(c.Device)
		e.text(c.Name)
		e.number(uint64(c.TTL.Milliseconds()))
		e.text(string(c.Proposed))
		e.text(string(c.Edited))
		e.text(string(c.Effective))
		e.number(uint64(len(c.Targets)))
		for _, t := range c.Targets {
			e.target(t)
		}
	}
	return e.sum()
}

// Covers says whether a call may act on a target: it was shown to whoever decided.
func (c *Call) Covers(target string) bool {
	for _, t := range c.Targets {
		if t.GetId() == target {
			return true
		}
	}
	return false
}

// encoding writes texts and numbers so that different ones never look alike: each text with its length before it.
type encoding struct{ bytes []byte }

func (e *encoding) number(n uint64) { e.bytes = binary.BigEndian.AppendUint64(e.bytes, n) }

func (e *encoding) text(s string) {
	e.number(uint64(len(s)))
	e.bytes = append(e.bytes, s...)
}

func (e *encoding) caller(c Caller) {
	e.text(c.Workspace)
	e.text(c.Principal)
	e.text(c.Conversation)
	e.text(c.Group)
	e.text(c.Request)
	e.number(uint64(c.Origin))
}

func (e *encoding) target(t *controlv1.PlannedTarget) {
	e.text(t.GetId())
	e.number(uint64(t.GetStatus()))
	e.text(t.GetTitle())
	e.text(t.GetUrl())
	undoable := uint64(0)
	if t.GetUndoable() {
		undoable = 1
	}
	e.number(undoable)
}

func (e *encoding) sum() string {
	sum := sha256.Sum256(e.bytes)
	return hex.EncodeToString(sum[:])
}
