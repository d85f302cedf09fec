package turn_test

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

var (
	errStopped = errors.New("stopped by the user")
	errDead    = errors.New("the process is gone")
)

// abortion is one scripted turn that is stopped, paused or killed at one point, or at several.
type abortion struct {
	t       *testing.T
	rnd     *rand.Rand // of the script and the world; guarded by mu
	world   *deeds
	durable bool

	mu      sync.Mutex
	stored  journal // what survives
	spent   turn.Spent
	steered int
	calls   int
	at      int // ticks until the next abort
	act     func(before bool)
	dead    bool
	asked   map[string]bool
}

func (a *abortion) roll(n int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rnd.IntN(n)
}

// tick counts down to the abort.
func (a *abortion) tick() {
	a.mu.Lock()
	a.at--
	act := a.act
	if a.at != 0 {
		act = nil
	}
	a.mu.Unlock()
	if act != nil {
		act(true)
	}
}

func (a *abortion) isDead() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dead
}

// mortal is the journal of one process.
type mortal struct {
	*abortion
	choices []turn.Choice
}

func (m mortal) Next(context.Context) (turn.Step, error) {
	m.tick()
	if m.isDead() {
		return turn.Step{}, errDead
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	step := turn.Step{Choices: m.choices}
	if m.rnd.IntN(6) == 0 && m.steered < 2 { // somebody says something meanwhile
		m.steered++
		step.Messages = []model.Message{{Role: model.RoleUser, Text: fmt.Sprint("and also ", m.steered)}}
		m.stored.messages = append(m.stored.messages, step.Messages...)
	}
	return step, nil
}

func (m mortal) Record(_ context.Context, entry turn.Entry) error {
	after := m.roll(2) == 0
	if !after {
		m.tick()
	}
	m.mu.Lock()
	if m.dead {
		m.mu.Unlock()
		return errDead
	}
	m.stored.messages = append(m.stored.messages, entry.Messages...)
	m.stored.events = append(m.stored.events, entry.Events...)
	m.spent = entry.Spent
	m.mu.Unlock()
	if after {
		m.tick()
	}
	return nil
}

func (m mortal) Delta(*agentv1.Event) { m.tick() }

// script is what the model does: anything, and in the end an answer.
func (a *abortion) script(r *modeltest.Received) modeltest.Reply {
	a.mu.Lock()
	defer a.mu.Unlock()
	if strings.Contains(r.LastUser(), "go on") || a.rnd.IntN(6) == 0 {
		return modeltest.Reply{Text: "This is all there is.", Piece: 6}
	}
	reply := modeltest.Reply{Unchecked: true, Piece: 6}
	if a.rnd.IntN(3) == 0 {
		reply.Text = "Now this."
	}
	for range 1 + a.rnd.IntN(4) {
		a.calls++
		reply.Calls = append(reply.Calls, a.aCall())
	}
	if a.rnd.IntN(12) == 0 {
		reply.CutAfter = 2 + a.rnd.IntN(4)
	}
	return reply
}

// aCall is any call. The caller holds mu.
func (a *abortion) aCall() modeltest.Call {
	kinds := []string{"plain", "slow", "ask", "ask", "refuse", "panic"}
	open := func() modeltest.Call {
		return modeltest.NewCall("openTab", map[string]any{"deviceId": "lap", "url": fmt.Sprintf("https://%s%d.example", kinds[a.rnd.IntN(len(kinds))], a.calls)})
	}
	switch a.rnd.IntN(10) {
	case 0, 1:
		return modeltest.NewCall("listDevices", `{"pageSize":`+strconv.Itoa(1+a.calls%1000)+`}`)
	case 2:
		return modeltest.NewCall("searchTabs", map[string]any{"query": fmt.Sprint(a.calls)})
	case 3:
		return modeltest.NewCall("undo", map[string]any{"commandId": fmt.Sprint(a.calls)})
	case 4:
		return modeltest.NewCall("findTools", map[string]any{"query": fmt.Sprint("tabs ", a.calls)})
	case 5:
		return modeltest.NewCall("keepSecret", `{}`)
	case 6:
		return modeltest.NewCall("openTab", `{"url":`+strconv.Itoa(a.calls))
	default:
		return open()
	}
}

// process runs a turn in a process of its own until it ends or the process does. It says whether it goes on later.
func (a *abortion) process(choices []turn.Choice, tools *tool.Set, resumed bool, how string) bool {
	ctx, cancel := context.WithCancelCause(a.t.Context())
	a.mu.Lock()
	a.dead = false
	a.act = func(bool) {
		switch how {
		case "stop":
			cancel(errStopped)
		case "pause":
			cancel(turn.ErrShutdown)
		case "kill":
			cancel(turn.ErrShutdown) // what the process was doing it does not undo
			a.mu.Lock()
			a.dead = true
			a.mu.Unlock()
		}
	}
	act := a.act
	if resumed {
		a.stored.events = append(a.stored.events, &agentv1.Event{Kind: &agentv1.Event_TurnResumed{TurnResumed: &agentv1.TurnResumed{}}})
	}
	messages, past, spent := slices.Clone(a.stored.messages), slices.Clone(a.stored.events), a.spent
	a.mu.Unlock()
	a.world.decide = func(string) verdictNow {
		switch a.roll(4) {
		case 0:
			return noNow
		case 1:
			if how == "" {
				return yesNow
			}
			act(true) // while the call waits for a person
			return never
		default:
			return yesNow
		}
	}
	runner := turn.New(turn.Config{
		Tools: tools, Commander: a.world, Querier: a.world, Facilities: a.world, Random: crand.Reader, Log: slog.New(slog.DiscardHandler),
	})
	err := runner.Run(ctx, turn.Task{
		Workspace: "w", Conversation: "c1", Root: "c1", TurnID: "t1", Durable: a.durable, Resumed: resumed, Spent: spent, Past: past,
		History: messages, Journal: mortal{a, choices},
	})
	cancel(nil)
	runner.Wait()
	if err != nil && !errors.Is(err, errDead) {
		a.t.Fatal(err)
	}
	return a.stored.end() == 0
}

// mend is what a conversation does with a turn that does not go on.
func (a *abortion) mend() {
	var open []model.Call
	for _, m := range a.stored.messages {
		if m.Role == model.RoleAssistant {
			open = slices.Clone(m.Calls)
		}
		open = slices.DeleteFunc(open, func(c model.Call) bool { return m.Role == model.RoleTool && c.ID == m.CallID })
	}
	for _, c := range open {
		a.stored.messages = append(a.stored.messages, model.Message{Role: model.RoleTool, CallID: c.ID, Text: `{"ok":false}`})
		a.stored.events = append(a.stored.events, &agentv1.Event{Kind: &agentv1.Event_ToolResult{ToolResult: &agentv1.ToolResult{CallId: c.ID}}})
	}
	a.stored.events = append(a.stored.events, &agentv1.Event{Kind: &agentv1.Event_TurnEnded{TurnEnded: &agentv1.TurnEnded{Reason: agentv1.TurnEnd_TURN_END_FAILED}}})
}

// abort runs one turn with its aborts, and says afterwards that it goes on.
func (a *abortion) abort(b *modeltest.Server, choices []turn.Choice, tools *tool.Set) {
	a.stored.messages = []model.Message{{Role: model.RoleUser, Text: "do it"}}
	hows := []string{"stop", "pause", "kill", "kill"}
	b.SetRule(modeltest.Func(a.script))
	var people sync.WaitGroup
	for n := 0; ; n++ {
		how := hows[a.roll(len(hows))]
		if n == 4 {
			how = "" // in peace
		}
		a.at = 1 + a.roll(24)
		paused := a.process(choices, tools, n > 0, how)
		if !paused {
			break
		}
		if !a.durable {
			a.mend()
			break
		}
		for _, e := range a.world.open() { // a person decides while nothing runs, or after that
			switch a.roll(3) {
			case 0:
				a.world.answer(e, true)
			case 1:
				a.world.answer(e, false)
			default:
				people.Go(func() { a.world.answer(e, true) })
			}
		}
	}
	people.Wait()
	a.check()
	a.at, a.dead, a.act, a.steered = 0, false, nil, 2
	a.stored.messages = append(a.stored.messages, model.Message{Role: model.RoleUser, Text: "go on"})
	a.stored.events, a.spent = nil, turn.Spent{}
	if a.process(choices, tools, false, ""); a.stored.end() != agentv1.TurnEnd_TURN_END_ANSWERED {
		a.t.Errorf("the next message: %.300v", a.stored.events)
	}
}

// check holds what is left of a turn against what was done.
func (a *abortion) check() {
	t := a.t
	calls, results := map[string]int{}, map[string]string{}
	var urls []string
	for _, m := range a.stored.messages {
		for _, c := range m.Calls {
			calls[c.ID]++
			if _, url, ok := strings.Cut(c.Arguments, `"url":"`); ok {
				urls = append(urls, c.ID+" "+strings.TrimSuffix(url, `"}`))
			}
		}
		if m.Role == model.RoleTool {
			if _, twice := results[m.CallID]; twice || calls[m.CallID] != 1 {
				t.Errorf("call %s has two results, or is none", m.CallID)
			}
			results[m.CallID] = m.Text
		}
	}
	if len(results) != len(calls) {
		t.Errorf("%d calls, %d results: %v", len(calls), len(results), a.stored.kinds())
	}
	if err := model.Lint(model.Repair(a.stored.messages)); err != nil {
		t.Error(err)
	}
	for what, n := range a.world.done() {
		if n != 1 {
			t.Errorf("%s was done %d times", what, n)
		}
	}
	for _, u := range urls { // a result never claims what was not done
		id, url, _ := strings.Cut(u, " ")
		if strings.HasPrefix(results[id], `{"ok":true`) && a.world.times(url) != 1 {
			t.Errorf("%s was done %d times, and the result says: %s", url, a.world.times(url), results[id])
		}
	}
	open, told, ends := map[string]bool{}, map[string]int{}, 0
	for _, e := range a.stored.events {
		if e.GetApprovalRequested() != nil {
			open[e.GetApprovalRequested().GetApprovalId()] = true
		}
		if r := e.GetApprovalResolved(); r != nil {
			delete(open, r.GetApprovalId())
			if told[r.GetApprovalId()]++; told[r.GetApprovalId()] > 1 {
				t.Errorf("the end of %s is told twice", r.GetApprovalId())
			}
		}
		if e.GetTurnEnded() != nil {
			ends++
		}
	}
	if waits := a.world.open(); len(waits) > 0 && a.durable {
		t.Errorf("the turn has ended, and %d commands still wait for a person", len(waits))
	}
	if ends != 1 || a.durable && len(open) > 0 {
		t.Errorf("%d ends, open approvals %v", ends, open)
	}
}

// aborts is how many turns TestAbortsAnywhere runs. THROWBAR_ABORTS sets another number, and THROWBAR_SEED the first seed.
const aborts = 1000

// A turn that is stopped, paused or killed anywhere leaves a history that is whole, and nothing is done twice or claimed
// that was not done.
func TestAbortsAnywhere(t *testing.T) {
	t.Parallel()
	n, first := aborts, uint64(1)
	if v, err := strconv.Atoi(os.Getenv("THROWBAR_ABORTS")); err == nil {
		n = v
	}
	if v, err := strconv.ParseUint(os.Getenv("THROWBAR_SEED"), 10, 64); err == nil {
		first = v
	}
	t.Logf("seeds %d to %d", first, first+uint64(n)-1)
	c, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := tool.NewSet(c)
	if err != nil {
		t.Fatal(err)
	}
	for seed := first; seed < first+uint64(n); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			b := modeltest.NewServer(t)
			client, err := model.New(model.Config{BaseURL: b.URL, Key: modeltest.Key, Model: "test"})
			if err != nil {
				t.Fatal(err)
			}
			a := &abortion{t: t, rnd: rand.New(rand.NewPCG(seed, 0)), world: newDeeds(t), durable: seed%4 != 0}
			a.world.tick = a.tick
			a.abort(b, []turn.Choice{{Name: "test", Model: client}}, tools)
		})
	}
}
