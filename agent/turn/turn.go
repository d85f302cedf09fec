// Package turn runs one turn of the agent: it asks the model, runs the tools that the model calls, and asks again, until
// the model answers, somebody stops it, or a limit is reached.
//
// What a turn promises, whatever the model, a tool or the caller does:
//
//   - Every call that the model made has exactly one result in the history, also when the turn is stopped in the middle
//     of it. An answer that was cut off runs no tool.
//   - Calls that only read run side by side; the others run one by one, in the order in which the model made them.
//   - The turn ends: after a number of rounds, of tokens, of minutes, of repeated calls, or of errors in a row. That it did
//     is an event, and a message makes it go on.
//   - A call that waits for a person waits as long as that takes: nothing of the turn's limits counts meanwhile. That it
//     waits, and how that ended, are events around it. Nothing that the model, a tool or a page says decides it.
//   - What happens is in the journal before anything depends on it.
//   - A durable turn goes on where the process that began it ended, wherever that was. Calls that have no result then are
//     made again under the key that they had: what a command did it does not do twice.
package turn

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/agent/history"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// Model answers one request.
type Model interface {
	// Complete sends a history and returns what the model made of it. With an error the turn is what arrived before.
	Complete(ctx context.Context, request model.Request, sink model.Sink) (model.Turn, error)
}

// Call is a command and who sends it where.
type Call struct {
	Workspace    string
	Principal    string           // the conversation
	Conversation string           // the one at the root, where a person decides
	Origin       controlv1.Origin // interactive if a person follows the turn
	DeviceIDs    []string         // empty where the ids in the action say which
	Action       *commandv1.Action
	Act          string // what large is counted over: all that one message of a person set off

	// Key is the same whenever this call is made again after a restart of the server.
	Key string
	// Durable says that the command goes on if the server stops: the call is made again then, with Again set. Whatever was
	// written down under its key is joined, and only if nothing was it is sent.
	Durable, Again bool

	// Asked is told of each approval that the command waits for, before it waits, and Resolved of how each of them ended,
	// before Command returns. Both return at once and may be called from any goroutine.
	Asked, Resolved func(*controlv1.Approval)
}

// Commander runs commands.
type Commander interface {
	// Command runs a command and waits for its end on every device, and before that for a person where policy asks one,
	// however long that takes. If the context ends it stops what it can. An error that the model may read is a *Refusal.
	//
	// If the context ends with ErrShutdown, a durable command is left as it is.
	Command(ctx context.Context, call Call) (*controlv1.DispatchResponse, error)
	// Withdraw takes back what a call of an earlier process still waits for, since it cannot be made any more, and says how
	// all that was written down under its key ended. It is nil if nothing was.
	Withdraw(ctx context.Context, call Call, why string) (*controlv1.DispatchResponse, error)
}

// Query is a question about state and who asks it.
type Query struct {
	Workspace    string
	Principal    string // the conversation
	Conversation string
	Origin       controlv1.Origin
	Method       protoreflect.FullName
	Request      proto.Message
}

// Querier answers queries.
type Querier interface {
	// Query calls a method that has no effect. An error that the model may read is a *Refusal.
	Query(ctx context.Context, query Query) (proto.Message, error)
}

// Refusal is an error of a tool with a text for the model.
type Refusal struct {
	Code    commandv1.ErrorCode
	Message string
}

func (r *Refusal) Error() string { return r.Message }

// ErrShutdown is the cause of a context that ends because the server stops. A durable turn leaves everything as it is
// then, and goes on in the next process.
var ErrShutdown = errors.New("stopped because the server stops; say \"go on\" to continue")

// Defaults of a configuration, and the most rounds that one may have.
const (
	DefaultRounds   = 10
	MaxRounds       = 200
	DefaultTokens   = 1_000_000
	DefaultTime     = 30 * time.Minute
	DefaultParallel = 8
)

// Config is what turns are made of.
type Config struct {
	Tools      *tool.Set
	Commander  Commander
	Querier    Querier
	Facilities Facilities // may be nil
	Random     io.Reader  // of the marks around data from outside; safe for concurrent use
	Log        *slog.Logger
	Rounds     int           // how often the model is asked in one turn; DefaultRounds if zero, MaxRounds at most
	Tokens     int64         // how many tokens one turn may use; DefaultTokens if zero
	Time       time.Duration // how long one turn may take, waiting for people left out; DefaultTime if zero
	ToolTokens int           // how many tokens the tools of a request may take; tool.DefaultBudget if zero
	Parallel   int           // how many reads run at once; DefaultParallel if zero
	Strict     bool          // mend nothing in the model's arguments
}

// Runner runs turns, any number at once.
type Runner struct {
	config   Config
	memories history.Memories
	calls    sync.WaitGroup // calls of tools that have not come back, also those that nobody waits for any more
}

// New makes a runner.
func New(config Config) *Runner {
	if config.Rounds == 0 {
		config.Rounds = DefaultRounds
	}
	config.Rounds = min(config.Rounds, MaxRounds)
	if config.Tokens == 0 {
		config.Tokens = DefaultTokens
	}
	if config.Time == 0 {
		config.Time = DefaultTime
	}
	if config.Parallel == 0 {
		config.Parallel = DefaultParallel
	}
	return &Runner{config: config}
}

// Wait waits until every call of a tool has come back. Call it when no turn runs any more.
func (r *Runner) Wait() { r.calls.Wait() }

// Run runs a turn to its end, which is an event in the journal; a durable one also until the server stops, which is none.
// It returns an error only if the journal failed.
func (r *Runner) Run(ctx context.Context, task Task) error {
	memory := r.memories.Take(task.Conversation)
	err := r.run(ctx, task, memory)
	r.memories.Put(task.Conversation, memory) // not after a panic: it may be half of something
	return err
}

func (r *Runner) run(ctx context.Context, task Task, memory *history.Memory) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &session{
		Runner: r, task: task, spent: task.Spent, guard: newGuard(), memory: memory, askers: map[string]*history.Asker{}, past: readPast(task.Past),
		made: map[string]bool{},
	}
	for id := range s.past.asked {
		s.made[id] = true
	}
	if s.history = slices.Clip(task.History); !task.Resumed {
		s.history = memory.Repair(task.History) // one that is resumed has calls that are still to be answered
	}
	s.clock = newClock(r.config.Time, time.Duration(task.Spent.Millis)*time.Millisecond, func() { cancel(errTime) })
	defer s.clock.stop()
	if s.clock.millis() >= r.config.Time.Milliseconds() {
		cancel(errTime) // now, and not when the timer comes round to it
	}
	if task.Resumed {
		if done, err := s.resume(ctx); done || err != nil {
			return err
		}
	}
	for {
		if done, err := s.round(ctx); done || err != nil {
			return err
		}
	}
}
