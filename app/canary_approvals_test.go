package app_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/catalog"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/storage"
	"throwbar.dev/throwbar/store"
)

// filled is an action whose sensitive fields are canaries.
func (m *mine) filled(member int) *commandv1.Action {
	m.t.Helper()
	entry, _ := m.known.Lookup("keepSecret")
	args := entry.New()
	m.mu.Lock()
	m.canaries.Fill(m.t, args, member, m.known)
	m.mu.Unlock()
	action, err := entry.Wrap(args)
	if err != nil {
		m.t.Fatal(err)
	}
	return action
}

// policies asks about every command from here on, and tries rules that would keep a secret.
func (m *mine) policies() {
	t := m.t
	rules := controlv1connect.NewPolicyServiceClient(m.s.Client(t, m.s.Owner, nil))
	for _, path := range []string{"password", "box.secret", "pins", "vault", "hidden"} {
		_, err := rules.AddRule(t.Context(), &controlv1.AddRuleRequest{Rule: &controlv1.PolicyRule{
			Verdict: controlv1.Verdict_VERDICT_ALLOW, Tool: "keepSecret",
			Arguments: []*controlv1.ArgumentPattern{{Path: path, Pattern: m.canaries.Text()}},
		}})
		m.failed(err)
	}
	asks(t, m.s.Client(t, m.s.Owner, nil))
	explained, err := rules.ExplainPolicy(t.Context(), &controlv1.ExplainPolicyRequest{DeviceIds: []string{m.device}, Action: m.filled(1)})
	if err != nil {
		t.Fatal(err)
	}
	list, err := rules.GetPolicy(t.Context(), &controlv1.GetPolicyRequest{})
	if err != nil {
		t.Fatal(err)
	}
	m.said = append(m.said, everything(t, explained), everything(t, list))
}

// remembered is the way to decide that keeps a rule.
const remembered = 2

// approvals asks for commands with secrets and decides them in every way, while somebody watches.
func (m *mine) approvals() {
	t := m.t
	client := approvalsOf(t, m.s, m.s.Owner)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	watch, err := client.WatchApprovals(ctx, &controlv1.WatchApprovalsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if frame, err := watch.Receive(); err != nil || frame.GetApproval() != nil { // it is in: nothing is missed from here on
		t.Fatal(frame, err)
	}
	const asked = 6
	special := "" // the approval of what will be remembered
	for n := range asked {
		action := m.filled(n)
		if n == 0 {
			entry, _ := m.known.Lookup("keepSecret")
			args := entry.New()
			args.Set(entry.In.Fields().ByName("label"), protoreflect.ValueOfString("remember me"))
			args.Set(entry.In.Fields().ByName("password"), protoreflect.ValueOfString(m.canaries.Text()))
			if action, err = entry.Wrap(args); err != nil {
				t.Fatal(err)
			}
		}
		res, err := m.s.Commands(t).Submit(t.Context(), &controlv1.SubmitRequest{DeviceIds: []string{m.device}, Action: action})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			special = res.GetOutcomes()[0].GetApprovalId()
		}
	}
	list, err := client.ListApprovals(t.Context(), &controlv1.ListApprovalsRequest{})
	if err != nil || len(list.GetApprovals()) != asked {
		t.Fatalf("asked: %v, %v", list, err)
	}
	if shown := everything(t, list); !strings.Contains(shown, catalog.Redacted) {
		t.Error("an approver is not shown that there are secrets")
	} else {
		m.said = append(m.said, shown)
	}
	ways := []int{0, 1, 3, 4, 5}
	for _, a := range list.GetApprovals() { // in whatever order: several may be of one moment
		way := remembered
		if a.GetApprovalId() != special {
			way, ways = ways[0], ways[1:]
		}
		m.decide(client, way, a)
	}
	for n := 0; n < 2*asked-2; { // each pending, and then decided, but for the two that could not be
		frame, err := watch.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if frame.GetApproval() != nil {
			n++
		}
		m.said = append(m.said, everything(t, frame))
	}
}

