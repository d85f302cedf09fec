package model_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/model/modeltest"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	server := modeltest.NewServerWith(t, modeltest.Config{Models: []string{"one", "two"}})
	names, err := newClient(t, model.Config{BaseURL: server.URL}).Probe(t.Context())
	if err != nil || !slices.Equal(names, []string{"one", "two"}) {
		t.Errorf("%v, %v", names, err)
	}
	var api *model.APIError
	_, err = newClient(t, model.Config{BaseURL: server.URL, Key: "sk-wrong-key"}).Probe(t.Context())
	if !errors.As(err, &api) || api.Status != http.StatusUnauthorized || strings.Contains(err.Error(), "sk-wrong-key") {
		t.Errorf("error %v", err)
	}
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("asked elsewhere") }))
	t.Cleanup(stranger.Close)
	for status, want := range map[int]bool{404: true, 405: true, 302: false, 500: false} {
		odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", stranger.URL)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(r.Header.Get("Authorization")))
		}))
		t.Cleanup(odd.Close)
		names, err := newClient(t, model.Config{BaseURL: odd.URL + "/v1"}).Probe(t.Context())
		if (err == nil) != want || len(names) > 0 || err != nil && strings.Contains(err.Error(), modeltest.Key) {
			t.Errorf("%d: %v, %v", status, names, err)
		}
	}
	client := newClient(t, model.Config{BaseURL: "http://models.test:8080/v1", Model: "m"})
	for _, d := range []interface{ Describe() (string, string) }{client, model.NewPrompted(client)} {
		if name, host := d.Describe(); name != "m" || host != "models.test:8080" {
			t.Errorf("%s at %s", name, host)
		}
	}
}
