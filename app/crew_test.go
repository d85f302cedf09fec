package app_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
)

const (
	sends   = "sendToConversation"
	reads   = "readConversation"
	summons = "summonAgent"
	fetches = "retrieveAgent"
)

// play is how one agent answers a request.
type play func(*modeltest.Received) modeltest.Reply

// crew is a whole server whose strict model plays several agents: who is asked is in the conversation's own prompt.
type crew struct {
	*apptest.Server
	t      *testing.T
	cfg    app.Config
	model  *modeltest.Server
	agents agentv1connect.AgentServiceClient

	mu    sync.Mutex
	ids   map[string]string // by name; guarded by mu
	plays map[string]play   // by name; guarded by mu
}

func newCrew(t *testing.T, cfg app.Config) *crew {
	t.Helper()
	c := &crew{t: t, ids: map[string]string{}, plays: map[string]play{}}
	c.model = modeltest.NewServer(t)
	c.model.SetRule(modeltest.Func(c.answer))
	cfg.DataDir = t.TempDir()
	cfg.Model = app.ModelConfig{Name: "scripted", BaseURL: c.model.URL, Key: modeltest.Key}
	c.cfg = cfg
	c.start()
	return c
}

func (c *crew) start() {
	c.t.Helper()
	c.Server = apptest.Start(c.t, c.cfg)
	c.agents = agentv1connect.NewAgentServiceClient(c.Client(c.t, c.Owner, nil))
}

// limited are limits of all agents.
func limited(cfg app.Config, limits *configv1.AgentLimits) app.Config {
	cfg.AgentLimits = limits
	return cfg
}

func nameIn(system string) string {
	found := regexp.MustCompile(`PERSONA-(\w+)`).FindStringSubmatch(system)
	if len(found) == 0 {
		return ""
	}
	return found[1]
}

// answer answers as whoever is asked.
func (c *crew) answer(r *modeltest.Received) modeltest.Reply {
	c.mu.Lock()
	p := c.plays[nameIn(r.System())]
	c.mu.Unlock()
	if p == nil {
		c.t.Errorf("nobody plays %q", nameIn(r.System()))
		return modeltest.Text("who am I?")
	}
	return p(r)
}

// plan says how an agent plays, from now on.
func (c *crew) plan(name string, p play) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plays[name] = p
}

// begin begins a conversation with an agent that may use these tools beside those that all have.
func (c *crew) begin(name string, p play, extra ...string) string {
	c.t.Helper()
	return c.beginWith(name, p, &agentv1.Grants{Extra: extra})
}

