package history_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"throwbar.dev/throwbar/agent/history"
	"throwbar.dev/throwbar/agent/history/historytest"
	"throwbar.dev/throwbar/agent/model"
)

// grown is a history after another step: a turn, mostly; part of one, something broken, less than before, or a new beginning.
func grown(r *rand.Rand, talk *historytest.Talk, before []model.Message) []model.Message {
	out := append([]model.Message{}, before...)
	switch r.IntN(14) {
	case 0:
		return append(out, historytest.Mangle(r, talk.Turn())...)
	case 1:
		return historytest.Mangle(r, out)
	case 2:
		return out[:r.IntN(len(out)+1)]
	case 3:
		return []model.Message{user("(a summary)")}
	case 4:
		part := talk.Turn()
		return append(out, part[:1+r.IntN(len(part))]...)
	case 5:
		return append(out, user(talk.Words(3)), user(talk.Words(3)))
	case 6:
		return append(out, user("a picture"), says("", "see"), answers("see", "here", talk.Image(100), talk.Image(200)))
	default:
		return append(out, talk.Turn()...)
	}
}

// wire is a provider that keeps what it is sent, and takes everything.
type wire struct{ body []byte }

// RoundTrip answers a request.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var err error
	w.body, err = io.ReadAll(r.Body)
	answer := `{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, err
}

// clients are clients that write requests down in different ways.
func (w *wire) clients(t *testing.T) []*model.Client {
	t.Helper()
	var out []*model.Client
	for _, switches := range []model.Switches{{}, {ReasoningEcho: model.EchoAlways}, {NoImages: true, DeveloperRole: true}} {
		c, err := model.New(model.Config{BaseURL: "http://model.test/v1", Model: "test", HTTPClient: &http.Client{Transport: w}, Switches: switches})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// request is what is sent, byte for byte.
func (w *wire) request(t *testing.T, c *model.Client, messages []model.Message, known *model.Repairer) []byte {
	t.Helper()
	if _, err := c.Complete(t.Context(), model.Request{Messages: messages, Known: known}, model.Sink{}); err != nil {
		t.Fatal(err)
	}
	return w.body
}

// TestMemoryChangesNothing shows models histories that grow, with a memory of what they were before and without: what is shown,
// what is told of it and what goes over the wire are the same, byte for byte, whatever the history, the limits and the system's rules
// do in between.
func TestMemoryChangesNothing(t *testing.T) {
	t.Parallel()
	p := &wire{}
	clients := p.clients(t)
	shortened, images := 0, 0
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 21))
		talk := historytest.Talk{Random: r, Long: 5000}
		limits, rules := history.Limits{Images: true, Estimator: &history.Estimator{}}, "rules"
		var memory history.Memory
		c := clients[0]
		var stored []model.Message
		for step := range 40 {
			stored = grown(r, &talk, stored)
			switch r.IntN(12) {
			case 0:
				rules += "."
			case 1:
				limits.Context = []int{0, 3000, 20_000}[r.IntN(3)]
			case 2:
				limits.Images = !limits.Images
			case 3:
				c = clients[r.IntN(len(clients))]
			case 4:
				limits.Estimator.Observe(1000, int64(500+r.IntN(2000)))
			}
			whole, plain := memory.Repair(stored), model.Repair(stored)
			if got, want := fmt.Sprintf("%q", whole), fmt.Sprintf("%q", plain); got != want {
				t.Fatalf("seed %d, step %d: repaired to\n%s\nwant\n%s", seed, step, got, want)
			}
			shown, plan := memory.Fit(append([]model.Message{system(rules)}, whole...), limits)
			want, planned := history.Fit(append([]model.Message{system(rules)}, plain...), limits)
			if plan != planned {
				t.Fatalf("seed %d, step %d: %+v, want %+v", seed, step, plan, planned)
			}
			if got, want := fmt.Sprintf("%q", shown), fmt.Sprintf("%q", want); got != want {
				t.Fatalf("seed %d, step %d:\n%s\nwant\n%s", seed, step, got, want)
			}
			if plan.Tokens != limits.Estimator.Messages(shown) {
				t.Fatalf("seed %d, step %d: %d tokens are told, and there are %d", seed, step, plan.Tokens, limits.Estimator.Messages(shown))
			}
			shortened, images = shortened+plan.Shortened, images+plan.Images
			if len(want) < 2 {
				continue // the rules alone ask nothing
			}
			if a, b := p.request(t, c, shown, &memory.Sent), p.request(t, c, want, nil); !bytes.Equal(a, b) {
				t.Fatalf("seed %d, step %d:\n%s\nwant\n%s", seed, step, a, b)
			}
		}
	}
	if shortened < 1000 || images < 500 {
		t.Errorf("only %d results were cut and %d images shown", shortened, images)
	}
}

// TestMemoriesAreOfTheirConversation takes and puts memories from many goroutines: nobody has the memory of another, nor one
// that somebody else has too.
func TestMemoriesAreOfTheirConversation(t *testing.T) {
	t.Parallel()
	var memories history.Memories
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			id := fmt.Sprint(n / 2)
			for i := range 50 {
				m := memories.Take(id)
				shown, _ := m.Fit([]model.Message{user(id), says(id), user(strings.Repeat("x", i))}, history.Limits{})
				if shown[0].Text != id || i > 0 && len(shown[2].Text) != i {
					t.Errorf("%q", shown)
				}
				memories.Put(id, m)
			}
		})
	}
	all.Wait()
}
