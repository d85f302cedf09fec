package app_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	"throwbar.dev/throwbar/clients/cli"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// withModel is a server whose model is the strict scripted one of the tests: there is no real model here.
func withModel(t *testing.T, cfg app.Config, steps ...modeltest.Step) (*apptest.Server, *modeltest.Server) {
	t.Helper()
	scripted := modeltest.NewServer(t, steps...)
	cfg.Model = app.ModelConfig{Name: "scripted", BaseURL: scripted.URL, Key: modeltest.Key}
	return apptest.Start(t, cfg), scripted
}

// startSim runs simulated browsers through the command line until the test ends.
func startSim(t *testing.T, s *apptest.Server, names ...string) {
	t.Helper()
	args := []string{"sim", "--tabs", "40", "--state-dir", t.TempDir()}
	for _, name := range names {
		args = append(args, "--name", name)
	}
	env := map[string]string{"THROWBAR_SERVER": s.URL, "THROWBAR_TOKEN_FILE": filepath.Join(s.Dir, "owner.token")}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan int, 1)
	var out bytes.Buffer
	go func() {
		ended <- cli.Config{
			Args: args, Env: func(k string) string { return env[k] }, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
		}.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Logf("sim: %s", out.String())
		}
	})
	apptest.Eventually(t, "the simulated browsers are in step", func() bool {
		res, err := s.Devices(t).ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
		live := 0
		for _, d := range res.GetDevices() {
			if d.GetFreshness().GetLive() && d.GetTabCount() == 40 {
				live++
			}
		}
		return err == nil && live == len(names)
	})
}

func TestOneSentenceClosesTabs(t *testing.T) {
	t.Parallel()
	onEach(t, testOneSentenceClosesTabs)
}

func testOneSentenceClosesTabs(t *testing.T, cfg app.Config) {
	s, scripted := withModel(t, cfg,
		modeltest.Use("listDevices", map[string]any{}),
		modeltest.Func(func(r *modeltest.Received) modeltest.Reply {
			laptop := modeltest.Collect(r.LastResult(), "deviceId")
			if len(laptop) == 0 {
				t.Errorf("no device in %s", r.LastResult())
			}
			return modeltest.Use("searchTabs", map[string]any{"query": "youtube", "deviceId": laptop[len(laptop)-1]})
		}),
		modeltest.Use("closeTabs", map[string]any{"tabIds": "{{searchTabs.tabId}}"}),
		modeltest.Func(func(r *modeltest.Received) modeltest.Reply {
			return modeltest.Text("Closed " + strings.Join(modeltest.Collect(r.LastResult(), "closedCount"), "?") + " tabs on your work laptop.")
		}),
	)
	startSim(t, s, "desktop", "work laptop")
	before, err := s.Browser(t).SearchTabs(t.Context(), &controlv1.SearchTabsRequest{Query: "youtube"})
	if err != nil {
		t.Fatal(err)
	}
	var onLaptop, onDesktop int
	for _, tab := range before.GetTabs() {
		if strings.HasPrefix(tab.GetTabId(), laptopOf(before)) {
			onLaptop++
		} else {
			onDesktop++
		}
	}
	code, out, errs := throwbarCLI(t, s, "chat", "close my YouTube tabs on my work laptop")
	if code != 0 || !strings.Contains(out, "tabs on your work laptop.") {
		t.Fatalf("chat: %d\n%s%s", code, out, errs)
	}
	t.Log(out)
	after, err := s.Browser(t).SearchTabs(t.Context(), &controlv1.SearchTabsRequest{Query: "youtube"})
	if err != nil || int(after.GetTotal()) != onDesktop || onLaptop == 0 || onDesktop == 0 {
		t.Errorf("before: %d on the laptop, %d on the desktop; after: %d, %v", onLaptop, onDesktop, after.GetTotal(), err)
	}
	list, err := s.Commands(t).ListCommands(t.Context(), &controlv1.ListCommandsRequest{})
	if err != nil || len(list.GetCommands()) != 1 {
		t.Fatalf("history: %v, %v", list, err)
	}
	c := list.GetCommands()[0]
	if got := int(c.GetResult().GetCloseTabs().GetClosedCount()); got != onLaptop || c.GetDeviceName() != "work laptop" {
		t.Errorf("closed %d on %s, want %d", got, c.GetDeviceName(), onLaptop)
	}
	if n := len(scripted.Requests()); n != 4 {
		t.Errorf("%d requests to the model", n)
	}
}

func laptopOf(res *controlv1.SearchTabsResponse) string {
	for _, d := range res.GetDevices() {
		if d.GetName() == "work laptop" {
			return d.GetDeviceId()
		}
	}
	return "none"
}

