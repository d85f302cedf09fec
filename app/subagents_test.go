package app_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// definitions are the agents that can be started in these tests.
func definitions() []*configv1.AgentDefinition {
	return []*configv1.AgentDefinition{
		{Name: "scout", Description: "Looks around.", Prompt: "You are PERSONA-scout", Tools: []string{"read"}},
		{Name: "closer", Description: "Closes tabs.", Prompt: "You are PERSONA-closer", Tools: []string{"listTabs", "closeTabs"}},
		{Name: "boss", Description: "Has others work.", Prompt: "You are PERSONA-boss", Tools: []string{"all", summons, fetches}},
		{Name: "writer", Description: "Writes to others.", Prompt: "You are PERSONA-writer", Tools: []string{"read", sends}},
	}
}

func withAgents(cfg app.Config) app.Config {
	cfg.Definitions = definitions()
	return cfg
}

// summon is a reply that starts an agent.
func summon(agent, task string, more ...func(map[string]any)) modeltest.Reply {
	args := map[string]any{"agent": agent, "task": task}
	for _, m := range more {
		m(args)
	}
	return modeltest.Use(summons, args)
}

func inBackground(args map[string]any) { args["background"] = true }

func onItsOwn(args map[string]any) { args["topLevel"] = true }

// tells says what a tool answered last.
func tells(tool string) play {
	return func(r *modeltest.Received) modeltest.Reply { return modeltest.Text("It said: " + r.Result(tool)) }
}

// then plays one step after the other.
func then(plays ...play) play {
	return func(r *modeltest.Received) modeltest.Reply { return plays[min(r.Round(), len(plays)-1)](r) }
}

func replies(r modeltest.Reply) play { return func(*modeltest.Received) modeltest.Reply { return r } }

// children are the conversations that an agent of another one started, the oldest first.
func (c *crew) children(parent string) []*agentv1.Conversation {
	c.t.Helper()
	var out []*agentv1.Conversation
	for _, conversation := range slices.Backward(c.all()) {
		if conversation.GetParentId() == parent {
			out = append(out, conversation)
		}
	}
	return out
}

// changes is what a conversation was told of the agents that it started.
func (c *crew) changes(id string) []*agentv1.ChildChanged {
	c.t.Helper()
	var out []*agentv1.ChildChanged
	for _, e := range c.eventsOf(id) {
		if ch := e.GetChildChanged(); ch != nil {
			out = append(out, ch)
		}
	}
	return out
}

const (
	isIdle    = agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE
	isRunning = agentv1.ConversationStatus_CONVERSATION_STATUS_RUNNING
	isWaiting = agentv1.ConversationStatus_CONVERSATION_STATUS_WAITING
)

// statuses are those of a list of changes.
func statuses(all []*agentv1.ChildChanged) []agentv1.ConversationStatus {
	var out []agentv1.ConversationStatus
	for _, ch := range all {
		out = append(out, ch.GetStatus())
	}
	return out
}

// An agent has another one work and waits for its answer.
func TestAnAgentHasAnotherOneWork(t *testing.T) {
	t.Parallel()
	onEach(t, testAnAgentHasAnotherOneWork)
}

