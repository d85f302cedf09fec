package agent_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"testing"

	"throwbar.dev/throwbar/agent/agenttest"
	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// circler is a model that makes the same call for ever. Every second time that it is asked the process ends meanwhile.
type circler struct {
	mu      sync.Mutex
	asked   int
	waiting chan struct{}
}

func (c *circler) Complete(ctx context.Context, _ model.Request, _ model.Sink) (model.Turn, error) {
	c.mu.Lock()
	c.asked++
	n := c.asked
	c.mu.Unlock()
	switch {
	case n > 9:
		return model.Turn{Text: "nobody stopped me", Finish: model.FinishStop}, nil
	case n%2 == 0:
		c.waiting <- struct{}{}
		<-ctx.Done()
		return model.Turn{}, context.Cause(ctx)
	}
	id := string(rune('a'+n)) + "-call"
	return model.Turn{Calls: []model.Call{{ID: id, Name: "listDevices", Arguments: `{}`}}, Usage: model.Usage{Prompt: 100, Completion: 5}}, nil
}

// A model that goes in circles does not outlive the guards by restarts of the server, over real stores.
func TestCirclesEndAcrossRestarts(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			testCirclesEndAcrossRestarts(t, engine.URL(t))
		})
	}
}

func testCirclesEndAcrossRestarts(t *testing.T, url string) {
	c, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := tool.NewSet(c)
	if err != nil {
		t.Fatal(err)
	}
	world, circles := agenttest.New(), &circler{waiting: make(chan struct{})}
	s := newShelfAt(t, url, func(ctx context.Context, _ *conversation.Book, task turn.Task) error {
		runner := turn.New(turn.Config{Tools: tools, Commander: world, Querier: world, Random: rand.Reader, Log: slog.New(slog.DiscardHandler)})
		defer runner.Wait()
		return runner.Run(ctx, task)
	})
	s.models = []turn.Choice{{Name: "first", Model: circles}}
	s.restart()
	row, err := s.Create(t.Context(), "w", "circles", nil, "")
	s.check(err)
	s.say(row.ID, "list my devices")
	for range 4 {
		<-circles.waiting
		s.restart()
	}
	events := s.events(row.ID)
	if got := notices(events); len(got) != 1 || got[0] != "repeated_calls" {
		t.Errorf("notices %q", got)
	}
	refused := 0
	for _, e := range events {
		if e.GetToolResult().GetOutcome() == agentv1.Outcome_OUTCOME_FAILED {
			refused++
		}
	}
	if len(world.Queries()) != 2 || refused != 3 {
		t.Errorf("%d queries, %d were refused", len(world.Queries()), refused)
	}
	// The next turn begins with guards of its own.
	circles.mu.Lock()
	circles.asked = 10
	circles.mu.Unlock()
	s.say(row.ID, "go on")
	if events = s.events(row.ID); events[len(events)-1].GetTurnEnded().GetReason() != agentv1.TurnEnd_TURN_END_ANSWERED {
		t.Errorf("the next turn: %v", events[len(events)-1])
	}
}
