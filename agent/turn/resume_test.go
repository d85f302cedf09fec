package turn_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/agenttest"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/tool/tooltest"
	"throwbar.dev/throwbar/agent/turn"
	"throwbar.dev/throwbar/catalog"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// label is a command whose arguments each profile writes in its own way, and of which a part is hidden.
const label = `
// Put labels on things.
message Label {
  option (throwbar.option.v1.command) = { effect: EFFECT_REVERSIBLE approval: APPROVAL_AUTO };
  // Labels by thing.
  map<string, string> labels = 1;
  // How often.
  optional int32 times = 2;
  // What opens the box of labels.
  string secret = 3 [(throwbar.option.v1.sensitive) = true];
  // What happened.
  message Result {
    // How many.
    int32 count = 1;
  }
}`

// putLabels is how that command ends.
func putLabels(*commandv1.Action) *commandv1.Result {
	result := &commandv1.Result{}
	result.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 5000, protowire.BytesType), nil))
	return result
}

// labelled makes the tools with that command.
func labelled(t *testing.T) *tool.Set {
	t.Helper()
	c, err := catalog.New(tooltest.Image(t, label, "put_labels", "Label", "Put labels on things."))
	if err != nil {
		t.Fatal(err)
	}
	tools, err := tool.NewSet(c)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// play is a scripted turn that is cut at some step, and goes on in a second process.
type play struct {
	tools   *tool.Set
	script  [][]model.Call // by answer
	says    map[int]string // what a person says once so many answers were given
	falls   bool           // the first model does not answer
	cost    int64          // of one answer, in tokens
	shorten bool           // the history is made shorter at the cut

	mu       sync.Mutex
	cancel   context.CancelCauseFunc // ends the process
	left     int                     // steps until the cut
	steps    int
	dead     bool
	stored   journal
	answered int
	world    *agenttest.World
	done     map[string]*controlv1.DispatchResponse // by key
	facility map[string]error                       // by key
	effects  []string
}

var errCut = errors.New("the process is gone")

// step is a point at which the process may end. It says whether it has.
func (p *play) step() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps++
	if p.left--; p.left == 0 {
		p.dead = true
		p.cancel(turn.ErrShutdown)
	}
	return p.dead
}

