package storage_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/policy"
	"throwbar.dev/throwbar/server/storage"
	"throwbar.dev/throwbar/store"
)

func policyRule(id string) *controlv1.PolicyRule {
	return &controlv1.PolicyRule{
		RuleId: id, Verdict: controlv1.Verdict_VERDICT_DENY, Tool: "closeTabs", Note: "why\x00not", CreatedBy: "owner",
		Arguments: []*controlv1.ArgumentPattern{{Path: "tabIds", Pattern: ""}},
	}
}

// TestPoliciesSurviveARestart: each change raises the version of its own workspace, and is there after a restart.
func TestPoliciesSurviveARestart(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			config := store.Config{Dir: t.TempDir(), URL: engine.URL(t)}
			stop := func(*storage.Storage) {}
			open := func() *storage.Storage {
				s, err := store.Open(t.Context(), config)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
				ended := make(chan error, 1)
				go func() { ended <- s.Run(ctx) }()
				stop = func(*storage.Storage) {
					cancel()
					if err := errors.Join(<-ended, s.Close()); err != nil {
						t.Error(err)
					}
				}
				return storage.New(s, slog.New(slog.DiscardHandler))
			}
			first := open()
			testPolicyChanges(t, first)
			stop(first)
			again := open()
			defer func() { stop(again) }()
			states, err := again.Policies(t.Context())
			if err != nil || len(states) != 2 {
				t.Fatalf("%v, %v", states, err)
			}
			w := states[1]
			if states[0].Workspace != "other" || w.Workspace != "w" || w.Version != 5 || len(w.Rules) != 2 ||
				!proto.Equal(w.Rules[0], policyRule("z")) || w.Rules[1].GetRuleId() != "a" ||
				w.Settings.GetApprovalWithin().AsDuration() != time.Minute {
				t.Errorf("after a restart: %+v", states)
			}
		})
	}
}

func testPolicyChanges(t *testing.T, s *storage.Storage) {
	t.Helper()
	ctx := t.Context()
	by := policy.Change{Workspace: "w", Actor: "owner", At: at(1)}
	check := func(want uint64) func(uint64, error) {
		return func(version uint64, err error) {
			t.Helper()
			if err != nil || version != want {
				t.Errorf("version %d, %v, want %d", version, err, want)
			}
		}
	}
	check(1)(s.AddRule(ctx, by, policyRule("z")))
	check(2)(s.AddRule(ctx, by, policyRule("m")))
	check(3)(s.AddRule(ctx, by, policyRule("a")))
	check(4)(s.SetSettings(ctx, by, &controlv1.PolicySettings{ApprovalWithin: durationpb.New(time.Minute)}))
	check(5)(s.RemoveRule(ctx, by, policyRule("m")))
	other := by
	other.Workspace = "other"
	if _, err := s.RemoveRule(ctx, other, policyRule("z")); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a rule of another workspace: %v", err)
	}
	check(1)(s.AddRule(ctx, other, policyRule("o")))
	if _, err := s.AddRule(ctx, by, policyRule("z")); err == nil {
		t.Error("the same rule twice")
	}
}

func TestAWorkspaceHasSoManyRules(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		ended := make(chan error, policy.MaxRules)
		by := policy.Change{Workspace: "w", Actor: "owner", At: at(1)}
		for n := range policy.MaxRules { // side by side, so that they share transactions
			go func() {
				_, err := s.AddRule(t.Context(), by, policyRule(time.Duration(n).String()))
				ended <- err
			}()
		}
		for range policy.MaxRules {
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.AddRule(t.Context(), by, policyRule("last")); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("one more: %v", err)
		}
		if states, err := s.Policies(t.Context()); err != nil || states[0].Version != policy.MaxRules || len(states[0].Rules) != policy.MaxRules {
			t.Errorf("%d rules, %v", len(states[0].Rules), err)
		}
	})
}
