package model_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"throwbar.dev/throwbar/agent/model"
)

// transport answers from a list, in a bubble with virtual time.
type transport struct {
	answers []func(*http.Request) (*http.Response, error)
	at      []time.Duration // when each request came
	began   time.Time
	bodies  []string
}

func (tr *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if tr.began.IsZero() {
		tr.began = time.Now()
	}
	tr.at = append(tr.at, time.Since(tr.began))
	if r.Body != nil {
		body, _ := io.ReadAll(r.Body)
		tr.bodies = append(tr.bodies, string(body))
		_ = r.Body.Close()
	}
	if len(tr.at) > len(tr.answers) {
		return nil, errors.New("no answer left")
	}
	return tr.answers[len(tr.at)-1](r)
}

func respond(status int, contentType, body string, header ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {contentType}}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
}

func refuse(status int, header ...string) func(*http.Request) (*http.Response, error) {
	return respond(status, "application/json", `{"error":{"message":"no","code":"c"}}`, header...)
}

func fail(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
}

const hello = `data: {"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"

func answered(r *http.Request) (*http.Response, error) {
	return respond(http.StatusOK, "text/event-stream", hello)(r)
}

func TestRetries(t *testing.T) {
	t.Parallel()
	type answers = []func(*http.Request) (*http.Response, error)
	quota := respond(429, "application/json", `{"error":{"message":"pay","code":"insufficient_quota"}}`)
	long := respond(500, "application/json", `{"error":{"message":"the request exceeds the available context size"}}`)
	wait := respond(429, "application/json", `{"error":{"message":"Too many tokens, please wait before trying again."}}`)
	later := func(r *http.Request) (*http.Response, error) { // a date instead of a number
		return refuse(503, "Retry-After", time.Now().UTC().Add(50*time.Second).Format(http.TimeFormat))(r)
	}
	tests := []struct {
		name    string
		answers answers
		tries   int
		waits   time.Duration // at least
		status  int           // of the error, zero if there is none
	}{
		{"503 then fine", answers{refuse(503), answered}, 2, 300 * time.Millisecond, 0},
		{"429 with retry-after", answers{refuse(429, "Retry-After", "30"), answered}, 2, 30 * time.Second, 0},
		{"408 and 409", answers{refuse(408), refuse(409), answered}, 3, time.Second, 0},
		{"no connection, then fine", answers{fail, answered}, 2, 300 * time.Millisecond, 0},
		{"a pause longer than the idle timeout", answers{refuse(429, "Retry-After", "100"), answered}, 2, 100 * time.Second, 0},
		{"retry-after too long", answers{refuse(429, "Retry-After", "500"), answered}, 1, 0, 429},
		{"500 for good", answers{refuse(500), refuse(500), refuse(500), answered}, 3, time.Second, 500},
		{"400", answers{refuse(400), answered}, 1, 0, 400},
		{"400 that asks for it", answers{refuse(400, "X-Should-Retry", "true"), answered}, 1, 0, 400},
		{"401", answers{refuse(401), answered}, 1, 0, 401},
		{"404", answers{refuse(404), answered}, 1, 0, 404},
		{"413", answers{refuse(413), answered}, 1, 0, 413},
		{"422", answers{refuse(422), answered}, 1, 0, 422},
		{"501", answers{refuse(501), answered}, 1, 0, 501},
		{"500 of a long history", answers{long, answered}, 1, 0, 500},
		{"429 of many tokens", answers{wait, answered}, 2, 300 * time.Millisecond, 0},
		{"503 until a date", answers{later, answered}, 2, 49 * time.Second, 0},
		{"redirect elsewhere", answers{refuse(307, "Location", "http://elsewhere.test/v1/chat/completions"), answered}, 1, 0, -1},
		{"account empty", answers{quota, answered}, 1, 0, 429},
		{"503 then 400", answers{refuse(503), refuse(400), answered}, 2, 0, 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tr := &transport{answers: tt.answers}
				client := newClient(t, model.Config{BaseURL: "http://model.test/v1", HTTPClient: &http.Client{Transport: tr}, IdleTimeout: 40 * time.Second})
				turn, err := client.Complete(t.Context(), ask("a"), model.Sink{})
				if len(tr.at) != tt.tries || tr.at[len(tr.at)-1] < tt.waits {
					t.Errorf("tries at %v", tr.at)
				}
				var api *model.APIError
				switch {
				case tt.status == 0 && (err != nil || turn.Text != "Hello"):
					t.Errorf("%+v, %v", turn, err)
				case tt.status < 0 && err == nil:
					t.Errorf("%+v", turn)
				case tt.status > 0 && (!errors.As(err, &api) || api.Status != tt.status || turn.Text != ""):
					t.Errorf("%+v, %v", turn, err)
				}
			})
		})
	}
}

func TestConnectionError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, model.Config{BaseURL: "http://model.test/v1", HTTPClient: &http.Client{Transport: &transport{
			answers: []func(*http.Request) (*http.Response, error){refuse(503), fail, fail},
		}}})
		_, err := client.Complete(t.Context(), ask("a"), model.Sink{})
		var op *net.OpError
		if !errors.As(err, &op) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("error %v", err)
		}
	})
}

// silent is a body that says some things at some times and then nothing, until its request ends.
type silent struct {
	ctx  context.Context
	says []string
	wait time.Duration
}

func (s *silent) Read(p []byte) (int, error) {
	wait := time.Duration(1 << 62)
	if len(s.says) > 0 {
		wait = s.wait
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	n := copy(p, s.says[0])
	s.says = s.says[1:]
	return n, nil
}

func (s *silent) Close() error { return nil }

func TestIdle(t *testing.T) {
	t.Parallel()
	piece := `data: {"choices":[{"delta":{"content":"x"}}]}` + "\n\n"
	comment := ": still thinking\n\n"
	stream := func(says []string, wait time.Duration) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
				Body: &silent{ctx: r.Context(), says: says, wait: wait}, Request: r}, nil
		}
	}
	long := append(strings.Split(strings.Repeat(piece+"|", 100), "|")[:100], hello)
	tests := []struct {
		name   string
		answer func(*http.Request) (*http.Response, error)
		idle   bool
		after  time.Duration
		text   string
	}{
		{"no headers", func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }, true, 120 * time.Second, ""},
		{"nothing after headers", stream(nil, 0), true, 120 * time.Second, ""},
		{"nothing midway", stream([]string{piece, piece}, time.Second), true, 122 * time.Second, "xx"},
		{"slow but alive for three hours", stream(long, 119*time.Second), false, 101 * 119 * time.Second, strings.Repeat("x", 100) + "Hello"},
		{"comments are life", stream([]string{comment, comment, hello}, 100*time.Second), false, 300 * time.Second, "Hello"},
		{"refusal that stalls", func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 400, Header: http.Header{}, Body: &silent{ctx: r.Context()}, Request: r}, nil
		}, true, 120 * time.Second, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tr := &transport{answers: []func(*http.Request) (*http.Response, error){tt.answer}}
				client := newClient(t, model.Config{BaseURL: "http://model.test/v1", HTTPClient: &http.Client{Transport: tr}})
				began := time.Now()
				turn, err := client.Complete(t.Context(), ask("a"), model.Sink{})
				if took := time.Since(began); took != tt.after {
					t.Errorf("took %v", took)
				}
				if errors.Is(err, model.ErrIdle) != tt.idle || errors.Is(err, context.Canceled) || turn.Text != tt.text || len(tr.at) != 1 {
					t.Errorf("%+v, %v, %d tries", turn, err, len(tr.at))
				}
				if turn.CutOff != (err != nil && turn.Text != "") && tt.name != "nothing after headers" {
					t.Errorf("turn %+v", turn)
				}
			})
		})
	}
}

// TestStopInThePause has a person who stops while a refused request waits to be sent again.
func TestStopInThePause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := &transport{answers: []func(*http.Request) (*http.Response, error){refuse(503, "Retry-After", "60"), answered}}
		client := newClient(t, model.Config{BaseURL: "http://model.test/v1", HTTPClient: &http.Client{Transport: tr}})
		ctx, stop := context.WithCancelCause(t.Context())
		because := errors.New("the person pressed stop")
		defer time.AfterFunc(10*time.Second, func() { stop(because) }).Stop()
		began := time.Now()
		turn, err := client.Complete(ctx, ask("a"), model.Sink{})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, because) || model.Another(err) || !turn.Empty() || len(tr.at) != 1 {
			t.Errorf("%+v, %v, %d tries", turn, err, len(tr.at))
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestSlowSinkIsNotSilence has a person's connection that is slower than the idle timeout.
func TestSlowSinkIsNotSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := &transport{answers: []func(*http.Request) (*http.Response, error){answered}}
		client := newClient(t, model.Config{BaseURL: "http://model.test/v1", HTTPClient: &http.Client{Transport: tr}, IdleTimeout: time.Second})
		turn, err := client.Complete(t.Context(), ask("a"), model.Sink{OnText: func(string) {
			<-time.After(time.Minute)
		}})
		if err != nil || turn.Text != "Hello" {
			t.Errorf("%+v, %v", turn, err)
		}
	})
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := &transport{answers: []func(*http.Request) (*http.Response, error){func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}}}
		client := newClient(t, model.Config{BaseURL: "http://model.test/v1", HTTPClient: &http.Client{Transport: tr}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := client.Complete(ctx, ask("a"), model.Sink{})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

// endless is a body without end that counts what was read of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

func (e *endless) Close() error { return nil }

func TestRefusalIsReadInBounds(t *testing.T) {
	t.Parallel()
	body := &endless{}
	tr := &transport{answers: []func(*http.Request) (*http.Response, error){func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 400, Header: http.Header{}, Body: body, Request: r}, nil
	}}}
	client := newClient(t, model.Config{BaseURL: "http://model.test/v1", HTTPClient: &http.Client{Transport: tr}})
	_, err := client.Complete(t.Context(), ask("a"), model.Sink{})
	var api *model.APIError
	if !errors.As(err, &api) || api.Status != 400 || len(api.Message) > 3000 || body.read > 64<<10 {
		t.Errorf("read %d, error of %d bytes", body.read, len(err.Error()))
	}
}
