package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"throwbar.dev/throwbar/clients/cli/talk"
)

// line is one line of input, or why there is none.
type line struct {
	text string
	err  error
}

// readLines reads lines until the end of the input. A read cannot be called back: where the run ends before the input,
// the goroutine ends with the next line or with the process.
func readLines(ctx context.Context, in io.Reader) <-chan line {
	lines := make(chan line)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, maxMessage)
		for scanner.Scan() {
			select {
			case lines <- line{text: scanner.Text()}:
			case <-ctx.Done():
				return
			}
		}
		err := scanner.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = Errorf(Invalid, "each line of the input is a message, and one is longer than %s", talk.Size(maxMessage))
		} else if err != nil {
			err = fmt.Errorf("read a message: %w", err)
		}
		if err != nil {
			select {
			case lines <- line{err: err}:
			case <-ctx.Done():
			}
		}
	}()
	return lines
}
