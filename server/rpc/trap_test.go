package rpc_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// The traps are those of HTTP streams that were measured before the first line was written. Each test names its trap.

// G2: connect compresses every small answer by default, which costs a third of the throughput.
func TestTrapSmallAnswersAreNotCompressed(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	encoding := func(path, body string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+s.Owner)
		req.Header.Set("Accept-Encoding", "gzip")
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
		return res.Header.Get("Content-Encoding")
	}
	if got := encoding(listDevices, "{}"); got == "gzip" {
		t.Error("a small answer is compressed")
	}
	if got := encoding("/throwbar.control.v1.CatalogueService/GetCatalogue", "{}"); got != "gzip" {
		t.Errorf("a large answer is sent as %q", got)
	}
}

// G3: a bidi client that only opens sends nothing. R17: a device that says no Hello is ended.
func TestTrapALinkWithoutHelloEnds(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	d := pair(t, s, "laptop")
	stream, err := s.Device(t, d.GetToken()).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	if err := stream.SendHeaders(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Receive(); err == nil {
		t.Error("the link goes on without a Hello")
	}
}

// G5: a read or write timeout of the server would end a busy stream; only the last three kinds are set.
func TestTrapNoTimeoutEndsAStream(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{Heartbeat: 50 * time.Millisecond, Lease: time.Hour})
	d := pair(t, s, "laptop")
	l, _ := dial(t, s, d, dialConnect, nil)
	for n := range 30 { // a second and a half of heartbeats
		f, err := l.receive()
		if err != nil || f.GetHeartbeat() == nil {
			t.Fatalf("heartbeat %d: %v, %v", n, f, err)
		}
	}
}

// G6, R6: a device that does not read costs nobody else anything. That its writer is not blocked for ever is the write
// deadline's part: deadline_test.go.
func TestTrapADeviceThatDoesNotReadHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{Lease: time.Hour}) // the devices are silent while all is written
	deaf, quick := pair(t, s, "deaf"), pair(t, s, "quick")
	_, _ = dial(t, s, deaf, dialConnect, nil)
	q, _ := dial(t, s, quick, dialConnect, nil)
	submit := s.Commands(t)
	big := strings.Repeat("x", 7000)
	for n := range 900 { // well over what the window of a stream takes
		action := &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: fmt.Sprintf("https://a.example/%d/%s", n, big)}}}
		if _, err := submit.Submit(t.Context(), &controlv1.SubmitRequest{DeviceIds: []string{deaf.GetDeviceId()}, Action: action}); err != nil {
			t.Fatal(err)
		}
	}
	done := dispatch(t.Context(), t, s, closing(quick.GetDeviceId()+"_tb1-1"))
	c := next(t, q).GetCommand()
	if err := q.send(outcome(closedOutcome(c.GetCommandId()))); err != nil {
		t.Fatal(err)
	}
	if a := <-done; a.err != nil || a.res.GetOutcomes()[0].GetResult() == nil {
		t.Errorf("the quick device: %v, %v", a.res, a.err)
	}
}

// G8: more streams than the default of 250 fit on one connection.
func TestTrapManyStreamsFitOnOneConnection(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	dials := 0
	transport := &http.Transport{Protocols: &protocols, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials++
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}}
	defer transport.CloseIdleConnections()
	client := controlv1connect.NewCommandServiceClient(connect.NewClient(
		connecthttp.NewTransport(&http.Client{Transport: transport}, s.URL, connecthttp.WithGRPC()), bearer(s.Owner)))
	for range 300 {
		stream, err := client.WatchEvents(t.Context(), &controlv1.WatchEventsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = stream.Close() }()
		if _, err := stream.Receive(); err != nil {
			t.Fatal(err)
		}
	}
	if dials != 1 {
		t.Errorf("%d connections", dials)
	}
}

func bearer(token string) connect.ClientInterceptor {
	return func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			ctx, info := connect.NewClientContext(ctx)
			info.RequestHeader().Set("Authorization", "Bearer "+token)
			return next(ctx, spec)
		}
	}
}

// G9: a server that stops tells held streams, and is gone soon.
func TestTrapShutdownDoesNotWaitForHeldStreams(t *testing.T) {
	t.Parallel()
	for range 5 { // a machine with much to do may take that long by itself, and does not each time
		if stopsWithin(t, 8*time.Second) { // the server itself would wait for ten
			return
		}
	}
	t.Error("the server waits for streams that it has ended")
}

// stopsWithin says whether a server with held streams, which it ends, stops within a time.
func stopsWithin(t *testing.T, most time.Duration) bool {
	t.Helper()
	s := apptest.Start(t, app.Config{})
	d := pair(t, s, "laptop")
	l, _ := dial(t, s, d, dialConnect, nil)
	watch, err := s.Commands(t).WatchEvents(t.Context(), &controlv1.WatchEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Receive(); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() { s.Stop(); close(stopped) }()
	if end := next(t, l).GetEnd(); end.GetReason() != devicev1.EndReason_END_REASON_GOING_AWAY {
		t.Errorf("the device was told %v", end)
	}
	for {
		if _, err := watch.Receive(); err != nil {
			break
		}
	}
	select {
	case <-stopped:
		return true
	case <-time.After(most):
		<-stopped
		return false
	}
}

// G11: a message over the limit is refused with a code that says so, before it is decoded.
func TestTrapMessagesAreBounded(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	huge := &controlv1.SearchTabsRequest{Query: strings.Repeat("x", 5<<20)}
	_, err := s.Browser(t).SearchTabs(t.Context(), huge)
	if connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("5 MiB with a token: %v", err)
	}
	_, err = s.Device(t, "").Pair(t.Context(), &devicev1.PairRequest{Code: strings.Repeat("x", 100<<10), Name: "x", Kind: 1})
	if connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("100 KiB without a token: %v", err)
	}
}

