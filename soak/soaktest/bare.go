package soaktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
)

// The floor that memory is compared with: a server that holds streams and does nothing else, and what holds its other
// end. The server's argument is its address, the fleet's are that address and the number of streams.
const (
	RoleBare      = "bare"
	RoleBareFleet = "bare-fleet"
)

// bare holds a stream for each device, after one message in each direction.
type bare struct {
	devicev1connect.UnimplementedDeviceServiceHandler
}

// Connect holds one stream.
func (bare) Connect(_ context.Context, stream devicev1connect.DeviceServiceConnectServerStream) error {
	if _, err := stream.Receive(); err != nil {
		return err
	}
	if err := stream.Send(&devicev1.ConnectResponse{}); err != nil {
		return err
	}
	for {
		if _, err := stream.Receive(); err != nil {
			return nil // the other end went away, which is how all of them end
		}
	}
}

func serveBare(ctx context.Context, s *Stage) error {
	ctx = s.Listen(ctx, func(string) any { return nil })
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Args[0])
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := connect.NewServer()
	devicev1connect.RegisterDeviceServiceHandler(server, bare{})
	mux := http.NewServeMux()
	connecthttp.Mount(mux, server, connecthttp.WithCompressMinBytes(4<<10))
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	web := &http.Server{Handler: mux, Protocols: &protocols, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	s.Ready()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func playBareFleet(ctx context.Context, s *Stage) error {
	var connected atomic.Int64
	ctx = s.Listen(ctx, func(string) any { return Standing{Connected: int(connected.Load())} })
	n, err := strconv.Atoi(s.Args[1])
	if err != nil {
		return fmt.Errorf("number of streams: %w", err)
	}
	s.Ready()
	var group sync.WaitGroup
	slots := make(chan struct{}, 64) // opened at a time
	for range n {
		group.Go(func() {
			slots <- struct{}{}
			hold(ctx, s.Args[0], func() { connected.Add(1); <-slots })
		})
	}
	group.Wait()
	return nil
}

// hold opens one stream on a connection of its own and holds it until the context ends.
func hold(ctx context.Context, address string, standing func()) {
	client := &http.Client{Transport: linkTransport()}
	rpc := connect.NewClient(connecthttp.NewTransport(client, "http://"+address))
	stream, err := devicev1connect.NewDeviceServiceClient(rpc).Connect(ctx)
	if err != nil {
		return
	}
	defer stream.Close()
	if stream.Send(&devicev1.ConnectRequest{}) != nil {
		return
	}
	if _, err := stream.Receive(); err != nil {
		return
	}
	standing()
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() }) // a cancelled context alone does not end it
	defer stop()
	_, _ = stream.Receive()
}

// linkTransport is like that of a device of the Go library.
func linkTransport() *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{
		Protocols: protocols, DisableKeepAlives: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}
}
