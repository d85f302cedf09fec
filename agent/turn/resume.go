package turn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/tool/result"
	"throwbar.dev/throwbar/agent/tool/schema"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// key names a call over restarts of the server.
func (s *session) key(callID string) string {
	sum := sha256.Sum256([]byte(s.task.TurnID + "\x00" + callID))
	return hex.EncodeToString(sum[:])
}

// resume goes on where an earlier process ended: the calls of the last answer that have no result are made again, under
// their keys. It says whether the turn has ended.
func (s *session) resume(ctx context.Context) (bool, error) {
	s.recall()
	open, profile := unanswered(s.history)
	switch {
	case len(open) > 0:
	case ctx.Err() != nil:
		return true, s.stopped(ctx, model.Turn{})
	case s.guard.notice != nil: // that it has to end was not recorded any more
		return true, s.end(ctx, agentv1.TurnEnd_TURN_END_LIMIT, s.guard.notice)
	case s.past.restarts > maxRestarts:
		return true, s.end(ctx, agentv1.TurnEnd_TURN_END_LIMIT, limit("restart_limit", fmt.Sprintf(
			"Stopped: the server was started again %d times while the model was asked, and no answer came.", s.past.restarts)))
	default:
		return false, nil
	}
	step, err := s.task.Journal.Next(ctx)
	switch {
	case s.stays(ctx):
		return true, nil
	case err != nil && ctx.Err() == nil:
		return false, err
	}
	// If it was stopped, the calls are made all the same, so that what they still wait for is cancelled.
	s.deal(step)
	calls := s.prepare(open, schema.Profile(profile))
	for i, c := range calls {
		c.again = true
		s.compare(c)
		c.begun = c.failure != nil && s.mayHaveBegun(c, open[i], schema.Profile(profile))
	}
	done, err := s.work(ctx, calls)
	s.history = append(s.history, step.Messages...) // what was said meanwhile comes after the results
	if len(step.Messages) > 0 || s.past.heard() {
		s.guard.heard()
	}
	return done, err
}

// compare holds a call that is made again against what was told of it when the model made it. If the server reads the same
// text as something else now, that is not what was asked for, and not what a person approves.
func (s *session) compare(c *call) {
	told := s.past.asked[c.id]
	if told == nil {
		return
	}
	if shownWhole(told.GetArguments()) {
		c.key = shownKey(told.GetName(), told.GetArguments())
	}
	if c.failure == nil && (told.GetName() != c.name || told.GetArguments() != c.shown) {
		a := tool.Fail("invalid", "the call was not run: the server was updated since it was made, and takes its arguments for something else now")
		c.failure = &a
	}
}

// mayHaveBegun says whether an earlier process may have run a call that cannot be run any more, without a trace that
// Withdraw finds: the agent's own doing has none. A call that was not understood then either was not run.
func (s *session) mayHaveBegun(c *call, made model.Call, profile schema.Profile) bool {
	t, ok := s.config.Tools.Lookup(made.Name)
	if !ok || t.Entry.Facility == nil || t.Reads() {
		return false
	}
	told := s.past.asked[c.id].GetArguments()
	decoded, err := t.DecodeAs(profile, made.Arguments, s.config.Strict)
	switch {
	case told != result.Cut(made.Arguments, maxShown): // it was understood, or nobody knows
		return true
	case err != nil:
		return false
	default:
		return c.tool != nil || told == decoded.Arguments()
	}
}

// Unanswered are the calls of the last answer in a history that have no result.
func Unanswered(history []model.Message) []model.Call {
	open, _ := unanswered(history)
	return open
}

// unanswered is Unanswered with the profile by which the arguments of the calls are read.
func unanswered(history []model.Message) (open []model.Call, profile string) {
	for _, m := range history {
		switch m.Role {
		case model.RoleAssistant:
			open, profile = m.Calls, m.Profile
		case model.RoleTool:
			for i, call := range open {
				if call.ID == m.CallID {
					open = append(open[:i:i], open[i+1:]...)
					break
				}
			}
		default:
		}
	}
	return open, profile
}

// withdraw is the result of a call of an earlier process that cannot be made again: what it still waits for is taken back,
// and what is known of it is told.
func (s *session) withdraw(ctx context.Context, c *call, n *news) (tool.Answer, error) {
	why := fmt.Sprintf("%s cannot be run any more", c.name)
	gone := notice("tool_gone", fmt.Sprintf("%s cannot be run: the tool is gone, is not granted any more, or takes other arguments now.", c.name))
	response, err := s.config.Commander.Withdraw(ctx, s.command(c, n), why)
	switch {
	case err != nil:
		return tool.Answer{}, err
	case response == nil && c.begun:
		n.tells(gone)
		return tool.Fail("interrupted", "the server was started again before the outcome was known, and "+why+
			"; it may have taken effect: look, and do not try it again by another way"), nil
	case response == nil: // nothing was begun: it failed then as it does now
		return *c.failure, nil
	}
	n.tells(gone)
	lines := make([]string, 0, len(response.GetOutcomes()))
	for _, o := range response.GetOutcomes() {
		lines = append(lines, outcomeLine(o))
	}
	return tool.Fail("tool_gone", "cannot run: "+why+". What was already under way before the server was started again ended as the problems say; "+
		"what waited for approval was withdrawn. Do not try it again by another way", lines...), nil
}

// outcomeLine says in a line how a command ended on a device.
func outcomeLine(o *controlv1.DeviceOutcome) string {
	name := o.GetDeviceName()
	if name == "" {
		name = o.GetDeviceId()
	}
	if o.GetError() != nil {
		return fmt.Sprintf("%s: %s, %s", name, tool.ErrorCode(o.GetError().GetCode()), o.GetError().GetMessage())
	}
	return name + ": it was done"
}
