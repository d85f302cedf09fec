package rpc

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/server/fault"
)

// code is the one place where the server's faults become Connect codes.
func code(c fault.Code) connect.Code {
	switch c {
	case fault.Offline, fault.Unavailable:
		return connect.CodeUnavailable
	case fault.Expired, fault.ApprovalTimedOut:
		return connect.CodeDeadlineExceeded
	case fault.Cancelled:
		return connect.CodeCanceled
	case fault.NotFound:
		return connect.CodeNotFound
	case fault.Unsupported:
		return connect.CodeUnimplemented
	case fault.Invalid:
		return connect.CodeInvalidArgument
	case fault.Refused:
		return connect.CodeFailedPrecondition
	case fault.Denied, fault.Forbidden:
		return connect.CodePermissionDenied
	case fault.Interrupted:
		return connect.CodeUnknown
	case fault.Failed, fault.Conflict:
		return connect.CodeAborted
	case fault.Busy:
		return connect.CodeResourceExhausted
	case fault.Unauthenticated:
		return connect.CodeUnauthenticated
	case fault.Internal:
		return connect.CodeInternal
	default:
		return connect.CodeInternal
	}
}

// toConnect makes an error that goes over the wire. A fault's text goes out with its typed form; anything else is
// logged here, once, and goes out without its text.
func toConnect(ctx context.Context, log *slog.Logger, procedure string, err error) error {
	var authored *connect.Error
	var known *fault.Error
	if errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &known) {
		err = known // the server ended the call, and says why; its caller did not
	}
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return err
	case errors.As(err, &known):
		out := connect.NewError(code(known.Code), known.Message).WithCause(err)
		if !known.Code.OfCommand() {
			return out
		}
		if detail, derr := connectproto.NewErrorDetail(fault.Command(known)); derr == nil {
			out = out.WithDetail(detail)
		}
		return out
	case errors.As(err, &authored):
		return err
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, "the call was cancelled").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, "the call's deadline passed").WithCause(err)
	default:
		log.ErrorContext(ctx, "call failed", slog.String("procedure", procedure), slog.Any("error", err))
		return connect.NewError(connect.CodeInternal, "the server failed: its log says why").WithCause(err)
	}
}

// invalid is the error of a message that breaks a rule. It has no value of the message.
func invalid(err error) error { return fault.New(fault.Invalid, "%s", catalog.Problem(err)) }
