package app_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/soak/soaktest"
	"throwbar.dev/throwbar/store"
)

// askingServer is a server whose policy asks about every command, with a device that counts what it executes.
func askingServer(t *testing.T, cfg app.Config) (s *apptest.Server, device string, executed *atomic.Int64) {
	t.Helper()
	cfg.DataDir = t.TempDir()
	identities, err := apptest.Enrol(t.Context(), store.Config{Dir: cfg.DataDir, URL: cfg.Store.URL}, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	s = apptest.Start(t, cfg)
	identity := identities[0]
	identity.Server = s.URL
	executed = &atomic.Int64{}
	runDevice(t, identity, executed)
	apptest.Eventually(t, "the device is there", func() bool {
		res, err := s.Devices(t).ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
		return err == nil && len(res.GetDevices()) == 1 && res.GetDevices()[0].GetOnline()
	})
	asks(t, s.Client(t, s.Owner, nil))
	return s, identity.DeviceID, executed
}

// tokenOf makes a token of a scope.
func tokenOf(t *testing.T, s *apptest.Server, name string, scope optionv1.Scope) string {
	t.Helper()
	res, err := tokens(t, s).CreateToken(t.Context(), &controlv1.CreateTokenRequest{Name: name, Scope: scope})
	if err != nil {
		t.Fatal(err)
	}
	return res.GetSecret()
}

func approvalsOf(t *testing.T, s *apptest.Server, token string) controlv1connect.ApprovalServiceClient {
	t.Helper()
	return controlv1connect.NewApprovalServiceClient(s.Client(t, token, nil))
}

func approve(a *controlv1.Approval) *controlv1.DecideRequest {
	return &controlv1.DecideRequest{Decisions: []*controlv1.Decision{{
		ApprovalId: a.GetApprovalId(), Verdict: &controlv1.Decision_Approve{Approve: &controlv1.Approve{Hash: a.GetHash()}},
	}}}
}

// TestApprovalCase02: an approval is nobody's session. It is asked for on one, seen on a feed that breaks, and decided on a
// third.
func TestApprovalCase02(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		s, device, executed := askingServer(t, cfg)
		asker := controlv1connect.NewCommandServiceClient(s.Client(t, tokenOf(t, s, "asker", optionv1.Scope_SCOPE_OPERATOR), nil))
		res, err := asker.Submit(t.Context(), &controlv1.SubmitRequest{DeviceIds: []string{device}, Action: soaktest.Action(), RequestId: "mine"})
		if err != nil || res.GetOutcomes()[0].GetApprovalId() == "" {
			t.Fatalf("submit: %v, %v", res, err)
		}
		ctx, leave := context.WithCancel(t.Context())
		stream, err := approvalsOf(t, s, tokenOf(t, s, "viewer", optionv1.Scope_SCOPE_VIEWER)).WatchApprovals(ctx, &controlv1.WatchApprovalsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		var seen *controlv1.Approval
		for seen == nil {
			frame, err := stream.Receive()
			if err != nil {
				t.Fatal(err)
			}
			seen = frame.GetApproval()
		}
		leave()
		if seen.GetRequestId() != "mine" || seen.GetState() != controlv1.ApprovalState_APPROVAL_STATE_PENDING || len(seen.GetCalls()) != 1 {
			t.Errorf("seen: %v", seen)
		}
		other := approvalsOf(t, s, tokenOf(t, s, "other", optionv1.Scope_SCOPE_OPERATOR))
		out, err := other.Decide(t.Context(), approve(seen))
		if err != nil || out.GetOutcomes()[0].GetError() != nil {
			t.Fatalf("decide: %v, %v", out, err)
		}
		apptest.Eventually(t, "it has run", func() bool {
			c, err := asker.GetCommand(t.Context(), &controlv1.GetCommandRequest{CommandId: res.GetOutcomes()[0].GetCommandId()})
			return err == nil && c.GetCommand().GetState() == controlv1.State_STATE_SUCCEEDED && c.GetCommand().GetApprovalId() == seen.GetApprovalId()
		})
		if again, err := other.Decide(t.Context(), approve(seen)); err != nil || again.GetOutcomes()[0].GetError() == nil || executed.Load() != 1 {
			t.Errorf("a second yes: %v, %v, %d executions", again, err, executed.Load())
		}
	})
}

