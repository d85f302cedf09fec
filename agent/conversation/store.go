package conversation

import (
	"context"
	"time"

	"throwbar.dev/throwbar/agent/model"
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
}

// Place is a place in the list of conversations, which has the last used first.
type Place struct {
	UpdatedAt time.Time
	ID        string
}

// Change is what is stored in one step.
type Change struct {
	Conversation Conversation
	New          bool // the conversation is not there yet
	Messages     []model.Message
	Events       []*agentv1.Event // with their numbers
	Durable      bool             // has to survive a power cut: a person wrote it
}

// Store keeps conversations.
type Store interface {
	// Conversation is a conversation and its last event, nil if it has none. It is ErrNoRow if there is none in this
	// workspace.
	Conversation(ctx context.Context, workspace, id string) (Conversation, *agentv1.Event, error)
	// Conversations lists the last used first, after a place; from the beginning if it is nil.
	Conversations(ctx context.Context, workspace string, after *Place, limit int) ([]Conversation, error)
	// Find lists the open conversations whose ids begin with a prefix, by id.
	Find(ctx context.Context, workspace, prefix string) ([]Conversation, error)
	// Messages is the history of a conversation.
	Messages(ctx context.Context, id string) ([]model.Message, error)
	// Events lists events with numbers above after, by number.
	Events(ctx context.Context, id string, after uint64, limit int) ([]*agentv1.Event, error)
	// Append stores a change, all of it or nothing.
	Append(ctx context.Context, change Change) error
}
