package conversation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/google/uuid"

	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
)

// Turner runs turns.
type Turner interface {
	// Run runs a turn to its end, which it records in the journal. An error says that the journal failed.
	Run(ctx context.Context, task turn.Task) error
	// Wait waits for what turns have left behind.
	Wait()
}

var _ Turner = (*turn.Runner)(nil)

// Authority says on whose behalf something is asked. What an agent does because of a message, and what other agents do
// because of that, happens on behalf of the person who wrote it, also after a restart.
type Authority interface {
	// Of names whoever calls.
	Of(ctx context.Context) string
	// As gives a context in which that caller asks, if it still may.
	As(ctx context.Context, workspace, name string) context.Context
}

// Config is what a book is made of.
type Config struct {
	Store       Store
	Lists       Lists
	Outputs     Outputs
	Turner      Turner
	Authority   Authority     // nil if nobody asks
	Models      []turn.Choice // the default first; none if no model is set
	Hint        string        // what to set if there is none
	Definitions []*configv1.AgentDefinition
	Limits      Limits
	Check       func(tool.Access) error // refuses names of tools that are not there; nil takes all
	// Listed is what the list of tools of a definition gives; nil if there are no definitions.
	Listed func(tools []string) tool.Access
	// Within is what a child may use of its own grants under a parent's; its own if nil.
	Within func(child, parent tool.Access) tool.Access
	Random io.Reader // safe for concurrent use
	Now    func() time.Time
	// Tick gives the times at which those who follow get a sign of life; every 15 seconds if nil.
	Tick func() (times <-chan time.Time, stop func())
	Log  *slog.Logger
}

// Book is all conversations of one server.
type Book struct {
	config Config
	gate   *gate
	ready  chan struct{} // closed when Run runs
	turns  sync.WaitGroup

	summoning sync.Mutex // held while an agent is started; taken before any thread's

	mu      sync.Mutex
	threads map[Ref]*thread   // guarded by mu; those that are used
	runs    map[*run]struct{} // guarded by mu; turns that run, or are about to leave
	busy    map[Ref]busy      // guarded by mu; where a turn runs or a message waits
	closed  bool              // guarded by mu
	bereft  []Conversation    // guarded by mu; whose turn ended with an earlier process, and its caller with it
	resumed bool              // guarded by mu; what an earlier process left was taken up, but for what could not be read
}

// New makes a book. It starts nothing: turns wait for Run.
func New(config Config) *Book {
	config.Limits = config.Limits.withDefaults()
	if config.Tick == nil {
		config.Tick = everyFifteenSeconds
	}
	return &Book{
		config: config, gate: &gate{free: config.Limits.Turns}, ready: make(chan struct{}), threads: map[Ref]*thread{},
		runs: map[*run]struct{}{}, busy: map[Ref]busy{},
	}
}

func everyFifteenSeconds() (times <-chan time.Time, stop func()) {
	t := time.NewTicker(15 * time.Second)
	return t.C, t.Stop
}

func (b *Book) limits() Limits { return b.config.Limits }

// Run goes on with what an earlier process has left, and lets turns begin. When the context ends it stops those that run
// and waits for them; the durable ones go on when a server runs again.
func (b *Book) Run(ctx context.Context) error {
	if err := b.resume(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	close(b.ready)
	<-ctx.Done()
	b.leaveCallers()
	b.mu.Lock()
	b.closed = true
	for r := range b.runs {
		r.stop(ErrShutdown)
	}
	b.mu.Unlock()
	b.turns.Wait()
	b.config.Turner.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.threads {
		t.hub.cut(errClosed())
	}
	return nil
}

// await waits until the book runs.
func (b *Book) await(ctx context.Context) error {
	select {
	case <-b.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reserve counts a turn that is about to begin. It says false if the server stops.
func (b *Book) reserve() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.turns.Add(1)
	}
	return !b.closed
}

func (b *Book) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

func errClosed() error { return errorf(Unavailable, "the server stops: try again in a moment") }

// Stop stops the turn of a conversation, and those of the agents that it started, and waits for its end. What agents
// would have done because of the message behind it is not done any more, and what waits is read with the next message.
// It says whether any ran.
func (b *Book) Stop(ctx context.Context, workspace, ref string) (bool, error) {
	if err := b.await(ctx); err != nil {
		return false, err
	}
	c, err := b.named(ctx, workspace, ref)
	if err != nil {
		return false, err
	}
	return b.stop(ctx, c)
}

// stop stops all of it first and waits then: what was asked for is done whether or not the caller is still there.
func (b *Book) stop(ctx context.Context, c Conversation) (bool, error) {
	runs, err := b.halt(context.WithoutCancel(ctx), c)
	if err != nil {
		return len(runs) > 0, err
	}
	return len(runs) > 0, awaitEnds(ctx, runs)
}

// awaitEnds waits until other turns may begin where some were stopped.
func awaitEnds(ctx context.Context, runs []*run) error {
	for _, r := range runs {
		select {
		case <-r.ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// halt tells the turn of a conversation to end, and those of the agents below it, and gives those that ran. Its chain is
// closed before the agents are listed: one that is started at this very moment is either among them or never begun.
func (b *Book) halt(ctx context.Context, c Conversation) ([]*run, error) {
	runs, err := b.haltOne(ctx, c)
	below, childErr := b.haltChildren(ctx, c)
	return append(runs, below...), errors.Join(err, childErr)
}

// haltOne tells the turn of a conversation to end, and gives it if one runs.
func (b *Book) haltOne(ctx context.Context, c Conversation) ([]*run, error) {
	var runs []*run
	err := b.locked(ctx, Ref{c.Workspace, c.ID}, func(t *thread) error {
		r := t.run
		if r == nil {
			return nil
		}
		runs = append(runs, r)
		defer r.stop(ErrStopped)
		row := r.turn
		row.Stopping = true
		change := Change{Conversation: t.c, Turn: &row, Close: row.Chain, Durable: true}
		change.Conversation.Holds |= HeldByStop
		return b.commit(ctx, t, change)
	})
	return runs, err
}

// haltChildren tells the agents that the agent of a conversation started to end, and theirs. One that was begun for itself
// has no parent, and goes on.
func (b *Book) haltChildren(ctx context.Context, c Conversation) ([]*run, error) {
	children, err := b.config.Lists.Children(ctx, c.Workspace, c.ID)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	var runs []*run
	var all error
	for _, child := range children {
		below, err := b.halt(ctx, child)
		runs, all = append(runs, below...), errors.Join(all, err)
	}
	return runs, all
}

func (b *Book) newID() (string, error) {
	id, err := uuid.NewRandomFromReader(b.config.Random)
	if err != nil {
		return "", fmt.Errorf("make id: %w", err)
	}
	return id.String(), nil
}

// maxTitle is how many characters a title has that is made from a message.
const maxTitle = 60

// title is the first line of a message, cut at a word.
func title(message string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	letters := []rune(line(first))
	if len(letters) <= maxTitle {
		return string(letters)
	}
	cut := string(letters[:maxTitle])
	if at := strings.LastIndexByte(cut, ' '); at > maxTitle/2 {
		cut = cut[:at]
	}
	return cut + "…"
}

// line is a text in one line, without what cannot be seen.
func line(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
}
