package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
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
	// ErrUnavailable: the database does not answer; nothing was written.
	ErrUnavailable = errors.New("database does not answer")
	// ErrUnknown: the connection was lost during the commit and did not come back; it is not known whether this was
	// written. Only PostgreSQL can have it so. Do not write it again under another id.
	ErrUnknown = errors.New("whether it was written is not known")
	// ErrDamaged: the file is no sound database, or the disk does not read or write it.
	ErrDamaged = errors.New("database is damaged")
)

// LockedError is ErrLocked with who holds the lock.
type LockedError struct {
	// Name is the folder of SQLite's database, or where PostgreSQL's is.
	Name string
	// PID is the process that uses it; 0 if it does not say.
	PID int
	// Host is the machine of that process; empty if it is this one.
	Host string
}

// Error is one line for the person who started the second server.
func (e *LockedError) Error() string {
	switch {
	case e.PID == 0:
		return "another throwbar server uses " + e.Name
	case e.Host == "":
		return fmt.Sprintf("another throwbar server (pid %d) uses %s", e.PID, e.Name)
	default:
		return fmt.Sprintf("another throwbar server (pid %d on %s) uses %s", e.PID, e.Host, e.Name)
	}
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
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if cause, ok := errors.AsType[*pgconn.PgError](err); ok {
		if kind := kindOfState(cause.Code); kind != nil {
			return &Error{Kind: kind, Cause: err}
		}
	}
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
	case sqlite3.ErrMismatch, sqlite3.ErrTooBig:
		return ErrRefused
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

// kindOfState is by the SQLSTATE that PostgreSQL gives.
func kindOfState(state string) error {
	switch state {
	case "23505":
		return ErrConflict
	case "53100":
		return ErrDiskFull
	case "25006", "42501": // a replica, or rights that do not suffice
		return ErrReadOnly
	case "58030", "XX001", "XX002":
		return ErrDamaged
	}
	switch {
	case strings.HasPrefix(state, "23"), strings.HasPrefix(state, "22"): // constraints; values that it does not hold
		return ErrRefused
	default:
		return nil
	}
}
