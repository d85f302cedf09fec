package app_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
	"throwbar.dev/throwbar/store"
)

// Two agents that thank each other for ever stop. Which bound stops them first depends on their sizes; the person's own
// turn costs nothing.
func TestTwoAgentsThatWriteToEachOtherStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits *configv1.AgentLimits
		wakes  int
		code   string // empty where both bounds are reached at once
	}{
		"both at twelve": {nil, 12, ""},
		"six of each":    {&configv1.AgentLimits{ChainWakes: 100}, 12, "wakes_exhausted"},
		"the chain":      {&configv1.AgentLimits{Wakes: 100}, 12, "chain_exhausted"},
		"two of each":    {&configv1.AgentLimits{Wakes: 2}, 4, "wakes_exhausted"},
		"a short chain":  {&configv1.AgentLimits{ChainWakes: 5}, 5, "chain_exhausted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCrew(t, limited(app.Config{}, c.limits))
			w.begin("A", nil, sends)
			w.begin("B", w.forwards("A"), sends)
			w.plan("A", w.forwards("B"))
			w.say("A", "say hello to B")
			w.settled()
			w.expect("A", 1+c.wakes/2, c.wakes/2)
			w.expect("B", (c.wakes+1)/2, (c.wakes+1)/2)
			last := "B" // for whom the message is that was held
			if c.wakes%2 == 1 {
				last = "A"
			}
			codes := w.notices(last)
			if len(codes) != 1 || c.code != "" && codes[0] != c.code {
				t.Errorf("notices of %s: %q, want %q", last, codes, c.code)
			}
			if n := len(w.queue(last)); n != 1 {
				t.Errorf("%d messages wait for %s", n, last)
			}
		})
	}
}

// A cycle of any length stops at the same number, on both stores, and also where the server is stopped in the middle.
func TestACycleStopsAtTheSameNumber(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		for _, c := range []struct {
			names   string
			restart bool
		}{{"ABC", false}, {"ABC", true}, {"AB", true}, {"ABCDEF", true}} {
			t.Run(fmt.Sprintf("%s %s restart %v", engine.Name, c.names, c.restart), func(t *testing.T) {
				t.Parallel()
				testACycle(t, app.Config{Store: store.Config{URL: engine.URL(t)}}, strings.Split(c.names, ""), c.restart)
			})
		}
	}
}

func testACycle(t *testing.T, cfg app.Config, names []string, restart bool) {
	w := newCrew(t, cfg)
	for i, name := range names {
		next := names[(i+1)%len(names)]
		w.begin(name, func(r *modeltest.Received) modeltest.Reply { return w.forwards(next)(r) }, sends)
	}
	reached, release := make(chan struct{}), make(chan struct{})
	var asked atomic.Int32
	second := w.forwards(names[2%len(names)])
	w.plan("B", func(r *modeltest.Received) modeltest.Reply {
		reply := second(r)
		if asked.Add(1) == 3 && restart { // its second turn, before it writes to anybody
			close(reached)
			reply.Hold = release
		}
		return reply
	})
	w.say("A", "pass it on")
	if restart {
		<-reached
		w.Stop()
		close(release)
		w.start()
	}
	w.settled()
	each := 12 / len(names)
	w.expect("A", 1+each, each)
	for _, name := range names[1:] {
		w.expect(name, each, each)
	}
	if codes := w.notices("B"); len(codes) != 1 || len(names) > 2 && codes[0] != "chain_exhausted" {
		t.Errorf("notices of B: %q", codes)
	}
	if n := len(w.queue("B")); n != 1 || int(w.get("B").GetWakesLeft()) != 6-each {
		t.Errorf("%d messages wait for B, which has %d wakes left", n, w.get("B").GetWakesLeft())
	}
	// Held at once, or queued and held later: B may still be at the end of the turn that led here.
	told := w.lastResult("A", sends).GetContent()
	says(t, told, "Do not send it again", "not lost", "when a person goes on")
	if !strings.Contains(told, `"suppressed"`) && !strings.Contains(told, `"queued"`) {
		t.Errorf("delivered: %s", told)
	}
}

