package rpc_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// counter is a device's handler that counts how often each tab was activated.
type counter struct {
	commandv1.DeclineTabs
	commandv1.DeclineCustom

	mu    sync.Mutex
	times map[string]int
}

// ActivateTab answers at once.
func (c *counter) ActivateTab(_ context.Context, a *commandv1.ActivateTab) (*commandv1.ActivateTab_Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.times != nil {
		c.times[a.GetTabId()]++
	}
	return &commandv1.ActivateTab_Result{Activated: true}, nil
}

func (c *counter) seen() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int{}
	for k, v := range c.times {
		out[k] = v
	}
	return out
}

// runDevice pairs a device of the Go library and runs it until the test ends.
func runDevice(t testing.TB, s *apptest.Server, name string, transport throwbar.Transport, h commandv1.Handler) string {
	t.Helper()
	client, err := throwbar.New(throwbar.Config{Server: s.URL, Token: s.Owner})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdle)
	code, err := client.Devices.CreatePairingCode(t.Context(), &controlv1.CreatePairingCodeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	identity, err := client.Pair(t.Context(), throwbar.Pairing{Code: code.GetCode(), Name: name, Kind: devicev1.Kind_KIND_SERVER})
	if err != nil {
		t.Fatal(err)
	}
	journal, err := throwbar.OpenJournal(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	var once sync.Once
	device, err := throwbar.NewDevice(throwbar.DeviceConfig{
		Identity: identity, Handler: h, Actions: []string{"activateTab"}, BootTag: "b1", Journal: journal, Transport: transport,
		OnStatus: func(st throwbar.Status) {
			if st.Connected {
				once.Do(func() { close(ready) })
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- device.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("device %s: %v", name, err)
		}
	})
	<-ready
	return identity.DeviceID
}

func activating(device string, tab int) *controlv1.DispatchRequest {
	return &controlv1.DispatchRequest{Action: &commandv1.Action{Kind: &commandv1.Action_ActivateTab{
		ActivateTab: &commandv1.ActivateTab{TabId: fmt.Sprintf("%s_tb1-%d", device, tab)},
	}}}
}

// pump sends total commands on one stream with at most window under way, and gives each answer to got.
func pump(
	t testing.TB, stream controlv1connect.CommandServiceDispatchStreamClientStream, total, window int,
	request func(int) *controlv1.DispatchRequest, got func(*controlv1.DispatchStreamAnswer),
) {
	t.Helper()
	free := make(chan struct{}, window)
	for range window {
		free <- struct{}{}
	}
	sent := make(chan error, 1)
	go func() {
		for n := 0; n < total; {
			<-free
			msg := &controlv1.DispatchStreamRequest{}
			for more := true; more; {
				n++
				msg.Items = append(msg.Items, &controlv1.DispatchStreamItem{
					Number: uint64(n), Kind: &controlv1.DispatchStreamItem_Dispatch{Dispatch: request(n)},
				})
				if more = n < total && len(msg.GetItems()) < 256; more {
					select {
					case <-free:
					default:
						more = false
					}
				}
			}
			if err := stream.Send(msg); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for n := 0; n < total; {
		msg, err := stream.Receive()
		if err != nil {
			t.Fatalf("after %d answers: %v", n, err)
		}
		for _, a := range msg.GetAnswers() {
			n++
			got(a)
			free <- struct{}{}
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

// BenchmarkDispatchStream is many durable commands over one stream to one device, all in this process: server, store,
// device with its journal, and caller.
func BenchmarkDispatchStream(b *testing.B) {
	s := apptest.Start(b, app.Config{})
	id := runDevice(b, s, "bench", throwbar.Bidi, &counter{})
	stream, err := s.Commands(b).DispatchStream(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if err := stream.SendHeaders(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	pump(b, stream, b.N, 512, func(n int) *controlv1.DispatchRequest { return activating(id, n) },
		func(a *controlv1.DispatchStreamAnswer) {
			if !a.GetResponse().GetOutcomes()[0].GetResult().GetActivateTab().GetActivated() {
				b.Errorf("answer: %v", a)
			}
		})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
	if err := stream.CloseSend(); err != nil {
		b.Error(err)
	}
	if _, err := stream.Receive(); err == nil {
		b.Error("the stream goes on after its last answer")
	}
	_ = stream.Close()
}
