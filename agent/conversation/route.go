package conversation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"throwbar.dev/throwbar/agent/model"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// Deliver brings a message of a person or of an agent to a conversation; there is no other road. If a turn runs the
// message waits for its end, or enters it at its next step; otherwise it begins a turn. A message that was delivered
// before is answered as then, and not delivered again.
//
// A message of a person gives the conversation back all its wakes, and begins a chain. A turn that an agent's message
// begins costs one wake of the conversation and one of the chain behind the turn that sent it; where either has none
// left, the message is kept and waits.
func (b *Book) Deliver(ctx context.Context, d Delivery) (Delivered, error) {
	if err := b.await(ctx); err != nil {
		return Delivered{}, err
	}
	if err := b.checkDelivery(d); err != nil {
		return Delivered{}, err
	}
	var err error
	if d.MessageID == "" {
		if d.MessageID, err = b.newID(); err != nil {
			return Delivered{}, err
		}
	} else if told, ok, err := b.before(ctx, d); ok || err != nil {
		return told, err
	}
	if d.Again {
		return Delivered{}, errorf(NotFound, "this message was not delivered before")
	}
	to, isNew, err := b.addressee(ctx, d)
	if err != nil {
		return Delivered{}, err
	}
	letter := Letter{
		Workspace: d.Workspace, ID: d.MessageID, Conversation: to.ID, State: LetterWaiting, Mode: mode(d.Mode), Choice: d.Model,
		Text: d.Text, CreatedAt: b.config.Now(),
	}
	change := Change{Durable: true}
	if err := b.from(ctx, d, to, &letter, &change); err != nil {
		return Delivered{}, err
	}
	told, err := b.deliver(ctx, d, to, isNew, letter, change)
	if errors.Is(err, ErrKnown) { // the same message came twice at once
		told, ok, err := b.before(ctx, d)
		if err == nil && !ok {
			err = errorf(Invalid, "the id of this message is taken")
		}
		return told, err
	}
	return told, err
}

func (b *Book) checkDelivery(d Delivery) error {
	switch {
	case len(b.config.Models) == 0 && !d.Again:
		return errorf(NoModel, "%s", b.config.Hint)
	case model.Blank(d.Text) && !d.Again:
		return errorf(Invalid, "the message is empty")
	case len(d.MessageID) > maxMessageID:
		return errorf(Invalid, "the id of the message is too long")
	default:
		return b.checkChoice(d.Model)
	}
}

const maxMessageID = 128

func mode(m agentv1.SendMode) agentv1.SendMode {
	if m == agentv1.SendMode_SEND_MODE_STEER {
		return m
	}
	return agentv1.SendMode_SEND_MODE_QUEUE
}

// before is what became of a message that was delivered before.
func (b *Book) before(ctx context.Context, d Delivery) (told Delivered, known bool, err error) {
	l, err := b.config.Store.Letter(ctx, d.Workspace, d.MessageID)
	if errors.Is(err, ErrNoRow) {
		return Delivered{}, false, nil
	}
	if err != nil {
		return Delivered{}, false, fmt.Errorf("read message: %w", err)
	}
	if l.Sender.GetConversationId() != d.From {
		return Delivered{}, false, errorf(Invalid, "the id of this message is taken")
	}
	err = b.locked(ctx, Ref{d.Workspace, l.Conversation}, func(t *thread) error {
		told = Delivered{Delivery: l.Delivery, Conversation: t.c, MessageID: l.ID, TurnID: l.Turn, Sequence: l.Sequence}
		told.attached = d.Attached && t.rejoin(l.ID)
		return nil
	})
	if err != nil {
		return Delivered{}, false, err
	}
	told.Handle, err = b.handle(ctx, told.Conversation)
	return told, true, err
}

// addressee is the conversation that a message is for.
func (b *Book) addressee(ctx context.Context, d Delivery) (c Conversation, isNew bool, err error) {
	if d.To != "" {
		c, err = b.readable(ctx, d.Workspace, d.To)
		if err == nil && c.ID == d.From {
			err = errorf(Invalid, "a conversation cannot send messages to itself")
		}
		return c, false, err
	}
	if d.fresh != nil {
		c = *d.fresh
	} else if d.From != "" {
		return c, false, errorf(Invalid, "there is no conversation to send this to")
	}
	c, err = b.fresh(c, d.Workspace)
	if c.Title == "" {
		c.Title = title(d.Text)
	}
	return c, true, err
}

// fresh fills in what every new conversation has.
func (b *Book) fresh(c Conversation, workspace string) (Conversation, error) {
	id, err := b.newID()
	if err != nil {
		return c, err
	}
	now := b.config.Now()
	c.ID, c.Workspace, c.Open, c.CreatedAt, c.UpdatedAt, c.Wakes = id, workspace, true, now, now, b.wakes(c.Settings)
	if c.Settings == nil {
		c.Settings = &agentv1.ConversationSettings{}
	}
	return c, nil
}

