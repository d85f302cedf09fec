package app

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli"
)

// Run runs the program with the given arguments, without its own name, and returns its exit code.
func Run(ctx context.Context, args []string, env func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Config{
		Args: args, Env: env, Stdin: stdin, Stdout: stdout, Stderr: stderr, Version: Version(),
		Extra: []*cobra.Command{
			serveCommand(env, stdout, stderr), doctorCommand(env, stdout), backupCommand(env, stdout), exportCommand(env, stdout),
			importCommand(env, stdout),
		},
	}.Run(ctx)
}
