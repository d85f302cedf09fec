package modeltest_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"throwbar.dev/throwbar/agent/model/modeltest"
)

// post sends a good request and returns the response.
func post(t *testing.T, server *modeltest.Server) *http.Response {
	t.Helper()
	q := newRequest(good())
	request, err := http.NewRequestWithContext(t.Context(), q.method, server.URL+"/chat/completions", strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", q.contentType)
	request.Header.Set("Authorization", q.key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

const body = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello, world\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"

// TestReplayAtEveryByte breaks off and holds a fixture at each of its bytes.
func TestReplayAtEveryByte(t *testing.T) {
	t.Parallel()
	server := modeltest.NewServer(t)
	for n := 1; n <= len(body); n++ {
		reply := modeltest.Replay(body)
		reply.CutAtByte, reply.Seed = n, uint64(n)
		server.Add(reply)
		got, err := io.ReadAll(post(t, server).Body)
		if !errors.Is(err, io.ErrUnexpectedEOF) || string(got) != body[:n] {
			t.Fatalf("cut at %d: %q, %v", n, got, err)
		}
	}
	for _, n := range []int{1, 17, len(body) - 1} {
		hold := make(chan struct{})
		reply := modeltest.Replay(body)
		reply.HoldAtByte, reply.Hold, reply.Split = n, hold, 7
		server.Add(reply)
		response := post(t, server)
		first := make([]byte, n)
		if _, err := io.ReadFull(response.Body, first); err != nil || string(first) != body[:n] {
			t.Fatalf("held at %d: %q, %v", n, first, err)
		}
		close(hold)
		if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != body[n:] {
			t.Fatalf("after %d: %q, %v", n, rest, err)
		}
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	reply := modeltest.Replay(body)
	reply.CutAtByte, reply.Reset, reply.HoldAtByte, reply.Hold = 20, true, 10, hold
	response := post(t, modeltest.NewServer(t, reply))
	first := make([]byte, 10)
	if _, err := io.ReadFull(response.Body, first); err != nil {
		t.Fatal(err)
	}
	close(hold)
	if _, err := io.ReadAll(response.Body); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("error %v", err)
	}
}

// TestSeedCutsAlike looks at the pieces as they are written.
func TestSeedCutsAlike(t *testing.T) {
	t.Parallel()
	pieces := func(seed uint64) []string {
		reply := modeltest.Replay(strings.Repeat(body, 10))
		reply.Seed = seed
		w := &written{header: http.Header{}}
		q := newRequest(good())
		request, err := http.NewRequest(q.method, q.path, strings.NewReader(q.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", q.contentType)
		request.Header.Set("Authorization", q.key)
		modeltest.NewHandler(modeltest.Config{}, reply).ServeHTTP(w, request)
		if strings.Join(w.pieces, "") != strings.Repeat(body, 10) {
			t.Errorf("sent %q", w.pieces)
		}
		return w.pieces
	}
	one, again, other := pieces(1), pieces(1), pieces(2)
	if len(one) < 20 || strings.Join(one, "|") != strings.Join(again, "|") || strings.Join(one, "|") == strings.Join(other, "|") {
		t.Errorf("%d pieces, %d again, %d others", len(one), len(again), len(other))
	}
}

// written keeps what was written, piece by piece.
type written struct {
	header http.Header
	pieces []string
}

func (r *written) Header() http.Header { return r.header }
func (r *written) WriteHeader(int)     {}
func (r *written) Flush()              {}
func (r *written) Write(p []byte) (int, error) {
	r.pieces = append(r.pieces, string(bytes.Clone(p)))
	return len(p), nil
}

func TestPace(t *testing.T) {
	t.Parallel()
	began := time.Now()
	if _, err := io.ReadAll(post(t, modeltest.NewServer(t, modeltest.Reply{Text: "abc", Piece: 1, PaceMillis: 10, NoUsage: true})).Body); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 50*time.Millisecond { // role, three pieces, finish, done
		t.Errorf("took %v", took)
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	h := modeltest.NewHandler(modeltest.Config{Models: []string{"m", "n"}}, modeltest.Text("for all"))
	h.AddFor("n", modeltest.Fail(http.StatusUnauthorized, "no key"), modeltest.Text("for n"))
	for _, want := range []struct{ model, text string }{{"n", "no key"}, {"m", "for all"}, {"n", "for n"}} {
		doc := good()
		doc["model"], doc["stream"] = want.model, false
		delete(doc, "stream_options")
		if _, got := newRequest(doc).serve(h); !strings.Contains(got, want.text) {
			t.Errorf("%s: %s", want.model, got)
		}
	}
	h.SetRuleFor("m", modeltest.Text("rule of m"))
	if _, got := newRequest(good()).serve(h); !strings.Contains(got, "rule of") {
		t.Errorf("rule: %s", got)
	}
	if len(h.RequestsFor("n")) != 2 || h.Remaining() != 0 || len(h.Violations()) != 0 {
		t.Errorf("%d requests, %d left, %v", len(h.RequestsFor("n")), h.Remaining(), h.Violations())
	}
	doc := good()
	doc["model"] = "o"
	if status, _ := newRequest(doc).serve(h); status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
}