func (p *play) Next(context.Context) (turn.Step, error) {
	if p.step() {
		return turn.Step{}, errCut
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	step := turn.Step{Choices: []turn.Choice{{Name: "first", Model: p}, {Name: "second", Model: second{p}}}}
	if !p.falls {
		step.Choices = step.Choices[:1]
	}
	if said, ok := p.says[p.answered]; ok {
		delete(p.says, p.answered)
		step.Messages = []model.Message{{Role: model.RoleUser, Text: said}}
		p.stored.messages = append(p.stored.messages, step.Messages...)
		p.stored.events = append(p.stored.events, &agentv1.Event{Kind: &agentv1.Event_Message{Message: &agentv1.Message{
			Role: agentv1.Role_ROLE_USER, Text: said,
		}}})
	}
	return step, nil
}

func (p *play) Record(ctx context.Context, entry turn.Entry) error {
	if p.step() {
		return errCut
	}
	p.mu.Lock()
	for _, m := range entry.Messages {
		if len(m.Calls) > 0 {
			p.answered++
		}
	}
	p.mu.Unlock()
	if err := p.stored.Record(ctx, entry); err != nil {
		return err
	}
	if p.step() {
		return errCut
	}
	return nil
}

func (p *play) Delta(*agentv1.Event) {}

// Complete is what the model says: always the same after the same number of answers.
func (p *play) Complete(ctx context.Context, _ model.Request, _ model.Sink) (model.Turn, error) {
	if p.step() {
		return model.Turn{}, context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.falls {
		return model.Turn{}, &model.APIError{Status: 401, Message: "no such key"}
	}
	return p.answer(), nil
}

func (p *play) answer() model.Turn {
	out := model.Turn{Text: "That is all.", Finish: model.FinishStop}
	if p.answered < len(p.script) {
		out = model.Turn{Calls: slices.Clone(p.script[p.answered])}
	}
	out.Usage = model.Usage{Prompt: p.cost, Completion: 10}
	return out
}

type second struct{ *play }

func (s second) Complete(ctx context.Context, _ model.Request, _ model.Sink) (model.Turn, error) {
	if s.step() {
		return model.Turn{}, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer(), nil
}

// Command does what it does once for a key.
func (p *play) Command(ctx context.Context, call turn.Call) (*controlv1.DispatchResponse, error) {
	if p.step() {
		return nil, context.Cause(ctx)
	}
	p.mu.Lock()
	res := p.done[call.Key]
	p.mu.Unlock()
	if res == nil {
		var err error
		if res, err = p.world.Command(ctx, call); err != nil {
			return nil, err
		}
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(call.Action)
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		p.done[call.Key] = res
		p.effects = append(p.effects, fmt.Sprintf("%q on %q", raw, call.DeviceIDs))
		p.mu.Unlock()
	}
	if p.step() {
		return nil, context.Cause(ctx)
	}
	return res, nil
}

func (p *play) Withdraw(_ context.Context, call turn.Call, _ string) (*controlv1.DispatchResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done[call.Key], nil
}

func (p *play) Query(ctx context.Context, query turn.Query) (proto.Message, error) {
	if p.step() {
		return nil, context.Cause(ctx)
	}
	return p.world.Query(ctx, query)
}

func (p *play) Call(ctx context.Context, call turn.FacilityCall) (proto.Message, error) {
	if p.step() {
		return nil, context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	err, known := p.facility[call.Key]
	if !known {
		if id := call.Request.ProtoReflect().Get(call.Entry.In.Fields().ByName("command_id")).String(); id == "bad" {
			err = &turn.Refusal{Code: commandv1.ErrorCode_ERROR_CODE_NOT_FOUND, Message: "there is nothing to undo"}
		} else {
			p.effects = append(p.effects, "undo "+id)
		}
		p.facility[call.Key] = err
	}
	if err != nil {
		return nil, err
	}
	return &agentv1.Undo_Result{UndoneCommandIds: []string{"c"}}, nil
}

// process runs the turn until it or the process ends.
func (p *play) process(t *testing.T, resumed bool) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	p.cancel, p.dead = cancel, false
	if resumed {
		p.stored.events = append(p.stored.events, &agentv1.Event{Kind: &agentv1.Event_TurnResumed{TurnResumed: &agentv1.TurnResumed{}}})
	}
	runner := turn.New(turn.Config{
		Tools: p.tools, Commander: p, Querier: p, Facilities: p, Random: zeros{}, Log: slog.New(slog.DiscardHandler), Rounds: 10, Tokens: 1200,
	})
	err := runner.Run(ctx, turn.Task{
		Workspace: "w", Conversation: "c1", Root: "c1", TurnID: "t1", Durable: true, Resumed: resumed, Spent: p.stored.spent,
		Past: slices.Clone(p.stored.events), History: slices.Clone(p.stored.messages), Journal: p,
	})
	runner.Wait()
	if err != nil && !errors.Is(err, errCut) {
		t.Fatal(err)
	}
}

// perform plays it, cut at a step; in one piece at none.
func (p *play) perform(t *testing.T, at int) {
	t.Helper()
	p.left = at
	p.stored.messages = []model.Message{{Role: model.RoleUser, Text: "do it"}}
	if p.process(t, false); p.stored.end() != 0 {
		return
	}
	if p.shorten { // all but what the last answer left
		from := len(p.stored.messages)
		for i, m := range p.stored.messages {
			if len(m.Calls) > 0 {
				from = i
			}
		}
		p.stored.messages = append([]model.Message{{Role: model.RoleUser, Text: "in short"}}, p.stored.messages[from:]...)
	}
	p.process(t, true)
}

// told is what came of it: each call with its result, what was noticed, how it ended, and what it did.
func (p *play) told() string {
	var out strings.Builder
	results := map[string]*agentv1.ToolResult{}
	for _, r := range p.stored.results() {
		if results[r.GetCallId()] != nil {
			fmt.Fprintf(&out, "%s has two results\n", r.GetCallId())
		}
		results[r.GetCallId()] = r
	}
	for _, e := range p.stored.events {
		switch kind := e.GetKind().(type) {
		case *agentv1.Event_ToolCall:
			r := results[kind.ToolCall.GetCallId()]
			fmt.Fprintf(&out, "%s %s %s: %v %s\n", kind.ToolCall.GetCallId(), kind.ToolCall.GetName(), strings.ReplaceAll(kind.ToolCall.GetArguments(), "xxxx", ""), r.GetOutcome(), r.GetContent())
		case *agentv1.Event_Notice, *agentv1.Event_Error, *agentv1.Event_ModelChanged, *agentv1.Event_TurnEnded:
			fmt.Fprintln(&out, e)
		}
	}
	fmt.Fprintf(&out, "%d rounds, %d tokens\n%s\n", p.stored.spent.Rounds, p.stored.spent.Tokens, strings.Join(p.effects, "\n"))
	return out.String()
}

// newPlay makes the play of a seed: the same each time.
func newPlay(tools *tool.Set, seed uint64) *play {
	rnd := rand.New(rand.NewPCG(seed, 3))
	p := &play{
		tools: tools, says: map[int]string{}, falls: seed%5 == 0, cost: 90 + int64(seed%4/3)*100, world: agenttest.New(), done: map[string]*controlv1.DispatchResponse{},
		facility: map[string]error{},
	}
	p.world.Stranger = putLabels
	style := rnd.IntN(3) // of a model that goes in circles, one that fails, or any
	for a := range 2 + rnd.IntN(14) {
		var calls []model.Call
		for i := range 1 + rnd.IntN(3) {
			call := model.Call{ID: fmt.Sprintf("call_%d_%d", a, i)}
			call.Name, call.Arguments = anyCall(rnd, style, seed%5 != 1)
			calls = append(calls, call)
		}
		p.script = append(p.script, calls)
		if rnd.IntN(8) == 0 {
			p.says[a+1] = "and be quick"
		}
	}
	return p
}

// anyCall is a call of which there are not many.
func anyCall(rnd *rand.Rand, style int, hides bool) (name, arguments string) {
	few := []string{"a", "b"}[rnd.IntN(2)]
	kind := rnd.IntN(10)
	switch {
	case style == 0: // the same, again and again
		kind %= 4
	case style == 1: // what fails
		kind = 4 + kind%4
	}
	switch kind {
	case 0, 1:
		return "searchTabs", fmt.Sprintf(`{"query":%q}`, few)
	case 2:
		return "openTab", fmt.Sprintf(`{"deviceId":"lap","url":"https://%s.example"}`, few)
	case 3:
		if hides {
			return "putLabels", fmt.Sprintf(`{"deviceId":"lap","secret":%q,"times":null}`, few)
		}
		return "listTabs", `{}`
	case 4:
		return "openTab", fmt.Sprintf(`{"deviceId":"home","url":"https://%d.example"}`, rnd.IntN(9))
	case 5:
		return "undo", `{"commandId":"bad"}`
	case 6:
		return "closeTabs", fmt.Sprintf(`{"tabIdz":[%d]}`, rnd.IntN(3))
	case 7:
		return "keepSecret", strings.Repeat("x", rnd.IntN(2)*5000)
	case 8:
		return "undo", fmt.Sprintf(`{"commandId":%q}`, few)
	default:
		return "findTools", fmt.Sprintf(`{"query":%q}`, few)
	}
}

// Wherever a turn is cut and goes on: it ends as it would have without the cut. No guard and no limit begins anew, nothing is
// counted twice, nothing is done twice, and the model is told the same.
func TestACutChangesNothing(t *testing.T) {
	t.Parallel()
	tools := labelled(t)
	ends := map[string]int{}
	for seed := range uint64(24) {
		whole := newPlay(tools, seed)
		whole.perform(t, 0)
		want := whole.told()
		for _, code := range append(whole.stored.notices(), whole.stored.end().String()) {
			ends[code]++
		}
		for at := 1; at <= whole.steps; at++ {
			p := newPlay(tools, seed)
			p.shorten = seed%5 == 1
			if p.perform(t, at); p.told() != want {
				t.Fatalf("seed %d, cut at step %d of %d:\n%s\nwithout the cut:\n%s", seed, at, whole.steps, p.told(), want)
			}
		}
	}
	for _, code := range []string{"repeated_calls", "repeated_errors", "loop_limit", "token_limit", "TURN_END_ANSWERED"} {
		if ends[code] == 0 {
			t.Errorf("no turn ended with %s: %v", code, ends)
		}
	}
}
