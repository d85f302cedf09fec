package facility_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/facility"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// Withdraw finds nothing that was begun.
func (u *undoer) Withdraw(context.Context, facility.Undo, string) (*controlv1.UndoResponse, error) {
	return nil, nil
}

// forgetful are conversations that cannot say for a moment what was delivered before.
type forgetful struct{ *conversation.Book }

func (f forgetful) Deliver(ctx context.Context, d conversation.Delivery) (conversation.Delivered, error) {
	if d.Again {
		return conversation.Delivered{}, errors.New("the database is gone")
	}
	return f.Book.Deliver(ctx, d)
}

// Where it cannot be read what a call did before a restart, the answer does not say that nothing was done, and nothing is.
func TestACallThatCannotSayWhatItDidSaysSo(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	to := r.create(t, "Budget")
	call := turn.FacilityCall{Workspace: "w", Conversation: r.from, Root: r.from, TurnID: r.turn, Key: "message"}
	send := &agentv1.SendToConversation{ConversationId: to, Message: "look"}
	if _, err := r.callIn(t, call, send); err != nil {
		t.Fatal(err)
	}
	if _, err := r.book.Archive(t.Context(), "w", to); err != nil {
		t.Fatal(err)
	}
	tools, err := tool.NewSet(r.catalogue)
	if err != nil {
		t.Fatal(err)
	}
	r.Facilities = facility.New(facility.Config{
		Catalogue: r.catalogue, Tools: tools, Conversations: forgetful{r.book}, Definitions: definitions(), Log: slog.New(slog.DiscardHandler),
	})
	call.Again = true
	for _, in := range []proto.Message{send, &agentv1.SummonAgent{Agent: "scout", Task: "look", Background: true}} {
		_, err = r.callIn(t, call, in)
		var refusal *turn.Refusal
		if !errors.As(err, &refusal) {
			t.Fatalf("%v", err)
		}
		has(t, refusal.Message, "may have been done")
	}
}
