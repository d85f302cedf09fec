package rpc_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"throwbar.dev/throwbar/app/apptest"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
)

// rawLink is one link of a device that a test plays by hand, on either transport.
type rawLink interface {
	send(frames ...*devicev1.DeviceFrame) error
	receive() (*devicev1.ServerFrame, error)
	close()
}

// transports are the two roads of a link. Every test of this file's conformance suite runs on both.
func transports() map[string]func(*testing.T, *apptest.Server, string, *devicev1.Hello) rawLink {
	return map[string]func(*testing.T, *apptest.Server, string, *devicev1.Hello) rawLink{
		"Connect":      dialConnect,
		"Watch+Report": dialWatch,
	}
}

type connectLink struct {
	stream devicev1connect.DeviceServiceConnectClientStream
	cancel context.CancelFunc
	rest   []*devicev1.ServerFrame // of the last message; belongs to the goroutine that receives
}

func dialConnect(t *testing.T, s *apptest.Server, token string, hello *devicev1.Hello) rawLink {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stream, err := s.Device(t, token).Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l := &connectLink{stream: stream, cancel: cancel}
	t.Cleanup(l.close)
	err = l.send(&devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Hello{Hello: hello}})
	if err != nil && !errors.Is(err, io.EOF) { // at EOF the server has refused it already: what it says is received
		t.Fatal(err)
	}
	return l
}

func (l *connectLink) send(frames ...*devicev1.DeviceFrame) error {
	for _, f := range frames {
		if err := l.stream.Send(&devicev1.ConnectRequest{Frames: []*devicev1.DeviceFrame{f}}); err != nil {
			return err
		}
	}
	return nil
}

func (l *connectLink) receive() (*devicev1.ServerFrame, error) {
	for len(l.rest) == 0 {
		msg, err := l.stream.Receive()
		if err != nil {
			return nil, err
		}
		l.rest = msg.GetFrames()
	}
	frame := l.rest[0]
	l.rest = l.rest[1:]
	return frame, nil
}

func (l *connectLink) close() {
	_ = l.stream.Close()
	l.cancel()
}

type watchLink struct {
	t      *testing.T
	client devicev1connect.DeviceServiceClient
	stream devicev1connect.DeviceServiceWatchClientStream
	cancel context.CancelFunc
	rest   []*devicev1.ServerFrame // of the last message; belongs to the goroutine that receives

	mu       sync.Mutex
	id       string
	sequence uint64
}

func dialWatch(t *testing.T, s *apptest.Server, token string, hello *devicev1.Hello) rawLink {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	client := s.Device(t, token)
	stream, err := client.Watch(ctx, &devicev1.WatchRequest{Hello: hello})
	if err != nil {
		t.Fatal(err)
	}
	l := &watchLink{t: t, client: client, stream: stream, cancel: cancel}
	t.Cleanup(l.close)
	return l
}

func (l *watchLink) send(frames ...*devicev1.DeviceFrame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sequence++
	req := &devicev1.ReportRequest{LinkId: l.id, Sequence: l.sequence, Frames: frames}
	for range 2 { // a report that is repeated counts once
		res, err := l.client.Report(context.WithoutCancel(l.t.Context()), req)
		if err != nil {
			return err
		}
		if res.GetSequence() != l.sequence {
			l.t.Errorf("report %d was acknowledged as %d", l.sequence, res.GetSequence())
		}
	}
	return nil
}

func (l *watchLink) receive() (*devicev1.ServerFrame, error) {
	for len(l.rest) == 0 {
		msg, err := l.stream.Receive()
		if err != nil {
			return nil, err
		}
		l.rest = msg.GetFrames()
	}
	frame := l.rest[0]
	l.rest = l.rest[1:]
	if w := frame.GetWelcome(); w != nil {
		l.mu.Lock()
		l.id = w.GetLinkId()
		l.mu.Unlock()
	}
	return frame, nil
}

func (l *watchLink) close() {
	_ = l.stream.Close()
	l.cancel()
}

// next is the next frame that is no heartbeat.
func next(t *testing.T, l rawLink) *devicev1.ServerFrame {
	t.Helper()
	for {
		f, err := l.receive()
		if err != nil {
			t.Fatalf("receive: %v", err)
		}
		if f.GetHeartbeat() == nil {
			return f
		}
	}
}

// dial opens a link and takes its Welcome.
func dial(
	t *testing.T, s *apptest.Server, d *devicev1.PairResponse, how func(*testing.T, *apptest.Server, string, *devicev1.Hello) rawLink,
	hello *devicev1.Hello,
) (rawLink, *devicev1.Welcome) {
	t.Helper()
	if hello == nil {
		hello = &devicev1.Hello{}
	}
	hello.DeviceId = d.GetDeviceId()
	if hello.GetBootTag() == "" {
		hello.BootTag = "b1"
	}
	l := how(t, s, d.GetToken(), hello)
	w := next(t, l).GetWelcome()
	if w == nil {
		t.Fatal("the first frame is no Welcome")
	}
	return l, w
}

func tab(device string, n string, url, title string) *commandv1.Tab {
	return &commandv1.Tab{TabId: device + "_tb1-" + n, WindowId: device + "_wb1-1", Url: url, Title: title}
}

func snapshot(device string, tabs ...*commandv1.Tab) *devicev1.DeviceFrame {
	return &devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Snapshot{Snapshot: &devicev1.Snapshot{
		Sequence: 1, Last: true, Tabs: tabs,
		Windows: []*commandv1.Window{{WindowId: device + "_wb1-1", Kind: "normal", Focused: true}},
	}}}
}

func ack(id string) *devicev1.DeviceFrame {
	return &devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Acknowledgement{
		Acknowledgement: &devicev1.Acknowledgement{CommandId: id},
	}}
}

func closedOutcome(id string, tabs ...string) *devicev1.Outcome {
	r := &commandv1.CloseTabs_Result{ClosedCount: uint32(len(tabs))}
	for _, tab := range tabs {
		r.Items = append(r.Items, &commandv1.ItemOutcome{Id: tab, Status: commandv1.ItemStatus_ITEM_STATUS_OK})
	}
	return &devicev1.Outcome{CommandId: id, Outcome: &devicev1.Outcome_Result{
		Result: &commandv1.Result{Kind: &commandv1.Result_CloseTabs{CloseTabs: r}},
	}}
}

func outcome(o *devicev1.Outcome) *devicev1.DeviceFrame {
	return &devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Outcome{Outcome: o}}
}
