package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/types/known/durationpb"

	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
)

// deviceFake is the side of a server that devices dial.
type deviceFake struct {
	mu      sync.Mutex
	paired  []string       // guarded by mu; names
	revoked bool           // guarded by mu
	tabs    map[string]int // guarded by mu; by device
}

var _ devicev1connect.DeviceServiceHandler = (*deviceFake)(nil)

func (d *deviceFake) Pair(_ context.Context, req *devicev1.PairRequest) (*devicev1.PairResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paired = append(d.paired, req.GetName())
	return &devicev1.PairResponse{DeviceId: fmt.Sprintf("dev%d", len(d.paired)), Token: "device-token"}, nil
}

func (d *deviceFake) Connect(_ context.Context, stream devicev1connect.DeviceServiceConnectServerStream) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	d.mu.Lock()
	revoked := d.revoked
	d.mu.Unlock()
	if revoked {
		return connect.NewError(connect.CodeUnauthenticated, "the device was revoked")
	}
	id := first.GetFrames()[0].GetHello().GetDeviceId()
	if err := stream.Send(&devicev1.ConnectResponse{Frames: []*devicev1.ServerFrame{{Kind: &devicev1.ServerFrame_Welcome{
		Welcome: &devicev1.Welcome{
			LinkId: "link", Epoch: 1, Heartbeat: durationpb.New(15e9), Lease: durationpb.New(45e9), Resync: true, Name: "the " + id,
		},
	}}}}); err != nil {
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
		d.mu.Lock()
		for _, frame := range req.GetFrames() {
			d.tabs[id] += len(frame.GetSnapshot().GetTabs())
		}
		d.mu.Unlock()
	}
}

func (d *deviceFake) Watch(context.Context, *devicev1.WatchRequest, devicev1connect.DeviceServiceWatchServerStream) error {
	return connect.NewError(connect.CodeUnimplemented, "not here")
}

func (d *deviceFake) Report(context.Context, *devicev1.ReportRequest) (*devicev1.ReportResponse, error) {
	return nil, connect.NewError(connect.CodeUnimplemented, "not here")
}

// newDeviceFake starts a server that devices can dial.
func newDeviceFake(t *testing.T) (*deviceFake, string) {
	t.Helper()
	d, f := &deviceFake{tabs: map[string]int{}}, &fake{}
	owner, open := connect.NewServer(f.guard), connect.NewServer()
	controlv1connect.RegisterDevicesServiceHandler(owner, f)
	devicev1connect.RegisterDeviceServiceHandler(open, d)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, owner)
	connecthttp.Mount(mux, open)
	web := httptest.NewUnstartedServer(mux)
	web.Config.Protocols = &http.Protocols{}
	web.Config.Protocols.SetHTTP1(true)
	web.Config.Protocols.SetUnencryptedHTTP2(true)
	web.Start()
	t.Cleanup(web.Close)
	return d, web.URL
}

func TestSim(t *testing.T) {
	t.Parallel()
	d, server := newDeviceFake(t)
	folder := filepath.Join(t.TempDir(), "state")
	words := []string{"sim", "--name", "laptop", "--count", "1", "--tabs", "7", "--windows", "1", "--state-dir", folder}
	for range 2 { // the second time they are the same devices
		e := untilTimes(t, run{server: server, args: words}, "online with 7 tabs", 2)
		e.check(t, 0, "is online with 7 tabs\n")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if got := strings.Join(d.paired, ","); got != "laptop,sim-1" {
		t.Errorf("paired: %s", got)
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) == 0 {
		t.Errorf("state: %v, %v", files, err)
	}
}

func TestSimThatIsRevoked(t *testing.T) {
	t.Parallel()
	d, server := newDeviceFake(t)
	d.revoked = true
	e := do(t, run{server: server, args: []string{"sim", "--name", "laptop"}})
	e.check(t, 6, "the server does not know the browser laptop any more: remove ")
	e = until(t, run{server: newFakeURL(t), args: []string{"sim", "--name", "x", "-o", "json"}}, `{"deviceId":"dev1","name":"x","online":true}`)
	e.check(t, 0)
}

func newFakeURL(t *testing.T) string {
	t.Helper()
	_, server := newDeviceFake(t)
	return server
}

func TestSimFlags(t *testing.T) {
	t.Parallel()
	for _, words := range []string{
		"sim --count -1", "sim --tabs 0", "sim --tabs 1 --windows 2", "sim --name a --name a", "sim --name= ", "sim --activity -1s",
	} {
		do(t, run{args: strings.Fields(words)}).check(t, 2)
	}
}

func (d *deviceFake) RotateToken(context.Context, *devicev1.RotateTokenRequest) (*devicev1.RotateTokenResponse, error) {
	return nil, connect.NewError(connect.CodeUnimplemented, "this fake rotates no token")
}
