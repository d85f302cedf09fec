// Package app puts the program together: it is the only package that knows the server, the agent and the clients. It
// has the verbs serve and doctor and the adapters between what the agent asks for and what the server offers.
package app

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"throwbar.dev/throwbar/agent"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/browser"
	"throwbar.dev/throwbar/server/device"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/event"
	"throwbar.dev/throwbar/server/link"
	"throwbar.dev/throwbar/server/metrics"
	"throwbar.dev/throwbar/server/policy"
	"throwbar.dev/throwbar/server/rpc"
	"throwbar.dev/throwbar/server/storage"
	"throwbar.dev/throwbar/store"
)

const ownerFile = "owner.token"

// Config is what a server is made of. Only DataDir has to be set.
type Config struct {
	DataDir string
	Store   store.Config // which engine, and how it works; Dir is DataDir's
	Image   []byte       // descriptor image; the program's own if nil
	// Catalogue is that of the image; made of it if nil. Tests share one between many servers: the validator keeps what it
	// has made of each catalogue's descriptors as long as the process lives.
	Catalogue *catalog.Catalogue
	Listener  rpc.Listener  // rules of the address it listens on
	Limits    rpc.Limits    // of callers; the edge's own where zero
	TLS       *tls.Config   // none if nil, and then the address has to be a loopback one
	Model     ModelConfig   // where Models names none
	Models    []ModelConfig // the default first
	// Definitions are the agents that can be started by name, and AgentLimits bound all agents; the defaults if nil.
	Definitions []*configv1.AgentDefinition
	AgentLimits *configv1.AgentLimits
	Heartbeat   time.Duration // of links; the package's own if zero
	Lease       time.Duration
	Admit       int // links that may be opened a second; the package's own if zero
	// SendWithin is how long a peer may go without reading what it is sent; the edge's own if zero.
	SendWithin time.Duration
	// PingAfter is how long a connection is silent before it is asked for a sign of life, and PingTimeout how long the
	// answer may take; 15 and 10 seconds if zero.
	PingAfter, PingTimeout time.Duration
	Random                 io.Reader        // randomness; the system's if nil
	Now                    func() time.Time // wall clock; the system's if nil
	// Log is told what happens, without secrets: what looks like one is taken out of it. It discards if nil.
	Log *slog.Logger
	// AuditSyncAll puts every command on disk before it is acknowledged, and not only those that can destroy something.
	AuditSyncAll bool
	Parts        Parts // for tests
}

// Parts puts something between the parts that a server is composed of, for tests that watch them or break one: each
// function gets a part and returns what takes its place. Those that are nil change nothing.
type Parts struct {
	Ledger    func(dispatch.Ledger) dispatch.Ledger
	Links     func(dispatch.Links) dispatch.Links
	Directory func(link.Directory) link.Directory
	Events    func(event.Journal) event.Journal
	Approvals func(dispatch.Approvals) dispatch.Approvals
	// Unaudited leaves the audit record out, to measure what it costs.
	Unaudited bool
}

// between is the part that takes another's place.
func between[P any](part P, put func(P) P) P {
	if put == nil {
		return part
	}
	return put(part)
}

