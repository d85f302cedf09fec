package conversation

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// Conversation is one thread.
type Conversation struct {
	ID        string
	Workspace string
	Title     string
	Open      bool
	CreatedAt time.Time
	UpdatedAt time.Time
	Settings  *agentv1.ConversationSettings // never nil in what a Store gives; nobody changes it in place
	Parent    string                        // whose agent started it; empty if a person did
	Root      string                        // where a person decides for it; empty if here
	Agent     string                        // name of its definition; empty if it has none
	Wakes     int                           // how often agents may still wake it
	Holds     Holds
	LastEnd   agentv1.TurnEnd // how its last turn ended; zero if none has
	Sequence  uint64          // of its last event; zero if it has none
}

// RootID is the conversation where a person decides for this one.
func (c Conversation) RootID() string {
	if c.Root == "" {
		return c.ID
	}
	return c.Root
}

// Equal says whether two are the same in everything.
func (c Conversation) Equal(o Conversation) bool {
	settings := proto.Equal(c.Settings, o.Settings)
	c.Settings, o.Settings = nil, nil
	return settings && c == o
}

// Holds says why what waits in a conversation is not read by itself, and what its reader was told of that. A message of a
// person ends all of it.
type Holds uint8

// The bits of Holds.
const (
	// HeldByWakes: it was told that agents have woken it too often.
	HeldByWakes Holds = 1 << iota
	// HeldByChain: it was told that one message of a person has led to too many wakes.
	HeldByChain
	// HeldByStop: a person stopped its turn, or archived it. What waits stays until the next turn begins.
	HeldByStop
)

// Place is a place in the list of conversations, which has the last used first.
type Place struct {
	UpdatedAt time.Time
	ID        string
}

// TurnState is the state of a turn.
type TurnState string

// The states of a turn.
const (
	TurnRunning TurnState = "running"
	TurnEnded   TurnState = "ended"
)

// Transitions has every change of a turn's state that there is. A turn begins as running.
func (TurnState) Transitions() map[TurnState][]TurnState {
	return map[TurnState][]TurnState{TurnRunning: {TurnEnded}, TurnEnded: nil}
}

// Turn is the row of a turn: what of it outlives the process.
type Turn struct {
	ID           string
	Conversation string
	State        TurnState
	Durable      bool // it goes on after a restart
	Stopping     bool // a person said stop: it does not
	Speaker      agentv1.Speaker
	Chain        string
	Choice       *agentv1.ModelChoice // for this turn; nil if the conversation's holds
	Sequence     uint64               // of the last event before it
	Spent        turn.Spent
	End          agentv1.TurnEnd
	StartedAt    time.Time
	EndedAt      time.Time
}

// LetterState is the state of a message that was said to an agent.
type LetterState string

// The states of a message that was said to an agent.
const (
	LetterWaiting LetterState = "waiting"
	LetterTaken   LetterState = "taken"
	LetterRemoved LetterState = "removed"
)

// Transitions has every change of a message's state that there is. A message begins as waiting, or as taken by the turn
// that it begins.
func (LetterState) Transitions() map[LetterState][]LetterState {
	return map[LetterState][]LetterState{LetterWaiting: {LetterTaken, LetterRemoved}, LetterTaken: nil, LetterRemoved: nil}
}

// Letter is a message that was said to an agent, by a person or by another agent.
type Letter struct {
	Workspace    string
	ID           string
	Conversation string
	N            int64 // its place among all that were said there; the store gives it
	State        LetterState
	Mode         agentv1.SendMode
	Sender       *agentv1.Sender
	Chain        string
	Choice       *agentv1.ModelChoice // for the turn that it begins; may be nil
	Text         string               // empty once it does not wait any more
	Delivery     agentv1.Delivery     // as its sender was told
	Turn         string               // that it began or entered; empty while it waits
	Sequence     uint64               // of the last event before it
	CreatedAt    time.Time
}

