package cli_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/gen"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

const (
	secret = "fake-owner-secret"
	laptop = "k3v9x2mqta"
	work   = "p4w7h2nnbc"
)

// now is the time of all tests.
func now() time.Time { return time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(now().Add(-d)) }

// fake is a small server: the control and agent services with two devices, one of them offline.
type fake struct {
	*fakeAgent

	url      string
	image    []byte
	rawImage []byte // sent in place of image
	history  []*controlv1.Command
	model    *agentv1.GetModelResponse
	desk     *approvalLog
	approval string // what submitted commands wait for
	undoing  func(context.Context) (*controlv1.UndoResponse, error)

	// What a test wants to happen; set before the first call.
	onDispatch func(*controlv1.DispatchRequest) (*controlv1.DispatchResponse, error)
	onWait     func(context.Context, *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) // in place of onDispatch
	onUndo     func(*controlv1.UndoRequest) (*controlv1.UndoResponse, error)
	watch      func(ctx context.Context, req *controlv1.WatchEventsRequest, send func(*controlv1.WatchEventsResponse) error) error
	expires    time.Duration // of pairing codes
	pending    chan struct{} // closed when a dispatch waits for a device that never answers
	fail       error         // what every call ends with

	policy fakePolicy

	mu        sync.Mutex
	devices   []*controlv1.Device           // guarded by mu
	asked     []*controlv1.DispatchRequest  // guarded by mu
	submitted []*controlv1.SubmitRequest    // guarded by mu
	undone    []*controlv1.UndoRequest      // guarded by mu
	catalogue int                           // guarded by mu; how often descriptors were sent
	revoked   []string                      // guarded by mu
	audits    []*controlv1.ReadAuditRequest // guarded by mu
}

var (
	_ controlv1connect.DevicesServiceHandler   = (*fake)(nil)
	_ controlv1connect.TokenServiceHandler     = (*fake)(nil)
	_ controlv1connect.WorkspaceServiceHandler = (*fake)(nil)
	_ controlv1connect.BrowserServiceHandler   = (*fake)(nil)
	_ controlv1connect.CommandServiceHandler   = (*fake)(nil)
	_ controlv1connect.CatalogueServiceHandler = (*fake)(nil)
	_ agentv1connect.AgentServiceHandler       = (*fake)(nil)
)

// newFake starts a server. change may prepare it.
func newFake(t *testing.T, change ...func(*fake)) *fake {
	t.Helper()
	f := &fake{
		fakeAgent: newFakeAgent(),
		image:     gen.Descriptors,
		model:     &agentv1.GetModelResponse{Model: "small-model"},
		expires:   5 * time.Minute,
		pending:   make(chan struct{}),
		desk:      newLog(),
		devices: []*controlv1.Device{
			{
				DeviceId: laptop, Name: "laptop", Kind: devicev1.Kind_KIND_BROWSER, Agent: "Chromium 156", Platform: "linux",
				Actions: []string{"openTab", "closeTabs", "closeTabsByUrl"},
				Online:  true, LastSeen: ago(0), PairedAt: ago(time.Hour), TabCount: 3, Freshness: &controlv1.Freshness{Live: true},
			},
			{
				DeviceId: work, Name: "work", Kind: devicev1.Kind_KIND_BROWSER, Agent: "Firefox 140", Platform: "macos",
				LastSeen: ago(3 * time.Minute), PairedAt: ago(time.Hour), TabCount: 1,
				Freshness: &controlv1.Freshness{AsOf: ago(3 * time.Minute)},
			},
		},
	}
	for _, c := range change {
		c(f)
	}
	server := connect.NewServer(f.guard)
	controlv1connect.RegisterDevicesServiceHandler(server, f)
	controlv1connect.RegisterTokenServiceHandler(server, f)
	controlv1connect.RegisterWorkspaceServiceHandler(server, f)
	controlv1connect.RegisterBrowserServiceHandler(server, f)
	controlv1connect.RegisterCommandServiceHandler(server, f)
	controlv1connect.RegisterCatalogueServiceHandler(server, f)
	controlv1connect.RegisterAuditServiceHandler(server, f)
	controlv1connect.RegisterApprovalServiceHandler(server, f)
	controlv1connect.RegisterPolicyServiceHandler(server, &f.policy)
	agentv1connect.RegisterAgentServiceHandler(server, f)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, server)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	t.Cleanup(f.close)
	f.url = web.URL
	return f
}

