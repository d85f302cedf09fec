package app_test

import (
	"fmt"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// closing is a model that closes so many tabs, from one on.
func closing(device string, from, n int) modeltest.Reply {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s_tb1-%d", device, from+i)
	}
	return modeltest.Use("closeTabs", map[string]any{"tabIds": ids})
}

// An agent that closes a few tabs again and again, and whose server is killed between, is asked about the same one as if
// it had not been: what it did before counts.
func TestAKilledServerKnowsWhatAnActDid(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		r := newResumed(t, cfg.Store.URL, func(device string) []modeltest.Step {
			never := modeltest.Reply{Text: "never said", Hold: make(chan struct{})}
			return []modeltest.Step{
				closing(device, 1, 15), never, closing(device, 16, 5), never, closing(device, 21, 1), modeltest.Text("it was not allowed"),
			}
		})
		r.begin(haltNever, false)
		waits(t, r.server())
		for _, asked := range []int{2, 4} { // the answer to what was closed is under way
			if _, err := r.scripted.Await(t.Context(), asked); err != nil {
				t.Fatal(err)
			}
			r.again(haltNever)
		}
		a := r.waits()
		if !strings.Contains(a.GetReason(), "together with 20") || len(a.GetCalls()) != 1 {
			t.Errorf("it waits because of %q: %v", a.GetReason(), a.GetCalls())
		}
		if n := r.tape.total(); n != 20 {
			t.Errorf("%d tabs are closed while a person is asked", n)
		}
		r.again(haltNever) // what waits is found again, and counts for nothing
		if b := r.waits(); b.GetApprovalId() != a.GetApprovalId() {
			t.Errorf("another approval waits: %v", b)
		}
		r.decide(denial(a, "that is enough"))
		got := r.ended()
		got.check(t, 3, 3)
		results := got.results()
		if last := results[len(results)-1]; last.GetOutcome() != agentv1.Outcome_OUTCOME_DENIED || !strings.Contains(last.GetContent(), "that is enough") {
			t.Errorf("result: %v", last)
		}
		if n := r.tape.total(); n != 20 {
			t.Errorf("%d tabs are closed", n)
		}
	})
}
