package turn_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"throwbar.dev/throwbar/agent/agenttest"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// journal keeps everything in memory.
type journal struct {
	mu       sync.Mutex
	choices  []turn.Choice
	messages []model.Message
	events   []*agentv1.Event
	deltas   string
	onDelta  func()
	fail     error
	next     func(n int, step *turn.Step) // changes step number n, from one
	steps    int
	restarts int
	outputs  []turn.Output
	spent    turn.Spent
	access   tool.Access // of the last step
}

func (j *journal) Next(context.Context) (turn.Step, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	step := turn.Step{Choices: j.choices}
	if j.steps++; j.next != nil {
		j.next(j.steps, &step)
	}
	j.access = step.Access
	j.messages = append(j.messages, step.Messages...)
	return step, nil
}

func (j *journal) Record(_ context.Context, entry turn.Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fail != nil {
		return j.fail
	}
	if entry.Restart {
		j.restarts++
		j.messages = nil
	}
	j.outputs, j.spent = append(j.outputs, entry.Outputs...), entry.Spent
	j.messages = append(j.messages, entry.Messages...)
	j.events = append(j.events, entry.Events...)
	return nil
}

func (j *journal) Delta(event *agentv1.Event) {
	j.mu.Lock()
	j.deltas += event.GetTextDelta().GetText()
	j.mu.Unlock()
	if j.onDelta != nil {
		j.onDelta()
	}
}

// bench is a runner with a scripted model and a world to act on.
type bench struct {
	t       *testing.T
	model   *modeltest.Server
	world   *agenttest.World
	runner  *turn.Runner
	choices []turn.Choice
	log     *strings.Builder
}

func newBench(t *testing.T, script ...modeltest.Step) *bench {
	return newBenchWith(t, gen.Descriptors, turn.Config{}, script...)
}

func newBenchWith(t *testing.T, image []byte, config turn.Config, script ...modeltest.Step) *bench {
	t.Helper()
	if image == nil {
		image = gen.Descriptors
	}
	c, err := catalog.New(image)
	if err != nil {
		t.Fatal(err)
	}
	if config.Tools, err = tool.NewSet(c); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, model: modeltest.NewServer(t, script...), world: agenttest.New(), log: &strings.Builder{}}
	client, err := model.New(model.Config{BaseURL: b.model.URL, Key: modeltest.Key, Model: "test"})
	if err != nil {
		t.Fatal(err)
	}
	b.choices = []turn.Choice{{Name: "test", Model: client}}
	config.Commander, config.Querier, config.Random = b.world, b.world, rand.Reader
	config.Log = slog.New(slog.NewTextHandler(b.log, nil))
	b.runner = turn.New(config)
	t.Cleanup(b.runner.Wait)
	return b
}

