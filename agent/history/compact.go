package history

import (
	"context"
	"fmt"
	"io"
	"slices"

	"throwbar.dev/throwbar/agent/model"
)

// Progress is by how many percent a compaction makes a conversation shorter at least, what goes with every request not
// counted. One that does less has failed.
const Progress = 30

// minRoom is how many tokens messages must have room for.
const minRoom = 600

// The parts of the room for messages, in percent, that a compacted conversation may take.
const (
	tailShare    = 40 // the newest rounds
	summaryShare = 15 // what stands for the others
	saidShare    = 10 // what the user said since the last answer, but for the last message
	hardShare    = 20 // the newest round, and the user's last message, where nothing else helps
)

// Summarise asks a model to answer the messages, which come without tools, and returns the text of its answer.
type Summarise func(ctx context.Context, messages []model.Message) (string, error)

// Compactor makes conversations shorter.
type Compactor struct {
	// Summarise writes the summary. Without it, or where it fails, the summary lists what was said and done.
	Summarise Summarise
	Random    io.Reader // of the marks around a summary
	// Loaded are the tools that were loaded on demand: the summary keeps their names.
	Loaded []string
}

// Result is a conversation that was made shorter.
type Result struct {
	// Messages take the place of all before. Of system messages there are those that were there before.
	Messages []model.Message
	// Before and After are the estimates of the whole request.
	Before, After int
	// Mechanical says that no model wrote the summary, and Why, if one was asked, why it is not the model's.
	Mechanical bool
	Why        error
}

// TooLong says that a conversation cannot be made short enough for its model. Its text is for the person.
type TooLong struct {
	Tokens int // estimated, of the shortest request that could be made
	Most   int // that a request may have
	Tools  bool
	Cause  error // the provider's refusal, if there was one
}

func (e *TooLong) Error() string {
	if e.Tools {
		return fmt.Sprintf("the agent's tools and rules alone take about %d of the %d tokens that the model can be asked to read: "+
			"choose a model with a larger context, or give the conversation fewer tools", e.Tokens, max(e.Most, 0))
	}
	return fmt.Sprintf("this conversation is too long for its model even after its older part was summed up (about %d tokens, where %d "+
		"can be asked): begin a new conversation, or choose a model with a larger context", e.Tokens, max(e.Most, 0))
}

func (e *TooLong) Unwrap() error { return e.Cause }

