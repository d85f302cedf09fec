package agent_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"throwbar.dev/throwbar/agent"
	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// A turn whose caller waits for it ends with its server, and so do the agents that it has started, however the server ends:
// when it starts again they do not go on for nobody. One that was begun for itself, and those of a turn that nobody waited
// for, do.
func TestAServerThatStopsLeavesNoAgentToNobody(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name               string
		attached, topLevel bool
		want               agentv1.TurnEnd
	}{
		{"attached", true, false, agentv1.TurnEnd_TURN_END_STOPPED},
		{"on its own", true, true, agentv1.TurnEnd_TURN_END_ANSWERED},
		{"detached", false, false, agentv1.TurnEnd_TURN_END_ANSWERED},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t, nil)
			begun, over := make(chan string, 4), make(chan struct{})
			s.act = func(ctx context.Context, b *conversation.Book, task turn.Task) error {
				if last(task) == "root" && !task.Resumed {
					_, err := b.Summon(ctx, conversation.Summons{
						Workspace: "w", From: task.Conversation, Turn: task.TurnID, Key: task.TurnID, Task: "child", TopLevel: row.topLevel,
					})
					if err != nil {
						return err
					}
				} else {
					begun <- task.Conversation
				}
				select {
				case <-ctx.Done():
				case <-over:
				}
				if ctx.Err() != nil { // one that was stopped before the server goes on only to end
					return ended(ctx, task, agentv1.TurnEnd_TURN_END_STOPPED)
				}
				return yes(ctx, task)
			}
			_, err := s.Deliver(t.Context(), conversation.Delivery{Workspace: "w", Text: "root", Attached: row.attached})
			s.check(err)
			child := <-begun
			s.check(s.stop())
			close(over)
			s.start()
			if got := ends(s.events(child)); len(got) != 1 || got[0] != row.want {
				t.Errorf("the agent ended as %v, want %v", got, row.want)
			}
		})
	}
}

// What became of a message is told also by a server that has no model any more.
func TestWhatWasDeliveredIsKnownWithoutAModel(t *testing.T) {
	t.Parallel()
	s := newShelf(t, echo)
	told := s.say("", "hello")
	s.events(told.Conversation.ID)
	s.check(s.stop())
	s.models = nil
	s.start()
	again, err := s.Deliver(t.Context(), conversation.Delivery{Workspace: "w", MessageID: told.MessageID, Again: true})
	s.check(err)
	if again.TurnID != told.TurnID || again.Delivery != agentv1.Delivery_DELIVERY_STARTED {
		t.Errorf("%+v", again)
	}
}

// brittle is a store that a test breaks.
type brittle struct {
	agent.Store
	dead  atomic.Bool  // nothing is written, and no agents are listed
	blind atomic.Int32 // how often the state of a conversation that has no parent cannot be read
}

var errBrittle = errors.New("the database is gone")

func (b *brittle) Append(ctx context.Context, change conversation.Change) error {
	if b.dead.Load() {
		return errBrittle
	}
	return b.Store.Append(ctx, change)
}

func (b *brittle) Children(ctx context.Context, workspace, parent string) ([]conversation.Conversation, error) {
	if b.dead.Load() {
		return nil, errBrittle
	}
	return b.Store.Children(ctx, workspace, parent)
}

func (b *brittle) State(ctx context.Context, workspace, id string) (conversation.State, error) {
	s, err := b.Store.State(ctx, workspace, id)
	if err == nil && s.Conversation.Parent == "" && b.blind.Add(-1) >= 0 {
		return conversation.State{}, errBrittle
	}
	return s, err
}

// A turn that was lost with its server and its caller takes the agents that it had started along also if it cannot be read
// when the server starts again, but only later.
func TestALostTurnThatIsFoundLateLeavesNoAgentToNobody(t *testing.T) {
	t.Parallel()
	s := newShelf(t, nil)
	s.check(s.stop())
	broken := &brittle{}
	s.wrap = func(kept agent.Store) agent.Store {
		broken.Store = kept
		return broken
	}
	begun := make(chan string, 4)
	s.act = func(ctx context.Context, b *conversation.Book, task turn.Task) error {
		if last(task) == "root" {
			_, err := b.Summon(ctx, conversation.Summons{Workspace: "w", From: task.Conversation, Turn: task.TurnID, Key: task.TurnID, Task: "child"})
			if err != nil {
				return err
			}
		} else {
			begun <- task.Conversation
		}
		<-ctx.Done()
		return ended(ctx, task, agentv1.TurnEnd_TURN_END_STOPPED)
	}
	s.start()
	told, err := s.Deliver(t.Context(), conversation.Delivery{Workspace: "w", Text: "root", Attached: true})
	s.check(err)
	child := <-begun
	broken.dead.Store(true)
	s.check(s.stop())
	broken.dead.Store(false)
	broken.blind.Store(1)
	s.start()
	<-begun // the child goes on, and nobody knows yet that it should not
	if got := ends(s.events(told.Conversation.ID)); len(got) != 1 || got[0] != agentv1.TurnEnd_TURN_END_FAILED {
		t.Errorf("the turn ended as %v", got)
	}
	if got := ends(s.events(child)); len(got) != 1 || got[0] != agentv1.TurnEnd_TURN_END_STOPPED {
		t.Errorf("the agent ended as %v", got)
	}
}
