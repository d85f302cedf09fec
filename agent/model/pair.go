package model

import "strings"

// none is the place of a result that is not there.
const none = -1

// pair finds the result of each call: for each message of in the places of the results of its calls. Results stand after
// their calls, anywhere.
//
// An id that several calls have is a trap: the result of a call that was stopped may come late, when another has its id. A
// result is paired only where there is one reading. Where there are two the calls count as interrupted, which is true of
// one of them and harmless for the other, while to tell a model that a call did what another one did is neither. So after a
// call that never got its result, or one that says interrupted, no later result with its id is believed.
func pair(in []Message) [][]int {
	p := pairer{byID: make(map[string]*wave, len(in)), out: make([][]int, len(in))}
	for i, m := range in {
		switch m.Role {
		case RoleAssistant:
			p.begin(in, i)
		case RoleTool:
			if w := p.byID[m.CallID]; w != nil && !w.repeats(in, m.Text) {
				w.results = append(w.results, i)
			}
		default:
		}
	}
	for _, w := range p.byID {
		p.settle(in, w)
	}
	return p.out
}

// wave is the calls of one message that have the same id, and the results with that id up to the next such message.
type wave struct {
	message int
	calls   []int
	results []int
	before  *wave // the last message whose calls had the id
	open    bool  // one of those before may still get its result

	one [2]int // room for one call and one result: there are seldom more
}

func newWave(message int) *wave {
	w := &wave{message: message}
	w.calls, w.results = w.one[:0:1], w.one[1:1:2]
	return w
}

// repeats reports whether a text is a result of an earlier message's call with the same id, told again.
func (w *wave) repeats(in []Message, text string) bool {
	for b := w.before; b != nil; b = b.before {
		for _, at := range b.results {
			if in[at].Text == text {
				return true
			}
		}
	}
	return false
}

type pairer struct {
	byID map[string]*wave
	out  [][]int
}

// begin starts the waves of message i.
func (p *pairer) begin(in []Message, i int) {
	calls := in[i].Calls
	if len(calls) == 0 {
		return
	}
	p.out[i] = make([]int, len(calls))
	for j, call := range calls {
		p.out[i][j] = none
		id := clean(call.ID)
		w := p.byID[id]
		if w == nil || w.message != i {
			next := newWave(i)
			if w != nil {
				next.before, next.open = w, !p.settle(in, w)
			}
			w = next
			p.byID[id] = w
		}
		w.calls = append(w.calls, j)
	}
}

// settle pairs what can be paired, and says whether no result can come any more. Of several results of one call the first
// counts: what comes after it is a repeat.
func (p *pairer) settle(in []Message, w *wave) bool {
	few, many := len(w.results) < len(w.calls), len(w.results) > len(w.calls)
	if few || w.open || many && w.before != nil {
		return false
	}
	whole := true
	for n, j := range w.calls {
		p.out[w.message][j] = w.results[n]
		whole = whole && !isInterrupted(in[w.results[n]].Text)
	}
	return whole
}

// isInterrupted reports whether a result says that nobody knows what became of its call.
func isInterrupted(text string) bool {
	return text == Interrupted || strings.Contains(text, `"code":"interrupted"`)
}
