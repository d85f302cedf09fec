package turn_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// A stop in the middle of two calls, one of which is done and one of which does not come back: the stop does not wait
// for it, its late answer goes nowhere, and the conversation goes on.
func TestAStopInTheMiddleOfATool(t *testing.T) {
	t.Parallel()
	open := func(url string) modeltest.Call {
		return modeltest.NewCall("openTab", map[string]any{"deviceId": "lap", "url": url})
	}
	calls := modeltest.Reply{Calls: []modeltest.Call{open("https://a.example"), open("https://stuck.example"), open("https://c.example")}}
	b := newBench(t, calls, modeltest.Text("fine"))
	stuck, release := make(chan struct{}), make(chan struct{})
	b.world.BeforeCommand = func(_ context.Context, c turn.Call) error {
		if strings.Contains(c.Action.GetOpenTab().GetUrl(), "stuck") {
			close(stuck)
			<-release // deaf to the context
		}
		return nil
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-stuck
		cancel(errors.New("stopped by the user"))
	}()
	j := &journal{}
	b.say(ctx, j, "open three")
	j.expect(t, agentv1.TurnEnd_TURN_END_STOPPED, "stopped")
	if got := j.content(t, 0); !got.OK {
		t.Errorf("the first call: %+v", got)
	}
	if got := j.content(t, 1).Error; got.Code != "interrupted" || !strings.Contains(got.Message, "may have taken effect") {
		t.Errorf("the second call: %+v", got)
	}
	if got := j.content(t, 2).Error; got.Code != "interrupted" || strings.Contains(got.Message, "may have taken effect") {
		t.Errorf("the third call: %+v", got)
	}
	close(release)
	b.runner.Wait()
	b.say(t.Context(), j, "go on")
	if len(j.results()) != 3 || j.end() != agentv1.TurnEnd_TURN_END_ANSWERED {
		t.Errorf("after it: %v", j.events)
	}
}

func TestAStopWhileTheModelSpeaksKeepsWhatItSaid(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	b := newBench(t, modeltest.Reply{Text: "one two three four", Piece: 4, Hold: hold, HoldAfter: 3}, modeltest.Text("fine"))
	ctx, cancel := context.WithCancelCause(t.Context())
	j := &journal{onDelta: func() { cancel(errors.New("stopped because the caller went away")) }}
	b.say(ctx, j, "count")
	close(hold)
	j.expect(t, agentv1.TurnEnd_TURN_END_STOPPED, "stopped")
	if text := j.messages[len(j.messages)-1].Text; text == "" || text != j.deltas || !strings.HasPrefix("one two three four", text) {
		t.Errorf("kept %q of %q", text, j.deltas)
	}
	j.onDelta = nil
	b.say(t.Context(), j, "go on")
}

// A tool that is told to stop and says so leaves the same result.
func TestAToolThatHearsTheStop(t *testing.T) {
	t.Parallel()
	b := newBench(t, modeltest.Use("openTab", map[string]any{"deviceId": "lap", "url": "https://a.example"}))
	ctx, cancel := context.WithCancel(t.Context())
	b.world.BeforeCommand = func(ctx context.Context, _ turn.Call) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	j := &journal{}
	b.say(ctx, j, "open")
	j.expect(t, agentv1.TurnEnd_TURN_END_STOPPED)
	if got := j.content(t, 0).Error.Code; got != "interrupted" {
		t.Errorf("result: %q", got)
	}
}
