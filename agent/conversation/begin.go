package conversation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// start is a turn that is about to begin.
type start struct {
	letters []Letter // that begin it, in order
	chain   string
	callers callers // who waits for it; a turn for which nobody does is durable
}

// startOf says how a turn begins with messages. The caller holds t.mu.
func (t *thread) startOf(letters []Letter, chain string) start {
	s := start{letters: letters, chain: chain, callers: callers{}}
	for _, l := range letters {
		if t.attached[l.ID] == 0 {
			s.callers = nil
			break
		}
		s.callers[l.ID] = t.attached[l.ID]
	}
	return s
}

// begin stores a change together with the beginning of a turn, and lets it run. The caller has reserved it and holds t.mu,
// and no turn runs once the change is stored.
func (b *Book) begin(ctx context.Context, t *thread, change Change, s start) (string, error) {
	id, err := b.newID()
	if err != nil {
		return "", err
	}
	first := s.letters[0]
	for _, l := range s.letters { // what a person says counts for more
		if l.person() {
			first = l
		}
	}
	row := Turn{
		ID: id, Conversation: t.ref.ID, State: TurnRunning, Durable: s.callers == nil, Speaker: first.Sender.GetSpeaker(), Chain: s.chain,
		Choice: choiceOf(s.letters), Sequence: t.c.Sequence + uint64(len(change.Events)), StartedAt: b.config.Now(),
	}
	change.Begin = &row
	change.Conversation.Holds &^= HeldByStop
	choices, effort := b.choices(change.Conversation, row.Choice)
	begun := &agentv1.TurnStarted{Sender: first.Sender, Effort: effort}
	if len(choices) > 0 {
		begun.Model = choices[0].Name
	}
	change.Events = append(change.Events, &agentv1.Event{TurnId: id, Kind: &agentv1.Event_TurnStarted{TurnStarted: begun}})
	if err := b.read(&change, id, s.letters); err != nil {
		return "", err
	}
	if err := b.commit(ctx, t, change); err != nil {
		return "", err
	}
	b.run(ctx, t, row, s.callers, false)
	return id, nil
}

// read puts messages into the history and the events of a turn. Those that are not in the change yet leave the queue.
func (b *Book) read(change *Change, turnID string, letters []Letter) error {
	for _, l := range letters {
		text := l.Text
		if !l.person() {
			var err error
			from := tool.Speaker{Handle: l.Sender.GetHandle(), Title: l.Sender.GetTitle()}
			if text, err = tool.Quote(b.config.Random, from, text); err != nil {
				return fmt.Errorf("quote message: %w", err)
			}
		}
		change.Messages = append(change.Messages, model.Message{Role: model.RoleUser, Text: text})
		change.Events = append(change.Events, &agentv1.Event{TurnId: turnID, Kind: &agentv1.Event_Message{Message: &agentv1.Message{
			Role: agentv1.Role_ROLE_USER, Text: l.Text, MessageId: l.ID, Sender: l.Sender,
		}}})
		l.State, l.Turn, l.Text = LetterTaken, turnID, ""
		if at := slices.IndexFunc(change.Letters, func(m Move) bool { return m.Letter.ID == l.ID }); at >= 0 {
			change.Letters[at].Letter = l
		} else {
			change.Letters = append(change.Letters, Move{Letter: l})
		}
	}
	return nil
}

// next stores a change that ends a turn, or comes after one, and begins the next turn if something waits that may begin
// one. What waits is read together and in order; a person's message begins it for nothing, an agent's costs a wake. The
// caller holds t.mu.
func (b *Book) next(ctx context.Context, t *thread, change Change) error {
	n := len(t.queue)
	held := change.Conversation.Holds&HeldByStop != 0
	if n > 0 && held && change.Turn != nil {
		change.Events = append(change.Events, notice("queue_held", fmt.Sprintf(
			"%s; read when the next message comes.", counted(n, "message waits", "messages wait")), true))
	}
	if n == 0 || held || !change.Conversation.Open || !b.reserve() {
		return b.keep(ctx, t, change)
	}
	begun := false
	defer func() {
		if !begun {
			b.turns.Done()
		}
	}()
	all := slices.Clone(t.queue)
	if chain, free := chainOfPerson(all); free {
		_, err := b.begin(ctx, t, change, t.startOf(all, chain))
		begun = err == nil
		return err
	}
	if change.Conversation.Wakes > 0 {
		for chain := range chainsOf(all) {
			with := change.fork()
			with.Conversation.Wakes--
			with.Spend = chain
			_, err := b.begin(ctx, t, with, t.startOf(all, chain))
			if !errors.Is(err, ErrExhausted) {
				begun = err == nil
				return err
			}
		}
	}
	change.hold(b.wakes(change.Conversation.Settings), b.limits().ChainWakes)
	return b.keep(ctx, t, change)
}

// keep stores a change if there is anything in it.
func (b *Book) keep(ctx context.Context, t *thread, change Change) error {
	if len(change.Events) == 0 && change.Turn == nil && change.Conversation.Equal(t.c) {
		return nil
	}
	return b.commit(ctx, t, change)
}

// fork is a copy to which more can be added without adding it here.
func (c Change) fork() Change {
	c.Events, c.Messages, c.Letters = slices.Clone(c.Events), slices.Clone(c.Messages), slices.Clone(c.Letters)
	return c
}

