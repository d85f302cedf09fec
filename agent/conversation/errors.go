package conversation

import (
	"errors"
	"fmt"

	"throwbar.dev/throwbar/agent/turn"
)

// ErrNoRow is what a Store answers for a conversation that is not there.
var ErrNoRow = errors.New("no such conversation")

// What a Store answers to a change that it does not store.
var (
	// ErrExhausted: the chain that has to pay has nothing left.
	ErrExhausted = errors.New("the chain has no wakes left")
	// ErrKnown: there is a message of this id already.
	ErrKnown = errors.New("the message is known")
)

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
	Archived         // nothing can be said in it
	NoModel          // no model is set
	Unavailable      // the server stops
	Invalid          // a value that the caller gave is wrong
	Slow             // the caller does not read
	Busy             // too much waits there already
	Late             // it was read, or taken back, before
	Exhausted        // a bound of what agents may set to work is reached
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
