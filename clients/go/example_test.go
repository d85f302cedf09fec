package throwbar_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/types/known/durationpb"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
)

// Send a command to a device and use its typed result.
func ExampleCall() {
	server := demoServer()
	defer server.Close()

	client, err := throwbar.New(throwbar.Config{Server: server.URL, Token: "owner token"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.CloseIdle()
	res, err := throwbar.Call(context.Background(), client, "k3v9x2mqta", &commandv1.OpenTab{Url: "example.com"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.GetUrl())
	// Output: https://example.com
}

// Tell apart why a command has no result.
func ExampleCodeOf() {
	server := demoServer()
	defer server.Close()

	client, err := throwbar.New(throwbar.Config{Server: server.URL, Token: "owner token"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.CloseIdle()
	_, err = throwbar.Call(context.Background(), client, "k3v9x2mqta", &commandv1.OpenTab{Url: "javascript:alert(1)"})
	switch throwbar.CodeOf(err) {
	case throwbar.CodeOffline:
		fmt.Println("not connected")
	case throwbar.CodeRefused:
		fmt.Println("refused")
	default:
		fmt.Println(err)
	}
	// Output: refused
}

// Send many commands at a time: they share one stream.
func ExampleClient_Dispatch() {
	server := demoServer()
	defer server.Close()

	client, err := throwbar.New(throwbar.Config{Server: server.URL, Token: "owner token"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	action, err := throwbar.Wrap(&commandv1.OpenTab{Url: "example.com"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var wg sync.WaitGroup
	var opened atomic.Int32
	for range 100 {
		wg.Go(func() {
			res, err := client.Dispatch(context.Background(), &controlv1.DispatchRequest{
				DeviceIds: []string{"k3v9x2mqta"}, Action: action,
			})
			switch {
			case errors.Is(err, throwbar.ErrOutcomeUnknown):
				fmt.Println("look it up before it is sent again")
			case err != nil:
				fmt.Println(err)
			case res.GetOutcomes()[0].GetResult() != nil:
				opened.Add(1)
			}
		})
	}
	wg.Wait()
	fmt.Println(opened.Load())
	// Output: 100
}

// browser runs two commands and declines the rest.
type browser struct {
	commandv1.DeclineTabs
	commandv1.DeclineCustom
}

func (browser) OpenTab(_ context.Context, a *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
	fmt.Println("opening", a.GetUrl())
	return &commandv1.OpenTab_Result{TabId: "k3v9x2mqta_t7fq2-1", Url: a.GetUrl()}, nil
}

func (browser) NavigateTab(context.Context, *commandv1.NavigateTab) (*commandv1.NavigateTab_Result, error) {
	return nil, throwbar.Errorf(throwbar.CodeRefused, "this browser stays where it is")
}

// Make a program a device: pair it once, then run it.
func ExampleDevice() {
	server := demoServer()
	defer server.Close()
	ctx := context.Background()

	identity, err := throwbar.Pair(ctx, server.URL, throwbar.Pairing{
		Code: "7KQM-P2XA", Name: "kiosk", Kind: devicev1.Kind_KIND_BROWSER,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("compare this word:", identity.CheckWord)

	device, err := throwbar.NewDevice(throwbar.DeviceConfig{
		Identity: identity,
		Handler:  browser{},
		Actions:  []string{"openTab", "navigateTab"},
		Version:  "1.0",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// This server sends one command and then a newer link of the same device takes over.
	if err := device.Run(ctx); errors.Is(err, throwbar.ErrReplaced) {
		fmt.Println("replaced")
	}
	// Output:
	// compare this word: heron
	// opening https://example.com
	// replaced
}

// demoServer is the smallest server that the examples can talk to.
func demoServer() *httptest.Server {
	server := connect.NewServer()
	controlv1connect.RegisterCommandServiceHandler(server, demo{})
	devicev1connect.RegisterDeviceServiceHandler(server, demo{})
	mux := http.NewServeMux()
	connecthttp.Mount(mux, server)
	ts := httptest.NewUnstartedServer(mux)
	ts.Config.Protocols = &http.Protocols{}
	ts.Config.Protocols.SetHTTP1(true)
	ts.Config.Protocols.SetUnencryptedHTTP2(true)
	ts.Start()
	return ts
}

type demo struct {
	controlv1connect.UnimplementedCommandServiceHandler
	devicev1connect.UnimplementedDeviceServiceHandler
}

func (demo) Dispatch(_ context.Context, req *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
	outcome := &controlv1.DeviceOutcome{DeviceId: req.GetDeviceIds()[0]}
	switch url := req.GetAction().GetOpenTab().GetUrl(); url {
	case "example.com":
		outcome.Outcome = &controlv1.DeviceOutcome_Result{Result: &commandv1.Result{Kind: &commandv1.Result_OpenTab{
			OpenTab: &commandv1.OpenTab_Result{Url: "https://example.com"},
		}}}
	default:
		outcome.Outcome = &controlv1.DeviceOutcome_Error{Error: &commandv1.CommandError{
			Code: commandv1.ErrorCode_ERROR_CODE_REFUSED, Message: "only http and https",
		}}
	}
	return &controlv1.DispatchResponse{Outcomes: []*controlv1.DeviceOutcome{outcome}}, nil
}

func (d demo) DispatchStream(ctx context.Context, stream controlv1connect.CommandServiceDispatchStreamServerStream) error {
	if err := stream.SendHeaders(); err != nil {
		return err
	}
	for {
		req, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		res := &controlv1.DispatchStreamResponse{}
		for _, item := range req.GetItems() {
			one, err := d.Dispatch(ctx, item.GetDispatch())
			if err != nil {
				return err
			}
			res.Answers = append(res.Answers, &controlv1.DispatchStreamAnswer{
				Number: item.GetNumber(), Kind: &controlv1.DispatchStreamAnswer_Response{Response: one},
			})
		}
		if err := stream.Send(res); err != nil {
			return err
		}
	}
}

func (demo) Pair(context.Context, *devicev1.PairRequest) (*devicev1.PairResponse, error) {
	return &devicev1.PairResponse{DeviceId: "k3v9x2mqta", Token: "device token", CheckWord: "heron"}, nil
}

func (demo) Connect(_ context.Context, stream devicev1connect.DeviceServiceConnectServerStream) error {
	if _, err := stream.Receive(); err != nil { // Hello
		return err
	}
	for _, f := range []*devicev1.ServerFrame{
		{Kind: &devicev1.ServerFrame_Welcome{Welcome: &devicev1.Welcome{LinkId: "l"}}},
		{Kind: &devicev1.ServerFrame_Command{Command: &devicev1.CommandRequest{
			CommandId: "c", TimeLeft: durationpb.New(time.Minute),
			Action: &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://example.com"}}},
		}}},
	} {
		if err := stream.Send(&devicev1.ConnectResponse{Frames: []*devicev1.ServerFrame{f}}); err != nil {
			return err
		}
	}
	for {
		req, err := stream.Receive()
		if err != nil {
			return err
		}
		for _, f := range req.GetFrames() {
			if f.GetOutcome() != nil {
				return stream.Send(&devicev1.ConnectResponse{Frames: []*devicev1.ServerFrame{{Kind: &devicev1.ServerFrame_End{
					End: &devicev1.LinkEnd{Reason: devicev1.EndReason_END_REASON_REPLACED},
				}}}})
			}
		}
	}
}
