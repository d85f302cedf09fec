package throwbar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

const (
	// stopGrace is how long a handler that was asked to stop may take to say how far it came.
	stopGrace = time.Second
	// sameMoment is how close to its deadline a cancelled command counts as expired: the server asks a command to
	// stop when its time is up.
	sameMoment = 500 * time.Millisecond
	// outcomeBytes is the size of the largest outcome that is sent; a message of the wire holds 4 MiB.
	outcomeBytes = 3 << 20
	// reconcileWithin is how long a handler may take to find out how an interrupted command ended.
	reconcileWithin = 10 * time.Second
)

// Reconciler is a handler that can tell, by reading, how a command ended that was interrupted by a restart: a tab
// that is gone was closed. It is asked only for commands that are not idempotent, since the others are run again.
type Reconciler interface {
	// Reconcile returns the result that the command had, or an error if that cannot be told. It must change nothing.
	Reconcile(ctx context.Context, action *commandv1.Action) (*commandv1.Result, error)
}

// CallInfo is the envelope that a command came in.
type CallInfo struct {
	CommandID   string
	Attempt     uint32                // how often it has been sent, from one
	Saved       []*commandv1.SavedTab // what the server kept of the tabs that the action names by saved ids
	TraceParent string                // W3C trace context of the caller; empty if there is none
}

type callKey struct{}

// WithCallInfo puts an envelope into the context of a handler. Tests of handlers use it.
func WithCallInfo(ctx context.Context, info CallInfo) context.Context {
	return context.WithValue(ctx, callKey{}, info)
}

// CallInfoFrom is the envelope of the command that a handler runs; empty outside of one.
func CallInfoFrom(ctx context.Context) CallInfo {
	info, _ := ctx.Value(callKey{}).(CallInfo)
	return info
}

// life takes a command from its receipt to its outcome.
func (e *executor) life(ctx context.Context, c *command, req *devicev1.CommandRequest) {
	entry, known := e.journal.Lookup(c.id)
	if known && entry.Outcome != nil {
		e.answer(c, entry.Outcome)
		return
	}
	var outcome *devicev1.Outcome
	if known && !e.idempotent(entry.Action) { // restore has had no answer for it: it never ends without one
		outcome = failure(c.id, errUnknownEnd())
	} else {
		outcome = e.perform(ctx, c, req, known)
	}
	outcome = sendable(outcome)
	if err := e.journal.Finish(outcome); err != nil {
		e.cfg.Log.ErrorContext(ctx, "writing an outcome to the journal failed",
			slog.String("command_id", c.id), slog.Any("error", err))
	}
	e.answer(c, outcome)
}

// answer ends a command with its outcome.
func (e *executor) answer(c *command, outcome *devicev1.Outcome) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.inFlight, c.id)
	e.keepLocked(outcome)
}

// perform runs a command, unless something speaks against it. Started says that it is in the journal already.
func (e *executor) perform(ctx context.Context, c *command, req *devicev1.CommandRequest, started bool) *devicev1.Outcome {
	action := req.GetAction()
	if err := e.check(action); err != nil {
		return failure(c.id, err)
	}
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
	}
	if err := c.speaksAgainst(ctx, e.wall()); err != nil {
		return failure(c.id, err)
	}
	if err := e.begin(ctx, c, action, started); err != nil {
		return failure(c.id, err)
	}
	e.acknowledge(c)
	if err := c.speaksAgainst(ctx, e.wall()); err != nil {
		return failure(c.id, err)
	}
	info := CallInfo{
		CommandID: c.id, Attempt: req.GetAttempt(), Saved: req.GetSaved(), TraceParent: req.GetTraceParent(),
	}
	result, err := e.invoke(WithCallInfo(ctx, info), action)
	if err != nil {
		return failure(c.id, e.ended(ctx, c, action, err))
	}
	return &devicev1.Outcome{CommandId: c.id, Outcome: &devicev1.Outcome_Result{Result: result}}
}

// begin writes down that a command starts. Nothing starts while the device is paused.
func (e *executor) begin(ctx context.Context, c *command, action *commandv1.Action, started bool) *Error {
	paused, err := e.pause.begin(func() error {
		if started {
			return nil
		}
		return e.journal.Start(c.id, action)
	})
	switch {
	case paused && started:
		return errPausedSince()
	case paused:
		return errPaused()
	case err != nil:
		e.cfg.Log.ErrorContext(ctx, "writing a command to the journal failed",
			slog.String("command_id", c.id), slog.Any("error", err))
		return Errorf(CodeFailed, "the device cannot write its journal, and runs nothing without")
	default:
		return nil
	}
}

// check refuses an action that this program does not know, and one that breaks a rule.
func (e *executor) check(action *commandv1.Action) *Error {
	m := action.ProtoReflect()
	member := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
	if member == nil {
		return Errorf(CodeUnsupported, "this device does not know %s", e.cfg.Catalogue.Name(action))
	}
	args := m.Get(member).Message().Interface()
	if err := protovalidate.Validate(args); err != nil {
		return Errorf(CodeInvalid, "the arguments of %s break a rule: %w", member.JSONName(), err)
	}
	return nil
}

// speaksAgainst says why a command must not start.
func (c *command) speaksAgainst(ctx context.Context, wall time.Time) *Error {
	switch {
	case c.expired(wall):
		return Errorf(CodeExpired, "the time to live was over before the device started: nothing was done").Retry()
	case ctx.Err() == nil:
		return nil
	case isStop(context.Cause(ctx)):
		return Errorf(CodeCancelled, "cancelled before the device started: nothing was done")
	default: // the device stops
		return Errorf(CodeFailed, "the device stopped before it started: nothing was done").Retry()
	}
}