// chainOfPerson is the chain of the last message of a person. What is read with one costs nothing, and is done on behalf
// of its writer.
func chainOfPerson(letters []Letter) (chain string, ok bool) {
	for _, l := range slices.Backward(letters) {
		if l.person() {
			return l.Chain, true
		}
	}
	return "", false
}

// chainsOf gives the chains of messages, each once and in order.
func chainsOf(letters []Letter) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		seen := map[string]bool{}
		for _, l := range letters {
			if !seen[l.Chain] {
				seen[l.Chain] = true
				if !yield(l.Chain) {
					return
				}
			}
		}
	}
}

// hold says, once until a person writes, that messages of agents wait because there are no wakes left.
func (c *Change) hold(wakes, chainWakes int) {
	if c.Conversation.Wakes == 0 {
		if c.Conversation.Holds&HeldByWakes == 0 {
			text := "Agents may not wake this conversation. Their messages wait until you write."
			if wakes > 0 {
				text = fmt.Sprintf("Agents may wake this conversation %s until a person writes in it, and have. Their messages wait until you write.",
					counted(wakes, "time", "times"))
			}
			c.Conversation.Holds |= HeldByWakes
			c.Events = append(c.Events, notice("wakes_exhausted", text, true))
		}
		return
	}
	if c.Conversation.Holds&HeldByChain == 0 {
		c.Conversation.Holds |= HeldByChain
		c.Events = append(c.Events, notice("chain_exhausted", fmt.Sprintf(
			"One message of a person may wake agents %d times: none of them are left, or its work was stopped. What they say here waits until you write.",
			chainWakes), true))
	}
}

func notice(code, text string, goesOn bool) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_Notice{Notice: &agentv1.Notice{Code: code, Text: text, CanContinue: goesOn}}}
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// run lets a turn run. It has been reserved. The caller holds t.mu.
func (b *Book) run(ctx context.Context, t *thread, row Turn, who callers, resumed bool) {
	turnCtx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	r := &run{id: row.ID, stop: stop, thread: t, ended: make(chan struct{}), left: make(chan struct{}), turn: row, callers: who}
	t.run = r
	b.mu.Lock()
	b.runs[r] = struct{}{}
	closed := b.closed
	t.users++
	b.mu.Unlock()
	if closed {
		stop(ErrShutdown)
	}
	b.note(t)
	go b.turn(turnCtx, t, r, resumed)
}

// turn runs a turn. It is the goroutine of the turn.
func (b *Book) turn(ctx context.Context, t *thread, r *run, resumed bool) {
	defer b.turns.Done()
	defer b.leave(t)
	defer r.stop(nil)
	t.mu.Lock()
	c, row, past := t.c, r.turn, r.past
	r.past = nil
	t.mu.Unlock()
	if c.Parent == "" && b.gate.enter(ctx) { // a child works in the place of the one that waits for it
		t.mu.Lock()
		r.working, r.placed = true, true
		b.note(t)
		t.mu.Unlock()
	}
	err := b.guarded(ctx, c, row, &journal{book: b, thread: t, run: r}, resumed, past)
	b.leaveNobody(ctx, c, r)
	b.mu.Lock()
	delete(b.runs, r)
	b.mu.Unlock()
	close(r.left)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case r.turn.State == TurnEnded:
	case r.turn.Durable && b.isClosed(): // it goes on when the server starts again
		if t.run == r {
			b.settle(t)
		}
		t.loaded = false
		t.hub.cut(errClosed())
	default:
		b.config.Log.ErrorContext(ctx, "turn broke", slog.String("conversation_id", t.ref.ID), slog.Any("error", err))
		b.giveUp(ctx, t, r)
	}
}

// guarded runs a turn so that a fault in it does not end the server.
func (b *Book) guarded(ctx context.Context, c Conversation, row Turn, j *journal, resumed bool, past []*agentv1.Event) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("turn panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	if b.config.Authority != nil {
		chain, err := b.config.Store.Chain(context.WithoutCancel(ctx), c.Workspace, row.ID)
		if err != nil {
			return fmt.Errorf("read chain: %w", err)
		}
		ctx = b.config.Authority.As(ctx, c.Workspace, chain.Authority)
	}
	history, err := b.config.Store.Messages(context.WithoutCancel(ctx), c.ID)
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	origin := controlv1.Origin_ORIGIN_INTERACTIVE
	if row.Durable {
		origin = controlv1.Origin_ORIGIN_BACKGROUND
	}
	return b.config.Turner.Run(ctx, turn.Task{
		Workspace: c.Workspace, Conversation: c.ID, Root: c.RootID(), TurnID: row.ID, Act: row.Chain, Origin: origin, Durable: row.Durable,
		Resumed: resumed, Spent: row.Spent, Past: past, History: history, Journal: j,
	})
}

// giveUp ends a turn that broke. If that cannot be kept either, those who follow are told so, and the next look at the
// conversation takes it up. The caller holds t.mu.
func (b *Book) giveUp(ctx context.Context, t *thread, r *run) {
	ctx = context.WithoutCancel(ctx)
	err := b.load(ctx, t)
	if err == nil && t.run == r {
		err = b.mend(ctx, t, r.turn, "The server failed in the middle of this turn: its log says why.")
	}
	if err == nil {
		return
	}
	b.config.Log.ErrorContext(ctx, "turn cannot be ended", slog.String("conversation_id", t.ref.ID), slog.Any("error", err))
	if t.run == r {
		b.settle(t)
	}
	t.loaded = false
	t.hub.cut(errorf(Unavailable, "the server cannot keep what happens: its log says why; follow the conversation again in a moment"))
}
