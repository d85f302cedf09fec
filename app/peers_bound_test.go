package app_test

import (
	"testing"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/app"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// TestAConversationIsWokenAsOftenAsItSays sets the bound of one conversation through the API: it holds over a restart, beside the
// server's own for the other one.
func TestAConversationIsWokenAsOftenAsItSays(t *testing.T) {
	t.Parallel()
	w := newCrew(t, app.Config{})
	w.begin("A", nil, sends)
	w.begin("B", w.forwards("A"), sends)
	w.plan("A", w.forwards("B"))
	bound := func(most uint32) error {
		_, err := w.agents.UpdateConversation(t.Context(), &agentv1.UpdateConversationRequest{
			ConversationId: w.id("B"), Wakes: &agentv1.WakeBound{Most: proto.Uint32(most)},
		})
		return err
	}
	if err := bound(101); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("101 times: %v", err)
	}
	if err := bound(2); err != nil {
		t.Fatal(err)
	}
	w.Stop()
	w.start()
	w.say("A", "say hello to B")
	w.settled()
	w.expect("A", 3, 2) // a person and B, twice
	w.expect("B", 2, 2)
	if codes := w.notices("B"); len(codes) != 1 || codes[0] != "wakes_exhausted" || len(w.queue("B")) != 1 || w.get("B").GetWakesLeft() != 0 {
		t.Errorf("B: notices %q, %d messages wait, %d wakes left", codes, len(w.queue("B")), w.get("B").GetWakesLeft())
	}
	if got := w.get("A").GetWakesLeft(); got != 4 {
		t.Errorf("A has %d wakes left", got)
	}
}
