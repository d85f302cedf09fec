// Package agent puts the agent together: a model, the tools of the catalogue, conversations and their service.
//
// It knows the server only through two small interfaces, which app fills in: a Commander that sends commands and a
// Querier that answers queries.
package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"sync"
	"time"

	"connectrpc.com/connect/v2"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/facility"
	"throwbar.dev/throwbar/agent/rpc"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	"throwbar.dev/throwbar/catalog"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
)

// Config is what an agent is made of.
type Config struct {
	Catalogue *catalog.Catalogue
	Models    []turn.Choice // the default first; none if no model is set
	Hint      string        // one line that says what to set, if there is no model
	Commander turn.Commander
	Querier   turn.Querier
	Store     Store
	Authority conversation.Authority // nil if whoever calls is nobody
	Undoer    facility.Undoer        // nil if nothing can be undone
	// Permit is an error where policy does not let the agent do something itself, a *turn.Refusal if the model may read it;
	// nil lets all through.
	Permit func(ctx context.Context, call turn.FacilityCall) error
	// Workspace is the workspace of the caller of a method, from what the interceptors put into its context.
	Workspace func(context.Context) (string, error)
	Rounds    int // how often the model is asked in one turn; turn.DefaultRounds if zero
	// Definitions are the agents that can be started by name, and Limits bound all of them; a nil one bounds nothing beyond
	// the defaults. Both are valid, and name only models of Models.
	Definitions []*configv1.AgentDefinition
	Limits      *configv1.AgentLimits
	Random      io.Reader
	Now         func() time.Time
	Log         *slog.Logger
}

// Store keeps all that the agent has to keep.
type Store interface {
	conversation.Store
	conversation.Lists
	conversation.Outputs
}

// Agent is the agent of one server.
type Agent struct {
	book *conversation.Book
	edge rpc.Config
}

// New makes an agent. It starts nothing: turns wait for Run.
func New(config Config) (*Agent, error) {
	if len(config.Models) == 0 && config.Hint == "" {
		return nil, errors.New("make agent: neither a model nor a hint what to set")
	}
	tools, err := tool.NewSet(config.Catalogue, facility.Remarks(config.Definitions)...)
	if err != nil {
		return nil, err
	}
	config.Random = &lockedReader{from: config.Random}
	book := conversation.Config{
		Store: config.Store, Lists: config.Store, Outputs: config.Store, Authority: config.Authority, Models: config.Models, Hint: config.Hint,
		Definitions: config.Definitions, Random: config.Random, Now: config.Now, Log: config.Log,
		Check: tools.Check, Listed: tools.Listed, Within: tools.Within, Limits: conversation.Limits{
			Wakes: int(config.Limits.GetWakes()), ChainWakes: int(config.Limits.GetChainWakes()), Depth: int(config.Limits.GetDepth()),
		},
	}
	edge := rpc.Config{Hint: config.Hint, Workspace: config.Workspace, Tools: tools, Models: config.Models}
	if len(config.Models) > 0 {
		edge.Model, edge.Hint = config.Models[0].Name, ""
	}
	own := &late{}
	book.Turner = turn.New(turn.Config{
		Tools: tools, Commander: config.Commander, Querier: config.Querier, Random: config.Random, Log: config.Log, Rounds: config.Rounds,
		Tokens: int64(min(config.Limits.GetTurnTokens(), math.MaxInt64)), Time: config.Limits.GetTurnTime().AsDuration(),
		ToolTokens: int(config.Limits.GetToolTokens()), Facilities: own,
	})
	edge.Book = conversation.New(book)
	own.Facilities = facility.New(facility.Config{
		Catalogue: config.Catalogue, Tools: tools, Conversations: edge.Book, Undoer: config.Undoer, Permit: config.Permit,
		Definitions: config.Definitions, Log: config.Log,
	})
	return &Agent{book: edge.Book, edge: edge}, nil
}

// late are facilities that are made of what is made of them.
type late struct{ turn.Facilities }

// Run lets turns begin. When the context ends it stops those that run and waits for them.
func (a *Agent) Run(ctx context.Context) error { return a.book.Run(ctx) }

// Register registers the agent's service.
func (a *Agent) Register(server *connect.Server) { rpc.Register(server, a.edge) }

// lockedReader lets all turns share a source of randomness.
type lockedReader struct {
	mu   sync.Mutex
	from io.Reader // guarded by mu
}

// Read fills p.
func (l *lockedReader) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return io.ReadFull(l.from, p)
}
