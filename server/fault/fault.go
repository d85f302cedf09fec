// Package fault has the one error type of the server: a code, a text that is safe to show, and a cause that is not.
//
// Whatever is no *Error counts as internal: its text goes to the log and never to a caller.
package fault

import (
	"errors"
	"fmt"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// Code says what kind of fault it is. The codes of commands are those of the contract; the others belong to calls.
type Code int

// The codes.
const (
	Internal Code = iota
	Offline
	Expired
	Cancelled
	NotFound
	Unsupported
	Invalid
	Refused
	Denied
	ApprovalTimedOut
	Interrupted
	Failed
	Busy
	Unauthenticated
	Forbidden
	Conflict
	Unavailable
)

// Error is a fault that a caller may see.
type Error struct {
	Code      Code
	Message   string // what happened and what to do
	Retryable bool
	cause     error
}

// New makes a fault.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes a fault with a cause for the log.
func Wrap(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), cause: cause}
}

// Retry marks the fault as one that may pass.
func (e *Error) Retry() *Error {
	e.Retryable = true
	return e
}

// Error is the text and, for logs, the cause.
func (e *Error) Error() string {
	if e.cause != nil {
		return e.Message + ": " + e.cause.Error()
	}
	return e.Message
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf is the code of an error; Internal if it is no fault.
func CodeOf(err error) Code {
	var f *Error
	if errors.As(err, &f) {
		return f.Code
	}
	return Internal
}

// codes pairs the faults that can be a command's outcome with the contract's codes.
func codes() map[Code]commandv1.ErrorCode {
	return map[Code]commandv1.ErrorCode{
		Offline:          commandv1.ErrorCode_ERROR_CODE_OFFLINE,
		Expired:          commandv1.ErrorCode_ERROR_CODE_EXPIRED,
		Cancelled:        commandv1.ErrorCode_ERROR_CODE_CANCELLED,
		NotFound:         commandv1.ErrorCode_ERROR_CODE_NOT_FOUND,
		Unsupported:      commandv1.ErrorCode_ERROR_CODE_UNSUPPORTED,
		Invalid:          commandv1.ErrorCode_ERROR_CODE_INVALID,
		Refused:          commandv1.ErrorCode_ERROR_CODE_REFUSED,
		Denied:           commandv1.ErrorCode_ERROR_CODE_DENIED,
		ApprovalTimedOut: commandv1.ErrorCode_ERROR_CODE_APPROVAL_TIMED_OUT,
		Interrupted:      commandv1.ErrorCode_ERROR_CODE_INTERRUPTED,
		Failed:           commandv1.ErrorCode_ERROR_CODE_FAILED,
		Busy:             commandv1.ErrorCode_ERROR_CODE_BUSY,
	}
}

// OfCommand says whether a code can be the outcome of a command.
func (c Code) OfCommand() bool {
	_, ok := codes()[c]
	return ok
}

// Command is the fault as a command's outcome. What is no outcome of a command is FAILED with a text that is safe.
func Command(err error) *commandv1.CommandError {
	var f *Error
	if errors.As(err, &f) {
		if code, ok := codes()[f.Code]; ok {
			return &commandv1.CommandError{Code: code, Message: f.Message, Retryable: f.Retryable}
		}
	}
	return &commandv1.CommandError{
		Code:    commandv1.ErrorCode_ERROR_CODE_FAILED,
		Message: "the server could not do this: its log says why",
	}
}
