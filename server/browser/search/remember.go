package search

import (
	"slices"
	"strings"
	"sync"
)

const (
	// costly is how much work a word may take to answer in a shard before its slots are remembered: an atom or a text is
	// one, and the block of an atom's lexicon that is looked through is blockWork.
	costly    = 1024
	blockWork = 4
	// few texts of a shard are rather read than looked up.
	few = 64
	// maxRemembered is how many words a shard remembers. Each costs 8 KiB, and a few dozen nanoseconds for every Put.
	maxRemembered = 24
)

// memory has the slots of words that were dear to look up, such as one that is in half of all titles as a part of a
// thousand other words. Changes of the index keep it right: it is an index for what is asked, not a cache to expire.
type memory struct {
	mu    sync.Mutex // readers of the index come here side by side
	words []remembered
	clock uint64
}

// remembered is a word with its slots. The slots change only with the index, so that reading them needs no mu.
type remembered struct {
	word  string
	slots *bitmap
	asked uint64
}

func (m *memory) recall(word string) *bitmap {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.words {
		if w := &m.words[i]; w.word == word {
			m.clock++
			w.asked = m.clock
			return w.slots
		}
	}
	return nil
}

// remember keeps a copy; the word that was not asked for longest makes room.
func (m *memory) remember(word string, slots *bitmap) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.ContainsFunc(m.words, func(w remembered) bool { return w.word == word }) {
		return
	}
	own := *slots
	m.clock++
	fresh := remembered{word: strings.Clone(word), slots: &own, asked: m.clock}
	if len(m.words) < maxRemembered {
		m.words = append(m.words, fresh)
		return
	}
	oldest := 0
	for i := range m.words {
		if m.words[i].asked < m.words[oldest].asked {
			oldest = i
		}
	}
	m.words[oldest] = fresh
}

func (m *memory) put(slot uint16, texts []string) {
	for i := range m.words {
		if Match(texts, []string{m.words[i].word}) {
			m.words[i].slots[slot>>6] |= 1 << (slot & 63)
		}
	}
}

func (m *memory) take(slot uint16) {
	for i := range m.words {
		m.words[i].slots[slot>>6] &^= 1 << (slot & 63)
	}
}
