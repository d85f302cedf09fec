package model

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
)

// maxCalls bounds the calls of one turn.
const maxCalls = 128

// maxAliases bounds the ids by which one call is known.
const maxAliases = 16

var errManyCalls = errors.New("the answer has too many tool calls")

// fragment is what one delta says about one call.
type fragment struct {
	indexed bool
	index   int64
	id      string
	name    string
	args    json.RawMessage // the string literal or the value that stands for the arguments
	extra   fields
	// whole says that the fragment is the entire call, as in an answer that is not streamed.
	whole bool
}

// partial is a call in the making.
type partial struct {
	ids      []string // all ids the provider used for it; the first one is its id
	name     string
	args     argText
	argsJoin joiner
	extra    fields
}

func (p *partial) size() int {
	n := len(p.name) + p.args.size()
	for _, id := range p.ids {
		n += len(id)
	}
	for name, value := range p.extra {
		n += len(name) + len(value)
	}
	return n
}

// placeholder reports whether nothing is known of the call that could be run.
func (p *partial) placeholder() bool { return p.name == "" && p.args.empty() }

func (p *partial) answersTo(id string) bool { return slices.Contains(p.ids, id) }

// assembler puts the calls of a turn together from fragments in whatever way the provider marks what belongs where.
type assembler struct {
	calls   []*partial
	byIndex map[int64]*partial
	size    int // bytes held
}

// add takes the next fragment.
func (a *assembler) add(f fragment) error {
	call := a.pick(f)
	if call == nil {
		if len(a.calls) == maxCalls {
			return errManyCalls
		}
		call = &partial{}
		a.calls = append(a.calls, call)
	}
	if a.byIndex == nil {
		a.byIndex = make(map[int64]*partial)
	}
	if f.indexed && len(a.byIndex) < 2*maxCalls {
		a.byIndex[f.index] = call
	}
	before := call.size()
	call.take(f)
	a.size += call.size() - before
	return nil
}

// pick returns the call that f continues, or nil if it starts one. An index decides if there is one, unless it is
// used for everything; else the id; else the fragment belongs to the last call.
func (a *assembler) pick(f fragment) *partial {
	if f.whole || len(a.calls) == 0 {
		return nil
	}
	named := a.named(f.id)
	if f.indexed {
		current := a.byIndex[f.index]
		if named != nil && named != current && f.name == "" {
			return named
		}
		if current == nil || current.endsBefore(f) {
			return nil
		}
		return current
	}
	if named == nil {
		named = a.calls[len(a.calls)-1]
	}
	if named.endsBefore(f) {
		return nil
	}
	return named
}

// named returns the latest call that goes by id.
func (a *assembler) named(id string) *partial {
	if id == "" {
		return nil
	}
	for _, call := range slices.Backward(a.calls) {
		if call.answersTo(id) {
			return call
		}
	}
	return nil
}

// endsBefore reports whether f, which points at p, starts another call instead of continuing it.
func (p *partial) endsBefore(f fragment) bool {
	stranger := f.id != "" && len(p.ids) > 0 && !p.answersTo(f.id)
	switch {
	case f.name == "":
		return stranger && !f.indexed && p.args.done()
	case p.name == "":
		return false
	case stranger && f.name != p.name:
		return true
	case stranger:
		return p.args.done() || !f.indexed && p.args.empty()
	case f.name != p.name: // a further piece of the name, or another call of a provider that sends no ids
		return p.args.done() || !f.indexed && f.id == ""
	case f.id != "" && f.indexed: // id and name repeated with every piece, or with a summary at the end
		return false
	case f.id != "" && isEmptyObject(f.own()): // a placeholder beside what is known
		return false
	default:
		return p.args.done() && f.bringsOther(&p.args)
	}
}

// bringsOther reports whether the fragment has a whole object of its own that differs from known.
func (f fragment) bringsOther(known *argText) bool {
	own := f.own()
	return isObject(own) && !known.equals(own)
}

// own is the text of the arguments that the fragment brings.
func (f fragment) own() string {
	if kind(f.args) == '{' {
		return string(f.args)
	}
	return asText(f.args)
}

// take adds what f says to the call.
func (p *partial) take(f fragment) {
	if f.id != "" && !p.answersTo(f.id) && len(p.ids) < maxAliases {
		p.ids = append(p.ids, f.id)
	}
	switch {
	case f.name == "" || f.name == p.name:
	case p.name == "" || len(f.name) > len(p.name) && f.name[:len(p.name)] == p.name:
		p.name = f.name
	case p.args.empty():
		p.name += f.name
	}
	switch {
	case isNull(f.args):
	case kind(f.args) == '"':
		p.args.add(p.argsJoin.decode(f.args))
	default:
		p.args.replace(clean(string(f.args)))
	}
	for name, value := range f.extra {
		if isNull(value) {
			continue
		}
		if p.extra == nil {
			p.extra = make(fields)
		}
		p.extra[name] = value
	}
}

// finish returns the calls, and for each whether its arguments came to their end. Ids that are missing, repeated or
// already taken are replaced by fresh ones.
func (a *assembler) finish(taken map[string]bool, fresh func() string) (calls []Call, done []bool) {
	used := make(map[string]bool)
	for _, p := range a.calls {
		if p.placeholder() {
			continue
		}
		p.args.add(p.argsJoin.rest())
		call := Call{Name: p.name, Arguments: p.args.text()}
		if len(p.ids) > 0 {
			call.ID = p.ids[0]
		}
		for call.ID == "" || used[call.ID] || taken[call.ID] {
			call.ID = fresh()
		}
		used[call.ID] = true
		if len(p.extra) > 0 {
			call.Extra, _ = marshal(p.extra) // values of a decoded document: cannot fail
		}
		calls, done = append(calls, call), append(done, p.args.done())
	}
	return calls, done
}

// callIDLength is what the pickiest provider asks for: exactly nine letters and digits.
const callIDLength = 9

// freshID makes the id of a call whose provider gave none.
func freshID() string { return rand.Text()[:callIDLength] }