// guard checks the token and lets every call fail where the test wants that.
func (f *fake) guard(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		info, ok := connect.CallInfoForServerContext(ctx)
		if !ok || info.RequestHeader().Get("Authorization") != "Bearer "+secret {
			return connect.NewError(connect.CodeUnauthenticated, "the token is not known")
		}
		if f.fail != nil && !strings.Contains(spec.Procedure, "GetCatalogue") {
			return f.fail
		}
		return next(ctx, spec, stream)
	}
}

func (f *fake) ListDevices(_ context.Context, req *controlv1.ListDevicesRequest) (*controlv1.ListDevicesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := &controlv1.ListDevicesResponse{}
	for i, d := range f.devices { // a page for each, to have pages
		if req.GetPageToken() == "" && i == 0 || req.GetPageToken() == d.GetDeviceId() {
			if !req.GetOnlineOnly() || d.GetOnline() {
				answer.Devices = append(answer.Devices, d)
			}
			if i+1 < len(f.devices) {
				answer.NextPageToken = f.devices[i+1].GetDeviceId()
			}
		}
	}
	return answer, nil
}

func (f *fake) RenameDevice(_ context.Context, req *controlv1.RenameDeviceRequest) (*controlv1.RenameDeviceResponse, error) {
	return &controlv1.RenameDeviceResponse{Device: &controlv1.Device{DeviceId: req.GetDeviceId(), Name: req.GetName()}}, nil
}

func (f *fake) RevokeDevice(_ context.Context, req *controlv1.RevokeDeviceRequest) (*controlv1.RevokeDeviceResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revoked = append(f.revoked, req.GetDeviceId())
	return &controlv1.RevokeDeviceResponse{}, nil
}

func (f *fake) CreatePairingCode(context.Context, *controlv1.CreatePairingCodeRequest) (*controlv1.CreatePairingCodeResponse, error) {
	return &controlv1.CreatePairingCodeResponse{
		Code: "K7QP-M2XW", CheckWord: "maple", ExpiresAt: timestamppb.New(now().Add(f.expires)),
	}, nil
}

func (f *fake) CreateToken(_ context.Context, req *controlv1.CreateTokenRequest) (*controlv1.CreateTokenResponse, error) {
	token := &controlv1.Token{TokenId: "tok-1", Name: req.GetName(), Scope: req.GetScope(), CreatedAt: ago(0)}
	if req.GetTtl() != nil {
		token.ExpiresAt = ago(-req.GetTtl().AsDuration())
	}
	return &controlv1.CreateTokenResponse{
		Token: token, Secret: "new-secret",
	}, nil
}

func (f *fake) ListTokens(context.Context, *controlv1.ListTokensRequest) (*controlv1.ListTokensResponse, error) {
	return &controlv1.ListTokensResponse{Tokens: []*controlv1.Token{
		{TokenId: "tok-0", Name: "owner", Scope: 4, CreatedAt: ago(time.Hour)},
		{TokenId: "tok-7", Name: "ci", Scope: 3, CreatedAt: ago(time.Hour), ExpiresAt: ago(-48 * time.Hour)},
		{TokenId: "tok-8", Name: "hooks", Scope: 6, CreatedAt: ago(time.Hour), ExpiresAt: ago(time.Minute)},
		{TokenId: "tok-9", Name: "laptop", Scope: 5, CreatedAt: ago(time.Minute), DeviceId: laptop},
	}}, nil
}

func (f *fake) RevokeToken(_ context.Context, req *controlv1.RevokeTokenRequest) (*controlv1.RevokeTokenResponse, error) {
	if req.GetTokenId() != "tok-9" {
		return nil, connect.NewError(connect.CodeNotFound, "there is no such token")
	}
	return &controlv1.RevokeTokenResponse{}, nil
}

func tabs() []*commandv1.Tab {
	return []*commandv1.Tab{
		{
			TabId: laptop + "_tb1aa-1", WindowId: laptop + "_wb1aa-7", Url: "https://www.youtube.com/watch?v=1",
			Title: "Cats \x1b[31mlive\u202e", Active: true, Audible: true,
		},
		{TabId: laptop + "_tb1aa-2", WindowId: laptop + "_wb1aa-7", Url: "https://go.dev/doc", Title: "Documentation", Pinned: true},
		{TabId: laptop + "_tb1aa-3", WindowId: laptop + "_wb1aa-7", Url: "https://example.com/", Title: "Example"},
		{TabId: work + "_tc9zz-4", WindowId: work + "_wc9zz-1", Url: "https://mail.example.com/", Title: "受信トレイ"},
	}
}

