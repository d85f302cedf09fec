package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	"throwbar.dev/throwbar/catalog/catalogtest"
	client "throwbar.dev/throwbar/clients/go"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/store"
)

// resumed is an agent whose server is killed with a turn in it, and a device that counts what it did.
type resumed struct {
	*victim

	scripted     *modeltest.Server
	device       string
	tape         *tape
	conversation string
}

func newResumed(t *testing.T, url string, script func(device string) []modeltest.Step) *resumed {
	t.Helper()
	address := apptest.FreeAddress(t)
	r := &resumed{victim: &victim{t: t, dir: t.TempDir(), url: url, address: address}, tape: &tape{opened: map[string]int{}}}
	identities, err := apptest.Enrol(t.Context(), store.Config{Dir: r.dir, URL: url}, "http://"+address, 1)
	if err != nil {
		t.Fatal(err)
	}
	r.device = identities[0].DeviceID
	r.scripted = modeltest.NewServer(t, script(r.device)...)
	r.model = r.scripted.URL
	runHandler(t, client.DeviceConfig{Identity: identities[0], Handler: r.tape, Actions: []string{"openTab", "closeTabs"}})
	return r
}

// begin starts the server, waits for the device, and says something that nobody waits for.
func (r *resumed) begin(halt string, asking bool) {
	r.t.Helper()
	r.start(halt)
	r.t.Cleanup(r.kill)
	if asking {
		asks(r.t, r.caller())
	}
	apptest.Eventually(r.t, "the device is there", func() bool {
		res, err := r.server().Devices(r.t).ListDevices(r.t.Context(), &controlv1.ListDevicesRequest{})
		return err == nil && len(res.GetDevices()) > 0 && res.GetDevices()[0].GetOnline()
	})
	res, err := agentv1connect.NewAgentServiceClient(r.caller()).Send(r.t.Context(), &agentv1.SendRequest{Message: "do it"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.conversation = res.GetConversationId()
}

// again is kill -9, and the start after it.
func (r *resumed) again(halt string) {
	r.t.Helper()
	r.kill()
	r.start(halt)
}

// waits is the approval that is pending.
func (r *resumed) waits() *controlv1.Approval { return pendingOf(r.t, r.server()) }

func pendingOf(t *testing.T, s *apptest.Server) (a *controlv1.Approval) {
	t.Helper()
	apptest.Eventually(t, "an approval is pending", func() bool {
		res, err := approvals(t, s).ListApprovals(t.Context(), &controlv1.ListApprovalsRequest{PendingOnly: proto.Bool(true)})
		if err != nil || len(res.GetApprovals()) != 1 {
			return false
		}
		a = res.GetApprovals()[0]
		return true
	})
	return a
}

func (r *resumed) decide(req *controlv1.DecideRequest) {
	r.t.Helper()
	res, err := approvals(r.t, r.server()).Decide(r.t.Context(), req)
	if err != nil || res.GetOutcomes()[0].GetError() != nil {
		r.t.Fatalf("decide: %v, %v", res, err)
	}
}

// resumes waits until the turn has gone on so many times.
func (r *resumed) resumes(n int) {
	r.t.Helper()
	apptest.Eventually(r.t, "the turn goes on", func() bool {
		s := r.server()
		res, err := agentv1connect.NewAgentServiceClient(s.Client(r.t, s.Owner, nil)).
			ListEvents(r.t.Context(), &agentv1.ListEventsRequest{ConversationId: r.conversation})
		got := record{res.GetEvents()}
		return err == nil && got.count(func(e *agentv1.Event) bool { return e.GetTurnResumed() != nil }) == n
	})
}

// ended waits for the end of the turn and gives its events.
func (r *resumed) ended() *record { return endedTurn(r.t, r.server(), r.conversation) }

// record is the events of a conversation.
type record struct{ events []*agentv1.Event }

func endedTurn(t *testing.T, s *apptest.Server, conversation string) *record {
	t.Helper()
	agents := agentv1connect.NewAgentServiceClient(s.Client(t, s.Owner, nil))
	out := &record{}
	apptest.Eventually(t, "the turn has ended", func() bool {
		res, err := agents.ListEvents(t.Context(), &agentv1.ListEventsRequest{ConversationId: conversation})
		if err != nil || len(res.GetEvents()) == 0 {
			return false
		}
		out.events = res.GetEvents()
		return out.events[len(out.events)-1].GetTurnEnded() != nil
	})
	return out
}

// count counts the events for which a function is true.
func (r *record) count(is func(*agentv1.Event) bool) (n int) {
	for _, e := range r.events {
		if is(e) {
			n++
		}
	}
	return n
}

func (r *record) results() (out []*agentv1.ToolResult) {
	for _, e := range r.events {
		if e.GetToolResult() != nil {
			out = append(out, e.GetToolResult())
		}
	}
	return out
}

// check holds a turn against what it must be: answered, resumed so many times, with each call once.
func (r *record) check(t *testing.T, calls, resumes int) {
	t.Helper()
	if got := r.events[len(r.events)-1].GetTurnEnded().GetReason(); got != agentv1.TurnEnd_TURN_END_ANSWERED {
		t.Errorf("the turn ended %v: %v", got, r.events)
	}
	n := r.count(func(e *agentv1.Event) bool { return e.GetTurnResumed() != nil })
	made := r.count(func(e *agentv1.Event) bool { return e.GetToolCall() != nil })
	if n != resumes || made != calls || len(r.results()) != calls {
		t.Errorf("%d resumes, %d calls, %d results: %v", n, made, len(r.results()), r.events)
	}
	open := map[string]int{}
	for _, e := range r.events {
		open[e.GetApprovalRequested().GetApprovalId()]++
		open[e.GetApprovalResolved().GetApprovalId()]--
	}
	delete(open, "")
	for id, n := range open {
		if n != 0 {
			t.Errorf("approval %s: %d more requests than ends: %v", id, n, r.events)
		}
	}
}

func opening(device string, urls ...string) modeltest.Reply {
	var reply modeltest.Reply
	for _, url := range urls {
		reply.Calls = append(reply.Calls, modeltest.NewCall("openTab", map[string]any{"deviceId": device, "url": url}))
	}
	return reply
}

// TestApprovalCase03 kills the server after a command was done and before the model has answered to it: the turn goes on
// with the result that it has, and the command is not run again.
func TestApprovalCase03(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		url := "https://case3.example/"
		r := newResumed(t, cfg.Store.URL, func(device string) []modeltest.Step {
			return []modeltest.Step{
				opening(device, url),
				modeltest.Reply{Text: "never said", Hold: make(chan struct{})},
				modeltest.Func(func(got *modeltest.Received) modeltest.Reply {
					if !strings.Contains(got.Result("openTab"), `"ok":true`) {
						t.Errorf("the model is told: %s", got.Result("openTab"))
					}
					return modeltest.Text("opened")
				}),
			}
		})
		r.begin(haltNever, false)
		if _, err := r.scripted.Await(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		r.again(haltNever)
		r.ended().check(t, 1, 1)
		if r.tape.times(url) != 1 {
			t.Errorf("it was opened %d times", r.tape.times(url))
		}
	})
}

// TestApprovalCase04 kills the server three times while the second of two calls waits for a person: what was done before
// is not done again, and the model is not asked again.
func TestApprovalCase04(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		before, gate := "https://before.example/", "https://gate.example/"
		r := newResumed(t, cfg.Store.URL, func(device string) []modeltest.Step {
			return []modeltest.Step{opening(device, before, gate), modeltest.Text("both are open")}
		})
		r.begin(haltNever, true)
		r.decide(approve(r.waits()))
		var a *controlv1.Approval
		apptest.Eventually(t, "the second call waits", func() bool {
			a = r.waits()
			return a.GetCalls()[0].GetProposed().GetOpenTab().GetUrl() == gate
		})
		for n := range 3 {
			r.again(haltNever)
			r.resumes(n + 1)
			if got := r.waits(); got.GetApprovalId() != a.GetApprovalId() {
				t.Fatalf("another approval waits: %v", got)
			}
			if r.tape.times(before) != 1 || r.tape.times(gate) != 0 {
				t.Fatalf("opened %d and %d times", r.tape.times(before), r.tape.times(gate))
			}
		}
		r.decide(approve(a))
		r.ended().check(t, 2, 3)
		if r.tape.times(before) != 1 || r.tape.times(gate) != 1 || len(r.scripted.Requests()) != 2 {
			t.Errorf("opened %d and %d times, the model was asked %d times", r.tape.times(before), r.tape.times(gate), len(r.scripted.Requests()))
		}
	})
}

