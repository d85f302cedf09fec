package store

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockAt is beyond the pid, because a lock forbids others to read what it covers.
func lockAt() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1} }

func tryLock(file *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(file.Fd()), flags, 0, 1, 0, lockAt())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errHeld
	}
	return err
}

func unlock(file *os.File) error {
	return windows.UnlockFileEx(windows.Handle(file.Fd()), 0, 1, 0, lockAt())
}

// syncDir does nothing: a folder cannot be opened to be synced here.
func syncDir(string) error { return nil }
