package facility

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// Conversations are the agent's threads.
type Conversations interface {
	// Resolve finds the open conversation that a handle, or any beginning of an id, means.
	Resolve(ctx context.Context, workspace, ref string) (conversation.Resolution, error)
	// Open lists the open conversations with their handles as they are at this moment, the last used first.
	Open(ctx context.Context, workspace string) ([]conversation.Row, error)
	// Deliver brings a message to a conversation, and does not wait for what it makes of it.
	Deliver(ctx context.Context, delivery conversation.Delivery) (conversation.Delivered, error)
	// Snapshot is what a conversation last answered and what it does now. It does not wait.
	Snapshot(ctx context.Context, workspace, id string) (conversation.Snapshot, error)
	// Summon starts another agent, once for a key, and does not wait for it.
	Summon(ctx context.Context, summons conversation.Summons) (conversation.Snapshot, error)
	// Await waits until no turn runs in a conversation that the agent of another one started, and says what it answered.
	// One that outlives its starter is not waited for: while it runs that is an error.
	Await(ctx context.Context, workspace, starter, id string) (conversation.Snapshot, error)
}

// Undo says what to bring back, and for whom.
type Undo struct {
	Workspace    string
	Principal    string // the conversation whose agent asks
	Conversation string // the one at the root, where a person decides
	Origin       controlv1.Origin
	Command      string // of a command or a dispatch; the newest that took something away if empty
	Device       string // only there; everywhere if empty
	// Key is the same whenever the call is made again after a restart, and Again is set then. A durable one will be if the
	// server stops.
	Key            string
	Again, Durable bool

	Asked, Resolved func(*controlv1.Approval)
}

// Undoer brings back what commands took away, by the road of every other command: policy and people are asked.
type Undoer interface {
	// Undo waits for the end on every device. What was begun under its key is followed and not begun again. An error that the
	// model may read is a *turn.Refusal.
	Undo(ctx context.Context, undo Undo) (*controlv1.UndoResponse, error)
	// Withdraw takes back what an undo of an earlier process still waits for, since it may not be any more, and says how all
	// that was written down under its key ended. It is nil if nothing was.
	Withdraw(ctx context.Context, undo Undo, why string) (*controlv1.UndoResponse, error)
}

// Config is what the facilities are made of.
type Config struct {
	Catalogue     *catalog.Catalogue
	Tools         *tool.Set
	Conversations Conversations
	Undoer        Undoer // nil if nothing can be undone
	// Definitions are the agents that can be started by name.
	Definitions []*configv1.AgentDefinition
	// Permit is an error where policy does not let a call through, a *turn.Refusal if the model may read it; nil lets all
	// through.
	Permit func(ctx context.Context, call turn.FacilityCall) error
	Log    *slog.Logger
}

// handler runs one facility.
type handler func(context.Context, turn.FacilityCall) (proto.Message, error)

// Facilities are all facilities but those that the turn runs itself.
type Facilities struct {
	config Config
	table  map[protoreflect.FullName]handler
}

var _ turn.Facilities = (*Facilities)(nil)

// New makes the facilities.
func New(config Config) *Facilities {
	f := &Facilities{config: config, table: map[protoreflect.FullName]handler{}}
	add(f, f.send)
	add(f, f.read)
	add(f, f.summon)
	add(f, f.retrieve)
	add(f, f.undo)
	return f
}

// add makes a function the one that runs the facility whose message it takes.
func add[M any, In interface {
	*M
	proto.Message
}, Out proto.Message](f *Facilities, run func(context.Context, turn.FacilityCall, In) (Out, error)) {
	f.table[In(new(M)).ProtoReflect().Descriptor().FullName()] = func(ctx context.Context, call turn.FacilityCall) (proto.Message, error) {
		in, ok := call.Request.(In)
		if !ok { // made from the catalogue's own descriptors
			in = In(new(M))
			raw, err := proto.Marshal(call.Request)
			if err == nil {
				err = proto.Unmarshal(raw, in)
			}
			if err != nil {
				return nil, fmt.Errorf("read arguments: %w", err)
			}
		}
		out, err := run(ctx, call, in)
		if err != nil {
			return nil, err
		}
		return out, nil
	}
}

// Has says whether a facility is run here.
func (f *Facilities) Has(entry *catalog.Entry) bool { return f.table[entry.In.FullName()] != nil }

// Call runs a facility.
func (f *Facilities) Call(ctx context.Context, call turn.FacilityCall) (proto.Message, error) {
	run := f.table[call.Entry.In.FullName()]
	if run == nil {
		return nil, refuse(commandv1.ErrorCode_ERROR_CODE_UNSUPPORTED, "this server cannot do %s", call.Entry.Name)
	}
	_, done, err := f.past(ctx, call)
	if err != nil {
		return nil, err
	}
	if f.config.Permit != nil && !done {
		if err := f.config.Permit(ctx, call); err != nil {
			return f.forbidden(ctx, call, f.explain(ctx, call, err, "policy could not be asked"))
		}
	}
	return run(ctx, call)
}

// name is what the model calls a facility.
func (f *Facilities) name(message proto.Message) string {
	full := message.ProtoReflect().Descriptor().FullName()
	for _, entry := range f.config.Catalogue.Facilities() {
		if entry.In.FullName() == full {
			return entry.Name
		}
	}
	return string(full.Name())
}

func refuse(code commandv1.ErrorCode, format string, args ...any) error {
	return &turn.Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) error {
	return refuse(commandv1.ErrorCode_ERROR_CODE_INVALID, format, args...)
}

// explain makes what the conversations answered an error that the model may read. Whatever else went wrong is for the
// log: the model is told what did not work, and what to make of it.
func (f *Facilities) explain(ctx context.Context, call turn.FacilityCall, err error, otherwise string) error {
	var known *conversation.Error
	var refusal *turn.Refusal
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &known):
		return &turn.Refusal{Code: codeOf(known.Code), Message: known.Message}
	default:
		f.config.Log.ErrorContext(ctx, "facility failed", slog.String("tool", call.Entry.Name),
			slog.String("conversation_id", call.Conversation), slog.Any("error", err))
		return refuse(commandv1.ErrorCode_ERROR_CODE_FAILED, "%s: the server's log says why", otherwise)
	}
}

func codeOf(code conversation.Code) commandv1.ErrorCode {
	switch code {
	case conversation.NotFound:
		return commandv1.ErrorCode_ERROR_CODE_NOT_FOUND
	case conversation.Unavailable, conversation.Busy:
		return commandv1.ErrorCode_ERROR_CODE_BUSY
	case conversation.Ambiguous, conversation.Invalid:
		return commandv1.ErrorCode_ERROR_CODE_INVALID
	default:
		return commandv1.ErrorCode_ERROR_CODE_REFUSED
	}
}
