package conversation

import (
	"errors"
	"fmt"

	"throwbar.dev/throwbar/agent/turn"
)

// ErrNoRow is what a Store answers for a conversation that is not there.
var ErrNoRow = errors.New("no such conversation")

// Why a turn was stopped.
var (
	ErrStopped  = errors.New("stopped by the user")
	ErrGone     = errors.New("stopped because the caller went away")
	ErrShutdown = turn.ErrShutdown
)

// Code says what kind of error it is.
type Code int

// The codes.
const (
	NotFound    Code = iota + 1
	Ambiguous        // a handle fits several
	Busy             // a turn runs already
	NoModel          // no model is set
	Unavailable      // the server stops
	Invalid          // a value that the caller gave is wrong
	Slow             // the caller does not read
)

// Error is an error that a caller may see.
type Error struct {
	Code    Code
	Message string // what happened and what to do
}

func (e *Error) Error() string { return e.Message }

func errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
