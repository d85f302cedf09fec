package rpc

import (
	"errors"

	"connectrpc.com/connect/v2"

	"throwbar.dev/throwbar/agent/conversation"
)

// code is the one place where the agent's errors become Connect codes.
func code(c conversation.Code) connect.Code {
	switch c {
	case conversation.NotFound:
		return connect.CodeNotFound
	case conversation.Ambiguous, conversation.Invalid:
		return connect.CodeInvalidArgument
	case conversation.NoModel, conversation.Archived, conversation.Late:
		return connect.CodeFailedPrecondition
	case conversation.Unavailable:
		return connect.CodeUnavailable
	case conversation.Slow, conversation.Busy, conversation.Exhausted:
		return connect.CodeResourceExhausted
	default:
		return connect.CodeInternal
	}
}

// coded gives an error that a caller may see its code. Any other error goes on as it is, to be logged by the
// interceptors and sent without its text.
func coded(err error) error {
	var known *conversation.Error
	if errors.As(err, &known) {
		return connect.NewError(code(known.Code), known.Message).WithCause(err)
	}
	return err
}
