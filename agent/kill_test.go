package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"throwbar.dev/throwbar/agent"
	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

var errDead = errors.New("the process is gone")

// dying is a store whose process is killed at one of its writes: that one is stored or not, its caller never hears of it,
// and nothing is read or written after it.
type dying struct {
	agent.Store

	mu     sync.Mutex
	left   int // guarded by mu; writes until it dies
	stores bool
	dead   bool // guarded by mu
}

func (d *dying) alive() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return errDead
	}
	return nil
}

func (d *dying) Append(ctx context.Context, change conversation.Change) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return errDead
	}
	if d.left--; d.left > 0 {
		return d.Store.Append(ctx, change)
	}
	d.dead = true
	if d.stores {
		return errors.Join(errDead, d.Store.Append(ctx, change))
	}
	return errDead
}

func (d *dying) State(ctx context.Context, workspace, id string) (conversation.State, error) {
	if err := d.alive(); err != nil {
		return conversation.State{}, err
	}
	return d.Store.State(ctx, workspace, id)
}

// caller is a turn as it has to be: it calls a tool that sends a message, and makes the call again under the same key if
// it was cut off. Its answer takes part in a cycle, which only the budgets end.
type caller struct{ ids []string }

func (c *caller) act(ctx context.Context, b *conversation.Book, task turn.Task) error {
	calls, open := 0, "" // of this turn
	for _, m := range task.History {
		switch {
		case len(m.Calls) > 0 && strings.HasPrefix(m.Calls[0].ID, task.TurnID):
			calls, open = calls+1, m.Calls[0].ID
		case m.CallID == open:
			open = ""
		}
	}
	if open == "" {
		if task.Resumed && task.History[len(task.History)-1].Role == model.RoleTool {
			return c.finish(ctx, task)
		}
		step, err := task.Journal.Next(ctx)
		if err != nil {
			return err
		}
		open = fmt.Sprint(task.TurnID, "-", calls)
		call := model.Call{ID: open, Name: "send", Arguments: "{}"}
		if err := task.Journal.Record(ctx, turn.Entry{
			Messages: []model.Message{{Role: model.RoleAssistant, Calls: []model.Call{call}}},
			Events:   []*agentv1.Event{{Kind: &agentv1.Event_ToolCall{ToolCall: &agentv1.ToolCall{CallId: call.ID, Name: call.Name}}}},
			Spent:    turn.Spent{Rounds: 1 + len(step.Messages)},
		}); err != nil {
			return err
		}
	}
	call := open
	if ctx.Err() != nil {
		return c.record(ctx, task, call, "interrupted", agentv1.TurnEnd_TURN_END_STOPPED)
	}
	to := c.ids[(slices.Index(c.ids, task.Conversation)+1)%len(c.ids)]
	said := "failed"
	told, err := agentSays(ctx, b, task, to, "from "+call, "key-"+call)
	var known *conversation.Error
	switch {
	case err == nil:
		said = "sent " + told.MessageID
	case errors.As(err, &known) && known.Code == conversation.Archived, errors.As(err, &known) && known.Code == conversation.NotFound:
	default:
		return err
	}
	if err := c.record(ctx, task, call, said, 0); err != nil {
		return err
	}
	return c.finish(ctx, task)
}

func (*caller) record(ctx context.Context, task turn.Task, call, said string, end agentv1.TurnEnd) error {
	entry := turn.Entry{
		Messages: []model.Message{{Role: model.RoleTool, CallID: call, Text: said}},
		Events:   []*agentv1.Event{{Kind: &agentv1.Event_ToolResult{ToolResult: &agentv1.ToolResult{CallId: call, Content: said}}}},
	}
	if end != 0 {
		entry.Events = append(entry.Events, &agentv1.Event{Kind: &agentv1.Event_TurnEnded{TurnEnded: &agentv1.TurnEnded{Reason: end}}})
	}
	return task.Journal.Record(ctx, entry)
}

func (*caller) finish(ctx context.Context, task turn.Task) error {
	if _, err := task.Journal.Next(ctx); err != nil {
		return err
	}
	return answers(ctx, task, "done")
}

// killed is a scenario whose process is killed again and again.
type killed struct {
	*shelf
	*caller
	random *rand.Rand
	kills  int
	now    *dying
	said   map[string]string // what a person said, by its id: where
}

// kills is how many kills TestKilledAnywhere makes on SQLite; on PostgreSQL, where each costs more, it makes a fifth of that.
// THROWBAR_KILLS sets another number, for both. The whole takes about five seconds.
const kills = 300