// The seventh wake in a row is held: exactly six turns, one message that waits, a budget of nothing. A person who writes
// has it read, and fills the budget.
func TestTheSeventhWakeIsHeld(t *testing.T) {
	t.Parallel()
	onEach(t, testTheSeventhWakeIsHeld)
}

func testTheSeventhWakeIsHeld(t *testing.T, cfg app.Config) {
	w := newCrew(t, cfg)
	w.begin("B", answers("noted"))
	w.begin("A", w.forwards("B"), sends)
	for i := range 7 {
		w.say("A", fmt.Sprint("tell B, for the time ", i)) // each a chain of its own, which has plenty left
		w.settled()
	}
	w.expect("B", 6, 6)
	b := w.get("B")
	if n := len(w.queue("B")); n != 1 || b.GetQueued() != 1 || b.GetWakesLeft() != 0 {
		t.Errorf("%d messages wait, %d wakes are left", n, b.GetWakesLeft())
	}
	w.say("A", "and once more")
	w.settled()
	w.expect("B", 6, 6)
	if codes := w.notices("B"); !slices.Equal(codes, []string{"wakes_exhausted"}) {
		t.Errorf("notices: %q", codes)
	}
	for _, e := range w.events("B") {
		if n := e.GetNotice(); n != nil && (!strings.Contains(n.GetText(), "6") || !n.GetCanContinue()) {
			t.Errorf("notice: %v", n)
		}
	}
	for range 8 { // a person is never throttled
		w.say("B", "what is new?")
		w.settled()
	}
	w.expect("B", 6+8, 6)
	heard := w.heard("B")
	if want := []string{"A: Thank you! Over to you.", "A: Thank you! Over to you.", "person: what is new?"}; !slices.Equal(heard[6:9], want) {
		t.Errorf("the first turn of the person heard %q", heard[6:9])
	}
	if b := w.get("B"); b.GetQueued() != 0 || b.GetWakesLeft() != 6 {
		t.Errorf("%d messages wait, %d wakes are left", b.GetQueued(), b.GetWakesLeft())
	}
}

// One message to eight agents costs eight of the twelve: of the eight that each of them would wake, four are held.
func TestAFanOutCountsEachOne(t *testing.T) {
	t.Parallel()
	onEach(t, testAFanOutCountsEachOne)
}

func testAFanOutCountsEachOne(t *testing.T, cfg app.Config) {
	w := newCrew(t, cfg)
	var calls []modeltest.Call
	told := make(chan struct{})
	for i := range 8 {
		w.begin(fmt.Sprint("Y", i), answers("noted"))
		pass := w.forwards(fmt.Sprint("Y", i))
		w.begin(fmt.Sprint("X", i), func(r *modeltest.Received) modeltest.Reply {
			reply := pass(r)
			reply.Hold = told
			return reply
		}, sends)
		calls = append(calls, w.to(fmt.Sprint("X", i), "pass it on"))
	}
	w.begin("A", steps(modeltest.Reply{Calls: calls}, modeltest.Text("all told")), sends)
	w.say("A", "tell all eight")
	apptest.Eventually(t, "all eight are told", func() bool { return !w.get("A").GetRunning() })
	close(told)
	w.settled()
	w.expect("A", 1, 0)
	for _, x := range numbered("X", 8) {
		w.expect(x, 1, 1)
	}
	turns, held := 0, 0
	for _, y := range numbered("Y", 8) {
		n, _ := w.turns(y)
		turns += n
		held += len(w.queue(y))
	}
	if turns != 4 || held != 4 {
		t.Errorf("of the second eight, %d were woken and %d are held", turns, held)
	}
}