func isStop(cause error) bool { return errors.Is(cause, errCancelled) || errors.Is(cause, errNotKept) }

// answered is what a handler returned.
type answered struct {
	result *commandv1.Result
	err    error
}

// invoke runs the handler. One that does not stop when it is asked to is left to itself after a moment; the executor
// still waits for it in the end.
func (e *executor) invoke(ctx context.Context, action *commandv1.Action) (*commandv1.Result, error) {
	done := make(chan answered, 1)
	e.tasks.Go(func() {
		result, err := e.guarded(ctx, action)
		done <- answered{result, err}
	})
	select {
	case a := <-done:
		return a.result, a.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case a := <-done:
		return a.result, a.err
	case <-timer.C:
		return nil, fmt.Errorf("it may still go on: %w", ctx.Err())
	}
}

// guarded runs the handler and turns a panic into an error.
func (e *executor) guarded(ctx context.Context, action *commandv1.Action) (result *commandv1.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			e.cfg.Log.ErrorContext(ctx, "handler panicked", slog.String("command_id", CallInfoFrom(ctx).CommandID),
				slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
			result, err = nil, Errorf(CodeFailed, "the device's code panicked: its log says where")
		}
	}()
	return commandv1.Execute(ctx, e.cfg.Handler, action)
}

// ended turns a handler's error into the command's.
func (e *executor) ended(ctx context.Context, c *command, action *commandv1.Action, err error) *Error {
	var own *Error
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, commandv1.ErrUnsupported):
		return Errorf(CodeUnsupported, "this device does not run %s", e.cfg.Catalogue.Name(action))
	case errors.As(err, &own):
		return own
	case cause == nil:
		return Errorf(CodeFailed, "%w", err)
	case errors.Is(cause, errExpired), isStop(cause) && time.Until(c.deadline) < sameMoment:
		return Errorf(CodeExpired, "the time to live ran out while the device was at it; a part may be done: %w", err)
	case isStop(cause):
		return Errorf(CodeCancelled, "cancelled while the device was at it; a part may be done: %w", err)
	default: // the device stops
		return Errorf(CodeInterrupted, "the device stopped while it was at it; a part may be done: %w", err)
	}
}

// restore takes up the journal: outcomes that the server does not have yet are kept for it, and commands that were
// started by an earlier process get an outcome, unless they are idempotent and can be run again.
func (e *executor) restore(ctx context.Context) {
	for _, entry := range e.journal.Entries() {
		outcome := entry.Outcome
		switch {
		case outcome != nil && entry.Receipted:
			continue
		case outcome == nil && e.idempotent(entry.Action):
			continue
		case outcome == nil:
			outcome = sendable(e.reconcile(ctx, entry))
			if err := e.journal.Finish(outcome); err != nil {
				e.cfg.Log.ErrorContext(ctx, "writing an outcome to the journal failed",
					slog.String("command_id", entry.CommandID), slog.Any("error", err))
			}
		}
		e.mu.Lock()
		e.keepLocked(outcome)
		e.mu.Unlock()
	}
}

// reconcile finds out how an interrupted command ended, where the handler can tell.
func (e *executor) reconcile(ctx context.Context, entry Entry) *devicev1.Outcome {
	reader, ok := e.cfg.Handler.(Reconciler)
	if !ok {
		return failure(entry.CommandID, errUnknownEnd())
	}
	ctx, cancel := context.WithTimeout(ctx, reconcileWithin)
	defer cancel()
	result, err := reader.Reconcile(WithCallInfo(ctx, CallInfo{CommandID: entry.CommandID}), entry.Action)
	if err != nil || result == nil || !paired(entry.Action, result) {
		e.cfg.Log.DebugContext(ctx, "reconciling a command failed",
			slog.String("command_id", entry.CommandID), slog.Any("error", err))
		return failure(entry.CommandID, errUnknownEnd())
	}
	return &devicev1.Outcome{CommandId: entry.CommandID, Outcome: &devicev1.Outcome_Result{Result: result}}
}

func errUnknownEnd() *Error {
	return Errorf(CodeInterrupted, "the device was restarted while it was at it: nobody knows how it ended")
}

// paired says whether a result is of the same member as the action.
func paired(action *commandv1.Action, result *commandv1.Result) bool {
	a, r := member(action.ProtoReflect()), member(result.ProtoReflect())
	return a != 0 && a == r
}

// member is the number of the set member of a union.
func member(m protoreflect.Message) protoreflect.FieldNumber {
	if fd := m.WhichOneof(m.Descriptor().Oneofs().Get(0)); fd != nil {
		return fd.Number()
	}
	return 0
}

func failure(id string, err *Error) *devicev1.Outcome {
	return &devicev1.Outcome{CommandId: id, Outcome: &devicev1.Outcome_Error{Error: err.command()}}
}

// sendable replaces an outcome that cannot be encoded, or is too large to be sent: it would end the link.
func sendable(o *devicev1.Outcome) *devicev1.Outcome {
	raw, err := proto.Marshal(o)
	switch {
	case err != nil:
		return failure(o.GetCommandId(), Errorf(CodeFailed, "the device's result cannot be encoded: %w", err))
	case len(raw) > outcomeBytes:
		return failure(o.GetCommandId(), Errorf(CodeFailed, "the device's result of %d bytes is too large to be sent", len(raw)))
	default:
		return o
	}
}
