package conversation

import (
	"throwbar.dev/throwbar/agent/tool"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// Delivery is a message on its way to a conversation. People and agents use the same road.
type Delivery struct {
	Workspace string
	// To is an id or a handle; a new conversation is begun if empty, which only a person can do.
	To   string
	Text string
	Mode agentv1.SendMode
	// MessageID names the message: one that was delivered before is not delivered again. Made if empty.
	MessageID string
	Model     *agentv1.ModelChoice // for the turn that it begins; may be nil
	// From is the conversation whose agent sends it, and Turn its turn; both empty for a person.
	From, Turn string
	// Attached says that a caller waits for the turn that it begins: that one does not outlive the server.
	Attached bool
	// Again only asks what became of a message that was delivered before; it is not delivered if it was not.
	Again bool
	// fresh is the conversation that the message begins, where To is empty; what every one has is filled in.
	fresh *Conversation
}

// Delivered is what became of a message.
type Delivered struct {
	Delivery     agentv1.Delivery
	Conversation Conversation
	Handle       string
	MessageID    string
	TurnID       string // that it began or entered; empty while it waits
	Sequence     uint64 // of the last event before the message

	attached bool // its turn may stop when the caller goes away
}

// Snapshot is what a conversation last answered and what it does now.
type Snapshot struct {
	Conversation Conversation
	Handle       string
	Status       agentv1.ConversationStatus
	// Answer is the text of the last turn that was completed with text, and Answered whether there is one.
	Answer   string
	Answered bool
	// Access is what its agent may use now.
	Access tool.Access
}

// Summons starts another agent.
type Summons struct {
	Workspace string
	// From is the conversation whose agent asks, and Turn its turn.
	From, Turn string
	// Key names the summons: made again, it starts nothing again.
	Key      string
	Agent    string // name of the definition
	Task     string
	TopLevel bool
	Settings *agentv1.ConversationSettings // what it may do, already bounded by the rights of the one who asks
}
