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
	"sync"
	"time"

	"connectrpc.com/connect/v2"

	"throwbar.dev/throwbar/agent/conversation"
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
	Store     conversation.Store
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
	tools, err := tool.NewSet(config.Catalogue)
	if err != nil {
		return nil, err
	}
	config.Random = &lockedReader{from: config.Random}
	book := conversation.Config{
		Store: config.Store, Models: config.Models, Hint: config.Hint, Random: config.Random, Now: config.Now, Log: config.Log,
	}
	edge := rpc.Config{Hint: config.Hint, Workspace: config.Workspace}
	if len(config.Models) > 0 {
		edge.Model, edge.Hint = config.Models[0].Name, ""
	}
	book.Turner = turn.New(turn.Config{
		Tools: tools, Commander: config.Commander, Querier: config.Querier, Random: config.Random, Log: config.Log, Rounds: config.Rounds,
	})
	edge.Book = conversation.New(book)
	return &Agent{book: edge.Book, edge: edge}, nil
}

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
