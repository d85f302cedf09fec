package agent_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent"
	"throwbar.dev/throwbar/agent/agenttest"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/storage"
	"throwbar.dev/throwbar/agent/turn"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/db"
)

// How often agent and floor take turns, and how many turns of the agent are in each: few enough that the history is about as
// long at the end as at the beginning.
const (
	rounds   = 6
	perRound = 12
)

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// instant is a provider that answers at once: with one call of a tool, if it has one, and then with text. It is asked over the
// agent's own client, without a network, so that what it takes to write a request down is the agent's time.
type instant struct {
	call  model.Call // no name: none
	made  atomic.Int64
	taken atomic.Int64 // nanoseconds
	body  bytes.Buffer // of the last request: there is one at a time
}

// RoundTrip answers a request.
func (m *instant) RoundTrip(request *http.Request) (*http.Response, error) {
	began := time.Now()
	defer func() { m.taken.Add(int64(time.Since(began))) }()
	m.body.Reset()
	if _, err := m.body.ReadFrom(request.Body); err != nil {
		return nil, err
	}
	delta := []any{map[string]any{"content": "That is "}, map[string]any{"content": "done."}}
	reason := model.FinishStop
	if m.call.Name != "" && bytes.Contains(m.body.Bytes(), []byte(`"role":"user"}],"`)) { // the last message is the user's
		reason = model.FinishToolCalls
		delta = []any{map[string]any{"tool_calls": []any{map[string]any{
			"index": 0, "id": fmt.Sprintf("call_%d", m.made.Add(1)), "type": "function",
			"function": map[string]any{"name": m.call.Name, "arguments": m.call.Arguments},
		}}}}
	}
	var stream bytes.Buffer
	for _, d := range delta {
		if err := event(&stream, map[string]any{"choices": []any{map[string]any{"index": 0, "delta": d}}}); err != nil {
			return nil, err
		}
	}
	if err := event(&stream, map[string]any{
		"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": reason}},
		"usage":   map[string]any{"prompt_tokens": 1000, "completion_tokens": 20},
	}); err != nil {
		return nil, err
	}
	stream.WriteString("data: [DONE]\n\n")
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(&stream), Request: request,
	}, nil
}

func event(stream *bytes.Buffer, content any) error {
	raw, err := json.Marshal(content)
	_, _ = fmt.Fprintf(stream, "data: %s\n\n", raw)
	return err
}

// whole is an agent over a real store, in this process.
type whole struct {
	agentv1connect.AgentServiceClient
	store *store.Store
	model *instant
}

