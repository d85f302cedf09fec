// Package turn runs one turn of the agent: it asks the model, runs the tools that the model calls, and asks again, until
// the model answers, somebody stops it, or a limit is reached.
//
// What a turn promises, whatever the model, a tool or the caller does:
//
//   - Every call that the model made has exactly one result in the history, also when the turn is stopped in the middle
//     of it. An answer that was cut off runs no tool.
//   - Calls that only read run side by side; the others run one by one, in the order in which the model made them.
//   - The turn ends: after a number of rounds, of repeated calls, or of errors in a row. That it did is an event.
//   - A call that waits for a person waits as long as that takes: nothing of the turn's limits counts meanwhile. That it
//     waits, and how that ended, are events around it. Nothing that the model, a tool or a page says decides it.
//   - What happens is in the journal before anything depends on it.
package turn

import (
	"context"
	"io"
	"log/slog"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

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
	Command(ctx context.Context, call Call) (*controlv1.DispatchResponse, error)
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

// Defaults of a configuration.
const (
	DefaultRounds   = 10
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
	Rounds     int  // how often the model is asked in one turn; DefaultRounds if zero
	Parallel   int  // how many reads run at once; DefaultParallel if zero
	Strict     bool // mend nothing in the model's arguments
}

// Runner runs turns, any number at once.
type Runner struct {
	config Config
	tools  []model.Tool
	system model.Message
	calls  sync.WaitGroup // calls of tools that have not come back, also those that nobody waits for any more
}

// New makes a runner.
func New(config Config) *Runner {
	if config.Rounds == 0 {
		config.Rounds = DefaultRounds
	}
	if config.Parallel == 0 {
		config.Parallel = DefaultParallel
	}
	return &Runner{
		config: config, tools: config.Tools.Portable(), system: model.Message{Role: model.RoleSystem, Text: prompt()},
	}
}

// Wait waits until every call of a tool has come back. Call it when no turn runs any more.
func (r *Runner) Wait() { r.calls.Wait() }

// Run runs a turn to its end, which is an event in the journal. It returns an error only if the journal failed.
func (r *Runner) Run(ctx context.Context, task Task) error {
	s := &session{Runner: r, task: task, history: append([]model.Message{r.system}, task.History...), spent: task.Spent, guard: newGuard()}
	for round := task.Spent.Rounds + 1; ; round++ {
		done, err := s.round(ctx, round)
		if done || err != nil {
			return err
		}
	}
}
