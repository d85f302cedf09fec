package sim

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"throwbar.dev/throwbar/catalog"
	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/gen"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
)

// server pairs devices, mirrors their state, and sends each one command after its first snapshot.
type server struct {
	devicev1connect.UnimplementedDeviceServiceHandler
	controlv1connect.UnimplementedDevicesServiceHandler

	action  func(tab string) *commandv1.Action
	answers chan answer

	mu     sync.Mutex
	paired int // guarded by mu
}

// answer is the outcome of the command, and what the server knew when it came.
type answer struct {
	hello   *devicev1.Hello
	outcome *devicev1.Outcome
	mirror  *mirror
}

func (s *server) CreatePairingCode(context.Context, *controlv1.CreatePairingCodeRequest) (*controlv1.CreatePairingCodeResponse, error) {
	return &controlv1.CreatePairingCodeResponse{Code: "CODE"}, nil
}

func (s *server) Pair(_ context.Context, req *devicev1.PairRequest) (*devicev1.PairResponse, error) {
	if req.GetCode() != "CODE" || req.GetKind() != devicev1.Kind_KIND_BROWSER {
		return nil, connect.NewError(connect.CodeNotFound, "no such code")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paired++
	return &devicev1.PairResponse{DeviceId: fmt.Sprint("dev", s.paired), Token: "token of " + req.GetName()}, nil
}

func (s *server) Connect(_ context.Context, stream devicev1connect.DeviceServiceConnectServerStream) error {
	send := func(f *devicev1.ServerFrame) error {
		return stream.Send(&devicev1.ConnectResponse{Frames: []*devicev1.ServerFrame{f}})
	}
	got := answer{}
	for {
		req, err := stream.Receive()
		if err != nil {
			return err
		}
		for _, f := range req.GetFrames() {
			if err := s.take(f, &got, send); err != nil {
				return err
			}
		}
	}
}

func (s *server) take(f *devicev1.DeviceFrame, got *answer, send func(*devicev1.ServerFrame) error) error {
	switch kind := f.GetKind().(type) {
	case *devicev1.DeviceFrame_Hello:
		got.hello = kind.Hello
		return send(&devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Welcome{Welcome: &devicev1.Welcome{LinkId: "l", Resync: true}}})
	case *devicev1.DeviceFrame_Snapshot:
		got.mirror = newMirror(throwbar.State{Windows: kind.Snapshot.GetWindows(), Groups: kind.Snapshot.GetGroups(), Tabs: kind.Snapshot.GetTabs()})
		return send(&devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Command{Command: &devicev1.CommandRequest{
			CommandId: "c", Action: s.action(kind.Snapshot.GetTabs()[0].GetTabId()), TimeLeft: durationpb.New(time.Minute),
		}}})
	case *devicev1.DeviceFrame_Delta:
		got.mirror.put(throwbar.State{Windows: kind.Delta.GetWindows(), Groups: kind.Delta.GetGroups(), Tabs: kind.Delta.GetTabs()})
		for _, id := range kind.Delta.GetRemoved() {
			delete(got.mirror.tabs, id)
		}
	case *devicev1.DeviceFrame_Outcome:
		got.outcome = kind.Outcome
		s.answers <- *got
	}
	return nil
}

func serve(t *testing.T, s *server) *throwbar.Client {
	t.Helper()
	s.answers = make(chan answer, 1000)
	rpc := connect.NewServer()
	devicev1connect.RegisterDeviceServiceHandler(rpc, s)
	controlv1connect.RegisterDevicesServiceHandler(rpc, s)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, rpc)
	ts := httptest.NewUnstartedServer(mux)
	ts.Config.Protocols = &http.Protocols{}
	ts.Config.Protocols.SetHTTP1(true)
	ts.Config.Protocols.SetUnencryptedHTTP2(true)
	ts.Start()
	t.Cleanup(ts.Close)
	client, err := throwbar.New(throwbar.Config{Server: ts.URL, Token: "owner"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdle)
	return client
}

