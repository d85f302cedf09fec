//go:build unix

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// IsTerminal says whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && columns(f) >= 0
}

// columns is the width of a terminal, zero if it does not tell, and -1 for what is no terminal.
func columns(f *os.File) int {
	conn, err := f.SyscallConn()
	if err != nil {
		return -1
	}
	n := -1
	if err := conn.Control(func(fd uintptr) {
		if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
			n = int(size.Col)
		}
	}); err != nil {
		return -1
	}
	return n
}
