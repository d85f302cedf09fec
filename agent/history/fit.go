package history

import (
	"slices"
	"strings"

	"throwbar.dev/throwbar/agent/model"
)

// What old results of tools are cut to, and from which length on.
const (
	longResult  = 2_000 // bytes
	shortResult = 1_500
)

// shortenFrom is the part of the room, in percent, from which on old results are cut. It is a limit and not a goal: what is
// cut does not depend on how much has to go, so that one request begins as the last one did, and the provider can use what
// it remembers of that.
const shortenFrom = 50

// Plan says what Fit did, and what is left to do.
type Plan struct {
	// Tokens is the estimate of the whole request.
	Tokens int
	// Over says that this is more than the model should be asked to read: compact the conversation first.
	Over bool
	// Shortened is how many results were cut, and Images how many images are shown of those that there are.
	Shortened, Images, OfImages int
}

// Fit returns what a model is shown of a conversation. The messages may be in any state, system messages among them; they are
// not changed. What is shown is what [model.Lint] accepts, begins with the system messages, has no two messages of the user
// in a row ([model.NextMessage] is between them), and ends with what can be answered; it is empty if there is nothing to.
func Fit(messages []model.Message, limits Limits) ([]model.Message, Plan) {
	return new(Memory).Fit(messages, limits)
}

// Fit is [Fit], and costs less if the conversation begins as the one before. Nobody may change what is shown.
func (m *Memory) Fit(messages []model.Message, limits Limits) ([]model.Message, Plan) {
	shown, plan := seen(messages, limits)
	shown = asking(joined(m.shown.Repair(shown)))
	m.weigh(shown)
	tokens := limits.Estimator.tokens(m.weight)
	if tokens > limits.room()*shortenFrom/100 {
		if shown, plan.Shortened = m.shorten(shown, newestRound(shown)); plan.Shortened > 0 {
			tokens = limits.Estimator.tokens(m.weight)
		}
	}
	plan.Tokens = tokens + limits.Fixed
	plan.Over = plan.Tokens > limits.most()
	return shown, plan
}

// newestRound is where the newest answer of the model with calls begins.
func newestRound(messages []message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if len(messages[i].Calls) > 0 {
			return i
		}
	}
	return len(messages)
}

// joined puts neighbouring messages of the user into one: the templates of some models take no two in a row, and they come
// to be whenever a turn fails without an answer or several messages waited for it.
func joined(messages []message) []message {
	if !anyInARow(messages) {
		return messages
	}
	out := make([]message, 0, len(messages))
	for _, m := range messages {
		last := len(out) - 1
		if m.Role != model.RoleUser || last < 0 || out[last].Role != model.RoleUser {
			out = append(out, m)
			continue
		}
		both := &out[last]
		both.Text = strings.TrimPrefix(both.Text+"\n\n"+model.NextMessage+"\n"+m.Text, "\n\n")
		both.Images = slices.Concat(both.Images, m.Images)
	}
	return out
}

// anyInARow reports whether the user has two messages in a row.
func anyInARow(messages []message) bool {
	for i := 1; i < len(messages); i++ {
		if messages[i].Role == model.RoleUser && messages[i-1].Role == model.RoleUser {
			return true
		}
	}
	return false
}

// goOn asks where nobody did: the turn went on after a restart, or what it answered to is gone.
const goOn = "(Go on from here.)"

// asking ends the messages with one that can be answered.
func asking(messages []message) []message {
	if n := len(messages); n > 0 && messages[n-1].Role == model.RoleAssistant {
		return append(slices.Clip(messages), message{Role: model.RoleUser, Text: goOn})
	}
	return messages
}
