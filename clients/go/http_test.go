package throwbar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/types/known/durationpb"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
)

// script is a DeviceService over HTTP that does what the test says: each link that a device opens is a memLink.
type script struct {
	devicev1connect.UnimplementedDeviceServiceHandler

	url      string
	links    chan *memLink
	gone     atomic.Int32 // handlers that have ended
	breaking atomic.Int32 // answers to reports that are still to be lost

	mu      sync.Mutex
	watches map[string]*watched // guarded by mu; by link id
}

type watched struct {
	link     *memLink
	sequence uint64
}

func prepare() *script {
	return &script{links: make(chan *memLink, 100), watches: map[string]*watched{}}
}

func (s *script) handler() http.Handler {
	server := connect.NewServer(authenticate)
	devicev1connect.RegisterDeviceServiceHandler(server, s)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, server, connecthttp.WithCompressMinBytes(1024))
	return s.unreliable(mux)
}

func serve(t *testing.T) *script {
	t.Helper()
	s := prepare()
	ts := httptest.NewUnstartedServer(s.handler())
	ts.Config.Protocols = &http.Protocols{}
	ts.Config.Protocols.SetHTTP1(true)
	ts.Config.Protocols.SetUnencryptedHTTP2(true)
	ts.Start()
	t.Cleanup(ts.Close)
	s.url = ts.URL
	return s
}

// unreliable loses answers to reports that were taken in.
func (s *script) unreliable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == devicev1connect.DeviceServiceReportProcedure && s.breaking.Load() > 0 {
			s.breaking.Add(-1)
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

func authenticate(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		info, _ := connect.CallInfoForServerContext(ctx)
		if spec.Procedure != devicev1connect.DeviceServicePairProcedure && info.RequestHeader().Get("Authorization") != "Bearer secret" {
			return connect.NewError(connect.CodeUnauthenticated, "unknown token")
		}
		return next(ctx, spec, stream)
	}
}

func (s *script) Pair(_ context.Context, req *devicev1.PairRequest) (*devicev1.PairResponse, error) {
	if req.GetCode() != "CODE" {
		return nil, connect.NewError(connect.CodeNotFound, "no such code")
	}
	return &devicev1.PairResponse{DeviceId: "d", Token: "secret", CheckWord: req.GetName()}, nil
}

func (s *script) newLink(ctx context.Context, hello *devicev1.Hello) *memLink {
	return &memLink{
		ctx: ctx, hello: hello, down: make(chan *devicev1.ServerFrame, 100), up: make(chan *devicev1.DeviceFrame, 100),
	}
}

func (s *script) Connect(ctx context.Context, stream devicev1connect.DeviceServiceConnectServerStream) error {
	defer s.gone.Add(1)
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	l := s.newLink(ctx, first.GetFrames()[0].GetHello())
	s.links <- l
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			req, err := stream.Receive()
			if err != nil {
				return
			}
			for _, f := range req.GetFrames() {
				l.up <- f
			}
		}
	}()
	for {
		select {
		case f, ok := <-l.down:
			if !ok {
				return l.fail
			}
			if err := stream.Send(&devicev1.ConnectResponse{Frames: []*devicev1.ServerFrame{f}}); err != nil {
				return err
			}
		case <-ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *script) Watch(ctx context.Context, req *devicev1.WatchRequest, stream devicev1connect.DeviceServiceWatchServerStream) error {
	defer s.gone.Add(1)
	l := s.newLink(ctx, req.GetHello())
	s.mu.Lock()
	id := fmt.Sprintf("link%d", len(s.watches))
	s.watches[id] = &watched{link: l}
	s.mu.Unlock()
	s.links <- l
	for {
		select {
		case f, ok := <-l.down:
			if !ok {
				return l.fail
			}
			if w := f.GetWelcome(); w != nil {
				w.LinkId = id
			}
			if err := stream.Send(&devicev1.WatchResponse{Frames: []*devicev1.ServerFrame{f}}); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *script) Report(_ context.Context, req *devicev1.ReportRequest) (*devicev1.ReportResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watches[req.GetLinkId()]
	if w == nil || w.link.ctx.Err() != nil {
		return nil, connect.NewError(connect.CodeNotFound, "no such link")
	}
	if req.GetSequence() == w.sequence+1 {
		w.sequence++
		for _, f := range req.GetFrames() {
			w.link.up <- f
			if f.GetGoodbye() != nil {
				close(w.link.down)
			}
		}
	}
	return &devicev1.ReportResponse{Sequence: w.sequence}, nil
}

// await is the next frame but heartbeats.
func await(t *testing.T, l *memLink) *devicev1.DeviceFrame {
	t.Helper()
	for {
		select {
		case f := <-l.up:
			if f.GetHeartbeat() == nil {
				return f
			}
		case <-time.After(time.Minute):
			t.Fatal("no frame")
		}
	}
}

func dialled(t *testing.T, s *script) *memLink {
	t.Helper()
	select {
	case l := <-s.links:
		return l
	case <-time.After(time.Minute):
		t.Fatal("no link")
		return nil
	}
}

func both(t *testing.T, test func(*testing.T, Transport)) {
	t.Helper()
	for name, transport := range map[string]Transport{"bidi": Bidi, "watch": WatchReport} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, transport)
		})
	}
}

