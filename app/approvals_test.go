package app_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	client "throwbar.dev/throwbar/clients/go"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/rpc"
	"throwbar.dev/throwbar/soak/soaktest"
	"throwbar.dev/throwbar/store"
)

// What the parent says to a server in a process of its own.
const (
	victimDir     = "THROWBAR_APPROVALS_DIR"
	victimURL     = "THROWBAR_APPROVALS_URL"
	victimAddress = "THROWBAR_APPROVALS_ADDRESS"
	victimHalt    = "THROWBAR_APPROVALS_HALT"  // where it stands still
	victimSkew    = "THROWBAR_APPROVALS_SKEW"  // how much later it is for it
	victimModel   = "THROWBAR_APPROVALS_MODEL" // address of its model; none if empty
)

// The moments at which a server stands still, to be killed there.
const (
	haltNever    = ""
	haltAsked    = "asked"    // an approval is written, and nobody was told
	haltDecided  = "decided"  // a decision is written, and the start of its call is not
	haltStarting = "starting" // the start is written, and nothing was sent
)

// halting stands still at a moment, for ever, and says so.
type halting struct {
	dispatch.Approvals

	at string
}

func (h halting) stand(at string) {
	if h.at == at {
		fmt.Fprintln(os.Stdout, "halted")
		select {}
	}
}

func (h halting) BeginApproved(ctx context.Context, id string, at time.Time, commands []dispatch.Acceptance) error {
	h.stand(haltDecided)
	err := h.Approvals.BeginApproved(ctx, id, at, commands)
	h.stand(haltStarting)
	return err
}

