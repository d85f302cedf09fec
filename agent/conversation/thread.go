package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// thread is a conversation that somebody uses now. All that changes it goes through its lock, one after the other: what
// was read, what is stored and what is told belong together.
type thread struct {
	ref   Ref
	hub   hub
	users int // guarded by Book.mu

	mu       sync.Mutex   // held over writes
	loaded   bool         // guarded by mu, as all below; false if it has to be read (again)
	c        Conversation // as it is stored
	queue    []Letter     // what waits, in order
	run      *run         // nil while no turn runs
	attached callers      // of messages that wait
	told     string       // what its family was told of it; empty if that has to be looked up
	quiet    bool         // it is being taken up: its family is told when that is done
}

// run is a turn that runs in this process.
type run struct {
	stop   context.CancelCauseFunc
	id     string
	thread *thread
	ended  chan struct{} // closed when another turn may begin
	left   chan struct{} // closed when it does nothing more but record its end, if it has not

	turn      Turn             // guarded by thread.mu, as all below; as it is stored
	callers   callers          // when the last one goes a turn that is not durable stops; nil if it is durable
	approvals []string         // that it waits for
	past      []*agentv1.Event // what it told in earlier processes, until it goes on
	working   bool             // it was let in by the gate, where it has a place unless it waits for people
	placed    bool             // it has a place there
}

// durable says whether a turn outlives the server.
func (r *run) durable() bool {
	r.thread.mu.Lock()
	defer r.thread.mu.Unlock()
	return r.turn.Durable
}

// use gives the thread of a conversation; call leave when it is not used any more.
func (b *Book) use(ref Ref) *thread {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.threads[ref]
	if t == nil {
		t = &thread{ref: ref, attached: callers{}}
		b.threads[ref] = t
	}
	t.users++
	return t
}

// leave forgets a thread that nobody uses.
func (b *Book) leave(t *thread) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(b.threads, t.ref)
	}
}

