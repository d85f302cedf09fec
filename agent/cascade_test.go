package agent_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"throwbar.dev/throwbar/agent"
	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// hooked is a store that tells a test of what is about to be read or was just stored.
type hooked struct {
	agent.Store
	mu       sync.Mutex
	appended func(conversation.Change) // guarded by mu; nil if nothing
	reads    func()                    // guarded by mu; before the events of a conversation are read backwards
	appends  func(conversation.Change) // guarded by mu
	listed   func()                    // guarded by mu; after what a conversation has started was listed
}

func (h *hooked) Children(ctx context.Context, workspace, parent string) ([]conversation.Conversation, error) {
	all, err := h.Store.Children(ctx, workspace, parent)
	h.mu.Lock()
	tell := h.listed
	h.mu.Unlock()
	if tell != nil {
		tell()
	}
	return all, err
}

func (h *hooked) Append(ctx context.Context, change conversation.Change) error {
	h.mu.Lock()
	first, tell := h.appends, h.appended
	h.mu.Unlock()
	if first != nil {
		first(change)
	}
	err := h.Store.Append(ctx, change)
	if tell != nil {
		tell(change)
	}
	return err
}

func (h *hooked) EventsBefore(ctx context.Context, id string, before uint64, limit int) ([]*agentv1.Event, error) {
	h.mu.Lock()
	tell := h.reads
	h.reads = nil
	h.mu.Unlock()
	if tell != nil {
		tell()
	}
	return h.Store.EventsBefore(ctx, id, before, limit)
}

// hook puts a hooked store under the shelf.
func (s *shelf) hook() *hooked {
	s.t.Helper()
	h := &hooked{}
	s.check(s.stop())
	s.wrap = func(kept agent.Store) agent.Store {
		h.Store = kept
		return h
	}
	s.start()
	return h
}

// crew is a person's conversation whose agent has started one in the background, which has started one itself. All three
// work until they are stopped, or until over is closed.
type crew struct {
	*shelf
	root, child, grandchild string
	over                    chan struct{}
}

func newCrew(t *testing.T) *crew {
	t.Helper()
	c := &crew{over: make(chan struct{})}
	begun := make(chan string)
	c.shelf = newShelf(t, nil)
	c.act = func(ctx context.Context, b *conversation.Book, task turn.Task) error {
		below := map[string]string{"root": "child", "child": "grandchild"}[name(last(task))]
		if below != "" {
			_, err := b.Summon(ctx, conversation.Summons{Workspace: "w", From: task.Conversation, Turn: task.TurnID, Key: task.TurnID, Task: below})
			if err != nil && ctx.Err() == nil {
				return err
			}
		}
		select {
		case begun <- task.Conversation:
		case <-ctx.Done():
		case <-c.over:
		}
		select {
		case <-ctx.Done():
		case <-c.over:
		}
		if ctx.Err() != nil {
			return ended(ctx, task, agentv1.TurnEnd_TURN_END_STOPPED)
		}
		return yes(ctx, task)
	}
	c.root = c.say("", "root").Conversation.ID
	for range 3 {
		row := c.get(<-begun)
		switch row.Title {
		case "child":
			c.child = row.ID
		case "grandchild":
			c.grandchild = row.ID
		}
	}
	return c
}

// name is what a crew's agent was told to be, also where that is quoted.
func name(text string) string {
	for _, n := range []string{"grandchild", "child", "root"} {
		if strings.Contains(text, n) {
			return n
		}
	}
	return ""
}

func (c *crew) expectEnds(want agentv1.TurnEnd) {
	c.t.Helper()
	for _, id := range []string{c.root, c.child, c.grandchild} {
		if got := ends(c.events(id)); len(got) != 1 || got[0] != want {
			c.t.Errorf("%s ended as %v, want %v", c.get(id).Title, got, want)
		}
	}
}