// TestNoFieldAssertsAnApproval says in every way that a request has that it is approved, or comes from somewhere else, and
// has fields that do not exist: it is asked about all the same. Operators cannot approve what they asked for, viewers and
// devices nothing.
func TestNoFieldAssertsAnApproval(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		s, device, executed := askingServer(t, cfg)
		secret := tokenOf(t, s, "asker", optionv1.Scope_SCOPE_OPERATOR)
		headers := map[string]string{"X-Approved": "true", "X-Approval-Id": "a", "X-Origin": "interactive", "X-Principal": "owner"}
		asker := controlv1connect.NewCommandServiceClient(s.Client(t, secret, headers))
		req := &controlv1.SubmitRequest{DeviceIds: []string{device}, Action: proto.CloneOf(soaktest.Action()), RequestId: "approved", PlanHash: ""}
		for n := protowire.Number(6); n < 64; n++ { // as a caller that knows more fields than there are
			unknown := protowire.AppendTag(req.ProtoReflect().GetUnknown(), n, protowire.BytesType)
			req.ProtoReflect().SetUnknown(protowire.AppendString(unknown, "approved"))
		}
		res, err := asker.Submit(t.Context(), req)
		for err != nil && len(req.ProtoReflect().GetUnknown()) > 0 { // such a request may be refused as a whole: that is gated too
			req.ProtoReflect().SetUnknown(nil)
			res, err = asker.Submit(t.Context(), req)
		}
		if err != nil || res.GetOutcomes()[0].GetApprovalId() == "" {
			t.Fatalf("submit: %v, %v", res, err)
		}
		got, err := approvalsOf(t, s, s.Owner).GetApproval(t.Context(), &controlv1.GetApprovalRequest{ApprovalId: res.GetOutcomes()[0].GetApprovalId()})
		if err != nil || got.GetApproval().GetOrigin() != controlv1.Origin_ORIGIN_BACKGROUND || got.GetApproval().GetConversationId() != "" {
			t.Errorf("asked as: %v, %v", got, err)
		}
		own, err := approvalsOf(t, s, secret).Decide(t.Context(), approve(got.GetApproval()))
		if err != nil || own.GetOutcomes()[0].GetError().GetCode() != commandv1.ErrorCode_ERROR_CODE_DENIED {
			t.Errorf("their own: %v, %v", own, err)
		}
		for _, scope := range []optionv1.Scope{optionv1.Scope_SCOPE_VIEWER, optionv1.Scope_SCOPE_HOOK} {
			if out, err := approvalsOf(t, s, tokenOf(t, s, scope.String(), scope)).Decide(t.Context(), approve(got.GetApproval())); err == nil {
				t.Errorf("%v decided: %v", scope, out)
			}
		}
		unknown := approve(got.GetApproval())
		unknown.Decisions[0].ApprovalId = "none"
		if out, err := approvalsOf(t, s, s.Owner).Decide(t.Context(), unknown); err != nil || out.GetOutcomes()[0].GetError().GetCode() != commandv1.ErrorCode_ERROR_CODE_NOT_FOUND {
			t.Errorf("an id that is none: %v, %v", out, err)
		}
		if executed.Load() != 0 {
			t.Errorf("%d executions without an approval", executed.Load())
		}
	})
}

