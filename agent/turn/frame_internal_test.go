package turn

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"throwbar.dev/throwbar/agent/model"
)

// TestTheFrameIsTheSystemThenTheHistory lets the history of a turn grow, shrink and begin anew, and the rules change: what a model is
// shown is always the rules and then the history, and what is no longer the history is never written to.
func TestTheFrameIsTheSystemThenTheHistory(t *testing.T) {
	t.Parallel()
	message := func(n int) model.Message { return model.Message{Role: model.RoleUser, Text: fmt.Sprint(n)} }
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		kept := []model.Message{message(-1), message(-2)} // somebody else's
		s := &session{history: slices.Clip(kept)}
		var want []model.Message
		want = append(want, kept...)
		for step := range 200 {
			switch r.IntN(8) {
			case 0:
				s.history = []model.Message{message(step)} // a summary
				want = slices.Clone(s.history)
			case 1:
				s.history, want = s.history[:0:0], nil
			case 2:
				n := r.IntN(len(want) + 1)
				s.history, want = s.history[:n], want[:n]
			default:
				for i := range 1 + r.IntN(40) {
					s.history, want = append(s.history, message(i)), append(want, message(i))
				}
			}
			system := model.Message{Role: model.RoleSystem, Text: fmt.Sprint("rules ", r.IntN(3))}
			got := s.framed(system)
			if !reflect.DeepEqual(got, slices.Concat([]model.Message{system}, want)) || len(s.history) != len(want) {
				t.Fatalf("seed %d, step %d: %v\nwant %v", seed, step, got, want)
			}
			s.history = unsystemed(got)
		}
		if kept[0].Text != "-1" || kept[1].Text != "-2" {
			t.Fatalf("seed %d: %v", seed, kept)
		}
	}
}

// TestALongHistoryIsCopiedOnceInATurn looks at the memory of the requests of a turn of some rounds: it stays the same.
func TestALongHistoryIsCopiedOnceInATurn(t *testing.T) {
	t.Parallel()
	long := make([]model.Message, 1000)
	s := &session{history: slices.Clip(long)}
	first := s.framed(model.Message{Role: model.RoleSystem, Text: "rules"})
	s.history = unsystemed(first)
	for round := range 10 {
		s.history = append(s.history, model.Message{Role: model.RoleAssistant, Text: "a"}, model.Message{Role: model.RoleUser, Text: "b"})
		next := s.framed(model.Message{Role: model.RoleSystem, Text: "rules"})
		if &next[0] != &first[0] || &long[0] == &next[1] {
			t.Errorf("round %d has memory of its own, or that of another", round)
		}
		s.history = unsystemed(next)
	}
}
