package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestDoctorOfAnAddressWithoutPath: a provider without a list of models may be one whose address lacks its path.
func TestDoctorOfAnAddressWithoutPath(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	for path, want := range map[string]string{"": hopWarning, "/": hopWarning, "/v1": hopOK} {
		state, text := lookProvider(t.Context(), ModelConfig{Name: "m", BaseURL: server.URL + path})
		if state != want || strings.Contains(text, "https://host/v1") != (want == hopWarning) {
			t.Errorf("%q: %s, %s", path, state, text)
		}
	}
}
