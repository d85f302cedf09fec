package app_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app/apptest"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// mortals are a crew whose server is a process that can be killed.
type mortals struct {
	*crew

	server *victim
}

func newMortals(t *testing.T, url string) *mortals {
	t.Helper()
	m := &mortals{crew: &crew{t: t, ids: map[string]string{}, plays: map[string]play{}}}
	m.model = modeltest.NewServer(t)
	m.model.SetRule(modeltest.Func(m.answer))
	address := apptest.FreeAddress(t)
	m.server = &victim{t: t, dir: t.TempDir(), url: url, address: address, model: m.model.URL}
	m.begins()
	t.Cleanup(m.kill)
	return m
}

// begins starts the server, or starts it again.
func (m *mortals) begins() {
	m.t.Helper()
	m.server.start(haltNever)
	m.Server = m.server.server()
	m.agents = agentv1connect.NewAgentServiceClient(m.server.caller())
}

func (m *mortals) kill() { m.server.kill() }

// A server that is killed in the middle of a cycle goes on with it when it is started again, and counts on from where it
// was.
func TestAKilledServerCountsOn(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			testAKilledServerCountsOn(t, engine.URL(t))
		})
	}
}

func testAKilledServerCountsOn(t *testing.T, url string) {
	m := newMortals(t, url)
	m.begin("A", nil, sends)
	m.begin("C", m.forwards("A"), sends)
	m.begin("B", nil, sends)
	reached, release := make(chan struct{}, 16), make(chan struct{})
	var asked atomic.Int32
	m.plan("B", func(r *modeltest.Received) modeltest.Reply {
		reply := m.forwards("C")(r)
		// Its second turn is killed before it writes, and, when that was asked again, after its message has gone out.
		if n := asked.Add(1); n == 3 || n == 5 {
			reached <- struct{}{}
			reply.Hold = release
		}
		return reply
	})
	m.plan("A", m.forwards("B"))
	m.say("A", "pass it on")
	for range 2 {
		<-reached
		m.kill()
		m.begins()
	}
	close(release)
	m.settled()
	m.expect("A", 1+4, 4)
	m.expect("B", 4, 4)
	m.expect("C", 4, 4)
	if codes := m.notices("B"); !slices.Equal(codes, []string{"chain_exhausted"}) {
		t.Errorf("notices of B: %q", codes)
	}
}

// A server that is killed while an agent waits for one that it has started goes on with both: there is one child, and one
// answer.
func TestAKilledServerStartsNoSecondChild(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			testAKilledServerStartsNoSecondChild(t, engine.URL(t))
		})
	}
}

func testAKilledServerStartsNoSecondChild(t *testing.T, url string) {
	m := newMortals(t, url)
	reached, release := make(chan struct{}, 16), make(chan struct{})
	m.plan("scout", func(*modeltest.Received) modeltest.Reply {
		reached <- struct{}{}
		reply := modeltest.Text("there are 42")
		reply.Hold = release
		return reply
	})
	m.begin("A", then(replies(summon("scout", "count them")), tells(summons)), summons, fetches)
	m.say("A", "how many are there?")
	for range 2 {
		<-reached
		m.kill()
		m.begins()
	}
	close(release)
	m.settled()
	says(t, m.lastResult("A", summons).GetContent(), "there are 42", "idle")
	if n := len(m.all()); n != 2 {
		t.Errorf("%d conversations", n)
	}
	child := m.children(m.id("A"))[0].GetConversationId()
	answers := 0
	for _, e := range m.eventsOf(child) {
		if e.GetMessage().GetRole() == agentv1.Role_ROLE_ASSISTANT {
			answers++
		}
	}
	if got := statuses(m.changes(m.id("A"))); answers != 1 || !slices.Equal(got, []agentv1.ConversationStatus{isRunning, isIdle}) {
		t.Errorf("%d answers, and A was told %v", answers, got)
	}
}

