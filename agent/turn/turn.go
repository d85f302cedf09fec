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
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
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
	Principal    string // the conversation
	Conversation string
	Origin       controlv1.Origin // interactive if a person follows the turn
	DeviceIDs    []string         // empty where the ids in the action say which
	Action       *commandv1.Action

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

// Journal keeps what happens in a turn.
type Journal interface {
	// Record stores messages of the history and events in one step. It does so even if ctx has ended.
	Record(ctx context.Context, messages []model.Message, events ...*agentv1.Event) error
	// Delta passes on a piece of an answer, which is not stored.
	Delta(event *agentv1.Event)
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
	Model     Model
	Tools     *tool.Set
	Commander Commander
	Querier   Querier
	Random    io.Reader // of the marks around data from outside; safe for concurrent use
	Log       *slog.Logger
	Rounds    int  // how often the model is asked in one turn; DefaultRounds if zero
	Parallel  int  // how many reads run at once; DefaultParallel if zero
	Strict    bool // mend nothing in the model's arguments
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

// Task is one turn.
type Task struct {
	Workspace string
	Principal string // the conversation
	Origin    controlv1.Origin
	// History is the conversation so far; it ends with the message that begins the turn.
	History []model.Message
	Journal Journal
}

// Run runs a turn to its end, which is an event in the journal. It returns an error only if the journal failed.
func (r *Runner) Run(ctx context.Context, task Task) error {
	s := &session{Runner: r, task: task, history: append([]model.Message{r.system}, task.History...), guard: newGuard()}
	for round := 1; ; round++ {
		done, err := s.round(ctx, round)
		if done || err != nil {
			return err
		}
	}
}
