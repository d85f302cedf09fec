package conversation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/google/uuid"

	"throwbar.dev/throwbar/agent/tool"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// Summon starts another agent: a conversation of its own, and its first turn, which costs the chain behind the turn that
// asks a wake like any other. It does not wait for it. Made again with the same key it starts nothing again.
//
// A child belongs to the conversation that starts it, and is stopped and archived with it. Without a parent it belongs to
// nobody.
func (b *Book) Summon(ctx context.Context, s Summons) (Snapshot, error) {
	if err := b.await(ctx); err != nil {
		return Snapshot{}, err
	}
	d := Delivery{Workspace: s.Workspace, Text: s.Task, MessageID: KeyID(s.Key), From: s.From, Turn: s.Turn}
	b.summoning.Lock() // those that are counted are all there are
	defer b.summoning.Unlock()
	told, known, err := b.before(ctx, d)
	if err != nil {
		return Snapshot{}, err
	}
	if !known {
		if err := b.maySummon(ctx, s); err != nil {
			return Snapshot{}, err
		}
		d.fresh = &Conversation{Title: title(s.Task), Agent: s.Agent, Settings: s.Settings}
		if !s.TopLevel {
			parent, err := b.stored(ctx, s.Workspace, s.From)
			if err != nil {
				return Snapshot{}, err
			}
			d.fresh.Parent, d.fresh.Root = parent.ID, parent.RootID()
		}
		if told, err = b.Deliver(ctx, d); err != nil {
			return Snapshot{}, err
		}
		b.disown(context.WithoutCancel(ctx), s, told.Conversation)
	}
	return b.Snapshot(ctx, s.Workspace, told.Conversation.ID)
}

// disown stops a child that was started by a call which its turn has left behind: when the turn ended because its caller
// went away, the child was not among those that were stopped.
func (b *Book) disown(ctx context.Context, s Summons, child Conversation) {
	if s.TopLevel {
		return
	}
	over := false
	err := b.locked(ctx, Ref{s.Workspace, s.From}, func(t *thread) error {
		over = t.run == nil || t.run.id != s.Turn
		return nil
	})
	if err == nil && over { // on an error the server stops, or the turn goes on later
		_, err = b.haltOne(ctx, child)
	}
	if err != nil && !b.isClosed() {
		b.config.Log.ErrorContext(ctx, "agent cannot be stopped", slog.String("conversation_id", child.ID), slog.Any("error", err))
	}
}

// KeyID makes an id from the key of a call: the same for the same key, and like any other to look at.
func KeyID(key string) string { return uuid.NewHash(sha256.New(), uuid.Nil, []byte(key), 4).String() }

// maySummon refuses an agent that would be too deep or one too many, or for which the chain has nothing left.
func (b *Book) maySummon(ctx context.Context, s Summons) error {
	chain, err := b.config.Store.Chain(ctx, s.Workspace, s.Turn)
	if err != nil {
		return fmt.Errorf("find the turn that asks: %w", err)
	}
	if chain.Left <= 0 {
		return errorf(Exhausted, "no agent was started: one message of a person may set agents to work %d times, and none of them are left, or its work was stopped. "+
			"Do not try it again; tell the user, whose next message makes it possible", b.limits().ChainWakes)
	}
	if s.TopLevel {
		return nil
	}
	c, err := b.stored(ctx, s.Workspace, s.From)
	if err != nil {
		return err
	}
	depth := 1
	for at := c; at.Parent != ""; depth++ {
		if at, err = b.stored(ctx, s.Workspace, at.Parent); err != nil {
			return err
		}
	}
	if most := b.limits().Depth; depth > most {
		return errorf(Exhausted, "no agent was started: agents start agents at most %d deep. Do this yourself, or say that it is not done", most)
	}
	n, err := b.working(ctx, s.Workspace, c.RootID())
	if err != nil {
		return err
	}
	if most := b.limits().Children; n >= most {
		return errorf(Exhausted, "no agent was started: %d of them work for this conversation at once already. Collect one of them first", n)
	}
	return nil
}

// working is how many agents work in all that hangs below a conversation.
func (b *Book) working(ctx context.Context, workspace, id string) (int, error) {
	children, err := b.config.Lists.Children(ctx, workspace, id)
	if err != nil {
		return 0, fmt.Errorf("list agents: %w", err)
	}
	n := 0
	for _, child := range children {
		b.mu.Lock()
		if b.busy[Ref{workspace, child.ID}].status != agentv1.ConversationStatus_CONVERSATION_STATUS_UNSPECIFIED {
			n++
		}
		b.mu.Unlock()
		below, err := b.working(ctx, workspace, child.ID)
		if err != nil {
			return 0, err
		}
		n += below
	}
	return n, nil
}