// A person's message begins a chain of its own and fills nobody else's.
func TestAPersonRefillsOnlyTheirOwnChain(t *testing.T) {
	t.Parallel()
	w := newCrew(t, limited(app.Config{}, &configv1.AgentLimits{Wakes: 100}))
	for _, pair := range [][2]string{{"A", "B"}, {"C", "D"}} {
		w.begin(pair[0], nil, sends)
		w.begin(pair[1], w.forwards(pair[0]), sends)
		w.plan(pair[0], w.forwards(pair[1]))
		w.say(pair[0], "go")
	}
	w.settled()
	for _, name := range []string{"B", "D"} {
		w.expect(name, 6, 6)
	}
	w.say("B", "and now?") // what is held for B is read with it
	w.settled()
	w.expect("A", 1+6+6, 12)
	w.expect("B", 6+1+6, 12)
	w.expect("C", 1+6, 6)
	w.expect("D", 6, 6)
	if n := len(w.queue("D")); n != 1 {
		t.Errorf("%d messages wait for D", n)
	}
}

// Of two that write to an agent at rest in the same moment one wakes it; nothing is lost and nothing is read twice.
func TestTwoSendersAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, testTwoSendersAtOnce)
}

func testTwoSendersAtOnce(t *testing.T, cfg app.Config) {
	w := newCrew(t, cfg)
	release := make(chan struct{})
	w.begin("C", func(r *modeltest.Received) modeltest.Reply {
		reply := modeltest.Text("noted")
		reply.Hold = release
		return reply
	})
	for _, name := range []string{"A", "B"} {
		w.begin(name, steps(modeltest.Reply{Calls: []modeltest.Call{w.to("C", "from "+name)}}, modeltest.Text("sent")), sends)
	}
	w.say("A", "tell C")
	w.say("B", "tell C")
	apptest.Eventually(t, "both have written", func() bool { return !w.get("A").GetRunning() && !w.get("B").GetRunning() })
	w.expect("C", 1, 1)
	if n := len(w.queue("C")); n != 1 {
		t.Errorf("%d messages wait", n)
	}
	close(release)
	w.settled()
	w.expect("C", 2, 2)
	heard := w.heard("C")
	slices.Sort(heard)
	if !slices.Equal(heard, []string{"A: from A", "B: from B"}) || w.get("C").GetWakesLeft() != 4 {
		t.Errorf("heard %q, %d wakes are left", heard, w.get("C").GetWakesLeft())
	}
}

// Stopping an agent stops what would follow from its message, and not those that work already.
func TestAStopEndsTheChainAndNotThePeers(t *testing.T) {
	t.Parallel()
	w := newCrew(t, app.Config{})
	release := make(chan struct{})
	hold := func(r modeltest.Reply) modeltest.Reply {
		r.Hold = release
		return r
	}
	w.begin("C", answers("noted"))
	w.begin("B", steps(hold(modeltest.Reply{Calls: []modeltest.Call{w.to("C", "your turn")}}), modeltest.Text("done")), sends)
	w.begin("A", steps(modeltest.Reply{Calls: []modeltest.Call{w.to("B", "your turn")}}, hold(modeltest.Text("sent"))), sends)
	w.say("A", "go")
	apptest.Eventually(t, "A has written to B", func() bool { n, _ := w.turns("B"); return n == 1 })
	if res, err := w.agents.StopTurn(t.Context(), &agentv1.StopTurnRequest{ConversationId: w.id("A")}); err != nil || !res.GetStopped() {
		t.Fatalf("stop: %v, %v", res, err)
	}
	if !w.get("B").GetRunning() {
		t.Error("B was stopped too")
	}
	close(release)
	w.settled()
	w.expect("B", 1, 1)
	w.expect("C", 0, 0)
	if n := len(w.queue("C")); n != 1 || !slices.Equal(w.notices("C"), []string{"chain_exhausted"}) {
		t.Errorf("%d messages wait for C, which has the notices %q", n, w.notices("C"))
	}
	w.say("C", "go on")
	w.settled()
	if heard := w.heard("C"); !slices.Equal(heard, []string{"B: your turn", "person: go on"}) {
		t.Errorf("heard %q", heard)
	}
}
