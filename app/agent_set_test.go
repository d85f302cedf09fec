package app_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	client "throwbar.dev/throwbar/clients/go"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/store"
)

// This is the scripted end-to-end set of the agent, beside the journeys in journey_test.go and approvals_journey_test.go: the
// model is the strict scripted one, everything else is real.

// The person names two devices: one call closes the tabs of both, and the counts that come back are those of each.
func TestTwoDevicesNamedByThePerson(t *testing.T) {
	t.Parallel()
	onEach(t, testTwoDevicesNamedByThePerson)
}

func testTwoDevicesNamedByThePerson(t *testing.T, cfg app.Config) {
	s, _ := withModel(t, cfg,
		modeltest.Use("searchTabs", map[string]any{"query": "youtube"}),
		modeltest.Use("closeTabs", map[string]any{"tabIds": "{{searchTabs.tabId}}"}),
		modeltest.Func(func(r *modeltest.Received) modeltest.Reply {
			last := r.Result("closeTabs")
			names, counts := modeltest.Collect(last, "deviceName"), modeltest.Collect(last, "closedCount")
			if len(names) != 2 || len(counts) != 2 {
				t.Errorf("the model was told %s", last)
				return modeltest.Text("?")
			}
			return modeltest.Text(fmt.Sprintf("Closed %s tabs on %s and %s on %s.", counts[0], names[0], counts[1], names[1]))
		}),
	)
	startSim(t, s, "desktop", "work laptop")
	before, err := s.Browser(t).SearchTabs(t.Context(), &controlv1.SearchTabsRequest{Query: "youtube"})
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]int{}
	for _, d := range before.GetDevices() {
		for _, tab := range before.GetTabs() {
			if strings.HasPrefix(tab.GetTabId(), d.GetDeviceId()) {
				open[d.GetName()]++
			}
		}
	}
	code, out, errs := throwbarCLI(t, s, "chat", "close YouTube on my desktop and my work laptop")
	if code != 0 {
		t.Fatalf("chat: %d\n%s%s", code, out, errs)
	}
	for _, name := range []string{"desktop", "work laptop"} {
		if said := fmt.Sprintf("%d tabs on %s", open[name], name); open[name] == 0 ||
			!strings.Contains(out, said) && !strings.Contains(out, fmt.Sprintf("%d on %s", open[name], name)) {
			t.Errorf("%d were open on %s; it says\n%s", open[name], name, out)
		}
	}
	after, err := s.Browser(t).SearchTabs(t.Context(), &controlv1.SearchTabsRequest{Query: "youtube"})
	if err != nil || after.GetTotal() != 0 {
		t.Errorf("%d left, %v", after.GetTotal(), err)
	}
}

// A device that is offline is told plainly, at once, and nothing is written down for it.
func TestAnOfflineDeviceIsToldPlainly(t *testing.T) {
	t.Parallel()
	onEach(t, testAnOfflineDeviceIsToldPlainly)
}