// decide decides an approval in one of the ways, the last two of which are refused.
func (m *mine) decide(client controlv1connect.ApprovalServiceClient, way int, a *controlv1.Approval) {
	t := m.t
	req := approve(a)
	yes := req.GetDecisions()[0].GetApprove()
	switch way {
	case 1: // what was redacted is put in again
		yes.Edits = []*controlv1.Edit{{CommandId: a.GetCalls()[0].GetCommandId(), Action: m.filled(way)}}
	case remembered:
		yes.Remember = &controlv1.Remember{Arguments: []*controlv1.ArgumentPattern{{Path: "password", Pattern: "*"}}}
	case 3:
		req.Decisions[0].Verdict = &controlv1.Decision_Deny{Deny: &controlv1.Deny{Reason: "no"}}
	case 4:
		yes.Hash = m.canaries.Text()
	case 5:
		yes.Remember = &controlv1.Remember{Arguments: []*controlv1.ArgumentPattern{{Path: "password", Pattern: m.canaries.Text()}}}
	}
	out, err := client.Decide(t.Context(), req)
	if err != nil {
		m.failed(err)
		return
	}
	m.said = append(m.said, everything(t, out))
	if refused := out.GetOutcomes()[0].GetError() != nil; refused != (way > 3) {
		t.Errorf("decision %d: %v", way, out)
	}
	one, err := client.GetApproval(t.Context(), &controlv1.GetApprovalRequest{ApprovalId: a.GetApprovalId()})
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := throwbarCLI(t, m.s, "approvals", "show", a.GetApprovalId())
	if code != 0 {
		t.Errorf("approvals show: %d %s", code, stderr)
	}
	m.said = append(m.said, everything(t, one), stdout, stderr)
}

// agent has a model use the command, and a person approves it: its log must not have what the model made up.
func (m *mine) agent(scripted *modeltest.Server) {
	t := m.t
	args, err := json.Marshal(map[string]any{
		"password": m.canaries.Text(), "pins": []string{m.canaries.Text()}, "deviceId": m.device, "label": "of the agent",
	})
	if err != nil {
		t.Fatal(err)
	}
	scripted.Add(
		modeltest.Use("findTools", map[string]any{"query": "secret"}), // there are more tools than one request describes
		modeltest.Use("keepSecret", string(args)),
		modeltest.Text("kept"),
	)
	agents := agentv1connect.NewAgentServiceClient(m.s.Client(t, m.s.Owner, nil))
	stream, err := agents.Chat(t.Context(), &agentv1.ChatRequest{Message: "keep it"})
	if err != nil {
		t.Fatal(err)
	}
	decided := false
	for {
		frame, err := stream.Receive()
		if err != nil {
			break
		}
		if id := frame.GetEvent().GetApprovalRequested().GetApprovalId(); id != "" && !decided {
			decided = true
			a, err := approvalsOf(t, m.s, m.s.Owner).GetApproval(t.Context(), &controlv1.GetApprovalRequest{ApprovalId: id})
			if err != nil {
				t.Fatal(err)
			}
			m.said = append(m.said, everything(t, a))
			if _, err := approvalsOf(t, m.s, m.s.Owner).Decide(t.Context(), approve(a.GetApproval())); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !decided {
		t.Error("nobody was asked about what the agent does")
	}
}

// swept is what commands and approvals keep of arguments and results when their time is over. All of it is empty.
func (m *mine) swept(databaseURL string, pool func() *sql.DB) {
	t := m.t
	db, err := store.Open(t.Context(), store.Config{Dir: m.s.Dir, URL: databaseURL})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- db.Run(ctx) }()
	adapters := storage.New(db, slog.New(slog.DiscardHandler))
	waiting, err := adapters.Pending(t.Context())
	for _, c := range waiting { // the two whose decision was refused
		c.Record.State, c.Record.EndedAt = dispatch.Cancelled, time.Now()
		err = errors.Join(err, adapters.Finish(t.Context(), []dispatch.End{{Record: c.Record}}))
	}
	err = errors.Join(err, adapters.Sweep(t.Context(), time.Now().Add(time.Hour), time.Time{}))
	cancel()
	if err = errors.Join(err, <-ended, db.Close()); err != nil {
		t.Fatal(err)
	}
	left := pool()
	if n := len(column(t, left, "select approval_id from srv_approval_call")); n < 7 {
		t.Errorf("only %d calls of approvals", n)
	}
	for _, statement := range []string{
		"select proposed from srv_approval_call", "select edited from srv_approval_call", "select effective from srv_approval_call",
		"select action from srv_command", "select result from srv_command", "select error from srv_command",
	} {
		if all := column(t, left, statement); slices.ContainsFunc(all, func(raw []byte) bool { return len(raw) > 0 }) {
			t.Errorf("%s: something is kept", statement)
		}
	}
}
