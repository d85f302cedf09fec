//go:build unix

package storetest

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// prefix is that of the folders of servers.
const prefix = "throwbar-pg-"

// unprivileged says as whom to run: PostgreSQL refuses root. The folder is given to that user. A group of its own keeps
// an interrupt at the terminal from the server, so that it ends in order.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() != 0 {
		return attributes, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(account.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(err1, err2, os.Chown(dir, int(uid), int(gid))); err != nil {
			return nil, err
		}
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return attributes, nil
	}
	return nil, errors.New("these tests run as root, and there is no user postgres or nobody to run the server as")
}

// lockFolder marks the folder as one whose test binary lives.
func lockFolder(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "owner"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// removeStale ends what is left of test binaries that were killed together with their wardens.
func removeStale() {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Stat(filepath.Join(dir, "owner"))
		if err != nil || time.Since(info.ModTime()) < time.Minute { // being made, or being removed by its warden
			continue
		}
		lock, err := lockFolder(dir)
		if err != nil {
			continue
		}
		endIn(filepath.Join(dir, "data"))
		_ = os.RemoveAll(dir)
		_ = lock.Close()
	}
}

// endIn ends a server by the number in its folder, if that is still a process which works there.
func endIn(data string) {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil || pid <= 1 {
		return
	}
	if at, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && at == data {
		_ = syscall.Kill(pid, syscall.SIGQUIT)
	}
}
