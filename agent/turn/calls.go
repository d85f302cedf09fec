package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/tool/args"
	"throwbar.dev/throwbar/agent/tool/result"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// maxShown is how much of arguments that could not be understood is shown.
const maxShown = 4 << 10

// call is one call that the model made.
type call struct {
	id      string
	name    string     // of the tool; as the model wrote it if there is none of that name
	tool    *tool.Tool // nil if there is none
	decoded tool.Call
	shown   string       // the arguments as they were understood
	key     string       // equal for equal calls
	failure *tool.Answer // set if it cannot be run
}

func (c *call) reads() bool { return c.tool == nil || c.failure != nil || c.tool.Reads() }

// prepare reads the calls of an answer. What is wrong with one is its result, and does not hold up the others.
func (s *session) prepare(calls []model.Call) []*call {
	out := make([]*call, len(calls))
	for i, made := range calls {
		out[i] = s.prepareOne(made)
	}
	return out
}

func (s *session) prepareOne(made model.Call) *call {
	c := &call{id: made.ID, name: made.Name, shown: result.Cut(made.Arguments, maxShown), key: made.Name + "\x00" + made.Arguments}
	fail := func(a tool.Answer) *call {
		c.failure = &a
		return c
	}
	t, ok := s.config.Tools.Lookup(made.Name)
	if !ok {
		text := fmt.Sprintf("there is no tool %q", result.Cut(made.Name, 100))
		if nearest := s.config.Tools.Nearest(made.Name); nearest != "" {
			text += "; did you mean " + nearest + "?"
		}
		return fail(tool.Fail("unknown_tool", text))
	}
	c.tool, c.name = t, t.Name
	decoded, err := t.Decode(made.Arguments, s.config.Strict)
	if err != nil {
		var problems args.Problems
		if !errors.As(err, &problems) {
			return fail(tool.Fail("invalid", err.Error()))
		}
		return fail(tool.Fail("invalid", "the call was not run: its arguments are wrong", problems.Lines()...))
	}
	c.decoded = decoded
	c.shown = decoded.Arguments()
	c.key = t.Name + "\x00" + decoded.Key()
	return c
}