func start(b *testing.B, call model.Call) *whole {
	b.Helper()
	s, err := store.Open(b.Context(), store.Config{Dir: b.TempDir()})
	check(b, err)
	c, err := catalog.New(gen.Descriptors)
	check(b, err)
	world := agenttest.New()
	for i := range 20 {
		world.Tab("lap", fmt.Sprintf("https://example.org/page/%d", i), "A page that has a title")
	}
	w := &whole{store: s, model: &instant{call: call}}
	client, err := model.New(model.Config{BaseURL: "http://model.test/v1", Model: "instant", HTTPClient: &http.Client{Transport: w.model}})
	check(b, err)
	a, err := agent.New(agent.Config{
		Catalogue: c, Models: []turn.Choice{{Name: "instant", Model: client}}, Commander: world, Querier: world, Store: storage.New(s),
		Workspace: func(context.Context) (string, error) { return "w", nil },
		Random:    rand.Reader, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	check(b, err)
	server := connect.NewServer()
	a.Register(server)
	w.AgentServiceClient = agentv1connect.NewAgentServiceClient(connect.NewClient(connectinprocess.New(server)))
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	storeCtx, stopStore := context.WithCancel(context.WithoutCancel(b.Context()))
	var agents, stores sync.WaitGroup
	agents.Go(func() { _ = a.Run(ctx) })
	stores.Go(func() { _ = s.Run(storeCtx) })
	b.Cleanup(func() {
		cancel()
		agents.Wait()
		stopStore()
		stores.Wait()
		_ = s.Close()
	})
	return w
}

// turn runs a turn and returns how long it took without the model, and the conversation.
func (w *whole) turn(b *testing.B, conversation string) (time.Duration, string) {
	b.Helper()
	request := &agentv1.ChatRequest{Message: "Do what has to be done."}
	if conversation != "" {
		request.ConversationId = &conversation
	}
	w.model.taken.Store(0)
	began := time.Now()
	stream, err := w.Chat(b.Context(), request)
	check(b, err)
	ended := agentv1.TurnEnd_TURN_END_UNSPECIFIED
	for {
		response, err := stream.Receive()
		if err != nil {
			break // the end of the stream
		}
		conversation = cmp.Or(response.GetEvent().GetConversationId(), conversation)
		if end := response.GetEvent().GetTurnEnded(); end != nil {
			ended = end.GetReason()
		}
	}
	took := time.Since(began) - time.Duration(w.model.taken.Load())
	if ended != agentv1.TurnEnd_TURN_END_ANSWERED {
		b.Fatalf("the turn ended with %s", ended)
	}
	return took, conversation
}

// grow adds whole turns to a conversation until it has about n messages.
func (w *whole) grow(b *testing.B, conversation string, n int) {
	b.Helper()
	check(b, w.store.Write(b.Context(), store.Fast, func(ctx context.Context, q *db.Queries) error {
		last, err := q.GetLastMessage(ctx, conversation)
		if err != nil {
			return err
		}
		for turn := range (int64(n) - last) / 4 {
			for i, m := range past(turn) {
				body, err := json.Marshal(m)
				if err != nil {
					return err
				}
				at := db.InsertMessageParams{ConversationID: conversation, N: last + turn*4 + int64(i) + 1, Body: body}
				if err := q.InsertMessage(ctx, at); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// past is turn n of a conversation that goes on and on, as it is stored: an order, a search, its result, the answer.
func past(n int64) []map[string]any {
	id := fmt.Sprintf("past_%d", n)
	return []map[string]any{
		{"role": "user", "text": "Find the pages about the holiday and tell me which of them I read last."},
		{"role": "assistant", "calls": []any{map[string]any{"id": id, "name": "searchTabs", "arguments": `{"query":"holiday"}`}}},
		{"role": "tool", "call_id": id, "text": `{"ok":true,"mark":"k3x9ab","data":{"tabs":[` +
			`{"tabId":"lap_tbb-1","windowId":"lap_wb-1","url":"https://example.org/holiday/1","title":"A page that has a title"},` +
			`{"tabId":"lap_tbb-2","windowId":"lap_wb-1","url":"https://example.org/holiday/2","title":"Another page that has a title"}],"total":2},"end":"k3x9ab"}`},
		{"role": "assistant", "text": "There are two on Work Laptop; you read \"Another page that has a title\" last."},
	}
}

// floor writes what a turn must write and nothing more, and returns how long that took: the same rows in as few steps as
// there can be. A turn without tools has two steps, its beginning and its end; a call has two more, that it is made and what it
// answered.
func (w *whole) floor(b *testing.B, conversation string, from int64, steps int) time.Duration {
	b.Helper()
	text := "That is done, and this is about as long as what is stored of one message and one event of such a turn as this is."
	body, err := json.Marshal(map[string]any{"role": "assistant", "text": text})
	check(b, err)
	event, err := proto.Marshal(&agentv1.Event{ConversationId: conversation, TurnId: conversation, Kind: &agentv1.Event_Message{
		Message: &agentv1.Message{Role: agentv1.Role_ROLE_ASSISTANT, Text: text},
	}})
	check(b, err)
	began := time.Now()
	for i := range int64(steps) {
		level := store.Fast
		if i == 0 {
			level = store.Synced // as the message of a person is
		}
		check(b, w.store.Write(b.Context(), level, func(ctx context.Context, q *db.Queries) error {
			for e := range int64(2) {
				if err := q.InsertConversationEvent(ctx, db.InsertConversationEventParams{
					ConversationID: conversation, Seq: from + 2*i + e, Time: 1, TurnID: conversation, Body: event,
				}); err != nil {
					return err
				}
			}
			return q.InsertMessage(ctx, db.InsertMessageParams{ConversationID: conversation, N: from + i, Body: body})
		}))
	}
	return time.Since(began)
}

// sample is many durations.
type sample []time.Duration

func (s sample) at(percent int) float64 {
	slices.Sort(s)
	return float64(s[min(len(s)*percent/100, len(s)-1)].Nanoseconds()) / 1000
}

// BenchmarkTurn prints the server's own time of a turn: from the call to its last event, less what the model took, beside the
// bare writes of the same rows in the same store. The model answers at once, and so does the world that is acted on.
func BenchmarkTurn(b *testing.B) {
	for _, kind := range []struct {
		name  string
		call  model.Call
		steps int
	}{
		{"answer", model.Call{}, 2},
		{"query", model.Call{Name: "searchTabs", Arguments: `{"query":"page"}`}, 4},
		{"command", model.Call{Name: "openTab", Arguments: `{"deviceId":"lap","url":"https://example.org/new"}`}, 4},
	} {
		for _, history := range []int{1, 100, 1000} {
			b.Run(fmt.Sprintf("%s/history=%d", kind.name, history), func(b *testing.B) { measure(b, kind.call, kind.steps, history) })
		}
	}
}

func measure(b *testing.B, call model.Call, steps, history int) {
	w := start(b, call)
	_, bare := w.turn(b, "") // a conversation for the floor; and all is warm
	place := int64(1 << 20)
	var ours, floor sample
	var used, usedByFloor time.Duration
	for range b.N {
		for range rounds {
			_, conversation := w.turn(b, "")
			if history > 1 {
				w.grow(b, conversation, history)
			}
			was := processor()
			for range perRound {
				if history == 1 {
					conversation = ""
				}
				took, _ := w.turn(b, conversation)
				ours = append(ours, took)
			}
			used += processor() - was
			was = processor()
			for range perRound {
				floor = append(floor, w.floor(b, bare, place, steps))
				place += 100
			}
			usedByFloor += processor() - was
		}
	}
	b.ReportMetric(0, "ns/op") // a turn of the loop is no turn of the agent
	b.ReportMetric(ours.at(50), "µs-own-p50")
	b.ReportMetric(ours.at(99), "µs-own-p99")
	b.ReportMetric(floor.at(50), "µs-writes-p50")
	b.ReportMetric(ours.at(50)/floor.at(50), "p50-ratio")
	b.ReportMetric(float64(used.Microseconds())/float64(len(ours)), "µs-own-cpu")
	b.ReportMetric(float64(usedByFloor.Microseconds())/float64(len(floor)), "µs-writes-cpu")
}