func testAnAgentHasAnotherOneWork(t *testing.T, cfg app.Config) {
	w := newCrew(t, withAgents(cfg))
	w.plan("scout", answers("there are 42"))
	w.begin("A", then(func(r *modeltest.Received) modeltest.Reply {
		for _, known := range r.Tools {
			if known.Name == summons { // whom it can start is told with the tool
				says(t, known.Description, "Agents: scout: Looks around; closer: Closes tabs; boss: ")
			}
		}
		return summon("scout", "count them")
	}, tells(summons)), summons, fetches)
	w.say("A", "how many are there?")
	w.settled()
	says(t, w.lastResult("A", summons).GetContent(), "there are 42", "idle")
	children := w.children(w.id("A"))
	if len(children) != 1 || children[0].GetAgent() != "scout" || children[0].GetTitle() != "count them" {
		t.Fatalf("children: %v", children)
	}
	changes := w.changes(w.id("A"))
	if got := statuses(changes); !slices.Equal(got, []agentv1.ConversationStatus{isRunning, isIdle}) ||
		changes[0].GetConversationId() != children[0].GetConversationId() || changes[0].GetAgent() != "scout" {
		t.Errorf("A was told %v", changes)
	}
	for _, e := range w.eventsOf(children[0].GetConversationId()) {
		if s := e.GetTurnStarted(); s != nil && (s.GetSender().GetSpeaker() != agentv1.Speaker_SPEAKER_AGENT || s.GetSender().GetConversationId() != w.id("A")) {
			t.Errorf("the child's turn was begun by %v", s.GetSender())
		}
	}
	// An agent that is not defined: the error says which are, and nothing is started.
	w.plan("A", then(replies(summon("spy", "look")), tells(summons)))
	w.say("A", "again")
	w.settled()
	says(t, w.lastResult("A", summons).GetContent(), "scout: Looks around", "closer: Closes tabs")
	if n := len(w.children(w.id("A"))); n != 1 {
		t.Errorf("%d children", n)
	}
}

// A person can begin a conversation as an agent of a definition: it has its tools and its prompt.
func TestAPersonBeginsAsADefinedAgent(t *testing.T) {
	t.Parallel()
	w := newCrew(t, withAgents(app.Config{}))
	var offered sync.Map
	w.plan("boss", func(r *modeltest.Received) modeltest.Reply {
		for _, tool := range r.Tools {
			offered.Store(tool.Name, true)
		}
		return modeltest.Text("ready")
	})
	res, err := w.agents.CreateConversation(t.Context(), &agentv1.CreateConversationRequest{Title: "my boss", Agent: "boss"})
	if err != nil {
		t.Fatal(err)
	}
	id := res.GetConversation().GetConversationId()
	if _, err := w.agents.Send(t.Context(), &agentv1.SendRequest{ConversationId: &id, Message: "are you ready?"}); err != nil {
		t.Fatal(err)
	}
	w.settled()
	for name, want := range map[string]bool{summons: true, fetches: true, sends: false, reads: false} {
		if _, got := offered.Load(name); got != want {
			t.Errorf("%s is offered: %v", name, got)
		}
	}
	if c := w.conversation(id); c.GetAgent() != "boss" || c.GetParentId() != "" {
		t.Errorf("it is %v", c)
	}
}

// A child has what both its definition and its parent have: here its definition names a tool that its parent lacks.
func TestAChildHasNothingThatItsParentLacks(t *testing.T) {
	t.Parallel()
	w := newCrew(t, withAgents(app.Config{}))
	startSim(t, w.Server, "laptop")
	closing := modeltest.Use("closeTabs", `{"tabIds":"{{listTabs.tabId}}"}`)
	closing.Unchecked = true
	var offered atomic.Bool
	w.plan("closer", func(r *modeltest.Received) modeltest.Reply {
		if _, has := r.Tool("closeTabs"); has {
			offered.Store(true)
		}
		return steps(modeltest.Use("listTabs", map[string]any{"pageSize": 2}), closing, modeltest.Text("I could not"))(r)
	})
	w.beginWith("A", then(replies(summon("closer", "close two tabs")), tells(summons)),
		&agentv1.Grants{Only: []string{"listTabs"}, Extra: []string{summons, fetches}})
	w.say("A", "have two tabs closed")
	w.settled()
	says(t, w.lastResult("A", summons).GetContent(), "I could not", "do without closeTabs")
	child := w.children(w.id("A"))[0].GetConversationId()
	denied := false
	for _, e := range w.eventsOf(child) {
		if r := e.GetToolResult(); r.GetName() == "closeTabs" && r != nil {
			denied = r.GetOutcome() == agentv1.Outcome_OUTCOME_DENIED
		}
	}
	if n := openTabs(t, w.Server); !denied || offered.Load() || n != 40 {
		t.Errorf("denied %v, offered %v, %d tabs are left", denied, offered.Load(), n)
	}
}

