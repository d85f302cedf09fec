package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/store"
)

const (
	defaultListen = "127.0.0.1:3913"
	drainSpread   = 5 * time.Second
	shutdownIn    = 10 * time.Second
	maxStreams    = 1000
)

// serveFlags are the flags of the verb serve.
type serveFlags struct {
	logLevel  string
	listen    listenFlags
	database  databaseFlags
	auditSync string
	config    string
}

// serveCommand is the verb serve.
func serveCommand(env func(string) string, stdout, stderr io.Writer) *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server until it is interrupted",
		Long: "Runs the server until it is interrupted: one port for Connect, gRPC and gRPC-Web, one folder for all data. " +
			"On its first start it makes a token for its owner, which the other verbs read.\n\n" +
			"The models come from --config. Without it THROWBAR_MODEL names one, with its address in THROWBAR_MODEL_BASE_URL and the " +
			"file of its key in THROWBAR_MODEL_KEY_FILE, or with OPENAI_API_KEY for OpenAI's own address.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), flags, env, stdout, stderr)
		},
	}
	flags.listen.bind(cmd)
	flags.database.bind(cmd, env)
	cmd.Flags().StringVar(&flags.config, "config", env("THROWBAR_CONFIG"), configHelp)
	cmd.Flags().StringVar(&flags.logLevel, "log-level", "info", "least `level` that is logged: debug, info, warn or error")
	cmd.Flags().StringVar(&flags.auditSync, "audit-sync", "effects", "which `commands` are on disk before they are acknowledged: effects (those "+
		"that can destroy something) or all")
	return cmd
}

func serve(ctx context.Context, flags serveFlags, env func(string) string, stdout, stderr io.Writer) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(flags.logLevel)); err != nil {
		return cli.Errorf(cli.Invalid, "--log-level %q: use debug, info, warn or error", flags.logLevel)
	}
	if flags.auditSync != "effects" && flags.auditSync != "all" {
		return cli.Errorf(cli.Invalid, "--audit-sync %q: use effects or all", flags.auditSync)
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	database, err := flags.database.config(env)
	if err != nil {
		return err
	}
	models, err := setModels(flags.config, env, log)
	if err != nil {
		return err
	}
	plan, err := flags.listen.plan(database.Dir, time.Now, log)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", flags.listen.address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return cli.Errorf(cli.Failed, "%s is in use, perhaps by another throwbar server: stop it or use --listen", flags.listen.address)
	}
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer func() { _ = listener.Close() }() // the HTTP server has closed it, unless it never came to that
	server, err := NewServer(ctx, models.into(Config{
		DataDir: database.Dir, Store: database, Log: log, AuditSyncAll: flags.auditSync == "all",
		Listener: plan.rules(listener.Addr()), TLS: plan.config(),
	}))
	if errors.Is(err, store.ErrLocked) {
		return cli.Errorf(cli.Failed, "%v", err)
	}
	if err != nil {
		return err
	}
	return server.Serve(ctx, listener, func() {
		told := fmt.Sprintf("throwbar %s listens on %s\n  data   %s\n  token  %s/%s\n",
			Version(), plan.url(listener.Addr()), place(database), database.Dir, ownerFile)
		if plan.id != nil {
			told += fmt.Sprintf("  key    %s\n", plan.id.fingerprint())
		}
		if models.hint() != "" {
			told += fmt.Sprintf("  model  none: %s\n", models.hint())
		}
		_, _ = io.WriteString(stdout, told) // at once: who waits for the first line has all of it
	})
}

// Serve runs the server on a listener until the context ends. It tells connected devices that it goes before it does.
func (s *Server) Serve(ctx context.Context, listener net.Listener, ready func()) error {
	if err := s.private(listener.Addr()); err != nil {
		return err
	}
	streams, endStreams := context.WithCancelCause(context.WithoutCancel(ctx))
	defer endStreams(nil)
	web := httpServer(s.Handler(), streams, s.cfg.Log)
	web.HTTP2.SendPingTimeout, web.HTTP2.PingTimeout = s.cfg.PingAfter, s.cfg.PingTimeout
	web.ConnState = s.countConnections
	served := make(chan error, 1)
	runCtx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	ended := make(chan error, 1)
	go func() {
		ended <- s.Run(runCtx, func() error {
			go func() { served <- s.accept(web, listener) }()
			ready()
			return nil
		})
	}()
	var err error
	select {
	case <-ctx.Done():
	case err = <-served:
		err = fmt.Errorf("serve: %w", err)
	case err = <-ended: // a part failed
		return errors.Join(err, web.Close())
	}
	s.hub.Drain(drainSpread)
	endStreams(fault.New(fault.Unavailable, "the server stops"))
	shutCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownIn)
	defer cancel()
	err = errors.Join(err, ignoreTimeout(web.Shutdown(shutCtx)), web.Close())
	stop(errStopped)
	return errors.Join(err, <-ended)
}

// private refuses an address that other machines can reach where there is no TLS, whatever the flags said: a name may
// stand for another address than it seems to.
func (s *Server) private(address net.Addr) error {
	tcp, ok := address.(*net.TCPAddr)
	if !ok || s.cfg.TLS != nil || tcp.IP.IsLoopback() {
		return nil
	}
	return cli.Errorf(cli.Invalid, "%s can be reached from other machines, which needs TLS", address)
}

// accept serves connections, with TLS if there is any.
func (s *Server) accept(web *http.Server, listener net.Listener) error {
	if s.cfg.TLS == nil {
		return web.Serve(listener)
	}
	web.TLSConfig = s.cfg.TLS.Clone()
	return web.ServeTLS(listener, "", "")
}

func (s *Server) countConnections(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.metrics.Connection(true)
	case http.StateClosed, http.StateHijacked:
		s.metrics.Connection(false)
	default:
	}
}

// ignoreTimeout is for callers that hold on longer than the server waits: they are cut off, which is no fault.
func ignoreTimeout(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// httpServer has the settings that held streams need: pings, which Serve adds, find a peer that is gone, windows keep one stream that is
// not read from holding up the others, and no timeout ends a stream that is alive.
func httpServer(handler http.Handler, streams context.Context, log *slog.Logger) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true) // where there is TLS
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           handler,
		Protocols:         &protocols,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		BaseContext:       func(net.Listener) context.Context { return streams },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			WriteByteTimeout:              30 * time.Second,
			MaxReceiveBufferPerStream:     256 << 10,
			MaxReceiveBufferPerConnection: 4<<20 - 1,
		},
	}
}

// Version is the program's version.
func Version() string { return "0.1.0-dev" }
