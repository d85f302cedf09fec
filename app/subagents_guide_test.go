package app_test

import (
	"strings"
	"sync"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
)

// A model that may start agents is told which ones there are and what each is for, before it calls anything. One that may
// not is told nothing of them.
func TestAModelIsToldWhichAgentsThereAre(t *testing.T) {
	t.Parallel()
	w := newCrew(t, withAgents(app.Config{}))
	var told sync.Map
	hears := func(name string) play {
		return func(r *modeltest.Received) modeltest.Reply {
			told.Store(name, r.System())
			return modeltest.Text("yes")
		}
	}
	w.begin("A", hears("A"), summons, fetches)
	w.begin("B", hears("B"))
	w.say("A", "whom can you ask?")
	w.say("B", "whom can you ask?")
	w.settled()
	for name, want := range map[string]bool{"A": true, "B": false} {
		prompt, _ := told.Load(name)
		text, _ := prompt.(string)
		at := strings.Index(text, "\n- scout: Looks around.\n- closer: Closes tabs.\n")
		if text == "" || at >= 0 != want || at > strings.LastIndex(text, "\nSafety:\n") || !want && strings.Contains(text, "scout") {
			t.Errorf("%s is told %q", name, text)
		}
	}
}
