package app_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	client "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/storetest"
)

const (
	pendingState  = controlv1.ApprovalState_APPROVAL_STATE_PENDING
	approvedState = controlv1.ApprovalState_APPROVAL_STATE_APPROVED
	expiredState  = controlv1.ApprovalState_APPROVAL_STATE_EXPIRED
	voidState     = controlv1.ApprovalState_APPROVAL_STATE_VOID

	codeDenied   = commandv1.ErrorCode_ERROR_CODE_DENIED
	codeRefused  = commandv1.ErrorCode_ERROR_CODE_REFUSED
	codeInvalid  = commandv1.ErrorCode_ERROR_CODE_INVALID
	codeTimedOut = commandv1.ErrorCode_ERROR_CODE_APPROVAL_TIMED_OUT
)

// tape is a device's handler that counts what was opened, by address.
type tape struct {
	commandv1.DeclineTabs
	commandv1.DeclineCustom

	mu     sync.Mutex
	opened map[string]int // guarded by mu
	all    int            // guarded by mu
}

func (p *tape) OpenTab(_ context.Context, a *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened[a.GetUrl()]++
	p.all++
	return &commandv1.OpenTab_Result{Url: a.GetUrl()}, nil
}

func (p *tape) CloseTabs(_ context.Context, a *commandv1.CloseTabs) (*commandv1.CloseTabs_Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all += len(a.GetTabIds())
	res := &commandv1.CloseTabs_Result{ClosedCount: uint32(len(a.GetTabIds()))}
	for _, id := range a.GetTabIds() {
		res.Items = append(res.Items, &commandv1.ItemOutcome{Id: id, Status: commandv1.ItemStatus_ITEM_STATUS_OK})
	}
	return res, nil
}

func (p *tape) times(url string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened[url]
}

func (p *tape) total() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// hooked calls a function when an approval is written and nobody was told, and one when the dispatcher is about to look what
// became of one.
type hooked struct {
	dispatch.Approvals

	asked, looks *atomic.Pointer[func(approval.Approval)]
}

func (h hooked) Ask(ctx context.Context, a *approval.Approval, commands []dispatch.Record) error {
	err := h.Approvals.Ask(ctx, a, commands)
	if f := h.asked.Load(); f != nil && err == nil {
		(*f)(*a)
	}
	return err
}

func (h hooked) GetApproval(ctx context.Context, workspace, id string) (approval.Approval, error) {
	a, err := h.Approvals.GetApproval(ctx, workspace, id)
	if f := h.looks.Load(); f != nil && err == nil && a.State == approval.Approved {
		(*f)(a)
		return h.Approvals.GetApproval(ctx, workspace, id)
	}
	return a, err
}

// court is a whole server that asks about everything, with a device that counts, a clock that jumps, and hooks.
type court struct {
	*apptest.Server
	t            *testing.T // of the whole court: what is started again in one case is there in the next one
	device       string
	tape         *tape
	skew         *atomic.Int64
	asked, looks *atomic.Pointer[func(approval.Approval)]
	commands     controlv1connect.CommandServiceClient
	approvals    controlv1connect.ApprovalServiceClient
	rules        controlv1connect.PolicyServiceClient
	pool         *sql.DB
	proxy        *apptest.Proxy // the device's way to the server, which may get another address
	cfg          app.Config
}

