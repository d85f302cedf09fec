package app_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	"throwbar.dev/throwbar/catalog/catalogtest"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// brewing is the stranger's command, as a caller with its contract encodes it.
func brewing(t *testing.T) *commandv1.Action {
	t.Helper()
	body := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "tea")
	body = protowire.AppendVarint(protowire.AppendTag(body, 2, protowire.VarintType), 3)
	action := &commandv1.Action{}
	raw := protowire.AppendBytes(protowire.AppendTag(nil, strangerNumber, protowire.BytesType), body)
	if err := proto.Unmarshal(raw, action); err != nil {
		t.Fatal(err)
	}
	return action
}

// askedOfAKettle is a server with the stranger that was asked to brew, and stopped.
func askedOfAKettle(t *testing.T, cfg app.Config) (app.Config, *kettle, string, *controlv1.Approval) {
	t.Helper()
	cfg.DataDir = t.TempDir()
	cfg.Image = strangerImage(t)
	s := apptest.Start(t, cfg)
	k := startKettle(t, s)
	asks(t, s.Client(t, s.Owner, nil))
	res, err := s.Commands(t).Submit(t.Context(), &controlv1.SubmitRequest{DeviceIds: []string{k.id}, Action: brewing(t)})
	if err != nil || res.GetOutcomes()[0].GetApprovalId() == "" {
		t.Fatalf("submit: %v, %v", res, err)
	}
	a, err := approvals(t, s).GetApproval(t.Context(), &controlv1.GetApprovalRequest{ApprovalId: res.GetOutcomes()[0].GetApprovalId()})
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	return cfg, k, res.GetOutcomes()[0].GetCommandId(), a.GetApproval()
}

func decided(t *testing.T, s *apptest.Server, command string, a *controlv1.Approval) (*controlv1.DecisionOutcome, *controlv1.Command) {
	t.Helper()
	list, err := approvals(t, s).ListApprovals(t.Context(), &controlv1.ListApprovalsRequest{})
	if err != nil || len(list.GetApprovals()) != 1 {
		t.Fatalf("it is not shown: %v, %v", list, err)
	}
	out, err := approvals(t, s).Decide(t.Context(), approve(a))
	if err != nil {
		t.Fatal(err)
	}
	var got *controlv1.Command
	apptest.Eventually(t, "the command has ended", func() bool {
		res, err := s.Commands(t).GetCommand(t.Context(), &controlv1.GetCommandRequest{CommandId: command})
		got = res.GetCommand()
		return err == nil && got.GetEndedAt() != nil
	})
	return out.GetOutcomes()[0], got
}

// TestApprovalCase05: the command is gone, or has another name, when somebody says yes. It ends, and says why.
func TestApprovalCase05(t *testing.T) {
	t.Parallel()
	renamed := catalogtest.Command{
		Name: "PourDrink", Member: "pour_drink", Number: strangerNumber, Source: strings.ReplaceAll(strangerProto, "BrewDrink", "PourDrink"),
	}
	for name, image := range map[string][]byte{"gone": nil, "renamed": catalogtest.Image(t, renamed)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, cfg app.Config) {
				cfg, _, command, a := askedOfAKettle(t, cfg)
				cfg.Image = image
				s := apptest.Start(t, cfg)
				out, got := decided(t, s, command, a)
				if got.GetError().GetCode() != commandv1.ErrorCode_ERROR_CODE_UNSUPPORTED || !strings.Contains(got.GetError().GetMessage(), "brewDrink") {
					t.Errorf("ended as %v after %v", got, out)
				}
			})
		})
	}
}

// TestApprovalCase15: what was asked before a restart is decided by a server whose commands have a field more, and runs.
func TestApprovalCase15(t *testing.T) {
	t.Parallel()
	newer := catalogtest.Image(t, catalogtest.Command{
		Name: "BrewDrink", Member: "brew_drink", Number: strangerNumber,
		Source: strings.Replace(strangerProto, "  // What brewing came to.", "  // How hot, in degrees.\n  uint32 heat = 3;\n  // What brewing came to.", 1),
	})
	onEach(t, func(t *testing.T, cfg app.Config) {
		cfg, k, command, a := askedOfAKettle(t, cfg)
		cfg.Image = newer
		s := apptest.Start(t, cfg)
		k.connect(t, s)
		if out, got := decided(t, s, command, a); out.GetError() != nil || got.GetState() != controlv1.State_STATE_SUCCEEDED {
			t.Errorf("%v, ended as %v", out, got)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if want := "\x0a\x03tea\x10\x03"; len(k.brewed) != 1 || string(k.brewed[0]) != want {
			t.Errorf("the device got %q, want %q", k.brewed, want)
		}
		if got, err := approvals(t, s).GetApproval(t.Context(), &controlv1.GetApprovalRequest{ApprovalId: a.GetApprovalId()}); err != nil || got.GetApproval().GetHash() != a.GetHash() {
			t.Errorf("%v, %v", got, err)
		}
	})
}