// What a caller asked for is done though it went away right after the first turn was told: agents below do not go on.
func TestAStopReachesTheAgentsBelowWithoutItsCaller(t *testing.T) {
	t.Parallel()
	c := newCrew(t)
	h := c.hook() // all three go on
	ctx, cancel := context.WithCancel(t.Context())
	h.mu.Lock()
	h.appended = func(change conversation.Change) {
		if change.Close != "" {
			cancel()
		}
	}
	h.mu.Unlock()
	if _, err := c.Stop(ctx, "w", c.root); ctx.Err() == nil {
		t.Fatalf("nothing was stopped: %v", err)
	}
	close(c.over) // who was not told to stop answers
	c.expectEnds(agentv1.TurnEnd_TURN_END_STOPPED)
}

// The same holds for putting away, and for agents below one that was put away before.
func TestAnArchiveReachesTheAgentsBelow(t *testing.T) {
	t.Parallel()
	c := newCrew(t)
	_, err := c.Archive(t.Context(), "w", c.child)
	c.check(err)
	_, err = c.Reopen(t.Context(), "w", c.grandchild)
	c.check(err)
	h := c.hook()
	ctx, cancel := context.WithCancel(t.Context())
	h.mu.Lock()
	h.appended = func(change conversation.Change) {
		if !change.Conversation.Open && change.Conversation.ID == c.root {
			cancel()
		}
	}
	h.mu.Unlock()
	_, err = c.Archive(ctx, "w", c.root)
	if ctx.Err() == nil {
		t.Fatalf("nothing was archived: %v", err)
	}
	close(c.over)
	c.expectEnds(agentv1.TurnEnd_TURN_END_STOPPED)
	for _, id := range []string{c.root, c.child, c.grandchild} {
		if row := c.get(id); row.Open {
			t.Errorf("%s is open", row.Title)
		}
	}
	if row, err := c.Get(t.Context(), "w", strings.ToUpper(c.root)); err != nil || row.ID != c.root {
		t.Errorf("the whole id of one that is archived, in capitals: %+v, %v", row, err)
	}
}

// A stop says that something was stopped also where only agents below worked.
func TestAStopSaysThatAgentsBelowWereStopped(t *testing.T) {
	t.Parallel()
	c := newCrew(t)
	c.check(c.stop())
	begun := make(chan struct{})
	c.act = func(ctx context.Context, _ *conversation.Book, task turn.Task) error {
		if task.Conversation == c.root {
			return yes(ctx, task)
		}
		if task.Conversation == c.child {
			close(begun)
		}
		<-ctx.Done()
		return ended(ctx, task, agentv1.TurnEnd_TURN_END_STOPPED)
	}
	c.start()
	<-begun
	c.events(c.root)
	for _, want := range []bool{true, false} {
		if any, err := c.Stop(t.Context(), "w", c.root); any != want || err != nil {
			t.Errorf("%v, %v, want %v", any, err, want)
		}
	}
	if got := fmt.Sprint(ends(c.events(c.child)), ends(c.events(c.grandchild))); strings.Count(got, "STOPPED") != 2 {
		t.Errorf("below: %s", got)
	}
}

// Between two turns of which the second begins with the end of the first nobody sees a conversation at rest: not those above
// it, and not who lists what there is.
func TestNobodySeesRestBetweenTwoTurns(t *testing.T) {
	t.Parallel()
	s := newShelf(t, nil)
	h := s.hook()
	begun, release := make(chan turn.Task), make(chan struct{})
	s.act = func(ctx context.Context, b *conversation.Book, task turn.Task) error {
		if last(task) == "root" {
			_, err := b.Summon(ctx, conversation.Summons{Workspace: "w", From: task.Conversation, Turn: task.TurnID, Key: "child", Task: "child"})
			if err != nil {
				return err
			}
			return yes(ctx, task)
		}
		begun <- task
		<-release
		return yes(ctx, task)
	}
	root := s.say("", "root").Conversation.ID
	child := (<-begun).Conversation
	s.events(root)
	s.say(child, "more")
	h.mu.Lock()
	h.appended = func(change conversation.Change) {
		if change.Begin != nil || change.Conversation.ID != root {
			return
		}
		rows, err := s.Open(context.Background(), "w")
		if err != nil {
			t.Error(err)
		}
		for _, row := range rows {
			if row.ID == child && row.Status == agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE && row.Queued == 0 && row.Sequence < 8 {
				t.Errorf("the child is at rest before its second turn: %+v", row)
			}
		}
	}
	h.mu.Unlock()
	release <- struct{}{}
	<-begun
	release <- struct{}{}
	s.events(child)
	var told []string
	for _, e := range s.events(root) {
		if ch := e.GetChildChanged(); ch != nil {
			told = append(told, strings.TrimPrefix(ch.GetStatus().String(), "CONVERSATION_STATUS_"))
		}
	}
	if got := fmt.Sprint(told); got != "[RUNNING IDLE]" {
		t.Errorf("the root was told %s", got)
	}
}