func testAnOfflineDeviceIsToldPlainly(t *testing.T, cfg app.Config) {
	cfg.DataDir = t.TempDir()
	identities, err := apptest.Enrol(t.Context(), store.Config{Dir: cfg.DataDir, URL: cfg.Store.URL}, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := withModel(t, cfg,
		modeltest.Use("listDevices", map[string]any{}),
		modeltest.Use("openTab", map[string]any{"deviceId": identities[0].DeviceID, "url": "https://a.example/"}),
		modeltest.Func(func(r *modeltest.Received) modeltest.Reply {
			if got := modeltest.Collect(r.LastResult(), "code"); len(got) != 1 || got[0] != "offline" {
				t.Errorf("the model was told %s", r.LastResult())
			}
			return modeltest.Text("It is offline: nothing was opened.")
		}),
	)
	code, out, errs := throwbarCLI(t, s, "chat", "open a.example on my laptop")
	if code != 0 || !strings.Contains(out, "It is offline: nothing was opened.") {
		t.Errorf("chat: %d\n%s%s", code, out, errs)
	}
	list, err := s.Commands(t).ListCommands(t.Context(), &controlv1.ListCommandsRequest{})
	if err != nil || len(list.GetCommands()) != 0 {
		t.Errorf("written down: %v, %v", list, err)
	}
}

// A limit is told, and the conversation goes on from there.
func TestALimitIsReachedAndContinued(t *testing.T) {
	t.Parallel()
	onEach(t, testALimitIsReachedAndContinued)
}

func testALimitIsReachedAndContinued(t *testing.T, cfg app.Config) {
	var steps []modeltest.Step
	for i := range 11 {
		steps = append(steps, modeltest.Use("listTabs", map[string]any{"pageSize": i + 1}))
	}
	steps = append(steps, modeltest.Text("That was the last page."))
	s, scripted := withModel(t, cfg, steps...)
	startSim(t, s, "laptop")
	agents := agentv1connect.NewAgentServiceClient(s.Client(t, s.Owner, nil))
	first := say(t, agents, &agentv1.ChatRequest{Message: "read all pages"})
	var limit *agentv1.Notice
	for _, e := range first {
		if n := e.GetNotice(); n != nil {
			limit = n
		}
	}
	if limit.GetCode() != "loop_limit" || !limit.GetCanContinue() || ended(first) != agentv1.TurnEnd_TURN_END_LIMIT || len(scripted.Requests()) != 10 {
		t.Fatalf("after %d requests: %v, %v", len(scripted.Requests()), limit, ended(first))
	}
	id := first[0].GetConversationId()
	second := say(t, agents, &agentv1.ChatRequest{ConversationId: &id, Message: "go on"})
	if ended(second) != agentv1.TurnEnd_TURN_END_ANSWERED || len(scripted.Requests()) != 12 {
		t.Errorf("after %d requests: %v", len(scripted.Requests()), ended(second))
	}
	if last := scripted.Last(); len(last.Messages) < 24 || last.LastUser() != "go on" {
		t.Errorf("the model does not see what was before: %d messages, %q", len(last.Messages), last.LastUser())
	}
}

// say says something and gives the events of the turn.
func say(t *testing.T, agents agentv1connect.AgentServiceClient, req *agentv1.ChatRequest) []*agentv1.Event {
	t.Helper()
	stream, err := agents.Chat(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	var events []*agentv1.Event
	for {
		msg, err := stream.Receive()
		if err != nil {
			return events
		}
		if e := msg.GetEvent(); e != nil {
			events = append(events, e)
		}
	}
}

// ended is why a turn ended; nothing if it did not.
func ended(events []*agentv1.Event) agentv1.TurnEnd {
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].GetTurnEnded().GetReason()
}

// slowOpener is a device whose tabs open when the test says so.
type slowOpener struct {
	commandv1.DeclineTabs
	commandv1.DeclineCustom

	begun   chan struct{}
	release chan struct{}

	mu    sync.Mutex
	count int // guarded by mu
}

func (o *slowOpener) OpenTab(ctx context.Context, a *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
	o.mu.Lock()
	o.count++
	o.mu.Unlock()
	o.begun <- struct{}{}
	select {
	case <-o.release:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &commandv1.OpenTab_Result{Url: a.GetUrl()}, nil
}

func (o *slowOpener) opened() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}

// The server is killed in the middle of a tool. A turn that its caller waited for is brought to an end, and the
// conversation answers the next message; a turn that nobody waited for goes on where it was, and the device acts once.
func TestKilledInTheMiddleOfATool(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		for _, detached := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s-detached-%v", engine.Name, detached), func(t *testing.T) {
				t.Parallel()
				testKilledInTheMiddleOfATool(t, engine.URL(t), detached)
			})
		}
	}
}

func testKilledInTheMiddleOfATool(t *testing.T, url string, detached bool) {
	address := apptest.FreeAddress(t)
	v := &victim{t: t, dir: t.TempDir(), url: url, address: address}
	identities, err := apptest.Enrol(t.Context(), store.Config{Dir: v.dir, URL: url}, "http://"+address, 1)
	if err != nil {
		t.Fatal(err)
	}
	scripted := modeltest.NewServer(t, modeltest.Use("openTab", map[string]any{"deviceId": identities[0].DeviceID, "url": "https://a.example/"}))
	v.model = scripted.URL
	opener := &slowOpener{begun: make(chan struct{}, 8), release: make(chan struct{})}
	runHandler(t, client.DeviceConfig{Identity: identities[0], Handler: opener, Actions: []string{"openTab"}})
	v.start(haltNever)
	t.Cleanup(v.kill)
	apptest.Eventually(t, "the device is there", func() bool {
		res, err := v.server().Devices(t).ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
		return err == nil && len(res.GetDevices()) == 1 && res.GetDevices()[0].GetOnline()
	})
	agents := agentv1connect.NewAgentServiceClient(v.caller())
	stream, err := agents.Chat(t.Context(), &agentv1.ChatRequest{Message: "open a.example", Detached: detached})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	id := ""
	for id == "" {
		msg, err := stream.Receive()
		if err != nil {
			t.Fatal(err)
		}
		id = msg.GetEvent().GetConversationId()
	}
	<-opener.begun
	v.kill()
	if detached {
		scripted.Add(modeltest.Text("It is open."))
	}
	v.start(haltNever)
	close(opener.release)
	agents = agentv1connect.NewAgentServiceClient(v.caller())
	want := agentv1.TurnEnd_TURN_END_FAILED
	if detached {
		want = agentv1.TurnEnd_TURN_END_ANSWERED
	}
	apptest.Eventually(t, "the turn has ended", func() bool {
		events, err := agents.ListEvents(t.Context(), &agentv1.ListEventsRequest{ConversationId: id})
		return err == nil && ended(events.GetEvents()) == want
	})
	if n := opener.opened(); n != 1 {
		t.Errorf("the device was asked %d times", n)
	}
	scripted.Add(modeltest.Text("Here I am."))
	if events := say(t, agents, &agentv1.ChatRequest{ConversationId: &id, Message: "go on"}); ended(events) != agentv1.TurnEnd_TURN_END_ANSWERED {
		t.Errorf("it does not go on: %v", events)
	}
	told := scripted.Last().Result("openTab")
	if sound := strings.Contains(told, "may have taken effect"); sound == detached || detached && !strings.Contains(told, `"ok":true`) {
		t.Errorf("the model was told %s", told)
	}
}