// TestChildServes is the server to kill.
func TestChildServes(t *testing.T) {
	t.Parallel()
	if os.Getenv(victimDir) == "" {
		t.Skip("only as a child")
	}
	address := os.Getenv(victimAddress)
	var model app.ModelConfig
	if url := os.Getenv(victimModel); url != "" {
		model = app.ModelConfig{Name: "scripted", BaseURL: url, Key: modeltest.Key}
	}
	skew, _ := time.ParseDuration(os.Getenv(victimSkew))
	server, err := app.NewServer(t.Context(), withAgents(app.Config{
		Model:   model,
		Now:     func() time.Time { return time.Now().Add(skew) },
		DataDir: os.Getenv(victimDir), Store: store.Config{URL: os.Getenv(victimURL)},
		Listener: rpc.Listener{Hosts: rpc.LoopbackHosts(address)},
		Parts: app.Parts{Approvals: func(a dispatch.Approvals) dispatch.Approvals {
			return halting{Approvals: a, at: os.Getenv(victimHalt)}
		}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(t.Context(), listener, func() { fmt.Fprintln(os.Stdout, "ready") }); err != nil {
		t.Fatal(err)
	}
}

// victim is a server in a process of its own that is killed and started again.
type victim struct {
	t       *testing.T
	dir     string
	url     string
	address string
	model   string // address of its model; none if empty
	skew    time.Duration
	process *exec.Cmd
	lines   *bufio.Scanner
}

func (v *victim) start(halt string) {
	v.t.Helper()
	self, err := os.Executable()
	if err != nil {
		v.t.Fatal(err)
	}
	v.process = exec.CommandContext(context.WithoutCancel(v.t.Context()), self, "-test.run=^TestChildServes$", "-test.count=1")
	v.process.Env = append(os.Environ(), victimDir+"="+v.dir, victimURL+"="+v.url, victimAddress+"="+v.address, victimHalt+"="+halt, victimSkew+"="+v.skew.String(), victimModel+"="+v.model)
	v.process.Stderr = os.Stderr
	pipe, err := v.process.StdoutPipe()
	if err != nil {
		v.t.Fatal(err)
	}
	if err := v.process.Start(); err != nil {
		v.t.Fatal(err)
	}
	v.lines = bufio.NewScanner(pipe)
	v.await("ready")
}

// await reads what the process says until it says a word.
func (v *victim) await(word string) {
	v.t.Helper()
	for v.lines.Scan() {
		if strings.TrimSpace(v.lines.Text()) == word {
			return
		}
		v.t.Log(v.lines.Text())
	}
	v.t.Fatalf("the server ended before it was %s", word)
}

// kill is kill -9.
func (v *victim) kill() {
	v.t.Helper()
	if err := v.process.Process.Kill(); err != nil {
		v.t.Fatal(err)
	}
	_ = v.process.Wait() // it was killed
}

func (v *victim) caller() *connect.Client {
	s := v.server()
	return s.Client(v.t, s.Owner, nil)
}

// server is the server as its callers see it.
func (v *victim) server() *apptest.Server {
	raw, err := os.ReadFile(filepath.Join(v.dir, "owner.token"))
	if err != nil {
		v.t.Fatal(err)
	}
	return &apptest.Server{URL: "http://" + v.address, Address: v.address, Dir: v.dir, Owner: strings.TrimSpace(string(raw))}
}

// asks makes policy ask about every command, and has what nobody waits for wait.
func asks(t *testing.T, calls *connect.Client) {
	t.Helper()
	rules := controlv1connect.NewPolicyServiceClient(calls)
	_, err := rules.AddRule(t.Context(), &controlv1.AddRuleRequest{Rule: &controlv1.PolicyRule{Verdict: controlv1.Verdict_VERDICT_ASK}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = rules.SetPolicySettings(t.Context(), &controlv1.SetPolicySettingsRequest{
		Settings: &controlv1.PolicySettings{Background: controlv1.Unreachable_UNREACHABLE_WAIT},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestApprovalCase01 kills the server between the ask, the decision and the execution, and starts it again: what was
// approved runs exactly once.
func TestApprovalCase01(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		for _, halt := range []string{haltAsked, haltDecided, haltStarting} {
			t.Run(engine.Name+"-"+halt, func(t *testing.T) {
				t.Parallel()
				testKilledApproval(t, engine.URL(t), halt)
			})
		}
	}
}

func testKilledApproval(t *testing.T, url, halt string) {
	address := apptest.FreeAddress(t)
	v := &victim{t: t, dir: t.TempDir(), url: url, address: address}
	identities, err := apptest.Enrol(t.Context(), store.Config{Dir: v.dir, URL: url}, "http://"+address, 1)
	if err != nil {
		t.Fatal(err)
	}
	executed := &atomic.Int64{}
	runDevice(t, identities[0], executed)
	at := halt
	if halt == haltAsked { // it is killed while it waits
		at = haltNever
	}
	v.start(at)
	t.Cleanup(v.kill)
	calls := v.caller()
	asks(t, calls)
	commands, approvals := controlv1connect.NewCommandServiceClient(calls), controlv1connect.NewApprovalServiceClient(calls)
	var out *controlv1.DeviceOutcome
	apptest.Eventually(t, "the device is there", func() bool {
		res, err := commands.Submit(t.Context(), &controlv1.SubmitRequest{DeviceIds: []string{identities[0].DeviceID}, Action: soaktest.Action()})
		if err != nil || len(res.GetOutcomes()) != 1 {
			return false
		}
		out = res.GetOutcomes()[0]
		return out.GetApprovalId() != ""
	})
	decide := func() {
		t.Helper()
		got, err := approvals.GetApproval(t.Context(), &controlv1.GetApprovalRequest{ApprovalId: out.GetApprovalId()})
		if err != nil {
			t.Fatal(err)
		}
		res, err := approvals.Decide(t.Context(), &controlv1.DecideRequest{Decisions: []*controlv1.Decision{{
			ApprovalId: out.GetApprovalId(),
			Verdict:    &controlv1.Decision_Approve{Approve: &controlv1.Approve{Hash: got.GetApproval().GetHash()}},
		}}})
		if err != nil || res.GetOutcomes()[0].GetError() != nil {
			t.Fatalf("decide: %v, %v", res, err)
		}
	}
	if halt != haltAsked {
		decide()
		v.await("halted")
	}
	if n := executed.Load(); n != 0 {
		t.Errorf("ran %d times before the kill", n)
	}
	v.kill()
	v.start(haltNever)
	if halt == haltAsked {
		calls = v.caller()
		commands, approvals = controlv1connect.NewCommandServiceClient(calls), controlv1connect.NewApprovalServiceClient(calls)
		decide()
	}
	apptest.Eventually(t, "the command has ended", func() bool {
		res, err := commands.GetCommand(t.Context(), &controlv1.GetCommandRequest{CommandId: out.GetCommandId()})
		return err == nil && res.GetCommand().GetState() == controlv1.State_STATE_SUCCEEDED
	})
	if n := executed.Load(); n != 1 {
		t.Errorf("ran %d times, want once", n)
	}
	a, err := approvals.GetApproval(t.Context(), &controlv1.GetApprovalRequest{ApprovalId: out.GetApprovalId()})
	if err != nil || a.GetApproval().GetCalls()[0].GetStartedAt() == nil {
		t.Errorf("the call does not count as started: %v, %v", a, err)
	}
}

// runDevice runs a device that counts what it executes until the test ends.
func runDevice(t *testing.T, identity client.Identity, executed *atomic.Int64) {
	t.Helper()
	device, err := client.NewDevice(client.DeviceConfig{
		Identity: identity, Handler: soaktest.Handler{Device: identity.DeviceID, Executed: executed}, Actions: soaktest.Actions(), BootTag: "b1",
		Jitter: func() float64 { return 0 },
	})
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
