package turn

import (
	"context"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/catalog"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// Task is one turn.
type Task struct {
	Workspace    string
	Conversation string
	// Root is the conversation that a person reads: the same, or the one at the root where an agent started this one.
	Root   string
	TurnID string
	// Act names all that one message of a person set off, turns of other agents too. What is destroyed without asking is
	// counted over it.
	Act    string
	Origin controlv1.Origin
	// Durable says that the turn goes on after a restart of the server. One whose caller waits for it does not.
	Durable bool
	// Resumed is set if it began in an earlier process. Spent is what it had used by then, and Past all that it has told, in
	// order: what it has done counts as if this process had done it.
	Resumed bool
	Spent   Spent
	Past    []*agentv1.Event
	// History is the conversation so far; it ends with the message that begins the turn, or where that process left it. The turn
	// does not change it: it may be shared.
	History []model.Message
	Journal Journal
}

// Spent is what a turn has used of its limits.
type Spent struct {
	Rounds int   // how often a model was asked
	Tokens int64 // as the providers count them
	Millis int64 // time without that in which it waited for people
}

// Step is what holds for the next request to a model. The conversation may change between two.
type Step struct {
	Choices []Choice // the models, the first that answers; none if Hint says what to set
	Hint    string
	Effort  string
	Prompt  string // the conversation's own
	Access  tool.Access
	// Messages were said since the last step and belong into the turn. The conversation has recorded them.
	Messages []model.Message
}

// Choice is a model that may be asked.
type Choice struct {
	Name    string // by which it is chosen
	Model   Model
	Profile schema.Profile
	Context int // tokens that it reads at most
	Output  int // tokens that an answer may have; left to the provider if zero
	Images  bool
	Effort  string // where nobody else says
}

// Entry is what is kept in one step.
type Entry struct {
	Messages []model.Message
	// Restart says that the history begins anew with these messages: what was before is not shown to models any more.
	Restart bool
	Events  []*agentv1.Event
	Outputs []Output
	Spent   Spent
}

// Output is the whole text of a tool's answer, where the model is told only a part of it.
type Output struct {
	CallID string
	Text   string
}

// Journal keeps what happens in a turn.
type Journal interface {
	// Next says what holds for the next request to a model.
	Next(ctx context.Context) (Step, error)
	// Access is what the agent may use at this moment: it may have changed since the step began.
	Access(ctx context.Context) (tool.Access, error)
	// Record keeps an entry, all of it or nothing. It does so even if ctx has ended.
	Record(ctx context.Context, entry Entry) error
	// Delta passes on a piece of an answer, which is not stored.
	Delta(event *agentv1.Event)
}

// FacilityCall is a call of something that the agent itself can do.
type FacilityCall struct {
	Workspace    string
	Conversation string // whose agent calls
	Root         string
	TurnID       string
	CallID       string
	Origin       controlv1.Origin
	Entry        *catalog.Entry
	Request      proto.Message // of Entry.In

	// Key is the same whenever this call is made again after a restart. What the call does, it does once for a key.
	Key   string
	Again bool
	// Durable says that what the call does goes on if the server stops: the call is made again then.
	Durable bool

	Asked, Resolved func(*controlv1.Approval)
	// Rest says that the call waits for another agent, which has time of its own: that of this turn stands still until what
	// it returns is called. It may be nil.
	Rest func() (resume func())
}

// Facilities do what the agent itself can do.
type Facilities interface {
	// Call returns a message of Entry.Out. An error that the model may read is a *Refusal.
	Call(ctx context.Context, call FacilityCall) (proto.Message, error)
}
