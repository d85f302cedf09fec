package bench_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
	"throwbar.dev/throwbar/soak/soaktest"
)

// relay is the floor: caller → server → device → server → caller with the product's own messages and library, and
// nothing else. It stores nothing, checks nothing, and knows one device.
type relay struct {
	controlv1connect.UnimplementedCommandServiceHandler
	devicev1connect.UnimplementedDeviceServiceHandler

	out chan *devicev1.ServerFrame

	mu      sync.Mutex
	n       int
	waiting map[string]chan *devicev1.Outcome
}

// Dispatch hands an action to the device and waits for the outcome.
func (r *relay) Dispatch(ctx context.Context, req *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
	done := make(chan *devicev1.Outcome, 1)
	r.mu.Lock()
	r.n++
	id := fmt.Sprint(r.n)
	r.waiting[id] = done
	r.mu.Unlock()
	r.out <- &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Command{
		Command: &devicev1.CommandRequest{CommandId: id, Action: req.GetAction()},
	}}
	select {
	case o := <-done:
		return &controlv1.DispatchResponse{Outcomes: []*controlv1.DeviceOutcome{{
			CommandId: id, Outcome: &controlv1.DeviceOutcome_Result{Result: o.GetResult()},
		}}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Connect holds the device's stream.
func (r *relay) Connect(ctx context.Context, stream devicev1connect.DeviceServiceConnectServerStream) error {
	ended := make(chan error, 1)
	go func() {
		for {
			msg, err := stream.Receive()
			if err != nil {
				ended <- err
				return
			}
			o := msg.GetFrames()[0].GetOutcome()
			r.mu.Lock()
			done := r.waiting[o.GetCommandId()]
			delete(r.waiting, o.GetCommandId())
			r.mu.Unlock()
			if done != nil {
				done <- o
			}
		}
	}()
	for {
		select {
		case f := <-r.out:
			if err := stream.Send(&devicev1.ConnectResponse{Frames: []*devicev1.ServerFrame{f}}); err != nil {
				return err
			}
		case <-ended:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// serveRelay runs a relay on an address.
func serveRelay(ctx context.Context, s *soaktest.Stage) error {
	ctx = s.Listen(ctx, func(string) any { return nil })
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Args[0])
	if err != nil {
		return err
	}
	r := &relay{out: make(chan *devicev1.ServerFrame, 256), waiting: map[string]chan *devicev1.Outcome{}}
	server := connect.NewServer()
	controlv1connect.RegisterCommandServiceHandler(server, r)
	devicev1connect.RegisterDeviceServiceHandler(server, r)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, server, connecthttp.WithCompressMinBytes(4<<10))
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	web := &http.Server{Handler: mux, Protocols: &protocols, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	s.Ready()
	return web.Serve(listener)
}

// runRelayDevice answers every command at once.
func runRelayDevice(ctx context.Context, s *soaktest.Stage) error {
	ctx = s.Listen(ctx, func(string) any { return nil })
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := connecthttp.NewTransport(&http.Client{Transport: &http.Transport{Protocols: &protocols}}, s.Args[0], connecthttp.WithGRPC())
	stream, err := devicev1connect.NewDeviceServiceClient(connect.NewClient(transport)).Connect(ctx)
	if err != nil {
		return err
	}
	if err := stream.SendHeaders(); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = stream.Close() })
	s.Ready()
	for {
		msg, err := stream.Receive()
		if err != nil {
			return err
		}
		c := msg.GetFrames()[0].GetCommand()
		if err := stream.Send(&devicev1.ConnectRequest{Frames: []*devicev1.DeviceFrame{{Kind: &devicev1.DeviceFrame_Outcome{
			Outcome: &devicev1.Outcome{CommandId: c.GetCommandId(), Outcome: &devicev1.Outcome_Result{Result: answer(c.GetAction())}},
		}}}}); err != nil {
			return err
		}
	}
}

// answer is the result that both devices give.
func answer(a *commandv1.Action) *commandv1.Result {
	return &commandv1.Result{Kind: &commandv1.Result_ActivateTab{ActivateTab: &commandv1.ActivateTab_Result{
		Activated: a.GetActivateTab() != nil,
	}}}
}