// TestWhatWasDecidedAroundAKill comes back to the turn as it was decided: approved before the start was written or sent,
// denied, or expired while nothing ran.
func TestWhatWasDecidedAroundAKill(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		halt    string
		yes, no bool
		skew    time.Duration
		outcome agentv1.Outcome
		says    string
		times   int
	}{
		"approved, not started": {haltDecided, true, false, 0, agentv1.Outcome_OUTCOME_SUCCEEDED, `"ok":true`, 1},
		"started, not sent":     {haltStarting, true, false, 0, agentv1.Outcome_OUTCOME_SUCCEEDED, `"ok":true`, 1},
		"denied":                {haltNever, false, true, 0, agentv1.Outcome_OUTCOME_DENIED, "not this one", 0},
		"expired":               {haltNever, false, false, 80 * time.Hour, agentv1.Outcome_OUTCOME_FAILED, "approval_timed_out", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, cfg app.Config) {
				url := "https://decided.example/"
				r := newResumed(t, cfg.Store.URL, func(device string) []modeltest.Step {
					return []modeltest.Step{opening(device, url)}
				})
				r.scripted.SetRule(modeltest.Text("that is how it ended")) // once more if the kill came while it was said
				r.begin(row.halt, true)
				a := r.waits()
				switch {
				case row.yes:
					r.decide(approve(a))
					r.await("halted")
				case row.no:
					r.decide(denial(a, "not this one"))
				}
				r.skew = row.skew
				r.again(haltNever)
				got := r.ended()
				results := got.results()
				if len(results) != 1 || results[0].GetOutcome() != row.outcome || !strings.Contains(results[0].GetContent(), row.says) {
					t.Errorf("results: %v", results)
				}
				if r.tape.times(url) != row.times {
					t.Errorf("it was opened %d times", r.tape.times(url))
				}
			})
		})
	}
}