// Whatever a person and three agents do, and wherever the process is killed: every history is sound, each message is in
// exactly one place, no wake is given twice, and every conversation goes on.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		n := kills
		if !engine.SQLite() {
			n /= 5
		}
		if text := os.Getenv("THROWBAR_KILLS"); text != "" {
			var err error
			if n, err = strconv.Atoi(text); err != nil {
				t.Fatal(err)
			}
		}
		const each = 20
		for seed := range max(n/each, 1) {
			t.Run(fmt.Sprintf("%s-%d", engine.Name, seed), func(t *testing.T) {
				t.Parallel()
				killAnywhere(t, engine.URL(t), uint64(seed), each)
			})
		}
	}
}

func killAnywhere(t *testing.T, url string, seed uint64, times int) {
	t.Helper()
	k := &killed{caller: &caller{}, random: rand.New(rand.NewPCG(seed, 7)), said: map[string]string{}}
	k.shelf = newShelfAt(t, url, k.act)
	for i := range 3 {
		row, err := k.Create(t.Context(), "w", fmt.Sprint("agent ", i), nil, "")
		k.check(err)
		k.ids = append(k.ids, row.ID)
	}
	k.arm()
	for k.kills < times {
		k.op()
	}
	k.revive(false)
	k.settle()
	k.inspect()
}

// act is the caller's: both have one.
func (k *killed) act(ctx context.Context, b *conversation.Book, task turn.Task) error {
	return k.caller.act(ctx, b, task)
}

// arm starts the process again, which will be killed at some write.
func (k *killed) arm() {
	k.check(k.stop())
	k.wrap = func(s agent.Store) agent.Store {
		k.now = &dying{Store: s, left: 1 + k.random.IntN(12), stores: k.random.IntN(2) == 0}
		return k.now
	}
	k.start()
}

// revive starts it again after it was killed.
func (k *killed) revive(armed bool) {
	_ = k.stop() // a book that could not begin says so
	k.kills++
	if armed {
		k.wrap = func(s agent.Store) agent.Store {
			k.now = &dying{Store: s, left: 1 + k.random.IntN(12), stores: k.random.IntN(2) == 0}
			return k.now
		}
	} else {
		k.wrap = func(s agent.Store) agent.Store { return s }
	}
	k.start()
}

// op is one thing that a person does, repeated until the server has heard it.
func (k *killed) op() {
	to, message := k.ids[k.random.IntN(len(k.ids))], id()
	kind := k.random.IntN(12)
	mode := agentv1.SendMode(1 + k.random.IntN(2))
	for {
		ctx, cancel := context.WithCancel(k.t.Context())
		done := make(chan error, 1)
		go func() { done <- k.try(ctx, kind, to, message, mode) }()
		err := <-done
		cancel()
		if k.now.alive() != nil {
			k.revive(true)
			continue
		}
		if err != nil {
			k.t.Errorf("kind %d: %v", kind, err)
		}
		return
	}
}

func (k *killed) try(ctx context.Context, kind int, to, message string, mode agentv1.SendMode) error {
	var err error
	switch kind {
	case 0:
		_, err = k.Stop(ctx, "w", to)
	case 1:
		_, err = k.Archive(ctx, "w", to)
		if err == nil {
			_, err = k.Reopen(ctx, "w", to)
		}
	case 2, 3:
		err = k.touchQueue(ctx, to, kind == 2)
	default:
		k.said[message] = to
		_, err = k.Deliver(ctx, conversation.Delivery{Workspace: "w", To: to, Text: "person", MessageID: message, Mode: mode})
	}
	var known *conversation.Error
	if errors.As(err, &known) && (known.Code == conversation.Archived || known.Code == conversation.NotFound && kind == 0) {
		if kind > 3 {
			delete(k.said, message)
			_, err = k.Reopen(ctx, "w", to) // it was killed between the two
		} else {
			err = nil
		}
	}
	return err
}

func (k *killed) touchQueue(ctx context.Context, to string, remove bool) error {
	waiting, err := k.Waiting(ctx, "w", to, 0, 10)
	if err != nil || len(waiting) == 0 {
		return err
	}
	l := waiting[k.random.IntN(len(waiting))]
	if remove {
		err = k.Remove(ctx, "w", to, l.ID)
	} else if l.Sender.GetSpeaker() == agentv1.Speaker_SPEAKER_PERSON {
		_, err = k.Edit(ctx, "w", to, l.ID, "person, edited")
	}
	var known *conversation.Error
	if errors.As(err, &known) && known.Code == conversation.Late {
		err = nil
	}
	return err
}

