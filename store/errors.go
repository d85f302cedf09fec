package store

import (
	"errors"
	"fmt"

	"github.com/mattn/go-sqlite3"
)

// What errors.Is finds in the errors of this package. The cause stays in the chain.
var (
	// ErrLocked: another server uses the folder.
	ErrLocked = errors.New("store is locked")
	// ErrNewer: a newer throwbar has migrated the database.
	ErrNewer = errors.New("database is newer than this throwbar")
	// ErrClosed: the writer has stopped; nothing was written.
	ErrClosed = errors.New("store is closed")
	// ErrOverloaded: too many writes wait; nothing was written.
	ErrOverloaded = errors.New("too many writes wait")
	// ErrNested: Write was called by an op, which would wait for itself.
	ErrNested = errors.New("write inside a write")
	// ErrConflict: a row with this key is there already.
	ErrConflict = errors.New("row exists")
	// ErrRefused: a constraint forbids the row.
	ErrRefused = errors.New("row refused")
	// ErrDiskFull: there is no space.
	ErrDiskFull = errors.New("disk is full")
	// ErrReadOnly: the file or the file system cannot be written.
	ErrReadOnly = errors.New("database is read-only")
	// ErrDamaged: the file is no sound database, or the disk does not read or write it.
	ErrDamaged = errors.New("database is damaged")
)

// LockedError is ErrLocked with who holds the lock.
type LockedError struct {
	// Dir is the folder.
	Dir string
	// PID is the process that uses it; 0 if it does not say.
	PID int
}

// Error is one line for the person who started the second server.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return "another throwbar server uses " + e.Dir
	}
	return fmt.Sprintf("another throwbar server (pid %d) uses %s", e.PID, e.Dir)
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// Error is an error of the database with its kind, one of the errors above.
type Error struct {
	// Kind is what errors.Is compares with.
	Kind error
	// Cause is what the database said.
	Cause error
}

// Error is the kind and the cause.
func (e *Error) Error() string { return e.Kind.Error() + ": " + e.Cause.Error() }

// Unwrap gives both.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Cause} }

// typed gives an error of the database its kind. Others, an op's own above all, stay as they are.
func typed(err error) error {
	if cause, ok := errors.AsType[sqlite3.Error](err); ok {
		if kind := kindOf(cause); kind != nil {
			return &Error{Kind: kind, Cause: err}
		}
	}
	return err
}

func kindOf(err sqlite3.Error) error {
	switch err.Code {
	case sqlite3.ErrConstraint:
		switch err.ExtendedCode {
		case sqlite3.ErrConstraintUnique, sqlite3.ErrConstraintPrimaryKey, sqlite3.ErrConstraintRowID:
			return ErrConflict
		default:
			return ErrRefused
		}
	case sqlite3.ErrFull:
		return ErrDiskFull
	case sqlite3.ErrReadonly, sqlite3.ErrPerm:
		return ErrReadOnly
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB, sqlite3.ErrIoErr:
		return ErrDamaged
	default:
		return nil
	}
}
