package model_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"throwbar.dev/throwbar/agent/model"
)

// TestEveryAttemptSendsAllOfTheBody lets a provider refuse a request, send it on to another path, break the connection and then answer: it is
// told the same each time, with its length, and as much for a second request that goes on from the first.
func TestEveryAttemptSendsAllOfTheBody(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var bodies [][]byte // guarded by mu
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength != int64(len(body)) || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v: %d bytes of %d, %q", err, len(body), r.ContentLength, r.Header.Get("Content-Type"))
		}
		mu.Lock()
		bodies = append(bodies, body)
		n := len(bodies)
		mu.Unlock()
		switch n {
		case 1:
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			w.Header().Set("Location", "/v1/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		case 3:
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
		default:
			_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)
		}
	}))
	t.Cleanup(server.Close)
	c, err := model.New(model.Config{BaseURL: server.URL + "/v1", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	var known model.Repairer
	messages := []model.Message{{Role: model.RoleUser, Text: strings.Repeat("a long text ", 50_000)}}
	if _, err := c.Complete(t.Context(), model.Request{Messages: messages, Known: &known}, model.Sink{}); err != nil {
		t.Fatal(err)
	}
	messages = append(messages, model.Message{Role: model.RoleAssistant, Text: "ok"}, model.Message{Role: model.RoleUser, Text: "more"})
	for _, known := range []*model.Repairer{&known, nil} {
		if _, err := c.Complete(t.Context(), model.Request{Messages: messages, Known: known}, model.Sink{}); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	n := len(bodies)
	if n < 6 || !bytes.Equal(bodies[n-1], bodies[n-2]) {
		t.Fatalf("%d requests came", n)
	}
	for i, body := range bodies[:n-2] {
		if !bytes.Equal(body, bodies[0]) || len(body) < 600_000 {
			t.Errorf("attempt %d sent %d bytes, and the first one %d", i, len(body), len(bodies[0]))
		}
	}
}
