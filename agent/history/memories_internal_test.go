package history

import (
	"fmt"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model"
)

// Only so much is remembered: what has rested for longest goes, and what is larger than all there is room for at once.
func TestOnlySoMuchIsRemembered(t *testing.T) {
	t.Parallel()
	var memories Memories
	put := func(id string, bytes int) {
		m := memories.Take(id)
		m.Repair([]model.Message{{Role: model.RoleUser, Text: strings.Repeat("x", bytes)}})
		memories.Put(id, m)
	}
	for i := range 40 {
		put(fmt.Sprint(i), 1<<20)
		put("busy", 1<<20)
	}
	sum := 0
	for _, rests := range memories.kept {
		sum += rests.bytes
	}
	if n := len(memories.kept); n < 20 || n > 32 || sum != memories.bytes || sum > maxMemories {
		t.Errorf("%d memories of %d bytes are kept, %d are counted", n, sum, memories.bytes)
	}
	for id, kept := range map[string]bool{"busy": true, "39": true, "0": false} {
		if _, ok := memories.kept[id]; ok != kept {
			t.Errorf("%s is kept: %v", id, ok)
		}
	}
	put("large", maxMemories)
	if _, ok := memories.kept["large"]; ok || memories.bytes > maxMemories {
		t.Errorf("more than there is room for: %d", memories.bytes)
	}
	for id := range memories.kept {
		memories.Take(id)
	}
	if memories.bytes != 0 || len(memories.kept) != 0 {
		t.Errorf("%d bytes of nothing", memories.bytes)
	}
}
