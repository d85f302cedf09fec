package conversation

import (
	"context"
	"log/slog"
	"slices"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// news is what the family of a conversation is told when it changes. The caller holds mu.
func (t *thread) news() string {
	approval := ""
	if t.run != nil && len(t.run.approvals) > 0 {
		approval = t.run.approvals[0]
	}
	return t.status().String() + " " + approval
}

// tellFamily records in the conversation whose agent started this one, and at the root where a person reads, what this
// one does now. A conversation is locked before those above it, never after. The caller holds t.mu.
func (b *Book) tellFamily(t *thread) {
	news := t.news()
	if t.c.Parent == "" || news == t.told {
		return
	}
	t.told = news
	change := &agentv1.ChildChanged{ConversationId: t.ref.ID, Agent: t.c.Agent, Status: t.status()}
	if t.run != nil && len(t.run.approvals) > 0 {
		change.ApprovalId = t.run.approvals[0]
	}
	ctx := context.Background()
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
			b.config.Log.ErrorContext(ctx, "what a child does cannot be told", slog.String("conversation_id", id), slog.Any("error", err))
		}
	}
}
