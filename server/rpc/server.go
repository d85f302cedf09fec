// Package rpc is the server's edge: thin handlers, the interceptors in front of them, and the HTTP rules of a listener.
package rpc

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/connect/v2/connectproto"
	"connectrpc.com/grpcreflect/v2"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/browser"
	"throwbar.dev/throwbar/server/device"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/event"
	"throwbar.dev/throwbar/server/link"
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
	Hub        *link.Hub
	Directory  *device.Directory
	Pairing    *device.Pairing
	Enroller   *device.Enroller
	Tokens     *auth.Tokens
	Browser    *browser.State
	Saved      SavedReader
	Events     *event.Feed
	Audit      AuditReader
	Metrics    http.Handler  // what /metrics shows; nil if it shows nothing
	Meter      Meter         // may be nil
	SendWithin time.Duration // how long a peer may go without reading; the package's own if zero
	Version    string
	Listener   Listener
	Log        *slog.Logger
}

// Server is the edge of one process.
type Server struct {
	cfg     Config
	connect *connect.Server
	inside  *connect.Server // the same handlers for callers in this process; see Query
}

// New registers the server's own services.
func New(cfg Config) *Server {
	s := &Server{
		cfg:     cfg,
		connect: connect.NewServer(tell(cfg.Log), guard(cfg.Log), admit(cfg.Tokens), validate),
		inside:  connect.NewServer(guard(cfg.Log), validate),
	}
	for _, server := range []*connect.Server{s.connect, s.inside} {
		devicev1connect.RegisterDeviceServiceHandler(server, &deviceHandler{cfg: cfg})
		controlv1connect.RegisterDevicesServiceHandler(server, &devicesHandler{cfg: cfg})
		controlv1connect.RegisterTokenServiceHandler(server, &tokenHandler{tokens: cfg.Tokens})
		controlv1connect.RegisterCommandServiceHandler(server, &commandHandler{cfg: cfg})
		controlv1connect.RegisterCatalogueServiceHandler(server, &catalogueHandler{cfg: cfg})
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
		mux.Handle("GET /metrics", readable(s.cfg.Tokens, s.cfg.Metrics))
	}
	within := s.cfg.SendWithin
	if within == 0 {
		within = sendWithin
	}
	return s.cfg.Listener.guard(s.cfg.Directory.Origins, counted(s.cfg.Meter, withDeadlines(within, mux)))
}

// optionsOf are the options of one method. Callers' services read JSON strictly; a device's frames may have fields of
// a newer device.
func optionsOf(spec connect.Spec) []connecthttp.Option {
	var options []connecthttp.Option
	if strings.HasPrefix(spec.Procedure, "/throwbar.device.") {
		options = append(options, connecthttp.WithReadMaxBytes(maxMessage), connecthttp.WithCodecs(connectproto.NewBinaryCodec(), deviceJSON{}))
		if spec.Procedure == devicev1connect.DeviceServicePairProcedure {
			options = append(options, connecthttp.WithReadMaxBytes(maxPublic))
		}
		return options
	}
	if strings.HasPrefix(spec.Procedure, "/throwbar.") {
		options = append(options, connecthttp.WithCodecs(connectproto.NewBinaryCodec(), strictJSON{}))
	}
	if spec.Procedure == controlv1connect.CommandServiceDispatchStreamProcedure {
		// Many small answers share a message: to compress them would cost more than the commands.
		options = append(options, connecthttp.WithCompressMinBytes(maxMessage))
	}
	return append(options, connecthttp.WithReadMaxBytes(maxMessage))
}
