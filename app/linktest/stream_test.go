package linktest

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
)

// gateway is one connection over which many speak, each with its own token.
type gateway struct {
	http *http.Client
	url  string
}

func newGateway(t *testing.T, url string, window int) *gateway {
	t.Helper()
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	if window > 0 {
		transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: window}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &gateway{http: &http.Client{Transport: transport}, url: url}
}

func (g *gateway) as(token string) *connect.Client {
	bearer := func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			info, ok := connect.CallInfoForClientContext(ctx)
			if !ok {
				ctx, info = connect.NewClientContext(ctx)
			}
			info.RequestHeader().Set("Authorization", "Bearer "+token)
			return next(ctx, spec)
		}
	}
	return connect.NewClient(connecthttp.NewTransport(g.http, g.url, connecthttp.WithGRPC()), bearer)
}

// raw is a link that a test plays by hand.
type raw struct {
	devicev1connect.DeviceServiceConnectClientStream
	welcome *devicev1.Welcome
	rest    []*devicev1.ServerFrame // of the last message
}

func (g *gateway) dial(t *testing.T, identity throwbar.Identity, hello *devicev1.Hello) *raw {
	t.Helper()
	stream, err := devicev1connect.NewDeviceServiceClient(g.as(identity.Token)).Connect(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Close() })
	hello.DeviceId = identity.DeviceID
	l := &raw{DeviceServiceConnectClientStream: stream}
	l.say(t, &devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Hello{Hello: hello}})
	if l.welcome = l.hear(t).GetWelcome(); l.welcome == nil {
		t.Fatal("no welcome")
	}
	return l
}

func (r *raw) say(t *testing.T, frame *devicev1.DeviceFrame) {
	t.Helper()
	if err := r.Send(&devicev1.ConnectRequest{Frames: []*devicev1.DeviceFrame{frame}}); err != nil {
		t.Fatal(err)
	}
}

func (r *raw) hear(t *testing.T) *devicev1.ServerFrame {
	t.Helper()
	for len(r.rest) == 0 {
		msg, err := r.Receive()
		if err != nil {
			t.Fatalf("receive: %v", err)
		}
		r.rest = msg.GetFrames()
	}
	frame := r.rest[0]
	r.rest = r.rest[1:]
	return frame
}

// R6: of two hundred watchers one never reads. The others get everything meanwhile, and it is ended.
func TestR06OneSlowWatcherHoldsUpNobody(t *testing.T) {
	t.Parallel()
	const watchers, flood, events = 200, 300, 20
	dir := t.TempDir()
	identities := apptest.Seed(t, dir, 2)
	s := apptest.Start(t, app.Config{DataDir: dir, SendWithin: 10 * time.Second})
	follow := func(g *gateway, device *string) controlv1connect.CommandServiceWatchEventsClientStream {
		stream, err := controlv1connect.NewCommandServiceClient(g.as(s.Owner)).WatchEvents(t.Context(),
			&controlv1.WatchEventsRequest{DeviceId: device})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Receive(); err != nil {
			t.Fatal(err)
		}
		return stream
	}
	devices := s.Devices(t)
	rename := func(device, name string, n int) {
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				req := &controlv1.RenameDeviceRequest{DeviceId: device, Name: name}
				if _, err := devices.RenameDevice(t.Context(), req); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	slow := follow(newGateway(t, s.URL, 64<<10), nil)
	defer slow.Close()
	// More than the slow one's window takes: from here on its handler waits.
	rename(identities[0].DeviceID, strings.Repeat("\U0001F40C", 64), flood)
	var all sync.WaitGroup
	shared := newGateway(t, s.URL, 0)
	for range watchers - 1 {
		stream := follow(shared, &identities[1].DeviceID)
		all.Go(func() {
			defer stream.Close()
			for n := 0; n < events; {
				msg, err := stream.Receive()
				if err != nil {
					t.Errorf("a watcher that reads, after %d events: %v", n, err)
					return
				}
				if msg.GetEvent() != nil {
					n++
				}
			}
		})
	}
	rename(identities[1].DeviceID, "quick", events)
	all.Wait()
	apptest.Eventually(t, "the slow one is ended", func() bool {
		return metric(t, s.Address, s.Owner, `throwbar_event_watches_ended_total{reason="slow"}`) == 1
	})
	for {
		if _, err := slow.Receive(); err != nil {
			t.Logf("the slow one is told: %v", err)
			return
		}
	}
}

// R10: a device whose clock is a day off has the same presence, the same time to live and the same order of commands
// as any other. How far its clock is off is shown.
func TestR10AWrongClockChangesNothing(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"ahead": 24 * time.Hour, "behind": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := prepare(t, unhurried())
			l := newGateway(t, s.URL, 0).dial(t, s.identity, &devicev1.Hello{Time: timestamppb.New(time.Now().Add(skew))})
			res, err := s.client.Devices.ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
			if err != nil {
				t.Fatal(err)
			}
			d := res.GetDevices()[0]
			if off := d.GetClockSkew().AsDuration() - skew; !d.GetOnline() || off.Abs() > time.Minute {
				t.Errorf("online %v, skew %v", d.GetOnline(), d.GetClockSkew().AsDuration())
			}
			if seen := time.Since(d.GetLastSeen().AsTime()); seen < 0 || seen > time.Minute {
				t.Errorf("last seen %v ago", seen)
			}
			first, second := s.dispatch(t, "https://a.example/"), (<-chan *controlv1.DeviceOutcome)(nil)
			c := l.hear(t).GetCommand()
			if left := c.GetTimeLeft().AsDuration(); left <= 0 || left > ttl {
				t.Errorf("time left %v", left)
			}
			second = s.dispatch(t, "https://b.example/")
			for _, c := range []*devicev1.CommandRequest{c, l.hear(t).GetCommand()} {
				l.say(t, &devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Outcome{Outcome: &devicev1.Outcome{
					CommandId: c.GetCommandId(), Outcome: &devicev1.Outcome_Result{Result: &commandv1.Result{
						Kind: &commandv1.Result_OpenTab{OpenTab: &commandv1.OpenTab_Result{Url: c.GetAction().GetOpenTab().GetUrl()}},
					}},
				}}})
			}
			if a, b := <-first, <-second; a.GetResult() == nil || b.GetResult() == nil {
				t.Errorf("outcomes: %v, %v", a, b)
			}
			expires := opening(s.identity.DeviceID, "https://c.example/")
			expires.Ttl = durationpb.New(100 * time.Millisecond)
			out, err := s.client.Commands.Dispatch(t.Context(), expires)
			if err != nil || out.GetOutcomes()[0].GetError().GetCode() != commandv1.ErrorCode_ERROR_CODE_EXPIRED {
				t.Errorf("a command that nobody answers: %v, %v", out, err)
			}
		})
	}
}