// An approval that an agent two levels down waits for can be decided after a restart: it goes on, and those above it get
// its answer.
func TestAKilledServerKeepsTheApprovalOfAChild(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			testAKilledServerKeepsTheApprovalOfAChild(t, engine.URL(t))
		})
	}
}

func testAKilledServerKeepsTheApprovalOfAChild(t *testing.T, url string) {
	m := newMortals(t, url)
	startSim(t, m.Server, "laptop")
	waits(t, m.Server)
	m.plan("boss", then(replies(summon("closer", "close 30 tabs")), tells(summons)))
	m.plan("closer", closes(30))
	m.begin("A", then(replies(summon("boss", "have 30 tabs closed")), tells(summons)), summons, fetches)
	m.say("A", "close 30 tabs")
	before := waiting(t, m.Server)
	boss := m.children(m.id("A"))[0].GetConversationId()
	closer := m.children(boss)[0].GetConversationId()
	apptest.Eventually(t, "the closer waits", func() bool { return m.conversation(closer).GetStatus() == isWaiting })
	m.kill()
	m.begins()
	a := waiting(t, m.Server)
	if a.GetApprovalId() != before.GetApprovalId() || a.GetConversationId() != m.id("A") || a.GetPrincipal() != closer {
		t.Errorf("after the restart %v", a)
	}
	apptest.Eventually(t, "the browser is back", func() bool {
		res, err := m.Devices(t).ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
		return err == nil && len(res.GetDevices()) == 1 && res.GetDevices()[0].GetFreshness().GetLive()
	})
	decide(t, m.Server, a, true)
	m.settled()
	says(t, m.lastResult("A", summons).GetContent(), "Closed 30 tabs")
	if n := openTabs(t, m.Server); n != 10 {
		t.Errorf("%d tabs are left", n)
	}
	var of []*agentv1.ChildChanged
	for _, ch := range m.changes(m.id("A")) {
		if ch.GetConversationId() == closer {
			of = append(of, ch)
		}
	}
	if got := statuses(of); !slices.Equal(got, []agentv1.ConversationStatus{isRunning, isWaiting, isRunning, isIdle}) || len(m.all()) != 3 {
		t.Errorf("the root was told of the closer: %v; there are %d conversations", got, len(m.all()))
	}
}

// A caller who waited for a turn is gone when the server is killed: what that turn has started in the background ends too,
// for nobody would collect it.
func TestAKilledServerLeavesNoChildOfACallerWhoIsGone(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			testAKilledServerLeavesNoChild(t, engine.URL(t))
		})
	}
}

func testAKilledServerLeavesNoChild(t *testing.T, url string) {
	m := newMortals(t, url)
	reached := make(chan struct{}, 16)
	held := func(*modeltest.Received) modeltest.Reply {
		reached <- struct{}{}
		reply := modeltest.Text("late")
		reply.Hold = t.Context().Done()
		return reply
	}
	m.plan("scout", held)
	m.begin("A", then(replies(summon("scout", "count them", inBackground)), held), summons, fetches)
	id := m.id("A")
	stream, err := m.agents.Chat(t.Context(), &agentv1.ChatRequest{ConversationId: &id, Message: "have them counted"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	for range 2 { // both are asked
		<-reached
	}
	m.kill()
	m.begins()
	m.settled()
	child := m.children(id)[0].GetConversationId()
	events := m.eventsOf(child)
	if got := ended(events); got != agentv1.TurnEnd_TURN_END_STOPPED {
		t.Errorf("the child ended %v", got)
	}
	var ends []agentv1.TurnEnd
	for _, e := range m.eventsOf(id) { // that the child has stopped is told after it
		if end := e.GetTurnEnded(); end != nil {
			ends = append(ends, end.GetReason())
		}
	}
	if !slices.Equal(ends, []agentv1.TurnEnd{agentv1.TurnEnd_TURN_END_FAILED}) {
		t.Errorf("the parent ended %v", ends)
	}
}
