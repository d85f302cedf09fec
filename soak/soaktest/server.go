package soaktest

import (
	"context"
	"fmt"
	"os"
	"strings"

	"throwbar.dev/throwbar/app"
)

// RoleServer is the whole program: the arguments are those of a command line.
const RoleServer = "server"

// DatabaseFlag is the one by which serve is told of a database that is not in its folder.
const DatabaseFlag = "--database"

// serve is the program's own main but for its standard input, which says here that the test is over.
func serve(ctx context.Context, s *Stage) error {
	ctx = s.Listen(ctx, func(string) any { return nil })
	if code := app.Run(ctx, s.Args, os.Getenv, strings.NewReader(""), readyAfter{s}, os.Stderr); code != 0 {
		return fmt.Errorf("exit code %d", code)
	}
	return nil
}

// readyAfter says that the server is ready when it prints where it listens.
type readyAfter struct{ s *Stage }

func (r readyAfter) Write(raw []byte) (int, error) {
	n, err := r.s.Write(raw)
	if strings.Contains(string(raw), "listens on") {
		r.s.Ready()
	}
	return n, err
}