// running starts a device that comes back after half a second.
func running(t *testing.T, s *script, transport Transport, change func(*DeviceConfig)) (stop func(), ended <-chan error) {
	t.Helper()
	cfg := DeviceConfig{
		Identity: Identity{Server: s.url + "/", DeviceID: "d", Token: "secret"}, Handler: &testHandler{},
		Catalogue: catalogue(), Transport: transport, Jitter: func() float64 { return 0 },
	}
	if change != nil {
		change(&cfg)
	}
	d, err := NewDevice(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	return cancel, done
}

func TestBothRoads(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, transport Transport) {
		s := serve(t)
		state := newTestState(5)
		stop, ended := running(t, s, transport, func(c *DeviceConfig) { c.State = state })
		l := dialled(t, s)
		if l.hello.GetDeviceId() != "d" {
			t.Errorf("hello %v", l.hello)
		}
		l.welcome()
		if f := await(t, l); len(f.GetSnapshot().GetTabs()) != 5 {
			t.Fatalf("frame %v", f)
		}
		s.breaking.Store(3) // no effect on bidi
		for i := range 20 {
			id := fmt.Sprint("c", i)
			l.command(id, openTab("https://a.example/"), time.Minute)
			if f := await(t, l); f.GetAcknowledgement().GetCommandId() != id {
				t.Fatalf("frame %v, want the acknowledgement of %s", f, id)
			}
			if f := await(t, l); f.GetOutcome().GetCommandId() != id || f.GetOutcome().GetResult() == nil {
				t.Fatalf("frame %v, want the outcome of %s", f, id)
			}
		}
		stop()
		if f := await(t, l); f.GetGoodbye() == nil {
			t.Errorf("frame %v, want a goodbye", f)
		}
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

func TestBothRoadsComeBack(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, transport Transport) {
		s := serve(t)
		statuses := make(chan Status, 10)
		_, ended := running(t, s, transport, func(c *DeviceConfig) { c.OnStatus = func(st Status) { statuses <- st } })
		l := dialled(t, s)
		l.welcome()
		<-statuses
		l.fail = connect.NewError(connect.CodeUnavailable, "draining")
		close(l.down)
		if st := <-statuses; CodeOf(st.Err) != CodeUnavailable {
			t.Errorf("status %+v", st)
		}
		l = dialled(t, s)
		l.down <- &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Welcome{Welcome: &devicev1.Welcome{
			LinkId: "x", Heartbeat: durationpb.New(100 * time.Millisecond), Lease: durationpb.New(300 * time.Millisecond),
		}}}
		<-statuses
		if st := <-statuses; !errors.Is(st.Err, errSilent) { // the server says nothing more
			t.Errorf("status %+v", st)
		}
		<-l.ctx.Done() // the stream is closed, and the server learns it
		l = dialled(t, s)
		l.welcome()
		l.end(devicev1.EndReason_END_REASON_REPLACED, 0)
		if err := <-ended; !errors.Is(err, ErrReplaced) {
			t.Errorf("Run = %v", err)
		}
	})
}

