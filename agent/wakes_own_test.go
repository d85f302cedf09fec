package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// boundOf is a bound of wakes; less than nothing is the server's.
func boundOf(most int) *agentv1.WakeBound {
	if most < 0 {
		return &agentv1.WakeBound{}
	}
	return &agentv1.WakeBound{Most: proto.Uint32(uint32(most))}
}

// C46: a conversation may have a bound of wakes of its own, also one that nobody may wake; what is told has the real number, and a
// change counts the wakes that were.
func TestAConversationHasItsOwnBoundOfWakes(t *testing.T) {
	t.Parallel()
	s := newShelf(t, echo)
	s.limits.ChainWakes = 1000
	s.check(s.stop())
	s.start()
	b, err := s.Create(t.Context(), "w", "b", &agentv1.ConversationSettings{Wakes: boundOf(2)}, "")
	s.check(err)
	sends := func(want ...agentv1.Delivery) {
		t.Helper()
		for i, w := range want {
			s.act = func(ctx context.Context, book *conversation.Book, task turn.Task) error {
				if last(task) == "go" {
					told, err := agentSays(ctx, book, task, b.ID, "news", id())
					if err != nil || told.Delivery != w {
						t.Errorf("message %d: %+v, %v, want %v", i+1, told, err, w)
					}
				}
				return answers(ctx, task, "done")
			}
			s.events(s.say("", "go").Conversation.ID)
			s.events(b.ID)
		}
	}
	set := func(most, left int) {
		t.Helper()
		row, err := s.Update(t.Context(), "w", b.ID, conversation.Patch{Wakes: boundOf(most)})
		s.check(err)
		if row.Wakes != left {
			t.Errorf("bound %d: %d wakes are left, want %d", most, row.Wakes, left)
		}
	}
	told := func(n int, want string) {
		t.Helper()
		var texts []string
		for _, e := range s.events(b.ID) {
			if notice := e.GetNotice(); notice != nil {
				texts = append(texts, notice.GetText())
			}
		}
		if len(texts) != n || !strings.Contains(texts[n-1], want) {
			t.Errorf("notices %q, want %d, the last with %q", texts, n, want)
		}
	}
	sends(hasStarted, hasStarted, isHeld, isHeld)
	told(1, "may wake this conversation 2 times")
	set(5, 3) // two were
	sends(hasStarted)
	set(4, 1)
	set(1, 0)
	sends(isHeld)
	told(2, "may wake this conversation 1 time until")
	s.restart()
	s.say(b.ID, "go on")
	s.events(b.ID)
	set(1, 1)
	sends(hasStarted, isHeld)
	set(0, 0)
	s.say(b.ID, "nobody else")
	s.events(b.ID)
	sends(isHeld)
	told(4, "Agents may not wake this conversation")
	set(-1, conversation.DefaultWakes)
	if got := slices.Compact(notices(s.events(b.ID))); !slices.Equal(got, []string{"wakes_exhausted"}) {
		t.Errorf("notices %q", got)
	}
}
