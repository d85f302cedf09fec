package history

import "sync"

// maxMemories is how many bytes are kept of conversations in which no turn runs.
const maxMemories = 32 << 20

// Memories keeps what turns of before have found out about their conversations. It is safe for concurrent use; the zero value
// is ready.
type Memories struct {
	mu    sync.Mutex
	kept  map[string]resting // guarded by mu, by conversation
	bytes int                // guarded by mu, of all of them
	tick  uint64             // guarded by mu
}

// resting is a memory that no turn uses.
type resting struct {
	memory *Memory
	bytes  int
	since  uint64
}

// Take gives a turn the memory of its conversation, which belongs to it until it is put back: a new one if there is none.
func (m *Memories) Take(conversation string) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	rests, ok := m.kept[conversation]
	if !ok {
		return &Memory{}
	}
	m.forget(conversation)
	return rests.memory
}

// Put keeps a memory for the next turn. Where there is too much, those that have rested for longest go.
func (m *Memories) Put(conversation string, memory *Memory) {
	size := memory.size()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[string]resting{}
	}
	m.forget(conversation)
	m.tick++
	m.kept[conversation] = resting{memory: memory, bytes: size, since: m.tick}
	for m.bytes += size; m.bytes > maxMemories; {
		oldest := conversation
		for id, rests := range m.kept {
			if rests.since < m.kept[oldest].since {
				oldest = id
			}
		}
		m.forget(oldest)
	}
}

// forget lets a memory go. The caller holds mu.
func (m *Memories) forget(conversation string) {
	m.bytes -= m.kept[conversation].bytes
	delete(m.kept, conversation)
}
