package store

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// giveUpUnanswered bounds how long what was sent may stay unanswered by the other machine: 20 s instead of a quarter of
// an hour.
func giveUpUnanswered(network, _ string, conn syscall.RawConn) error {
	if network == "unix" {
		return nil
	}
	var set error
	err := conn.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int((20 * time.Second).Milliseconds()))
	})
	if err != nil {
		return err
	}
	return set
}
