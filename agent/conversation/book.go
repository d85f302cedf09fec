package conversation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/google/uuid"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// Turner runs turns.
type Turner interface {
	// Run runs a turn to its end, which it records in the journal. An error says that the journal failed.
	Run(ctx context.Context, task turn.Task) error
	// Wait waits for what turns have left behind.
	Wait()
}

var _ Turner = (*turn.Runner)(nil)

// Config is what a book is made of.
type Config struct {
	Store  Store
	Turner Turner
	Models []turn.Choice // the default first; none if no model is set
	Hint   string        // what to set if there is none
	Random io.Reader     // safe for concurrent use
	Now    func() time.Time
	Log    *slog.Logger
}

// Book is all conversations of one server.
type Book struct {
	config Config
	ready  chan struct{} // closed when Run runs
	turns  sync.WaitGroup

	mu      sync.Mutex
	running map[string]*run // by conversation
	closed  bool
}

// run is a turn that runs.
type run struct {
	stop  context.CancelCauseFunc
	ended chan struct{} // closed when another turn may begin
	feed  *Feed
}

// New makes a book. It starts nothing: turns wait for Run.
func New(config Config) *Book {
	return &Book{
		config: config, ready: make(chan struct{}), running: map[string]*run{},
	}
}

// Run lets turns begin. When the context ends it stops those that run and waits for them.
func (b *Book) Run(ctx context.Context) error {
	close(b.ready)
	<-ctx.Done()
	b.mu.Lock()
	b.closed = true
	for _, r := range b.running {
		r.stop(ErrShutdown)
	}
	b.mu.Unlock()
	b.turns.Wait()
	b.config.Turner.Wait()
	return nil
}

// Request is one message of a person.
type Request struct {
	Workspace    string
	Conversation string // an id or a handle; a new conversation is begun if empty
	Message      string
	Detached     bool // the turn goes on when the caller goes away
}

// Chat stores a message and begins the turn that answers it. Unless the request is detached, the turn stops when ctx
// ends.
func (b *Book) Chat(ctx context.Context, request Request) (*Feed, error) {
	if len(b.config.Models) == 0 {
		return nil, errorf(NoModel, "%s", b.config.Hint)
	}
	select {
	case <-b.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	now := b.config.Now()
	c := Conversation{Workspace: request.Workspace, Title: title(request.Message), Open: true, CreatedAt: now, UpdatedAt: now}
	isNew := request.Conversation == ""
	var err error
	if isNew {
		c.ID, err = b.newID()
	} else {
		c, err = b.named(ctx, request.Workspace, request.Conversation)
	}
	if err != nil {
		return nil, err
	}
	turnCtx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	r := &run{stop: stop, ended: make(chan struct{}), feed: newFeed()}
	if err := b.claim(c.ID, r); err != nil {
		stop(nil)
		return nil, err
	}
	// From here on the run is registered, and stays so until begin has failed or its turn has ended.
	j, history, err := b.begin(ctx, c, isNew, r, request.Message)
	if err != nil {
		b.release(c.ID, r)
		b.turns.Done()
		stop(nil)
		return nil, err
	}
	go b.turn(turnCtx, j, history, origin(request))
	if !request.Detached {
		context.AfterFunc(ctx, func() { stop(ErrGone) })
	}
	return r.feed, nil
}

// origin is where the commands of a turn come from: a person follows one that ends with its caller.
func origin(request Request) controlv1.Origin {
	if request.Detached {
		return controlv1.Origin_ORIGIN_BACKGROUND
	}
	return controlv1.Origin_ORIGIN_INTERACTIVE
}

// claim makes a run the only one of its conversation, and counts it among the turns.
func (b *Book) claim(id string, r *run) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errorf(Unavailable, "the server stops: try again in a moment")
	}
	if _, ok := b.running[id]; ok {
		return errorf(Busy, "a turn runs in this conversation: wait for its end, or stop it")
	}
	b.running[id] = r
	b.turns.Add(1)
	return nil
}

// release lets the next turn of a conversation begin. It may be called again.
func (b *Book) release(id string, r *run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running[id] == r {
		delete(b.running, id)
		close(r.ended)
	}
}