// person says whether a person wrote it.
func (l Letter) person() bool { return l.Sender.GetSpeaker() != agentv1.Speaker_SPEAKER_AGENT }

// Chain is what follows from one message of a person, over all conversations.
type Chain struct {
	ID        string
	Workspace string
	Root      string // the conversation of that message
	Authority string // on whose behalf all of it happens
	Left      int    // how many wakes may still follow
	CreatedAt time.Time
}

// State is what a conversation is about to do, besides its own row.
type State struct {
	Conversation Conversation
	Last         *agentv1.Event // nil if it has no events
	Running      *Turn          // nil if no turn runs
	Waiting      []Letter       // in order
	Turns        bool           // whether it has the row of any turn; without one it is of an earlier version
}

// Change is what is stored in one step.
type Change struct {
	Conversation Conversation
	New          bool // the conversation is not there yet
	Messages     []model.Message
	Restart      bool             // models are shown the history from these messages on
	Events       []*agentv1.Event // with their numbers
	Outputs      []turn.Output
	Durable      bool   // has to survive a power cut: a person wrote it
	Turn         *Turn  // that runs, as it is now; also its end
	Begin        *Turn  // that begins
	Letters      []Move // what becomes of messages
	Chain        *Chain // that begins
	Spend        string // the chain that has to pay for what begins: ErrExhausted, and nothing is stored, if it cannot
	Close        string // the chain that has to have nothing left
}

// Move is what becomes of a message.
type Move struct {
	Letter Letter
	New    bool // it is not there yet: ErrKnown, and nothing is stored, if it is
	Edit   bool // it still waits, with another text
}

// Store keeps conversations.
type Store interface {
	// State is a conversation and what it is about to do. It is ErrNoRow if there is none in this workspace.
	State(ctx context.Context, workspace, id string) (State, error)
	// Messages is what models are shown of the history of a conversation. Nobody may change them; to add some is to copy them.
	Messages(ctx context.Context, id string) ([]model.Message, error)
	// Append stores a change, all of it or nothing.
	Append(ctx context.Context, change Change) error
	// Letter is a message that was said in a workspace, under its id. It is ErrNoRow if there was none.
	Letter(ctx context.Context, workspace, id string) (Letter, error)
	// Chain is the chain of a turn in a workspace. It is ErrNoRow if there is no such turn.
	Chain(ctx context.Context, workspace, turn string) (Chain, error)
	// Unfinished lists the conversations in which a turn runs or a message waits, with their workspaces.
	Unfinished(ctx context.Context) ([]Ref, error)
}

// Ref names a conversation.
type Ref struct{ Workspace, ID string }

// Lists reads what is kept.
type Lists interface {
	// Conversations lists the last used first, after a place; from the beginning if it is nil.
	Conversations(
		ctx context.Context, workspace string, filter agentv1.ConversationFilter, after *Place, limit int,
	) ([]Conversation, error)
	// Find lists the open conversations whose ids begin with a prefix, by id.
	Find(ctx context.Context, workspace, prefix string) ([]Conversation, error)
	// Neighbours are the open conversations next to an id, in the order of ids: those that bound its handle.
	Neighbours(ctx context.Context, workspace, id string) ([]string, error)
	// Children lists what the agent of a conversation has started, by id.
	Children(ctx context.Context, workspace, parent string) ([]Conversation, error)
	// Events lists events with numbers above after, by number.
	Events(ctx context.Context, id string, after uint64, limit int) ([]*agentv1.Event, error)
	// EventsBefore lists events with numbers below before, the last one first.
	EventsBefore(ctx context.Context, id string, before uint64, limit int) ([]*agentv1.Event, error)
}

// Outputs keeps whole answers of tools.
type Outputs interface {
	// Output is the whole answer of a call. It is ErrNoRow if the model was told all of it, or there was no such call.
	Output(ctx context.Context, id, call string) (string, error)
}
