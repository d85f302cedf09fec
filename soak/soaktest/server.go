package soaktest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/server/rpc"
	"throwbar.dev/throwbar/store"
)

// RoleServer is the whole program: the arguments are those of a command line.
const RoleServer = "server"

// DatabaseFlag is the one by which serve is told of a database that is not in its folder.
const DatabaseFlag = "--database"

// serve is the program's own main but for its standard input, which says here that the test is over.
func serve(ctx context.Context, s *Stage) error {
	ctx = s.Listen(ctx, func(string) any { return nil })
	if strings.Contains(strings.Join(s.Args, " "), DatabaseFlag+" ") && !takesDatabase(ctx) {
		return serveOn(ctx, s)
	}
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

// takesDatabase says whether the program's verb knows the flag yet.
func takesDatabase(ctx context.Context) bool {
	var help bytes.Buffer
	app.Run(ctx, []string{"serve", "--help"}, os.Getenv, strings.NewReader(""), &help, &help)
	return strings.Contains(help.String(), DatabaseFlag)
}

// serveOn stands in for the verb as long as it does not know the flag: the same server, put together here.
func serveOn(ctx context.Context, s *Stage) error {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	listen := flags.String("listen", "", "")
	dir := flags.String("data-dir", "", "")
	database := flags.String(strings.TrimPrefix(DatabaseFlag, "--"), "", "")
	flags.String("log-level", "", "")
	if err := flags.Parse(s.Args[1:]); err != nil {
		return fmt.Errorf("read flags: %w", err)
	}
	if err := os.MkdirAll(*dir, 0o700); err != nil {
		return fmt.Errorf("make the server's folder: %w", err)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server, err := app.NewServer(ctx, app.Config{
		DataDir: *dir, Store: store.Config{URL: *database}, Listener: rpc.Listener{Hosts: rpc.LoopbackHosts(*listen)},
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return fmt.Errorf("make server: %w", err)
	}
	return server.Serve(ctx, listener, s.Ready)
}
