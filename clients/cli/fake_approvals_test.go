package cli_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
)

var _ controlv1connect.ApprovalServiceHandler = (*fake)(nil)

const (
	bigID    = "3f2a9c1d-0000-4000-8000-000000000001"
	smallID  = "3f7b0000-0000-4000-8000-000000000002"
	goneID   = "9e110000-0000-4000-8000-000000000003"
	ownToken = "tok-0"
)

// approvalLog is the approvals of the fake: a log of changes and what is now.
type approvalLog struct {
	mu      sync.Mutex
	changed chan struct{}                       // closed at the next change
	log     []*controlv1.WatchApprovalsResponse // each with its cursor
	now     map[string]*controlv1.Approval
	order   []string

	decided []*controlv1.DecideRequest
	watched []*controlv1.WatchApprovalsRequest
	refuse  error                                             // what every decision ends with
	cut     func(n int, sent int) bool                        // whether to break the nth stream after so many frames
	reset   bool                                              // say that the cursor of the next stream is too old
	onOpen  func(n int)                                       // called when a stream begins
	fault   func(*controlv1.Decision) *commandv1.CommandError // an error for a decision
}

func newLog(list ...*controlv1.Approval) *approvalLog {
	d := &approvalLog{changed: make(chan struct{}), now: map[string]*controlv1.Approval{}}
	for _, a := range list {
		d.put(a, false)
	}
	return d
}

// put makes a change.
func (d *approvalLog) put(a *controlv1.Approval, warning bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.putLocked(a, warning)
}

func (d *approvalLog) putLocked(a *controlv1.Approval, warning bool) {
	a = proto.CloneOf(a)
	if d.now[a.GetApprovalId()] == nil {
		d.order = append(d.order, a.GetApprovalId())
	}
	d.now[a.GetApprovalId()] = a
	d.log = append(d.log, &controlv1.WatchApprovalsResponse{Approval: a, Cursor: uint64(len(d.log) + 1), Warning: warning})
	close(d.changed)
	d.changed = make(chan struct{})
}

