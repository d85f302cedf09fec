package model

// none is the place of a result that is not there.
const none = -1

// pair finds the result of each call: for each message of in the places of the results of its calls. Results stand after
// their calls, anywhere.
//
// An id that several calls have is a trap: the result of a call that was stopped may come late, when another has its id. A
// result is paired only where there is one reading. Where there are two the calls count as interrupted, which is true of
// one of them and harmless for the other, while to tell a model that a call did what another one did is neither.
func pair(in []Message) [][]int {
	p := pairer{byID: make(map[string]*wave), out: make([][]int, len(in))}
	for i, m := range in {
		switch m.Role {
		case RoleAssistant:
			p.begin(i, m.Calls)
		case RoleTool:
			if w := p.byID[m.CallID]; w != nil {
				w.results = append(w.results, i)
			}
		default:
		}
	}
	for _, w := range p.byID {
		p.settle(w)
	}
	return p.out
}

// wave is the calls of one message that have the same id, and the results with that id up to the next such message.
type wave struct {
	message int
	calls   []int
	results []int
	again   bool // an earlier message had calls with the id
	open    bool // and those of the last such message have no result
}

type pairer struct {
	byID map[string]*wave
	out  [][]int
}

// begin starts the waves of message i.
func (p *pairer) begin(i int, calls []Call) {
	p.out[i] = make([]int, len(calls))
	for j, call := range calls {
		p.out[i][j] = none
		id := clean(call.ID)
		w := p.byID[id]
		if w == nil || w.message != i {
			next := &wave{message: i}
			if w != nil {
				p.settle(w)
				next.again, next.open = true, len(w.results) == 0
			}
			w = next
			p.byID[id] = w
		}
		w.calls = append(w.calls, j)
	}
}

// settle pairs what can be paired. Of several results of one call the first counts: what comes after it is a repeat.
func (p *pairer) settle(w *wave) {
	few, many := len(w.results) < len(w.calls), len(w.results) > len(w.calls)
	if few || w.open || many && w.again {
		return
	}
	for n, j := range w.calls {
		p.out[w.message][j] = w.results[n]
	}
}