func newCourt(t *testing.T, cfg app.Config) *court {
	t.Helper()
	cfg.DataDir = t.TempDir()
	identities, err := apptest.Enrol(t.Context(), store.Config{Dir: cfg.DataDir, URL: cfg.Store.URL}, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	c := &court{
		t:      t,
		device: identities[0].DeviceID, proxy: apptest.NewProxy(t, ""), tape: &tape{opened: map[string]int{}}, skew: &atomic.Int64{},
		asked: &atomic.Pointer[func(approval.Approval)]{}, looks: &atomic.Pointer[func(approval.Approval)]{},
	}
	cfg.Now = func() time.Time { return time.Now().Add(time.Duration(c.skew.Load())) }
	cfg.Parts.Approvals = func(a dispatch.Approvals) dispatch.Approvals {
		return hooked{Approvals: a, asked: c.asked, looks: c.looks}
	}
	cfg.Listener.Hosts = []string{c.proxy.Address}
	c.cfg = cfg
	c.start(t)
	c.pool = database(t, cfg)
	identity := identities[0]
	identity.Server = "http://" + c.proxy.Address
	runHandler(t, client.DeviceConfig{Identity: identity, Handler: c.tape, Actions: []string{"openTab"}})
	c.online(t)
	asks(t, c.Client(t, c.Owner, nil))
	return c
}

// start starts the server, or starts it again after a Stop.
func (c *court) start(t *testing.T) {
	t.Helper()
	c.Server = apptest.Start(c.t, c.cfg)
	c.proxy.Retarget(c.Address)
	calls := c.Client(t, c.Owner, nil)
	c.commands, c.approvals = controlv1connect.NewCommandServiceClient(calls), controlv1connect.NewApprovalServiceClient(calls)
	c.rules = controlv1connect.NewPolicyServiceClient(calls)
}

func (c *court) online(t *testing.T) {
	t.Helper()
	apptest.Eventually(t, "the device is there", func() bool {
		res, err := c.Devices(t).ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
		return err == nil && len(res.GetDevices()) > 0 && res.GetDevices()[0].GetOnline()
	})
}

// runHandler runs a device until the test ends.
func runHandler(t *testing.T, cfg client.DeviceConfig) {
	t.Helper()
	cfg.BootTag, cfg.Jitter = "b1", func() float64 { return 0 }
	device, err := client.NewDevice(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- device.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

func opens(url string) *commandv1.Action {
	return &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: url}}}
}

// submit asks about a command and gives its id and its approval.
func (c *court) submit(t *testing.T, action *commandv1.Action) (command string, a *controlv1.Approval) {
	t.Helper()
	res, err := c.commands.Submit(t.Context(), &controlv1.SubmitRequest{DeviceIds: []string{c.device}, Action: action})
	if err != nil || res.GetOutcomes()[0].GetApprovalId() == "" {
		t.Fatalf("submit: %v, %v", res, err)
	}
	return res.GetOutcomes()[0].GetCommandId(), c.approval(t, res.GetOutcomes()[0].GetApprovalId())
}

func (c *court) approval(t *testing.T, id string) *controlv1.Approval {
	t.Helper()
	got, err := c.approvals.GetApproval(t.Context(), &controlv1.GetApprovalRequest{ApprovalId: id})
	if err != nil {
		t.Fatal(err)
	}
	return got.GetApproval()
}

// decide takes one decision.
func (c *court) decide(t *testing.T, req *controlv1.DecideRequest) *controlv1.DecisionOutcome {
	t.Helper()
	out, err := c.approvals.Decide(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return out.GetOutcomes()[0]
}

// end waits for the end of a command.
func (c *court) end(t *testing.T, id string) *controlv1.Command {
	t.Helper()
	var got *controlv1.Command
	apptest.Eventually(t, "the command has ended", func() bool {
		res, err := c.commands.GetCommand(t.Context(), &controlv1.GetCommandRequest{CommandId: id})
		got = res.GetCommand()
		return err == nil && got.GetEndedAt() != nil
	})
	return got
}

// rule changes the policy by one more rule.
func (c *court) rule(t *testing.T, verdict controlv1.Verdict, command string) (id string) {
	t.Helper()
	res, err := c.rules.AddRule(t.Context(), &controlv1.AddRuleRequest{Rule: &controlv1.PolicyRule{Verdict: verdict, Tool: command}})
	if err != nil {
		t.Fatal(err)
	}
	return res.GetRule().GetRuleId()
}

func denial(a *controlv1.Approval, why string) *controlv1.DecideRequest {
	return &controlv1.DecideRequest{Decisions: []*controlv1.Decision{{
		ApprovalId: a.GetApprovalId(), Verdict: &controlv1.Decision_Deny{Deny: &controlv1.Deny{Reason: why}},
	}}}
}

func edit(a *controlv1.Approval, command string, action *commandv1.Action) *controlv1.DecideRequest {
	req := approve(a)
	req.Decisions[0].GetApprove().Edits = []*controlv1.Edit{{CommandId: command, Action: action}}
	return req
}

// database is a server's, as an attacker has it who can write to it.
func database(t *testing.T, cfg app.Config) *sql.DB {
	t.Helper()
	if cfg.Store.URL != "" {
		return storetest.Open(t, cfg.Store.URL)
	}
	pool, err := sql.Open("sqlite3", filepath.Join(cfg.DataDir, "throwbar.db")+"?_busy_timeout=60000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// row reads one number.
func (c *court) row(t *testing.T, query string, args ...any) (n int64) {
	t.Helper()
	if err := c.pool.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
