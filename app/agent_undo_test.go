package app_test

import (
	"slices"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// An agent brings back what it has closed, by the road of every other command: policy may have a person asked, who decides
// in the agent's conversation, and nothing is undone twice.
func TestAnAgentUndoes(t *testing.T) {
	t.Parallel()
	onEach(t, testAnAgentUndoes)
}

func testAnAgentUndoes(t *testing.T, cfg app.Config) {
	w := newCrew(t, cfg)
	startSim(t, w.Server, "laptop")
	waits(t, w.Server)
	w.begin("A", steps(modeltest.Use("listTabs", map[string]any{"pageSize": 3}),
		modeltest.Use("closeTabs", `{"tabIds":"{{listTabs.tabId}}"}`), modeltest.Text("closed")))
	w.say("A", "close three")
	w.settled()
	if n := openTabs(t, w.Server); n != 37 {
		t.Fatalf("%d tabs are open", n)
	}
	undoing := steps(modeltest.Use("undo", map[string]any{}), modeltest.Text("it is back"))
	w.plan("A", undoing)

	remove := rule(t, w.Server, &controlv1.PolicyRule{Tool: "restoreTabs", Verdict: controlv1.Verdict_VERDICT_ASK})
	w.say("A", "bring them back")
	a := waiting(t, w.Server)
	if a.GetConversationId() != w.id("A") || a.GetPrincipal() != w.id("A") {
		t.Errorf("asked for %s in %s", a.GetPrincipal(), a.GetConversationId())
	}
	apptest.Eventually(t, "the conversation says that it waits", func() bool { return w.get("A").GetStatus() == isWaiting })
	decide(t, w.Server, a, false)
	w.settled()
	if r := w.lastResult("A", "undo"); r.GetOutcome() != agentv1.Outcome_OUTCOME_DENIED {
		t.Errorf("denied: %v", r)
	}
	says(t, w.lastResult("A", "undo").GetContent(), "not now")
	if n := openTabs(t, w.Server); n != 37 {
		t.Errorf("%d tabs are open", n)
	}
	if !slices.ContainsFunc(w.events("A"), func(e *agentv1.Event) bool { return e.GetApprovalResolved().GetState() == "denied" }) {
		t.Error("the conversation does not say how it was decided")
	}
	remove()

	w.say("A", "now you may")
	w.settled()
	says(t, w.lastResult("A", "undo").GetContent(), `"restored":3`, "laptop")
	if n := openTabs(t, w.Server); n != 40 {
		t.Errorf("%d tabs are open", n)
	}
	w.say("A", "again")
	w.settled()
	says(t, w.lastResult("A", "undo").GetContent(), `"ok":false`, "nothing to undo")
}

// An undo that waits for a person when the server is killed goes on, and undoes what it was about: not what is the newest
// after that.
func TestAKilledServerUndoesNothingTwice(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			testAKilledServerUndoesNothingTwice(t, engine.URL(t))
		})
	}
}

func testAKilledServerUndoesNothingTwice(t *testing.T, url string) {
	m := newMortals(t, url)
	startSim(t, m.Server, "laptop")
	waits(t, m.Server)
	m.begin("A", nil)
	for _, n := range []int{3, 2} {
		m.plan("A", steps(modeltest.Use("listTabs", map[string]any{"pageSize": n}),
			modeltest.Use("closeTabs", `{"tabIds":"{{listTabs.tabId}}"}`), modeltest.Text("closed")))
		m.say("A", "close some")
		m.settled()
	}
	rule(t, m.Server, &controlv1.PolicyRule{Tool: "restoreTabs", Verdict: controlv1.Verdict_VERDICT_ASK})
	m.plan("A", steps(modeltest.Use("undo", map[string]any{}), modeltest.Text("it is back")))
	m.say("A", "undo that")
	before := waiting(t, m.Server)
	m.kill()
	m.begins()
	a := waiting(t, m.Server)
	if a.GetApprovalId() != before.GetApprovalId() {
		t.Errorf("it was asked again: %v", a)
	}
	apptest.Eventually(t, "the browser is back", func() bool {
		res, err := m.Devices(t).ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
		return err == nil && len(res.GetDevices()) == 1 && res.GetDevices()[0].GetFreshness().GetLive()
	})
	decide(t, m.Server, a, true)
	m.settled()
	says(t, m.lastResult("A", "undo").GetContent(), `"restored":2`, "laptop", `"undoneCommandIds":["`)
	if n := openTabs(t, m.Server); n != 37 {
		t.Errorf("%d tabs are open", n)
	}
}

// Whoever asks and goes away takes the agents along that were started for it.
func TestACallerThatGoesAwayTakesItsAgentsAlong(t *testing.T) {
	t.Parallel()
	w := newCrew(t, withAgents(app.Config{}))
	held := modeltest.Text("never said")
	held.Hold = make(chan struct{})
	w.plan("scout", replies(held))
	w.begin("A", then(replies(summon("scout", "count them")), tells(summons)), summons, fetches)
	id := w.id("A")
	stream, err := w.agents.Chat(t.Context(), &agentv1.ChatRequest{ConversationId: &id, Message: "how many are there?"})
	if err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the scout works", func() bool {
		children := w.children(id)
		return len(children) == 1 && children[0].GetRunning()
	})
	_ = stream.Close()
	w.settled()
	for _, name := range []string{id, w.children(id)[0].GetConversationId()} {
		if !slices.ContainsFunc(w.eventsOf(name), func(e *agentv1.Event) bool {
			return e.GetTurnEnded().GetReason() == agentv1.TurnEnd_TURN_END_STOPPED
		}) {
			t.Errorf("%s was not stopped", name)
		}
	}
}