func states() []*controlv1.DeviceState {
	return []*controlv1.DeviceState{
		{DeviceId: laptop, Name: "laptop", Freshness: &controlv1.Freshness{Live: true}},
		{DeviceId: work, Name: "work", Freshness: &controlv1.Freshness{AsOf: ago(3 * time.Minute)}},
	}
}

// pick selects tabs of a device, with a word, after a number, at most so many.
func pick(device, word string, size uint32, token string) (rows []*commandv1.Tab, total uint32, next string) {
	var all []*commandv1.Tab
	for _, tab := range tabs() {
		if strings.HasPrefix(tab.GetTabId(), device) && strings.Contains(strings.ToLower(tab.GetTitle()+tab.GetUrl()), word) {
			all = append(all, tab)
		}
	}
	from := len(token)
	to := min(len(all), from+int(min(size, 2)))
	if to < len(all) {
		next = strings.Repeat("x", to)
	}
	return all[from:to], uint32(len(all)), next
}

func (f *fake) SearchTabs(_ context.Context, req *controlv1.SearchTabsRequest) (*controlv1.SearchTabsResponse, error) {
	rows, total, next := pick(req.GetDeviceId(), req.GetQuery(), req.GetPageSize(), req.GetPageToken())
	return &controlv1.SearchTabsResponse{Tabs: rows, Devices: states(), Total: total, NextPageToken: next}, nil
}

func (f *fake) ListTabs(_ context.Context, req *controlv1.ListTabsRequest) (*controlv1.ListTabsResponse, error) {
	rows, total, next := pick(req.GetDeviceId(), "", req.GetPageSize(), req.GetPageToken())
	return &controlv1.ListTabsResponse{Tabs: rows, Devices: states(), Total: total, NextPageToken: next}, nil
}

func (f *fake) ListWindows(context.Context, *controlv1.ListWindowsRequest) (*controlv1.ListWindowsResponse, error) {
	return &controlv1.ListWindowsResponse{
		Windows: []*commandv1.Window{
			{WindowId: laptop + "_wb1aa-7", Kind: "normal", Focused: true, State: "maximized", TabCount: 3},
			{WindowId: work + "_wc9zz-1", Kind: "normal", State: "normal", TabCount: 1},
		},
		Devices: states(), NextPageToken: "more",
	}, nil
}

func (f *fake) ListTabGroups(context.Context, *controlv1.ListTabGroupsRequest) (*controlv1.ListTabGroupsResponse, error) {
	return &controlv1.ListTabGroupsResponse{}, nil
}

func (f *fake) CountByDomain(_ context.Context, req *controlv1.CountByDomainRequest) (*controlv1.CountByDomainResponse, error) {
	return &controlv1.CountByDomainResponse{
		Domains: []*controlv1.DomainCount{{Domain: "youtube.com", TabCount: 2}, {Domain: req.GetDeviceId(), TabCount: 1}},
	}, nil
}

func (f *fake) ListSavedTabs(context.Context, *controlv1.ListSavedTabsRequest) (*controlv1.ListSavedTabsResponse, error) {
	return &controlv1.ListSavedTabsResponse{}, nil
}

func (f *fake) GetCatalogue(_ context.Context, req *controlv1.GetCatalogueRequest) (*controlv1.GetCatalogueResponse, error) {
	if f.rawImage != nil {
		return &controlv1.GetCatalogueResponse{Descriptors: f.rawImage}, nil
	}
	sum := sha256.Sum256(f.image)
	answer := &controlv1.GetCatalogueResponse{Digest: hex.EncodeToString(sum[:]), ServerVersion: "v0"}
	if req.GetDigest() != answer.GetDigest() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.catalogue++
		answer.Descriptors = f.image
	}
	return answer, nil
}

func (f *fake) Dispatch(ctx context.Context, req *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
	f.mu.Lock()
	f.asked = append(f.asked, req)
	f.mu.Unlock()
	if f.onWait != nil {
		return f.onWait(ctx, req)
	}
	if f.onDispatch != nil {
		return f.onDispatch(req)
	}
	close(f.pending)
	<-ctx.Done() // a device that never answers
	return nil, connect.NewError(connect.CodeCanceled, "the caller went away")
}

