package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	throwbar "throwbar.dev/throwbar/clients/go"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// feed follows approvals over streams that may break: nothing is missed and nothing comes twice.
type feed struct {
	program *program
	server  *throwbar.Client
	ask     *controlv1.WatchApprovalsRequest
	pending map[string]*controlv1.WatchApprovalsResponse // as they were told last
	ended   map[string]controlv1.ApprovalState           // as they were told; a frame has the approval as it is now, so it may come again
}

func (p *program) newFeed(s *throwbar.Client) *feed {
	return &feed{
		program: p, server: s, ask: &controlv1.WatchApprovalsRequest{}, pending: map[string]*controlv1.WatchApprovalsResponse{},
		ended: map[string]controlv1.ApprovalState{},
	}
}

// follow hands over every change until the context ends.
func (f *feed) follow(ctx context.Context, each func(*controlv1.WatchApprovalsResponse) error) error {
	return again(ctx, "watch approvals", func() (bool, error) { return f.once(ctx, each) })
}

// once reads one stream to its end. It says whether a change came.
func (f *feed) once(ctx context.Context, each func(*controlv1.WatchApprovalsResponse) error) (got bool, err error) {
	stream, err := f.server.Approvals.WatchApprovals(ctx, f.ask)
	if err != nil {
		return false, err
	}
	defer func() { _ = stream.Close() }() // the end of the stream is told by Receive
	if f.ask.Cursor == nil && len(f.pending) > 0 {
		// It broke before it had given a cursor: what has been decided since is in no stream.
		if err := f.settle(ctx, each); err != nil {
			return false, err
		}
	}
	after := f.ask.GetCursor()
	for {
		frame, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		cursor := frame.GetCursor()
		if cursor != 0 {
			f.ask.Cursor = &cursor
		}
		switch {
		case frame.GetReset_():
			got = true
			if err := each(frame); err != nil {
				return got, err
			}
			if err := f.settle(ctx, each); err != nil {
				return got, err
			}
		case frame.GetApproval() != nil && (cursor == 0 || cursor > after):
			got = true
			if err := f.tell(frame, each); err != nil {
				return got, err
			}
		}
	}
}

// tell hands over a change that was not told yet.
func (f *feed) tell(frame *controlv1.WatchApprovalsResponse, each func(*controlv1.WatchApprovalsResponse) error) error {
	a := frame.GetApproval()
	last, known := f.pending[a.GetApprovalId()]
	if pending(a) {
		if known && last.GetApproval().GetHash() == a.GetHash() && (last.GetWarning() || !frame.GetWarning()) {
			return nil
		}
		f.pending[a.GetApprovalId()] = frame
		return each(frame)
	}
	delete(f.pending, a.GetApprovalId())
	if f.ended[a.GetApprovalId()] == a.GetState() {
		return nil
	}
	f.ended[a.GetApprovalId()] = a.GetState()
	return each(frame)
}

// settle brings what is known in step with the server where the stream cannot: it lists what is pending, and looks up
// what was and is not any more.
func (f *feed) settle(ctx context.Context, each func(*controlv1.WatchApprovalsResponse) error) error {
	list, err := f.program.approvals(ctx, true, 0)
	if err != nil {
		return err
	}
	for _, a := range slices.Backward(list.GetApprovals()) { // the oldest first
		if err := f.tell(&controlv1.WatchApprovalsResponse{Approval: a}, each); err != nil {
			return err
		}
	}
	for id := range f.pending {
		if slices.ContainsFunc(list.GetApprovals(), func(a *controlv1.Approval) bool { return a.GetApprovalId() == id }) {
			continue
		}
		answer, err := f.server.Approvals.GetApproval(ctx, &controlv1.GetApprovalRequest{ApprovalId: id})
		if err != nil {
			return fmt.Errorf("get approval %s: %w", id, err)
		}
		if err := f.tell(&controlv1.WatchApprovalsResponse{Approval: answer.GetApproval()}, each); err != nil {
			return err
		}
	}
	return nil
}
