package conversation

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

var _ turn.Journal = (*journal)(nil)

// journal keeps what happens in one turn.
type journal struct {
	book   *Book
	thread *thread
	run    *run
}

// Next says what holds for the next request to a model, and takes what was said to the turn since the last one.
func (j *journal) Next(ctx context.Context) (turn.Step, error) {
	t := j.thread
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := j.ready(ctx); err != nil {
		return turn.Step{}, err
	}
	var step turn.Step
	var steered []Letter
	for _, l := range t.queue {
		if l.Mode == agentv1.SendMode_SEND_MODE_STEER && !j.run.turn.Stopping { // one that is stopped answers nothing
			steered = append(steered, l)
		}
	}
	if len(steered) > 0 {
		change, err := j.steer(steered)
		if err != nil {
			return turn.Step{}, err
		}
		if err := j.book.commit(ctx, t, change); err != nil {
			return turn.Step{}, err
		}
		step.Messages = change.Messages
	}
	step.Choices, step.Effort = j.book.choices(t.c, j.run.turn.Choice)
	step.Hint = j.book.hint(t.c, j.run.turn.Choice)
	step.Prompt = promptOf(t.c.Settings)
	var err error
	step.Access, err = j.book.access(ctx, t.c)
	return step, err
}

// Access is what the agent may use at this moment.
func (j *journal) Access(ctx context.Context) (tool.Access, error) {
	t := j.thread
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := j.ready(ctx); err != nil {
		return tool.Access{}, err
	}
	return j.book.access(ctx, t.c)
}

// steer is the change by which messages enter the turn. One that nobody waits for makes the turn one that goes on without
// its callers; one of a person has a chain of its own, which the turn goes on with.
func (j *journal) steer(letters []Letter) (Change, error) {
	t, row := j.thread, j.run.turn
	who := j.run.callers
	for _, l := range letters {
		if n := t.attached[l.ID]; n > 0 && who != nil {
			who[l.ID] = n
		} else {
			who, row.Durable = nil, true
		}
		if l.person() {
			row.Chain = l.Chain
		}
	}
	j.run.callers = who
	change := Change{Conversation: t.c, Turn: &row}
	return change, j.book.read(&change, row.ID, letters)
}

// Record stores an entry, then tells its events. With the last one the next turn may begin.
func (j *journal) Record(ctx context.Context, entry turn.Entry) error {
	t := j.thread
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := j.ready(ctx); err != nil {
		return err
	}
	row := j.run.turn
	row.Spent = entry.Spent
	change := Change{Conversation: t.c, Messages: entry.Messages, Restart: entry.Restart, Outputs: entry.Outputs, Turn: &row}
	for _, event := range entry.Events {
		if asked := event.GetApprovalRequested(); asked != nil && j.run.asked(asked.GetApprovalId()) {
			continue // before the server was started again
		}
		event.TurnId = row.ID
		change.Events = append(change.Events, event)
	}
	if n := len(change.Events); n > 0 && change.Events[n-1].GetTurnEnded() != nil {
		return j.book.finish(context.WithoutCancel(ctx), t, row, change, change.Events[n-1].GetTurnEnded().GetReason())
	}
	return j.book.commit(ctx, t, change)
}

// asked says whether the turn waits for an approval already.
func (r *run) asked(id string) bool {
	for _, open := range r.approvals {
		if open == id {
			return true
		}
	}
	return false
}

// ready says whether the turn may go on. A durable one that is cut off by the end of the server leaves everything as it
// is, to be taken up when the server starts again. The caller holds thread.mu.
func (j *journal) ready(ctx context.Context) error {
	if j.run.turn.Durable && j.book.isClosed() {
		return ErrShutdown
	}
	if err := j.book.load(context.WithoutCancel(ctx), j.thread); err != nil {
		return err
	}
	if j.thread.run != j.run {
		return fmt.Errorf("turn %s does not run any more", j.run.turn.ID)
	}
	return nil
}

// Delta tells a piece of an answer.
func (j *journal) Delta(event *agentv1.Event) {
	event.TurnId, event.ConversationId = j.run.id, j.thread.ref.ID
	event.Time = timestamppb.New(j.book.config.Now())
	j.thread.hub.delta(event)
}