func (c *crew) beginWith(name string, p play, grants *agentv1.Grants) string {
	c.t.Helper()
	c.plan(name, p)
	res, err := c.agents.CreateConversation(c.t.Context(), &agentv1.CreateConversationRequest{
		Title: name, Settings: &agentv1.ConversationSettings{Prompt: "You are PERSONA-" + name, Grants: grants},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids[name] = res.GetConversation().GetConversationId()
	return c.ids[name]
}

func (c *crew) id(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[name]
}

// say says something as a person.
func (c *crew) say(name, text string) *agentv1.SendResponse {
	c.t.Helper()
	id := c.id(name)
	res, err := c.agents.Send(c.t.Context(), &agentv1.SendRequest{ConversationId: &id, Message: text})
	if err != nil {
		c.t.Fatalf("say to %s: %v", name, err)
	}
	return res
}

func (c *crew) get(name string) *agentv1.Conversation {
	c.t.Helper()
	return c.conversation(c.id(name))
}

func (c *crew) conversation(id string) *agentv1.Conversation {
	c.t.Helper()
	res, err := c.agents.GetConversation(c.t.Context(), &agentv1.GetConversationRequest{ConversationId: id})
	if err != nil {
		c.t.Fatal(err)
	}
	return res.GetConversation()
}

// all are all conversations.
func (c *crew) all() []*agentv1.Conversation {
	c.t.Helper()
	res, err := c.agents.ListConversations(c.t.Context(), &agentv1.ListConversationsRequest{})
	if err != nil {
		c.t.Fatal(err)
	}
	return res.GetConversations()
}

// settled waits until nobody works and nothing happens any more.
func (c *crew) settled() {
	c.t.Helper()
	last := uint64(0)
	rest := false
	defer func() { // a failure says what went on
		if !rest {
			for _, conversation := range c.all() {
				c.t.Logf("%v", conversation)
			}
		}
	}()
	apptest.Eventually(c.t, "all agents are at rest", func() bool {
		sum := uint64(0)
		for _, conversation := range c.all() {
			if conversation.GetRunning() {
				last = 0
				return false
			}
			sum += conversation.GetSequence()
		}
		rest, last = sum == last, sum
		return rest
	})
}

func (c *crew) events(name string) []*agentv1.Event {
	c.t.Helper()
	return c.eventsOf(c.id(name))
}

func (c *crew) eventsOf(id string) []*agentv1.Event {
	c.t.Helper()
	size := uint32(1000)
	res, err := c.agents.ListEvents(c.t.Context(), &agentv1.ListEventsRequest{ConversationId: id, PageSize: &size})
	if err != nil {
		c.t.Fatal(err)
	}
	return res.GetEvents()
}

// turns is how many turns began in a conversation, and how many of them an agent began.
func (c *crew) turns(name string) (all, woken int) {
	c.t.Helper()
	for _, e := range c.events(name) {
		if s := e.GetTurnStarted(); s != nil {
			all++
			if s.GetSender().GetSpeaker() == agentv1.Speaker_SPEAKER_AGENT {
				woken++
			}
		}
	}
	return all, woken
}

// expect holds how many turns began, and how many of them an agent began.
func (c *crew) expect(name string, all, woken int) {
	c.t.Helper()
	if a, w := c.turns(name); a != all || w != woken {
		c.t.Errorf("%s: %d turns, %d of them by agents; want %d and %d", name, a, w, all, woken)
	}
}

// notices are the codes of the notices of a conversation.
func (c *crew) notices(name string) []string {
	c.t.Helper()
	var codes []string
	for _, e := range c.events(name) {
		if n := e.GetNotice(); n != nil {
			codes = append(codes, n.GetCode())
		}
	}
	return codes
}

// queue is what waits in a conversation.
func (c *crew) queue(name string) []*agentv1.QueuedMessage {
	c.t.Helper()
	res, err := c.agents.ListQueue(c.t.Context(), &agentv1.ListQueueRequest{ConversationId: c.id(name)})
	if err != nil {
		c.t.Fatal(err)
	}
	return res.GetMessages()
}

// heard is what was said to an agent, each with who said it.
func (c *crew) heard(name string) []string {
	c.t.Helper()
	var out []string
	for _, e := range c.events(name) {
		m := e.GetMessage()
		if m.GetRole() != agentv1.Role_ROLE_USER {
			continue
		}
		who := "person"
		if m.GetSender().GetSpeaker() == agentv1.Speaker_SPEAKER_AGENT {
			who = m.GetSender().GetTitle()
		}
		out = append(out, who+": "+m.GetText())
	}
	return out
}

// lastResult is what a tool last answered in a conversation.
func (c *crew) lastResult(name, tool string) *agentv1.ToolResult {
	c.t.Helper()
	for _, e := range slices.Backward(c.events(name)) {
		if r := e.GetToolResult(); r.GetName() == tool && r != nil {
			return r
		}
	}
	c.t.Errorf("%s has no result of %s", name, tool)
	return nil
}

// to calls the tool that writes to another agent.
func (c *crew) to(name, message string) modeltest.Call {
	return modeltest.NewCall(sends, map[string]any{"conversationId": c.id(name), "message": message})
}

// forwards writes to another agent whenever it is written to.
func (c *crew) forwards(name string) play {
	return func(r *modeltest.Received) modeltest.Reply {
		if r.Round() > 0 {
			return modeltest.Text("I wrote to " + name + ".")
		}
		return modeltest.Reply{Calls: []modeltest.Call{c.to(name, "Thank you! Over to you.")}}
	}
}

// answers says the same each time.
func answers(text string) play {
	return func(*modeltest.Received) modeltest.Reply { return modeltest.Text(text) }
}

// steps are the replies to a message, one after the other; the last one is repeated.
func steps(replies ...modeltest.Reply) play {
	return func(r *modeltest.Received) modeltest.Reply { return replies[min(r.Round(), len(replies)-1)] }
}

// says holds that a text has all the words.
func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

func numbered(prefix string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint(prefix, i))
	}
	return out
}

// closes closes the first tabs of the only device, and says what came of it.
func closes(n int) play {
	all := closeMany(n)
	return func(r *modeltest.Received) modeltest.Reply {
		step := all[min(r.Round(), len(all)-1)]
		if f, ok := step.(modeltest.Func); ok {
			return f(r)
		}
		reply, _ := step.(modeltest.Reply)
		return reply
	}
}

// decide approves or denies as a person.
func decide(t *testing.T, s *apptest.Server, a *controlv1.Approval, yes bool) {
	t.Helper()
	d := &controlv1.Decision{ApprovalId: a.GetApprovalId(), Verdict: &controlv1.Decision_Deny{Deny: &controlv1.Deny{Reason: "not now"}}}
	if yes {
		d.Verdict = &controlv1.Decision_Approve{Approve: &controlv1.Approve{Hash: a.GetHash()}}
	}
	res, err := approvals(t, s).Decide(t.Context(), &controlv1.DecideRequest{Decisions: []*controlv1.Decision{d}})
	if err != nil || res.GetOutcomes()[0].GetError() != nil {
		t.Fatalf("decide: %v, %v", res, err)
	}
}

// waits has policy let what nobody is there to decide wait for somebody.
func waits(t *testing.T, s *apptest.Server) {
	t.Helper()
	_, err := controlv1connect.NewPolicyServiceClient(s.Client(t, s.Owner, nil)).SetPolicySettings(t.Context(), &controlv1.SetPolicySettingsRequest{
		Settings: &controlv1.PolicySettings{Background: controlv1.Unreachable_UNREACHABLE_WAIT},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// rule adds a rule of policy; what it returns takes it away.
func rule(t *testing.T, s *apptest.Server, r *controlv1.PolicyRule) (remove func()) {
	t.Helper()
	rules := controlv1connect.NewPolicyServiceClient(s.Client(t, s.Owner, nil))
	res, err := rules.AddRule(t.Context(), &controlv1.AddRuleRequest{Rule: r})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := rules.RemoveRule(t.Context(), &controlv1.RemoveRuleRequest{RuleId: res.GetRule().GetRuleId()}); err != nil {
			t.Fatal(err)
		}
	}
}
