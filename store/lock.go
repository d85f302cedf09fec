package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const lockName = "throwbar.lock"

// errHeld is what tryLock says if another open file holds the lock.
var errHeld = errors.New("lock is held")

// lockDir takes the folder for this process. The lock goes with the process, however that ends; the file stays.
func lockDir(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := tryLock(file); err != nil {
		defer file.Close()
		if errors.Is(err, errHeld) {
			return nil, &LockedError{Name: dir, PID: holder(file)}
		}
		return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	if err := writePID(file); err != nil {
		return nil, errors.Join(fmt.Errorf("write lock file: %w", err), unlockDir(file))
	}
	return file, nil
}

func unlockDir(file *os.File) error {
	return errors.Join(file.Truncate(0), unlock(file), file.Close())
}

func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// holder reads the pid; 0 if there is none, as in the moment between the lock and the writing.
func holder(file *os.File) int {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
