package throwbar

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/anypb"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// Code says what kind of error it is. The codes of commands are those of the contract; the last few belong to calls.
type Code string

// The codes.
const (
	CodeOffline          Code = "OFFLINE"            // the device is not connected
	CodeExpired          Code = "EXPIRED"            // the time to live ran out
	CodeCancelled        Code = "CANCELLED"          // the caller went away or asked to cancel
	CodeNotFound         Code = "NOT_FOUND"          // no such device, target or command
	CodeUnsupported      Code = "UNSUPPORTED"        // the receiver does not know the action or method
	CodeInvalid          Code = "INVALID"            // the arguments break a rule
	CodeRefused          Code = "REFUSED"            // a rule of the device or about addresses forbids it
	CodeDenied           Code = "DENIED"             // policy, a person, or the token's scope forbids it
	CodeApprovalTimedOut Code = "APPROVAL_TIMED_OUT" // nobody decided in time
	CodeInterrupted      Code = "INTERRUPTED"        // started, and nobody knows how it ended
	CodeFailed           Code = "FAILED"             // the device tried and could not
	CodeBusy             Code = "BUSY"               // too much is under way

	CodeUnauthenticated Code = "UNAUTHENTICATED" // the token is missing, wrong or revoked
	CodeConflict        Code = "CONFLICT"        // somebody else was first
	CodeUnavailable     Code = "UNAVAILABLE"     // the server cannot be reached, or stops
	CodeInternal        Code = "INTERNAL"        // the server could not, and its log says why
)

// Errors with which Run of a device ends for good.
var (
	// ErrReplaced means that a newer link of the same device has taken over: this one stays away.
	ErrReplaced = errors.New("a newer link of this device has taken over")
	// ErrRevoked means that the device was revoked: it has to be paired again.
	ErrRevoked = errors.New("the device was revoked: pair it again")
)

// Error is what a call or a command ends with when it has no result. A handler of a device returns one to choose the
// code of the command's error; any other error counts as FAILED.
type Error struct {
	Code      Code
	Message   string       // what happened and what to do, for a person
	Retryable bool         // whether the same may work if it is tried again
	Details   []*anypb.Any // typed details, where there are any

	cause  error
	remote bool // the server said so, rather than the way there
}

// Errorf makes an error. A cause may be given with %w.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Retry marks the error as one that may pass.
func (e *Error) Retry() *Error {
	e.Retryable = true
	return e
}

// Error is the code and the message.
func (e *Error) Error() string {
	if e.Message == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Message
}

// Unwrap is the cause, where there is one.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf is the code of an error, CodeInternal if it is no *Error, and empty for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// FromCommand is the error of a command as a Go error; nil for nil.
func FromCommand(ce *commandv1.CommandError) error {
	if ce == nil {
		return nil
	}
	return fromCommand(ce)
}

func fromCommand(ce *commandv1.CommandError) *Error {
	code := CodeInternal
	if ce.GetCode() != commandv1.ErrorCode_ERROR_CODE_UNSPECIFIED {
		code = Code(strings.TrimPrefix(ce.GetCode().String(), codePrefix))
	}
	return &Error{
		Code: code, Message: ce.GetMessage(), Retryable: ce.GetRetryable(), Details: ce.GetDetails(), remote: true,
	}
}

const codePrefix = "ERROR_CODE_"

// command is the error as a command's outcome. A code that is no outcome of a command counts as FAILED.
func (e *Error) command() *commandv1.CommandError {
	code, ok := commandv1.ErrorCode_value[codePrefix+string(e.Code)]
	if !ok || code == 0 {
		code = int32(commandv1.ErrorCode_ERROR_CODE_FAILED)
	}
	return &commandv1.CommandError{
		Code: commandv1.ErrorCode(code), Message: clip(e.Message, maxMessage), Retryable: e.Retryable, Details: e.Details,
	}
}

// maxMessage is the most bytes of an error's text that go to the server.
const maxMessage = 2000

// clip makes a text valid UTF-8 of at most n bytes.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}
