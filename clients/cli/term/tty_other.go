//go:build !unix

package term

import (
	"errors"
	"os"
)

// canEdit says that a terminal is left as it is here: its own line editing has to do.
const canEdit = false

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

func control(*os.File, func(int) error) error { return errors.ErrUnsupported }

func unblock(*os.File) error { return errors.ErrUnsupported }

func (e *Editor) heed() {}

func (e *Editor) suspend() {}
