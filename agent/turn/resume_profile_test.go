package turn_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/agenttest"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// once is a world in which a command is done once for a key, whoever calls.
type once struct {
	*agenttest.World
	done   map[string]*controlv1.DispatchResponse
	action *commandv1.Action
	times  int
	halt   func() // when something was done
}

func (o *once) Command(ctx context.Context, call turn.Call) (*controlv1.DispatchResponse, error) {
	if res := o.done[call.Key]; res != nil {
		return res, nil
	}
	res, err := o.World.Command(ctx, call)
	if err != nil {
		return nil, err
	}
	o.done[call.Key], o.action = res, call.Action
	o.times++
	if o.halt != nil {
		o.halt()
		return nil, context.Cause(ctx)
	}
	return res, nil
}

func (o *once) Withdraw(_ context.Context, call turn.Call, _ string) (*controlv1.DispatchResponse, error) {
	return o.done[call.Key], nil
}

// one is a model that makes one call, and then answers.
type one struct{ call model.Call }

func (o one) Complete(_ context.Context, r model.Request, _ model.Sink) (model.Turn, error) {
	if r.Messages[len(r.Messages)-1].Role == model.RoleTool {
		return model.Turn{Text: "done", Finish: model.FinishStop}, nil
	}
	return model.Turn{Calls: []model.Call{o.call}}, nil
}

// halting is a journal whose process is killed after its nth entry.
type halting struct {
	*journal
	left int
	kill func()
}

func (h *halting) Record(ctx context.Context, entry turn.Entry) error {
	if h.left <= 0 {
		return errCut
	}
	if err := h.journal.Record(ctx, entry); err != nil {
		return err
	}
	if h.left--; h.left == 0 {
		h.kill()
	}
	return nil
}

// Each profile has a form of its own for arguments. A call is what it was when the model made it, also if the process ends
// before it is made, or before its result is kept, and if another model is configured when it goes on.
func TestACallIsReadAsItWasMeantAfterARestart(t *testing.T) {
	t.Parallel()
	tools := labelled(t)
	for _, row := range []struct {
		profile   schema.Profile
		arguments string
		strict    bool // nothing is mended
		repairs   int
	}{
		{schema.ProfilePortable, `{"deviceId":"lap","labels":{"cup":"blue"}}`, true, 0},
		{schema.ProfileStrict, `{"deviceId":"lap","labels":[{"key":"cup","value":"blue"}],"times":null,"secret":null}`, true, 0},
		{schema.ProfileGemini, `{"deviceId":"lap","labels":[{"key":"cup","value":"blue"}]}`, true, 0},
		{schema.ProfileLocal, `{"labels":[{"value":"blue","key":"cup"}],"deviceId":"lap"}`, true, 0},
		{schema.ProfilePortable, `{"device_id":"lap","labels":"{\"cup\":\"blue\"}","times":null}`, false, 2},
		{schema.ProfilePortable, `{"deviceId":"lap","labels":[{"key":"cup","value":"blue"}],"secret":null}`, false, 2},
		{schema.ProfileStrict, `"{\"deviceId\":\"lap\",\"labels\":[{\"key\":\"cup\",\"value\":\"blue\"}],\"times\":null}"`, false, 1},
		{schema.ProfileGemini, `{"deviceId":"lap","labels":"[{\"key\":\"cup\",\"value\":\"blue\"}]"}`, false, 1},
	} {
		for _, other := range []schema.Profile{schema.ProfilePortable, schema.ProfileStrict, schema.ProfileGemini} {
			for _, begun := range []bool{false, true} {
				world := &once{World: agenttest.New(), done: map[string]*controlv1.DispatchResponse{}}
				world.Stranger = putLabels
				name := fmt.Sprintf("%s %s, then %s, begun %v", row.profile, row.arguments, other, begun)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				j := &halting{journal: &journal{}, left: 1, kill: func() { cancel(turn.ErrShutdown) }}
				if begun {
					j.left, world.halt = 2, func() { j.left = 0; cancel(turn.ErrShutdown) } // in this order: the turn goes on with the second
				}
				task := turn.Task{
					Workspace: "w", Conversation: "c1", Root: "c1", TurnID: "t1", Durable: true, Journal: j,
					History: []model.Message{{Role: model.RoleUser, Text: "label it"}},
				}
				j.messages = slices.Clone(task.History)
				run := func(ctx context.Context, profile schema.Profile) {
					j.choices = []turn.Choice{{Name: string(profile), Profile: profile, Model: one{model.Call{ID: "call_1", Name: "putLabels", Arguments: row.arguments}}}}
					runner := turn.New(turn.Config{
						Tools: tools, Commander: world, Querier: world, Random: rand.Reader, Log: slog.New(slog.DiscardHandler), Strict: row.strict,
					})
					_ = runner.Run(ctx, task) // the journal fails when the process is gone
					runner.Wait()
				}
				run(ctx, row.profile)
				if j.end() != 0 || begun != (world.times == 1) {
					t.Fatalf("%s: it ended %v, and ran %d times", name, j.end(), world.times)
				}
				var told *agentv1.ToolCall
				for _, e := range j.events {
					if c := e.GetToolCall(); c != nil {
						told = c
					}
				}
				world.halt, j.left = nil, 9
				task.Resumed, task.Past, task.Spent, task.History = true, slices.Clone(j.events), j.spent, stored(t, j.messages)
				run(t.Context(), other)
				j.expect(t, agentv1.TurnEnd_TURN_END_ANSWERED)
				if got := j.content(t, 0); !got.OK || world.times != 1 {
					t.Errorf("%s: it ran %d times: %s", name, world.times, j.results()[0].GetContent())
					continue
				}
				if want := `{"deviceId":"lap","labels":{"cup":"blue"}}`; told.GetArguments() != want || len(told.GetRepairs()) != row.repairs {
					t.Errorf("%s: told as %s, repaired %q", name, told.GetArguments(), told.GetRepairs())
				}
				raw, err := proto.Marshal(world.action)
				if err != nil || !strings.Contains(string(raw), "\n\x03cup\x12\x04blue") || len(raw) != 17 {
					t.Errorf("%s: %q was sent, %v", name, raw, err)
				}
			}
		}
	}
}

// stored are messages as they come back from a store.
func stored(t *testing.T, messages []model.Message) (out []model.Message) {
	t.Helper()
	raw, err := json.Marshal(messages)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