// A stop that was written down before the kill still stops: what the turn waited for is taken back, and nobody can say yes
// to it any more.
func TestAStopThatAKillOvertook(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		url := "https://stopped.example/"
		r := newResumed(t, cfg.Store.URL, func(device string) []modeltest.Step { return []modeltest.Step{opening(device, url)} })
		r.begin(haltNever, true)
		a := r.waits()
		r.kill()
		cfg.DataDir = r.dir
		if _, err := database(t, cfg).ExecContext(t.Context(), "update agt_turn set stopping = true where state = 'running'"); err != nil {
			t.Fatal(err)
		}
		r.start(haltNever)
		got := r.ended()
		if end := got.events[len(got.events)-1].GetTurnEnded().GetReason(); end != agentv1.TurnEnd_TURN_END_STOPPED || len(got.results()) != 1 {
			t.Errorf("events: %v", got.events)
		}
		apptest.Eventually(t, "the approval is withdrawn", func() bool {
			res, err := approvals(t, r.server()).GetApproval(t.Context(), &controlv1.GetApprovalRequest{ApprovalId: a.GetApprovalId()})
			return err == nil && res.GetApproval().GetState() == controlv1.ApprovalState_APPROVAL_STATE_WITHDRAWN
		})
		if r.tape.times(url) != 0 {
			t.Error("it was opened")
		}
	})
}

// askedByAnAgent is a server with the stranger whose agent was asked to brew, and that is stopped while it waits.
func askedByAnAgent(t *testing.T, cfg app.Config) (app.Config, *kettle, string, *modeltest.Server) {
	t.Helper()
	cfg.DataDir, cfg.Image = t.TempDir(), strangerImage(t)
	scripted := modeltest.NewServer(t)
	cfg.Model = app.ModelConfig{Name: "scripted", BaseURL: scripted.URL, Key: modeltest.Key}
	s := apptest.Start(t, cfg)
	k := startKettle(t, s)
	asks(t, s.Client(t, s.Owner, nil))
	scripted.Add(modeltest.Reply{Unchecked: true, Calls: []modeltest.Call{
		modeltest.NewCall("brewDrink", fmt.Sprintf(`{"deviceId":%q,"drink":"tea","cups":3}`, k.id)),
	}}, modeltest.Text("that is how it ended"))
	res, err := agentv1connect.NewAgentServiceClient(s.Client(t, s.Owner, nil)).Send(t.Context(), &agentv1.SendRequest{Message: "tea"})
	if err != nil {
		t.Fatal(err)
	}
	pendingOf(t, s)
	s.Stop()
	return cfg, k, res.GetConversationId(), scripted
}

