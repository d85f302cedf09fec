package tool

import (
	"throwbar.dev/throwbar/agent/tool/result"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// What an answer says beside the outcome where a person decided.
const (
	adviceKey = "advice"
	reasonKey = "personSaid" // what whoever decided said
	editedKey = "ranInstead" // what a person made of the call, and what ran
)

const editedText = "a person changed the call before it ran: what ranInstead says was run, not what you asked for. Report that"

// advice tells the model what not to make of an error; empty where the error says it all.
func advice(code commandv1.ErrorCode) string {
	switch code {
	case commandv1.ErrorCode_ERROR_CODE_DENIED:
		return "nothing of it was done. Do not try it again, nor the same by another way. Tell the user that it was denied, and why if that is said"
	case commandv1.ErrorCode_ERROR_CODE_APPROVAL_TIMED_OUT:
		return "nothing of it was done: nobody said no, but nobody said yes in time. Do not try it again now. Tell the user that it still needs approval"
	default:
		return ""
	}
}

// advise says once what not to make of an error.
func (a Answer) advise(code commandv1.ErrorCode) { a.say(advice(code)) }

func (a Answer) say(text string) {
	if text != "" && a.body.Get(adviceKey) == nil {
		a.body.Add(adviceKey, result.Text(text))
	}
}

// decided adds what people made of a call: their reasons, and the arguments that ran where they are not those that the
// model chose.
func (t *Tool) decided(a Answer, decisions []*controlv1.Approval) Answer {
	edited := result.List()
	for _, d := range decisions {
		if text := d.GetDecisionReason(); text != "" && a.body.Get(reasonKey) == nil {
			a.body.Add(reasonKey, result.Text(result.Cut(text, maxMessage)))
		}
		for _, c := range d.GetCalls() {
			if c.GetEdited() == nil || d.GetState() != controlv1.ApprovalState_APPROVAL_STATE_APPROVED {
				continue
			}
			ran := c.GetEffective()
			if ran == nil {
				ran = c.GetEdited()
			}
			row := result.Object().Add("deviceId", result.Text(c.GetDeviceId()))
			if c.GetDeviceName() != "" {
				row.Add("deviceName", result.Text(c.GetDeviceName()))
			}
			if m, err := t.Entry.Body(ran); err == nil {
				row.Add("arguments", result.Arguments(m))
			}
			edited.Append(row)
		}
	}
	if !edited.Empty() {
		a.body.Add(editedKey, edited)
		a.say(editedText)
	}
	return a
}
