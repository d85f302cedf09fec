package dispatch_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
)

// shelf keeps approvals in memory with the rules of the real store, beside the book's commands. The book's mu guards it.
type shelf struct {
	approvals map[string]*approval.Approval
	events    []string // approval id and state, and warnings
	refuse    error    // of Ask and BeginApproved
	denials   []dispatch.Denial
}

// hooks are called at a moment that a test wants to do something in; each is called without the book's mu.
type hooks struct {
	accepting func()                  // commands are about to be written
	counting  func() error            // it is about to be read what an act did
	before    func()                  // a decision was written, and nobody knows yet
	asked     func(approval.Approval) // an approval was written, and nobody knows yet
	begun     func()                  // a start was written, and nobody knows yet
}

func (b *book) note(a *approval.Approval) {
	b.shelf.events = append(b.shelf.events, a.ID+" "+string(a.State))
}

func (b *book) Ask(_ context.Context, a *approval.Approval, commands []dispatch.Record) error {
	b.mu.Lock()
	if b.shelf.refuse != nil {
		defer b.mu.Unlock()
		return b.shelf.refuse
	}
	for _, rec := range commands {
		b.rows[rec.ID] = rec
	}
	b.put(a)
	b.mu.Unlock()
	if b.asked != nil {
		b.asked(*a)
	}
	return nil
}

func (b *book) put(a *approval.Approval) {
	kept := *a
	kept.Calls = slices.Clone(a.Calls)
	b.shelf.approvals[a.ID] = &kept
	b.note(&kept)
}

func (b *book) BeginApproved(_ context.Context, id string, at time.Time, commands []dispatch.Acceptance) error {
	defer func() {
		if b.begun != nil {
			b.begun()
		}
	}()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shelf.refuse != nil {
		return b.shelf.refuse
	}
	a := b.shelf.approvals[id]
	for i := range commands {
		c := &commands[i]
		row := b.rows[c.Record.ID]
		n := slices.IndexFunc(a.Calls, func(call approval.Call) bool { return call.Command == c.Record.ID })
		if row.State != dispatch.AwaitingApproval || row.Approval != id || a.State != approval.Approved || n < 0 || !a.Calls[n].UsedAt.IsZero() {
			c.Stale = true
			continue
		}
		a.Calls[n].UsedAt = at
		b.rows[c.Record.ID] = c.Record
		for _, s := range c.Saved {
			b.saved[s.GetSavedId()], b.of[s.GetSavedId()] = s, c.Record.ID
		}
	}
	return nil
}

func (b *book) Replace(_ context.Context, old *approval.Approval, from approval.State, a *approval.Approval) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.resolve(old, from) {
		return false, nil
	}
	for _, c := range a.Calls {
		row := b.rows[c.Command]
		row.Approval, row.Deadline = a.ID, a.ExpiresAt
		b.rows[c.Command] = row
	}
	b.put(a)
	return true, nil
}

func (b *book) Resolve(_ context.Context, a *approval.Approval, from approval.State) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.resolve(a, from), nil
}

func (b *book) resolve(a *approval.Approval, from approval.State) bool {
	row := b.shelf.approvals[a.ID]
	if row == nil || row.State != from {
		return false
	}
	row.State, row.DecidedAt, row.DecisionReason = a.State, a.DecidedAt, a.DecisionReason
	b.note(row)
	return true
}

func (b *book) Warn(_ context.Context, a *approval.Approval) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if row := b.shelf.approvals[a.ID]; row.State == approval.Pending && row.WarnedAt.IsZero() {
		row.WarnedAt = a.WarnedAt
		b.shelf.events = append(b.shelf.events, a.ID+" warning")
	}
	return nil
}

func (b *book) GetApproval(_ context.Context, workspace, id string) (approval.Approval, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	row := b.shelf.approvals[id]
	if row == nil || (workspace != "" && row.Workspace != workspace) {
		return approval.Approval{}, fault.New(fault.NotFound, "there is no approval %q", id)
	}
	out := *row
	out.Calls = slices.Clone(row.Calls)
	for i := range out.Calls {
		rec := b.rows[out.Calls[i].Command]
		out.Calls[i].Device, out.Calls[i].Name, out.Calls[i].TTL = rec.Device, rec.Name, rec.TTL
		out.Calls[i].Principal, out.Calls[i].Conversation, out.Calls[i].Origin = rec.Principal, rec.Conversation, rec.Origin
		out.Calls[i].Targets = slices.Clone(out.Calls[i].Targets)
	}
	return out, nil
}

func (b *book) ListApprovals(_ context.Context, f approval.Filter) ([]approval.Approval, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []approval.Approval
	for _, a := range b.shelf.approvals {
		if a.Workspace == f.Workspace && (!f.PendingOnly || a.State == approval.Pending) {
			out = append(out, *a)
		}
	}
	slices.SortFunc(out, func(x, y approval.Approval) int { return y.CreatedAt.Compare(x.CreatedAt) })
	return out, nil
}

func (b *book) DecideApprovals(_ context.Context, changes []*approval.Change) error {
	defer func() {
		if b.before != nil {
			b.before()
		}
	}()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range changes {
		row := b.shelf.approvals[c.Approval.ID]
		switch {
		case c.Note && row.State == approval.Expired && row.DecisionReason == "":
			row.DecisionReason, c.Won = c.Approval.DecisionReason, true
		case !c.Note && row.State == approval.Pending && row.ExpiresAt.After(c.Approval.DecidedAt):
			c.Won = true
			b.put(&c.Approval)
		}
	}
	return nil
}

func (b *book) Refused(denials []dispatch.Denial) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shelf.denials = append(b.shelf.denials, denials...)
}

// drop is what Finish does with the approval of a command that ended before it started. The book's mu is held.
func (b *book) drop(id string, at time.Time) {
	a := b.shelf.approvals[id]
	if a == nil {
		return
	}
	for _, c := range a.Calls {
		if !b.rows[c.Command].State.Ended() || !c.UsedAt.IsZero() {
			return
		}
	}
	switch a.State {
	case approval.Pending:
		a.State = approval.Withdrawn
	case approval.Approved:
		a.State = approval.Void
	default:
		return
	}
	a.DecidedAt = at
	b.note(a)
}

// only is the one approval of a book.
func (b *book) only() approval.Approval {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.shelf.approvals {
		if len(b.shelf.approvals) == 1 {
			return *a
		}
	}
	return approval.Approval{}
}

// happened are the events of approvals.
func (b *book) happened() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.shelf.events)
}

// change changes an approval and its first command behind everybody's back.
func (b *book) change(id string, mutate func(*approval.Approval, *dispatch.Record)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.shelf.approvals[id]
	command := a.Calls[0].Command
	rec := b.rows[command]
	mutate(a, &rec)
	b.rows[command] = rec
}

func days(n int) *durationpb.Duration { return durationpb.New(time.Duration(n) * 24 * time.Hour) }

func withCancel(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

func bytesOf(action *commandv1.Action) []byte {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(action)
	if err != nil {
		return nil
	}
	return raw
}

func detached(req dispatch.Request) dispatch.Request {
	req.Detached = true
	return req
}

// refuseApprovals makes asks and starts fail with an error until it is nil.
func (b *book) refuseApprovals(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shelf.refuse = err
}