func TestBothRoadsStayAwayWithABadToken(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, transport Transport) {
		_, ended := running(t, serve(t), transport, func(c *DeviceConfig) { c.Identity.Token = "stolen" })
		if err := <-ended; CodeOf(err) != CodeUnauthenticated {
			t.Errorf("Run = %v", err)
		}
	})
}

func TestBothRoadsWithoutAServer(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, transport Transport) {
		statuses := make(chan Status, 10)
		// The port of a server that was closed may be given to another one.
		stop, ended := running(t, &script{url: "http://127.0.0.1:1"}, transport, func(c *DeviceConfig) {
			c.OnStatus = func(st Status) { statuses <- st }
		})
		for range 2 {
			if st := <-statuses; CodeOf(st.Err) != CodeUnavailable || st.RetryIn < backoffLeast {
				t.Errorf("status %+v", st)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

func TestConflictEndsAsReplaced(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, transport Transport) {
		s := serve(t)
		_, ended := running(t, s, transport, nil)
		l := dialled(t, s)
		l.welcome()
		l.fail = connect.NewError(connect.CodeAborted, "replaced")
		close(l.down)
		if err := <-ended; !errors.Is(err, ErrReplaced) {
			t.Errorf("Run = %v", err)
		}
	})
}

// TestNoGoroutinesAreLeft opens and drops links and then counts. It runs alone.
func TestNoGoroutinesAreLeft(t *testing.T) { //nolint:paralleltest // it counts goroutines
	before := runtime.NumGoroutine()
	for _, transport := range []Transport{Bidi, WatchReport} {
		s := serve(t)
		for range 20 {
			stop, ended := running(t, s, transport, nil)
			l := dialled(t, s)
			l.welcome()
			l.command("c", openTab("a"), time.Minute)
			await(t, l)
			stop()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			stop, ended = running(t, s, transport, nil) // and one that is stopped before its welcome
			dialled(t, s)
			stop()
			<-ended
		}
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 6000 {
		if runtime.NumGoroutine() <= before+10 { // the listeners, and connections of the test servers that idle
			return
		}
		<-tick.C
	}
	buf := make([]byte, 1<<20)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
}

func TestPair(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id, err := Pair(t.Context(), s.url, Pairing{Code: "CODE", Name: "laptop", Kind: devicev1.Kind_KIND_SERVER})
	if err != nil || id.DeviceID != "d" || id.Token != "secret" || id.CheckWord != "laptop" || id.Server != s.url {
		t.Errorf("Pair = %+v, %v", id, err)
	}
	if _, err := Pair(t.Context(), s.url, Pairing{Code: "WRONG"}); CodeOf(err) != CodeNotFound {
		t.Errorf("Pair = %v", err)
	}
	for _, server := range []string{"", "localhost:1", "ftp://x", "http://a:b@c", "http://h?x=1", "://"} {
		if _, err := Pair(t.Context(), server, Pairing{Code: "CODE"}); err == nil {
			t.Errorf("server %q is accepted", server)
		}
	}
}

var _ commandv1.Handler = (*testHandler)(nil)

func TestBothRoadsOverTLS(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, transport Transport) {
		s := prepare()
		ts := httptest.NewUnstartedServer(s.handler())
		ts.EnableHTTP2 = true
		ts.StartTLS()
		t.Cleanup(ts.Close)
		s.url = ts.URL
		client := newLinkHTTP(wire{})
		own, _ := client.Transport.(*http.Transport)
		trusting, _ := ts.Client().Transport.(*http.Transport)
		own.TLSClientConfig = trusting.TLSClientConfig.Clone()
		stop, ended := running(t, s, transport, func(c *DeviceConfig) { c.HTTPClient = client })
		l := dialled(t, s)
		l.welcome()
		l.command("c", openTab("a"), time.Minute)
		await(t, l)
		if f := await(t, l); f.GetOutcome().GetResult() == nil {
			t.Errorf("frame %v", f)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}