func (c Config) withDefaults() Config {
	if c.Image == nil {
		c.Image = gen.Descriptors
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.PingAfter == 0 {
		c.PingAfter = 15 * time.Second
	}
	if c.PingTimeout == 0 {
		c.PingTimeout = 10 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = slog.New(discreet{c.Log.Handler()})
	return c
}

// Server is a whole control plane without its listener.
type Server struct {
	cfg        Config
	store      *store.Store
	storage    *storage.Storage
	catalogue  *catalog.Catalogue
	directory  *device.Directory
	tokens     *auth.Tokens
	state      *browser.State
	hub        *link.Hub
	book       *policy.Book
	dispatcher *dispatch.Dispatcher
	approvals  *approval.Desk
	edge       *rpc.Server
	agent      *agent.Agent
	metrics    *metrics.Metrics
}

// NewServer opens the store and puts the server together. Nothing runs until Run.
func NewServer(ctx context.Context, cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	s := &Server{cfg: cfg}
	var err error
	if s.catalogue = cfg.Catalogue; s.catalogue == nil {
		if s.catalogue, err = catalog.New(cfg.Image); err != nil {
			return nil, err
		}
	}
	cfg.Store.Dir = cfg.DataDir
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil { // for the owner's token, wherever the database is
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	if s.store, err = store.Open(ctx, cfg.Store); err != nil {
		return nil, err
	}
	if err := s.compose(ctx); err != nil {
		return nil, errors.Join(err, s.store.Close())
	}
	return s, nil
}

func (s *Server) newID() string { return uuid.Must(uuid.NewRandomFromReader(s.cfg.Random)).String() }

func (s *Server) compose(ctx context.Context) error {
	var err error
	s.metrics = metrics.New()
	s.storage = storage.New(s.store, s.cfg.Log)
	s.storage.Measure(s.metrics)
	s.storage.Audit(storage.Auditing{Catalogue: s.catalogue, SyncAll: s.cfg.AuditSyncAll, Off: s.cfg.Parts.Unaudited})
	if s.cfg.Parts.Events != nil {
		s.storage.Between(s.cfg.Parts.Events)
	}
	s.storage.Feed().Measure(s.metrics)
	if s.directory, err = device.NewDirectory(ctx, s.storage, s.cfg.Now, s.cfg.Log); err != nil {
		return err
	}
	if s.tokens, err = auth.New(ctx, s.storage, s.cfg.Random, s.cfg.Now, s.newID); err != nil {
		return err
	}
	if s.state, err = browser.New(ctx, s.storage, s.cfg.Now, s.cfg.Log); err != nil {
		return err
	}
	if s.book, err = s.newBook(ctx); err != nil {
		return err
	}
	s.hub = link.New(link.Config{
		State: s.state, Directory: between[link.Directory](s.directory, s.cfg.Parts.Directory), NewID: s.newID, Log: s.cfg.Log, Meter: s.metrics,
		Heartbeat: s.cfg.Heartbeat, Lease: s.cfg.Lease, AdmitPerSecond: s.cfg.Admit,
	})
	s.dispatcher = dispatch.New(dispatch.Config{
		Catalogue: s.catalogue, Ledger: between[dispatch.Ledger](s.storage, s.cfg.Parts.Ledger), Reader: s.storage, Acts: s.storage,
		Devices: s.directory, Links: between[dispatch.Links](s.hub, s.cfg.Parts.Links), Browser: s.state,
		NewID: s.newID, Now: s.cfg.Now, Log: s.cfg.Log, Meter: s.metrics,
		Approvals: between[dispatch.Approvals](s.storage, s.cfg.Parts.Approvals), Policy: s.book, Reachable: s.reachable,
	})
	s.composeApprovals()
	s.metrics.Watch(s.hub.Load, s.store.Waiting)
	s.hub.Bind(s.dispatcher)
	pairing := device.NewPairing(s.cfg.Random, s.cfg.Now)
	s.edge = rpc.New(rpc.Config{
		Catalogue: s.catalogue, Dispatcher: s.dispatcher, Approvals: s.approvals, Hub: s.hub, Directory: s.directory,
		Enroller: &device.Enroller{
			Pairing: pairing, Directory: s.directory, Tokens: s.tokens, Store: s.storage, NewID: s.newID,
			Random: s.cfg.Random, Now: s.cfg.Now, Meter: s.metrics, Log: s.cfg.Log,
		},
		Tokens: s.tokens, Workspaces: s.workspaces(), Browser: s.state, Saved: s.storage, Events: s.storage.Feed(), Audit: s.storage,
		Policy: s.book, Version: Version(),
		Listener: s.cfg.Listener, Log: s.cfg.Log, Metrics: s.metrics, Meter: s.metrics, SendWithin: s.cfg.SendWithin,
		Limits: s.cfg.Limits, Now: s.cfg.Now,
	})
	return s.composeAgent()
}

// newBook makes the policy of all workspaces.
func (s *Server) newBook(ctx context.Context) (*policy.Book, error) {
	return policy.New(ctx, policy.Config{
		Store: s.storage, Catalogue: s.catalogue, Now: s.cfg.Now, NewID: s.newID,
		Known: func(workspace, device string) error {
			_, err := s.directory.Find(workspace, device)
			return err
		},
	})
}

// Handler is the HTTP edge.
func (s *Server) Handler() http.Handler { return s.edge.Handler() }

// Run runs the server until the context ends: first the parts that take work, last the store.
func (s *Server) Run(ctx context.Context, ready func() error) error {
	storeCtx, stopStore := context.WithCancel(context.WithoutCancel(ctx))
	defer stopStore()
	var stored errgroup.Group
	partsCtx, stopParts := context.WithCancelCause(ctx)
	defer stopParts(nil)
	stored.Go(func() error {
		err := s.store.Run(storeCtx)
		stopParts(err) // a server that cannot write any more must not go on
		return err
	})
	err := s.runParts(partsCtx, ready)
	stopStore()
	return errors.Join(err, stored.Wait(), s.store.Close())
}

func (s *Server) runParts(ctx context.Context, ready func() error) error {
	if err := s.directory.Begin(ctx); err != nil {
		return err
	}
	if err := s.dispatcher.Recover(ctx); err != nil {
		return err
	}
	if err := s.workspaces().Begin(ctx); err != nil {
		return err
	}
	if err := s.owner(ctx); err != nil {
		return err
	}
	// A part that fails ends the others.
	parts, partCtx := errgroup.WithContext(ctx)
	parts.Go(func() error { return s.dispatcher.Run(partCtx) })
	parts.Go(func() error { return s.state.Run(partCtx) })
	parts.Go(func() error { return s.directory.Run(partCtx, s.hub.Lease) })
	parts.Go(func() error { return s.agent.Run(partCtx) })
	if ready != nil {
		if err := ready(); err != nil {
			return errors.Join(err, s.stop(parts))
		}
	}
	return parts.Wait()
}

// stop is the end of parts whose context ends with an error of ready.
func (s *Server) stop(parts *errgroup.Group) error {
	parts.Go(func() error { return errStopped })
	if err := parts.Wait(); !errors.Is(err, errStopped) {
		return err
	}
	return nil
}

var errStopped = errors.New("stopped")

func (s *Server) workspaces() auth.Workspaces {
	return auth.Workspaces{Store: s.storage, Tokens: s.tokens}
}

// owner makes sure that the owner's token file is there and valid.
func (s *Server) owner(ctx context.Context) error {
	path := filepath.Join(s.cfg.DataDir, ownerFile)
	raw, err := os.ReadFile(path)
	if err == nil {
		secret := strings.TrimSpace(string(raw))
		if secret == "" {
			return fmt.Errorf("%s is empty: remove it, and the next start makes a new token", path)
		}
		if _, err := s.tokens.Authenticate(secret); err != nil { // of another database, or revoked
			return fmt.Errorf("the token in %s is not valid here: remove the file, and the next start makes a new one", path)
		}
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read owner token: %w", err)
	}
	_, secret, err := s.tokens.Issue(ctx, auth.DefaultWorkspace, "owner", optionv1.Scope_SCOPE_OWNER, 0)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		return fmt.Errorf("write owner token: %w", err)
	}
	return nil
}
