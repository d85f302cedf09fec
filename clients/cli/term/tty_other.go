//go:build !unix

package term

import "os"

// IsTerminal says whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// columns is unknown here; COLUMNS says it.
func columns(*os.File) int { return 0 }