// run runs the calls of one answer and records their results: runs of reads side by side, the others one by one.
func (s *session) run(ctx context.Context, calls []*call) error {
	for at := 0; at < len(calls); {
		end := at + 1
		for calls[at].reads() && end < len(calls) && calls[end].reads() {
			end++
		}
		if err := s.batch(ctx, calls[at:end]); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// batch runs calls side by side, and records their results in order.
func (s *session) batch(ctx context.Context, calls []*call) error {
	answers := make([]tool.Answer, len(calls))
	ran := make([]bool, len(calls))
	var work []int
	for i, c := range calls {
		switch {
		case ctx.Err() != nil:
			answers[i] = interrupted(false)
		case s.guard.notice != nil:
			answers[i] = tool.Fail("not_run", "the turn was ended before this call")
		case !s.guard.before(c.key):
			answers[i] = tool.Fail("repeated", "this very call was made before and nothing has changed since: use what it answered, or do something else")
		case c.failure != nil:
			answers[i], ran[i] = *c.failure, true
		default:
			ran[i] = true
			work = append(work, i)
		}
	}
	if err := s.sideBySide(ctx, calls, work, answers); err != nil {
		return err
	}
	for i, c := range calls {
		if ran[i] && ctx.Err() == nil {
			s.guard.after(c.name, c.key, answers[i].OK, c.reads())
		}
		if err := s.answer(ctx, c, answers[i]); err != nil {
			return err
		}
	}
	return nil
}

// sideBySide runs calls, and records meanwhile what they tell of the approvals that they wait for.
func (s *session) sideBySide(ctx context.Context, calls []*call, work []int, answers []tool.Answer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n := newNews()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var group errgroup.Group
		group.SetLimit(s.config.Parallel)
		for _, i := range work {
			group.Go(func() error {
				if answers[i] = interrupted(false); ctx.Err() == nil {
					answers[i] = s.await(ctx, calls[i], n)
				}
				return nil
			})
		}
		_ = group.Wait() // none of them has an error
	}()
	for {
		select {
		case <-n.wake:
			if err := s.record(ctx, nil, n.take()...); err != nil {
				cancel(err)
				<-done
				return err
			}
		case <-done:
			if events := n.end(); len(events) > 0 {
				return s.record(ctx, nil, events...)
			}
			return nil
		}
	}
}

// answer records the result of a call.
func (s *session) answer(ctx context.Context, c *call, a tool.Answer) error {
	content, err := a.Print(s.config.Random)
	if err != nil {
		return fmt.Errorf("print result of %s: %w", c.name, err)
	}
	outcome := agentv1.Outcome_OUTCOME_SUCCEEDED
	switch {
	case a.Denied:
		outcome = agentv1.Outcome_OUTCOME_DENIED
	case !a.OK:
		outcome = agentv1.Outcome_OUTCOME_FAILED
	}
	message := model.Message{Role: model.RoleTool, CallID: c.id, Text: content}
	return s.record(ctx, []model.Message{message}, toolResult(c, outcome, content))
}

// await runs a call and waits for it, but not longer than the turn lives: a tool that does not come back must not hold
// up a stop. What it answers later goes nowhere; Wait waits for it.
func (s *session) await(ctx context.Context, c *call, n *news) tool.Answer {
	done := make(chan tool.Answer, 1)
	s.calls.Go(func() { done <- s.perform(ctx, c, n) })
	select {
	case a := <-done:
		return a
	case <-ctx.Done():
	}
	select {
	case a := <-done:
		return a
	default:
		if n.waits(c) {
			return tool.Fail("interrupted", "the turn was stopped while this waited for a person: it was withdrawn, unless somebody approved "+
				"it in that very moment. Look before you try again")
		}
		return interrupted(!c.reads())
	}
}

// interrupted is the result of a call that the end of the turn cut off.
func interrupted(effect bool) tool.Answer {
	if effect {
		return tool.Fail("interrupted", "the turn was stopped before the outcome was known; it may have taken effect: look before you try again")
	}
	return tool.Fail("interrupted", "the turn was stopped before this was done")
}

// perform runs a call.
func (s *session) perform(ctx context.Context, c *call, n *news) (answer tool.Answer) {
	defer func() {
		if cause := recover(); cause != nil {
			s.config.Log.ErrorContext(ctx, "tool panicked", slog.String("tool", c.name), slog.Any("panic", cause))
			answer = tool.Fail("failed", insideText)
		}
	}()
	if c.tool.Entry.Method != nil {
		return s.query(ctx, c)
	}
	action, err := c.tool.Entry.Wrap(c.decoded.Message)
	if err != nil {
		return s.refused(ctx, c, err)
	}
	request := Call{
		Workspace: s.task.Workspace, Principal: s.task.Conversation, Conversation: s.task.Root, Origin: s.task.Origin, Action: action,
		Asked:    func(a *controlv1.Approval) { n.asked(c, a) },
		Resolved: func(a *controlv1.Approval) { n.resolved(c, a) },
	}
	if c.decoded.DeviceID != "" {
		request.DeviceIDs = []string{c.decoded.DeviceID}
	}
	response, err := s.config.Commander.Command(ctx, request)
	if err != nil {
		return s.refused(ctx, c, err)
	}
	return c.tool.Done(response, n.decisions(c)...)
}

// query asks a query, and once more for a shorter page if the answer is too long for the model.
func (s *session) query(ctx context.Context, c *call) tool.Answer {
	ask := func() (proto.Message, error) {
		return s.config.Querier.Query(ctx, Query{
			Workspace: s.task.Workspace, Principal: s.task.Conversation, Conversation: s.task.Root, Origin: s.task.Origin,
			Method: c.tool.Entry.Method.FullName(), Request: c.decoded.Message,
		})
	}
	response, err := ask()
	if err != nil {
		return s.refused(ctx, c, err)
	}
	rows, shorter := c.tool.Shorten(c.decoded.Message, response)
	if !shorter {
		return c.tool.Found(response)
	}
	if response, err = ask(); err != nil {
		return s.refused(ctx, c, err)
	}
	return c.tool.Found(response).Page(rows)
}

const insideText = "the server could not do this: its log says why"

// refused is the result of a call that the server did not run. An error without a text for the model goes to the log.
func (s *session) refused(ctx context.Context, c *call, err error) tool.Answer {
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		return tool.Refused(refusal.Code, refusal.Message)
	case ctx.Err() != nil:
		return interrupted(!c.reads())
	default:
		s.config.Log.ErrorContext(ctx, "tool failed", slog.String("tool", c.name), slog.Any("error", err))
		return tool.Fail("failed", insideText)
	}
}