// What a parent loses while its child works, the child loses at its next step.
func TestAChildLosesWhatItsParentLoses(t *testing.T) {
	t.Parallel()
	w := newCrew(t, withAgents(app.Config{}))
	startSim(t, w.Server, "laptop")
	closing := modeltest.Use("closeTabs", `{"tabIds":"{{listTabs.tabId}}"}`)
	closing.Unchecked = true
	w.begin("A", then(replies(summon("closer", "close two tabs")), tells(summons)), summons, fetches)
	w.plan("closer", func(r *modeltest.Received) modeltest.Reply {
		if r.Round() == 1 {
			if _, err := w.agents.UpdateConversation(t.Context(), &agentv1.UpdateConversationRequest{
				ConversationId: w.id("A"), Grants: &agentv1.Grants{Denied: []string{"closeTabs"}, Extra: []string{summons, fetches}},
			}); err != nil {
				t.Error(err)
			}
			return modeltest.Use("listTabs", map[string]any{"pageSize": 3})
		}
		return steps(modeltest.Use("listTabs", map[string]any{"pageSize": 2}), modeltest.Reply{}, closing, modeltest.Text("I could not"))(r)
	})
	w.say("A", "have two tabs closed")
	w.settled()
	says(t, w.lastResult("A", summons).GetContent(), "I could not")
	if n := openTabs(t, w.Server); n != 40 {
		t.Errorf("%d tabs are left", n)
	}
}

// A person decides at the root what an agent two levels down does, and it goes on.
func TestApprovalsSurfaceAtTheRoot(t *testing.T) {
	t.Parallel()
	onEach(t, testApprovalsSurfaceAtTheRoot)
}

func testApprovalsSurfaceAtTheRoot(t *testing.T, cfg app.Config) {
	w := newCrew(t, withAgents(cfg))
	startSim(t, w.Server, "laptop")
	waits(t, w.Server)
	w.plan("boss", then(replies(summon("closer", "close 30 tabs")), tells(summons)))
	w.plan("closer", closes(30))
	w.begin("A", then(replies(summon("boss", "have 30 tabs closed")), tells(summons)), summons, fetches)
	w.say("A", "close 30 tabs")
	a := waiting(t, w.Server)
	boss := w.children(w.id("A"))[0].GetConversationId()
	closer := w.children(boss)[0].GetConversationId()
	if a.GetConversationId() != w.id("A") || a.GetPrincipal() != closer {
		t.Errorf("the approval is of %s in %s; want %s in %s", a.GetPrincipal(), a.GetConversationId(), closer, w.id("A"))
	}
	for _, id := range []string{w.id("A"), boss} {
		apptest.Eventually(t, "the approval is told", func() bool {
			return slices.ContainsFunc(w.changes(id), func(ch *agentv1.ChildChanged) bool {
				return ch.GetApprovalId() == a.GetApprovalId() && ch.GetConversationId() == closer && ch.GetStatus() == isWaiting
			})
		})
	}
	decide(t, w.Server, a, true)
	w.settled()
	says(t, w.lastResult("A", summons).GetContent(), "Closed 30 tabs")
	if n := openTabs(t, w.Server); n != 10 {
		t.Errorf("%d tabs are left", n)
	}
	var of []*agentv1.ChildChanged
	for _, ch := range w.changes(w.id("A")) {
		if ch.GetConversationId() == closer {
			of = append(of, ch)
		}
	}
	if got := statuses(of); !slices.Equal(got, []agentv1.ConversationStatus{isRunning, isWaiting, isRunning, isIdle}) {
		t.Errorf("the root was told of the closer: %v", got)
	}
}