// G12: links that come and go leave nothing behind.
//
//nolint:paralleltest // it counts the goroutines of the whole process
func TestTrapLinksLeaveNoGoroutines(t *testing.T) {
	s := apptest.Start(t, app.Config{})
	d := pair(t, s, "laptop")
	client := s.Device(t, d.GetToken()) // one connection for all
	open := func() {
		stream, err := client.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		hello := &devicev1.Hello{DeviceId: d.GetDeviceId()}
		frames := []*devicev1.DeviceFrame{{Kind: &devicev1.DeviceFrame_Hello{Hello: hello}}}
		if err := stream.Send(&devicev1.ConnectRequest{Frames: frames}); err != nil {
			t.Fatal(err)
		}
		if msg, err := stream.Receive(); err != nil || msg.GetFrames()[0].GetWelcome() == nil {
			t.Fatalf("welcome: %v, %v", msg, err)
		}
		_ = stream.Close()
	}
	open()
	before := settled(t)
	for range 50 {
		open()
	}
	apptest.Eventually(t, "the goroutines are gone", func() bool { return runtime.NumGoroutine() < before+25 })
}

// settled is the number of goroutines once it has stopped to change.
func settled(t *testing.T) int {
	t.Helper()
	last, same := 0, 0
	apptest.Eventually(t, "the number of goroutines settles", func() bool {
		if n := runtime.NumGoroutine(); n != last {
			last, same = n, 0
		} else {
			same++
		}
		return same > 20
	})
	return last
}

// G13: browsers speak HTTP/1.1 to a plain port, and hold the stream there.
func TestTrapAStreamWorksOverHTTP1(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	client := controlv1connect.NewCommandServiceClient(connect.NewClient(
		connecthttp.NewTransport(&http.Client{Transport: &http.Transport{}}, s.URL), bearer(s.Owner)))
	stream, err := client.WatchEvents(t.Context(), &controlv1.WatchEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	if _, err := stream.Receive(); err != nil { // the first frame comes at once, before any event
		t.Fatal(err)
	}
	pair(t, s, "laptop")
	msg, err := stream.Receive()
	if err != nil || msg.GetEvent().GetDevice().GetName() != "laptop" {
		t.Errorf("event: %v, %v", msg, err)
	}
}

// G4, R5: a device that is silent is gone after its lease, whatever its connection says.
func TestTrapASilentDeviceLosesItsLease(t *testing.T) {
	t.Parallel()
	for name, how := range transports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, app.Config{Heartbeat: 30 * time.Millisecond, Lease: 150 * time.Millisecond})
			d := pair(t, s, "laptop")
			l, _ := dial(t, s, d, how, nil)
			for {
				if _, err := l.receive(); err != nil {
					break
				}
			}
			apptest.Eventually(t, "the device is offline", func() bool {
				res, err := s.Devices(t).ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
				return err == nil && !res.GetDevices()[0].GetOnline()
			})
		})
	}
}

// One port answers Connect, gRPC and gRPC-Web.
func TestOnePortSpeaksThreeProtocols(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	for name, options := range map[string][]connecthttp.Option{
		"Connect": nil, "gRPC-Web": {connecthttp.WithGRPCWeb()}, "Connect JSON": {connecthttp.WithProtoJSON()},
	} {
		client := controlv1connect.NewDevicesServiceClient(connect.NewClient(
			connecthttp.NewTransport(&http.Client{Transport: &http.Transport{}}, s.URL, options...), bearer(s.Owner)))
		if _, err := client.ListDevices(t.Context(), &controlv1.ListDevicesRequest{}); err != nil {
			t.Errorf("%s over HTTP/1.1: %v", name, err)
		}
	}
	if _, err := s.Devices(t).ListDevices(t.Context(), &controlv1.ListDevicesRequest{}); err != nil {
		t.Errorf("gRPC over h2c: %v", err)
	}
}

// A newer device's frames have fields that this server does not know: they are no fault.
func TestFramesOfANewerDeviceAreTaken(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	d := pair(t, s, "laptop")
	l, _ := dial(t, s, d, dialConnect, nil)
	newer := &devicev1.DeviceFrame{}
	if err := proto.Unmarshal([]byte{0xea, 0x04, 0x02, 0x08, 0x01}, newer); err != nil {
		t.Fatal(err)
	}
	if err := l.send(newer); err != nil {
		t.Fatal(err)
	}
	done := dispatch(t.Context(), t, s, closing(d.GetDeviceId()+"_tb1-1"))
	c := next(t, l).GetCommand()
	if err := l.send(outcome(closedOutcome(c.GetCommandId()))); err != nil {
		t.Fatal(err)
	}
	if a := <-done; a.err != nil {
		t.Error(a.err)
	}
}

// Whatever bytes come in, the server answers and goes on.
func FuzzRequestBodies(f *testing.F) {
	s := apptest.Start(f, app.Config{})
	f.Add([]byte(`{"action":{"closeTabs":{"tabIds":["a_tb-1"]}}}`), true)
	f.Add([]byte{0x12, 0x04, 0x12, 0x02, 0x0a, 0x00}, false)
	f.Fuzz(func(t *testing.T, body []byte, json bool) {
		kind := "application/proto"
		if json {
			kind = "application/json"
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			s.URL+"/throwbar.control.v1.CommandService/Dispatch", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		req.Header.Set("Authorization", "Bearer "+s.Owner)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode == http.StatusInternalServerError {
			t.Errorf("%d %s %v", res.StatusCode, text, err)
		}
	})
}
