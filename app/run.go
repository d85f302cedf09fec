package app

import (
	"context"
	"io"

	"throwbar.dev/throwbar/clients/cli"
)

// Run runs the program with the given arguments, without its own name, and returns its exit code.
func Run(ctx context.Context, args []string, env func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(ctx, args, env, stdin, stdout, stderr, serveCommand(env, stdout, stderr), doctorCommand(stdout))
}