// settle waits until nothing runs.
func (k *killed) settle() {
	k.t.Helper()
	for before := -1; ; {
		n := 0
		for _, id := range k.ids {
			if !k.get(id).Open {
				_, err := k.Reopen(k.t.Context(), "w", id)
				k.check(err)
			}
			n += len(k.events(id))
		}
		if n == before {
			return
		}
		before = n
	}
}

// place is where a message is.
type place struct{ read, waits, removed int }

func (k *killed) inspect() {
	k.t.Helper()
	places, chains := map[string]*place{}, map[string]int{}
	at := func(id string) *place {
		if places[id] == nil {
			places[id] = &place{}
		}
		return places[id]
	}
	sent := map[string]bool{}
	for _, id := range k.ids {
		k.inspectOne(id, at, chains, sent)
	}
	for chain, n := range chains {
		if n > conversation.DefaultChainWakes {
			k.t.Errorf("chain %s woke %d times", chain, n)
		}
	}
	for id, to := range k.said {
		if p := at(id); p.read+p.waits+p.removed != 1 {
			k.t.Errorf("message %s to %s: %+v", id, to, *p)
		}
	}
	for id := range sent {
		if p := at(id); p.read+p.waits+p.removed != 1 {
			k.t.Errorf("message %s of an agent: %+v", id, *p)
		}
	}
	for id, p := range places {
		if p.read+p.waits+p.removed != 1 {
			k.t.Errorf("message %s is in %+v", id, *p)
		}
	}
	for _, id := range k.ids { // it goes on
		if told := k.say(id, "and now?"); told.Delivery != hasStarted && told.Delivery != hasQueued {
			k.t.Errorf("%+v", told)
		}
	}
}

func (k *killed) inspectOne(id string, at func(string) *place, chains map[string]int, sent map[string]bool) {
	k.t.Helper()
	events := k.events(id)
	kept, err := k.kept.Messages(k.t.Context(), id)
	k.check(err)
	if problems := model.Lint(kept); problems != nil {
		k.t.Errorf("history of %s: %v", id, problems)
	}
	wakes, running := 0, ""
	woken := map[string]bool{} // turns that an agent began, and that go on with the chain that paid for them
	for i, e := range events {
		if e.GetSequence() != uint64(i+1) {
			k.t.Fatalf("event %d has the number %d", i+1, e.GetSequence())
		}
		switch kind := e.GetKind().(type) {
		case *agentv1.Event_Queued:
			if kind.Queued.GetSender().GetSpeaker() == agentv1.Speaker_SPEAKER_PERSON {
				wakes = 0
			}
		case *agentv1.Event_Message:
			if kind.Message.GetRole() == agentv1.Role_ROLE_USER {
				at(kind.Message.GetMessageId()).read++
				if kind.Message.GetSender().GetSpeaker() == agentv1.Speaker_SPEAKER_PERSON {
					wakes = 0
					delete(woken, e.GetTurnId()) // it was steered: it goes on with that person's chain
				}
			}
		case *agentv1.Event_QueueRemoved:
			at(kind.QueueRemoved.GetMessageId()).removed++
		case *agentv1.Event_ToolResult:
			if message, ok := strings.CutPrefix(kind.ToolResult.GetContent(), "sent "); ok {
				sent[message] = true
			}
		case *agentv1.Event_TurnStarted:
			if running != "" {
				k.t.Errorf("turn %s begins while %s runs", e.GetTurnId(), running)
			}
			running = e.GetTurnId()
			if kind.TurnStarted.GetSender().GetSpeaker() == agentv1.Speaker_SPEAKER_AGENT {
				if wakes++; wakes > conversation.DefaultWakes {
					k.t.Errorf("%s was woken %d times", id, wakes)
				}
				woken[e.GetTurnId()] = true
			}
		case *agentv1.Event_TurnEnded:
			if running != e.GetTurnId() {
				k.t.Errorf("turn %s ends while %q runs", e.GetTurnId(), running)
			}
			running = ""
		}
	}
	if running != "" {
		k.t.Errorf("turn %s does not end", running)
	}
	for turnID := range woken {
		chain, err := k.kept.Chain(k.t.Context(), "w", turnID)
		k.check(err)
		chains[chain.ID]++
	}
	waiting, err := k.Waiting(k.t.Context(), "w", id, 0, 1000)
	k.check(err)
	for _, l := range waiting {
		at(l.ID).waits++
	}
}