// begin stores a person's message and gives the history that the turn begins with.
func (b *Book) begin(ctx context.Context, c Conversation, isNew bool, r *run, message string) (*journal, []model.Message, error) {
	id, err := b.newID()
	if err != nil {
		return nil, nil, err
	}
	j := &journal{book: b, run: r, conversation: c, turn: id}
	var history []model.Message
	if !isNew {
		if err := b.load(ctx, j); err != nil {
			return nil, nil, err
		}
		if history, err = b.config.Store.Messages(ctx, c.ID); err != nil {
			return nil, nil, fmt.Errorf("read history: %w", err)
		}
	}
	said := model.Message{Role: model.RoleUser, Text: message}
	err = j.store(ctx, Change{New: isNew, Durable: true, Messages: []model.Message{said}, Events: []*agentv1.Event{
		{Kind: &agentv1.Event_TurnStarted{TurnStarted: &agentv1.TurnStarted{Model: b.config.Models[0].Name}}},
		{Kind: &agentv1.Event_Message{Message: &agentv1.Message{Role: agentv1.Role_ROLE_USER, Text: message}}},
	}})
	if err != nil {
		return nil, nil, err
	}
	return j, model.Repair(append(history, said)), nil
}

// turn runs a turn. It is the goroutine of the turn.
func (b *Book) turn(ctx context.Context, j *journal, history []model.Message, from controlv1.Origin) {
	defer b.turns.Done()
	defer j.run.stop(nil)
	if err := b.guarded(ctx, j, history, from); err != nil {
		b.config.Log.ErrorContext(ctx, "turn broke", slog.String("conversation_id", j.conversation.ID), slog.Any("error", err))
		j.giveUp(ctx)
	}
	b.release(j.conversation.ID, j.run)
	j.run.feed.end()
}

// guarded runs a turn so that a fault in it does not end the server.
func (b *Book) guarded(ctx context.Context, j *journal, history []model.Message, from controlv1.Origin) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("turn panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	return b.config.Turner.Run(ctx, turn.Task{
		Workspace: j.conversation.Workspace, Conversation: j.conversation.ID, Root: j.conversation.ID, TurnID: j.turn, Origin: from,
		History: history, Journal: j,
	})
}

// Stop stops the turn of a conversation and waits for its end. It says whether one ran.
func (b *Book) Stop(ctx context.Context, workspace, ref string) (bool, error) {
	c, err := b.named(ctx, workspace, ref)
	if err != nil {
		return false, err
	}
	b.mu.Lock()
	r, ok := b.running[c.ID]
	b.mu.Unlock()
	if !ok {
		return false, nil
	}
	r.stop(ErrStopped)
	select {
	case <-r.ended:
		return true, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

// Row is one conversation in a list.
type Row struct {
	Conversation
	Handle  string // empty if it is not open
	Running bool
}

// List lists conversations, the last used first.
func (b *Book) List(ctx context.Context, workspace string, after *Place, limit int) ([]Row, error) {
	page, err := b.config.Store.Conversations(ctx, workspace, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list conversations: %w", err)
	}
	open, err := b.config.Store.Find(ctx, workspace, "")
	if err != nil {
		return nil, fmt.Errorf("find conversations: %w", err)
	}
	ids := make([]string, len(open))
	for i, c := range open {
		ids[i] = c.ID
	}
	slices.Sort(ids)
	short := handles(ids)
	rows := make([]Row, len(page))
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, c := range page {
		_, running := b.running[c.ID]
		rows[i] = Row{Conversation: c, Handle: short[c.ID], Running: running}
	}
	return rows, nil
}

// Events lists stored events with numbers above after.
func (b *Book) Events(ctx context.Context, workspace, ref string, after uint64, limit int) ([]*agentv1.Event, error) {
	c, err := b.readable(ctx, workspace, ref)
	if err != nil {
		return nil, err
	}
	if err := b.mend(ctx, c); err != nil {
		return nil, err
	}
	events, err := b.config.Store.Events(ctx, c.ID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	return events, nil
}

// readable is a conversation by its handle, or by its whole id if it is not open any more.
func (b *Book) readable(ctx context.Context, workspace, ref string) (Conversation, error) {
	c, _, err := b.config.Store.Conversation(ctx, workspace, ref)
	if errors.Is(err, ErrNoRow) {
		return b.named(ctx, workspace, ref)
	}
	if err != nil {
		return Conversation{}, fmt.Errorf("read conversation: %w", err)
	}
	return c, nil
}

func (b *Book) newID() (string, error) {
	id, err := uuid.NewRandomFromReader(b.config.Random)
	if err != nil {
		return "", fmt.Errorf("make id: %w", err)
	}
	return id.String(), nil
}

// maxTitle is how many characters a title has.
const maxTitle = 60

// title is the first line of a message, cut at a word.
func title(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	line = strings.Join(strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	letters := []rune(line)
	if len(letters) <= maxTitle {
		return line
	}
	cut := string(letters[:maxTitle])
	if at := strings.LastIndexByte(cut, ' '); at > maxTitle/2 {
		cut = cut[:at]
	}
	return cut + "…"
}
