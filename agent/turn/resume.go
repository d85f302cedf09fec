package turn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
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
	open := Unanswered(s.history)
	if len(open) == 0 {
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
	calls := s.prepare(open)
	for _, c := range calls {
		c.again = true
	}
	done, err := s.work(ctx, calls)
	s.history = append(s.history, step.Messages...) // what was said meanwhile comes after the results
	return done, err
}

// Unanswered are the calls of the last answer in a history that have no result.
func Unanswered(history []model.Message) []model.Call {
	var open []model.Call
	for _, m := range history {
		switch m.Role {
		case model.RoleAssistant:
			open = m.Calls
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
	return open
}

// withdraw is the result of a call of an earlier process that cannot be made again: what it still waits for is taken back,
// and what is known of it is told.
func (s *session) withdraw(ctx context.Context, c *call, n *news) (tool.Answer, error) {
	why := fmt.Sprintf("%s cannot be run any more", c.name)
	n.tells(notice("tool_gone", fmt.Sprintf("%s cannot be run: the tool is gone, is not granted any more, or takes other arguments now.", c.name)))
	request := s.command(c, n)
	response, err := s.config.Commander.Withdraw(ctx, request, why)
	switch {
	case err != nil:
		return tool.Answer{}, err
	case response == nil:
		return *c.failure, nil
	}
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