// TestAnAttachedCallWaitsForItsApproval: an attached call is asked about, waits, runs, and is remembered.
func TestAnAttachedCallWaitsForItsApproval(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		s, device, executed := askingServer(t, cfg)
		answers := make(chan *controlv1.DispatchResponse, 1)
		go func() {
			res, err := s.Commands(t).Dispatch(t.Context(), &controlv1.DispatchRequest{DeviceIds: []string{device}, Action: soaktest.Action()})
			if err != nil {
				t.Error(err)
			}
			answers <- res
		}()
		approvals := approvalsOf(t, s, s.Owner)
		var pending []*controlv1.Approval
		apptest.Eventually(t, "it is asked", func() bool {
			res, err := approvals.ListApprovals(t.Context(), &controlv1.ListApprovalsRequest{PendingOnly: proto.Bool(true)})
			pending = res.GetApprovals()
			return err == nil && len(pending) == 1
		})
		if pending[0].GetOrigin() != controlv1.Origin_ORIGIN_INTERACTIVE || executed.Load() != 0 {
			t.Errorf("asked: %v", pending)
		}
		remember := approve(pending[0])
		remember.Decisions[0].GetApprove().Remember = &controlv1.Remember{}
		out, err := approvals.Decide(t.Context(), remember)
		if err != nil || out.GetOutcomes()[0].GetError() != nil || out.GetOutcomes()[0].GetApproval().GetRememberedRuleId() == "" {
			t.Fatalf("decide: %v, %v", out, err)
		}
		if res := <-answers; res.GetOutcomes()[0].GetResult() == nil || res.GetOutcomes()[0].GetApprovalId() != pending[0].GetApprovalId() {
			t.Errorf("answer: %v", res)
		}
		res, err := s.Commands(t).Dispatch(t.Context(), &controlv1.DispatchRequest{DeviceIds: []string{device}, Action: soaktest.Action()})
		if err != nil || res.GetOutcomes()[0].GetResult() == nil || res.GetOutcomes()[0].GetApprovalId() != "" {
			t.Errorf("the same again: %v, %v", res, err)
		}
	})
}

// TestApprovalCase09: what is remembered of one call does not cover another one.
func TestApprovalCase09(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		s, device, _ := askingServer(t, cfg)
		approvals := approvalsOf(t, s, s.Owner)
		submit := func(url string) *controlv1.DeviceOutcome {
			t.Helper()
			action := &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: url}}}
			res, err := s.Commands(t).Submit(t.Context(), &controlv1.SubmitRequest{DeviceIds: []string{device}, Action: action})
			if err != nil {
				t.Fatal(err)
			}
			return res.GetOutcomes()[0]
		}
		first := submit("https://web-1.example/restart-nginx")
		got, err := approvals.GetApproval(t.Context(), &controlv1.GetApprovalRequest{ApprovalId: first.GetApprovalId()})
		if err != nil {
			t.Fatal(err)
		}
		yes := approve(got.GetApproval())
		yes.Decisions[0].GetApprove().Remember = &controlv1.Remember{}
		if out, err := approvals.Decide(t.Context(), yes); err != nil || out.GetOutcomes()[0].GetError() != nil {
			t.Fatalf("decide: %v, %v", out, err)
		}
		if again := submit("https://web-1.example/restart-nginx"); again.GetApprovalId() != "" || again.GetError() != nil {
			t.Errorf("the same call: %v", again)
		}
		if other := submit("https://web-1.example/restart-sshd"); other.GetApprovalId() == "" {
			t.Errorf("another call was not asked about: %v", other)
		}
	})
}

// TestARevokedTokenFollowsNoLonger ends the feed of a token that is revoked.
func TestARevokedTokenFollowsNoLonger(t *testing.T) {
	t.Parallel()
	s, _, _ := askingServer(t, app.Config{})
	made, err := tokens(t, s).CreateToken(t.Context(), &controlv1.CreateTokenRequest{Name: "v", Scope: optionv1.Scope_SCOPE_VIEWER})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := approvalsOf(t, s, made.GetSecret()).WatchApprovals(t.Context(), &controlv1.WatchApprovalsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Receive(); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens(t, s).RevokeToken(t.Context(), &controlv1.RevokeTokenRequest{TokenId: made.GetToken().GetTokenId()}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := stream.Receive(); err != nil {
				ended <- err
				return
			}
		}
	}()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case err := <-ended:
		if !strings.Contains(err.Error(), "revoked") && !strings.Contains(err.Error(), http.StatusText(http.StatusUnauthorized)) {
			t.Logf("ended with %v", err)
		}
	case <-timer.C:
		t.Error("the feed of a revoked token goes on")
	}
}
