package model_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"

	"throwbar.dev/throwbar/agent/model"
)

func TestAnother(t *testing.T) {
	t.Parallel()
	api := func(status int, code, message string) error {
		return fmt.Errorf("ask model: %w", &model.APIError{Status: status, Code: code, Message: message})
	}
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"nil", nil, false},
		{"400", api(400, "", "bad"), false},
		{"400 of a key", api(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."), true},
		{"400 of an unknown model", api(400, "", "x/y is not a valid model ID"), true},
		{"400 of an unknown model by code", api(400, "model_not_found", "no"), true},
		{"400 of an empty account", api(400, "invalid_request_error", "Your credit balance is too low"), true},
		{"400 of a model without tools", api(400, "", "registry/x does not support tools"), true},
		{"400 of a filter", api(400, "content_filter", "the model does not support this"), false},
		{"401", api(401, "invalid_api_key", "bad key"), true},
		{"402", api(402, "", "pay"), true},
		{"403", api(403, "", "not for you"), true},
		{"403 of a moderation", api(403, "", "your input was flagged by moderation"), false},
		{"404", api(404, "model_not_found", "no such model"), true},
		{"408", api(408, "", "timeout"), true},
		{"413", api(413, "", "too large"), false},
		{"422", api(422, "", "bad field"), false},
		{"429", api(429, "", "slow down"), true},
		{"429 of an empty account", api(429, "insufficient_quota", "pay"), true},
		{"500", api(500, "", "down"), true},
		{"500 of a long history", api(500, "", "the request exceeds the available context size"), false},
		{"501", api(501, "", "not here"), true},
		{"503", api(503, "", "down"), true},
		{"529", api(529, "overloaded_error", "overloaded"), true},
		{"page instead of an answer", api(200, "", "Sign in"), true},
		{"report without a status", api(0, "", "engine died"), true},
		{"context length", api(400, "context_length_exceeded", "long"), false},
		{"content filter", api(400, "content_filter", "no"), false},
		{"content filter without a status", api(0, "content_filter", "no"), false},
		{"idle", fmt.Errorf("%w for 2m", model.ErrIdle), true},
		{"cut off", model.ErrCutOff, true},
		{"refused connection", &net.OpError{Op: "dial", Err: errors.New("connection refused")}, true},
		{"connection that takes too long", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, true},
		{"unknown host", &net.DNSError{Err: "no such host"}, true},
		{"stopped", fmt.Errorf("ask model: %w: %w", context.Canceled, errors.New("by the person")), false},
		{"stopped in the middle", fmt.Errorf("%w: %w", model.ErrCutOff, context.Canceled), false},
		{"out of time", context.DeadlineExceeded, false},
		{"nothing to answer", fmt.Errorf("encode: %w", model.ErrNothingToAnswer), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := model.Another(tt.err); got != tt.want {
				t.Errorf("Another(%v) = %v", tt.err, got)
			}
		})
	}
}

// TestAnotherAfterRealFailures judges errors as the client returns them.
func TestAnotherAfterRealFailures(t *testing.T) {
	t.Parallel()
	const closed = "http://127.0.0.1:1" // a port of a server that was closed may be given to another one
	redirect := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/v1", http.StatusTemporaryRedirect))
	t.Cleanup(redirect.Close)
	broken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(broken.Close)
	for name, tt := range map[string]struct {
		base    string
		request model.Request
		want    bool
	}{
		"nobody listens":        {closed + "/v1", ask("a"), true},
		"leads elsewhere":       {redirect.URL + "/v1", ask("a"), true},
		"hangs up":              {broken.URL + "/v1", ask("a"), true},
		"nothing to answer":     {broken.URL + "/v1", model.Request{}, false},
		"parameters of no JSON": {broken.URL + "/v1", withTool(ask("a"), model.Tool{Name: "f", Parameters: []byte("{")}), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turn, err := newClient(t, model.Config{BaseURL: tt.base}).Complete(t.Context(), tt.request, model.Sink{})
			if err == nil || model.Another(err) != tt.want || !turn.Empty() {
				t.Errorf("%+v, %v: another %v", turn, err, model.Another(err))
			}
		})
	}
}

func withTool(request model.Request, tool model.Tool) model.Request {
	request.Tools = append(request.Tools, tool)
	return request
}

// TestAnotherAfterSilence has a provider that says nothing, and a caller who gives up.
func TestAnotherAfterSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }
		tr := &transport{answers: []func(*http.Request) (*http.Response, error){hang, hang}}
		client := newClient(t, model.Config{BaseURL: "http://model.test/v1", HTTPClient: &http.Client{Transport: tr}})
		if _, err := client.Complete(t.Context(), ask("a"), model.Sink{}); !errors.Is(err, model.ErrIdle) || !model.Another(err) {
			t.Errorf("idle: %v", err)
		}
		ctx, stop := context.WithCancelCause(t.Context())
		stop(errors.New("stopped"))
		if _, err := client.Complete(ctx, ask("a"), model.Sink{}); err == nil || model.Another(err) {
			t.Errorf("stopped: %v", err)
		}
	})
}