// from says in a letter who sends it, and which chain it belongs to: that of the turn that sends it, or one that begins
// with it.
func (b *Book) from(ctx context.Context, d Delivery, to Conversation, letter *Letter, change *Change) error {
	if d.From == "" {
		id, err := b.newID()
		if err != nil {
			return err
		}
		letter.Sender, letter.Chain = &agentv1.Sender{Speaker: agentv1.Speaker_SPEAKER_PERSON}, id
		change.Chain = &Chain{ID: id, Workspace: d.Workspace, Root: to.ID, Left: b.limits().ChainWakes, CreatedAt: letter.CreatedAt}
		if b.config.Authority != nil {
			change.Chain.Authority = b.config.Authority.Of(ctx)
		}
		return nil
	}
	chain, err := b.config.Store.Chain(ctx, d.Workspace, d.Turn)
	if err != nil {
		return fmt.Errorf("find the turn that sends: %w", err)
	}
	var c Conversation
	err = b.locked(ctx, Ref{d.Workspace, d.From}, func(t *thread) error {
		c = t.c
		return nil
	})
	if err != nil {
		return err
	}
	handle, err := b.handle(ctx, c)
	letter.Chain = chain.ID
	letter.Sender = &agentv1.Sender{
		Speaker: agentv1.Speaker_SPEAKER_AGENT, ConversationId: c.ID, Handle: handle, Title: c.Title,
	}
	return err
}

// deliver routes a letter, once it is known from whom and to whom it goes.
func (b *Book) deliver(ctx context.Context, d Delivery, to Conversation, isNew bool, letter Letter, change Change) (Delivered, error) {
	told := Delivered{MessageID: letter.ID, attached: d.Attached}
	t := b.use(Ref{d.Workspace, to.ID})
	defer b.leave(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	if isNew {
		t.c, t.loaded, change.New = to, true, true
		t.told = news(t.state())
	} else if err := b.load(ctx, t); err != nil {
		return told, err
	}
	if !t.c.Open {
		return told, errorf(Archived, "the conversation %q is archived: reopen it to write in it", shown(t.c.Title))
	}
	change.Conversation = t.c
	if t.c.Title == "" {
		change.Conversation.Title = title(d.Text)
	}
	letter.Sequence = t.c.Sequence
	if letter.person() {
		change.Conversation.Wakes, change.Conversation.Holds = b.wakes(t.c.Settings), 0
	}
	if d.Attached {
		t.attached[letter.ID]++
	}
	err := b.routed(ctx, t, &letter, change)
	if err != nil {
		if d.Attached {
			t.attached.drop(letter.ID)
		}
		if isNew {
			t.loaded = false
		}
		return told, err
	}
	told.Conversation, told.Delivery, told.TurnID, told.Sequence = t.c, letter.Delivery, letter.Turn, letter.Sequence
	if told.Handle, err = b.handle(ctx, t.c); err != nil { // it was delivered all the same
		b.config.Log.WarnContext(ctx, "handle cannot be read", slog.String("conversation_id", to.ID), slog.Any("error", err))
	}
	return told, nil
}

// routed stores what becomes of a letter, and says it in the letter. The caller holds t.mu.
func (b *Book) routed(ctx context.Context, t *thread, letter *Letter, change Change) error {
	if r := t.run; r != nil {
		letter.Delivery = agentv1.Delivery_DELIVERY_QUEUED
		if letter.Mode == agentv1.SendMode_SEND_MODE_STEER && !r.turn.Stopping {
			letter.Delivery, letter.Turn = agentv1.Delivery_DELIVERY_STEERED, r.turn.ID
		}
		return b.enqueue(ctx, t, *letter, change)
	}
	letter.Delivery = agentv1.Delivery_DELIVERY_STARTED
	all := append(slices.Clone(t.queue), *letter)
	chain, free := chainOfPerson(all) // theirs may wait since a stop
	if !free && change.Conversation.Wakes == 0 {
		return b.suppress(ctx, t, letter, change)
	}
	if !b.reserve() {
		return errClosed()
	}
	with := change.fork()
	if !free {
		chain = letter.Chain
		with.Conversation.Wakes--
		with.Spend = chain
	}
	with.Letters = []Move{{Letter: *letter, New: true}}
	id, err := b.begin(ctx, t, with, t.startOf(all, chain))
	if err != nil {
		b.turns.Done()
	}
	if errors.Is(err, ErrExhausted) {
		return b.suppress(ctx, t, letter, change)
	}
	letter.Turn = id
	return err
}

// suppress keeps a letter that may not begin a turn. The caller holds t.mu.
func (b *Book) suppress(ctx context.Context, t *thread, letter *Letter, change Change) error {
	if change.New { // an agent that is started: nobody would know of what waits there
		return errorf(Exhausted, "no agent was started: nothing is left of what one message of a person may set to work, or its work was stopped")
	}
	letter.Delivery = agentv1.Delivery_DELIVERY_SUPPRESSED
	change.hold(b.wakes(change.Conversation.Settings), b.limits().ChainWakes)
	return b.enqueue(ctx, t, *letter, change)
}

// enqueue lets a letter wait. The caller holds t.mu.
func (b *Book) enqueue(ctx context.Context, t *thread, letter Letter, change Change) error {
	if len(t.queue) >= b.limits().Queue {
		return errorf(Busy, "%d messages wait in this conversation already: wait until they are read, or remove some", len(t.queue))
	}
	change.Letters = append(change.Letters, Move{Letter: letter, New: true})
	waits := &agentv1.Event{Kind: &agentv1.Event_Queued{Queued: letter.Message()}}
	change.Events = append([]*agentv1.Event{waits}, change.Events...)
	return b.commit(ctx, t, change)
}