// stored is a conversation as it is stored.
func (b *Book) stored(ctx context.Context, workspace, id string) (Conversation, error) {
	s, err := b.config.Store.State(ctx, workspace, id)
	if errors.Is(err, ErrNoRow) {
		return Conversation{}, errorf(NotFound, "there is no conversation %q", shown(id))
	}
	if err != nil {
		return Conversation{}, fmt.Errorf("read conversation: %w", err)
	}
	return s.Conversation, nil
}

// Await waits until no turn runs in a conversation that the agent of another one has started, and says what it answered.
// One that works on its own is not waited for.
func (b *Book) Await(ctx context.Context, workspace, starter, id string) (Snapshot, error) {
	c, err := b.stored(ctx, workspace, id)
	if err != nil {
		return Snapshot{}, err
	}
	if err := b.started(ctx, c, starter); err != nil {
		return Snapshot{}, err
	}
	for {
		var ended <-chan struct{}
		err := b.locked(ctx, Ref{workspace, id}, func(t *thread) error {
			if t.run != nil {
				ended = t.run.ended
			}
			return nil
		})
		switch {
		case err != nil:
			return Snapshot{}, err
		case ended == nil:
			return b.Snapshot(ctx, workspace, id)
		case c.Parent == "":
			return Snapshot{}, errorf(Invalid, "this agent works on its own and cannot be collected while it runs: it answers to the user, in its own conversation")
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return Snapshot{}, context.Cause(ctx)
		}
	}
}

// started refuses a conversation that the agent of another one did not start.
func (b *Book) started(ctx context.Context, c Conversation, starter string) error {
	by := c.Parent
	if by == "" && c.Agent != "" {
		first, err := b.config.Lists.Events(ctx, c.ID, 0, 1)
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		if len(first) > 0 {
			by = first[0].GetTurnStarted().GetSender().GetConversationId()
		}
	}
	if by != starter {
		return errorf(Invalid, "this conversation did not start that agent: only the one that did can collect its answer")
	}
	return nil
}

// access is what a conversation's agent may use now: its own grants, and of a child nothing that those above it lack.
func (b *Book) access(ctx context.Context, c Conversation) (tool.Access, error) {
	own := accessOf(c.Settings.GetGrants())
	if c.Parent == "" || b.config.Within == nil {
		return own, nil
	}
	parent, err := b.stored(ctx, c.Workspace, c.Parent)
	if err != nil {
		return tool.Access{}, err
	}
	above, err := b.access(ctx, parent)
	if err != nil {
		return tool.Access{}, err
	}
	return b.config.Within(own, above), nil
}

// leaveNobody stops the agents that a turn has started which was stopped because its caller went away, or the server with
// which its caller goes: nobody would collect what they answer. A stop that somebody asked for has stopped them already.
func (b *Book) leaveNobody(ctx context.Context, c Conversation, r *run) {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrGone) || errors.Is(cause, ErrShutdown) && !r.durable() {
		b.abandon(context.WithoutCancel(ctx), c)
	}
}

// leaveCallers ends the turns that do not outlive the server, and the agents that they have started, before the others are
// stopped: those only pause, and would go on when it starts again.
func (b *Book) leaveCallers() {
	b.mu.Lock()
	runs := slices.Collect(maps.Keys(b.runs))
	b.mu.Unlock()
	runs = slices.DeleteFunc(runs, (*run).durable)
	for _, r := range runs {
		r.stop(ErrShutdown)
	}
	for _, r := range runs {
		<-r.left
	}
}

// abandon stops the agents that the agent of a conversation started, when there is nobody to tell if that fails.
func (b *Book) abandon(ctx context.Context, c Conversation) {
	if _, err := b.haltChildren(ctx, c); err != nil {
		b.config.Log.ErrorContext(ctx, "agents cannot be stopped", slog.String("conversation_id", c.ID), slog.Any("error", err))
	}
}

// putAway closes a conversation, and the agents below it with whoever could collect what they answer: also below one that
// was closed before. Their turns are told to end; it gives those that ran.
func (b *Book) putAway(ctx context.Context, workspace, ref string) (Row, []*run, error) {
	row, err := b.change(ctx, workspace, ref, func(t *thread) (*Change, error) {
		if !t.c.Open {
			return nil, nil
		}
		change := &Change{Conversation: t.c}
		change.Conversation.Open = false
		change.Conversation.Holds |= HeldByStop
		return change, nil
	})
	if err != nil {
		return row, nil, err
	}
	runs, all := b.haltOne(ctx, row.Conversation)
	children, err := b.config.Lists.Children(ctx, workspace, row.ID)
	if err != nil {
		return row, runs, errors.Join(all, fmt.Errorf("list agents: %w", err))
	}
	for _, child := range children {
		_, below, err := b.putAway(ctx, workspace, child.ID)
		runs, all = append(runs, below...), errors.Join(all, err)
	}
	return row, runs, all
}
