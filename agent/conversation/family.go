package conversation

import (
	"context"
	"log/slog"
	"slices"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// state is what the family of a conversation is told of it. The caller holds mu.
func (t *thread) state() *agentv1.ChildChanged {
	change := &agentv1.ChildChanged{ConversationId: t.ref.ID, Agent: t.c.Agent, Status: t.status()}
	if t.run != nil && len(t.run.approvals) > 0 {
		change.ApprovalId = t.run.approvals[0]
	}
	return change
}

// news is what makes one state of a conversation another one for its family.
func news(change *agentv1.ChildChanged) string {
	return change.GetStatus().String() + " " + change.GetApprovalId()
}

// tellFamily records in the conversation whose agent started this one, and at the root where a person reads, what this
// one does now, unless they know. A conversation is locked before those above it, never after. The caller holds t.mu.
func (b *Book) tellFamily(t *thread) {
	if t.c.Parent == "" || t.quiet {
		return
	}
	ctx := context.Background()
	if t.told == "" {
		t.told = b.lastTold(ctx, t.c)
	}
	change := t.state()
	if news(change) == t.told {
		return
	}
	t.told = news(change)
	var err error
	if change.Handle, err = b.handle(ctx, t.c); err != nil {
		b.config.Log.WarnContext(ctx, "handle cannot be read", slog.String("conversation_id", t.ref.ID), slog.Any("error", err))
	}
	for _, id := range slices.Compact([]string{t.c.Parent, t.c.RootID()}) {
		err := b.locked(ctx, Ref{t.ref.Workspace, id}, func(above *thread) error {
			event := &agentv1.Event{Kind: &agentv1.Event_ChildChanged{ChildChanged: change}}
			return b.commit(ctx, above, Change{Conversation: above.c, Events: []*agentv1.Event{event}})
		})
		if err != nil {
			t.told = "" // it is looked up again, and told, with the next change
			b.config.Log.ErrorContext(ctx, "what a child does cannot be told", slog.String("conversation_id", id), slog.Any("error", err))
		}
	}
}

// maxTold is how far back in the events of a root it is looked up what it was told of one below it. What is further back
// is told once more, which does no harm.
const maxTold = 5000

// lastTold is the last news of a conversation that its root has, which is told after its parent: what a process that is
// gone did not come to tell is told now.
func (b *Book) lastTold(ctx context.Context, c Conversation) string {
	told, n := "", 0
	err := b.backwards(ctx, c.RootID(), func(event *agentv1.Event) bool {
		if change := event.GetChildChanged(); change.GetConversationId() == c.ID {
			told = news(change)
		}
		n++
		return told == "" && n < maxTold
	})
	if err != nil {
		b.config.Log.WarnContext(ctx, "what a root was told cannot be read", slog.String("conversation_id", c.ID), slog.Any("error", err))
	}
	return told
}
