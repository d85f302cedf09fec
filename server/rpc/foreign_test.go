package rpc_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

const nobody = "22222222-3333-4444-8555-666666666666"

// estate is what one workspace has.
type estate struct {
	token  string
	device *devicev1.PairResponse
	link   rawLink
	ids    map[string]string // by kind
}

// twoWorkspaces are a victim with something of everything, and a thief with a device.
func twoWorkspaces(t *testing.T) (s *apptest.Server, victim, thief estate) {
	t.Helper()
	s = apptest.Start(t, app.Config{Model: app.ModelConfig{Name: "none", BaseURL: "http://127.0.0.1:1", Key: "x"}})
	made, err := controlv1connect.NewWorkspaceServiceClient(s.Client(t, s.Owner, nil)).CreateWorkspace(
		t.Context(), &controlv1.CreateWorkspaceRequest{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	victim, thief = estate{token: s.Owner}, estate{token: made.GetSecret()}
	for _, e := range []*estate{&victim, &thief} {
		name := map[bool]string{true: "secret laptop", false: "laptop"}[e == &victim]
		client := s.Client(t, e.token, nil)
		code, err := controlv1connect.NewDevicesServiceClient(client).CreatePairingCode(t.Context(), &controlv1.CreatePairingCodeRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if e.device, err = s.Device(t, "").Pair(t.Context(), &devicev1.PairRequest{
			Code: code.GetCode(), Name: name, Kind: devicev1.Kind_KIND_BROWSER,
		}); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, s, &victim, "secret page")
	return s, victim, thief
}

// settle gives the victim a browser with tabs, commands, a plan, a saved tab and a conversation.
func settle(t *testing.T, s *apptest.Server, v *estate, title string) {
	t.Helper()
	id := v.device.GetDeviceId()
	var welcome *devicev1.Welcome
	actions := []string{"closeTabs", "saveTabs", "openTab"}
	v.link, welcome = dial(t, s, v.device, dialConnect, &devicev1.Hello{Actions: actions})
	if err := v.link.send(snapshot(id, tab(id, "1", "https://secret.test/", title), tab(id, "2", "https://secret.test/2", title))); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the tabs are known", func() bool {
		res, err := s.Browser(t).ListTabs(t.Context(), &controlv1.ListTabsRequest{})
		return err == nil && len(res.GetTabs()) == 2
	})
	commands := s.Commands(t)
	done := dispatch(t.Context(), t, s, closing(id+"_tb1-1"))
	c := next(t, v.link).GetCommand()
	if err := v.link.send(outcome(closedOutcome(c.GetCommandId(), id+"_tb1-1"))); err != nil {
		t.Fatal(err)
	}
	a := <-done
	if a.err != nil || len(a.res.GetOutcomes()[0].GetSavedIds()) != 1 {
		t.Fatalf("close: %v, %v", a.res, a.err)
	}
	plan := closing(id + "_tb1-2")
	plan.DryRun = true
	planned, err := commands.Dispatch(t.Context(), plan)
	if err != nil || planned.GetPlanHash() == "" {
		t.Fatal(planned, err)
	}
	pending, err := commands.Submit(t.Context(), &controlv1.SubmitRequest{
		Action: closing(id + "_tb1-2").GetAction(), Ttl: durationpb.New(5 * time.Minute),
	})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := controlv1connect.NewTokenServiceClient(s.Client(t, v.token, nil)).ListTokens(t.Context(), &controlv1.ListTokensRequest{})
	if err != nil {
		t.Fatal(err)
	}
	page := func(id string) string {
		return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", time.Now().Add(time.Hour).UnixMilli(), id))
	}
	saved := a.res.GetOutcomes()[0].GetSavedIds()[0]
	v.ids = map[string]string{
		"device": id, "tab": id + "_tb1-2", "window": id + "_wb1-1", "group": id + "_gb1-1", "link": welcome.GetLinkId(),
		"command": c.GetCommandId(), "pending": pending.GetOutcomes()[0].GetCommandId(), "saved": saved,
		"plan": planned.GetPlanHash(), "token": tokens.GetTokens()[0].GetTokenId(), "conversation": converse(t, s, v.token),
		"command page": page(c.GetCommandId()), "saved page": page(saved), "conversation page": fmt.Sprintf("%d_%s", time.Now().Add(time.Hour).UnixMilli(), nobody), "offset": "o0", "event page": "0",
		"cursor": "0", "hash": planned.GetPlanHash(), "anchor": "AAAA", "rule": nobody, "approval": nobody, "message": victimsMessage,
	}
	govern(t, s, v)
}

// victimsMessage is the id of what the victim said.
const victimsMessage = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

// converse begins a conversation. Its model cannot be reached, which is enough for one to be there.
func converse(t *testing.T, s *apptest.Server, token string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	chat, err := agentv1connect.NewAgentServiceClient(s.Client(t, token, nil)).Chat(
		ctx, &agentv1.ChatRequest{Message: "secret plan", MessageId: proto.String(victimsMessage)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = chat.Close() }()
	first, err := chat.Receive()
	if err != nil {
		t.Fatal(err)
	}
	return first.GetAccepted().GetConversationId()
}

// govern gives the victim a rule and an approval, where the server has them.
func govern(t *testing.T, s *apptest.Server, v *estate) {
	t.Helper()
	client := s.Client(t, v.token, nil)
	if !registered(t, s, "throwbar.control.v1.PolicyService") {
		return
	}
	rule, err := controlv1connect.NewPolicyServiceClient(client).AddRule(t.Context(), &controlv1.AddRuleRequest{
		Rule: &controlv1.PolicyRule{Verdict: controlv1.Verdict_VERDICT_ASK, Tool: "openTab", Note: "secret rule"},
	})
	if err != nil {
		t.Fatal(err)
	}
	v.ids["rule"] = rule.GetRule().GetRuleId()
	if !registered(t, s, "throwbar.control.v1.ApprovalService") {
		return
	}
	approvals := controlv1connect.NewApprovalServiceClient(client)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	watch, err := approvals.WatchApprovals(ctx, &controlv1.WatchApprovalsRequest{})
	if err == nil {
		_, err = watch.Receive() // from here on somebody is there to ask
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commands(t).Submit(t.Context(), &controlv1.SubmitRequest{
		DeviceIds: []string{v.device.GetDeviceId()}, Ttl: durationpb.New(5 * time.Minute),
		Action: &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://secret.test/"}}},
	}); err != nil {
		t.Fatal(err)
	}
	list, err := approvals.ListApprovals(t.Context(), &controlv1.ListApprovalsRequest{})
	if err != nil || len(list.GetApprovals()) == 0 {
		t.Fatalf("nothing waits for an approval: %v, %v", list, err)
	}
	v.ids["approval"], v.ids["hash"] = list.GetApprovals()[0].GetApprovalId(), list.GetApprovals()[0].GetHash()
}

// noneOf is an id of the same shape that nobody has.
func noneOf(kind, id, device string) string {
	if strings.Contains(id, device) && device != "" {
		return strings.ReplaceAll(id, device, "zzzzzzzzzz")
	}
	switch kind {
	case "offset", "cursor", "event page", "anchor", "command page", "saved page", "conversation page":
		return id
	case "plan", "hash":
		return strings.Repeat("0", len(id))
	default:
		return nobody
	}
}

// Security 20: an id of another workspace is an id that nobody has, in every field of every request.
func TestSecurity20IDsOfAnotherWorkspaceAreNotFound(t *testing.T) {
	t.Parallel()
	s, victim, thief := twoWorkspaces(t)
	own := thief.device.GetDeviceId()
	// The thief's own device is there, so that what is its own is answered.
	l, _ := dial(t, s, thief.device, dialConnect, &devicev1.Hello{Actions: []string{"moveTabs"}})
	if err := l.send(snapshot(own, tab(own, "1", "https://own.test/", "own"))); err != nil {
		t.Fatal(err)
	}
	client := s.Client(t, thief.token, nil)
	cases, wraps := foreignCases(), actionWraps()
	all := ours()
	slices.SortStableFunc(all, func(a, b protoreflect.MethodDescriptor) int {
		last := func(m protoreflect.MethodDescriptor) int { // what it makes would change the answers of others
			return map[bool]int{true: 1}[m.Name() == "AddRule"]
		}
		return last(a) - last(b)
	})
	for _, m := range all {
		service := string(m.Parent().Name())
		if service == "DeviceService" {
			continue // TestSecurity20DevicesReachNothingOfAnotherWorkspace
		}
		there := registered(t, s, m.Parent().FullName())
		for _, path := range idFields(m.Input()) {
			key := service + "." + string(m.Name()) + " " + path
			todo := map[string]foreignCase{}
			if c, ok := cases[key]; ok {
				todo[key] = c
				delete(cases, key)
			} else if wrap, ok := wraps[key]; ok {
				for field, c := range actionCases() {
					c.request = strings.Replace(wrap, "ACTION", c.request, 1)
					if service != "CommandService" {
						c.want = same
					}
					todo[key+"."+field] = c
				}
				delete(wraps, key)
			} else {
				t.Errorf("%s is an id, and no case of foreign_cases_test.go fills it", key)
			}
			for name, c := range todo {
				if there {
					compare(t, name, c, victim, own, func(request string, within time.Duration) string {
						return answerOf(t, client, m, request, within)
					})
				}
			}
		}
	}
	for key := range cases {
		t.Errorf("%s is in no request", key)
	}
	for key := range wraps {
		t.Errorf("%s is in no request", key)
	}
	untouched(t, s, victim)
}

// Every field of a command's arguments has a case.
func TestSecurity20EveryArgumentThatIsAnIDIsTried(t *testing.T) {
	t.Parallel()
	cases := actionCases()
	for _, path := range idFields((&commandv1.Action{}).ProtoReflect().Descriptor()) {
		if _, ok := cases[path]; !ok {
			t.Errorf("%s is an id, and no case of foreign_cases_test.go fills it", path)
		}
		delete(cases, path)
	}
	for path := range cases {
		t.Errorf("%s is no argument", path)
	}
}

// compare makes a request with the victim's id and with one that nobody has.
func compare(t *testing.T, name string, c foreignCase, victim estate, own string, ask func(request string, within time.Duration) string) {
	t.Helper()
	theirs, ok := victim.ids[c.kind]
	if !ok {
		t.Errorf("%s: the victim has no %s", name, c.kind)
		return
	}
	device := victim.device.GetDeviceId()
	none := noneOf(c.kind, theirs, device)
	fill := strings.NewReplacer("OWN", own, "FOREIGN", victim.ids["conversation"])
	var got, want string
	found := false
	// What a stream says within a time depends on the machine: what is not as it should be is looked at again for longer.
	for within := answersWithin; within < time.Minute; within *= 5 {
		with := func(id string) string {
			return ask(strings.ReplaceAll(fill.Replace(c.request), "ID\"", id+"\""), within)
		}
		got, want = plain(with(theirs), theirs, device), plain(with(none), none, "zzzzzzzzzz")
		found = strings.Contains(strings.ToLower(got), "not_found")
		if c.want == clean || got == want && (found || c.want != missing) {
			break
		}
	}
	if c.want != clean && got != want {
		t.Errorf("%s: the answer to an id of another workspace differs:\n%s\n%s", name, got, want)
	}
	for _, secret := range []string{"secret", device, victim.ids["command"], victim.ids["pending"], victim.ids["saved"]} {
		if strings.Contains(got, secret) {
			t.Errorf("%s: the answer has %q of the other workspace:\n%s", name, secret, got)
		}
	}
	switch {
	case c.want == missing && !found:
		t.Errorf("%s: it is not said that it is not there: %s", name, got)
	case c.want == clean && strings.Contains(got, "invalid_argument"):
		t.Errorf("%s: the list was not read: %s", name, got)
	case c.want == empty && (found || strings.Contains(got, "<id>")):
		t.Errorf("%s: not empty: %s", name, got)
	}
}

// plain takes out of an answer what differs from call to call: the id that was asked for, ids that are new, and times.
func plain(answer, id, device string) string {
	answer = strings.ReplaceAll(answer, id, "<id>")
	answer = strings.ReplaceAll(answer, device, "<device>")
	answer = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`).ReplaceAllString(answer, "<new>")
	answer = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`).ReplaceAllString(answer, "<time>")
	return regexp.MustCompile(`"(cursor|version|epoch|seconds|nanos|expiresIn|sequence|planHash)":\s*("[^"]*"|\d+)`).ReplaceAllString(answer, "<$1>")
}

// answerOf makes a call and writes down what came back: the messages, or the error with all that it says. A stream that
// goes on is left after a time.
func answerOf(t *testing.T, client *connect.Client, m protoreflect.MethodDescriptor, request string, within time.Duration) string {
	t.Helper()
	in := dynamicpb.NewMessage(m.Input())
	if err := protojson.Unmarshal([]byte(request), in); err != nil {
		t.Fatalf("%s: %s: %v", m.FullName(), request, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watches := m.IsStreamingServer() && !m.IsStreamingClient() // it would go on for ever
	if watches {
		timer := time.AfterFunc(within, cancel)
		defer timer.Stop()
	}
	stream, err := client.CallClientStream(ctx, connect.Spec{
		StreamType: connect.StreamTypeBidi, Schema: m, Procedure: "/" + string(m.Parent().FullName()) + "/" + string(m.Name()),
	})
	if err != nil {
		return told(err)
	}
	defer func() { _ = stream.Close() }()
	_ = stream.Send(in) // receive says more
	_ = stream.CloseSend()
	var all []string
	for {
		out := dynamicpb.NewMessage(m.Output())
		err := stream.Receive(out)
		switch {
		case err == nil:
			raw, err := protojson.MarshalOptions{}.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, strings.ReplaceAll(string(raw), `": `, `":`))
			if !m.IsStreamingServer() {
				return strings.Join(all, "\n")
			}
			continue
		case errors.Is(err, io.EOF), watches && ctx.Err() != nil:
		default:
			all = append(all, told(err))
		}
		return strings.Join(all, "\n")
	}
}

func told(err error) string {
	var ce *connect.Error
	if !errors.As(err, &ce) {
		return err.Error()
	}
	out := ce.Code().String() + ": " + ce.Message()
	for _, d := range ce.Details() {
		out += fmt.Sprintf("\n%s %q", d.Type, d.Value)
	}
	return out
}

// untouched is a check that the victim has all that it had.
func untouched(t *testing.T, s *apptest.Server, victim estate) {
	t.Helper()
	got, err := s.Commands(t).GetCommand(t.Context(), &controlv1.GetCommandRequest{CommandId: victim.ids["pending"]})
	if err != nil || got.GetCommand().GetState() != controlv1.State_STATE_SENT {
		t.Errorf("the victim's command: %v, %v", got, err)
	}
	list, err := s.Devices(t).ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
	if err != nil || len(list.GetDevices()) != 1 || !list.GetDevices()[0].GetOnline() || list.GetDevices()[0].GetName() != "secret laptop" {
		t.Errorf("the victim's devices: %v, %v", list, err)
	}
	tabs, err := s.Browser(t).ListTabs(t.Context(), &controlv1.ListTabsRequest{})
	if err != nil || len(tabs.GetTabs()) != 2 {
		t.Errorf("the victim's tabs: %v, %v", tabs, err)
	}
}
