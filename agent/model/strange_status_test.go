package model_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model"
)

// TestRedirectToNowhere has answers that are neither a success nor an error, and say nowhere to go: the status is told as it
// is, and another model may answer.
func TestRedirectToNowhere(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusMultipleChoices, http.StatusFound, http.StatusNotModified, http.StatusTemporaryRedirect} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			if status != http.StatusNotModified {
				_, _ = w.Write([]byte("<p>moved"))
			}
		}))
		t.Cleanup(server.Close)
		turn, err := newClient(t, model.Config{BaseURL: server.URL + "/v1"}).Complete(t.Context(), ask("a"), model.Sink{})
		var api *model.APIError
		if !errors.As(err, &api) || api.Status != status || api.Midway || !turn.Empty() || turn.CutOff || !model.Another(err) || api.Temporary() {
			t.Errorf("%d: %+v, %v", status, turn, err)
		}
	}
}

// TestAddressWithoutPath has the mistake that people make with a base URL: the error says what to do. Where there is a path, the
// provider's own words are enough.
func TestAddressWithoutPath(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	for path, told := range map[string]bool{"": true, "/": true, "/chat/completions": true, "/v1": false} {
		_, err := newClient(t, model.Config{BaseURL: server.URL + path}).Complete(t.Context(), ask("a"), model.Sink{})
		if err == nil || !strings.Contains(err.Error(), "404: 404 page not found") || strings.Contains(err.Error(), "/v1)") != told {
			t.Errorf("%q: %v", path, err)
		}
	}
}