// Stopping an agent withdraws what those that it started wait for; a rule of the root's conversation holds for them.
func TestTheRootDecidesForAllBelowIt(t *testing.T) {
	t.Parallel()
	w := newCrew(t, withAgents(app.Config{}))
	startSim(t, w.Server, "laptop")
	waits(t, w.Server)
	w.plan("closer", closes(30))
	w.begin("A", then(replies(summon("closer", "close 30 tabs")), tells(summons)), summons, fetches)
	w.say("A", "close 30 tabs")
	waiting(t, w.Server)
	if res, err := w.agents.StopTurn(t.Context(), &agentv1.StopTurnRequest{ConversationId: w.id("A")}); err != nil || !res.GetStopped() {
		t.Fatalf("stop: %v, %v", res, err)
	}
	w.settled()
	pending := true
	apptest.Eventually(t, "no approval is pending", func() bool {
		list, err := approvals(t, w.Server).ListApprovals(t.Context(), &controlv1.ListApprovalsRequest{PendingOnly: &pending})
		return err == nil && len(list.GetApprovals()) == 0
	})
	if n := openTabs(t, w.Server); n != 40 {
		t.Errorf("%d tabs are left", n)
	}
	rule(t, w.Server, &controlv1.PolicyRule{
		Tool: "closeTabs", Verdict: controlv1.Verdict_VERDICT_ALLOW, ConversationId: w.id("A"), MaxTargets: 30,
	})
	w.say("A", "close them after all")
	w.settled()
	says(t, w.lastResult("A", summons).GetContent(), "Closed 30 tabs")
}

// What works in the background is collected later, with waiting where it still works.
func TestAnAgentInTheBackgroundIsCollected(t *testing.T) {
	t.Parallel()
	w := newCrew(t, withAgents(app.Config{}))
	release := make(chan struct{})
	held := modeltest.Text("there are 42")
	held.Hold = release
	w.plan("scout", replies(held))
	collect := func(r *modeltest.Received) modeltest.Reply {
		return modeltest.Use(fetches, map[string]any{"conversationId": modeltest.Collect(r.Result(summons), "handle")[0]})
	}
	w.begin("A", then(replies(summon("scout", "count them", inBackground)), collect, tells(fetches)), summons, fetches)
	w.say("A", "how many are there?")
	apptest.Eventually(t, "the second step runs", func() bool {
		n := 0
		for _, e := range w.events("A") {
			if e.GetToolCall() != nil {
				n++
			}
		}
		return n == 2
	})
	says(t, w.lastResult("A", summons).GetContent(), "running", "background", fetches)
	close(release)
	w.settled()
	says(t, w.lastResult("A", fetches).GetContent(), "there are 42", "idle")

	// Another conversation's child is not its to collect, and neither is one that is on its own while it works.
	child := w.children(w.id("A"))[0].GetConversationId()
	w.begin("B", then(replies(modeltest.Use(fetches, map[string]any{"conversationId": child})), tells(fetches)), summons, fetches)
	w.say("B", "collect it")
	w.settled()
	says(t, w.lastResult("B", fetches).GetContent(), `"ok":false`, "did not start")
}

// An agent on its own outlives whoever started it and is not waited for.
func TestAnAgentOnItsOwn(t *testing.T) {
	t.Parallel()
	w := newCrew(t, withAgents(app.Config{}))
	release := make(chan struct{})
	held := modeltest.Text("there are 42")
	held.Hold = release
	w.plan("scout", replies(held))
	collect := func(r *modeltest.Received) modeltest.Reply {
		return modeltest.Use(fetches, map[string]any{"conversationId": modeltest.Collect(r.Result(summons), "handle")[0]})
	}
	w.begin("A", then(replies(summon("scout", "count them", onItsOwn)), collect, tells(fetches)), summons, fetches)
	w.say("A", "how many are there?")
	apptest.Eventually(t, "A is done", func() bool { return w.get("A").GetStatus() == isIdle })
	says(t, w.lastResult("A", summons).GetContent(), "running", "cannot be waited for")
	says(t, w.lastResult("A", fetches).GetContent(), `"ok":false`, "works on its own", "while it runs")
	if n := len(w.children(w.id("A"))); n != 0 {
		t.Errorf("%d children", n)
	}
	_, err := w.agents.StopTurn(t.Context(), &agentv1.StopTurnRequest{ConversationId: w.id("A")})
	if err != nil {
		t.Fatal(err)
	}
	close(release)
	w.settled()
	w.plan("A", then(func(*modeltest.Received) modeltest.Reply {
		for _, conversation := range w.all() {
			if conversation.GetAgent() == "scout" {
				return modeltest.Use(fetches, map[string]any{"conversationId": conversation.GetConversationId()})
			}
		}
		return modeltest.Text("there is none")
	}, tells(fetches)))
	w.say("A", "and now?")
	w.settled()
	says(t, w.lastResult("A", fetches).GetContent(), "there are 42")
}