// Compact replaces all but the newest rounds of a conversation by a summary. The last message that somebody said stays as it
// is, and so, within bounds, do those that came before it since the agent last answered, and the user's words before that. Calls
// stay with their results.
//
// The result fits the limits and is shorter by [Progress]. A summary of a model that does not bring that about is replaced
// by one that is not the model's and leaves less of the rest; if that is not enough either, the error is a [*TooLong]. The
// context's end is an error too, and changes nothing.
func (c Compactor) Compact(ctx context.Context, messages []model.Message, limits Limits) (Result, error) {
	whole, _ := seen(messages, limits)
	whole = model.Repair(whole)
	out := Result{Before: limits.messages(whole...) + limits.Fixed}
	w := work{Compactor: c, limits: limits, whole: whole, system: head(whole)}
	w.floor = limits.messages(whole[:w.system]...) + limits.Fixed
	if w.room = limits.most() - w.floor; w.room < minRoom {
		return out, &TooLong{Tokens: w.floor, Most: limits.most(), Tools: true}
	}
	if err := w.soft(ctx, &out); err != nil {
		return out, err
	}
	if out.Messages == nil {
		if err := w.hard(&out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// work is one compaction.
type work struct {
	Compactor
	limits Limits
	whole  []message // repaired
	system int       // number of system messages
	floor  int       // tokens of these, and of what else goes with every request
	room   int       // tokens for all other messages
}

// soft lets a model sum up what is older than the newest rounds. The result has no messages if that did not help.
func (w *work) soft(ctx context.Context, out *Result) error {
	from := w.tail(w.room * tailShare / 100)
	if from == w.system {
		return nil // there is nothing older
	}
	older := w.whole[w.system:from]
	s := gather(older)
	if w.Summarise == nil {
		out.Mechanical = true
	} else if s.text, out.Why = w.ask(ctx, older); out.Why != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("sum up: %w", context.Cause(ctx))
		}
		out.Mechanical = true
	}
	return w.propose(out, s, w.last(from), w.whole[from:])
}

// hard leaves only the newest round and the user's last message, and cuts both.
func (w *work) hard(out *Result) error {
	at := rounds(w.whole)
	if len(at) == 0 {
		return w.tooLong(out)
	}
	from := at[len(at)-1]
	share := max(w.room*hardShare/100, 1)
	s := gather(w.whole[w.system:from])
	out.Mechanical = true
	last := w.last(from)
	for i := range last {
		last[i].Text = Cut(last[i].Text, bytesFor(share))
	}
	if err := w.propose(out, s, last, squeezed(w.whole[from:], bytesFor(share))); err != nil || out.Messages != nil {
		return err
	}
	return w.tooLong(out)
}

func (w *work) tooLong(out *Result) error {
	out.Messages = nil
	return &TooLong{Tokens: out.After, Most: w.limits.most()}
}

// tail is where the newest rounds begin that have no more than a number of tokens; the newest one is always among them.
func (w *work) tail(most int) int {
	at := rounds(w.whole)
	if len(at) == 0 {
		return w.system
	}
	from := at[len(at)-1]
	for i := len(at) - 1; i >= 0; i-- {
		if w.limits.messages(w.whole[at[i]:]...) > most {
			break
		}
		from = at[i]
	}
	return from
}

// last is what was said before a place since the agent last answered, without images: what it works on, whoever said it and
// in however many messages. The last message is always there, unless it comes after that place; of those before it as many as
// have room.
func (w *work) last(before int) []message {
	var said []message
	room := w.room * saidShare / 100
	newest := true
	for i := len(w.whole) - 1; i >= w.system; i-- {
		m := w.whole[i]
		if m.Role == model.RoleAssistant && len(m.Calls) == 0 && !newest {
			break
		}
		if m.Role != model.RoleUser || model.CarriesImages(m) || isSummary(m) {
			continue
		}
		if m.Images = nil; m.Text == "" {
			m.Text = oldRemark
		}
		if !newest {
			if room -= w.limits.messages(m); room < 0 {
				break
			}
		}
		newest = false
		if i < before {
			said = append(said, m)
		}
	}
	slices.Reverse(said)
	return said
}

// propose puts a shorter conversation together, and keeps it in out if it is short enough.
func (w *work) propose(out *Result, s summary, last, tail []message) error {
	text, err := s.print(w.Random, w.room*summaryShare/100, w.Loaded)
	if err != nil {
		return err
	}
	shorter := append([]message{}, w.whole[:w.system]...)
	shorter = append(shorter, message{Role: model.RoleUser, Text: text})
	shorter = model.Repair(append(append(shorter, last...), tail...))
	out.After = w.limits.messages(shorter...) + w.limits.Fixed
	if out.After-w.floor <= (out.Before-w.floor)*(100-Progress)/100 && out.After <= w.limits.most() {
		out.Messages = shorter
	}
	return nil
}

// squeezed returns a copy of a round whose texts together have about a number of bytes.
func squeezed(round []message, bytes int) []message {
	out := make([]message, 0, len(round))
	for _, m := range round {
		m.Images = nil
		if model.CarriesImages(message{Role: m.Role, Text: m.Text}) {
			continue
		}
		each := max(bytes/len(round), 200)
		m.Text = Cut(m.Text, each)
		calls := m.Calls
		m.Calls = nil
		for _, call := range calls {
			if len(call.Arguments) > max(each, longResult) {
				call.Arguments = fmt.Sprintf(`{"leftOut":"%d bytes"}`, len(call.Arguments))
			}
			m.Calls = append(m.Calls, call)
		}
		out = append(out, m)
	}
	return out
}

// bytesFor is how many bytes a text may have so that it has about a number of tokens, whatever its script.
func bytesFor(tokens int) int { return max(tokens*2, 0) }
