package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/store/storetest"
)

// said is a message as the rules of routing see it.
type said struct {
	id     string
	person bool
	steers bool
	chain  string // the message of a person from which it follows
}

// desk is what the rules say of one conversation.
type desk struct {
	open, held bool // held: what waits is left until the next turn begins
	wakes      int
	waits      []said
	runs       bool
	chain      string     // of the turn that runs
	read       [][]string // by turn
}

// rules is the specification of routing, written down once more and as plainly as it can be: one thing at a time, in memory.
type rules struct {
	limits conversation.Limits
	desks  []*desk
	left   map[string]int // wakes of chains
	begun  []int          // where a turn began just now
}

func (r *rules) begin(at int, read []said, chain string) {
	d := r.desks[at]
	d.runs, d.held, d.waits, d.chain = true, false, nil, chain
	var ids []string
	for _, m := range read {
		ids = append(ids, m.id)
	}
	d.read = append(d.read, ids)
	r.begun = append(r.begun, at)
}

// wake begins a turn with messages if they may, and pays for it with the first of the chains that can.
func (r *rules) wake(at int, read []said, chains []string) bool {
	d := r.desks[at]
	for _, m := range slices.Backward(read) {
		if m.person {
			r.begin(at, read, m.chain)
			return true
		}
	}
	for _, chain := range chains {
		if d.wakes > 0 && r.left[chain] > 0 {
			d.wakes--
			r.left[chain]--
			r.begin(at, read, chain)
			return true
		}
	}
	return false
}

func (r *rules) deliver(at int, m said) (agentv1.Delivery, conversation.Code) {
	d := r.desks[at]
	full := len(d.waits) >= r.limits.Queue
	before := *d
	switch {
	case !d.open:
		return 0, conversation.Archived
	case m.person:
		d.wakes, d.held = r.limits.Wakes, false
	}
	become := hasQueued
	switch {
	case !d.runs && r.wake(at, append(slices.Clone(d.waits), m), []string{m.chain}):
		if m.person {
			r.left[m.chain] = r.limits.ChainWakes
		}
		return hasStarted, 0
	case full:
		*d = before
		return 0, conversation.Busy
	case !d.runs:
		become = isHeld
	case m.steers:
		become = hasSteered
	}
	if m.person {
		r.left[m.chain] = r.limits.ChainWakes
	}
	d.waits = append(d.waits, m)
	return become, 0
}

// step is the next step of the turn that runs, which takes in what is to steer it.
func (r *rules) step(at int) (taken int) {
	d := r.desks[at]
	d.waits = slices.DeleteFunc(d.waits, func(m said) bool {
		if !m.steers {
			return false
		}
		taken++
		d.read[len(d.read)-1] = append(d.read[len(d.read)-1], m.id)
		if m.person {
			d.chain = m.chain
		}
		return true
	})
	return taken
}

func (r *rules) end(at int) {
	d := r.desks[at]
	d.runs = false
	if d.held || !d.open {
		return
	}
	var chains []string
	for _, m := range d.waits {
		chains = append(chains, m.chain)
	}
	if len(d.waits) > 0 {
		r.wake(at, slices.Clone(d.waits), chains)
	}
}

func (r *rules) stop(at int) {
	if d := r.desks[at]; d.runs {
		d.held = true
		r.left[d.chain] = 0
		r.end(at)
	}
}

// player plays the turns that run: each does what the test tells it.
type player struct {
	task turn.Task
	do   chan func(context.Context) bool // whether it goes on
}

// routed compares the conversations with the rules.
type routed struct {
	*shelf
	rules
	random  *rand.Rand
	ids     []string
	players []*player
	arrived chan *player
	sent    []conversation.Delivery
	as      []conversation.Delivered
	trace   []string
}

func (r *routed) act(ctx context.Context, _ *conversation.Book, task turn.Task) error {
	p := &player{task: task, do: make(chan func(context.Context) bool)}
	r.arrived <- p
	for {
		select {
		case do := <-p.do:
			if !do(ctx) {
				return nil
			}
		case <-ctx.Done():
			return ended(ctx, task, agentv1.TurnEnd_TURN_END_STOPPED)
		}
	}
}

