package turn

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/tool"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// perform runs a call. It says whether the answer is the call's own, and not that the turn ended before there was one.
func (s *session) perform(ctx context.Context, c *call, n *news) (answer tool.Answer, own bool) {
	defer func() {
		if cause := recover(); cause != nil {
			s.config.Log.ErrorContext(ctx, "tool panicked", slog.String("tool", c.name), slog.Any("panic", cause))
			answer, own = tool.Fail("failed", insideText), true
		}
	}()
	answer, err := s.try(ctx, c, n)
	if err == nil {
		return answer, true
	}
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		return tool.Refused(refusal.Code, refusal.Message), true
	case ctx.Err() != nil:
		return interrupted(s.mayAct(c)), false
	default: // an error without a text for the model
		s.config.Log.ErrorContext(ctx, "tool failed", slog.String("tool", c.name), slog.Any("error", err))
		return tool.Fail("failed", insideText), true
	}
}

const insideText = "the server could not do this: its log says why"

func (s *session) try(ctx context.Context, c *call, n *news) (tool.Answer, error) {
	switch {
	case c.failure != nil:
		return s.withdraw(ctx, c, n)
	case c.tool.Entry.Method != nil:
		return s.query(ctx, c)
	case c.tool.Finds():
		return s.hand.view.Search(c.decoded), nil
	case c.tool.Entry.Facility != nil:
		return s.facility(ctx, c, n)
	}
	request := s.command(c, n)
	var err error
	if request.Action, err = c.tool.Entry.Wrap(c.decoded.Message); err != nil {
		return tool.Answer{}, err
	}
	if c.decoded.DeviceID != "" {
		request.DeviceIDs = []string{c.decoded.DeviceID}
	}
	response, err := s.config.Commander.Command(ctx, request)
	if err != nil {
		return tool.Answer{}, err
	}
	return c.tool.Done(response, n.decisions(c)...), nil
}

// command is a call of a command, but for what it does and where.
func (s *session) command(c *call, n *news) Call {
	return Call{
		Workspace: s.task.Workspace, Principal: s.task.Conversation, Conversation: s.task.Root, Origin: s.task.Origin,
		Act: s.task.Act, Key: s.key(c.id), Durable: s.task.Durable, Again: c.again,
		Asked:    func(a *controlv1.Approval) { n.asked(c, a) },
		Resolved: func(a *controlv1.Approval) { n.resolved(c, a) },
	}
}

// query asks a query, and once more for a shorter page if the answer is too long for the model.
func (s *session) query(ctx context.Context, c *call) (tool.Answer, error) {
	ask := func() (proto.Message, error) {
		return s.config.Querier.Query(ctx, Query{
			Workspace: s.task.Workspace, Principal: s.task.Conversation, Conversation: s.task.Root, Origin: s.task.Origin,
			Method: c.tool.Entry.Method.FullName(), Request: c.decoded.Message,
		})
	}
	response, err := ask()
	if err != nil {
		return tool.Answer{}, err
	}
	rows, shorter := c.tool.Shorten(c.decoded.Message, response)
	if !shorter {
		return c.tool.Found(response), nil
	}
	if response, err = ask(); err != nil {
		return tool.Answer{}, err
	}
	return c.tool.Found(response).Page(rows), nil
}

// facility does what the agent itself can do.
func (s *session) facility(ctx context.Context, c *call, n *news) (tool.Answer, error) {
	if s.config.Facilities == nil {
		return tool.Answer{}, &Refusal{Code: commandv1.ErrorCode_ERROR_CODE_UNSUPPORTED, Message: "this server cannot do " + c.name}
	}
	response, err := s.config.Facilities.Call(ctx, FacilityCall{
		Workspace: s.task.Workspace, Conversation: s.task.Conversation, Root: s.task.Root, TurnID: s.task.TurnID, CallID: c.id,
		Origin: s.task.Origin, Entry: c.tool.Entry, Request: c.decoded.Message, Key: s.key(c.id), Again: c.again,
		Durable:  s.task.Durable,
		Asked:    func(a *controlv1.Approval) { n.asked(c, a) },
		Resolved: func(a *controlv1.Approval) { n.resolved(c, a) },
		Rest: func() func() {
			s.clock.wait()
			return s.clock.decided
		},
	})
	if err != nil {
		return tool.Answer{}, err
	}
	return c.tool.Answered(response), nil
}