// locked runs a function with a thread that is read and locked.
func (b *Book) locked(ctx context.Context, ref Ref, f func(*thread) error) error {
	t := b.use(ref)
	defer b.leave(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := b.load(ctx, t); err != nil {
		return err
	}
	return f(t)
}

// load reads a thread if that has to be, and takes up what an earlier process has left: a durable turn goes on, another
// one is brought to an end. The caller holds t.mu.
func (b *Book) load(ctx context.Context, t *thread) (err error) {
	if t.loaded {
		return nil
	}
	t.quiet = true
	defer func() {
		t.quiet = false
		t.loaded = t.loaded && err == nil // what could not be taken up is looked for again
	}()
	s, err := b.config.Store.State(ctx, t.ref.Workspace, t.ref.ID)
	if errors.Is(err, ErrNoRow) {
		return errorf(NotFound, "there is no conversation %q", shown(t.ref.ID))
	}
	if err != nil {
		return fmt.Errorf("read conversation: %w", err)
	}
	s.Conversation.Sequence = max(s.Conversation.Sequence, s.Last.GetSequence())
	t.c, t.queue, t.loaded = s.Conversation, s.Waiting, true
	if err := b.catchUp(ctx, t); err != nil {
		t.loaded = false
		return err
	}
	if r := t.run; r != nil && (s.Running == nil || s.Running.ID != r.turn.ID) {
		b.settle(t) // its end was stored, though it was not said so
	}
	switch {
	case t.run != nil:
		t.run.turn = *s.Running
	case s.Running != nil:
		err = b.adopt(ctx, t, *s.Running)
	case !s.Turns && s.Last.GetTurnId() != "" && s.Last.GetTurnEnded() == nil: // of a version without rows of turns
		err = b.mend(ctx, t, Turn{ID: s.Last.GetTurnId()}, whyStopped)
	}
	if err != nil {
		return err
	}
	t.quiet = false
	b.note(t)
	return nil
}

// catchUp tells those who follow what was stored though it was not said so.
func (b *Book) catchUp(ctx context.Context, t *thread) error {
	told, followed := t.hub.reached()
	for followed && told < t.c.Sequence {
		events, err := b.config.Lists.Events(ctx, t.ref.ID, told, pageOfEvents)
		if err != nil || len(events) == 0 {
			return fmt.Errorf("read events: %w", err)
		}
		t.hub.publish(events)
		told = events[len(events)-1].GetSequence()
	}
	t.hub.skip(t.c.Sequence)
	return nil
}

// commit gives events their numbers, stores a change and then tells it. What has happened is kept, whether or not the
// caller is still there. The caller holds t.mu.
func (b *Book) commit(ctx context.Context, t *thread, change Change) error {
	now := b.config.Now()
	number := t.c.Sequence
	for _, event := range change.Events {
		number++
		event.Sequence, event.Time, event.ConversationId = number, timestamppb.New(now), t.ref.ID
	}
	change.Conversation.UpdatedAt = now
	change.Conversation.Sequence = number
	if err := b.config.Store.Append(context.WithoutCancel(ctx), change); err != nil {
		if !errors.Is(err, ErrExhausted) && !errors.Is(err, ErrKnown) {
			t.loaded = false // it may be stored all the same
		}
		return fmt.Errorf("keep conversation: %w", err)
	}
	t.c = change.Conversation
	for _, move := range change.Letters {
		t.move(move)
	}
	if r := t.run; r != nil {
		r.follow(change.Events)
		if change.Turn != nil {
			r.turn = *change.Turn
		}
		if r.turn.State == TurnEnded {
			b.settle(t)
		}
	}
	t.hub.publish(change.Events)
	if change.Begin == nil { // who lets the turn run notes it: nobody is to see a conversation at rest between two turns
		b.note(t)
	}
	return nil
}

// move keeps what waits as it is stored. The caller holds mu.
func (t *thread) move(m Move) {
	at := slices.IndexFunc(t.queue, func(l Letter) bool { return l.ID == m.Letter.ID })
	switch {
	case m.Letter.State != LetterWaiting:
		if at >= 0 {
			t.queue = slices.Delete(t.queue, at, at+1)
		}
		delete(t.attached, m.Letter.ID)
	case at >= 0:
		t.queue[at] = m.Letter
	default:
		t.queue = append(t.queue, m.Letter)
	}
}

// follow keeps for which approvals a turn waits.
func (r *run) follow(events []*agentv1.Event) {
	for _, event := range events {
		if event.GetTurnId() != r.turn.ID {
			continue
		}
		switch k := event.GetKind().(type) {
		case *agentv1.Event_ApprovalRequested:
			r.approvals = append(r.approvals, k.ApprovalRequested.GetApprovalId())
		case *agentv1.Event_ApprovalResolved:
			r.approvals = slices.DeleteFunc(r.approvals, func(id string) bool { return id == k.ApprovalResolved.GetApprovalId() })
		}
	}
}

// settle lets the next turn of a conversation begin. The caller holds t.mu.
func (b *Book) settle(t *thread) {
	r := t.run
	t.run = nil
	if r.placed {
		r.placed = false
		b.gate.leave()
	}
	close(r.ended)
}

// status is what a conversation does. The caller holds mu.
func (t *thread) status() agentv1.ConversationStatus {
	switch {
	case t.run != nil && len(t.run.approvals) > 0:
		return agentv1.ConversationStatus_CONVERSATION_STATUS_WAITING
	case t.run != nil:
		return agentv1.ConversationStatus_CONVERSATION_STATUS_RUNNING
	default:
		return rested(t.c)
	}
}

// rested is what a conversation does in which no turn runs.
func rested(c Conversation) agentv1.ConversationStatus {
	if c.LastEnd == agentv1.TurnEnd_TURN_END_FAILED {
		return agentv1.ConversationStatus_CONVERSATION_STATUS_FAILED
	}
	return agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE
}

// busy is what lists say of a conversation without its thread.
type busy struct {
	status agentv1.ConversationStatus // unspecified if no turn runs
	queued int
}

// note keeps what lists say of a conversation, and gives a place back while a turn waits for people. The caller holds
// t.mu.
func (b *Book) note(t *thread) {
	now := busy{queued: len(t.queue)}
	if r := t.run; r != nil {
		now.status = t.status()
		switch {
		case r.placed && len(r.approvals) > 0:
			r.placed = false
			b.gate.leave()
		case !r.placed && len(r.approvals) == 0 && r.working:
			r.placed = true
			b.gate.push()
		}
	}
	b.mu.Lock()
	if now == (busy{}) {
		delete(b.busy, t.ref)
	} else {
		b.busy[t.ref] = now
	}
	b.mu.Unlock()
	b.tellFamily(t)
}
