package storage

import (
	"slices"
	"sync"

	"throwbar.dev/throwbar/agent/model"
)

const (
	// maxRecent is how many bytes of messages are kept of conversations that were read last.
	maxRecent = 32 << 20
	// perMessage is about what a message takes beside its text.
	perMessage = 200
)

// recent keeps the histories that were read last, so that a turn reads only the messages that have come since the turn before
// it. A message never changes once it is stored, and its number is never used again: what is kept cannot be wrong, only short.
type recent struct {
	most int

	mu    sync.Mutex
	kept  map[string]stretch // guarded by mu, by conversation
	bytes int                // guarded by mu, of all of them
	tick  uint64             // guarded by mu
}

// stretch is the messages of a conversation from one number to another.
type stretch struct {
	from, last int64
	messages   []model.Message // nobody changes them
	bytes      int
	used       uint64
}

func newRecent(most int) *recent { return &recent{most: most, kept: map[string]stretch{}} }

// take returns what is kept of a history that begins at a number; what came before that is of no use any more. Room behind its
// messages is given away with it, once: who takes it next has to copy them to add some.
func (r *recent) take(conversation string, from int64) stretch {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.kept[conversation]
	if !ok || s.from != from {
		return stretch{from: from, last: max(from-1, 0)}
	}
	r.tick++
	s.used = r.tick
	taken := s
	s.messages = slices.Clip(s.messages)
	r.kept[conversation] = s
	return taken
}

// add is the stretch with one message more. The one that it was made of stays as it was.
func (s stretch) add(n int64, m model.Message, bytes int) stretch {
	s.messages = append(s.messages, m)
	s.last = n
	s.bytes += bytes + perMessage
	return s
}

// grown is the stretch with room for more messages, and for some that come later where it grows.
func (s stretch) grown(by int) stretch {
	if n := len(s.messages); by > cap(s.messages)-n {
		s.messages = slices.Grow(s.messages, by+n/8)
	}
	return s
}

// keep keeps a history, and lets those go that were not used for longest where there is too much.
func (r *recent) keep(conversation string, s stretch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes += s.bytes - r.kept[conversation].bytes
	r.tick++
	s.used = r.tick
	r.kept[conversation] = s
	for r.bytes > r.most && len(r.kept) > 0 {
		oldest := conversation
		for id, other := range r.kept {
			if other.used < r.kept[oldest].used {
				oldest = id
			}
		}
		r.bytes -= r.kept[oldest].bytes
		delete(r.kept, oldest)
	}
}