// say runs a turn and checks that its history is one that a strict provider takes.
func (b *bench) say(ctx context.Context, j *journal, text string) {
	b.t.Helper()
	j.messages = append(j.messages, model.Message{Role: model.RoleUser, Text: text})
	j.choices = b.choices
	err := b.runner.Run(ctx, turn.Task{
		Workspace: "w", Conversation: "c1", Root: "c1", TurnID: "t1", History: slices.Clone(j.messages), Journal: j,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	// Arguments stay as the model wrote them; nothing else needs repair.
	repaired := model.Repair(j.messages)
	if err := model.Lint(repaired); err != nil || len(repaired) != len(j.messages) {
		b.t.Errorf("history: %v; %d messages became %d", err, len(j.messages), len(repaired))
	}
}

func (b *bench) chat(text string) *journal {
	b.t.Helper()
	j := &journal{}
	b.say(b.t.Context(), j, text)
	return j
}

func (j *journal) end() agentv1.TurnEnd {
	if len(j.events) == 0 {
		return 0
	}
	return j.events[len(j.events)-1].GetTurnEnded().GetReason()
}

func (j *journal) notices() []string {
	var codes []string
	for _, e := range j.events {
		if n := e.GetNotice(); n != nil {
			codes = append(codes, n.GetCode())
		}
	}
	return codes
}

func (j *journal) results() []*agentv1.ToolResult {
	var out []*agentv1.ToolResult
	for _, e := range j.events {
		if r := e.GetToolResult(); r != nil {
			out = append(out, r)
		}
	}
	return out
}

// content is the result of a tool, as a model reads it.
type content struct {
	OK    bool
	Mark  string
	End   string
	Data  map[string]any
	Error struct {
		Code, Message string
		Problems      []string
	}
}

func (j *journal) content(t *testing.T, i int) content {
	t.Helper()
	results := j.results()
	if i >= len(results) {
		t.Fatalf("only %d results", len(results))
	}
	var c content
	if err := json.Unmarshal([]byte(results[i].GetContent()), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (j *journal) expect(t *testing.T, end agentv1.TurnEnd, notices ...string) {
	t.Helper()
	if j.end() != end || !slices.Equal(j.notices(), notices) {
		t.Errorf("ended %v with notices %q; want %v, %q\nevents: %v", j.end(), j.notices(), end, notices, j.events)
	}
}

func TestTheHeadlineJourney(t *testing.T) {
	t.Parallel()
	b := newBench(t,
		modeltest.Use("listDevices", map[string]any{}),
		modeltest.Use("searchTabs", map[string]any{"query": "youtube", "deviceId": "lap"}),
		modeltest.Use("closeTabs", `{"tabIds":"{{searchTabs.tabId}}"}`),
		modeltest.Func(func(r *modeltest.Received) modeltest.Reply {
			return modeltest.Text("Closed " + strings.Join(modeltest.Collect(r.Result("closeTabs"), "closedCount"), "") + " tabs.")
		}),
	)
	for i := range 4 {
		b.world.Tab("lap", fmt.Sprintf("https://www.youtube.com/watch?v=%d", i), "YouTube")
	}
	b.world.Tab("lap", "https://go.dev", "Go")
	j := b.chat("close my YouTube tabs on my work laptop")
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
	if j.deltas != "Closed 4 tabs." {
		t.Errorf("answer: %q", j.deltas)
	}
	if got := b.world.Tabs(); !slices.Equal(got, []string{"https://go.dev"}) {
		t.Errorf("tabs: %q", got)
	}
	commands := b.world.Commands()
	if len(commands) != 1 || commands[0].Workspace != "w" || commands[0].Principal != "c1" || len(commands[0].Action.GetCloseTabs().GetTabIds()) != 4 {
		t.Errorf("commands: %v", commands)
	}
	got := j.content(t, 2)
	if !got.OK || got.Mark == "" || got.Mark != got.End || got.Data["deviceName"] != "Work Laptop" || got.Data["closedCount"] != 4.0 ||
		got.Data["items"] != nil || len(got.Data["savedIds"].([]any)) != 4 {
		t.Errorf("result: %s", j.results()[2].GetContent())
	}
	if j.content(t, 1).Mark == got.Mark {
		t.Error("two results have the same mark")
	}
}

func TestReadsRunSideBySideAndWritesInOrder(t *testing.T) {
	t.Parallel()
	reads := modeltest.Reply{Calls: []modeltest.Call{
		modeltest.NewCall("listDevices", map[string]any{}), modeltest.NewCall("listTabs", map[string]any{}),
		modeltest.NewCall("searchTabs", map[string]any{"query": "x"}),
	}}
	writes := modeltest.Reply{Calls: []modeltest.Call{
		modeltest.NewCall("openTab", map[string]any{"deviceId": "lap", "url": "https://a.example"}),
		modeltest.NewCall("openTab", map[string]any{"deviceId": "lap", "url": "https://b.example"}),
		modeltest.NewCall("listTabs", map[string]any{}),
		modeltest.NewCall("openTab", map[string]any{"deviceId": "lap", "url": "https://c.example"}),
	}}
	b := newBench(t, reads, writes, modeltest.Text("done"))
	var meet sync.WaitGroup
	meet.Add(3)
	b.world.BeforeQuery = func(context.Context, turn.Query) error {
		if len(b.world.Queries()) <= 3 { // each waits for the others
			meet.Done()
			meet.Wait()
		}
		return nil
	}
	j := b.chat("go")
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
	if got := b.world.Tabs(); !slices.Equal(got, []string{"https://a.example", "https://b.example", "https://c.example"}) {
		t.Errorf("tabs: %q", got)
	}
	if got := j.content(t, 5); got.Data["total"] != 2.0 {
		t.Errorf("the read between two writes saw %v", got.Data)
	}
	var order []string
	for _, r := range j.results() {
		order = append(order, r.GetName())
	}
	if want := []string{"listDevices", "listTabs", "searchTabs", "openTab", "openTab", "listTabs", "openTab"}; !slices.Equal(order, want) {
		t.Errorf("results: %q", order)
	}
}

func TestAnEndlessLoopIsStopped(t *testing.T) {
	t.Parallel()
	n := 0
	b := newBench(t)
	b.model.SetRule(modeltest.Func(func(*modeltest.Received) modeltest.Reply {
		n++
		return modeltest.Use("searchTabs", map[string]any{"query": fmt.Sprint("q", n)})
	}))
	j := b.chat("search on")
	j.expect(t, agentv1.TurnEnd_TURN_END_LIMIT, "loop_limit")
	if n != turn.DefaultRounds || len(j.results()) != turn.DefaultRounds {
		t.Errorf("%d rounds, %d results", n, len(j.results()))
	}
	b.model.SetRule(modeltest.Text("done"))
	b.say(t.Context(), j, "go on")
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED, "loop_limit")
}

func TestTheSameCallAgainAndAgainIsStopped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.model.SetRule(modeltest.Use("listDevices", map[string]any{}))
	j := b.chat("list")
	j.expect(t, agentv1.TurnEnd_TURN_END_LIMIT, "repeated_calls")
	if got := len(b.world.Queries()); got != 2 {
		t.Errorf("it ran %d times", got)
	}
	if got := j.content(t, 2).Error.Code; got != "repeated" {
		t.Errorf("third result: %q", got)
	}
}

func TestLookingAgainAfterAChangeIsNoRepetition(t *testing.T) {
	t.Parallel()
	open := func(url string) modeltest.Step {
		return modeltest.Use("openTab", map[string]any{"deviceId": "lap", "url": url})
	}
	list := modeltest.Use("listTabs", map[string]any{})
	b := newBench(t, list, list, open("https://a.example"), list, list, open("https://b.example"), list, modeltest.Text("done"))
	b.chat("open two").expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
	if got := len(b.world.Queries()); got != 5 {
		t.Errorf("%d queries", got)
	}
}

func TestATwinOfAWriteDoesNotRunForEver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.model.SetRule(modeltest.Use("openTab", map[string]any{"deviceId": "lap", "url": "https://a.example"}))
	b.chat("open").expect(t, agentv1.TurnEnd_TURN_END_LIMIT, "repeated_calls")
	if got := len(b.world.Tabs()); got != 2 {
		t.Errorf("%d tabs", got)
	}
}

func TestErrorsInARowStopTheTurn(t *testing.T) {
	t.Parallel()
	n := 0
	b := newBench(t)
	b.model.SetRule(modeltest.Func(func(*modeltest.Received) modeltest.Reply {
		n++
		return modeltest.Use("openTab", map[string]any{"deviceId": "home", "url": fmt.Sprintf("https://%d.example", n)})
	}))
	j := b.chat("open")
	j.expect(t, agentv1.TurnEnd_TURN_END_LIMIT, "repeated_errors")
	if n != 4 {
		t.Errorf("%d rounds", n)
	}
	if got := j.content(t, 0); got.OK || got.Error.Code != "offline" || got.Error.Message != "Home PC is offline" || got.Mark != got.End {
		t.Errorf("result: %s", j.results()[0].GetContent())
	}
}

func TestWrongCallsAreExplainedAndMended(t *testing.T) {
	t.Parallel()
	wrong := modeltest.Reply{Unchecked: true, Calls: []modeltest.Call{
		modeltest.NewCall("closeTab5", `{}`),
		modeltest.NewCall("closeTabs", `{"tabIdz":[1],"forse2":true}`),
		modeltest.NewCall("openTab", `{"url":""}`),
		modeltest.NewCall("groupTabs", `{"tabIds":["lap_tb-1"],"colour":"magenta"}`),
		modeltest.NewCall("listTabs", `{"deviceId":`),
	}}
	mended := modeltest.Reply{Unchecked: true, Calls: []modeltest.Call{modeltest.NewCall("closeTabs", `{"tab_ids":"[\"lap_tb-1\"]"}`)}}
	b := newBench(t, wrong, mended, modeltest.Text("done"))
	b.world.Tab("lap", "https://a.example", "A")
	j := b.chat("go")
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
	if got := j.content(t, 0).Error; got.Code != "unknown_tool" || got.Message != `there is no tool "closeTab5"; did you mean closeTabs?` {
		t.Errorf("unknown tool: %+v", got)
	}
	for i, want := range map[int][]string{
		1: {"/tabIdz: unknown key; did you mean tabIds?", "/forse2: unknown key; expected tabIds, force, deviceId"},
		2: {"/deviceId: is required", "/url: is required and may not be empty"},
		3: {`/colour: expected one of grey, blue, red, yellow, green, pink, purple, cyan, orange, got "magenta"`},
		4: {"the arguments are not JSON: it ends too early (at byte 12)"},
	} {
		if got := j.content(t, i).Error; got.Code != "invalid" || len(got.Problems) != len(want) {
			t.Errorf("call %d: %+v", i, got)
		} else {
			for k := range want {
				if !strings.HasPrefix(got.Problems[k], want[k]) && i != 1 {
					t.Errorf("call %d: %q, want %q", i, got.Problems[k], want[k])
				}
			}
		}
	}
	if len(b.world.Commands()) != 1 || len(b.world.Tabs()) != 0 {
		t.Errorf("commands: %v", b.world.Commands())
	}
	var repairs []string
	for _, e := range j.events {
		repairs = append(repairs, e.GetToolCall().GetRepairs()...)
	}
	if !slices.Equal(repairs, []string{"/tab_ids: a list written as text was read"}) {
		t.Errorf("repairs: %q", repairs)
	}
}

func TestFailuresOfToolsAreResults(t *testing.T) {
	t.Parallel()
	call := func(url string) modeltest.Call {
		return modeltest.NewCall("openTab", map[string]any{"deviceId": "lap", "url": url})
	}
	b := newBench(t, modeltest.Reply{Calls: []modeltest.Call{call("https://refuse.example"), call("https://break.example"), call("https://panic.example")}},
		modeltest.Text("none worked"))
	b.world.BeforeCommand = func(_ context.Context, c turn.Call) error {
		switch url := c.Action.GetOpenTab().GetUrl(); {
		case strings.Contains(url, "refuse"):
			return &turn.Refusal{Code: commandv1.ErrorCode_ERROR_CODE_DENIED, Message: "policy forbids it"}
		case strings.Contains(url, "break"):
			return errors.New("disk 7 is on fire")
		default:
			panic("boom")
		}
	}
	j := b.chat("open")
	j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
	if got := j.content(t, 0).Error; got.Code != "denied" || got.Message != "policy forbids it" || j.results()[0].GetOutcome() != agentv1.Outcome_OUTCOME_DENIED {
		t.Errorf("refused: %+v", got)
	}
	for i := 1; i < 3; i++ {
		if got := j.content(t, i).Error; got.Code != "failed" || strings.Contains(got.Message, "fire") || strings.Contains(got.Message, "boom") {
			t.Errorf("broken: %+v", got)
		}
	}
	if !strings.Contains(b.log.String(), "disk 7 is on fire") || !strings.Contains(b.log.String(), "boom") {
		t.Errorf("log: %s", b.log)
	}
}

func TestACutOffAnswerRunsNothing(t *testing.T) {
	t.Parallel()
	cut := modeltest.Use("openTab", map[string]any{"deviceId": "lap", "url": "https://a.example"})
	cut.Text, cut.CutAfter = "I open it.", 4
	b := newBench(t, cut)
	j := b.chat("open")
	j.expect(t, agentv1.TurnEnd_TURN_END_FAILED)
	if len(b.world.Commands()) != 0 || len(j.results()) != 0 {
		t.Errorf("commands: %v", b.world.Commands())
	}
	if text := j.messages[len(j.messages)-1].Text; text == "" || !strings.HasPrefix("I open it.", text) {
		t.Errorf("kept text: %q", text)
	}
	var why string
	for _, e := range j.events {
		why += e.GetError().GetMessage()
	}
	if !strings.HasPrefix(why, "The model's answer was cut off") {
		t.Errorf("error: %q", why)
	}
}

func TestProviderErrorsEndTheTurn(t *testing.T) {
	t.Parallel()
	for want, script := range map[string][]modeltest.Step{
		"The model provider answered 400 (invalid_request_error): no such model.": {modeltest.Fail(400, "no such model")},
		"The agent's tools and rules alone take about ":                           {modeltest.Overflow()},
		"The model answered nothing: ask again.":                                  {modeltest.Reply{Finish: "stop"}},
	} {
		b := newBench(t, script...)
		j := b.chat("hello")
		j.expect(t, agentv1.TurnEnd_TURN_END_FAILED)
		if got := j.events[len(j.events)-2].GetError().GetMessage(); !strings.HasPrefix(got, want) {
			t.Errorf("error: %q, want %q", got, want)
		}
	}
}

func TestALengthLimitIsVisible(t *testing.T) {
	t.Parallel()
	b := newBench(t, modeltest.Reply{Text: "once upon", Finish: "length"})
	b.chat("tell").expect(t, agentv1.TurnEnd_TURN_END_LIMIT, "answer_cut")
}

func TestAJournalThatFailsEndsTheTurn(t *testing.T) {
	t.Parallel()
	b := newBench(t, modeltest.Use("openTab", map[string]any{"deviceId": "lap", "url": "https://a.example"}))
	full := errors.New("disk full")
	err := b.runner.Run(t.Context(), turn.Task{
		History: []model.Message{{Role: model.RoleUser, Text: "open"}}, Journal: &journal{fail: full, choices: b.choices},
	})
	if !errors.Is(err, full) || len(b.world.Commands()) != 0 {
		t.Errorf("%v; commands: %v", err, b.world.Commands())
	}
}