// R16: many links share one connection, and one of them is not read. The others and their calls do not notice.
func TestR16AStuckLinkDoesNotStallItsConnection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	identities := apptest.Seed(t, dir, 2)
	cfg := unhurried()
	cfg.DataDir = dir
	s := apptest.Start(t, cfg)
	g := newGateway(t, s.URL, 64<<10)
	g.dial(t, identities[0], &devicev1.Hello{}) // never reads on
	quick := g.dial(t, identities[1], &devicev1.Hello{})
	commands := controlv1connect.NewCommandServiceClient(g.as(s.Owner)) // on the same connection
	big := strings.Repeat("x", 7000)
	for range 100 { // ten times what its window takes
		if _, err := commands.Submit(t.Context(), &controlv1.SubmitRequest{
			DeviceIds: []string{identities[0].DeviceID},
			Action:    &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://a.example/" + big}}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if _, err := commands.Submit(t.Context(), &controlv1.SubmitRequest{
			DeviceIds: []string{identities[1].DeviceID},
			Action:    &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://b.example/"}}},
		}); err != nil {
			t.Fatal(err)
		}
		if quick.hear(t).GetCommand() == nil {
			t.Error("no command")
		}
	}
}

// R17: a device that opens a stream and says nothing is ended by a deadline of the server's own, and leaves nothing.
func TestR17SilenceInsteadOfAHelloEnds(t *testing.T) {
	t.Parallel()
	s := prepare(t, app.Config{})
	var silent sync.WaitGroup
	for range 10 {
		silent.Go(func() {
			stream, err := devicev1connect.NewDeviceServiceClient(newGateway(t, s.URL, 0).as(s.identity.Token)).Connect(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer stream.Close()
			if err := stream.SendHeaders(); err != nil {
				t.Error(err)
			}
			if _, err := stream.Receive(); err == nil {
				t.Error("the link goes on without a Hello")
			}
		})
	}
	silent.Wait()
	apptest.Eventually(t, "nothing is held", func() bool {
		return metric(t, s.Address, s.Owner, `throwbar_http_streams{protocol="HTTP/2.0"}`) == 0
	})
	if n := metric(t, s.Address, s.Owner, `throwbar_links{transport="bidi"}`); n != 0 {
		t.Errorf("%v links", n)
	}
}
