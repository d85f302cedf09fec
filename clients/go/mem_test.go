package throwbar

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"

	"throwbar.dev/throwbar/gen"
)

// catalogue is read once for all tests.
var catalogue = sync.OnceValue(func() *catalog.Catalogue {
	c, err := catalog.New(gen.Descriptors)
	if err != nil {
		panic(err)
	}
	return c
})

// memServer is a server in memory that does what the test says.
type memServer struct {
	links  chan *memLink // those that devices have dialled
	refuse func(*devicev1.Hello) error
}

func newMemServer() *memServer { return &memServer{links: make(chan *memLink, 10_000)} }

func (s *memServer) dial(ctx context.Context, hello *devicev1.Hello) (link, error) {
	if s.refuse != nil {
		if err := s.refuse(hello); err != nil {
			return nil, err
		}
	}
	l := &memLink{
		ctx: ctx, hello: hello, at: time.Now(),
		down: make(chan *devicev1.ServerFrame, 20_000), up: make(chan *devicev1.DeviceFrame, 1000),
	}
	s.links <- l
	return l, nil
}

type memLink struct {
	ctx      context.Context
	hello    *devicev1.Hello
	at       time.Time
	down     chan *devicev1.ServerFrame
	up       chan *devicev1.DeviceFrame
	finished bool
	welcomed bool
	fail     error // what receive gives once down is closed, instead of io.EOF
	deaf     error // what send gives
}

func (l *memLink) send(ctx context.Context, frames []*devicev1.DeviceFrame) error {
	if l.deaf != nil {
		return l.deaf
	}
	for _, f := range frames {
		select {
		case l.up <- f:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (l *memLink) receive() ([]*devicev1.ServerFrame, error) {
	select {
	case f, ok := <-l.down:
		if ok {
			return []*devicev1.ServerFrame{f}, nil
		}
		if l.fail != nil {
			return nil, l.fail
		}
		return nil, io.EOF
	case <-l.ctx.Done():
		return nil, errors.New("the stream was closed")
	}
}

func (l *memLink) finish() error { l.finished = true; return nil }
func (l *memLink) close()        {}

// The server's side of a link.

const (
	testHeartbeat = 10 * time.Second
	testLease     = 30 * time.Second
)

func (l *memLink) welcome(keep ...string) {
	l.welcomed = true
	l.down <- &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Welcome{Welcome: &devicev1.Welcome{
		LinkId: "link", Epoch: 1, Heartbeat: durationpb.New(testHeartbeat), Lease: durationpb.New(testLease),
		Resync: true, KeepCommandIds: keep, Name: "test",
	}}}
}

func (l *memLink) heartbeat(n uint64) {
	l.down <- &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Heartbeat{Heartbeat: &devicev1.ServerHeartbeat{Number: n}}}
}

func (l *memLink) command(id string, action *commandv1.Action, left time.Duration) {
	l.down <- commandFrame(id, action, left)
}

func commandFrame(id string, action *commandv1.Action, left time.Duration) *devicev1.ServerFrame {
	return &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Command{Command: &devicev1.CommandRequest{
		CommandId: id, Action: action, TimeLeft: durationpb.New(left), Attempt: 1,
	}}}
}

func (l *memLink) cancelCommand(id string) {
	l.down <- &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Cancel{Cancel: &devicev1.CancelRequest{CommandId: id}}}
}

func (l *memLink) receipt(ids ...string) {
	l.down <- &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Receipt{Receipt: &devicev1.OutcomeReceipt{CommandIds: ids}}}
}

func (l *memLink) resync() {
	l.down <- &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Resync{Resync: &devicev1.Resync{}}}
}

func (l *memLink) end(reason devicev1.EndReason, retry time.Duration) {
	l.down <- endFrame(reason, retry)
}

func endFrame(reason devicev1.EndReason, retry time.Duration) *devicev1.ServerFrame {
	return &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_End{End: &devicev1.LinkEnd{
		Reason: reason, RetryAfter: durationpb.New(retry),
	}}}
}

// next is the next frame but heartbeats; nil if none comes while everything is idle.
func (l *memLink) next() *devicev1.DeviceFrame {
	for {
		synctest.Wait()
		select {
		case f := <-l.up:
			if f.GetHeartbeat() == nil {
				return f
			}
		default:
			return nil
		}
	}
}

func (l *memLink) wantAck(t *testing.T, id string) {
	t.Helper()
	if f := l.next(); f.GetAcknowledgement().GetCommandId() != id {
		t.Fatalf("frame %v, want the acknowledgement of %s", f, id)
	}
}

