package storage_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/storage"
)

// TestHistoriesAreReadAsTheyAre reads histories again and again while they grow and begin anew. What is kept of what was read
// before is never wrong, also where callers go on from it in different ways.
func TestHistoriesAreReadAsTheyAre(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		random := rand.New(rand.NewPCG(1, 2))
		want := map[string][]model.Message{}
		change := func(id string) conversation.Change {
			return conversation.Change{Conversation: conversation.Conversation{ID: id, Workspace: "w", CreatedAt: at(1), UpdatedAt: at(1), Open: true}}
		}
		for i := range 300 {
			id := fmt.Sprintf("aaaa-%d", random.IntN(3))
			c := change(id)
			_, known := want[id]
			c.New = !known
			c.Restart = known && random.IntN(8) == 0
			for n := range 1 + random.IntN(3) {
				c.Messages = append(c.Messages, model.Message{Role: model.RoleUser, Text: fmt.Sprint(i, n)})
			}
			if err := s.Append(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if c.Restart {
				want[id] = nil
			}
			want[id] = append(want[id], c.Messages...)
			if random.IntN(3) == 0 {
				continue
			}
			got, err := s.Messages(t.Context(), id)
			if err != nil || !reflect.DeepEqual(got, want[id]) {
				t.Fatalf("%d: %v\n%v\n%v", i, err, got, want[id])
			}
			_ = append(got, model.Message{Text: "spoilt"})
		}
		var readers sync.WaitGroup
		for range 8 {
			readers.Go(func() {
				for id := range want {
					if got, err := s.Messages(t.Context(), id); err != nil || !reflect.DeepEqual(got, want[id]) {
						t.Errorf("%s: %v", id, err)
					}
				}
			})
		}
		readers.Wait()
	})
}
