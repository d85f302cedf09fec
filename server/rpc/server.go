// Package rpc is the server's edge: thin handlers, the interceptors in front of them, and the HTTP rules of a listener.
package rpc

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/grpcreflect/v2"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/browser"
	"throwbar.dev/throwbar/server/device"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/event"
	"throwbar.dev/throwbar/server/link"
	"throwbar.dev/throwbar/server/policy"
)

const (
	maxMessage = 4 << 20
	// maxPublic is the size of a message that a caller without a token may send.
	maxPublic = 64 << 10
	// compressFrom is the size from which answers are compressed. Connect compresses everything by default, which
	// costs a third of the throughput of small messages.
	compressFrom = 4 << 10
	// sendWithin is how long a peer may go without reading what was sent. Streams have a heartbeat every 15 seconds.
	sendWithin = time.Minute
)

// Config is what the edge stands in front of.
type Config struct {
	Catalogue  *catalog.Catalogue
	Dispatcher *dispatch.Dispatcher
	Approvals  *approval.Desk
	Hub        *link.Hub
	Directory  *device.Directory
	Enroller   *device.Enroller
	Tokens     *auth.Tokens
	Workspaces auth.Workspaces
	Browser    *browser.State
	Policy     *policy.Book
	Saved      SavedReader
	Events     *event.Feed
	Audit      AuditReader
	Metrics    http.Handler  // what /metrics shows; nil if it shows nothing
	Meter      Meter         // may be nil
	SendWithin time.Duration // how long a peer may go without reading; the package's own if zero
	Version    string
	Listener   Listener
	Limits     Limits           // of callers
	Now        func() time.Time // clock of the limits; the system's if nil
	Log        *slog.Logger
}

// Server is the edge of one process.
type Server struct {
	cfg     Config
	limits  *throttle
	connect *connect.Server
	inside  *connect.Server // the same handlers for callers in this process; see Query
}

// New registers the server's own services.
func New(cfg Config) *Server {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Limits = cfg.Limits.withDefaults()
	limits := newThrottle(cfg.Limits, cfg.Now, cfg.Meter)
	refused := newRefusals(cfg.Log)
	access := &admission{tokens: cfg.Tokens, directory: cfg.Directory, refusals: refused}
	s := &Server{
		cfg:    cfg,
		limits: limits,
		connect: connect.NewServer(limits.seen, tell(cfg.Log), guard(cfg.Log), limits.guessed, access.intercept,
			limits.paced, validate),
		inside: connect.NewServer(guard(cfg.Log), validate),
	}
	for _, server := range []*connect.Server{s.connect, s.inside} {
		devicev1connect.RegisterDeviceServiceHandler(server, &deviceHandler{cfg: cfg, refusals: refused})
		controlv1connect.RegisterDevicesServiceHandler(server, &devicesHandler{cfg: cfg})
		controlv1connect.RegisterTokenServiceHandler(server, &tokenHandler{tokens: cfg.Tokens})
		controlv1connect.RegisterWorkspaceServiceHandler(server, &workspaceHandler{workspaces: cfg.Workspaces})
		controlv1connect.RegisterCommandServiceHandler(server, &commandHandler{cfg: cfg})
		controlv1connect.RegisterApprovalServiceHandler(server, &approvalHandler{cfg: cfg})
		controlv1connect.RegisterCatalogueServiceHandler(server, &catalogueHandler{cfg: cfg})
		controlv1connect.RegisterPolicyServiceHandler(server, &policyHandler{book: cfg.Policy, resolver: cfg.Dispatcher})
		controlv1connect.RegisterBrowserServiceHandler(server, &browserHandler{cfg: cfg})
		controlv1connect.RegisterAuditServiceHandler(server, &auditHandler{record: cfg.Audit})
	}
	registerHealth(s.connect)
	grpcreflect.Register(s.connect)
	return s
}

// Connect is where further services are registered, behind the same interceptors.
func (s *Server) Connect() *connect.Server { return s.connect }

// Handler is the whole HTTP edge.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	connecthttp.Mount(mux, s.connect,
		connecthttp.WithCompressMinBytes(compressFrom),
		connecthttp.WithConditionalOptions(optionsOf),
	)
	if s.cfg.Metrics != nil {
		mux.Handle("GET /metrics", readable(s.cfg.Tokens, s.limits, s.cfg.Metrics))
	}
	within := s.cfg.SendWithin
	if within == 0 {
		within = sendWithin
	}
	calls := timed(s.cfg.Limits.BodyWithin, s.callerStreams(), mux)
	return s.cfg.Listener.guard(s.cfg.Directory.Origins, s.cfg.Meter, counted(s.cfg.Meter, withDeadlines(within, calls)))
}

// callerStreams are the paths of methods whose callers send a stream.
func (s *Server) callerStreams() map[string]bool {
	paths := map[string]bool{}
	for spec := range s.connect.Specs() {
		if spec.StreamType&connect.StreamTypeClient != 0 {
			paths[spec.Procedure] = true
		}
	}
	return paths
}

// optionsOf are the options of one method. Callers' services read JSON strictly; a device's frames may have fields of
// a newer device.
func optionsOf(spec connect.Spec) []connecthttp.Option {
	device := strings.HasPrefix(spec.Procedure, "/throwbar.device.")
	limit := maxMessage
	if spec.Procedure == devicev1connect.DeviceServicePairProcedure || strings.HasPrefix(spec.Procedure, "/grpc.") {
		limit = maxPublic
	}
	options := []connecthttp.Option{
		connecthttp.WithReadMaxBytes(limit),
		connecthttp.WithCodecs(newBoundedWire(), newBoundedJSON(!device)),
	}
	if spec.Procedure == controlv1connect.CommandServiceDispatchStreamProcedure {
		// Many small answers share a message: to compress them would cost more than the commands.
		options = append(options, connecthttp.WithCompressMinBytes(maxMessage))
	}
	return options
}