// However many agents are being started at the moment of a stop: what was started is stopped, and nothing is started after it.
func TestAStopRacesWithAgentsThatAreStarted(t *testing.T) {
	t.Parallel()
	s := newShelf(t, nil)
	s.check(s.stop())
	s.limits = conversation.Limits{Children: 1000, ChainWakes: 1000}
	begun := make(chan struct{}, 1000)
	s.act = func(ctx context.Context, b *conversation.Book, task turn.Task) error {
		for i := 0; last(task) == "root" && ctx.Err() == nil && i < 500; i++ { // however late the stop comes, there are not too many
			_, err := b.Summon(context.WithoutCancel(ctx), conversation.Summons{ // as a call that does not look
				Workspace: "w", From: task.Conversation, Turn: task.TurnID, Key: fmt.Sprint(task.TurnID, i), Task: "child",
			})
			if err == nil {
				begun <- struct{}{}
			} else if ctx.Err() == nil && !strings.Contains(err.Error(), "stopped") {
				t.Error(err)
			}
		}
		<-ctx.Done()
		return ended(ctx, task, agentv1.TurnEnd_TURN_END_STOPPED)
	}
	s.start()
	for round := range 5 {
		root := s.say("", "root").Conversation.ID
		for range 1 + round*3 {
			<-begun
		}
		_, err := s.Stop(t.Context(), "w", root)
		s.check(err)
		s.events(root)
		rows, err := s.Open(t.Context(), "w")
		s.check(err)
		for _, row := range rows {
			if row.Status != agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE {
				t.Errorf("round %d: %s %s goes on", round, row.Title, row.ID)
			}
		}
		for len(begun) > 0 {
			<-begun
		}
	}
}

// A child that is stored only after its starter's turn has ended, because its caller went away, does not go on for nobody.
func TestAChildOfATurnThatIsGoneDoesNotGoOn(t *testing.T) {
	t.Parallel()
	s := newShelf(t, nil)
	h := s.hook()
	storing, listed := make(chan struct{}), make(chan struct{}, 8)
	h.mu.Lock()
	h.listed = func() { listed <- struct{}{} }
	h.appends = func(change conversation.Change) {
		if change.New && change.Conversation.Parent != "" {
			for len(listed) > 0 { // those that were counted before it was let start
				<-listed
			}
			close(storing)
			<-listed
		}
	}
	h.mu.Unlock()
	left := make(chan conversation.Snapshot, 1)
	s.act = func(ctx context.Context, b *conversation.Book, task turn.Task) error {
		if last(task) == "root" {
			go func() { // a call that its turn leaves behind
				child, err := b.Summon(context.WithoutCancel(ctx), conversation.Summons{
					Workspace: "w", From: task.Conversation, Turn: task.TurnID, Key: "child", Task: "child",
				})
				if err != nil {
					t.Error(err)
				}
				left <- child
			}()
		}
		<-ctx.Done()
		return ended(ctx, task, agentv1.TurnEnd_TURN_END_STOPPED)
	}
	talk, err := s.Chat(t.Context(), conversation.Delivery{Workspace: "w", Text: "root", Attached: true})
	s.check(err)
	<-storing
	talk.Close()
	child := <-left
	if got := ends(s.events(child.Conversation.ID)); fmt.Sprint(got) != "[TURN_END_STOPPED]" {
		t.Errorf("the child ended as %v", got)
	}
}