func TestManySimulatorsInOneProcess(t *testing.T) {
	t.Parallel()
	const many = 40
	s := &server{action: func(tab string) *commandv1.Action {
		return &commandv1.Action{Kind: &commandv1.Action_CloseTabs{CloseTabs: &commandv1.CloseTabs{TabIds: []string{tab}}}}
	}}
	client := serve(t, s)
	catalogue, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	sims := map[string]*Sim{}
	for i := range many {
		identity, err := EnrolWithOwner(ctx, client, fmt.Sprint("sim ", i), "")
		if err != nil {
			t.Fatal(err)
		}
		one, err := New(Config{
			Device:   throwbar.DeviceConfig{Identity: identity, Catalogue: catalogue},
			Contents: Contents{Tabs: 30, Seed: uint64(i)},
		})
		if err != nil {
			t.Fatal(err)
		}
		sims[identity.DeviceID] = one
		all.Go(func() {
			if err := one.Run(ctx); err != nil {
				t.Errorf("Run = %v", err)
			}
		})
	}
	boots := map[string]bool{}
	for range many {
		a := <-s.answers
		if a.outcome.GetResult().GetCloseTabs().GetClosedCount() != 1 {
			t.Errorf("outcome %v", a.outcome)
		}
		a.mirror.compare(t, sims[a.hello.GetDeviceId()].Browser().Look()) // what it did is known with its outcome
		if len(a.hello.GetActions()) != 14 || a.hello.GetAgent() != Agent || a.hello.GetCatalogueDigest() != catalogue.Digest() {
			t.Errorf("hello %v", a.hello)
		}
		boots[a.hello.GetBootTag()] = true
	}
	if len(boots) < many-2 {
		t.Errorf("%d boot tags", len(boots))
	}
	stop()
	all.Wait()
}

func TestEnrolKeepsTheIdentity(t *testing.T) {
	t.Parallel()
	s := &server{}
	client := serve(t, s)
	folder := filepath.Join(t.TempDir(), "state")
	first, err := EnrolWithOwner(t.Context(), client, "Anna's laptop / 2", folder)
	if err != nil {
		t.Fatal(err)
	}
	again, err := EnrolWithOwner(t.Context(), client, "Anna's laptop / 2", folder)
	if err != nil || again.DeviceID != first.DeviceID || again.Token != first.Token {
		t.Errorf("enrolled %v, then %v, %v", first, again, err)
	}
	other, err := EnrolWithOwner(t.Context(), client, "Anna's laptop 2", folder)
	if err != nil || other.DeviceID == first.DeviceID {
		t.Errorf("enrolled %v, %v", other, err)
	}
	path := IdentityPath(folder, client.Server(), "Anna's laptop / 2")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(path) != folder {
		t.Errorf("%s: %v", path, err)
	}
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := EnrolWithOwner(t.Context(), client, "Anna's laptop / 2", folder); err == nil { // never a second device by mistake
		t.Error("a damaged identity is replaced")
	}
	if JournalPath(folder, client.Server(), "a") == JournalPath(folder, client.Server(), "b") {
		t.Error("two simulators share a journal")
	}
}

func TestNewWantsAnIdentity(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil {
		t.Error("no error")
	}
}

// noLink is an HTTP client for a network that is down.
type noLink struct{}

func (noLink) Do(*http.Request) (*http.Response, error) { return nil, context.DeadlineExceeded }

func TestPersonActsAndCommandsTakeTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{
			Device: throwbar.DeviceConfig{
				Identity: throwbar.Identity{Server: "http://h", DeviceID: "dev", Token: "t"}, BootTag: "b00t", HTTPClient: noLink{},
			},
			Activity: time.Second, Delay: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		before := s.Browser().Look()
		time.Sleep(time.Minute)
		synctest.Wait()
		after := newMirror(s.Browser().Look())
		changed := 0
		for _, tab := range before.Tabs {
			if !proto.Equal(after.tabs[tab.GetTabId()], tab) {
				changed++
			}
		}
		if changed == 0 {
			t.Error("nothing happened in a minute")
		}
		select {
		case <-s.Browser().Changed():
		default:
			t.Error("nobody was told")
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
		began := time.Now()
		for range 20 {
			if _, err := s.Browser().GetActiveTab(t.Context(), &commandv1.GetActiveTab{}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took == 0 || took > 20*time.Second {
			t.Errorf("20 commands took %v", took)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		if _, err := s.Browser().GetActiveTab(short, &commandv1.GetActiveTab{}); err == nil {
			t.Error("it ran after its time")
		}
	})
}