// in does something in the turn that runs there, and waits until it is done.
func (r *routed) in(at int, do func(ctx context.Context, task turn.Task) (goesOn bool)) {
	done := make(chan struct{})
	r.players[at].do <- func(ctx context.Context) bool {
		defer close(done)
		return do(ctx, r.players[at].task)
	}
	<-done
}

// arrive waits for the turns that the rules say have begun.
func (r *routed) arrive() {
	for range r.begun {
		p := <-r.arrived
		at := slices.Index(r.ids, p.task.Conversation)
		if !slices.Contains(r.begun, at) {
			r.t.Fatalf("a turn begins in %d; %q", at, r.trace)
		}
		r.players[at] = p
	}
	r.begun = nil
}

// Whatever people and agents say to each other, and however turns end, are stopped and cut off by a restart: what becomes of
// each message, who is woken, and what each turn reads is what the rules say, on both stores.
func TestRoutingKeepsToTheRules(t *testing.T) {
	t.Parallel()
	var postgres storetest.Cluster
	t.Cleanup(postgres.Stop)
	for _, engine := range postgres.Engines() {
		seeds := 4 // restarts take longest
		if engine.SQLite() {
			seeds = 12
		}
		for seed := range seeds {
			t.Run(fmt.Sprint(engine.Name, seed), func(t *testing.T) {
				t.Parallel()
				testRouting(t, engine.URL(t), uint64(seed))
			})
		}
	}
}

func testRouting(t *testing.T, url string, seed uint64) {
	r := &routed{random: rand.New(rand.NewPCG(seed, 11)), arrived: make(chan *player, 8), players: make([]*player, 3)}
	r.shelf = newShelf(t, r.act)
	r.check(r.shelf.stop())
	r.url = url
	r.rules = rules{limits: conversation.Limits{Wakes: 2, ChainWakes: 3, Queue: 4}, left: map[string]int{}}
	r.shelf.limits = r.rules.limits
	r.start()
	for i := range r.players {
		row, err := r.Create(t.Context(), "w", fmt.Sprint("agent ", i), nil, "")
		r.check(err)
		r.ids = append(r.ids, row.ID)
		r.desks = append(r.desks, &desk{open: true, wakes: r.rules.limits.Wakes})
	}
	for n := range 90 {
		r.op(n)
		r.arrive()
		for at := range r.desks {
			r.compare(at)
		}
		if t.Failed() {
			t.Fatalf("after %q", r.trace)
		}
	}
	for at, d := range r.desks {
		events, err := r.Events(t.Context(), "w", r.ids[at], 0, 10_000)
		r.check(err)
		if got := started(events); !slices.EqualFunc(got, d.read, slices.Equal) {
			t.Errorf("the turns of %d read %q, want %q; %q", at, got, d.read, r.trace)
		}
	}
}

// op does one thing, here and by the rules.
func (r *routed) op(n int) {
	at := r.random.IntN(len(r.ids))
	d := r.desks[at]
	kind := r.random.IntN(20)
	r.trace = append(r.trace, fmt.Sprint(kind, "@", at))
	switch {
	case kind < 4:
		r.says(at, said{id: fmt.Sprint("p", n), person: true, steers: r.random.IntN(3) == 0}, nil)
	case kind < 10 && d.runs: // its agent writes to another one
		to := (at + 1 + r.random.IntN(2)) % len(r.ids)
		r.in(at, func(ctx context.Context, task turn.Task) bool {
			r.says(to, said{id: fmt.Sprint("a", n), chain: d.chain, steers: r.random.IntN(4) == 0}, &task)
			return true
		})
	case kind < 12 && d.runs:
		r.in(at, func(ctx context.Context, task turn.Task) bool {
			step, err := task.Journal.Next(ctx)
			if want := r.step(at); err != nil || len(step.Messages) != want {
				r.t.Errorf("a step takes %d, %v, want %d", len(step.Messages), err, want)
			}
			return true
		})
	case kind < 15 && d.runs:
		reasons := []agentv1.TurnEnd{agentv1.TurnEnd_TURN_END_ANSWERED, agentv1.TurnEnd_TURN_END_FAILED, agentv1.TurnEnd_TURN_END_LIMIT}
		r.in(at, func(ctx context.Context, task turn.Task) bool {
			r.check(ended(ctx, task, reasons[n%3]))
			return false
		})
		r.end(at)
	case kind == 15 && d.open:
		ran, err := r.Stop(r.t.Context(), "w", r.ids[at])
		if err != nil || ran != d.runs {
			r.t.Errorf("stopped %v, %v", ran, err)
		}
		r.rules.stop(at)
	case kind == 16:
		r.touch(at)
	case kind == 17:
		r.away(at)
	case kind == 18 && len(r.sent) > 0:
		i := r.random.IntN(len(r.sent))
		told, err := r.Deliver(r.t.Context(), r.sent[i])
		if want := r.as[i]; err != nil || told.Delivery != want.Delivery || told.Conversation.ID != want.Conversation.ID || told.Sequence != want.Sequence {
			r.t.Errorf("again: %+v, %v, want %+v", told, err, want)
		}
	case kind == 19:
		r.restart()
		for at, d := range r.desks {
			if d.runs {
				r.begun = append(r.begun, at)
			}
		}
	}
}