// A stop of an agent stops those that it started, and theirs.
func TestAStopCascades(t *testing.T) {
	t.Parallel()
	w := newCrew(t, withAgents(app.Config{}))
	never := make(chan struct{})
	held := modeltest.Text("never said")
	held.Hold = never
	w.plan("boss", then(replies(summon("scout", "count them")), tells(summons)))
	w.plan("scout", replies(held))
	w.begin("A", then(replies(summon("boss", "have them counted")), tells(summons)), summons, fetches)
	w.say("A", "how many are there?")
	apptest.Eventually(t, "all three work", func() bool {
		n := 0
		for _, conversation := range w.all() {
			if conversation.GetRunning() {
				n++
			}
		}
		return n == 3
	})
	if res, err := w.agents.StopTurn(t.Context(), &agentv1.StopTurnRequest{ConversationId: w.id("A")}); err != nil || !res.GetStopped() {
		t.Fatalf("stop: %v, %v", res, err)
	}
	w.settled()
	for _, conversation := range w.all() {
		events := w.eventsOf(conversation.GetConversationId())
		i := slices.IndexFunc(events, func(e *agentv1.Event) bool { return e.GetTurnEnded() != nil })
		if i < 0 || events[i].GetTurnEnded().GetReason() != agentv1.TurnEnd_TURN_END_STOPPED {
			t.Errorf("%s ended otherwise: %v", conversation.GetAgent(), events)
		}
	}
	if _, err := w.agents.ArchiveConversation(t.Context(), &agentv1.ArchiveConversationRequest{ConversationId: w.id("A")}); err != nil {
		t.Fatal(err)
	}
	for _, conversation := range w.all() { // an archived agent's children are archived with it
		if !conversation.GetArchived() {
			t.Errorf("%s is open", conversation.GetAgent())
		}
	}
}

// Agents start agents only so deep, and only as often as the chain of the person's message allows.
func TestAgentsStartAgentsOnlySoDeep(t *testing.T) {
	t.Parallel()
	w := newCrew(t, withAgents(app.Config{}))
	w.plan("boss", then(replies(summon("boss", "have it done")), tells(summons)))
	w.begin("A", then(replies(summon("boss", "have it done")), tells(summons)), summons, fetches)
	w.say("A", "do it")
	w.settled()
	if n := len(w.all()); n != 1+3 {
		t.Errorf("%d conversations", n)
	}
	says(t, w.lastResult("A", summons).GetContent(), "3 deep")
}

// The first turn of an agent that is started is a wake of the chain like any other.
func TestStartingAgentsCostsTheChain(t *testing.T) {
	t.Parallel()
	w := newCrew(t, limited(withAgents(app.Config{}), &configv1.AgentLimits{ChainWakes: 2}))
	w.plan("scout", answers("there are 42"))
	w.begin("A", then(replies(summon("scout", "one")), replies(summon("scout", "two")), replies(summon("scout", "three")), tells(summons)), summons, fetches)
	w.say("A", "count thrice")
	w.settled()
	if n := len(w.children(w.id("A"))); n != 2 {
		t.Errorf("%d children", n)
	}
	says(t, w.lastResult("A", summons).GetContent(), `"ok":false`, "2")
}