// TestApprovalCase05InATurn: the command is gone, or has another name, when the turn goes on. What it waited for is taken
// back, and the turn is told why.
func TestApprovalCase05InATurn(t *testing.T) {
	t.Parallel()
	renamed := catalogtest.Command{
		Name: "PourDrink", Member: "pour_drink", Number: strangerNumber, Source: strings.ReplaceAll(strangerProto, "BrewDrink", "PourDrink"),
	}
	for name, image := range map[string][]byte{"gone": nil, "renamed": catalogtest.Image(t, renamed)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, cfg app.Config) {
				cfg, k, conversation, _ := askedByAnAgent(t, cfg)
				cfg.Image = image
				s := apptest.Start(t, cfg)
				got := endedTurn(t, s, conversation)
				got.check(t, 1, 1)
				results := got.results()
				if results[0].GetOutcome() != agentv1.Outcome_OUTCOME_FAILED || !strings.Contains(results[0].GetContent(), "cannot run") {
					t.Errorf("results: %v", results)
				}
				if got.count(func(e *agentv1.Event) bool { return e.GetNotice().GetCode() == "tool_gone" }) != 1 {
					t.Errorf("nothing is shown: %v", got.events)
				}
				list, err := approvals(t, s).ListApprovals(t.Context(), &controlv1.ListApprovalsRequest{})
				if err != nil || len(list.GetApprovals()) != 1 || list.GetApprovals()[0].GetState() != controlv1.ApprovalState_APPROVAL_STATE_WITHDRAWN {
					t.Errorf("the approval: %v, %v", list, err)
				}
				if len(k.brewed) != 0 {
					t.Errorf("it was brewed: %q", k.brewed)
				}
			})
		})
	}
}

// TestApprovalCase15InATurn: a turn that waits goes on in a newer server, whose command has a field more and whose schema
// has an index and columns more than the one that wrote the database.
func TestApprovalCase15InATurn(t *testing.T) {
	t.Parallel()
	newer := catalogtest.Image(t, catalogtest.Command{
		Name: "BrewDrink", Member: "brew_drink", Number: strangerNumber,
		Source: strings.Replace(strangerProto, "  // What brewing came to.", "  // How hot, in degrees.\n  uint32 heat = 3;\n  // What brewing came to.", 1),
	})
	onEach(t, func(t *testing.T, cfg app.Config) {
		cfg, k, conversation, _ := askedByAnAgent(t, cfg)
		pool := database(t, cfg)
		for _, statement := range []string{
			"drop index srv_command_by_act", "alter table srv_command drop column act_targets", "alter table srv_command drop column act",
			"alter table srv_command drop column undone", "alter table srv_command drop column undo_targets",
			"alter table srv_command drop column undoes", "drop index srv_command_by_request", "delete from goose_db_version where version_id >= 8",
		} {
			if _, err := pool.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if err := pool.Close(); err != nil {
			t.Fatal(err)
		}
		cfg.Image = newer
		s := apptest.Start(t, cfg)
		k.connect(t, s)
		out, err := approvals(t, s).Decide(t.Context(), approve(pendingOf(t, s)))
		if err != nil || out.GetOutcomes()[0].GetError() != nil {
			t.Fatalf("decide: %v, %v", out, err)
		}
		got := endedTurn(t, s, conversation)
		got.check(t, 1, 1)
		if r := got.results()[0]; r.GetOutcome() != agentv1.Outcome_OUTCOME_SUCCEEDED || !strings.Contains(r.GetContent(), `"brewedCount":3`) {
			t.Errorf("result: %v", r)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if want := "\x0a\x03tea\x10\x03"; len(k.brewed) != 1 || string(k.brewed[0]) != want {
			t.Errorf("the device got %q, want %q", k.brewed, want)
		}
	})
}