// says delivers a message, of a person or from a turn.
func (r *routed) says(at int, m said, from *turn.Task) {
	d := conversation.Delivery{Workspace: "w", To: r.ids[at], Text: m.id, MessageID: m.id}
	if m.steers {
		d.Mode = agentv1.SendMode_SEND_MODE_STEER
	}
	if from != nil {
		d.From, d.Turn = from.Conversation, from.TurnID
	} else {
		m.chain = m.id
	}
	become, code := r.deliver(at, m)
	told, err := r.Deliver(r.t.Context(), d)
	var known *conversation.Error
	switch {
	case code != 0:
		if !errors.As(err, &known) || known.Code != code {
			r.t.Errorf("%s: %+v, %v, want code %d", m.id, told, err, code)
		}
	case err != nil || told.Delivery != become:
		r.t.Errorf("%s: %v, %v, want %v", m.id, told.Delivery, err, become)
	default:
		r.sent, r.as = append(r.sent, d), append(r.as, told)
	}
}

// touch takes a message back that waits.
func (r *routed) touch(at int) {
	d := r.desks[at]
	if len(d.waits) == 0 {
		return
	}
	i := r.random.IntN(len(d.waits))
	r.check(r.Remove(r.t.Context(), "w", r.ids[at], d.waits[i].id))
	d.waits = slices.Delete(d.waits, i, i+1)
}

// away archives a conversation, or opens it again.
func (r *routed) away(at int) {
	d := r.desks[at]
	var err error
	if d.open {
		_, err = r.Archive(r.t.Context(), "w", r.ids[at])
		d.open, d.held = false, true
		r.rules.stop(at)
	} else {
		_, err = r.Reopen(r.t.Context(), "w", r.ids[at])
		d.open = true
	}
	r.check(err)
}

func (r *routed) compare(at int) {
	r.t.Helper()
	d, row := r.desks[at], r.get(r.ids[at])
	runs := row.Status == agentv1.ConversationStatus_CONVERSATION_STATUS_RUNNING
	var waits, want []string
	letters, err := r.Waiting(r.t.Context(), "w", r.ids[at], 0, 100)
	r.check(err)
	for _, l := range letters {
		waits = append(waits, l.ID)
	}
	for _, m := range d.waits {
		want = append(want, m.id)
	}
	if runs != d.runs || row.Open != d.open || row.Wakes != d.wakes || row.Queued != len(want) || !slices.Equal(waits, want) {
		r.t.Errorf("%d: %+v with %q waiting; want %+v", at, row, waits, *d)
	}
	if !d.runs {
		return
	}
	chain, err := r.kept.Chain(r.t.Context(), "w", r.players[at].task.TurnID)
	if err != nil || chain.Left != r.left[d.chain] {
		r.t.Errorf("%d: its chain has %d left, %v; want %d of %s", at, chain.Left, err, r.left[d.chain], d.chain)
	}
}