func (l *memLink) wantOutcome(t *testing.T, id string) *devicev1.Outcome {
	t.Helper()
	f := l.next()
	if f.GetOutcome().GetCommandId() != id {
		t.Fatalf("frame %v, want the outcome of %s", f, id)
	}
	return f.GetOutcome()
}

func (l *memLink) wantError(t *testing.T, id string, code commandv1.ErrorCode) *commandv1.CommandError {
	t.Helper()
	o := l.wantOutcome(t, id)
	if o.GetError().GetCode() != code {
		t.Fatalf("outcome %v, want %v", o, code)
	}
	return o.GetError()
}

func (l *memLink) wantNothing(t *testing.T) {
	t.Helper()
	if f := l.next(); f != nil {
		t.Fatalf("frame %v, want none", f)
	}
}

// testHandler runs openTab, closeTabs and closeTabsByUrl by functions and counts what runs.
type testHandler struct {
	commandv1.DeclineTabs
	commandv1.DeclineCustom

	mu    sync.Mutex
	runs  map[string]int // guarded by mu; by command id
	open  func(context.Context, *commandv1.OpenTab) (*commandv1.OpenTab_Result, error)
	close func(context.Context, *commandv1.CloseTabs) (*commandv1.CloseTabs_Result, error)
}

func (h *testHandler) count(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs == nil {
		h.runs = map[string]int{}
	}
	h.runs[CallInfoFrom(ctx).CommandID]++
}

func (h *testHandler) ran(id string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[id]
}

func (h *testHandler) OpenTab(ctx context.Context, a *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
	h.count(ctx)
	if h.open == nil {
		return &commandv1.OpenTab_Result{TabId: "d_t-1", Url: a.GetUrl()}, nil
	}
	return h.open(ctx, a)
}

func (h *testHandler) CloseTabs(ctx context.Context, a *commandv1.CloseTabs) (*commandv1.CloseTabs_Result, error) {
	h.count(ctx)
	if h.close == nil {
		return &commandv1.CloseTabs_Result{ClosedCount: uint32(len(a.GetTabIds()))}, nil
	}
	return h.close(ctx, a)
}

func (h *testHandler) ActivateTab(ctx context.Context, _ *commandv1.ActivateTab) (*commandv1.ActivateTab_Result, error) {
	h.count(ctx)
	return &commandv1.ActivateTab_Result{Activated: true}, nil
}

func openTab(url string) *commandv1.Action {
	return &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: url}}}
}

func closeTabs(ids ...string) *commandv1.Action {
	return &commandv1.Action{Kind: &commandv1.Action_CloseTabs{CloseTabs: &commandv1.CloseTabs{TabIds: ids}}}
}

func activateTab(id string) *commandv1.Action {
	return &commandv1.Action{Kind: &commandv1.Action_ActivateTab{ActivateTab: &commandv1.ActivateTab{TabId: id}}}
}

// rig is a device with a server in memory, in a bubble of its own.
type rig struct {
	t       *testing.T
	server  *memServer
	handler *testHandler
	device  *Device
	stop    context.CancelFunc
	ended   chan error
}

// start runs a device; change may alter its configuration first.
func start(t *testing.T, change func(*DeviceConfig)) *rig {
	t.Helper()
	r := &rig{t: t, server: newMemServer(), handler: &testHandler{}, ended: make(chan error, 1)}
	cfg := DeviceConfig{
		Identity: Identity{Server: "http://127.0.0.1:1", DeviceID: "d", Token: "secret"},
		Handler:  r.handler, Catalogue: catalogue(), HTTPClient: noHTTP{},
	}
	if testing.Verbose() && os.Getenv("THROWBAR_TEST_LOG") != "" {
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if change != nil {
		change(&cfg)
	}
	d, err := NewDevice(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d.dialer = r.server
	r.device = d
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	go func() { r.ended <- d.Run(ctx) }()
	return r
}

// link is the next link that the device dials, however long that takes.
func (r *rig) link() *memLink { return <-r.server.links }

// welcomed is the next link, welcomed.
func (r *rig) welcomed(keep ...string) *memLink {
	l := r.link()
	l.welcome(keep...)
	synctest.Wait()
	return l
}

// end stops the device and waits for it.
func (r *rig) end() {
	r.t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		r.t.Fatalf("Run = %v", err)
	}
}
