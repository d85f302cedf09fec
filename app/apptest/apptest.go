// Package apptest runs a whole server for tests: real store, real listener on loopback, its own empty folder.
package apptest

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
	"throwbar.dev/throwbar/server/rpc"
)

// Server is a running server.
type Server struct {
	URL     string
	Address string
	Dir     string
	Owner   string // the owner's token

	stop func()
}

// Start runs a server until the test ends. An empty DataDir means a folder of the test's own.
func Start(t testing.TB, cfg app.Config) *Server {
	t.Helper()
	if cfg.DataDir == "" {
		cfg.DataDir = t.TempDir()
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Address: listener.Addr().String(), Dir: cfg.DataDir}
	s.URL = "http://" + s.Address
	cfg.Listener = rpc.Listener{
		Hosts: append(rpc.LoopbackHosts(s.Address), cfg.Listener.Hosts...), Origins: cfg.Listener.Origins,
	}
	server, err := app.NewServer(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, func() { close(ready) }) }()
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("server: %v", err)
		}
	}
	t.Cleanup(s.stop)
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("server ended at once: %v", err)
	}
	raw, err := os.ReadFile(filepath.Join(s.Dir, "owner.token"))
	if err != nil {
		t.Fatal(err)
	}
	s.Owner = strings.TrimSpace(string(raw))
	return s
}

// Stop ends the server and waits for it.
func (s *Server) Stop() { s.stop() }

// Client makes a connect client with a bearer token; none if it is empty. Further headers are set as given.
func (s *Server) Client(t testing.TB, token string, headers map[string]string) *connect.Client {
	t.Helper()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	return connect.NewClient(connecthttp.NewTransport(client, s.URL, connecthttp.WithGRPC()), headerSetter(token, headers))
}

func headerSetter(token string, headers map[string]string) connect.ClientInterceptor {
	return func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			info, ok := connect.CallInfoForClientContext(ctx)
			if !ok {
				ctx, info = connect.NewClientContext(ctx)
			}
			if token != "" {
				info.RequestHeader().Set("Authorization", "Bearer "+token)
			}
			for k, v := range headers {
				info.RequestHeader().Set(k, v)
			}
			return next(ctx, spec)
		}
	}
}

// Commands is a client of CommandService for the owner.
func (s *Server) Commands(t testing.TB) controlv1connect.CommandServiceClient {
	return controlv1connect.NewCommandServiceClient(s.Client(t, s.Owner, nil))
}

// Devices is a client of DevicesService for the owner.
func (s *Server) Devices(t testing.TB) controlv1connect.DevicesServiceClient {
	return controlv1connect.NewDevicesServiceClient(s.Client(t, s.Owner, nil))
}

// Browser is a client of BrowserService for the owner.
func (s *Server) Browser(t testing.TB) controlv1connect.BrowserServiceClient {
	return controlv1connect.NewBrowserServiceClient(s.Client(t, s.Owner, nil))
}

// Device is a client of DeviceService with a device's token.
func (s *Server) Device(t testing.TB, token string) devicev1connect.DeviceServiceClient {
	return devicev1connect.NewDeviceServiceClient(s.Client(t, token, nil))
}

// Eventually calls check until it says true; it fails the test after a time that only a broken program needs.
func Eventually(t testing.TB, what string, check func() bool) {
	t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if check() {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}