// waits waits until there is an approval.
func (d *approvalLog) waits(ctx context.Context, id string) {
	for {
		d.mu.Lock()
		there, changed := d.now[id] != nil, d.changed
		d.mu.Unlock()
		if there {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// end changes the state of an approval, as somebody else's decision does.
func (d *approvalLog) end(id string, state controlv1.ApprovalState, by, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := proto.CloneOf(d.now[id])
	a.State, a.DecidedBy, a.DecisionReason, a.DecidedAt = state, by, reason, ago(0)
	d.putLocked(a, false)
}

func (d *approvalLog) decisions() []*controlv1.DecideRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.decided)
}

func (f *fake) ListApprovals(_ context.Context, req *controlv1.ListApprovalsRequest) (*controlv1.ListApprovalsResponse, error) {
	d := f.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	answer := &controlv1.ListApprovalsResponse{}
	from := 0
	_, _ = fmt.Sscanf(req.GetPageToken(), "%d", &from)
	for i, id := range slices.Backward(d.order) { // two to a page, to have pages
		a := d.now[id]
		at := len(d.order) - 1 - i
		if at < from || req.GetPendingOnly() && a.GetState() != controlv1.ApprovalState_APPROVAL_STATE_PENDING {
			continue
		}
		if len(answer.GetApprovals()) == min(int(req.GetPageSize()), 2) {
			answer.NextPageToken = fmt.Sprint(at)
			break
		}
		answer.Approvals = append(answer.Approvals, a)
	}
	return answer, nil
}

func (f *fake) GetApproval(_ context.Context, req *controlv1.GetApprovalRequest) (*controlv1.GetApprovalResponse, error) {
	f.desk.mu.Lock()
	defer f.desk.mu.Unlock()
	if a := f.desk.now[req.GetApprovalId()]; a != nil {
		return &controlv1.GetApprovalResponse{Approval: a}, nil
	}
	return nil, connect.NewError(connect.CodeNotFound, "there is no such approval")
}

func (f *fake) WatchApprovals(
	ctx context.Context, req *controlv1.WatchApprovalsRequest, stream controlv1connect.ApprovalServiceWatchApprovalsServerStream,
) error {
	if err := stream.SendHeaders(); err != nil {
		return err
	}
	d := f.desk
	d.mu.Lock()
	d.watched = append(d.watched, proto.CloneOf(req))
	n := len(d.watched)
	at := int(req.GetCursor())
	var frames []*controlv1.WatchApprovalsResponse
	switch {
	case d.reset && req.Cursor != nil:
		d.reset = false
		frames = append(frames, &controlv1.WatchApprovalsResponse{Reset_: true, Cursor: uint64(len(d.log))})
		at = len(d.log)
	case req.Cursor == nil:
		frames = append(frames, &controlv1.WatchApprovalsResponse{}) // a sign of life
		for _, id := range slices.Backward(d.order) {
			if a := d.now[id]; a.GetState() == controlv1.ApprovalState_APPROVAL_STATE_PENDING {
				frames = append(frames, &controlv1.WatchApprovalsResponse{Approval: a})
			}
		}
		at = len(d.log)
	}
	d.mu.Unlock()
	if d.onOpen != nil {
		d.onOpen(n)
	}
	for sent := 0; ; {
		for _, frame := range frames {
			if d.cut != nil && d.cut(n, sent) {
				return connect.NewError(connect.CodeUnavailable, "draining")
			}
			if err := stream.Send(frame); err != nil {
				return err
			}
			sent++
		}
		if d.cut != nil && d.cut(n, sent) {
			return connect.NewError(connect.CodeUnavailable, "draining")
		}
		d.mu.Lock()
		frames = nil
		for _, frame := range d.log[at:] { // an event says that something changed: what is sent is how it is now
			frames = append(frames, &controlv1.WatchApprovalsResponse{
				Approval: d.now[frame.GetApproval().GetApprovalId()], Cursor: frame.GetCursor(), Warning: frame.GetWarning(),
			})
		}
		at = len(d.log)
		changed := d.changed
		d.mu.Unlock()
		if len(frames) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (f *fake) Decide(_ context.Context, req *controlv1.DecideRequest) (*controlv1.DecideResponse, error) {
	d := f.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decided = append(d.decided, req)
	if d.refuse != nil {
		return nil, d.refuse
	}
	answer := &controlv1.DecideResponse{}
	for _, decision := range req.GetDecisions() {
		answer.Outcomes = append(answer.Outcomes, d.decide(decision))
	}
	return answer, nil
}

// decide is the outcome of one decision. The caller holds mu.
func (d *approvalLog) decide(decision *controlv1.Decision) *controlv1.DecisionOutcome {
	a := proto.CloneOf(d.now[decision.GetApprovalId()])
	fail := func(code commandv1.ErrorCode, text string) *controlv1.DecisionOutcome {
		return &controlv1.DecisionOutcome{Approval: d.now[decision.GetApprovalId()], Error: &commandv1.CommandError{Code: code, Message: text}}
	}
	switch {
	case d.fault != nil && d.fault(decision) != nil:
		return &controlv1.DecisionOutcome{Approval: a, Error: d.fault(decision)}
	case a.GetState() != controlv1.ApprovalState_APPROVAL_STATE_PENDING:
		return fail(commandv1.ErrorCode_ERROR_CODE_REFUSED, "somebody has decided already")
	case decision.GetApprove() != nil && decision.GetApprove().GetHash() != a.GetHash():
		return fail(commandv1.ErrorCode_ERROR_CODE_REFUSED, "it is another one than was shown")
	}
	a.State, a.DecidedBy, a.DecidedAt = controlv1.ApprovalState_APPROVAL_STATE_DENIED, ownToken, ago(0)
	a.DecisionReason = decision.GetDeny().GetReason()
	if yes := decision.GetApprove(); yes != nil {
		a.State, a.DecisionReason = controlv1.ApprovalState_APPROVAL_STATE_APPROVED, yes.GetReason()
		for _, c := range a.GetCalls() {
			c.Effective = c.GetProposed()
			for _, e := range yes.GetEdits() {
				if e.GetCommandId() == c.GetCommandId() {
					c.Edited, c.Effective = e.GetAction(), e.GetAction()
				}
			}
		}
		if yes.GetRemember() != nil {
			a.RememberedRuleId = "rule-9"
		}
	}
	d.putLocked(a, false)
	return &controlv1.DecisionOutcome{Approval: d.now[a.GetApprovalId()]}
}

// closing is an approval to close tabs of one device.
func closing(id, device string, tabs int) *controlv1.Approval {
	call := &controlv1.ApprovalCall{CommandId: "cmd-" + device, DeviceId: device, DeviceName: nameOf(device), Name: "closeTabs"}
	var ids []string
	for i := range tabs {
		tab := fmt.Sprintf("%s_tb1aa-%d", device, i+1)
		ids = append(ids, tab)
		call.Targets = append(call.Targets, &controlv1.PlannedTarget{
			Id: tab, Status: commandv1.ItemStatus_ITEM_STATUS_OK, Undoable: true,
			Title: fmt.Sprintf("Page %d", i+1), Url: fmt.Sprintf("https://example.com/%d", i+1),
		})
	}
	call.Proposed = &commandv1.Action{Kind: &commandv1.Action_CloseTabs{CloseTabs: &commandv1.CloseTabs{TabIds: ids}}}
	return &controlv1.Approval{
		ApprovalId: id, State: controlv1.ApprovalState_APPROVAL_STATE_PENDING, Principal: ownToken,
		Origin: controlv1.Origin_ORIGIN_INTERACTIVE, GroupId: "group-1", RequestId: "request-1", PolicyVersion: 4,
		Reason: fmt.Sprintf("closeTabs acts on %d targets, and asks a person for more than 2 at once", tabs),
		Calls:  []*controlv1.ApprovalCall{call}, Hash: "hash-of-" + id[:4], CreatedAt: ago(3 * time.Minute),
		ExpiresAt: timestamppb.New(now().Add(72*time.Hour - 3*time.Minute)),
	}
}

// opening is an approval that a conversation asks for, with a page's own words in it.
func opening(id string) *controlv1.Approval {
	a := closing(id, work, 0)
	a.ConversationId, a.Principal, a.Origin = "5d55e63f-conversation", "5d55e63f-conversation", controlv1.Origin_ORIGIN_BACKGROUND
	a.RuleId, a.Reason = "rule-3", "rule 3 asks: \x1b[2Jopens\u202e pages"
	a.ExpiresAt = timestamppb.New(now().Add(10 * time.Minute))
	a.Calls[0].Name = "openTab"
	a.Calls[0].Proposed = &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://docs.example.com/\u202ea"}}}
	return a
}