func (f *fake) Submit(_ context.Context, req *controlv1.SubmitRequest) (*controlv1.SubmitResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.submitted = append(f.submitted, req)
	answer := &controlv1.SubmitResponse{}
	for _, id := range req.GetDeviceIds() {
		answer.Outcomes = append(answer.Outcomes, &controlv1.DeviceOutcome{DeviceId: id, DeviceName: nameOf(id), CommandId: "cmd-7", ApprovalId: f.approval})
	}
	return answer, nil
}

func nameOf(id string) string {
	return map[string]string{laptop: "laptop", work: "work"}[id]
}

func commands() []*controlv1.Command {
	return []*controlv1.Command{
		{
			CommandId: "cmd-2", DeviceId: laptop, DeviceName: "laptop", Name: "closeTabs", State: controlv1.State_STATE_SUCCEEDED,
			CreatedAt: ago(2 * time.Minute), EndedAt: ago(2*time.Minute - 300*time.Millisecond), Deadline: ago(time.Minute),
			Principal: "tok-0", Summary: "closedCount=1",
			Action: &commandv1.Action{Kind: &commandv1.Action_CloseTabs{CloseTabs: &commandv1.CloseTabs{TabIds: []string{laptop + "_tb1aa-1"}}}},
			Result: &commandv1.Result{Kind: &commandv1.Result_CloseTabs{CloseTabs: &commandv1.CloseTabs_Result{
				ClosedCount: 1, Items: []*commandv1.ItemOutcome{{Id: laptop + "_tb1aa-1", Status: commandv1.ItemStatus_ITEM_STATUS_OK}},
			}}},
		},
		{
			CommandId: "cmd-1", DeviceId: work, DeviceName: "work", Name: "openTab", State: controlv1.State_STATE_EXPIRED,
			CreatedAt: ago(3 * time.Hour), EndedAt: ago(3*time.Hour - 30*time.Second), Principal: "tok-0",
			Error: &commandv1.CommandError{Code: commandv1.ErrorCode_ERROR_CODE_EXPIRED, Message: "the time to live ran out"},
		},
	}
}

func (f *fake) GetCommand(_ context.Context, req *controlv1.GetCommandRequest) (*controlv1.GetCommandResponse, error) {
	for _, c := range append(commands(), f.history...) {
		if c.GetCommandId() == req.GetCommandId() {
			return &controlv1.GetCommandResponse{Command: c}, nil
		}
	}
	return nil, connect.NewError(connect.CodeNotFound, "there is no such command")
}

func (f *fake) ListCommands(_ context.Context, req *controlv1.ListCommandsRequest) (*controlv1.ListCommandsResponse, error) {
	answer := &controlv1.ListCommandsResponse{}
	for _, c := range append(commands(), f.history...) {
		if (req.GetDeviceId() == "" || req.GetDeviceId() == c.GetDeviceId()) && !req.GetPendingOnly() {
			answer.Commands = append(answer.Commands, c)
		}
	}
	return answer, nil
}

func (f *fake) CancelCommand(context.Context, *controlv1.CancelCommandRequest) (*controlv1.CancelCommandResponse, error) {
	c := commands()[0]
	c.State = controlv1.State_STATE_CANCELLED
	return &controlv1.CancelCommandResponse{Command: c}, nil
}

func (f *fake) WatchEvents(
	ctx context.Context, req *controlv1.WatchEventsRequest, stream controlv1connect.CommandServiceWatchEventsServerStream,
) error {
	if err := stream.SendHeaders(); err != nil {
		return err
	}
	if f.watch != nil {
		return f.watch(ctx, req, stream.Send)
	}
	<-ctx.Done()
	return nil
}

func (f *fake) GetModel(context.Context, *agentv1.GetModelRequest) (*agentv1.GetModelResponse, error) {
	return f.model, nil
}

// dispatched are the requests so far.
func (f *fake) dispatched() []*controlv1.DispatchRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*controlv1.DispatchRequest{}, f.asked...)
}

func (f *fake) DispatchStream(context.Context, controlv1connect.CommandServiceDispatchStreamServerStream) error {
	return connect.NewError(connect.CodeUnimplemented, "not here")
}

func (f *fake) Undo(ctx context.Context, req *controlv1.UndoRequest) (*controlv1.UndoResponse, error) {
	f.mu.Lock()
	f.undone = append(f.undone, req)
	f.mu.Unlock()
	if f.undoing != nil {
		return f.undoing(ctx)
	}
	if f.onUndo == nil {
		return nil, connect.NewError(connect.CodeNotFound, "no command has taken anything away")
	}
	return f.onUndo(req)
}