func TestWithoutAModelChatSaysWhatToSet(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	code, out, errs := throwbarCLI(t, s, "chat", "hello")
	if code != 1 || !strings.Contains(errs, "THROWBAR_MODEL") || strings.Count(strings.TrimSpace(errs), "\n") != 0 {
		t.Errorf("chat without a model: %d\n%s%s", code, out, errs)
	}
	if code, out, errs = throwbarCLI(t, s, "devices"); code != 0 {
		t.Errorf("devices without a model: %d\n%s%s", code, out, errs)
	}
}

func TestAStrangerIsAToolToo(t *testing.T) {
	t.Parallel()
	onEach(t, testAStrangerIsAToolToo)
}

func testAStrangerIsAToolToo(t *testing.T, cfg app.Config) {
	cfg.Image = strangerImage(t)
	s, scripted := withModel(t, cfg)
	k := startKettle(t, s)
	scripted.Add(
		modeltest.Use("brewDrink", map[string]any{"deviceId": k.id, "drink": "tea", "cups": 2}),
		modeltest.Func(func(r *modeltest.Received) modeltest.Reply {
			if got := modeltest.Collect(r.LastResult(), "brewedCount"); len(got) != 1 || got[0] != "3" {
				t.Errorf("the model was told %s", r.LastResult())
			}
			return modeltest.Text("Your tea is ready.")
		}),
	)
	code, out, errs := throwbarCLI(t, s, "chat", "make me two cups of tea")
	if code != 0 || !strings.Contains(out, "Your tea is ready.") {
		t.Errorf("chat: %d\n%s%s", code, out, errs)
	}
	if want := "\x0a\x03tea\x10\x02"; len(k.brewed) != 1 || string(k.brewed[0]) != want {
		t.Errorf("the device got %q", k.brewed)
	}
	tool, ok := scripted.Requests()[0].Tool("brewDrink")
	if !ok || !strings.Contains(tool.Description, "Brew a drink") || !strings.Contains(string(tool.Parameters), "How many cups") {
		t.Errorf("tool: %+v", tool)
	}
}

func TestALostCallerStopsTheTurnAndWhatItSent(t *testing.T) {
	t.Parallel()
	onEach(t, testALostCallerStopsTheTurnAndWhatItSent)
}

func testALostCallerStopsTheTurnAndWhatItSent(t *testing.T, cfg app.Config) {
	cfg.Image = strangerImage(t)
	s, scripted := withModel(t, cfg)
	k := startKettle(t, s)
	k.broken = true // it takes commands over and never answers
	scripted.Add(modeltest.Use("brewDrink", map[string]any{"deviceId": k.id, "drink": "tea", "cups": 1}))
	agents := agentv1connect.NewAgentServiceClient(s.Client(t, s.Owner, nil))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := agents.Chat(ctx, &agentv1.ChatRequest{Message: "make me tea"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	conversation := ""
	pending := true
	apptest.Eventually(t, "the command is sent", func() bool {
		list, err := s.Commands(t).ListCommands(t.Context(), &controlv1.ListCommandsRequest{PendingOnly: &pending})
		return err == nil && len(list.GetCommands()) == 1
	})
	for conversation == "" {
		msg, err := stream.Receive()
		if err != nil {
			t.Fatal(err)
		}
		conversation = msg.GetEvent().GetConversationId()
	}
	_ = stream.Close() // the caller goes away
	apptest.Eventually(t, "nothing is pending", func() bool {
		list, err := s.Commands(t).ListCommands(t.Context(), &controlv1.ListCommandsRequest{PendingOnly: &pending})
		return err == nil && len(list.GetCommands()) == 0
	})
	// The conversation goes on: the strict model finds the call with a result.
	k.mu.Lock()
	k.broken = false
	k.mu.Unlock()
	scripted.Add(modeltest.Text("Shall I try again?"))
	apptest.Eventually(t, "the turn has ended", func() bool {
		events, err := agents.ListEvents(t.Context(), &agentv1.ListEventsRequest{ConversationId: conversation})
		n := len(events.GetEvents())
		return err == nil && n > 0 && events.GetEvents()[n-1].GetTurnEnded().GetReason() == agentv1.TurnEnd_TURN_END_STOPPED
	})
	code, out, errs := throwbarCLI(t, s, "chat", "--conversation", conversation, "and now?")
	if code != 0 || !strings.Contains(out, "Shall I try again?") {
		t.Errorf("chat: %d\n%s%s", code, out, errs)
	}
}
