package facility_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/facility"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// later is what a restart finds: no definitions any more, and a policy that lets nothing through.
func (r *realBench) later(t *testing.T) {
	t.Helper()
	tools, err := tool.NewSet(r.catalogue)
	if err != nil {
		t.Fatal(err)
	}
	r.Facilities = facility.New(facility.Config{
		Catalogue: r.catalogue, Tools: tools, Conversations: r.book, Log: slog.New(slog.DiscardHandler),
		Permit: func(context.Context, turn.FacilityCall) error {
			return &turn.Refusal{Code: commandv1.ErrorCode_ERROR_CODE_DENIED, Message: "a rule denies it"}
		},
	})
}

// A call that is made again after a restart is told what it did before, whatever it would meet now: to say that nothing was
// delivered or started would not be true. What it had not done yet meets what holds now.
func TestACallThatIsMadeAgainTellsWhatItDid(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	to := r.create(t, "Budget")
	call := turn.FacilityCall{Workspace: "w", Conversation: r.from, Root: r.from, TurnID: r.turn, Key: "message"}
	send := &agentv1.SendToConversation{ConversationId: to, Message: "look"}
	if _, err := r.callIn(t, call, send); err != nil {
		t.Fatal(err)
	}
	summons := call
	summons.Key = "agent"
	summon := &agentv1.SummonAgent{Agent: "scout", Task: "look", Background: true}
	if _, err := r.callIn(t, summons, summon); err != nil {
		t.Fatal(err)
	}
	if _, err := r.book.Archive(t.Context(), "w", to); err != nil {
		t.Fatal(err)
	}
	r.later(t)
	call.Again, summons.Again = true, true
	out, err := r.callIn(t, call, send)
	if s, ok := out.(*agentv1.SendToConversation_Result); err != nil || !ok || s.GetDelivery() != agentv1.Delivery_DELIVERY_STARTED || s.GetTitle() != "Budget" {
		t.Errorf("sent: %v, %v", out, err)
	}
	summon.Background = false
	out, err = r.callIn(t, summons, summon)
	if s, ok := out.(*agentv1.SummonAgent_Result); err != nil || !ok || s.GetAnswer() != "answer" || s.GetHandle() == "" {
		t.Errorf("started: %v, %v", out, err)
	}
	call.Key = "another"
	if out, err = r.callIn(t, call, send); err == nil {
		t.Errorf("what was not done before was done: %v", out)
	}
}

// An agent passes on what it has now, not what it was given once: one on its own would keep what was taken from those above.
func TestWhatWasTakenFromThoseAboveIsNotPassedOn(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	child, err := r.book.Summon(t.Context(), conversation.Summons{
		Workspace: "w", From: r.from, Turn: r.turn, Key: "child", Agent: "scout", Task: "hold on",
		Settings: &agentv1.ConversationSettings{Grants: &agentv1.Grants{Only: []string{"listTabs", "closeTabs"}, Extra: []string{"summonAgent", "retrieveAgent"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	less := &agentv1.Grants{Only: []string{"listTabs"}, Extra: []string{"summonAgent", "retrieveAgent"}}
	if _, err := r.book.Update(t.Context(), "w", r.from, conversation.Patch{Grants: less}); err != nil {
		t.Fatal(err)
	}
	events, err := r.book.Events(t.Context(), "w", child.Conversation.ID, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.callIn(t, turn.FacilityCall{
		Workspace: "w", Conversation: child.Conversation.ID, Root: r.from, TurnID: events[0].GetTurnId(), Key: "own",
	}, &agentv1.SummonAgent{Agent: "scout", Task: "look", TopLevel: true})
	s, ok := out.(*agentv1.SummonAgent_Result)
	if err != nil || !ok {
		t.Fatalf("%v, %v", out, err)
	}
	has(t, s.GetNote(), "do without closeTabs")
	row, err := r.book.Get(t.Context(), "w", s.GetHandle())
	if err != nil || !slices.Equal(row.Settings.GetGrants().GetOnly(), []string{"listTabs"}) || row.Parent != "" {
		t.Errorf("%+v, %v", row, err)
	}
}

// An answer of an earlier turn is not passed off as that of one which was stopped or reached a limit.
func TestAnOldAnswerIsSaidToBeOne(t *testing.T) {
	t.Parallel()
	idle := agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE
	for end, want := range map[agentv1.TurnEnd]string{
		agentv1.TurnEnd_TURN_END_ANSWERED: "", agentv1.TurnEnd_TURN_END_STOPPED: "before that", agentv1.TurnEnd_TURN_END_LIMIT: "before that",
	} {
		b := newBench(t, row("abcd1", "abcd", "Budget"))
		b.threads.snapshots["abcd1"] = conversation.Snapshot{
			Conversation: conversation.Conversation{ID: "abcd1", LastEnd: end}, Status: idle, Answer: "old", Answered: true,
		}
		read, ok := b.done(t, &agentv1.ReadConversation{ConversationId: "abcd"}).(*agentv1.ReadConversation_Result)
		collected, is := b.done(t, &agentv1.RetrieveAgent{ConversationId: "abcd"}).(*agentv1.RetrieveAgent_Result)
		if !ok || !is || read.GetAnswer() != "old" || collected.GetAnswer() != "old" {
			t.Fatalf("%v, %v", read, collected)
		}
		for _, note := range []string{read.GetNote(), collected.GetNote()} {
			if has(t, note, want); want == "" && note != "" {
				t.Errorf("%v: %q", end, note)
			}
		}
	}
}
