package turn

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/tool/args"
	"throwbar.dev/throwbar/agent/tool/result"
	"throwbar.dev/throwbar/agent/tool/schema"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
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
	again   bool         // it was made in an earlier process, and nobody knows what became of it
	begun   bool         // it cannot be run any more, and may have done there what is written down nowhere else
}

func (c *call) reads() bool { return c.tool == nil || c.failure != nil || c.tool.Reads() }

// prepare reads the calls of an answer. What is wrong with one is its result, and does not hold up the others.
func (s *session) prepare(calls []model.Call, profile schema.Profile) []*call {
	out := make([]*call, len(calls))
	for i, made := range calls {
		c := s.prepareOne(made, profile)
		if c.key = shownKey(c.name, c.shown); !shownWhole(c.shown) {
			c.key = s.exactKey(made, string(profile))
		}
		out[i] = c
	}
	return out
}

func (s *session) prepareOne(made model.Call, profile schema.Profile) *call {
	c := &call{id: made.ID, name: made.Name, shown: result.Cut(made.Arguments, maxShown)}
	fail := func(a tool.Answer) *call {
		c.failure = &a
		return c
	}
	t, ok := s.hand.view.Lookup(made.Name)
	if !ok {
		return fail(s.hand.view.Absent(made.Name))
	}
	c.tool, c.name = t, t.Name
	decoded, err := t.DecodeAs(profile, made.Arguments, s.config.Strict)
	if err != nil {
		var problems args.Problems
		if !errors.As(err, &problems) {
			return fail(tool.Fail("invalid", err.Error()))
		}
		return fail(tool.Fail("invalid", "the call was not run: its arguments are wrong", problems.Lines()...))
	}
	c.decoded = decoded
	c.shown = decoded.Arguments()
	return c
}

// exactKey is the key of a call that is not shown as it is.
func (s *session) exactKey(made model.Call, profile string) string {
	name, exact := made.Name, made.Arguments
	if t, ok := s.config.Tools.Lookup(made.Name); ok {
		name = t.Name
		if decoded, err := t.DecodeAs(schema.Profile(profile), made.Arguments, s.config.Strict); err == nil {
			exact = decoded.Key()
		}
	}
	return name + "\x00\x00" + exact
}

// run runs the calls of one answer and records their results: runs of reads side by side, the others one by one.
func (s *session) run(ctx context.Context, calls []*call) error {
	for at := 0; at < len(calls); {
		end := at + 1
		for calls[at].reads() && end < len(calls) && calls[end].reads() {
			end++
		}
		if err := s.recheck(ctx, calls[at:end]); err != nil {
			return err
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
	ran := make([]bool, len(calls)) // to its end
	var work []int
	for i, c := range calls {
		switch {
		case s.skips(ctx, c):
			answers[i] = interrupted(false)
		case s.guard.notice != nil:
			answers[i] = tool.Fail("not_run", "the turn was ended before this call")
		case !s.guard.before(c.key):
			answers[i] = tool.Fail("repeated", "this very call was made before and nothing has changed since: use what it answered, or do something else")
		case c.failure != nil && !c.again:
			answers[i], ran[i] = *c.failure, true
		default:
			work = append(work, i)
		}
	}
	if err := s.sideBySide(ctx, calls, work, answers, ran); err != nil {
		return err
	}
	for i, c := range calls {
		if ran[i] {
			s.guard.after(c.name, c.key, answers[i].OK, c.reads())
		} else if s.stays(ctx) {
			continue // it is made again in the next process
		}
		if err := s.answer(ctx, c, answers[i]); err != nil {
			return err
		}
	}
	return nil
}

// skips says whether a call is not made any more. One of an earlier process is, if only to be cancelled.
func (s *session) skips(ctx context.Context, c *call) bool {
	return ctx.Err() != nil && (!c.again || s.stays(ctx))
}

// sideBySide runs calls, and records meanwhile what they tell of the approvals that they wait for.
func (s *session) sideBySide(ctx context.Context, calls []*call, work []int, answers []tool.Answer, ran []bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n := newNews(s.clock, s.past.decided)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var group errgroup.Group
		group.SetLimit(s.config.Parallel)
		for _, i := range work {
			group.Go(func() error {
				if answers[i] = interrupted(false); !s.skips(ctx, calls[i]) {
					answers[i], ran[i] = s.await(ctx, calls[i], n)
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
			if events := n.end(s.stays(ctx)); len(events) > 0 {
				return s.record(ctx, nil, events...)
			}
			return nil
		}
	}
}

// answer records the result of a call.
func (s *session) answer(ctx context.Context, c *call, a tool.Answer) error {
	content, whole, err := a.PrintWhole(s.config.Random)
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
	entry := Entry{
		Messages: []model.Message{{Role: model.RoleTool, CallID: c.id, Text: content, Images: a.Images}},
		Events: []*agentv1.Event{{Kind: &agentv1.Event_ToolResult{ToolResult: &agentv1.ToolResult{
			CallId: c.id, Name: c.name, Outcome: outcome, Content: content, WholeBytes: uint64(len(whole)), Images: a.Images,
		}}}},
	}
	if whole != "" {
		entry.Outputs = []Output{{CallID: c.id, Text: whole}}
	}
	return s.keep(ctx, entry)
}

// await runs a call and waits for it, but not longer than the turn lives: a tool that does not come back must not hold
// up a stop. What it answers later goes nowhere; Wait waits for it. It says whether the answer is the call's own.
func (s *session) await(ctx context.Context, c *call, n *news) (tool.Answer, bool) {
	type outcome struct {
		answer tool.Answer
		own    bool
	}
	done := make(chan outcome, 1)
	s.calls.Go(func() {
		a, own := s.perform(ctx, c, n)
		done <- outcome{a, own}
	})
	select {
	case o := <-done:
		return o.answer, o.own
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		return o.answer, o.own
	default:
		if n.waits(c) {
			return tool.Fail("interrupted", "the turn was stopped while this waited for a person: it was withdrawn, unless somebody approved "+
				"it in that very moment. Look before you try again"), false
		}
		return interrupted(s.mayAct(c)), false
	}
}

// mayAct says whether a call may have had an effect that nobody knows of. One of an earlier process may have had it there,
// whatever it may do now.
func (s *session) mayAct(c *call) bool {
	if !c.again {
		return !c.reads()
	}
	t, ok := s.config.Tools.Lookup(c.name)
	return !ok || !t.Reads()
}

// interrupted is the result of a call that the end of the turn cut off.
func interrupted(effect bool) tool.Answer {
	if effect {
		return tool.Fail("interrupted", "the turn was stopped before the outcome was known; it may have taken effect: look before you try again")
	}
	return tool.Fail("interrupted", "the turn was stopped before this was done")
}
